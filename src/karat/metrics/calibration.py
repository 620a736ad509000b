"""Whether errors are as large as the standard deviations that are predicted for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.normal import within
from karat.kernels.pixels import difference
from karat.metric import Array, Columns, Metric, Pool, Score, Statistic, Sums, ratio
from karat.region import Regions

GRID = (0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1, 2.4, 2.7, 3.0)


@dataclass(frozen=True)
class StandardizedError(Statistic):
    """The weight of pixels with z = |pred - truth| / (pred_std + offset) within each value of `grid`, and within 1 and
    2; that of all, and their number.

    Pixels that are NaN in a field, or whose standard deviation is infinite or not above 0, are undefined: left out and
    counted (`undefined="miss"`: nothing is left out and NaN is not within, as published code has it).
    """

    grid: tuple[float, ...] = GRID
    offset: float = 0.0
    undefined: Literal["leave", "miss"] = "leave"

    of_fields: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.grid or not min(self.grid) >= 0:
            raise UsageError(
                f"{type(self).__name__}.grid has numbers of standard deviations from 0, not {self.grid!r}."
            )

    @property
    def limits(self) -> list[float]:
        """Every z that is counted, in rising order."""
        return sorted({*self.grid, 1.0, 2.0})

    def measure(self, pred: Array, truth: Array, pred_std: Array, regions: Regions) -> Columns:
        gap, deviation = np.abs(difference(pred, truth)), pred_std.astype(np.float64)
        lost, flat = np.isnan(gap) | ~np.isfinite(deviation), deviation <= 0
        out = lost | flat
        known = regions if self.undefined == "miss" or not out.any() else regions.where(~out)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # also of pixels that are in no region
            z = gap / (deviation + self.offset)
            beyond = np.zeros(z.shape, np.uint16)
            for limit in self.limits:
                beyond += ~(z <= limit)
        return {
            "within": known.count(beyond, len(self.limits) + 1)[..., :-1].cumsum(axis=2),
            "n": known.weight(z.shape),
            "pixels": known.unweighted().weight(z.shape),
            "lost": regions.unweighted().sum(lost),
            "flat": regions.unweighted().sum(flat & ~lost),
        }


@dataclass(frozen=True)
class Calibration(Metric):
    """Calibration of a predicted standard deviation by how many errors lie within z of them: the shares within 1 and 2,
    which are 0.68 and 0.95 of a normal distribution, and the mean over a grid of z of |share - P(|Z| <= z)|.

    pred, truth, pred_std: fields (B, H, W). The error is uniform in z, as published; `mace` is uniform in probability.
    It is 0.78 where no error is within and 0.22 where all are, on the usual grid. fraction_within@z is the curve.
    """

    of: StandardizedError = StandardizedError()
    pool: Pool = "sample"

    scores: ClassVar = {
        "calibration_error": Score("lower", (0, 1), about="on a grid of z; 0 is calibrated"),
        "fraction_within_1std": Score(None, (0, 1), 1, "0.68 is calibrated, more is too cautious, less too sure"),
        "fraction_within_2std": Score(None, (0, 1), 1, "0.95 is calibrated, more is too cautious, less too sure"),
    }
    parts: ClassVar = {"z": "share of pixels within so many standard deviations (fraction_within)"}
    aliases: ClassVar = ("fraction_within", "uncertainty_calibration")
    exempt: ClassVar = {
        "direction:calibration_error": "the truth itself with a deviation above 0 is not calibrated",
    }

    def score(self, s: Sums) -> dict[str, Array]:
        share = dict(zip(self.of.limits, np.moveaxis(ratio(s.within, s.n[..., None]), -1, 0), strict=True))
        off = [np.abs(share[z] - within(z)) for z in self.of.grid]
        return {
            "calibration_error": np.asarray(sum(off) / len(off)),
            "fraction_within_1std": share[1.0],
            "fraction_within_2std": share[2.0],
            **{f"fraction_within@z:{z}": share[z] for z in self.of.grid},
        }


@dataclass(frozen=True)
class DeviationCounts(Metric):
    """How many pixels of a region are judged by their standard deviation, whatever they weigh, and how many have none
    and are left out.

    pred, truth, pred_std: fields (B, H, W).
    """

    of: StandardizedError = StandardizedError()
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "n_std_pixels": Score(None, (0, np.inf), about="pixels with a standard deviation", whole=True),
        "n_std_nan_pixels": Score(None, (0, np.inf), 0, "pixels that are NaN in a field", whole=True),
        "n_std_zero_pixels": Score(None, (0, np.inf), 0, "pixels with a deviation of 0 or less", whole=True),
    }
    exempt: ClassVar = {
        **{f"undefined:{name}": "a count of nothing is zero" for name in scores},
        **{f"empty_region:{name}": "a count of nothing is zero" for name in scores},
    }

    def score(self, s: Sums) -> dict[str, Array]:
        return {"n_std_pixels": s.pixels, "n_std_nan_pixels": s.lost, "n_std_zero_pixels": s.flat}
