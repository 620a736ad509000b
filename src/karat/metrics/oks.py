"""Object keypoint similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.matches import Matches, Role


@dataclass(frozen=True)
class OKS(Metric):
    """Mean object keypoint similarity of the matched pairs, and over all truths (those that are missed have 0).

    OKS = mean over the nodes visible in the truth of exp(-d^2 / (2 (2 sigma)^2 area)); the parameters are those of
    `Matches`. Thin truths, whose OKS is undefined, are left out of both.
    Ronchi & Perona 2017, arXiv:1707.05388.
    """

    of: Matches = Matches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mOKS": Score("higher", (0, 1), 1, "over the matched pairs"),
        "mOKS_all_gt": Score("higher", (0, 1), 1, "over all truths; a missed one has 0"),
    }
    aliases: ClassVar = ("mOKS.mOKS",)

    def score(self, s: Sums) -> dict[str, float]:
        pairs = s.role == Role.PAIR
        total = float(s.oks[pairs].sum())
        found, missed = int(pairs.sum()), int((s.role == Role.MISSED).sum())
        return {"mOKS": quotient(total, found), "mOKS_all_gt": quotient(total, found + missed)}
