"""Intersection over union of the borders of matched masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.mask_matches import MaskMatches, Role, boundary_iou


@dataclass(frozen=True)
class MaskBoundaryIoU(Metric):
    """Boundary IoU of matched masks: intersection over union of their borders, the pixels of a mask that are at most d
    steps away from what is not of it (outside of the picture nothing is); d is 2 % (`border`) of the picture's
    diagonal, at least 1.

    Cheng et al. 2021, arXiv:2103.16562.
    """

    of: MaskMatches = MaskMatches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {"mask_mean_boundary_iou": Score("higher", (0, 1), 1, "mean over the matched pairs")}
    aliases: ClassVar = ("mask_metrics.mean_boundary_iou",)

    def score(self, s: Sums) -> dict[str, float]:
        alike = boundary_iou(s, s.role == Role.PAIR)
        return {"mask_mean_boundary_iou": quotient(alike.sum(), len(alike))}
