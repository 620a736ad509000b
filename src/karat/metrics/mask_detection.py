"""Instances that were found, by their masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.mask_matches import MaskMatches, Role, true_areas
from karat.metrics.mask_sizes import PARTS, by_size


@dataclass(frozen=True)
class MaskDetection(Metric):
    """Detection by masks: P = TP / (TP + FP), R = TP / (TP + FN), F1 = 2 TP / (2 TP + FP + FN) of matched masks,
    predictions without a partner and truths that were missed.

    arithmetic="published": 0 for 0 / 0, and F1 = 2 P R / (P + R) of rounded P and R.
    """

    of: MaskMatches = MaskMatches()
    arithmetic: Literal["exact", "published"] = "exact"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mask_precision": Score("higher", (0, 1), 1, "share of predictions that are matched"),
        "mask_recall": Score("higher", (0, 1), 1, "share of truths that are matched"),
        "mask_f1": Score("higher", (0, 1), 1, "harmonic mean of precision and recall"),
        "mask_n_tp": Score("higher", (0, float("inf")), about="matched masks", whole=True),
        "mask_n_fp": Score("lower", (0, float("inf")), 0, "predictions without a partner", whole=True),
        "mask_n_fn": Score("lower", (0, float("inf")), 0, "truths that were missed", whole=True),
    }
    parts: ClassVar = PARTS
    aliases: ClassVar = ("mask_detection_metrics",)
    exempt: ClassVar = {
        f"undefined:{name}": "a count of nothing is zero" for name in ("mask_n_tp", "mask_n_fp", "mask_n_fn")
    }

    def score(self, s: Sums) -> dict[str, float]:
        tp, fp, fn = (int((s.role == role).sum()) for role in (Role.PAIR, Role.FALSE, Role.MISSED))
        precision, recall = quotient(tp, tp + fp), quotient(tp, tp + fn)
        f1 = quotient(2 * tp, 2 * tp + fp + fn)
        if self.arithmetic == "published":
            precision, recall = (share if tp else 0.0 for share in (precision, recall))
            f1 = 2 * precision * recall / (precision + recall) if tp else 0.0
        found: dict[str, float] = {"mask_precision": precision, "mask_recall": recall, "mask_f1": f1}
        found |= {"mask_n_tp": tp, "mask_n_fp": fp, "mask_n_fn": fn}
        areas = true_areas(s)
        for part, (true, hit) in by_size(areas, areas, s.truth_area[s.role == Role.PAIR]):
            found |= {f"mask_n_tp@{part}": int(hit.sum()), f"mask_recall@{part}": quotient(hit.sum(), true.sum())}
        return found
