"""Panoptic quality of masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.mask_matches import MaskMatches, Role, iou


@dataclass(frozen=True)
class MaskPQ(Metric):
    """Panoptic quality: PQ = SQ RQ, the total IoU of the matched pairs / (TP + FP / 2 + FN / 2), of segmentation
    quality SQ, their mean IoU, and recognition quality RQ = TP / (TP + FP / 2 + FN / 2). SQ of no pair is undefined.

    Kirillov et al. 2019, arXiv:1801.00868.
    """

    of: MaskMatches = MaskMatches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mask_pq": Score("higher", (0, 1), 1, "panoptic quality"),
        "mask_sq": Score("higher", (0, 1), 1, "segmentation quality"),
        "mask_rq": Score("higher", (0, 1), 1, "recognition quality"),
    }
    aliases: ClassVar = ("PanopticQuality", "PQ", "mask_metrics.pq", "mask_metrics.sq", "mask_metrics.rq")

    def score(self, s: Sums) -> dict[str, float]:
        alike = iou(s, s.role == Role.PAIR)
        total = len(alike) + 0.5 * ((s.role == Role.FALSE).sum() + (s.role == Role.MISSED).sum())
        return {
            "mask_pq": quotient(alike.sum(), total),
            "mask_sq": quotient(alike.sum(), len(alike)),
            "mask_rq": quotient(len(alike), total),
        }
