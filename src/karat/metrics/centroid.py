"""Centroids of predicted instances against those of true ones, assigned one to one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from karat.errors import UsageError, told
from karat.kernels.assignment import least_total, most_pairs, where_allowed
from karat.kernels.centroids import distances, first_seen, mean_seen, node_or_mean
from karat.kernels.keypoints import frames_alike
from karat.metric import Array, Metric, Score, Statistic, Sums, ratio
from karat.rows import Elements
from karat.sources.guard import refusal
from karat.sources.pose_frames import Compared, compared
from karat.sources.poses import Poses

Columns = Mapping[str, Array]
_PERCENTILES = (50, 75, 90, 95, 99)


@dataclass(frozen=True)
class CentroidMatches(Statistic):
    """Who is matched with whom by the distance of centroids: a row a match, a missed truth, a prediction too many.

    `truth` and `pred` are the places of the instances in their records, -1 for none; `distance` is that of a match; a
    truth without a centroid is `undefined`; an evaluated frame without any instance is a row with neither side.
    """

    match_threshold: float = 50.0
    assignment: Literal["then_gate", "gated"] = "then_gate"
    anchor: str | None = None
    pred_centroid: Literal["mean", "first"] = "mean"
    frames: Literal["truth", "common"] = "truth"
    user_labels_only: bool = True
    repeated: Literal["error", "skip"] = "error"

    unit: ClassVar = "element"
    record: ClassVar = "poses"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.match_threshold < 0:
            raise UsageError(f"CentroidMatches.match_threshold is at least 0, not {self.match_threshold!r}.")

    def measure(self, pred: Poses, truth: Poses) -> Elements:
        both = self._compared(pred, truth)
        truth, place = both.truth, both.index
        of_truth, of_pred = self._centroids(truth, pred)
        left_out, known = truth.ignore | truth.crowd, ~np.isnan(of_truth).any(axis=1)
        given = np.flatnonzero(both.inside & ~np.isnan(of_pred).any(axis=1))
        wanted, undefined = np.flatnonzero(~left_out & known), np.flatnonzero(~left_out & ~known)
        ignored, excused = np.flatnonzero(left_out & known), np.zeros(len(pred), bool)
        for _, p, apart in _by_shape(both.frames, (truth, of_truth, ignored), (pred, of_pred, given)):
            excused[p] = (apart <= self.match_threshold).any(axis=2)

        parts = [_rows(truth.frame[undefined], truth=place[undefined], undefined=True)]
        for t, p, apart in _by_shape(both.frames, (truth, of_truth, wanted), (pred, of_pred, given)):
            f, at = np.nonzero((pairs := self._pairs(apart)) >= 0)
            found, missed = t[f, pairs[f, at]], np.ones(t.shape, bool)
            missed[f, pairs[f, at]] = False
            false = p[(pairs < 0) & ~excused[p]]
            parts += [
                _rows(truth.frame[found], place[found], p[f, at], apart[f, at, pairs[f, at]]),
                _rows(pred.frame[false], pred=false),
                _rows(truth.frame[t[missed]], truth=place[t[missed]]),
            ]
        filled = np.concatenate([part["frame"] for part in parts])
        parts.append(_rows(np.setdiff1d(both.frames, filled)))
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Elements(columns.pop("frame"), columns)

    def _compared(self, pred: Poses, truth: Poses) -> Compared:
        if self.frames == "common" and not self.user_labels_only:  # the published code counts empty frames here
            held = np.flatnonzero(np.isin(truth.frame, pred.labelled))
            listed = replace(truth.take(held), labelled=np.intersect1d(truth.labelled, pred.labelled))
            both = compared(listed, pred, "truth", False, self.repeated)
            return replace(both, index=held[both.index])
        return compared(truth, pred, self.frames, self.user_labels_only, self.repeated)

    def _centroids(self, truth: Poses, pred: Poses) -> tuple[Array, Array]:
        if len(pred) and pred.points.shape[2] != truth.points.shape[2]:
            raise refusal(
                "the prediction",
                f"has points of {pred.points.shape[2]} coordinates",
                f"{truth.points.shape[2]} as in the truth were expected",
                "evaluate predictions of the same space",
            )
        of_pred = first_seen(pred.points) if self.pred_centroid == "first" else self._centroid(pred, "prediction")
        return self._centroid(truth, "truth"), of_pred

    def _centroid(self, poses: Poses, side: str) -> Array:
        if self.anchor is None or poses.points.shape[1] == 1 or not len(poses):
            return mean_seen(poses.points)
        if self.anchor not in poses.nodes:
            raise refusal(
                f"the skeleton of the {side}",
                f"has the nodes {told(', '.join(poses.nodes) or 'without names')}",
                f"the anchor {self.anchor!r} was expected among them",
                "name one of its nodes",
            )
        return node_or_mean(poses.points, poses.nodes.index(self.anchor))

    def _pairs(self, apart: Array) -> Array:
        near = apart <= self.match_threshold
        return most_pairs(apart, near) if self.assignment == "gated" else where_allowed(least_total(apart), near)


_Side = tuple[Poses, Array, Array]  # instances, their centroids, and which of them take part


def _by_shape(frames: Array, truth: _Side, pred: _Side) -> Iterator[tuple[Array, Array, Array]]:
    """Of frames with equally many instances those instances, (F, T) and (F, P), and their distances (F, P, T)."""
    for one in frames_alike(frames, truth[0].frame[truth[2]], pred[0].frame[pred[2]]):
        t, p = truth[2][one.truth], pred[2][one.pred]
        yield t, p, distances(truth[1][t], pred[1][p])


def _rows(frame: Array, truth: Any = -1, pred: Any = -1, distance: Any = np.nan, undefined: Any = False) -> Columns:
    columns = {
        "frame": (frame, np.int32),
        "truth": (truth, np.int32),
        "pred": (pred, np.int32),
        "distance": (distance, np.float64),
        "undefined": (undefined, bool),
    }
    return {name: np.broadcast_to(values, len(frame)).astype(dtype) for name, (values, dtype) in columns.items()}


def _far(about: str) -> Score:
    return Score("lower", (0, np.inf), 0, f"{about} of matched centroids, in pixels")


@dataclass(frozen=True)
class Centroid(Metric):
    """Detection by centroids: P = TP / (TP + FP), R = TP / (TP + FN), F1 = 2 TP / (2 TP + FP + FN), and how far off.

    pred, truth: poses; their skeletons may differ. The centroid is the node `anchor`, the mean of the seen nodes where
    that is missing or none is named, and the only node of a skeleton of one; `pred_centroid="first"` takes a
    prediction's first seen node. In every frame the pairs with the least total distance are matched, then those beyond
    `match_threshold` pixels let go; `assignment="gated"` never pairs them, and finds as many matches as there can be.
    Every labelled frame of the truth counts, those labelled as empty too; `frames="common"` leaves out what the
    prediction does not list and, of user labels only, frames without an instance by a user. A truth without a centroid
    is left out and counted, or missed. Truths that are marked to be ignored are neither missed, nor is a prediction
    within the threshold of one wrong. `empty="zero"` gives 0 for 0 / 0. Distances and their percentiles (linear) are
    over the matches.
    Kuhn 1955, doi:10.1002/nav.3800020109; protocol: evaluation metrics of SLEAP-NN.
    """

    of: CentroidMatches = CentroidMatches()
    undefined_truth: Literal["ignore", "miss"] = "ignore"
    empty: Literal["undefined", "zero"] = "undefined"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "centroid_dist_avg": _far("mean distance"),
        "centroid_dist_median": _far("median distance"),
        **{f"centroid_dist_p{part}": _far(f"{part}th percentile of the distance") for part in _PERCENTILES},
        "centroid_dist_max": _far("largest distance"),
        "centroid_precision": Score("higher", (0, 1), 1, "share of predictions that are matched"),
        "centroid_recall": Score("higher", (0, 1), 1, "share of true instances that are matched"),
        "centroid_f1": Score("higher", (0, 1), 1, "harmonic mean of precision and recall"),
        "centroid_n_tp": Score("higher", (0, np.inf), None, "matches", whole=True),
        "centroid_n_fp": Score("lower", (0, np.inf), 0, "predictions without a match", whole=True),
        "centroid_n_fn": Score("lower", (0, np.inf), 0, "true instances without a match", whole=True),
        "centroid_n_gt_undefined": Score(None, (0, np.inf), None, "true instances without a centroid", whole=True),
    }
    aliases: ClassVar = ("detection_metrics",)
    exempt: ClassVar = {
        f"undefined:{name}": "a count: undefined only where there are no frames" for name in scores if "_n_" in name
    }

    def score(self, s: Sums) -> dict[str, float]:
        if not len(s.distance):
            return dict.fromkeys(self.scores, np.nan)
        undefined = s.undefined if self.undefined_truth == "ignore" else np.zeros(len(s.distance), bool)
        tp = ((s.truth >= 0) & (s.pred >= 0)).sum()
        fp = ((s.truth < 0) & (s.pred >= 0)).sum()
        fn = ((s.truth >= 0) & (s.pred < 0) & ~undefined).sum()
        shares = {
            "centroid_precision": float(ratio(tp, tp + fp)),
            "centroid_recall": float(ratio(tp, tp + fn)),
            "centroid_f1": float(ratio(2 * tp, 2 * tp + fp + fn)),
        }
        if self.empty == "zero":
            shares = {name: 0.0 if np.isnan(share) else share for name, share in shares.items()}
        return {
            **_distances(s.distance[~np.isnan(s.distance)]),
            **shares,
            "centroid_n_tp": float(tp),
            "centroid_n_fp": float(fp),
            "centroid_n_fn": float(fn),
            "centroid_n_gt_undefined": float(s.undefined.sum()),
        }


def _distances(of: Array) -> dict[str, float]:
    if not len(of):
        of = np.array([np.nan])
    by_part = {part: float(np.percentile(of, part)) for part in _PERCENTILES}
    return {
        "centroid_dist_avg": float(of.mean()),
        "centroid_dist_median": by_part[50],
        **{f"centroid_dist_p{part}": value for part, value in by_part.items()},
        "centroid_dist_max": float(of.max()),
    }
