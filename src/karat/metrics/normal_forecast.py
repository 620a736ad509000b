"""Proper scores of a normal distribution that is predicted at every pixel, and its spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.errors import UsageError
from karat.kernels.normal import crps, negative_log_likelihood, probability
from karat.kernels.pixels import difference
from karat.metric import Array, Columns, Metric, Pool, Score, Statistic, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class NormalForecast(Statistic):
    """What normal distributions of mean pred and standard deviation pred_std say of the truth: summed CRPS, negative
    log likelihoods, variances, squared errors, and u = P(less than the truth) with its squares. How many u lie in each
    of `bins` equal parts of 0..1, and in each of the 2 (`levels` - 1) parts that the ends of the central intervals of
    `levels` probabilities cut it into; of these, how many truths are the mean itself.

    Pixels that are NaN in a field, or whose standard deviation is infinite or not above 0, are undefined and left out.
    """

    bins: int = 10
    levels: int = 100

    of_fields: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.bins >= 2 and self.levels >= 2):
            raise UsageError(f"bins and levels are 2 or more, not bins={self.bins}, levels={self.levels}.")

    def measure(self, pred: Array, truth: Array, pred_std: Array, regions: Regions) -> Columns:
        gap, deviation = difference(truth, pred).astype(np.float64), pred_std.astype(np.float64)
        valid, known = (deviation > 0) & np.isfinite(deviation) & ~np.isnan(gap), regions
        if not valid.all():
            known = regions.where(valid)
            gap, deviation = np.where(valid, gap, 0.0), np.where(valid, deviation, 1.0)  # never read
        with np.errstate(over="ignore", invalid="ignore"):
            z = gap / deviation
            u = probability(z)
            return {
                "crps": known.sum(crps(gap, deviation, z, u)),
                "nll": known.sum(negative_log_likelihood(z, deviation)),
                "variance": known.sum(deviation * deviation),
                "squares": known.sum(gap * gap),
                "u": known.sum(u),
                "u_squares": known.sum(u * u),
                "u_bins": known.count(_part(u, self.bins), self.bins),
                "u_levels": known.count(_part(u, 2 * (self.levels - 1)), 2 * (self.levels - 1)),
                "u_middle": known.sum(z == 0),
                "n": known.weight(z.shape),
            }


def _part(u: Array, parts: int) -> Array:
    """Which of equal parts of 0..1 it is in; a part holds its upper end, the first one 0 as well."""
    place: Array = np.maximum(np.ceil(u * parts) - 1, 0).astype(np.intp)
    return place


@dataclass(frozen=True)
class CRPS(Metric):
    """Continuous ranked probability score of the normal distribution that is predicted:
    std (z (2 P(z) - 1) + 2 p(z) - 1 / sqrt(pi)), z = (truth - pred) / std. The absolute error where std is 0.

    pred, truth, pred_std: fields (B, H, W).
    Gneiting & Raftery 2007, doi:10.1198/016214506000001437.
    """

    of: NormalForecast = NormalForecast()
    pool: Pool = "sample"

    scores: ClassVar = {"crps": Score("lower", (0, np.inf), about="in the unit of the field")}
    aliases: ClassVar = ("crps_gaussian",)

    def score(self, s: Sums) -> dict[str, Array]:
        return {"crps": ratio(s.crps, s.n)}


@dataclass(frozen=True)
class NLL(Metric):
    """Negative log likelihood of the truth under the normal distribution that is predicted:
    log(std sqrt(2 pi)) + z^2 / 2. An error that the deviation does not foresee counts by its square.

    pred, truth, pred_std: fields (B, H, W).
    """

    of: NormalForecast = NormalForecast()
    pool: Pool = "sample"

    scores: ClassVar = {"nll": Score("lower", about="mean over pixels; falls by log 2 in a unit twice as large")}
    aliases: ClassVar = ("negative_log_likelihood",)

    def score(self, s: Sums) -> dict[str, Array]:
        return {"nll": ratio(s.nll, s.n)}


@dataclass(frozen=True)
class SpreadSkill(Metric):
    """How wide the predicted distributions are, sqrt(mean std^2), alone and over how wrong they are, the RMSE of their
    means: below 1 they are too sure, above 1 too cautious.

    pred, truth, pred_std: fields (B, H, W).
    Fortin et al. 2014, doi:10.1175/JHM-D-14-0008.1.
    """

    of: NormalForecast = NormalForecast()
    pool: Pool = "sample"

    scores: ClassVar = {
        "sharpness": Score(None, (0, np.inf), about="in the unit of the field; smaller is better if calibrated"),
        "spread_skill": Score(None, (0, np.inf), about="1 is calibrated"),
    }

    def score(self, s: Sums) -> dict[str, Array]:
        return {"sharpness": np.sqrt(ratio(s.variance, s.n)), "spread_skill": np.sqrt(ratio(s.variance, s.squares))}
