"""What a normal distribution says of a value: all by pixel, of standardised errors z = (value - mean) / deviation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def probability(z: Array) -> Array:
    """The probability of less."""
    from scipy.special import ndtr

    below: Array = ndtr(z)
    return below


def quantile(p: float) -> float:
    """The z that probability p lies below."""
    from scipy.special import ndtri

    return float(ndtri(p))


def within(z: float) -> float:
    """The probability of less than z deviations from the mean."""
    return math.erf(z / math.sqrt(2))


def crps(gap: Array, deviation: Array, z: Array, below: Array) -> Array:
    """Continuous ranked probability score, gap (2 P - 1) + deviation (2 p - 1 / sqrt(pi)): P = `below`, p the density.

    Gneiting et al. 2005, doi:10.1175/MWR2904.1.
    """
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    score: Array = gap * (2 * below - 1) + deviation * (2 * density - 1 / math.sqrt(math.pi))
    return score


def negative_log_likelihood(z: Array, deviation: Array) -> Array:
    """log(deviation sqrt(2 pi)) + z^2 / 2."""
    score: Array = np.log(deviation) + 0.5 * math.log(2 * math.pi) + 0.5 * z * z
    return score
