"""Whether predicted distributions are calibrated, from where in them the truth lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.metric import Array, Metric, Pool, Score, Sums, ratio
from karat.metrics.normal_forecast import NormalForecast

UNCALIBRATED = "the truth itself with a deviation above 0 is not calibrated"


@dataclass(frozen=True)
class PIT(Metric):
    """The probability integral transform u = P(less than the truth), which is uniform if the predicted normal
    distributions are calibrated: its histogram, mean and variance. Peaks at both ends mean that they are too narrow,
    one in the middle too wide, a slope a bias.

    pred, truth, pred_std: fields (B, H, W). pit_hist is how far the histogram is from flat: half of the summed
    |share - 1 / bins|, the share of pixels in the wrong bin. pit_hist@u are the shares, and reliability@p their sums,
    the share of pixels not above the predicted quantile of p.
    Dawid 1984, doi:10.2307/2981683.
    """

    of: NormalForecast = NormalForecast()
    pool: Pool = "sample"

    scores: ClassVar = {
        "pit_hist": Score("lower", (0, 1), about="share of pixels in the wrong bin; 0 is flat"),
        "pit_mean": Score(None, (0, 1), 0.5, "1/2 is unbiased"),
        "pit_var": Score(None, (0, 0.25), 0, "1/12 is calibrated, more is too narrow, less too wide"),
    }
    parts: ClassVar = {
        "u": "share of pixels in each bin (pit_hist)",
        "p": "share of pixels not above the quantile of p (reliability)",
    }
    aliases: ClassVar = ("pit_histogram", "reliability")
    exempt: ClassVar = {"direction:pit_hist": UNCALIBRATED}

    def score(self, s: Sums) -> dict[str, Array]:
        shares, below = (ratio(counts, s.n[..., None]) for counts in (s.u_bins, s.u_bins.cumsum(axis=-1)))
        mean, bins = ratio(s.u, s.n), self.of.bins
        return {
            "pit_hist": np.abs(shares - 1 / bins).sum(axis=-1) / 2,
            "pit_mean": mean,
            "pit_var": np.maximum(ratio(s.u_squares, s.n) - mean * mean, 0.0),
            **{f"pit_hist@u:{k / bins:g}-{(k + 1) / bins:g}": shares[..., k] for k in range(bins)},
            **{f"reliability@p:{k / bins:g}": below[..., k - 1] for k in range(1, bins)},
        }


@dataclass(frozen=True)
class MACE(Metric):
    """Calibration at `levels` probabilities p from 0 to 1: the mean, and root mean squared, |share - p| of the pixels
    whose truth lies within the central interval of probability p, or (`_quantile`) not above the quantile of p; and the
    area between the interval's curve and the diagonal. Intervals forgive a bias that quantiles show.

    pred, truth, pred_std: fields (B, H, W).
    Kuleshov et al. 2018, arXiv:1807.00263; Chung et al. 2021, arXiv:2109.10254.
    """

    of: NormalForecast = NormalForecast()
    pool: Pool = "sample"

    scores: ClassVar = {
        "mace": Score("lower", (0, 1), about="by interval; 0 is calibrated"),
        "rmsce": Score("lower", (0, 1), about="by interval; 0 is calibrated"),
        "miscalibration_area": Score("lower", (0, 0.5), about="by interval; 0 is calibrated"),
        "mace_quantile": Score("lower", (0, 1), about="by quantile; 0 is calibrated"),
        "rmsce_quantile": Score("lower", (0, 1), about="by quantile; 0 is calibrated"),
    }
    exempt: ClassVar = {f"direction:{name}": UNCALIBRATED for name in scores}

    def score(self, s: Sums) -> dict[str, Array]:
        levels = np.linspace(0, 1, self.of.levels)
        middle = len(levels) - 1
        below = np.concatenate([np.zeros_like(s.u_levels[..., :1]), s.u_levels.cumsum(axis=-1)], axis=-1)
        inside = below[..., middle:] - below[..., middle::-1]
        inside[..., 0] = s.u_middle
        by_interval = ratio(inside, s.n[..., None]) - levels
        by_quantile = ratio(below[..., ::2], s.n[..., None]) - levels
        return {
            "mace": np.abs(by_interval).mean(axis=-1),
            "rmsce": np.sqrt((by_interval**2).mean(axis=-1)),
            "miscalibration_area": _area(by_interval) / middle,
            "mace_quantile": np.abs(by_quantile).mean(axis=-1),
            "rmsce_quantile": np.sqrt((by_quantile**2).mean(axis=-1)),
        }


def _area(heights: Array) -> Array:
    """Between a broken line at whole numbers and 0: trapezoids, or two triangles where it crosses."""
    left, right = heights[..., :-1], heights[..., 1:]
    both = np.abs(left) + np.abs(right)
    crosses = left * right < 0
    area: Array = np.where(crosses, ratio(left**2 + right**2, both), both).sum(axis=-1) / 2
    return area
