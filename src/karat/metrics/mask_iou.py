"""Intersection over union of matched masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.mask_matches import MaskMatches, Role, iou, true_areas
from karat.metrics.mask_sizes import PARTS, by_size

PERCENTILES = (25, 50, 75)


@dataclass(frozen=True)
class MaskIoU(Metric):
    """Intersection over union of matched masks, |P & T| / |P | T|: mean, extremes and percentiles (linear) over the
    pairs; mask_mean_iou_all_gt is the mean over all truths, where one that was missed is 0.

    Jaccard 1912, doi:10.1111/j.1469-8137.1912.tb05611.x.
    """

    of: MaskMatches = MaskMatches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mask_mean_iou": Score("higher", (0, 1), 1, "mean over the matched pairs"),
        "mask_mean_iou_all_gt": Score("higher", (0, 1), 1, "mean over all truths, 0 for those that were missed"),
        "mask_iou_min": Score("higher", (0, 1), 1, "the least of the matched pairs"),
        **{f"mask_iou_p{p}": Score("higher", (0, 1), 1, f"{p}th percentile of the pairs") for p in PERCENTILES},
        "mask_iou_max": Score("higher", (0, 1), 1, "the largest of the matched pairs"),
    }
    parts: ClassVar = PARTS
    aliases: ClassVar = ("mask_metrics", "mask_metrics.mean_iou", "mask_metrics.mean_iou_all_gt")

    def score(self, s: Sums) -> dict[str, float]:
        pairs, areas = s.role == Role.PAIR, true_areas(s)
        alike, of_pairs = iou(s, pairs), s.truth_area[pairs]
        found = dict.fromkeys(self.scores, np.nan)
        if len(alike):
            found |= {"mask_mean_iou": float(alike.mean())}
            found |= {"mask_iou_min": float(alike.min()), "mask_iou_max": float(alike.max())}
            found |= {f"mask_iou_p{p}": float(np.percentile(alike, p)) for p in PERCENTILES}
        found["mask_mean_iou_all_gt"] = quotient(alike.sum(), len(areas))
        for part, (own,) in by_size(areas, of_pairs):
            found[f"mask_mean_iou@{part}"] = quotient(alike[own].sum(), own.sum())
        return found
