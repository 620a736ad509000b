"""Errors of fields, and what several metrics score of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.pixels import difference, lowest, ranges
from karat.metric import Array, Columns, Metric, Pool, Score, Statistic, Sums, ratio
from karat.region import Regions
from karat.rows import Rows, reduce

FLOOR = 0.9  # the share of a region's truth that may be at the floor without a word


@dataclass(frozen=True)
class FieldError(Statistic):
    """Of fields (B, H, W) the summed squares and sizes of pred - truth, of the truth its energy and how it deviates
    from its mean in each region, the weight of the pixels and their number, how many true ones are the lowest of their
    field, and the range of each whole true field.

    Pixels that are NaN on either side are left out and counted (`missing="spread"`: they make the sums NaN, as
    published code does). Integers are widened (`arithmetic="given"`: they wrap, as published code lets them).
    """

    missing: Literal["leave", "spread"] = "leave"
    arithmetic: Literal["wide", "given"] = "wide"

    of_fields: ClassVar = True

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        gap = difference(pred, truth) if self.arithmetic == "wide" else pred - truth
        lost = np.isnan(gap)
        known = regions if self.missing == "spread" or not lost.any() else regions.where(~lost)
        true = truth.astype(np.float64)
        return {
            "squares": known.sum(gap * gap),
            "distance": known.sum(np.abs(gap)),
            "energy": known.sum(true * true),
            "deviation": known.scatter(true)[..., 0, 0],
            "n": known.weight(truth.shape),
            "range": np.repeat(ranges(true)[:, None], len(regions), axis=1),
            "pixels": known.unweighted().weight(truth.shape),
            "floor": known.unweighted().sum(true == lowest(true)[:, None, None]),
            "lost": regions.unweighted().sum(lost),
        }


@dataclass(frozen=True)
class NMSE(Metric):
    """Normalised mean squared error: the sum of squared errors over that of the truth's deviations from its mean
    (`normalizer="variance"`, MSE / var(truth): the same on every linear scale), or over that of the truth's own squares
    (`"energy"`, which depends on where the scale's 0 is).

    pred, truth: fields (B, H, W). One ratio a `pool`: "sample" is one for every map; "dataset" pools the sums.
    """

    of: FieldError = FieldError()
    normalizer: Literal["variance", "energy"] = "variance"
    pool: Pool = "sample"

    scores: ClassVar = {"nmse": Score("lower", (0, np.inf), 0, "by variance, or by energy")}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"nmse": ratio(s.squares, s.deviation if self.normalizer == "variance" else s.energy)}


@dataclass(frozen=True)
class NormalizedFieldError(Metric):
    """RMSE, MAE and MSE on the scale [-1, 1] that models are trained on; `span` is what its width of 2 stands for."""

    of: FieldError = FieldError()
    span: float = 139.0
    pool: Pool = "sample"

    scores: ClassVar = {
        "rmse@normalized": Score("lower", (0, np.inf), 0, "on a scale from -1 to 1"),
        "mae@normalized": Score("lower", (0, np.inf), 0, "on a scale from -1 to 1"),
        "mse@normalized": Score("lower", (0, np.inf), 0, "on a scale from -1 to 1"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.span > 0:
            raise UsageError(f"NormalizedFieldError.span is a positive number, not {self.span!r}.")

    def score(self, s: Sums) -> dict[str, Array]:
        one = self.span / 2
        mse = ratio(s.squares, s.n) / one**2
        return {
            "rmse@normalized": np.sqrt(mse),
            "mae@normalized": ratio(s.distance, s.n) / one,
            "mse@normalized": mse,
        }


@dataclass(frozen=True)
class PixelCounts(Metric):
    """How many pixels of a region are compared, whatever they weigh, and how many are NaN on either side: left out."""

    of: FieldError = FieldError()
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "n_pixels": Score(None, (0, np.inf), about="pixels that are compared", whole=True),
        "n_nan_pixels": Score(None, (0, np.inf), 0, "pixels that are NaN: left out", whole=True),
    }
    exempt: ClassVar = {
        **{f"undefined:{name}": "a count of nothing is zero" for name in scores},
        **{f"empty_region:{name}": "a count of nothing is zero" for name in scores},
    }

    def remarks(self, rows: Rows) -> Iterable[str]:
        """The regions where the truth is hardly more than its floor, as it is where a building map is inverted."""
        count = len(rows.regions)
        floor, pixels = (reduce(rows.columns[name], rows.region, count) for name in ("floor", "pixels"))
        share = ratio(floor, pixels)
        for region, own in zip(rows.regions[1:], share[1:].tolist(), strict=True):
            if own > FLOOR > share[0]:
                said = f"In {region} {own:.0%} of the truth is its map's lowest value, of everything {share[0]:.0%}"
                yield f"{said}: is a mask inverted?"

    def score(self, s: Sums) -> dict[str, Array]:
        return {"n_pixels": s.pixels, "n_nan_pixels": s.lost}
