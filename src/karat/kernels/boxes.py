"""Boxes (x1, y1, x2, y2) of a sequence of frames, in closed form; NaN is no box, and has no area."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def area(boxes: Array) -> Array:
    """Widths times heights (T); 0 of what is inverted or no box."""
    return _spanned(boxes[:, :2], boxes[:, 2:])


def intersection(a: Array, b: Array) -> Array:
    """The areas (T) that each two share."""
    return _spanned(np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, 2:], b[:, 2:]))


def _spanned(first: Array, last: Array) -> Array:
    spans = np.fmax(last - first, 0)
    product: Array = spans[:, 0] * spans[:, 1]
    return product


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
