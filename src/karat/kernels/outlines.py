"""Masks (H, W) of single frames, reduced to what is measured of them; a mask that fills its box costs no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Point = tuple[float, float]


@dataclass(frozen=True)
class Outline:
    """The pixels of a mask: how many there are, the box (x1, y1, x2, y2) around them, and the mask within that box."""

    area: int
    box: tuple[int, int, int, int]
    inside: Array

    @property
    def is_box(self) -> bool:
        """Whether the mask fills its box."""
        x1, y1, x2, y2 = self.box
        return self.area == (x2 - x1) * (y2 - y1)

    @property
    def centroid(self) -> Point:
        """The mean of the pixels' centres, in x and y."""
        x1, y1, x2, y2 = self.box
        if self.is_box:
            return (x1 + x2) / 2, (y1 + y2) / 2
        along_x, along_y = (np.count_nonzero(self.inside, axis=axis) for axis in (0, 1))
        mean_x = float(along_x @ np.arange(x2 - x1)) / self.area
        mean_y = float(along_y @ np.arange(y2 - y1)) / self.area
        return x1 + mean_x + 0.5, y1 + mean_y + 0.5

    def shared(self, box: Array) -> int:
        """How many of the pixels are in a box on the grid."""
        x1, y1, x2, y2 = self.box
        left, top = max(int(box[0]), x1), max(int(box[1]), y1)
        right, bottom = min(int(box[2]), x2), min(int(box[3]), y2)
        if right <= left or bottom <= top:
            return 0
        if self.is_box:
            return (right - left) * (bottom - top)
        return int(np.count_nonzero(self.inside[top - y1 : bottom - y1, left - x1 : right - x1]))


def outline(mask: Array) -> Outline:
    """Of booleans (H, W)."""
    rows = np.flatnonzero(mask.any(axis=1))
    if not len(rows):
        return Outline(0, (0, 0, 0, 0), mask[:0, :0])
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    columns = np.flatnonzero(mask[top:bottom].any(axis=0))
    left, right = int(columns[0]), int(columns[-1]) + 1
    inside = mask[top:bottom, left:right]
    return Outline(int(np.count_nonzero(inside)), (left, top, right, bottom), inside)


def published_middle(stored: Array, found: Outline) -> Point:
    """The "centroid" in x and y of published scripts: along each axis the mean of where the values' sums are first
    largest and where these, cumulated, are first largest; (0, 0) of nothing."""
    x1, y1, x2, y2 = found.box
    if not found.area:
        return 0.0, 0.0
    if found.is_box and stored.dtype.kind == "b":
        return (x1 + x2 - 1) / 2, (y1 + y2 - 1) / 2
    sums = (stored.sum(axis=axis) for axis in (0, 1))
    x, y = ((int(one.argmax()) + int(one.cumsum().argmax())) / 2 for one in sums)
    return x, y
