"""Scores of samples (B, N, H, W) of one frame after the other: over all pairs of samples, pixel by pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from .draw import weight_at

Array = NDArray[Any]
Pixel = tuple[list[float], float, float]  # samples, truth, weight


def pixels(samples: Array, truth: Array, mask: Array | None, frame: int) -> list[Pixel]:
    """The pixels of a frame that count and are numbers."""
    _, count, height, width = samples.shape
    found = []
    for i in range(height):
        for j in range(width):
            own, true = [float(samples[frame, k, i, j]) for k in range(count)], float(truth[frame, i, j])
            if weight_at(mask, frame, i, j) != 0 and not any(map(math.isnan, [*own, true])):
                found.append((own, true, weight_at(mask, frame, i, j)))
    return found


def mean(values: Sequence[tuple[float, float]]) -> float:
    """Of (value, weight); NaN of nothing."""
    total = math.fsum(w for _, w in values)
    return math.fsum(v * w for v, w in values) / total if values else math.nan


def crps(samples: Sequence[float], truth: float) -> tuple[float, float]:
    """Plain, and fair to few samples."""
    n = len(samples)
    away = math.fsum(abs(x - truth) for x in samples) / n
    apart = math.fsum(abs(x - other) for x in samples for other in samples)
    return away - apart / (2 * n * n), away - apart / (2 * n * (n - 1)) if n > 1 else math.nan


def variance(samples: Sequence[float], ddof: int) -> float:
    """Summed squared deviations from the mean over N - ddof."""
    n, centre = len(samples), math.fsum(samples) / len(samples)
    return math.fsum((x - centre) ** 2 for x in samples) / (n - ddof) if n > ddof else math.nan


def forecast(of: Sequence[Pixel]) -> dict[str, float]:
    """Proper scores, and spread over skill."""
    found = {
        "crps_ensemble": mean([(crps(x, t)[0], w) for x, t, w in of]),
        "crps_fair": mean([(crps(x, t)[1], w) for x, t, w in of]),
        "ensemble_spread": math.sqrt(mean([(variance(x, 1), w) for x, _, w in of])),
        "ensemble_rmse": math.sqrt(mean([((math.fsum(x) / len(x) - t) ** 2, w) for x, t, w in of])),
    }
    n = len(of[0][0]) if of else 1
    skill = found["ensemble_rmse"]
    return found | {
        "spread_skill_ensemble": math.sqrt((n + 1) / n) * found["ensemble_spread"] / skill if skill else math.nan
    }


def ranks(of: Sequence[Pixel], bins: int) -> list[float]:
    """The share of each bin: ranks that a truth may have are as likely as each other, and spread evenly over 0..1."""
    total = math.fsum(w for _, _, w in of)
    hist = [0.0] * bins
    for samples, truth, weight in of:
        n = len(samples)
        first, last = sum(x < truth for x in samples), sum(x <= truth for x in samples)
        for rank in range(first, last + 1):
            for k in range(bins):
                low, high = (
                    max(Fraction(rank, n + 1), Fraction(k, bins)),
                    min(Fraction(rank + 1, n + 1), Fraction(k + 1, bins)),
                )
                if high > low:
                    hist[k] += weight * float((high - low) * (n + 1) / (last - first + 1))
    return [one / total if of else math.nan for one in hist]


def diversity(of: Sequence[Pixel]) -> dict[str, float]:
    """Statistics of the deviations (ddof 0) and ranges of the pixels; the order statistics do not weigh."""
    deviations = sorted(math.sqrt(variance(x, 0)) for x, _, _ in of)

    def percentile(q: float) -> float:
        place = q * (len(deviations) - 1)
        low, high = deviations[math.floor(place)], deviations[math.ceil(place)]
        return low + (high - low) * (place - math.floor(place))

    return {
        "diversity_mean_std": mean([(math.sqrt(variance(x, 0)), w) for x, _, w in of]),
        "diversity_median_std": percentile(0.5) if of else math.nan,
        "diversity_max_std": deviations[-1] if of else math.nan,
        "diversity_mean_range": mean([(max(x) - min(x), w) for x, _, w in of]),
        "diversity_std_90th_percentile": percentile(0.9) if of else math.nan,
    }
