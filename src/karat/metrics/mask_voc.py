"""Average precision and recall of masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.kernels.ranking import Ranked, ranked
from karat.metric import Array, Metric, Score, Sums
from karat.metrics.mask_ranks import NOBODY, THRESHOLDS, MaskRanks
from karat.metrics.mask_sizes import PARTS, by_size


@dataclass(frozen=True)
class MaskVOC(Metric):
    """Average precision and recall of masks as Pascal VOC and COCO define them, at each IoU of .50, .55, ... .95.

    Predictions of all frames are ranked by their score, equal ones by video, frame and place. One that took a truth at
    that IoU is a true positive, any other a false positive. AP is the mean of the interpolated precision at 101
    recalls, AR the largest recall, mAP and mAR their means over IoUs. Defined where there is a truth.
    Of one size count the truths of that size, the predictions that took one of these, and the false positives that are
    of that size themselves; others are neither for nor against.
    arithmetic="published": recalls are compared in floating point, where "exact" compares integers.
    Everingham et al. 2010, doi:10.1007/s11263-009-0275-4; Lin et al. 2014, arXiv:1405.0312.
    """

    of: MaskRanks = MaskRanks()
    arithmetic: Literal["exact", "published"] = "exact"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mask_voc.mAP": Score("higher", (0, 1), 1, "mean of AP over the IoUs"),
        "mask_voc.mAR": Score("higher", (0, 1), 1, "mean of AR over the IoUs"),
        "mask_voc.AP50": Score("higher", (0, 1), 1, "AP at an IoU of .50"),
        "mask_voc.AP75": Score("higher", (0, 1), 1, "AP at an IoU of .75"),
    }
    parts: ClassVar = {**PARTS, "threshold": "AP and AR at each match score .50:.05:.95"}
    aliases: ClassVar = ("mask_AP", "mask_voc_metrics", "mask_voc.AP", "mask_voc.AR")

    def score(self, s: Sums) -> dict[str, float]:
        hit, areas = s.taken_area != NOBODY, s.truth_area[s.truth_area != NOBODY]
        predicted = (s.pred_area != NOBODY)[:, None]
        whole = self._ranked(s, hit, ~hit & predicted, len(areas))
        ap, ar = whole.ap, whole.recall
        found = {"mask_voc.mAP": float(ap.mean()), "mask_voc.mAR": float(ar.mean())}
        found |= {f"mask_voc.AP{name}": float(ap[THRESHOLDS.index(int(name) / 100)]) for name in ("50", "75")}
        for threshold, *both in zip(THRESHOLDS, ap.tolist(), ar.tolist(), strict=True):
            found |= {
                f"mask_voc.{name}@threshold:{threshold:.2f}": v for name, v in zip(("AP", "AR"), both, strict=True)
            }
        for part, (true, took, own) in by_size(areas, areas, s.taken_area, s.pred_area):
            of_size = self._ranked(s, hit & took, ~hit & predicted & own[:, None], int(true.sum()))
            found[f"mask_voc.mAP@{part}"] = float(of_size.ap.mean())
            found[f"mask_voc.mAR@{part}"] = float(of_size.recall.mean())
        return found

    def _ranked(self, s: Sums, right: Array, wrong: Array, truths: int) -> Ranked:
        return ranked(s.score, right, wrong, np.full(len(THRESHOLDS), truths), self.arithmetic, eps=0.0)
