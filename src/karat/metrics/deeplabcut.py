"""Pixel error and average precision as DeepLabCut evaluates poses: its rules, for a check against its numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from karat.errors import InputError, UsageError, told
from karat.kernels.keypoints import EPS, extent, frames_alike, oks, squared_distances
from karat.kernels.ranking import ranked
from karat.metric import Array, Metric, Score, Statistic, Sums
from karat.metrics.matches import by_score, one_skeleton
from karat.rows import Elements
from karat.sources.guard import refusal
from karat.sources.pose_frames import compared
from karat.sources.poses import Poses

_THRESHOLDS = np.linspace(0.5, 0.95, 10)  # as they are published: .9 is .8999999999999999
_NO_AREA = 1e-8  # square pixels: the box of a truth whose OKS is undefined


@dataclass(frozen=True)
class DeepLabCutMatches(Statistic):
    """For each prediction the truth that it is most alike to by OKS: a row a prediction, and one a truth (`is_truth`).

    `oks` is its similarity (NaN where no truth has one), `rival` the largest one of predictions of a higher score that
    chose the same truth, 0 where none did; `distance` and `confidence` are of each node. A box of no area has no OKS.
    The confidence of a node is the prediction's score where none is given, a negative one says that the node is not
    there; the score is the mean of the confidences. Left out is who has fewer than `least_nodes` nodes.
    """

    sigma: float = 0.1
    least_nodes: int = 1
    user_labels_only: bool = True

    unit: ClassVar = "element"
    record: ClassVar = "poses"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma <= 0 or self.least_nodes < 1:
            raise UsageError(f"DeepLabCutMatches needs a sigma above 0 and least_nodes of at least 1, not {self!r}.")

    def measure(self, pred: Poses, truth: Poses) -> Elements:
        one_skeleton(pred, truth)
        pred = _shown(pred.ordered_as(truth))
        if not truth.points.shape[2] == pred.points.shape[2] == 2:
            raise refusal("the poses", "have points of three coordinates", "two were expected", "project them")
        both = compared(truth, pred, "truth", self.user_labels_only, "error")
        truth, nodes = both.truth, truth.points.shape[1]
        shown, sure = ~np.isnan(pred.points[..., 0]), ~np.isnan(pred.confidence)
        _refuse_unscored(pred, both.inside & shown.any(axis=1) & ~sure.any(axis=1))
        score = _mean(pred.confidence)
        turn = by_score(score, both.inside & ((shown & sure).sum(axis=1) >= self.least_nodes))
        wanted = np.flatnonzero((~np.isnan(truth.points[..., 0])).sum(axis=1) >= self.least_nodes)
        similar, rival, distance = self._choices(both.frames, pred, turn, truth.take(wanted))

        absent, nowhere = np.full(len(wanted), np.nan), np.full((len(wanted), nodes), np.nan)
        columns = {
            "is_truth": np.repeat([False, True], [len(turn), len(wanted)]),
            "score": np.concatenate([score[turn], absent]),
            "oks": np.concatenate([similar[turn], absent]),
            "rival": np.concatenate([rival[turn], absent]),
            "distance": np.concatenate([distance[turn], nowhere]),
            "confidence": np.concatenate([pred.confidence[turn], nowhere]),
        }
        frame = np.concatenate([pred.frame[turn], truth.frame[wanted]])
        return Elements(frame, columns, truth.nodes or tuple(map(str, range(nodes))))

    def _choices(self, frames: Array, pred: Poses, turn: Array, truth: Poses) -> tuple[Array, Array, Array]:
        """Of each prediction the OKS of its choice, the largest one of those before it, and its nodes' distances."""
        similar, rival = np.full(len(pred), np.nan), np.zeros(len(pred))
        distance = np.full(pred.points.shape[:2], np.nan)
        with np.errstate(over="ignore", invalid="ignore"):  # coordinates of 1e200
            area = (extent(truth.points) + EPS).prod(axis=-1)
            spread = 2 * area[:, None] * (2 * self.sigma) ** 2
            for one in frames_alike(frames, truth.frame, pred.frame[turn], pred.points.shape[1]):
                t, p = one.truth, turn[one.pred]
                if t.size == 0 or p.size == 0:
                    continue
                squares = squared_distances(truth.points[t], pred.points[p])
                alike = oks(squares, ~np.isnan(truth.points[t][..., 0]), spread[t])
                alike = np.where((area > _NO_AREA)[t][:, None] & ~np.isnan(alike), alike, -np.inf)
                best = alike.argmax(axis=2)[..., None]
                largest = np.take_along_axis(alike, best, axis=2)
                chose = largest > -np.inf
                similar[p] = np.where(chose, largest, np.nan)[..., 0]
                rival[p] = np.take_along_axis(_before(best, largest, t.shape[1]), best, axis=2)[..., 0]
                own = np.take_along_axis(squares, best[..., None], axis=2)[:, :, 0]
                distance[p] = np.where(chose, np.sqrt(own), np.nan)
        return similar, rival, distance


def _shown(pred: Poses) -> Poses:
    """With a confidence for each node: where an instance has none its score, where one is negative there is no node."""
    alone = np.isnan(pred.confidence).all(axis=1, keepdims=True)
    confidence = np.where(alone, pred.score[:, None], pred.confidence)
    gone = confidence < 0
    points = np.where(gone[..., None], np.nan, pred.points)
    return replace(pred, points=points, confidence=np.where(gone, np.nan, confidence))


def _refuse_unscored(pred: Poses, unscored: Array) -> None:
    if unscored.any():
        raise InputError(
            f"{told(pred.name or 'the prediction')} has an instance without a score and without confidences in frame "
            f"{pred.frame[unscored.argmax()]}: give it one, or leave it out."
        )


def _mean(values: Array) -> Array:
    """The mean of the numbers of each row, added as published: its rounding decides who of equals comes first."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Array = np.ascontiguousarray(np.where(known, values, 0.0)).sum(axis=1) / known.sum(axis=1)
    return mean


def _before(best: Array, largest: Array, truths: int) -> Array:
    """Of each turn and truth the largest similarity of those that chose it in earlier turns, (F, P, T)."""
    claims = np.where(best == np.arange(truths), np.maximum(largest, 0.0), 0.0)
    so_far = np.maximum.accumulate(claims, axis=1)
    before: Array = np.concatenate([np.zeros_like(claims[:, :1]), so_far[:, :-1]], axis=1)
    return before


def _takes(s: Sums, least: Array) -> Array:
    """Who has a truth at each least OKS: a prediction whose best one is taken gets no other."""
    with np.errstate(invalid="ignore"):
        takes: Array = (s.oks[:, None] >= least) & (s.rival[:, None] < least)
    return takes


@dataclass(frozen=True)
class DeepLabCutRMSE(Metric):
    """DeepLabCut's "RMSE": the mean distance in pixels between the nodes of matched instances; of all nodes, and of
    those with a confidence of at least `pcutoff`. It is no root of a mean square; the name is DeepLabCut's.

    pred, truth: poses. Predictions by falling score each choose the truth of the largest OKS, where that is at least
    `least_oks`; one whose choice is taken gets none. Every labelled frame counts; what is missed costs nothing.
    Lauer et al. 2022, doi:10.1038/s41592-022-01443-0; the rules are those of DeepLabCut 3.0.1.
    """

    of: DeepLabCutMatches = DeepLabCutMatches()
    pcutoff: float = 0.6
    least_oks: float = 1e-6
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "dlc_rmse": Score("lower", (0, np.inf), 0, "mean distance of matched nodes, in pixels"),
        "dlc_rmse_pcutoff": Score("lower", (0, np.inf), 0, "the same of nodes of a confidence of at least pcutoff"),
    }
    parts: ClassVar = {"node": "dlc_rmse and dlc_rmse_pcutoff of each node"}
    aliases: ClassVar = ("rmse_pcutoff",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least_oks <= 0:
            raise UsageError(f"DeepLabCutRMSE.least_oks is above 0, not {self.least_oks!r}.")

    def score(self, s: Sums) -> dict[str, float]:
        matched = _takes(s, np.array([self.least_oks]))[:, 0]
        distance = s.distance[matched]
        known = ~np.isnan(distance)
        sure = known & ~np.isnan(confidence := s.confidence[matched]) & (confidence >= self.pcutoff)
        found = {}
        for name, kept in (("dlc_rmse", known), ("dlc_rmse_pcutoff", sure)):
            found[name] = _mean_of(distance[kept])
            for node, column, own in zip(s.labels, distance.T, kept.T, strict=True):
                found[f"{name}@node:{node}"] = _mean_of(column[own])
        return found


@dataclass(frozen=True)
class DeepLabCutAP(Metric):
    """DeepLabCut's mAP and mAR in percent: means of average precision and recall over OKS of .50, .55, ... .95.

    pred, truth: poses of at least two nodes. At each OKS, predictions by falling score choose the truth of the largest
    one, where it is at least that; one whose choice is taken is a false positive, as is one without a choice. Precision
    is interpolated at 101 recalls.
    Lauer et al. 2022, doi:10.1038/s41592-022-01443-0; the rules are those of DeepLabCut 3.0.1.
    """

    of: DeepLabCutMatches = DeepLabCutMatches(least_nodes=2)
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "dlc_map": Score("higher", (0, 100), 100, "percent, mean average precision"),
        "dlc_mar": Score("higher", (0, 100), 100, "percent, mean average recall"),
    }

    def score(self, s: Sums) -> dict[str, float]:
        right, truths = _takes(s, _THRESHOLDS)[~s.is_truth], int(s.is_truth.sum())
        result = ranked(s.score[~s.is_truth], right, ~right, np.full(len(_THRESHOLDS), truths), "published")
        return {"dlc_map": 100 * float(result.ap.mean()), "dlc_mar": 100 * float(result.recall.mean())}


def _mean_of(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
