"""Who is who among masks of instances, anew at every IoU: predictions by falling score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.errors import Inapplicable, InputError, told
from karat.kernels.keypoints import Frames, greedy
from karat.kernels.masks import jaccard
from karat.metric import Array, Statistic
from karat.metrics.mask_scene import Blank, Scene, Sizes, Which, scene
from karat.rows import Elements
from karat.sources.instance_masks import InstanceMasks

THRESHOLDS = tuple(percent / 100 for percent in range(50, 100, 5))
NOBODY = -1  # the area of a truth that there is none of


@dataclass(frozen=True)
class MaskRanks(Statistic):
    """Predicted masks by falling score, equal ones in their order: at every IoU of .50, .55, ... .95 anew, each takes
    the free truth of the largest IoU that is at least that.

    A row is a prediction, with its score, its area and, for each IoU, the area of the truth that it took, -1 for none;
    or a truth, with its area. A prediction without a score is an error, unless `default_score` gives one; where none
    has one there is nothing to be ranked. frames, blank, sizes: as in `MaskMatches`.
    pred, truth: masks of instances. Lin et al. 2014, arXiv:1405.0312.
    """

    default_score: float | None = None
    frames: Which = "truth"
    blank: Blank = "ignore"
    sizes: Sizes = "equal"

    unit: ClassVar = "element"
    record: ClassVar = "instance_masks"

    def measure(self, pred: InstanceMasks, truth: InstanceMasks) -> Elements:
        of = scene(pred, truth, self.frames, self.blank, self.sizes)
        score = self._scores(pred, of.pred_in)
        turn = of.pred_in[np.argsort(-score[of.pred_in], kind="stable")]
        none = np.zeros(0, np.intp)
        rows = [(none, np.zeros((0, len(THRESHOLDS)), np.int64))]
        rows += [one for at, both in of.groups(turn) for one in self._taken(of, at, both)]
        p, taken = (np.concatenate(column) for column in zip(*rows, strict=True))
        truths = len(of.truth_in)
        columns = {
            "score": np.concatenate([score[p], np.full(truths, -np.inf)]),
            "pred_area": np.concatenate([of.pred.area[p], np.full(truths, NOBODY)]),
            "taken_area": np.concatenate([taken, np.full((truths, len(THRESHOLDS)), NOBODY)]),
            "truth_area": np.concatenate([np.full(len(p), NOBODY), of.truth.area[of.truth_in]]),
        }
        return Elements(np.concatenate([of.pred_frame[p], of.truth_frame[of.truth_in]]), columns)

    def _scores(self, pred: InstanceMasks, chosen: Array) -> Array:
        lacking = chosen[np.isnan(pred.score[chosen])]
        if self.default_score is not None:
            return np.where(np.isnan(pred.score), self.default_score, pred.score)
        if len(lacking) and len(lacking) == len(chosen):
            raise Inapplicable("no predicted mask has a score: give them one, or all the same with default_score.")
        if len(lacking):
            raise InputError(
                f"{told(pred.name or 'the prediction')} has a mask without a score in frame {pred.frame[lacking[0]]}: "
                "leave it out, or give all of these a score with mask_ranks.default_score."
            )
        return pred.score

    def _taken(self, of: Scene, at: Frames, both: Array) -> Iterator[tuple[Array, Array]]:
        """Predictions of frames that have equally many instances, and the areas of the truths that each took."""
        iou = jaccard(both, of.either(at, both))
        areas = of.truth.area[at.truth]
        taken = np.full((*at.pred.shape, len(THRESHOLDS)), NOBODY)
        for place, threshold in enumerate(THRESHOLDS):
            partner = greedy(iou, np.nextafter(threshold, -np.inf))
            frame, turn = np.nonzero(partner >= 0)
            taken[frame, turn, place] = areas[frame, partner[frame, turn]]
        yield at.pred.ravel(), taken.reshape(-1, len(THRESHOLDS))
