"""The suites that exist, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from karat.errors import UsageError
from karat.suite import Suite


def names() -> list[str]:
    """The names of all suites, without loading any."""
    return [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]


def function(name: str) -> Callable[..., Any] | None:
    """A function that a specification names, of whichever suite has it."""
    for suite in names():
        known: Mapping[str, Callable[..., Any]] = getattr(import_module(f"{__name__}.{suite}"), "FUNCTIONS", {})
        if name in known:
            return known[name]
    return None


def comments(name: str, scores: Mapping[str, float]) -> Iterable[str]:
    """What a suite has to say of a run's scores; one that is not known here nothing."""
    return load(name).comments(scores) if name in names() else ()


def load(name: str) -> Suite:
    """The suite of that name."""
    if name not in names():
        raise UsageError(f"There is no suite {name!r}; there are {', '.join(names())}.")
    suite: Suite = import_module(f"{__name__}.{name}").SUITE
    return suite
