"""Proper scores of samples that are predicted of a map, and their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.kernels.ensemble import SampleDeviation, SampleMean, crps
from karat.metric import Array, Columns, Derived, Metric, Pool, Score, Statistic, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class EnsembleForecast(Statistic):
    """What samples of maps say of the truth: summed CRPS over all pairs and over those of different samples, variances
    (ddof 1) and these times (N + 1) / N, squared errors of the samples' mean; the weight of the pixels, their number,
    and that of their samples.

    Pixels that are NaN in any sample or in the truth are left out and counted.
    """

    of_fields: ClassVar = True

    def inputs(self) -> dict[str, Derived]:
        return {
            "mean": Derived("pred_samples", SampleMean()),
            "deviation": Derived("pred_samples", SampleDeviation(ddof=1)),
        }

    def measure(self, pred_samples: Array, truth: Array, mean: Array, deviation: Array, regions: Regions) -> Columns:
        lost = np.isnan(mean) | np.isnan(truth)
        known = regions.where(~lost) if lost.any() else regions
        count = pred_samples.shape[1]
        plain, fair = crps(pred_samples, truth)
        with np.errstate(invalid="ignore", over="ignore"):
            gap, variance = mean - truth, deviation * deviation
            return {
                "crps": known.sum(plain),
                "crps_fair": known.sum(fair),
                "variance": known.sum(variance),
                "inflated": known.sum(variance * ((count + 1) / count)),
                "squares": known.sum(gap * gap),
                "n": known.weight(truth.shape),
                "pixels": known.unweighted().weight(truth.shape),
                "members": known.unweighted().weight(truth.shape) * count,
                "lost": regions.unweighted().sum(lost),
            }


@dataclass(frozen=True)
class EnsembleCRPS(Metric):
    """Continuous ranked probability score of samples x of a map: mean |x_i - y| less half the mean |x_i - x_j| over all
    N^2 pairs, which few samples make too large, and fair: over the N (N - 1) pairs of different ones, what samples
    without end would have on average (undefined of one).

    pred_samples: (B, N, H, W); truth: fields (B, H, W).
    Hersbach 2000, doi:10.1175/1520-0434(2000)015<0559:DOTCRP>2.0.CO;2; Ferro 2014, doi:10.1002/qj.2270.
    """

    of: EnsembleForecast = EnsembleForecast()
    pool: Pool = "sample"

    scores: ClassVar = {
        "crps_ensemble": Score("lower", (0, np.inf), 0, "in the unit of the field"),
        "crps_fair": Score("lower", (0, np.inf), 0, "in the unit of the field"),
    }

    def score(self, s: Sums) -> dict[str, Array]:
        return {"crps_ensemble": ratio(s.crps, s.n), "crps_fair": ratio(s.crps_fair, s.n)}


@dataclass(frozen=True)
class EnsembleSpread(Metric):
    """How far samples are from their mean, sqrt(mean variance) with ddof 1; how wrong that mean is; and the spread over
    the error, times sqrt((N + 1) / N) for the error of a mean of N: below 1 they are too sure, above 1 too cautious.

    pred_samples: (B, N, H, W); truth: fields (B, H, W). Undefined of one sample.
    Fortin et al. 2014, doi:10.1175/JHM-D-14-0008.1.
    """

    of: EnsembleForecast = EnsembleForecast()
    pool: Pool = "sample"

    scores: ClassVar = {
        "ensemble_spread": Score(None, (0, np.inf), about="in the unit of the field; smaller is better if calibrated"),
        "ensemble_rmse": Score("lower", (0, np.inf), 0, "of the samples' mean, in the unit of the field"),
        "spread_skill_ensemble": Score(None, (0, np.inf), about="1 is calibrated"),
    }

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "ensemble_spread": np.sqrt(ratio(s.variance, s.n)),
            "ensemble_rmse": np.sqrt(ratio(s.squares, s.n)),
            "spread_skill_ensemble": np.sqrt(ratio(s.inflated, s.squares)),
        }


@dataclass(frozen=True)
class EnsembleCounts(Metric):
    """How many pixels of a region are judged by their samples, whatever they weigh, by how many of these, and how many
    are NaN and left out.

    pred_samples: (B, N, H, W); truth: fields (B, H, W).
    """

    of: EnsembleForecast = EnsembleForecast()
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "n_sampled_pixels": Score(None, (0, np.inf), about="pixels with samples", whole=True),
        "n_members": Score(None, (0, np.inf), about="samples of a map, on average", whole=True),
        "n_sampled_nan_pixels": Score(None, (0, np.inf), 0, "pixels that are NaN in a sample or the truth", whole=True),
    }
    exempt: ClassVar = {
        f"{law}:{name}": "a count of nothing is zero"
        for law in ("undefined", "empty_region")
        for name in ("n_sampled_pixels", "n_sampled_nan_pixels")
    }

    def score(self, s: Sums) -> dict[str, Array]:
        return {"n_sampled_pixels": s.pixels, "n_members": ratio(s.members, s.pixels), "n_sampled_nan_pixels": s.lost}
