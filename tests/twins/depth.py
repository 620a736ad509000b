"""Scale-invariant depth error of one frame after the other, over lists of valid pixels."""

from __future__ import annotations

import math
import statistics
from typing import Any

from numpy.typing import NDArray

from .draw import weight_at

Array = NDArray[Any]
NAMES = ("depth_si_rmse", "depth_si_rmse_rel", "depth_si_rmse_log")


def is_valid(value: float) -> bool:
    """Zero, negative, NaN and infinite depths are none."""
    return math.isfinite(value) and value > 0


def of_frame(pred: Array, truth: Array, mask: Array | None, frame: int, cap: float | None) -> dict[str, float]:
    """The three scores of one frame in one region; NaN without a valid pixel."""
    pixels = []
    for i in range(truth.shape[1]):
        for j in range(truth.shape[2]):
            p, t, w = float(pred[frame, i, j]), float(truth[frame, i, j]), weight_at(mask, frame, i, j)
            if w != 0 and is_valid(p) and is_valid(t):
                pixels.append((p, t, w))
    if not pixels:
        return dict.fromkeys(NAMES, math.nan)
    weight = math.fsum(w for _, _, w in pixels)
    median_truth = statistics.median(t for _, t, _ in pixels)
    scale = median_truth / statistics.median(p for p, _, _ in pixels)
    residuals = [(t - scale * p, w) for p, t, w in pixels]
    if cap is not None:
        residuals = [(min(max(r, -cap), cap), w) for r, w in residuals]
    rmse = math.sqrt(math.fsum(w * r * r for r, w in residuals) / weight)
    logs = [(math.log(p) - math.log(t), w) for p, t, w in pixels]
    mean = math.fsum(w * d for d, w in logs) / weight
    log = math.sqrt(math.fsum(w * (d - mean) ** 2 for d, w in logs) / weight)
    return dict(zip(NAMES, (rmse, rmse / median_truth, log), strict=True))


def of_clip(pred: Array, truth: Array, mask: Array | None, cap: float | None, zero: bool) -> dict[str, float]:
    """The mean over the frames that are defined; with `zero`, over all of them with 0 for the others."""
    frames = [of_frame(pred, truth, mask, b, cap) for b in range(len(truth))]
    out = {}
    for name in NAMES:
        values = [0.0 if zero and math.isnan(one[name]) else one[name] for one in frames]
        defined = [value for value in values if not math.isnan(value)]
        out[name] = math.fsum(defined) / len(defined) if defined else math.nan
    return out
