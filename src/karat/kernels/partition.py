"""Segments as an exact partition of pixels: each pixel has one cell, each cell belongs to some segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class Partition:
    """`cell` (B, H, W) numbers every pixel's cell; `member` (cells, segments) says which segments hold it."""

    cell: NDArray[np.intp]
    member: NDArray[np.bool_]
    names: tuple[str, ...]

    def united(self) -> Partition:
        """Segments of one name as one, and those without a name left out."""
        names = tuple(dict.fromkeys(name for name in self.names if name))
        if names == self.names:
            return self
        columns = [
            self.member[:, [j for j, name in enumerate(self.names) if name == wanted]].any(axis=1) for wanted in names
        ]
        return Partition(self.cell, np.stack(columns, axis=1) if columns else self.member[:, :0], names)


def of_labels(labels: Array, names: Sequence[str]) -> Partition:
    """A label map (B, H, W) of whole numbers, 0 and below for nothing; label i is called `names[i - 1]`, or "i"."""
    if labels.dtype.kind not in "biu":
        raise InputError(f"Label maps hold whole numbers, this one holds {labels.dtype}: convert it to integers.")
    values, cell = _ranks(np.maximum(labels, 0))
    segments = values[values > 0]
    member = values[:, None] == segments
    called = tuple(names[v - 1] if v <= len(names) else str(v) for v in map(int, segments))
    return Partition(cell, member, called)


def of_masks(masks: NDArray[np.bool_], names: Sequence[str], last_wins: bool) -> Partition:
    """Boolean masks (B, N, H, W) that may overlap; `last_wins` gives a shared pixel to the last of them only."""
    count = masks.shape[1]
    called = tuple(names) if len(names) == count else tuple(map(str, range(1, count + 1)))
    if last_wins or (masks.sum(axis=1, dtype=np.int32) <= 1).all():
        cell = np.zeros((len(masks), *masks.shape[2:]), np.intp)
        for i in range(count):
            cell[masks[:, i]] = i + 1
        return Partition(cell, np.eye(count + 1, count, -1, dtype=bool), called)
    cell = np.zeros((len(masks), *masks.shape[2:]), np.intp)
    member = np.zeros((1, 0), bool)
    for i in range(count):  # a cell is split where the next mask cuts through it
        values, cell = _ranks(cell * 2 + masks[:, i])
        member = np.concatenate([member[values // 2], (values % 2 == 1)[:, None]], axis=1)
    return Partition(cell, member, called)


def shared(a: Partition, b: Partition, counts: Array) -> Array:
    """Intersections (..., segments of a, segments of b) from `counts` (..., cells of a x cells of b)."""
    grid = counts.reshape(*counts.shape[:-1], len(a.member), len(b.member))
    if np.issubdtype(counts.dtype, np.integer):  # whole numbers below 2^53 add exactly in any order
        whole: Array = a.member.T.astype(np.float64) @ grid.astype(np.float64) @ b.member.astype(np.float64)
        return whole.astype(np.int64)
    of_a = np.einsum("...ij,ig->...gj", grid, a.member.astype(np.float64))
    both: Array = np.einsum("...gj,jp->...gp", of_a, b.member.astype(np.float64))
    return both


def _ranks(values: Array) -> tuple[Array, NDArray[np.intp]]:
    """The distinct values in order, and for every element its place among them."""
    top = int(values.max(initial=0))
    if top < 1 << 16:  # a table instead of a sort
        distinct = np.flatnonzero(np.bincount(values.ravel()))
        table = np.zeros(top + 1, np.intp)
        table[distinct] = np.arange(len(distinct))
        return distinct, table[values]
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(values.shape)
