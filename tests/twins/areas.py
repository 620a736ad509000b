"""Regions made of fields, as their definitions read: every pixel against every other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ssim import reflect

Array = NDArray[Any]


def distances(here: Array) -> Array:
    """The distance of every pixel to the nearest one that is true, of which there is one; any number of axes."""
    true = [np.array(place) for place in zip(*np.nonzero(here), strict=True)]
    far = np.zeros(here.shape)
    for place in np.ndindex(*here.shape):
        far[place] = math.sqrt(min(int(((np.array(place) - one) ** 2).sum()) for one in true))
    return far


def bin_of(distance: float, edges: Sequence[float], zero: str) -> int:
    """[0, e0], (e0, e1], ..., (en, infinity); with zero="out" 0 is in none, which is -1."""
    if distance == 0 and zero == "out":
        return -1
    for place, edge in enumerate(edges):
        if distance <= edge:
            return place
    return len(edges)


def bins(here: Array, edges: Sequence[float], zero: str) -> Array:
    """The bin of every pixel; -1 everywhere where nothing is true."""
    if not here.any():
        return np.full(here.shape, -1)
    return np.vectorize(lambda distance: bin_of(distance, edges, zero), otypes=[int])(distances(here))


def coverage(mask: Array, sigma: float) -> Array:
    """A mask (H, W) under a Gaussian that is cut at 4 sigma and sums to 1, the map reflected with its last pixel
    doubled, as often as needed."""
    radius = int(4 * sigma + 0.5)
    taps = [math.exp(-0.5 * (offset / sigma) ** 2) for offset in range(-radius, radius + 1)]
    total = sum(taps)
    height, width = mask.shape
    smooth = np.zeros(mask.shape)
    for i, j in np.ndindex(height, width):
        for di, a in enumerate(taps, -radius):
            for dj, b in enumerate(taps, -radius):
                smooth[i, j] += a * b * mask[reflect(i + di, height), reflect(j + dj, width)] / total**2
    return smooth


def weight(covered: float, most: float, weighting: str) -> float:
    """How much a pixel counts of which so much is covered, the most covered one `most`."""
    if weighting == "inverse":
        return 1 / (covered + 1e-6)
    if weighting == "coverage":
        return covered
    return 1 - covered / most if most > 0 else 1.0


def holds(value: float, sign: str, number: float) -> bool:
    """A comparison, written out."""
    if sign == ">":
        return value > number
    if sign == ">=":
        return value > number or value == number
    if sign == "<":
        return value < number
    if sign == "<=":
        return value < number or value == number
    return (value == number) is (sign == "==")


def lacks_as_published(value: float, dtype: str) -> bool:
    """Whether 1 - value is not 0 where whole numbers of 8 bits wrap."""
    return (1 - int(value)) % 256 != 0 if dtype == "uint8" else 1 - value != 0
