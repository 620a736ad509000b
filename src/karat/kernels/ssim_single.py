"""Structural similarity as published evaluations compute it, in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def single_precision_map(
    x: Array, y: Array, size: int, sample_covariance: bool, k1: float, k2: float, data_range: float
) -> Array:
    """The SSIM of a uniform window as published evaluations compute it of float32 maps (H, W): E[x y] - E[x] E[y] in
    single precision, which loses the last digits where windows are nearly flat."""
    from scipy.ndimage import uniform_filter

    single = [side.astype(np.float32) for side in (x, y)]
    mean = [uniform_filter(side, size) for side in single]
    count = size**2
    norm = count / (count - 1) if sample_covariance else 1.0

    def spread(i: int, j: int) -> Array:
        covariance: Array = norm * (uniform_filter(single[i] * single[j], size) - mean[i] * mean[j])
        return covariance

    c1, c2 = (k1 * data_range) ** 2, (k2 * data_range) ** 2
    above = (2 * mean[0] * mean[1] + c1) * (2 * spread(0, 1) + c2)
    below = (mean[0] ** 2 + mean[1] ** 2 + c1) * (spread(0, 0) + spread(1, 1) + c2)
    return np.asarray(above / below).astype(np.float64)
