"""Boxes (x1, y1, x2, y2) of a sequence of frames, in closed form; NaN is no box, and has no area."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def sides(boxes: Array) -> Array:
    """Widths and heights (T, 2); 0 of what is inverted or no box."""
    spans: Array = np.fmax(boxes[:, 2:] - boxes[:, :2], 0)
    return spans


def area(boxes: Array) -> Array:
    """Widths times heights (T)."""
    product: Array = sides(boxes).prod(axis=1)
    return product


def intersection(a: Array, b: Array) -> Array:
    """The boxes that each two share; 0 in area where they share nothing."""
    return np.concatenate([np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, 2:], b[:, 2:])], axis=1)


def centre(boxes: Array) -> Array:
    """The points (T, 2) in their middle."""
    middle: Array = (boxes[:, :2] + boxes[:, 2:]) / 2
    return middle


def within(boxes: Array, width: float, height: float) -> Array:
    """The boxes cut at the frame."""
    return np.clip(boxes, 0, (width, height, width, height))


def on_grid(boxes: Array) -> Array:
    """The boxes with their edges on the nearest borders of pixels, halves upwards."""
    return np.floor(boxes + 0.5)


def painted(boxes: Array, width: int, height: int) -> Array:
    """The pixels that published scripts paint for a box: edges truncated towards 0, then taken as a slice, so that a
    negative edge counts from the far side. Integers; all 0 where nothing is painted."""
    edges = np.trunc(np.where(np.isnan(boxes), 0, boxes)).astype(np.int64)
    size = np.array((width, height, width, height))
    edges = np.clip(np.where(edges < 0, edges + size, edges), 0, size)
    return np.where((edges[:, 2:] > edges[:, :2]).all(axis=1, keepdims=True), edges, 0)
