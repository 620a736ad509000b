"""How much of a map was observed, and where the weight of what was not lies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.areas import Uncovered, Where
from karat.metric import Array, Columns, Metric, Pool, Score, Statistic, Sums, ratio
from karat.region import Regions
from karat.rows import Rows

_OBSERVED = Where("observed", "observed", "unobserved")


@dataclass(frozen=True)
class Observations(Statistic):
    """Observed pixels (B, H, W), and the weights that `rmse@uncovered` is weighed with, by region and altogether: what
    the regions `observed` and `uncovered` say where there are such, else what is not 0, and 1 / (coverage + 1e-6),
    coverage being the mask under a Gaussian of `sigma` px.
    """

    sigma: float = 5.0

    of_fields: ClassVar = True

    def measure(self, observed: Array, regions: Regions) -> Columns:
        maps = regions.maps
        here = np.asarray(maps.get("observed", observed != 0))
        made = maps if "uncovered" in maps else Uncovered(_OBSERVED, self.sigma).maps({"observed": here})
        weight = regions.unweighted().sum(np.asarray(made["uncovered"]))
        return {
            "observed": regions.sum(here),
            "amount": regions.sum(observed.astype(np.float64)),
            "n": regions.weight(observed.shape),
            "weight": weight,
            "total": np.repeat(weight[:, :1], len(regions), axis=1),
        }


@dataclass(frozen=True)
class ObservedShare(Metric):
    """The share of pixels that were observed, and the share of the weight of coverage-weighted errors that lies in a
    region: with few observations nearly all of it lies beyond the reach of the Gaussian.

    observed: masks (B, H, W). amount="mean": the mean of the mask as it is stored, as published code has it.
    """

    of: Observations = Observations()
    amount: Literal["share", "mean"] = "share"
    pool: Pool = "sample"

    scores: ClassVar = {
        "coverage_ratio": Score(None, (0, np.inf), about="share of pixels that were observed"),
        "weight_share": Score(None, (0, 1), about="share of the weight of rmse@uncovered"),
    }

    def remarks(self, rows: Rows) -> Iterable[str]:
        """The maps of which nothing was observed."""
        nothing = int((rows.columns["observed"][rows.region == 0] == 0).sum())
        if nothing:
            yield f"Nothing was observed in {nothing} map{'s' * (nothing > 1)}: there is no distance from it."

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "coverage_ratio": ratio(s.observed if self.amount == "share" else s.amount, s.n),
            "weight_share": np.where(s.n > 0, ratio(s.weight, s.total), np.nan),
        }
