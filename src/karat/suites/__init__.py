"""The suites that exist, by name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from karat.errors import UsageError
from karat.suite import Suite


def names() -> list[str]:
    """The names of all suites, without loading any."""
    return [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]


def load(name: str) -> Suite:
    """The suite of that name."""
    if name not in names():
        raise UsageError(f"There is no suite {name!r}; there are {', '.join(names())}.")
    suite: Suite = import_module(f"{__name__}.{name}").SUITE
    return suite
