"""How different the samples of a map are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.kernels.ensemble import SampleDeviation
from karat.metric import Array, Columns, Derived, Metric, Score, Sums
from karat.region import Regions

UNIT = "in the unit of the field"


@dataclass(frozen=True)
class SampleDiversity(Metric):
    """Over the pixels of a region: mean, median, maximum and 90th percentile of the standard deviation (ddof 0) of
    their samples, and the mean of the largest sample less the smallest.

    pred_samples: (B, N, H, W). Pixels that are NaN in any sample are left out; percentiles do not weigh pixels.
    """

    pool: Literal["frame"] = "frame"

    of_fields: ClassVar = True
    scores: ClassVar = {
        "diversity_mean_std": Score(None, (0, np.inf), 0, UNIT),
        "diversity_median_std": Score(None, (0, np.inf), 0, UNIT),
        "diversity_max_std": Score(None, (0, np.inf), 0, UNIT),
        "diversity_mean_range": Score(None, (0, np.inf), 0, UNIT),
        "diversity_std_90th_percentile": Score(None, (0, np.inf), 0, UNIT),
    }

    def inputs(self) -> dict[str, Derived]:
        return {"deviation": Derived("pred_samples", SampleDeviation(ddof=0))}

    def measure(self, pred_samples: Array, deviation: Array, regions: Regions) -> Columns:
        lost = np.isnan(deviation)
        known = regions.where(~lost) if lost.any() else regions
        with np.errstate(invalid="ignore", over="ignore"):
            width = pred_samples.max(axis=1).astype(np.float64) - pred_samples.min(axis=1)
        order = np.array([[_order(part) for part in frame] for frame in known.select(deviation)])
        median, ninth, top = np.moveaxis(order.reshape(*lost.shape[:1], len(regions), 3), -1, 0)
        return {
            "diversity_mean_std": known.mean(deviation),
            "diversity_median_std": median,
            "diversity_max_std": top,
            "diversity_mean_range": known.mean(width),
            "diversity_std_90th_percentile": ninth,
        }

    def score(self, s: Sums) -> dict[str, Array]:
        return {name: getattr(s, name) for name in self.scores}


def _order(values: Array) -> tuple[float, float, float]:
    """Median, 90th percentile and maximum."""
    if not values.size:
        return np.nan, np.nan, np.nan
    median, ninth = np.quantile(values, (0.5, 0.9))
    return float(median), float(ninth), float(values.max())
