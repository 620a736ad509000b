"""Leaf by leaf: what was expected, what Karat gives, how far they may be apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from .case import UNDEFINED, Answer

Path = tuple[str, ...]
MISSING = object()
INFINITE = {"inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Tolerance:
    """|x - y| <= atol + rtol |y|; `by_prefix` replaces atol where the path, from any of its keys on, starts so."""

    rtol: float = 0.0
    atol: float = 0.0
    by_prefix: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, protocol: Mapping[str, Any]) -> Tolerance:
        """The tolerance that a case's protocol states."""
        return cls(protocol.get("rtol", 0), protocol.get("atol", 0), protocol.get("atol_by_prefix") or {})

    def allows(self, path: Path, expected: float, got: float) -> bool:
        """Whether the two may stand for the same number."""
        if not (math.isfinite(expected) and math.isfinite(got)):
            return expected == got or (math.isnan(expected) and math.isnan(got))
        return abs(got - expected) <= self._atol(path) + self.rtol * abs(expected)

    def _atol(self, path: Path) -> float:
        tails = ["/".join(path[start:]) for start in range(len(path))]
        found = [prefix for prefix in self.by_prefix if any(tail.startswith(prefix) for tail in tails)]
        return self.by_prefix[max(found, key=len)] if found else self.atol


@dataclass(frozen=True)
class Difference:
    """A leaf that disagrees."""

    path: Path
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{'.'.join(self.path) or 'value'}: expected {_shown(self.expected)} got {_shown(self.got)}"


@dataclass
class Comparison:
    """The outcome of one case; `largest` is the largest difference of every quantity (a path without list places)."""

    differences: list[Difference] = field(default_factory=list)
    compared: int = 0
    skipped: dict[Path, str] = field(default_factory=dict)
    largest: dict[str, float] = field(default_factory=dict)


def compare(expected: Any, answer: Answer, tolerance: Tolerance) -> Comparison:
    """Every leaf of `expected` against the answer; only what the adapter declares is left out."""
    outcome = Comparison()
    for path, leaf, got in _pairs(expected, answer.values, (), answer.skipped, outcome):
        outcome.compared += 1
        if got is MISSING or not _same(path, leaf, got, tolerance):
            outcome.differences.append(Difference(path, leaf, got))
        _measure(outcome, path, leaf, got)
    return outcome


def _pairs(
    expected: Any, got: Any, path: Path, skipped: Mapping[str, str], outcome: Comparison
) -> Iterator[tuple[Path, Any, Any]]:
    """Leaves with their counterparts; structures that do not fit are a leaf themselves."""
    reason = _reason(path, skipped)
    if reason is not None:
        outcome.skipped[path] = reason
    elif isinstance(expected, Mapping) and expected:
        inner = got if isinstance(got, Mapping) else {}
        for key, value in expected.items():
            yield from _pairs(value, inner.get(key, MISSING), (*path, str(key)), skipped, outcome)
    elif isinstance(expected, list) and _is_list(got) and len(got) == len(expected) > 0:
        for place, value in enumerate(expected):
            yield from _pairs(value, got[place], (*path, str(place)), skipped, outcome)
    else:
        yield path, expected, got


def _reason(path: Path, skipped: Mapping[str, str]) -> str | None:
    joined = "/".join(path)
    return next((why for pattern, why in skipped.items() if fnmatchcase(joined, pattern)), None)


def _same(path: Path, expected: Any, got: Any, tolerance: Tolerance) -> bool:
    if isinstance(expected, str) and UNDEFINED.match(expected):
        return all(number is not None and math.isnan(number) for number in map(_number, _flat(got)))
    if isinstance(expected, str) and expected not in INFINITE:
        return isinstance(got, str) and got == expected
    if isinstance(expected, Mapping) or _is_list(expected):
        return type(expected) is type(got) and len(expected) == len(got) == 0
    if isinstance(expected, bool):
        return isinstance(got, bool | np.bool_) and bool(got) == expected
    number = _number(got)
    if number is None:
        return False
    if _is_whole(expected) and _is_whole(got):
        return int(expected) == int(got)
    return tolerance.allows(path, _number(expected), number)  # type: ignore[arg-type]


def _measure(outcome: Comparison, path: Path, expected: Any, got: Any) -> None:
    if isinstance(expected, bool) or not isinstance(expected, int | float) or got is MISSING:
        return
    number = _number(got)
    quantity = ".".join(key for key in path if not key.isdigit())
    equal = number is not None and (number == expected or (math.isnan(number) and math.isnan(expected)))
    gap = 0.0 if equal else abs(number - expected) if number is not None else math.nan
    outcome.largest[quantity] = max(outcome.largest.get(quantity, 0.0), math.inf if math.isnan(gap) else gap)


def _number(value: Any) -> float | None:
    """A leaf as a number: null is NaN, infinities may be text; None where it is no number."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        return INFINITE.get(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return None
    return float(value)


def _flat(value: Any) -> list[Any]:
    """All leaves; nothing at all is one leaf that is no number."""
    inner: Sequence[Any] = list(value.values()) if isinstance(value, Mapping) else value if _is_list(value) else ()
    return [leaf for part in inner for leaf in _flat(part)] if inner else [value]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if value is MISSING:
        return "nothing"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 120 else f"{text[:117]}..."
