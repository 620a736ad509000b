"""Foreground against foreground, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.foregrounds import Foregrounds
from karat.metrics.mask_matches import boundary_iou, centre_dice, iou


@dataclass(frozen=True)
class Semantic(Metric):
    """Semantic segmentation: all true masks of a frame as one against all predicted ones as one; means over frames of
    IoU, of clDice and of boundary IoU, as `MaskIoU`, `MaskClDice` and `MaskBoundaryIoU` define them for a pair.

    A frame without a pixel on either side says nothing and is left out. One with pixels on the predicted side alone
    is all wrong, 0; `empty_truth="skip"` leaves it out, as published code does.
    Cheng et al. 2021, arXiv:2103.16562; Shit et al. 2021, arXiv:2003.07311.
    """

    of: Foregrounds = Foregrounds()
    empty_truth: Literal["count", "skip"] = "count"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "semantic_mean_iou": Score("higher", (0, 1), 1, "mean intersection over union of the frames"),
        "semantic_mean_cldice": Score("higher", (0, 1), 1, "mean clDice of the frames"),
        "semantic_mean_boundary_iou": Score("higher", (0, 1), 1, "mean boundary IoU of the frames"),
        "semantic_n_frames": Score(None, (0, float("inf")), about="frames that the means are over", whole=True),
    }
    aliases: ClassVar = (
        "semantic_metrics",
        "semantic_metrics.mean_iou",
        "semantic_metrics.mean_cldice",
        "semantic_metrics.mean_boundary_iou",
        "semantic_metrics.n_frames",
    )
    exempt: ClassVar = {"undefined:semantic_n_frames": "a count of nothing is zero"}

    def score(self, s: Sums) -> dict[str, float]:
        counted = s.either > 0 if self.empty_truth == "count" else s.truth_area > 0
        frames = int(counted.sum())
        return {
            "semantic_mean_iou": quotient(iou(s, counted).sum(), frames),
            "semantic_mean_cldice": quotient(centre_dice(s, counted).sum(), frames),
            "semantic_mean_boundary_iou": quotient(boundary_iou(s, counted).sum(), frames),
            "semantic_n_frames": frames,
        }
