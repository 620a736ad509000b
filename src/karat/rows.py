"""Rows: what a statistic measured, keyed by (sample, side, frame, item, region); merging is joining by key.

Nothing outside this module adds rows, and it adds them in key order only, so that a result has the same bits
however the rows were made: in which batches, by how many workers, in which order, before or after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError, told

Array = NDArray[Any]
Codes = NDArray[np.int32]
BOTH = "both"


@dataclass(frozen=True)
class Elements:
    """What was measured of one sample's things that are not pixels: columns (n, *axes), and the frame of each thing.

    `labels` name the first of the axes (the nodes of a skeleton, say).
    """

    frame: Array
    columns: Mapping[str, Array]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Columns of n rows. `sample` and `region` index into `samples` and `regions`; columns are (n, *axes).

    `labels` name the first of the axes, the same in all rows.
    """

    samples: tuple[str, ...]
    regions: tuple[str, ...]
    sample: Codes
    frame: Codes
    item: Codes
    region: Codes
    columns: Mapping[str, Array]
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.sample)

    def keys(self) -> tuple[Codes, ...]:
        """The key columns, the most significant first. Every row measures both sides at once."""
        return self.sample, self.frame, self.item, self.region

    def take(self, index: Array | slice) -> Rows:
        """The rows at `index`, in that order; a slice copies nothing."""
        sample, frame, item, region = (key[index] for key in self.keys())
        columns = {name: column[index] for name, column in self.columns.items()}
        return Rows(self.samples, self.regions, sample, frame, item, region, columns, self.labels)

    def named(self, samples: Sequence[str]) -> Rows:
        """The same rows with other sample names, in the order of `samples`."""
        return replace(self, samples=tuple(samples))

    def of(self, samples: Sequence[str]) -> Rows:
        """The rows of the given samples, re-coded so that sample i is `samples[i]`."""
        place = {name: code for code, name in enumerate(samples)}
        codes = np.array([place.get(name, -1) for name in self.samples], np.int32)
        chosen = codes[self.sample] >= 0 if len(self) else np.zeros(0, bool)
        kept = self if chosen.all() else self.take(np.flatnonzero(chosen))
        return replace(kept, samples=tuple(samples), sample=codes[kept.sample] if len(kept) else kept.sample)


def empty(regions: Sequence[str] = ()) -> Rows:
    """No rows."""
    none = np.zeros(0, np.int32)
    return Rows((), tuple(regions), none, none, none, none, {})


def frame_rows(sample: str, slots: Array, regions: Sequence[str], columns: Mapping[str, Array]) -> Rows:
    """Rows of one sample from columns of shape (frames, regions, *axes)."""
    return _grid(sample, regions, columns, frame=np.asarray(slots, np.int32))


def item_rows(sample: str, regions: Sequence[str], columns: Mapping[str, Array]) -> Rows:
    """Rows of one sample from columns of shape (items, regions, *axes)."""
    return _grid(sample, regions, columns, frame=None)


def element_rows(sample: str, region: str, elements: Elements) -> Rows:
    """Rows of one sample's elements; the item of a row is its place among them."""
    count = len(elements.frame)
    zeros, items = np.zeros(count, np.int32), np.arange(count, dtype=np.int32)
    frames = np.asarray(elements.frame, np.int32)
    rows = Rows((sample,), (region,), zeros, frames, items, zeros, dict(elements.columns), elements.labels)
    return rows if (frames[1:] >= frames[:-1]).all() else rows.take(np.argsort(frames, kind="stable"))


def _grid(sample: str, regions: Sequence[str], columns: Mapping[str, Array], frame: Codes | None) -> Rows:
    count = len(next(iter(columns.values()))) if columns else 0
    size, across = count * len(regions), len(regions)
    index = np.repeat(np.arange(count, dtype=np.int32), across)
    zeros = np.zeros(size, np.int32)
    flat = {name: np.ascontiguousarray(column).reshape(size, *column.shape[2:]) for name, column in columns.items()}
    frames, items = (zeros, index) if frame is None else (frame[index], zeros)
    return Rows(
        (sample,), tuple(regions), zeros, frames, items, np.tile(np.arange(across, dtype=np.int32), count), flat
    )


def concatenate(parts: Iterable[Rows]) -> Rows:
    """All rows in key order; of rows with one key the first given stays."""
    every = list(parts)
    present = [part for part in every if len(part)] or every[:1]
    if not present:
        return empty()
    if len(every) == 1 and len(every[0].samples) == 1 and _in_order(every[0]):
        return every[0]
    samples = tuple(sorted({name for part in every for name in part.samples}))
    regions = tuple(dict.fromkeys(name for part in present for name in part.regions))
    of_sample, of_region = {name: i for i, name in enumerate(samples)}, {name: i for i, name in enumerate(regions)}
    sample = _join([np.array([of_sample[n] for n in p.samples], np.int32)[p.sample] for p in present])
    region = _join([np.array([of_region[n] for n in p.regions], np.int32)[p.region] for p in present])
    columns = {name: np.concatenate([part.columns[name] for part in present]) for name in present[0].columns}
    frame, item = _join([part.frame for part in present]), _join([part.item for part in present])
    joined = Rows(samples, regions, sample, frame, item, region, columns, _same_labels(present))
    key_columns = joined.keys()
    order = np.lexsort(tuple(reversed(key_columns)))
    same = np.ones(max(len(order) - 1, 0), bool)
    for key in key_columns:
        same &= key[order[1:]] == key[order[:-1]]
    if not same.any() and (order[1:] > order[:-1]).all():
        return joined
    return joined.take(order[np.concatenate(([True], ~same))] if len(order) else order)


def _in_order(rows: Rows) -> bool:
    """Whether rows of one sample are in key order, no key twice."""
    frame, item, region = (key.astype(np.int64) for key in rows.keys()[1:])
    later = (frame[1:] > frame[:-1]) | (
        (frame[1:] == frame[:-1]) & ((item[1:] > item[:-1]) | ((item[1:] == item[:-1]) & (region[1:] > region[:-1])))
    )
    return bool(later.all())


def _same_labels(parts: Sequence[Rows]) -> tuple[str, ...]:
    first, *others = parts
    for other in others:
        if other.labels != first.labels:
            raise InputError(
                f"{told(first.samples[0])} has {told(', '.join(first.labels))} and {told(other.samples[0])} has "
                f"{told(', '.join(other.labels))}: evaluate what has different parts in separate runs."
            )
    return first.labels


def _join(parts: Sequence[Array]) -> Codes:
    return np.concatenate(parts).astype(np.int32, copy=False)


def reduce(values: Array, groups: Array, count: int) -> Array:
    """Sums of `values` (n, *axes) in row order for each of `count` groups: (count, *axes), 0 for an empty group.

    The one place that adds rows. A group's sum depends on its own rows and their order, on nothing else.
    """
    wide = values.astype(np.float64 if np.issubdtype(values.dtype, np.floating) else np.int64, copy=False)
    sums = np.zeros((count, *values.shape[1:]), wide.dtype)
    if not len(values):
        return sums
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sums[ordered[starts]] = np.add.reduceat(np.ascontiguousarray(wide[order]), starts, axis=0)
    return sums
