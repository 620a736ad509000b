"""Regions are weight maps; every sum over pixels in Karat goes through `Regions`.

A map is None (every pixel), boolean, floating (weights, 0 leaves a pixel out) or `Labels` (one integer map that names
several disjoint regions at once). Pixels of weight 0 are never read, so 0 x NaN cannot happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

Array = NDArray[Any]
ALL = "all"


@dataclass(frozen=True)
class Labels:
    """Disjoint regions in one integer map: pixel value i belongs to `names[i]`, a negative value to none."""

    map: NDArray[np.integer[Any]]
    names: tuple[str, ...]


Map = Array | Labels | None


def complement(weights: Array) -> Array:
    """Not in the region: logical for boolean maps, 1 - w for weights in [0, 1]."""
    return ~weights if weights.dtype == bool else 1.0 - weights


def intersection(a: Array, b: Array) -> Array:
    """In both: logical for boolean maps, the product for weights."""
    return a & b if a.dtype == bool == b.dtype else np.multiply(a, b, dtype=np.float64)


def union(a: Array, b: Array) -> Array:
    """In either: logical for boolean maps, a + b - ab for weights in [0, 1]."""
    return a | b if a.dtype == bool == b.dtype else complement(intersection(complement(a * 1.0), complement(b * 1.0)))


@dataclass(frozen=True)
class Regions:
    """The regions of a block of B frames, in order; each map is (B, H, W), a `Labels` of that shape, or None."""

    maps: Mapping[str, Map]
    valid: NDArray[np.bool_] | None = None
    _parts: dict[int, list[_Part]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """One name a column of every sum; the bins of a `Labels` map are `name:bin`."""
        return tuple(
            name
            for key, weights in self.maps.items()
            for name in ([f"{key}:{bin}" for bin in weights.names] if isinstance(weights, Labels) else [key])
        )

    @property
    def whole(self) -> bool:
        """Whether there is but one region, and it is every pixel: then a fused kernel may replace a map."""
        return self.valid is None and all(weights is None for weights in self.maps.values()) and len(self) == 1

    def __len__(self) -> int:
        return len(self.names)

    def where(self, valid: Array) -> Regions:
        """The same regions, restricted to the pixels where `valid` (B, H, W) holds."""
        return replace(self, valid=valid if self.valid is None else self.valid & valid)

    def each(self) -> Iterator[tuple[int, Regions]]:
        """Every region by itself, with its column: for what must be estimated inside one region."""
        parts: list[Array | None] = []
        for weights in self.maps.values():
            parts += (
                [weights.map == label for label in range(len(weights.names))]
                if isinstance(weights, Labels)
                else [weights]
            )
        for column, (name, part) in enumerate(zip(self.names, parts, strict=True)):
            yield column, Regions({name: part}, self.valid)

    def unweighted(self) -> Regions:
        """The same pixels, each of weight 1."""
        if not any(map(_weighs, self.maps.values())):
            return self
        return replace(self, maps={name: w != 0 if isinstance(w, np.ndarray) else w for name, w in self.maps.items()})

    def frames(self, start: int, stop: int) -> Regions:
        """The regions of the frames [start, stop) of the block."""

        def cut(weights: Map) -> Map:
            if isinstance(weights, Labels):
                return replace(weights, map=weights.map[start:stop])
            return None if weights is None else weights[start:stop]

        valid = None if self.valid is None else self.valid[start:stop]
        return Regions({name: cut(weights) for name, weights in self.maps.items()}, valid)

    def change(self, change: Callable[[Array], Array]) -> Regions:
        """The regions with `change` applied to every weight map (an erosion, a crop)."""
        maps: dict[str, Map] = {}
        for name, weights in self.maps.items():
            if isinstance(weights, Labels):
                bins = enumerate(weights.names)
                maps |= {f"{name}:{own}": change(weights.map == label) for label, own in bins}
            else:
                maps[name] = None if weights is None else change(weights)
        return replace(self, maps=maps)

    def sum(self, values: Array) -> Array:
        """Weighted sums of `values` (B, H, W) by frame and region: (B, regions), int64 for integers, else float64."""
        rows = [
            np.concatenate([_sum(values[frame], part) for part in self._of_frame(frame)])
            for frame in range(len(values))
        ]
        return np.stack(rows) if rows else np.zeros((0, len(self)), _dtype(values.dtype))

    def weight(self, shape: Sequence[int]) -> Array:
        """Summed weights of frames of `shape` (B, H, W): pixel counts unless a map is floating."""
        return self.sum(np.broadcast_to(np.True_, tuple(shape)))

    def mean(self, values: Array) -> Array:
        """Weighted means of `values` (B, H, W): (B, regions), NaN where a region is empty."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Array = np.divide(self.sum(values), self.weight(values.shape))
        return mean

    def scatter(self, *values: Array) -> Array:
        """Sums of products of how k `values` (B, H, W) deviate from their weighted means in each frame and region:
        (B, regions, k, k), exactly 0 for what is constant there."""
        found = [
            [_scatter([one[frame] for one in values], part) for part in self._each_of_frame(frame)]
            for frame in range(len(values[0]))
        ]
        return np.array(found, np.float64).reshape(len(found), len(self), len(values), len(values))

    def count(self, labels: Array, bins: int) -> Array:
        """Summed weights of the pixels of each label 0..bins-1 by frame and region: (B, regions, bins)."""
        counts = [
            np.concatenate([_count(labels[frame], bins, part) for part in self._of_frame(frame)])
            for frame in range(len(labels))
        ]
        weighed = any(map(_weighs, self.maps.values()))
        return np.array(counts).reshape(len(labels), len(self), bins).astype(np.float64 if weighed else np.int64)

    def select(self, values: Array) -> list[list[Array]]:
        """The pixels of every frame and region, flat: `[frame][region]`; weights only say in or out."""
        return [[part.take(values[frame]) for part in self._each_of_frame(frame)] for frame in range(len(values))]

    def quantile(self, values: Array, q: float) -> Array:
        """The q-quantile of every frame and region, NaN where a region is empty: (B, regions)."""
        return np.array(
            [[np.quantile(part, q) if part.size else np.nan for part in frame] for frame in self.select(values)]
        ).reshape(len(values), len(self))

    def histogram(self, values: Array, edges: Array) -> Array:
        """Pixel counts between `edges` by frame and region: (B, regions, bins), int64."""
        counts = [[np.histogram(part, edges)[0] for part in frame] for frame in self.select(values)]
        return np.array(counts, np.int64).reshape(len(values), len(self), len(edges) - 1)

    def _of_frame(self, frame: int) -> list[_Part]:
        """Every map of a frame; what pixels it takes is found once for all sums."""
        if frame not in self._parts:
            valid = None if self.valid is None else self.valid[frame]
            self._parts[frame] = [_Part(_frame_of(weights, frame), valid) for weights in self.maps.values()]
        return self._parts[frame]

    def _each_of_frame(self, frame: int) -> Iterator[_Part]:
        """Every region by itself."""
        for part in self._of_frame(frame):
            if isinstance(part.weights, Labels):
                for label in range(len(part.weights.names)):
                    yield _Part(part.weights.map == label, part.valid)
            else:
                yield part


@dataclass
class _Part:
    """A map of one frame, and the pixels that it takes."""

    weights: Map
    valid: Array | None

    @cached_property
    def keep(self) -> Array | None:
        """Which pixels those are; None where all are."""
        weights = self.weights.map >= 0 if isinstance(self.weights, Labels) else self.weights
        inside = None if weights is None else weights != 0
        return inside if self.valid is None else self.valid if inside is None else inside & self.valid

    @cached_property
    def places(self) -> Array | None:
        """Where those are: places are taken in a fraction of the time of a boolean index."""
        return None if self.keep is None else np.flatnonzero(self.keep)

    @cached_property
    def labels(self) -> Array:
        """Of each, where the map is one of labels."""
        assert isinstance(self.weights, Labels)
        return self.take(self.weights.map)

    @cached_property
    def amounts(self) -> Array | None:
        """How much each counts; None where all count alike."""
        if self.weights is None or isinstance(self.weights, Labels) or not _weighs(self.weights):
            return None
        return self.take(self.weights).astype(np.float64)

    def take(self, values: Array) -> Array:
        """The pixels of values (H, W), in order."""
        return values.ravel() if self.places is None else values.ravel().take(self.places)


def _frame_of(weights: Map, frame: int) -> Map:
    if isinstance(weights, Labels):
        return replace(weights, map=weights.map[frame])
    return None if weights is None else weights[frame]


def region_names(masks: Mapping[str, Map]) -> tuple[str, ...]:
    """The regions that these masks make, everything first."""
    return Regions({ALL: None, **masks}).names


def make_regions(masks: Mapping[str, Map], shape: tuple[int, int, int]) -> Regions:
    """Everything, and each named mask; `shape` is (frames, H, W), a mask of shape (H, W) holds for every frame."""
    maps: dict[str, Map] = {ALL: None}
    for name, mask in masks.items():
        if mask is None or isinstance(mask, Labels):
            maps[name] = mask
            continue
        weights = np.asarray(mask)
        if weights.dtype != bool and not np.issubdtype(weights.dtype, np.floating):
            weights = _boolean(weights, name)
        if weights.ndim == 2:
            weights = np.broadcast_to(weights, shape)
        if name == ALL:
            raise InputError(f"{ALL!r} is the whole frame: give the mask of that name another one.")
        if weights.dtype != bool and not weights.min(initial=0) >= 0:  # NaN as well
            raise InputError(f"mask {name!r} has weights that are negative or NaN: weights are 0 or more.")
        if weights.shape != shape:
            raise InputError(f"mask {name!r} has shape {weights.shape}, the frames {shape}: give one mask a frame.")
        maps[name] = weights
    return Regions(maps)


def _boolean(mask: Array, name: str) -> NDArray[np.bool_]:
    top = mask.max(initial=0)
    if not np.isin(np.unique(mask), (0, top)).all() or top not in (0, 1, 255):
        raise InputError(
            f"mask {name!r} has values other than 0 and 1 or 0 and 255: save it as boolean or float weights."
        )
    inside: NDArray[np.bool_] = mask != 0
    return inside


def _dtype(dtype: np.dtype[Any]) -> type[np.int64] | type[np.float64]:
    return np.float64 if np.issubdtype(dtype, np.floating) else np.int64


def _sum(values: Array, part: _Part) -> Array:
    """The one place that adds pixels: a frame's weighted sum in one region (or one per label), in pixel order."""
    dtype = _dtype(values.dtype)
    if isinstance(part.weights, Labels):
        kept, names = part.take(values), len(part.weights.names)
        if dtype is np.int64 and kept.dtype != bool:  # bincount adds in float64, exact below 2^53
            return np.bincount(part.labels, kept, names).astype(np.int64)
        sums = np.bincount(part.labels, None if kept.dtype == bool and kept.all() else kept, names)
        return sums.astype(dtype)
    if part.amounts is not None:
        return np.array([(part.take(values) * part.amounts).sum()], np.float64)
    if values.dtype == bool:
        return np.array([np.count_nonzero(values if part.keep is None else values & part.keep)], np.int64)
    return np.array([(values if part.keep is None else part.take(values)).sum(dtype=dtype)], dtype)


def _count(labels: Array, bins: int, part: _Part) -> Array:
    """A frame's summed weights of each label in one region (or in one per label of the region): (regions, bins)."""
    own = part.take(labels)
    if isinstance(part.weights, Labels):
        names = len(part.weights.names)
        return np.bincount(part.labels.astype(np.intp) * bins + own, None, names * bins).reshape(names, bins)
    return np.bincount(own, part.amounts, bins)[None]


def _scatter(values: Sequence[Array], part: _Part) -> Array:
    """A frame's sums of products of deviations in one region."""
    parts = [part.take(one).astype(np.float64) for one in values]
    products = np.zeros((len(parts), len(parts)))
    if not parts[0].size:
        return products
    amounts = part.amounts
    total = parts[0].size if amounts is None else amounts.sum()
    with np.errstate(invalid="ignore", over="ignore"):  # of infinities nothing is left
        centred = [one - one[0] for one in parts]  # of what is constant nothing is left to round
        centred = [one - (one if amounts is None else amounts * one).sum() / total for one in centred]
        for i, one in enumerate(centred):
            weighed = one if amounts is None else amounts * one
            for j, other in enumerate(centred[: i + 1]):
                products[i, j] = products[j, i] = (weighed * other).sum()
    return products


def _weighs(weights: Map) -> bool:
    """Whether pixels count differently."""
    return isinstance(weights, np.ndarray) and weights.dtype != bool
