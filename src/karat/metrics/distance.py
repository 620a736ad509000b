"""Distances between matched keypoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums
from karat.metrics.matches import Matches, paired

PERCENTILES = (50, 75, 90, 95, 99)


@dataclass(frozen=True)
class Distance(Metric):
    """Distance in pixels between the nodes of matched instances: its mean, and the percentiles Dist@p50 to Dist@p99.

    Over all nodes that both sides of a pair show, pooled over the dataset; percentiles are linear between the two
    nearest. `EPE` of other fields is `Avg_dist`.
    """

    of: Matches = Matches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "Avg_dist": Score("lower", (0, np.inf), 0, "px, mean over the nodes of all pairs"),
        "Avg_dist_per_instance": Score("lower", (0, np.inf), 0, "px, mean over pairs of their mean over nodes"),
        **{f"Dist@p{p}": Score("lower", (0, np.inf), 0, f"px, percentile {p}") for p in PERCENTILES},
    }
    parts: ClassVar = {"node": "Avg_dist of each node"}
    aliases: ClassVar = ("EPE", "distance_metrics.avg", *(f"distance_metrics.p{p}" for p in PERCENTILES))

    @np.errstate(over="ignore", invalid="ignore")  # of distances that overflow
    def score(self, s: Sums) -> dict[str, float]:
        distance = s.distance[paired(s)]
        known = ~np.isnan(distance)
        finite = distance[known]
        percentiles = np.percentile(finite, PERCENTILES).tolist() if len(finite) else [np.nan] * len(PERCENTILES)
        return {
            "Avg_dist": mean(finite),
            "Avg_dist_per_instance": mean(_row_means(distance)),
            **{f"Dist@p{p}": value for p, value in zip(PERCENTILES, percentiles, strict=True)},
            **{
                f"Avg_dist@node:{name}": mean(column[~np.isnan(column)])
                for name, column in zip(s.labels, distance.T, strict=True)
            },
        }


def mean(values: Array) -> float:
    """The mean, NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")


def _row_means(values: Array) -> Array:
    """Means of the rows over what is known, of those rows where something is."""
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    means: Array = total[count > 0] / count[count > 0]
    return means
