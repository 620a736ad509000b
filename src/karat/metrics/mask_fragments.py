"""Masks that were cut into pieces or joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Metric, Score, Sums
from karat.metrics.mask_matches import MaskMatches


@dataclass(frozen=True)
class MaskFragments(Metric):
    """How many truths several predictions share, and how many predictions spread over several truths: at least two that
    cover 10 % of the truth (`cover`) each. Matching one to one does not show either.
    """

    of: MaskMatches = MaskMatches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mask_oversegmentation": Score(
            "lower", (0, float("inf")), about="truths that two predictions or more cover", whole=True
        ),
        "mask_undersegmentation": Score(
            "lower", (0, float("inf")), about="predictions that cover two truths or more", whole=True
        ),
    }
    aliases: ClassVar = ("mask_metrics.oversegmentation", "mask_metrics.undersegmentation")
    exempt: ClassVar = {f"undefined:{name}": "a count of nothing is zero" for name in scores}

    def score(self, s: Sums) -> dict[str, int]:
        over, under = s.split & (s.truth >= 0), s.merged & (s.pred >= 0)
        return {"mask_oversegmentation": int(over.sum()), "mask_undersegmentation": int(under.sum())}
