"""Who is who as COCO has it: matched anew at every threshold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.keypoints import (
    EPS,
    Frames,
    areas,
    box_area,
    extent,
    frames_alike,
    greedy_by_threshold,
    oks,
    per_node,
    squared_distances,
)
from karat.metric import Array, Statistic
from karat.metrics.matches import by_score, one_skeleton, positive_area, scores_of
from karat.rows import Elements
from karat.sources.pose_frames import compared
from karat.sources.poses import Poses

THRESHOLDS = tuple(float(threshold) for threshold in np.linspace(0.5, 0.95, 10))  # as COCO's: .8999999999999999
AREAS: dict[str, tuple[float, float]] = {"all": (0, np.inf), "medium": (32**2, 96**2), "large": (96**2, 1e10)}


@dataclass(frozen=True)
class CocoMatches(Statistic):
    """Predictions and truths as pycocotools matches keypoints: at every threshold of OKS anew, .50:.05:.95, predictions
    by falling score each take the free truth of the largest OKS that is at least the threshold.

    The first `max_detections` predictions of a frame count. Truths without a visible node, crowds, and those marked to
    be ignored (a mark that pycocotools overwrites) or of an area outside of the range are ignored, and so are
    predictions that are matched to one of them or that are not matched and of an area outside of the range. Ranges: all
    (without a limit), medium 32^2 to 96^2, large. The area of a truth is the one that is given, else its nodes' box; of
    a prediction it is the box that is given, else its nodes' box.

    OKS, sigma and scale are those of `Matches`; of a truth without a visible node, OKS is by the distance of the
    predicted nodes to its given box, doubled.

    A row is a prediction (`found`, `left_out`: by range and threshold) or a truth (`wanted`: by range).
    pred, truth: poses. Lin et al. 2014, arXiv:1405.0312; cocodataset/cocoapi.
    """

    unit: ClassVar = "element"
    record: ClassVar = "poses"

    sigma: float | tuple[float, ...] | tuple[tuple[str, float], ...] = 0.025
    scale: Literal["box", "given", "median"] | float = "given"
    max_detections: int = 20
    user_labels_only: bool = True
    default_score: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_area(self)
        if self.max_detections < 1:
            raise UsageError(f"CocoMatches.max_detections is at least 1, not {self.max_detections}.")

    @np.errstate(over="ignore", invalid="ignore")  # coordinates of 1e200: their areas and distances are no pairs
    def measure(self, pred: Poses, truth: Poses) -> Elements:
        one_skeleton(pred, truth)
        pred = pred.ordered_as(truth)
        both = compared(truth, pred, "truth", self.user_labels_only, "error")
        score = scores_of(self, pred, both.inside)
        turn = by_score(score, both.inside)
        groups = frames_alike(both.frames, both.truth.frame, pred.frame[turn], pred.points.shape[1])
        at = [Frames(group.frame, group.truth, turn[group.pred]) for group in groups]
        area = _Areas.of(both.truth, pred, self.scale)
        rows = [row for one in at for row in self._rows(one, both.truth, pred, area)]
        frame, own, found, left_out, wanted = (np.concatenate(column) for column in zip(*rows, strict=True))
        order = np.argsort(frame, kind="stable")
        columns = {
            "score": np.where(own >= 0, score[own] if len(score) else np.nan, -np.inf),
            "found": found,
            "left_out": left_out,
            "wanted": wanted,
        }
        return Elements(frame[order], {name: column[order] for name, column in columns.items()})

    def _rows(self, at: Frames, truth: Poses, pred: Poses, area: _Areas) -> Iterator[tuple[Array, ...]]:
        """Predictions, then truths: frame, prediction (-1), found, left out, wanted."""
        frames, preds, truths = len(at.frame), at.pred.shape[1], at.truth.shape[1]
        alike = self._similar(at, truth, pred, area.scale)
        alike[:, self.max_detections :] = np.nan
        late = (np.arange(preds) >= self.max_detections)[:, None]
        nodeless = np.isnan(truth.points[..., 0]).all(axis=1)
        unasked = (truth.ignore | truth.crowd | nodeless)[at.truth]
        truth_area, pred_area = area.truth[at.truth], area.pred[at.pred]
        found, left_out = np.zeros((2, frames, preds, len(AREAS), len(THRESHOLDS)), bool)
        wanted = np.zeros((frames, truths, len(AREAS)), bool)
        for place, (low, high) in enumerate(AREAS.values()):
            ignored = unasked | (truth_area < low) | (truth_area > high)
            hit, passed = greedy_by_threshold(alike, ignored, truth.crowd[at.truth], THRESHOLDS)
            beyond = (pred_area < low) | (pred_area > high)
            found[:, :, place] = hit & ~passed
            left_out[:, :, place] = passed | (~hit & beyond[:, :, None]) | late
            wanted[:, :, place] = ~ignored
        nobody = np.zeros((frames * truths, *found.shape[2:]), bool)
        yield (
            np.repeat(at.frame, preds),
            at.pred.ravel(),
            found.reshape(-1, *found.shape[2:]),
            left_out.reshape(-1, *found.shape[2:]),
            np.zeros((frames * preds, len(AREAS)), bool),
        )
        yield np.repeat(at.frame, truths), np.full(frames * truths, -1), nobody, ~nobody, wanted.reshape(-1, len(AREAS))

    def _similar(self, at: Frames, truth: Poses, pred: Poses, area: Array) -> Array:
        points, boxes = truth.points[at.truth], truth.box[at.truth]
        seen = ~np.isnan(points[..., 0])
        variance = (2 * per_node(self.sigma, truth.nodes, points.shape[2])) ** 2
        spread = 2 * variance * (area[at.truth][..., None] + EPS)
        alike = oks(squared_distances(points, pred.points[at.pred]), seen, spread)
        boxed: Array = np.logical_not(seen.any(axis=2) | np.isnan(boxes).any(axis=2))
        if boxed.any():
            outside = _beyond_doubled(boxes, pred.points[at.pred])
            every = np.ones(seen.shape, bool)
            given = np.where(np.isnan(truth.area), 0.0, truth.area)[at.truth][..., None]
            alike = np.where(boxed[:, None], oks(outside, every, 2 * variance * (given + EPS)), alike)
        return alike


@dataclass(frozen=True)
class _Areas:
    """What similarities are scaled by, and which ranges instances belong to."""

    scale: Array
    truth: Array
    pred: Array

    @classmethod
    def of(cls, truth: Poses, pred: Poses, scale: str | float) -> _Areas:
        """Areas of all instances."""
        given = pred.box[:, 2] * pred.box[:, 3]
        return cls(
            areas(extent(truth.points), truth.area, scale),
            np.where(np.isnan(truth.area), box_area(truth.points), truth.area),
            np.nan_to_num(np.where(np.isnan(given), box_area(pred.points), given)),
        )


def _beyond_doubled(boxes: Array, pred: Array) -> Array:
    """Squared distances (F, P, T, K) of predicted nodes to boxes (x, y, width, height), widened by their size."""
    low = (boxes[..., :2] - boxes[..., 2:])[:, None, :, None]
    high = (boxes[..., :2] + 2 * boxes[..., 2:])[:, None, :, None]
    nodes = pred[:, :, None, :, :2]
    outside = np.maximum(0, np.maximum(low - nodes, nodes - high))
    squares: Array = (outside * outside).sum(axis=-1)
    return squares
