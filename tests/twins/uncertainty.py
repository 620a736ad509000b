"""Scores of predicted normal distributions of one frame after the other, over lists of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Any

from numpy.typing import NDArray

from .draw import weight_at

Array = NDArray[Any]
Pixel = tuple[float, float, float, float]  # prediction, truth, standard deviation, weight
NORMAL = NormalDist()


def pixels(pred: Array, truth: Array, std: Array, mask: Array | None, frame: int) -> list[Pixel]:
    """The pixels of a frame that count."""
    _, height, width = truth.shape
    places = [(i, j) for i in range(height) for j in range(width)]
    found = [
        (*(float(field[frame, i, j]) for field in (pred, truth, std)), weight_at(mask, frame, i, j)) for i, j in places
    ]
    return [one for one in found if one[3] != 0]


def defined(of: Sequence[Pixel]) -> list[Pixel]:
    """Those with a number on either side and a deviation above 0."""
    return [one for one in of if not math.isnan(one[0] - one[1]) and math.isfinite(one[2]) and one[2] > 0]


def mean(values: Sequence[tuple[float, float]]) -> float:
    """Of (value, weight); NaN of nothing."""
    total = math.fsum(w for _, w in values)
    return math.fsum(v * w for v, w in values) / total if values else math.nan


def share(of: Sequence[Pixel], holds: Any) -> float:
    """The weighted share of pixels for which something holds."""
    return mean([(float(holds(p, t, s)), w) for p, t, s, w in of])


def calibration(of: Sequence[Pixel], grid: Sequence[float], offset: float) -> dict[str, float]:
    """Shares within 1 and 2 deviations, and the mean distance from what a normal distribution has."""

    def within(z: float) -> float:
        return share(of, lambda p, t, s: ratio(abs(p - t), s + offset) <= z)

    off = [abs(within(z) - math.erf(z / math.sqrt(2))) for z in grid]
    return {
        "calibration_error": math.fsum(off) / len(off),
        "fraction_within_1std": within(1),
        "fraction_within_2std": within(2),
    }


def ratio(a: float, b: float) -> float:
    """a / b as floating point has it."""
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a * math.copysign(1, b))
    return a / b


def correlation(of: Sequence[Pixel]) -> float:
    """Pearson's of error and deviation; NaN where either is constant."""
    pairs = [(abs(p - t), s, w) for p, t, s, w in of if math.isfinite(p - t) and math.isfinite(s)]
    errors, deviations = {e for e, _, _ in pairs}, {s for _, s, _ in pairs}
    if len(errors) < 2 or len(deviations) < 2:
        return math.nan
    a, b = mean([(e, w) for e, _, w in pairs]), mean([(s, w) for _, s, w in pairs])
    both, one, other = (
        math.fsum(w * x * y for x, y, w in products)
        for products in (
            [(e - a, s - b, w) for e, s, w in pairs],
            [(e - a, e - a, w) for e, _, w in pairs],
            [(s - b, s - b, w) for _, s, w in pairs],
        )
    )
    return both / math.sqrt(one * other)


def forecast(of: Sequence[Pixel]) -> dict[str, float]:
    """CRPS, likelihood, and spread over skill."""
    crps, nll = [], []
    for p, t, s, w in of:
        z = (t - p) / s
        crps.append((s * (z * (2 * NORMAL.cdf(z) - 1) + 2 * NORMAL.pdf(z) - 1 / math.sqrt(math.pi)), w))
        nll.append((math.log(s * math.sqrt(2 * math.pi)) + z * z / 2, w))
    spread, error = mean([(s * s, w) for _, _, s, w in of]), mean([((p - t) ** 2, w) for p, t, _, w in of])
    return {
        "crps": mean(crps),
        "nll": mean(nll),
        "sharpness": math.sqrt(spread),
        "spread_skill": math.sqrt(spread / error) if error else math.nan,
    }


def transform(of: Sequence[Pixel], bins: int) -> dict[str, float]:
    """The histogram of u = P(less than the truth)."""
    u = [(NORMAL.cdf((t - p) / s), w) for p, t, s, w in of]
    total = math.fsum(w for _, w in u)
    shares = []
    for k in range(bins):
        low, high = k / bins, (k + 1) / bins
        inside = [w for one, w in u if low < one <= high or (k == 0 and one == 0)]
        shares.append(math.fsum(inside) / total if u else math.nan)
    centre = mean(u)
    return {
        "pit_hist": math.fsum(abs(one - 1 / bins) for one in shares) / 2,
        "pit_mean": centre,
        "pit_var": mean([((one - centre) ** 2, w) for one, w in u]),
        **{f"pit_hist@u:{k / bins:g}-{(k + 1) / bins:g}": one for k, one in enumerate(shares)},
        **{f"reliability@p:{k / bins:g}": math.fsum(shares[:k]) for k in range(1, bins)},
    }


def levels(of: Sequence[Pixel], count: int) -> dict[str, float]:
    """How far shares within intervals, and below quantiles, are from their probabilities."""
    by_interval, by_quantile = [], []
    for k in range(count):
        p = k / (count - 1)
        half = math.inf if p == 1 else NORMAL.inv_cdf((1 + p) / 2)
        top = math.inf if p == 1 else -math.inf if p == 0 else NORMAL.inv_cdf(p)
        by_interval.append(share(of, lambda a, b, s, half=half: abs(b - a) <= half * s) - p)
        by_quantile.append(share(of, lambda a, b, s, top=top: (b - a) / s <= top) - p)
    return {
        "mace": math.fsum(map(abs, by_interval)) / count,
        "rmsce": math.sqrt(math.fsum(d * d for d in by_interval) / count),
        "miscalibration_area": area(by_interval) / (count - 1),
        "mace_quantile": math.fsum(map(abs, by_quantile)) / count,
        "rmsce_quantile": math.sqrt(math.fsum(d * d for d in by_quantile) / count),
    }


def area(heights: Sequence[float]) -> float:
    """Between a broken line and 0."""
    total = 0.0
    for a, b in pairwise(heights):
        if a * b < 0:
            zero = a / (a - b)
            total += abs(a) * zero / 2 + abs(b) * (1 - zero) / 2
        else:
            total += abs(a + b) / 2
    return total


def interval(of: Sequence[Pixel], level: float) -> dict[str, float]:
    """Coverage and width of the central interval, and Winkler's score of it."""
    z = NORMAL.inv_cdf((1 + level) / 2)
    scores = []
    for p, t, s, w in of:
        low, high = p - z * s, p + z * s
        miss = low - t if t < low else t - high if t > high else 0.0
        scores.append((high - low + 2 / (1 - level) * miss, w))
    return {
        "interval_coverage": share(of, lambda p, t, s: abs(t - p) <= z * s),
        "interval_width": mean([(2 * z * s, w) for _, _, s, w in of]),
        "winkler": mean(scores),
    }
