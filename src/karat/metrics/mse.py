"""Mean squared error, and the statistic that its relatives score too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.kernels.pixels import channels, ranges, squared_error
from karat.metric import Array, Columns, Metric, Pool, Score, Statistic, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class SquaredError(Statistic):
    """Squared differences summed over pixels and channels, how many there are, and the range of each true frame."""

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        return {
            "squares": regions.sum(squared_error(pred, truth)),
            "n": regions.weight(truth.shape[:3]) * channels(truth),
            "range": np.repeat(ranges(truth)[:, None], len(regions), axis=1),
        }


@dataclass(frozen=True)
class MSE(Metric):
    """Mean squared error over pixels and channels: in squared units of the input.

    pred, truth: frames (B, H, W, 3) or (B, H, W); integers are widened before they are subtracted and add exactly.
    """

    of: Statistic = SquaredError()
    pool: Pool = "sample"

    scores: ClassVar = {"mse": Score("lower", (0, np.inf), 0, "in squared units of the input")}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"mse": ratio(s.squares, s.n)}
