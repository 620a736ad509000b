"""Agreement of the centre lines of matched masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.mask_matches import MaskMatches, Role, centre_dice


@dataclass(frozen=True)
class MaskClDice(Metric):
    """clDice of matched masks: 2 P S / (P + S), P the share of the predicted centre line that lies in the truth, S of
    the true one in the prediction. Centre lines are skeletons one pixel wide, so thin shapes count by their length.

    Shit et al. 2021, arXiv:2003.07311; skeletons: Zhang & Suen 1984, doi:10.1145/357994.358023.
    """

    of: MaskMatches = MaskMatches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {"mask_mean_cldice": Score("higher", (0, 1), 1, "mean over the matched pairs")}
    aliases: ClassVar = ("mask_metrics.mean_cldice",)

    def score(self, s: Sums) -> dict[str, float]:
        alike = centre_dice(s, s.role == Role.PAIR)
        return {"mask_mean_cldice": quotient(alike.sum(), len(alike))}
