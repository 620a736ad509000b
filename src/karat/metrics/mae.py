"""Mean absolute error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.kernels.pixels import absolute_error, channels
from karat.metric import Array, Columns, Metric, Pool, Score, Statistic, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class AbsoluteError(Statistic):
    """Absolute differences summed over pixels and channels, and how many there are."""

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        return {
            "distance": regions.sum(absolute_error(pred, truth)),
            "n": regions.weight(truth.shape[:3]) * channels(truth),
        }


@dataclass(frozen=True)
class MAE(Metric):
    """Mean absolute error over pixels and channels: in the unit of the input.

    pred, truth: frames (B, H, W, 3) or (B, H, W); integers are widened before they are subtracted and add exactly.
    """

    of: Statistic = AbsoluteError()
    pool: Pool = "sample"

    scores: ClassVar = {"mae": Score("lower", (0, np.inf), 0, "in the unit of the input")}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"mae": ratio(s.distance, s.n)}
