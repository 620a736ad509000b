"""Regions that a suite makes of a sample's own fields: where something was observed, how far away that is.

An area is a value: its parameters are in the signature. `maps` makes its weight maps of a block of fields (B, H, W).
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from karat.errors import InputError, UsageError
from karat.kernels.distance import binned, blurred
from karat.parameters import settle
from karat.region import Array, Labels, Map

_RULE = re.compile(r"\s*value\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*", re.ASCII)
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Area(ABC):
    """Regions made of fields."""

    def __post_init__(self) -> None:
        settle(self, self.key)

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The fields."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The regions, in order; bins of one map are `key:bin`."""

    @abstractmethod
    def maps(self, given: Mapping[str, Array]) -> Mapping[str, Map]:
        """The weight maps of a block of the fields."""

    @property
    def key(self) -> str:
        """What settings call it: its first region, without the bin."""
        return self.names[0].partition(":")[0]

    @property
    def ready(self) -> bool:
        """Whether everything that a user must declare is declared."""
        return all(part.ready for part in self._parts().values())

    @property
    def of_all_frames(self) -> bool:
        """Whether a frame's map depends on the others of its sample."""
        return getattr(self, "frames", "single") == "volume"

    def changed(self, values: Mapping[str, Mapping[str, Any]]) -> Self:
        """The area and those in it with other parameters, where `values` has some under their keys."""
        own: Mapping[str, Any] = values.get(self.key, {})
        known = [one.name for one in fields(self)]
        for name in own:
            if name not in known:
                raise UsageError(f"The region {self.key} has no parameter {name!r}; it has {', '.join(known)}.")
        return replace(self, **{name: part.changed(values) for name, part in self._parts().items()}, **own)

    def _parts(self) -> dict[str, Area]:
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in own.items() if isinstance(value, Area)}


@dataclass(frozen=True)
class Where(Area):
    """Where a field is true, and where it is not: a field of booleans, or of two values of which one is 0.

    `rule`, such as "value>0", says where a field of numbers is true; empty, it is still to be declared.
    complement="published": true is what is not 0, and false where 1 - value in the field's own type is not 0, so that
    soft masks are both and masks of 0 and 255 false everywhere.
    """

    field: str
    inside: str
    outside: str
    rule: str | None = None
    complement: Literal["exact", "published"] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule and not _RULE.fullmatch(self.rule):
            raise UsageError(f"{self.rule!r} is no rule: write a comparison such as 'value>0'.")

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def names(self) -> tuple[str, ...]:
        return self.inside, self.outside

    @property
    def ready(self) -> bool:
        return self.rule != ""

    def maps(self, given: Mapping[str, Array]) -> Mapping[str, Map]:
        return {self.inside: self.holds(given), self.outside: self.lacks(given)}

    def holds(self, given: Mapping[str, Array]) -> Array:
        """Where it is true."""
        values = given[self.field]
        if self.complement == "exact" and values.dtype.kind == "f" and np.isnan(values).any():
            raise InputError(f"{self.field} is NaN somewhere, neither {self.inside} nor {self.outside}: replace it.")
        if self.rule:
            sign, number = _RULE.fullmatch(self.rule).groups()  # type: ignore[union-attr]  # checked at the start
            return np.asarray(_COMPARE[sign](values, float(number)))
        if self.complement == "exact" and values.dtype != bool:
            others = np.unique(values[values != 0])
            if len(others) > 1 or not (others > 0).all():
                listed = ", ".join(f"{value:g}" for value in others[:3].tolist())
                raise InputError(f"{self.field} has the values {listed} besides 0, where a mask has one: threshold it.")
        return np.asarray(values != 0)

    def lacks(self, given: Mapping[str, Array]) -> Array:
        """Where it is not."""
        values = given[self.field]
        if self.complement == "exact" or values.dtype == bool:
            return ~self.holds(given)
        return np.asarray(np.subtract(1, values, dtype=values.dtype) != 0)

    def amount(self, given: Mapping[str, Array]) -> Array:
        """1 where it is true, 0 where it is not."""
        return (self.holds(given) if self.complement == "exact" else given[self.field]).astype(np.float64)


@dataclass(frozen=True)
class Both(Area):
    """What is inside of one and inside or outside of another: free_observed, free_unobserved."""

    first: Where
    second: Where

    @property
    def needs(self) -> tuple[str, ...]:
        return (*self.first.needs, *self.second.needs)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.first.inside}_{name}" for name in self.second.names)

    def maps(self, given: Mapping[str, Array]) -> Mapping[str, Map]:
        first = self.first.holds(given)
        inside, outside = self.names
        return {inside: first & self.second.holds(given), outside: first & self.second.lacks(given)}


@dataclass(frozen=True)
class Far(Area):
    """Bins of the exact Euclidean distance to the nearest pixel where something is true: [0, 5], (5, 10], ... px.

    zero="out": (0, 5], the pixels themselves are in no bin. Where it is true nowhere there is no distance;
    nowhere="corner" measures it to a point above the first pixel, as SciPy's transform does. frames="volume": frames
    that are given together are slices a pixel apart, as published code takes them.
    """

    of: Where
    edges: tuple[float, ...] = (5.0, 10.0, 20.0, 50.0)
    zero: Literal["in", "out"] = "in"
    nowhere: Literal["undefined", "corner"] = "undefined"
    frames: Literal["single", "volume"] = "single"

    def __post_init__(self) -> None:
        super().__post_init__()
        edges = (0.0, *self.edges)
        if len(edges) < 2 or not all(a < b for a, b in pairwise(edges)):
            raise UsageError(f"Distances are binned at rising edges above 0, such as (5, 10, 20), not {self.edges!r}.")

    @property
    def needs(self) -> tuple[str, ...]:
        return self.of.needs

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.key}:{name}" for name in self._bins())

    @property
    def key(self) -> str:
        return "distance"

    def maps(self, given: Mapping[str, Array]) -> Mapping[str, Map]:
        beyond = self.of.lacks(given)
        if self.frames == "volume" and len(beyond) > 1:
            bins = self._binned(~beyond)
        else:
            bins = np.array([self._binned(~frame) for frame in beyond], np.intp).reshape(beyond.shape)
        return {self.key: Labels(bins, self._bins())}

    def _bins(self) -> tuple[str, ...]:
        return (*(f"{a:g}-{b:g}" for a, b in pairwise((0.0, *self.edges))), f"{self.edges[-1]:g}+")

    def _binned(self, here: Array) -> Array:
        if here.any():
            bins = binned(here, self.edges)
            return np.where(here, -1, bins) if self.zero == "out" else bins
        if self.nowhere == "undefined":
            return np.full(here.shape, -1)
        first, *others = np.indices(here.shape)
        distance = np.sqrt((first + 1.0) ** 2 + sum(other**2 for other in others))
        return np.asarray(np.searchsorted(np.array(self.edges), distance, side="left"))


@dataclass(frozen=True)
class Uncovered(Area):
    """Every pixel by how little was observed around it: weights 1 / (coverage + 1e-6), coverage the mask under a
    Gaussian of `sigma` px (reflected at the border, cut at 4 sigma). weighting="smooth": 1 - coverage / its largest;
    "coverage": the coverage itself. frames="volume": frames that are given together are smoothed as a volume.
    """

    of: Where
    sigma: float = 5.0
    weighting: Literal["inverse", "smooth", "coverage"] = "inverse"
    frames: Literal["single", "volume"] = "single"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sigma > 0:
            raise UsageError(f"The Gaussian of uncovered has a sigma above 0, not {self.sigma!r}.")

    @property
    def needs(self) -> tuple[str, ...]:
        return self.of.needs

    @property
    def names(self) -> tuple[str, ...]:
        return ("uncovered",)

    def maps(self, given: Mapping[str, Array]) -> Mapping[str, Map]:
        amount = self.of.amount(given)
        whole = self.frames == "volume" and len(amount) > 1
        parts = [amount] if whole else list(amount)
        weights = [self._weights(blurred(part, self.sigma)) for part in parts]
        return {"uncovered": np.stack(weights).reshape(amount.shape) if weights else amount}

    def _weights(self, coverage: Array) -> Array:
        if self.weighting == "inverse":
            return np.asarray(1 / (coverage + 1e-6))
        top = coverage.max(initial=0.0)
        if self.weighting == "coverage":
            return coverage
        return np.asarray(1 - coverage / top) if top > 0 else np.ones_like(coverage)


KINDS: Mapping[str, Callable[..., Area]] = {"Where": Where, "Both": Both, "Far": Far, "Uncovered": Uncovered}


def recorded(area: Area) -> dict[str, Any]:
    """An area as JSON can hold it."""
    own = {one.name: getattr(area, one.name) for one in fields(area)}
    return {"area": type(area).__name__} | {
        name: recorded(value) if isinstance(value, Area) else value for name, value in own.items()
    }


def restored(record: Mapping[str, Any]) -> Area:
    """The area that was recorded."""
    given: dict[str, Any] = {
        name: restored(value) if isinstance(value, Mapping) else tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
    }
    return KINDS[given.pop("area")](**given)
