"""Frame filters as they are defined, one pixel after the other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def reflect_101(index: int, length: int) -> int:
    """d c b | a b c d | c b a, as often as needed."""
    if length == 1:
        return 0
    while not 0 <= index < length:
        index = -index if index < 0 else 2 * (length - 1) - index
    return index


def replicate(index: int, length: int) -> int:
    """a a a | a b c d | d d d."""
    return min(max(index, 0), length - 1)


def neighbours(frame: Array, row: int, column: int, radius: int, border: Callable[[int, int], int]) -> list[Any]:
    """(dy, dx, value) of the square around a pixel, row by row."""
    height, width = frame.shape[:2]
    reach = range(-radius, radius + 1)
    return [
        (dy, dx, frame[border(row + dy, height), border(column + dx, width)].astype(np.float64))
        for dy in reach
        for dx in reach
    ]


def _each_pixel(frame: Array, of: Callable[[int, int], Any]) -> NDArray[np.float64]:
    return np.array([[of(i, j) for j in range(frame.shape[1])] for i in range(frame.shape[0])], np.float64)


def box(frame: Array, size: int) -> NDArray[np.float64]:
    """The mean of size x size pixels."""

    def of(i: int, j: int) -> Any:
        return sum(value for _, _, value in neighbours(frame, i, j, size // 2, reflect_101)) / size**2

    return _each_pixel(frame, of)


def gaussian(frame: Array, size: int, sigma: float) -> NDArray[np.float64]:
    """Weights exp(-(dx^2 + dy^2) / (2 sigma^2)), divided by their sum."""

    def of(i: int, j: int) -> Any:
        total, weight = 0.0, 0.0
        for dy, dx, value in neighbours(frame, i, j, size // 2, reflect_101):
            w = math.exp(-(dx * dx + dy * dy) / (2 * sigma * sigma))
            total, weight = total + w * value, weight + w
        return total / weight

    return _each_pixel(frame, of)


def median(frame: Array, size: int) -> NDArray[np.float64]:
    """The median of size x size pixels, channel by channel."""

    def of(i: int, j: int) -> Any:
        values = [np.atleast_1d(value) for _, _, value in neighbours(frame, i, j, size // 2, replicate)]
        medians = [statistics.median(value[c] for value in values) for c in range(len(values[0]))]
        return medians if frame.ndim == 3 else medians[0]

    return _each_pixel(frame, of)


def bilateral_at(frame: Array, row: int, column: int, size: int, sigma_color: float, sigma_space: float) -> Any:
    """One pixel of `bilateral`."""
    radius = max(size // 2, 1)
    centre = frame[row, column].astype(np.float64)
    total, weight = 0.0, 0.0
    for dy, dx, value in neighbours(frame, row, column, radius, reflect_101):
        if math.hypot(dx, dy) > radius:
            continue
        color = float(np.sum(np.abs(value - centre)))
        w = math.exp(-(color**2) / (2 * sigma_color**2)) * math.exp(-(dx**2 + dy**2) / (2 * sigma_space**2))
        total, weight = total + w * value, weight + w
    return total / weight


def bilateral(frame: Array, size: int, sigma_color: float, sigma_space: float) -> NDArray[np.float64]:
    """A disc of radius size // 2; the colour distance is the sum over channels of absolute differences."""
    return _each_pixel(frame, lambda i, j: bilateral_at(frame, i, j, size, sigma_color, sigma_space))
