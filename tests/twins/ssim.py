"""SSIM as it is written in Wang et al. 2004, doi:10.1109/TIP.2003.819861: one window after the other, five moments."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def reflect(index: int, length: int) -> int:
    """d c b a | a b c d | d c b a, as often as needed."""
    while not 0 <= index < length:
        index = -index - 1 if index < 0 else 2 * length - 1 - index
    return index


def window_weights(window: str, size: int, sigma: float) -> NDArray[np.float64]:
    """The (size, size) weights of one window, with sum one."""
    radius = size // 2
    weights = np.ones((size, size))
    if window == "gaussian":
        for i in range(size):
            for j in range(size):
                weights[i, j] = math.exp(-((i - radius) ** 2 + (j - radius) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def ssim_pixel(a: NDArray, b: NDArray, weights: NDArray, unbias: float, c1: float, c2: float) -> float:
    """SSIM of two windows."""
    mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
    var_a = unbias * (weights * (a - mean_a) ** 2).sum()
    var_b = unbias * (weights * (b - mean_b) ** 2).sum()
    cov = unbias * (weights * (a - mean_a) * (b - mean_b)).sum()
    numerator = (2 * mean_a * mean_b + c1) * (2 * cov + c2)
    denominator = (mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2)
    return numerator / denominator if denominator else math.nan


def ssim_map(
    x: NDArray,
    y: NDArray,
    *,
    window: str,
    size: int,
    sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_range: float,
    sample_covariance: bool = True,
) -> NDArray[np.float64]:
    """The (H, W) map, mean over channels."""
    x, y = (np.asarray(frame, np.float64).reshape(*frame.shape[:2], -1) for frame in (x, y))
    height, width, channels = x.shape
    weights = window_weights(window, size, sigma)
    unbias = size**2 / (size**2 - 1) if sample_covariance else 1.0
    c1, c2 = (k1 * data_range) ** 2, (k2 * data_range) ** 2
    offsets = range(-(size // 2), size // 2 + 1)
    out = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            here = np.ix_([reflect(i + d, height) for d in offsets], [reflect(j + d, width) for d in offsets])
            values = [ssim_pixel(x[..., c][here], y[..., c][here], weights, unbias, c1, c2) for c in range(channels)]
            out[i, j] = sum(values) / channels
    return out
