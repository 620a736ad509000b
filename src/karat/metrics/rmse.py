"""Root mean squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.metric import Array, Metric, Pool, Score, Statistic, Sums, ratio
from karat.metrics.mse import SquaredError


@dataclass(frozen=True)
class RMSE(Metric):
    """Root of the mean squared error: in the unit of the input; the root is taken once a `pool`.

    pred, truth: frames (B, H, W, 3) or (B, H, W); integers are widened before they are subtracted and add exactly.
    """

    of: Statistic = SquaredError()
    pool: Pool = "sample"

    aliases: ClassVar = (
        *("rmse_observed", "rmse_unobserved", "rmse_free", "rmse_free_unobserved", "rmse_by_distance"),
        *("rmse_coverage_weighted", "Coverage_weighted_RMSE"),
    )
    scores: ClassVar = {"rmse": Score("lower", (0, np.inf), 0, "in the unit of the input")}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"rmse": np.sqrt(ratio(s.squares, s.n))}
