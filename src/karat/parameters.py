"""Parameters of what is a value: fields of a frozen dataclass, each of its declared type and in one spelling."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import chain, repeat
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from karat.errors import UsageError


def settle(owner: Any, name: str = "") -> None:
    """Gives every parameter of `owner` its one spelling, and refuses what is not of its type; `name` is what a user
    calls the owner, usually its class."""
    for parameter, hint in _hints(type(owner)).items():  # type: ignore[arg-type]  # a class can be hashed
        given = getattr(owner, parameter)
        if (value := _normal(given, hint)) is not given:
            object.__setattr__(owner, parameter, value)
        if not _fits(value, hint):
            raise UsageError(f"{name or type(owner).__name__}.{parameter} is {spelled_hint(hint)}, not {value!r}.")


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _normal(value: Any, hint: Any) -> Any:
    """50, 50.0 and NumPy's 50.0 are one parameter and have one spelling."""
    plain = value.item() if isinstance(value, np.generic) else value
    if type(plain) is int and not _fits(plain, hint):
        return float(plain)
    sequence = next((part for part in (hint, *get_args(hint)) if get_origin(part) is tuple), None)
    if isinstance(plain, tuple) and sequence is not None:
        items = tuple(_normal(item, part) for item, part in _paired(plain, get_args(sequence)))
        return plain if all(map(operator.is_, items, plain)) else items
    return plain


def _paired(values: tuple[Any, ...], hints: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Each item of a tuple with its hint; `tuple[float, ...]` has one for all."""
    every = repeat(hints[0]) if hints[-1] is Ellipsis else chain(hints, repeat(type(None)))
    return zip(values, every, strict=False)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a parameter's value is of its declared type; a number is finite, and a whole number is no float."""
    choices = get_args(hint)
    if get_origin(hint) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in choices)
    if get_origin(hint) is tuple:
        if not isinstance(value, tuple) or (choices[-1] is not Ellipsis and len(choices) != len(value)):
            return False
        return all(_fits(item, part) for item, part in _paired(value, choices))
    if choices:
        return any(_fits(value, choice) for choice in choices)
    if hint is float:
        return isinstance(value, float) and math.isfinite(value)
    return isinstance(value, bool) if bool in (hint, type(value)) else isinstance(value, hint)


def spelled_hint(hint: Any) -> str:
    """A declared type as people write it: `float | None`, `'l1' | 'l2'`."""
    choices = get_args(hint)
    if get_origin(hint) is Literal:
        return " | ".join(map(repr, choices))
    if get_origin(hint) is tuple:
        return f"tuple of {', '.join(spelled_hint(part) for part in choices if part is not Ellipsis)}"
    return " | ".join(map(spelled_hint, choices)) or ("None" if hint is type(None) else str(hint.__name__))
