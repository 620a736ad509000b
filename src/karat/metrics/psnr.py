"""Peak signal-to-noise ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.metric import Array, Metric, Pool, Score, Statistic, Sums, ratio
from karat.metrics.mse import SquaredError


@dataclass(frozen=True)
class PSNR(Metric):
    """Peak signal-to-noise ratio: 10 log10(L^2 / (MSE + `epsilon`)) in dB, L = `data_range`; infinite where both sides
    are equal. data_range="truth": max - min of each true map (of a field; with a constant one, infinite).

    pred, truth: frames (B, H, W, 3) or (B, H, W); integers are widened before they are subtracted and add exactly.
    Mean over frames, then videos; `pool="sample"` takes one MSE a clip.
    """

    data_range: float | Literal["truth"] = 255.0
    epsilon: float = 0.0
    of: Statistic = SquaredError()
    pool: Pool = "frame"

    scores: ClassVar = {"psnr": Score("higher", identity=np.inf, about="in dB")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data_range != "truth" and not self.data_range > 0:
            raise UsageError(f'PSNR.data_range is a positive number or "truth", not {self.data_range!r}.')
        if self.data_range == "truth" and self.pool != "frame":
            raise UsageError('PSNR.data_range="truth" is that of each frame: it needs pool="frame".')

    def score(self, s: Sums) -> dict[str, Array]:
        mse = ratio(s.squares, s.n) + self.epsilon
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.data_range == "truth":
                found = 10 * (2 * np.log10(s.range) - np.log10(mse))
                return {"psnr": np.where((s.range == 0) & ~np.isnan(mse), np.inf, found)}
            return {"psnr": 10 * (2 * np.log10(self.data_range) - np.log10(mse))}
