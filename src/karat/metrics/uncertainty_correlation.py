"""Whether errors are large where uncertainty is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.kernels.pixels import difference
from karat.metric import Array, Columns, Metric, Score, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class UncertaintyCorrelation(Metric):
    """Pearson correlation of the predicted standard deviation and |pred - truth| over the pixels of each region: about
    means of that region, undefined where either is constant. It says nothing of their sizes.

    pred, truth, pred_std: fields (B, H, W). Pixels that are not finite are left out, and so are those whose standard
    deviation is not above 0 (`flat="keep"`: these are not, as published code has it).
    """

    flat: Literal["leave", "keep"] = "leave"
    pool: Literal["frame"] = "frame"

    of_fields: ClassVar = True
    scores: ClassVar = {
        "uncertainty_correlation": Score("higher", (-1, 1), about="above 0.5 the deviation tells where errors are"),
    }
    aliases: ClassVar = ("uncertainty_error_correlation",)
    exempt: ClassVar = {"direction": "errors that are larger everywhere are not told any worse"}

    def measure(self, pred: Array, truth: Array, pred_std: Array, regions: Regions) -> Columns:
        error, deviation = np.abs(difference(pred, truth)).astype(np.float64), pred_std.astype(np.float64)
        valid = np.isfinite(error) & np.isfinite(deviation)
        if self.flat == "leave":
            valid &= deviation > 0
        known = regions if valid.all() else regions.where(valid)
        products = known.scatter(error, deviation)
        return {"error": products[..., 0, 0], "deviation": products[..., 1, 1], "both": products[..., 0, 1]}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"uncertainty_correlation": ratio(s.both, np.sqrt(s.error) * np.sqrt(s.deviation)).clip(-1, 1)}
