"""Errors of keypoints relative to the size of what they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.keypoints import counts_within
from karat.metric import Metric, Score, Sums, quotient, ratio
from karat.metrics.distance import mean
from karat.metrics.matches import Matches, paired
from karat.metrics.pck import some_thresholds


@dataclass(frozen=True)
class NormalizedError(Metric):
    """Distances between the nodes of matched pairs, divided by the size of the true instance (`matches.length`).

    size: the longer side of the box, the torso (left_shoulder to right_hip), or the distance of two nodes by name, such
    as the head for PCKh. NME is the mean over the nodes that both sides show. NPCK@t is the share of the nodes visible
    in the truth that lie within t sizes, a node that is not predicted being wrong. Nodes of an instance whose size is
    not visible, or 0, are left out.
    Andriluka et al. 2014 (PCKh), doi:10.1109/CVPR.2014.471.
    """

    of: Matches = Matches()
    thresholds: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5)
    inclusive: bool = True
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "NME": Score("lower", (0, np.inf), 0, "mean distance in sizes of the instance"),
        "mNPCK": Score("higher", (0, 1), 1, "mean of NPCK over the thresholds"),
    }
    parts: ClassVar = {"size": "NPCK at each threshold, in sizes", "node": "NME of each node"}
    aliases: ClassVar = ("PCKh", "normalized_pck")

    def __post_init__(self) -> None:
        super().__post_init__()
        some_thresholds(self)

    def score(self, s: Sums) -> dict[str, float]:
        sized = paired(s) & (s.length > 0)
        error = s.distance[sized] / s.length[sized, None]
        known = ~np.isnan(error)
        right = counts_within(error, sorted(self.thresholds), self.inclusive).sum(axis=0)
        pck = ratio(right, s.truth_seen[sized].sum())
        return {
            "NME": mean(error[known]),
            "mNPCK": mean(pck),
            **{f"NPCK@size:{at:g}": value for at, value in zip(sorted(self.thresholds), pck.tolist(), strict=True)},
            **{f"NME@node:{name}": mean(e[k]) for name, e, k in zip(s.labels, error.T, known.T, strict=True)},
        }


@dataclass(frozen=True)
class PckAUC(Metric):
    """Area under the curve of PCK from 0 to `limit` px, divided by `limit`: the mean of max(0, 1 - distance / limit)
    over the nodes of matched pairs that are visible in the truth; one that is not predicted has 0.

    The area is exact: nothing is sampled. `steps` reads the curve at i / steps of the limit, i = 0 to steps - 1, with
    distances strictly below, as toolboxes of human pose do.
    """

    of: Matches = Matches()
    limit: float = 30.0
    steps: int | None = None
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {"PCK_AUC": Score("higher", (0, 1), 1, "exact area under PCK up to the limit")}
    aliases: ClassVar = ("AUC",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit <= 0 or (self.steps is not None and self.steps < 1):
            raise UsageError(
                f"PckAUC needs a limit above 0 and at least one step, not {self.limit:g} and {self.steps}."
            )

    def score(self, s: Sums) -> dict[str, float]:
        pairs = paired(s)
        distance, possible = s.distance[pairs], int(s.truth_seen[pairs].sum())
        if self.steps is None:
            known = distance[~np.isnan(distance)]
            return {"PCK_AUC": quotient((1 - known / self.limit).clip(min=0).sum(), possible)}
        limits = (np.arange(self.steps) / self.steps * self.limit).tolist()
        right = counts_within(distance, limits, inclusive=False).sum()
        return {"PCK_AUC": quotient(right, possible * self.steps)}
