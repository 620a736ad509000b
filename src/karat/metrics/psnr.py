"""Peak signal-to-noise ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.errors import UsageError
from karat.metric import Array, Metric, Pool, Score, Statistic, Sums, ratio
from karat.metrics.mse import SquaredError


@dataclass(frozen=True)
class PSNR(Metric):
    """Peak signal-to-noise ratio: 10 log10(L^2 / MSE) in dB, L = `data_range`; infinite where both sides are equal.

    pred, truth: frames (B, H, W, 3) or (B, H, W); integers are widened before they are subtracted and add exactly.
    Mean over frames, then videos; `pool="sample"` takes one MSE a clip.
    """

    data_range: float = 255.0
    of: Statistic = SquaredError()
    pool: Pool = "frame"

    scores: ClassVar = {"psnr": Score("higher", identity=np.inf, about="in dB")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.data_range > 0:
            raise UsageError(f"PSNR.data_range is a positive number, not {self.data_range!r}.")

    def score(self, s: Sums) -> dict[str, Array]:
        with np.errstate(divide="ignore"):
            return {"psnr": 10 * (2 * np.log10(self.data_range) - np.log10(ratio(s.squares, s.n)))}
