"""Whether the interval that is predicted holds the truth, and what its width costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.errors import UsageError
from karat.kernels.normal import quantile
from karat.kernels.pixels import difference
from karat.metric import Array, Columns, Metric, Pool, Score, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class IntervalScore(Metric):
    """The central interval of probability `level` of the normal distribution that is predicted: the share of pixels
    that it holds, its width, and the Winkler score, width + 2 / (1 - level) times how far outside of it the truth is.

    pred, truth, pred_std: fields (B, H, W). Pixels that are NaN in a field, or whose standard deviation is infinite or
    not above 0, are undefined and left out.
    Winkler 1972, doi:10.1080/01621459.1972.10481224.
    """

    level: float = 0.9
    pool: Pool = "sample"

    of_fields: ClassVar = True
    scores: ClassVar = {
        "interval_coverage": Score(None, (0, 1), 1, "the level is calibrated"),
        "interval_width": Score(None, (0, np.inf), about="in the unit of the field"),
        "winkler": Score("lower", (0, np.inf), about="in the unit of the field"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.level < 1:
            raise UsageError(f"{type(self).__name__}.level is a probability between 0 and 1, not {self.level!r}.")

    def measure(self, pred: Array, truth: Array, pred_std: Array, regions: Regions) -> Columns:
        gap, deviation = np.abs(difference(pred, truth)), pred_std.astype(np.float64)
        valid = (deviation > 0) & np.isfinite(deviation) & ~np.isnan(gap)
        known = regions if valid.all() else regions.where(valid)
        with np.errstate(invalid="ignore"):
            half = quantile((1 + self.level) / 2) * deviation
            outside = np.maximum(gap - half, 0.0)
        return {
            "held": known.sum(gap <= half),
            "half": known.sum(half),
            "outside": known.sum(outside),
            "n": known.weight(gap.shape),
        }

    def score(self, s: Sums) -> dict[str, Array]:
        width = ratio(2 * s.half, s.n)
        return {
            "interval_coverage": ratio(s.held, s.n),
            "interval_width": width,
            "winkler": width + ratio(s.outside, s.n) * (2 / (1 - self.level)),
        }
