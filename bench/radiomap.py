"""Radio maps: Karat beside scikit-image, SciPy and NumPy, which do the same work as published code does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.race import Race
from karat.functional import compute_all_metrics

SIDE, RANGE, REPEATS = 256, 139.0, 20
Map = NDArray[Any]


def races(folder: Path) -> list[Race]:  # noqa: ARG001
    """What is compared."""
    found = []
    for side in (SIDE, 2 * SIDE, 4 * SIDE):
        maps = fields(side)
        found.append(
            Race(
                f"one map's table, {side}x{side}",
                "scikit-image + SciPy",
                lambda maps=maps: published(*maps),
                lambda maps=maps: compute_all_metrics(*maps),
                1.3 if side == SIDE else None,
                REPEATS,
            )
        )
    return found


def fields(side: int) -> tuple[Map, Map, Map, Map]:
    """A prediction, its truth, a walk through it and standard deviations."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side] / side
    truth = -90 - 60 * np.hypot(x - 0.4, y - 0.6) + rng.normal(0, 3, (side, side))
    mask = np.zeros((side, side), np.uint8)
    steps = rng.integers(-2, 3, (2, 300)).cumsum(axis=1) + side // 2
    mask[tuple(steps % side)] = 1
    std = rng.uniform(2, 8, truth.shape)
    return truth + std * rng.standard_normal(truth.shape), truth, mask, std


def published(pred: Map, target: Map, mask: Map, std: Map) -> dict[str, float]:
    """The specification's table, as its library computes it: one pass a score."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter
    from scipy.stats import norm
    from skimage.metrics import structural_similarity

    def rmse(where: Map) -> float:
        where = where.astype(bool)
        return float(np.sqrt(np.mean((pred[where] - target[where]) ** 2))) if where.any() else float("nan")

    found = {
        "rmse": float(np.sqrt(np.mean((pred - target) ** 2))),
        "mae": float(np.mean(np.abs(pred - target))),
        "mse": float(np.mean((pred - target) ** 2)),
        "nmse": float(np.mean((pred - target) ** 2) / np.var(target)),
        "psnr": float(10 * np.log10(RANGE**2 / np.mean((pred - target) ** 2))),
        "ssim": float(structural_similarity(pred, target, data_range=RANGE)),
        "rmse_observed": rmse(mask),
        "rmse_unobserved": rmse(1 - mask),
    }
    weights = 1 / (gaussian_filter(mask.astype(np.float64), 5) + 1e-6)
    found["rmse_coverage_weighted"] = float(np.sqrt(np.sum(weights / weights.sum() * (pred - target) ** 2)))
    distance, before = distance_transform_edt(1 - mask), 0.0
    for edge in (5, 10, 20, 50, np.inf):
        found[f"rmse_dist_{before:g}_{edge:g}"] = rmse((distance > before) & (distance <= edge))
        before = edge
    z = np.abs(pred - target) / (std + 1e-8)
    gaps = [abs(2 * norm.cdf(level) - 1 - np.mean(z <= level)) for level in np.linspace(0.3, 3, 10)]
    flat, error = std.ravel(), np.abs(pred - target).ravel()
    return found | {
        "calibration_error": float(np.mean(gaps)),
        "fraction_within_1std": float(np.mean(z <= 1)),
        "fraction_within_2std": float(np.mean(z <= 2)),
        "uncertainty_error_correlation": float(np.corrcoef(flat, error)[0, 1]),
        "coverage_ratio": float(mask.mean()),
    }
