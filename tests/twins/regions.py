"""Sums over regions as loops over pixels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from .draw import weight_at

Array = NDArray[Any]


def held(shape: Sequence[int], mask: Array | None, valid: Array | None, frame: int) -> Iterator[tuple[int, int, float]]:
    """(row, column, weight) of the pixels of a frame that count."""
    for i in range(shape[1]):
        for j in range(shape[2]):
            weight = weight_at(mask, frame, i, j)
            if weight != 0 and (valid is None or valid[frame, i, j]):
                yield i, j, weight


def total(values: Array, mask: Array | None, valid: Array | None, frame: int) -> float:
    """The weighted sum."""
    return math.fsum(w * float(values[frame, i, j]) for i, j, w in held(values.shape, mask, valid, frame))


def weight(shape: Sequence[int], mask: Array | None, valid: Array | None, frame: int) -> float:
    """The sum of the weights."""
    return math.fsum(w for _, _, w in held(shape, mask, valid, frame))


def count(labels: Array, bins: int, mask: Array | None, valid: Array | None, frame: int) -> list[float]:
    """The sum of the weights of each label."""
    pixels = list(held(labels.shape, mask, valid, frame))
    return [math.fsum(w for i, j, w in pixels if labels[frame, i, j] == label) for label in range(bins)]


def scatter(a: Array, b: Array, mask: Array | None, valid: Array | None, frame: int) -> float:
    """The weighted sum of products of how both deviate from their weighted means."""
    whole = weight(a.shape, mask, valid, frame)
    if not whole:
        return 0.0
    mean_a, mean_b = (total(one, mask, valid, frame) / whole for one in (a, b))
    pixels = held(a.shape, mask, valid, frame)
    return math.fsum(w * (float(a[frame, i, j]) - mean_a) * (float(b[frame, i, j]) - mean_b) for i, j, w in pixels)


def quantile(values: Array, q: float, mask: Array | None, valid: Array | None, frame: int) -> float:
    """Between the two order statistics around q (n - 1), in proportion."""
    part = sorted(float(values[frame, i, j]) for i, j, _ in held(values.shape, mask, valid, frame))
    if not part:
        return math.nan
    place = q * (len(part) - 1)
    low, high = part[math.floor(place)], part[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def histogram(values: Array, edges: Sequence[float], mask: Array | None, valid: Array | None, frame: int) -> list[int]:
    """Pixels in [e, e') of neighbouring edges, the last interval closed."""
    counts = [0] * (len(edges) - 1)
    for i, j, _ in held(values.shape, mask, valid, frame):
        value = float(values[frame, i, j])
        for k, (low, high) in enumerate(pairwise(edges)):
            if low <= value < high or (k == len(counts) - 1 and value == high):
                counts[k] += 1
    return counts
