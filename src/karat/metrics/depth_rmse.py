"""Error of depth up to scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Columns, Metric, Score, Sums, ratio
from karat.region import ALL, Regions
from karat.rows import Rows


@dataclass(frozen=True)
class DepthRMSE(Metric):
    """Scale-invariant error of depth: RMSE = sqrt(mean (truth - r pred)^2) with r = median(truth) / median(pred).

    pred_depth, truth_depth: (B, H, W), in any unit; the error is in the unit of the truth. Pixels that are zero,
    negative, NaN or infinite on either side are invalid. The scale is taken per frame and per region, residuals may be
    clipped to +-`cap`. `depth_si_rmse_rel` is divided by the median of the truth; `depth_si_rmse_log` is the scale-free
    sqrt(mean d^2 - (mean d)^2), d = log pred - log truth. A frame without a valid pixel is undefined
    (`invalid_frame="zero"` scores it 0, as published code does).
    Eigen, Puhrsch & Fergus 2014, arXiv:1406.2283; Ranftl et al. 2022, doi:10.1109/TPAMI.2020.3019967.
    """

    cap: float | None = None
    invalid_frame: Literal["undefined", "zero"] = "undefined"
    pool: Literal["frame"] = "frame"

    scores: ClassVar = {
        "depth_si_rmse": Score("lower", (0, np.inf), 0, "in the unit of the true depth"),
        "depth_si_rmse_rel": Score("lower", (0, np.inf), 0, "divided by the median true depth"),
        "depth_si_rmse_log": Score("lower", (0, np.inf), 0, "scale-free, of log depth"),
    }
    aliases: ClassVar = ("si_rmse",)

    def measure(self, pred_depth: Array, truth_depth: Array, regions: Regions) -> Columns:
        p, t = pred_depth.astype(np.float64), truth_depth.astype(np.float64)
        finite = np.isfinite(p) & np.isfinite(t)
        valid = finite & (p > 0) & (t > 0)
        known = regions.where(valid)
        p, t = np.where(valid, p, 1.0), np.where(valid, t, 1.0)  # never read; keeps inf - inf out of what follows
        logs = np.log(p) - np.log(t)
        centre, mean_log = known.quantile(t, 0.5), known.mean(logs)
        squares, log_squares = np.zeros((2, *centre.shape))
        with np.errstate(invalid="ignore", over="ignore"):  # also of pixels that are in no region
            scale = centre / known.quantile(p, 0.5)
        for r, one in known.each():
            with np.errstate(invalid="ignore", over="ignore"):
                residual = t - self._by_frame(scale[:, r]) * p
                if self.cap is not None:
                    residual = residual.clip(-self.cap, self.cap)
                squares[:, r] = one.sum(residual**2)[:, 0]
            log_squares[:, r] = one.sum((logs - self._by_frame(mean_log[:, r])) ** 2)[:, 0]
        return {
            "squares": squares,
            "log_squares": log_squares,
            "truth_median": centre,
            "n": known.weight(p.shape),
            "infinite": regions.sum(~finite),
        }

    def score(self, s: Sums) -> dict[str, Array]:
        rmse = np.sqrt(ratio(s.squares, s.n))
        scored = {
            "depth_si_rmse": rmse,
            "depth_si_rmse_rel": ratio(rmse, s.truth_median),
            "depth_si_rmse_log": np.sqrt(ratio(s.log_squares, s.n)),
        }
        if self.invalid_frame == "zero":
            return {name: np.where(s.n > 0, value, 0.0) for name, value in scored.items()}
        return scored

    def remarks(self, rows: Rows) -> Iterable[str]:
        """Depth that is no number, which zero need not say."""
        lost = rows.columns["infinite"][rows.region == rows.regions.index(ALL)]
        if lost.any():
            yield f"Depth of {lost.sum()} pixels in {np.count_nonzero(lost)} frames is NaN or infinite: left out."

    @staticmethod
    def _by_frame(values: Array) -> Array:
        return values[:, None, None]
