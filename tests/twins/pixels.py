"""Pixel differences as they are defined: one pixel and channel after the other, in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .draw import weight_at

Array = NDArray[Any]


def powers(pred: Array, truth: Array, mask: Array | None, power: int) -> tuple[Fraction, Fraction]:
    """Weighted sum of |p - t|^power over pixels and channels, and the sum of the weights."""
    total = weight = Fraction(0)
    for b in range(truth.shape[0]):
        for i in range(truth.shape[1]):
            for j in range(truth.shape[2]):
                w = Fraction(weight_at(mask, b, i, j))
                if w == 0:
                    continue
                for p, t in zip(np.ravel(pred[b, i, j]), np.ravel(truth[b, i, j]), strict=True):
                    total += w * abs(Fraction(p.item()) - Fraction(t.item())) ** power
                    weight += w
    return total, weight


def mean_power(pred: Array, truth: Array, mask: Array | None, power: int) -> float:
    """MSE (power 2) or MAE (power 1) of all frames as one; NaN where nothing counts."""
    total, weight = powers(pred, truth, mask, power)
    return float(total / weight) if weight else math.nan


def psnr(mse: float, data_range: float) -> float:
    """10 log10(L^2 / MSE)."""
    if math.isnan(mse):
        return math.nan
    return 10 * math.log10(data_range**2 / mse) if mse else math.inf


def nearest(frame: Array, size: tuple[int, int]) -> Array:
    """Pixel i comes from floor(i old / new)."""
    height, width = frame.shape[:2]
    out = np.zeros((*size, *frame.shape[2:]), frame.dtype)
    for i in range(size[0]):
        for j in range(size[1]):
            out[i, j] = frame[math.floor(Fraction(i * height, size[0])), math.floor(Fraction(j * width, size[1]))]
    return out


def linear(frame: Array, size: tuple[int, int]) -> NDArray[np.float64]:
    """Bilinear, pixel centres at i + 1/2, the border replicated."""
    out = np.zeros((*size, *frame.shape[2:]))
    for i in range(size[0]):
        for j in range(size[1]):
            for r, vertical in _between(i, size[0], frame.shape[0]):
                for c, horizontal in _between(j, size[1], frame.shape[1]):
                    out[i, j] += vertical * horizontal * frame[r, c].astype(np.float64)
    return out


def area(frame: Array, size: tuple[int, int]) -> NDArray[np.float64]:
    """The mean over the rectangle that a new pixel covers of the old ones."""
    out = np.zeros((*size, *frame.shape[2:]))
    for i in range(size[0]):
        for j in range(size[1]):
            for r, vertical in _covered(i, size[0], frame.shape[0]):
                for c, horizontal in _covered(j, size[1], frame.shape[1]):
                    out[i, j] += vertical * horizontal * frame[r, c].astype(np.float64)
    return out


def _between(i: int, new: int, old: int) -> list[tuple[int, float]]:
    place = (i + 0.5) * old / new - 0.5
    low = math.floor(place)
    share = place - low
    return [(min(max(low, 0), old - 1), 1 - share), (min(max(low + 1, 0), old - 1), share)]


def _covered(i: int, new: int, old: int) -> list[tuple[int, float]]:
    start, stop = Fraction(i * old, new), Fraction((i + 1) * old, new)
    parts = [(r, min(stop, r + 1) - max(start, r)) for r in range(old)]
    return [(r, float(part / (stop - start))) for r, part in parts if part > 0]


def level(value: float, low: float, high: float) -> int:
    """A value of low..high as a byte, halves to the even one."""
    return round(min(max((float(value) - low) * (255 / (high - low)), 0.0), 255.0))
