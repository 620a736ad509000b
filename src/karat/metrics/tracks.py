"""Tracks of poses against true ones: what HOTA, CLEAR MOT and the identity scores are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from karat.errors import Inapplicable, UsageError
from karat.kernels.keypoints import EPS, box_area, frames_alike, oks, per_node, squared_distances
from karat.kernels.tracking import (
    Pairs,
    Scene,
    Tracking,
    all_near,
    associated,
    by_frame,
    followed,
    global_pairs,
    near,
    of_best_tracks,
    of_main_truth,
    resumed,
    summed,
    turned,
)
from karat.metric import Array, Statistic, ratio
from karat.metrics.matches import one_skeleton
from karat.rows import Elements, Rows
from karat.sources.guard import refusal
from karat.sources.poses import Poses

ALPHAS = tuple(percent / 100 for percent in range(5, 100, 5))
Undefined = Literal["nan", "trackeval"]
LEAVES = "of the matches alone: a prediction that moves away leaves them"
COUNTED = "a count: undefined only where there are no frames"


class Switch(NamedTuple):
    """A truth that is matched with another predicted track than it was last matched with."""

    video: str
    frame: int
    truth: int
    before: int
    after: int


@dataclass(frozen=True)
class Tracks(Statistic):
    """Tracks of poses against true ones, frame by frame; similarity is OKS on the box of the visible true nodes.

    OKS: the mean over the nodes that are visible in the truth of exp(-d^2 / (2 (2 sigma)^2 area)), 0 for a node that is
    not predicted; sigma: one for all nodes, one a node, or by the nodes' names. Where the area is below `min_area`
    square pixels (a thin or a one-node truth) it is max(0, 1 - d / near), d the mean distance in pixels of the nodes
    that both have.

    A pair is matched from `match_threshold` on. matching="previous": pairs of the frame before are kept where they
    still hold, then the total similarity is the largest (TrackEval). "established": a truth keeps the track that it was
    last matched with, then there are as many pairs as can be, the most similar (Bernardin & Stiefelhagen 2008,
    py-motmetrics). "frame": each frame by itself, the largest total similarity of all pairs, then the threshold
    (SLEAP-NN's identity metrics).

    All labelled frames of the truth are evaluated; where nothing is predicted everything is missed. Predictions without
    a track are left out and counted. Truths without a track, or that are marked to be ignored, count neither for nor
    against, and neither do the predictions that are matched with them. Truths without a visible node are left out
    (`unlabelled="miss"` counts them as missed), and so are predictions without one (`nodeless="count"` makes them
    false). user_labels_only: of the truth only what a person labelled. A video whose instances have no tracks is not
    evaluated.

    A row is a frame. An identity switch is a row of its own, with `switches` 1, in the frame where it happens:
    `truth_track` was last matched with `track_before` and now with `track_after`; `identity_switches(rows)` lists them.
    All other columns add over frames and videos; what is known of a track as a whole stands in its last frame.
    """

    sigma: float | tuple[float, ...] | tuple[tuple[str, float], ...] = 0.025
    match_threshold: float = 0.5
    matching: Literal["previous", "established", "frame"] = "previous"
    min_area: float = 1.0
    near: float = 50.0
    unlabelled: Literal["ignore", "miss"] = "ignore"
    nodeless: Literal["drop", "count"] = "drop"
    user_labels_only: bool = False

    unit: ClassVar = "element"
    record: ClassVar = "poses"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.match_threshold <= 1:
            raise UsageError(f"Tracks.match_threshold is above 0 and at most 1, not {self.match_threshold!r}.")
        if self.near <= 0:
            raise UsageError(f"Tracks.near is positive, not {self.near!r}.")

    @np.errstate(over="ignore", invalid="ignore")  # coordinates of 1e200: their areas and distances are no pairs
    def measure(self, pred: Poses, truth: Poses, sample: Any) -> Elements:  # noqa: ARG002
        one_skeleton(pred, truth)
        for side, poses in (("true", truth), ("predicted", pred)):
            if len(poses) and (poses.track < 0).all():
                raise Inapplicable(f"the {side} instances have no tracks: there are no identities to compare.")
        pred = pred.ordered_as(truth)
        _refuse_odd(pred, truth)
        return _Sides(self, pred, truth).elements()


def identity_switches(rows: Rows) -> list[Switch]:
    """Every identity switch in the rows of `Tracks`, by video and frame."""
    here = np.flatnonzero(rows.columns["switches"]) if len(rows) else np.zeros(0, np.intp)
    names = ("truth_track", "track_before", "track_after")
    return [
        Switch(rows.samples[sample], frame, *tracks)
        for sample, frame, *tracks in zip(
            rows.sample[here].tolist(),
            rows.frame[here].tolist(),
            *(rows.columns[name][here].tolist() for name in names if len(rows)),
            strict=True,
        )
    ]


def share(part: Array, whole: Array, undefined: Undefined) -> Array:
    """part / whole, NaN where the whole is 0; TrackEval divides by at least 1."""
    return ratio(part, whole) if undefined == "nan" else np.asarray(part / np.maximum(whole, 1.0))


@dataclass(frozen=True)
class _Sides:
    """One video's two sides, their nodes in one order; instances are given by their place in their record."""

    by: Tracks
    pred: Poses
    truth: Poses

    @cached_property
    def asked(self) -> Array:
        """The truths that are looked at."""
        seen = _seen(self.truth) | (self.by.unlabelled == "miss")
        return _in_time(self.truth, seen & (self.truth.user | (not self.by.user_labels_only)))

    @cached_property
    def counts(self) -> Array:
        """Whether a truth is to be found."""
        known: Array = (self.truth.track >= 0) & ~self.truth.ignore & ~self.truth.crowd
        return known

    @cached_property
    def inside(self) -> Array:
        """Whether a prediction is in a labelled frame."""
        return np.isin(self.pred.frame, self.truth.labelled)

    @cached_property
    def there(self) -> Array:
        """Whether a prediction is looked at."""
        there: Array = self.inside & (_seen(self.pred) | (self.by.nodeless == "count"))
        return there

    @cached_property
    def claimed(self) -> Array:
        """The predictions with a track."""
        return _in_time(self.pred, self.there & (self.pred.track >= 0))

    @cached_property
    def alone(self) -> Pairs:
        """What is matched in each frame by itself, also with truths that do not count; none where nobody asks."""
        frame = self.by.matching == "frame"
        scenes = self.scenes(self.asked, self.claimed) if frame or not self.counts[self.asked].all() else []
        return by_frame(scenes, self.by.match_threshold, forbid=not frame)

    @cached_property
    def excused(self) -> Array:
        """The predictions of truths that do not count."""
        return self.alone.pred[~self.counts[self.alone.truth]]

    @cached_property
    def video(self) -> Tracking:
        """What counts."""
        truths = self.asked[self.counts[self.asked]]
        preds = self.claimed[~np.isin(self.claimed, self.excused)]
        of_truth, of_pred = (np.unique(poses.track, return_inverse=True)[1] for poses in (self.truth, self.pred))
        return Tracking(len(self.truth.labelled), self.scenes(truths, preds), of_truth, of_pred, truths, preds)

    @cached_property
    def matches(self) -> Pairs:
        """Who is matched with whom."""
        if self.by.matching == "frame":
            return self.alone.take(np.flatnonzero(self.counts[self.alone.truth]))
        return followed(self.video, self.by.match_threshold, self.by.matching)

    def scenes(self, truths: Array, preds: Array) -> list[Scene]:
        """How alike the instances are, frame by frame, where there are some on both sides."""
        frames = np.arange(len(self.truth.labelled))
        nodes = self.truth.points.shape[1]
        alike = frames_alike(frames, self.place(self.truth, truths), self.place(self.pred, preds), nodes)
        at = ((one.frame, truths[one.truth], preds[one.pred]) for one in alike if one.truth.size and one.pred.size)
        return [Scene(frame, t, p, self.similarity(t, p)) for frame, t, p in at]

    def similarity(self, truths: Array, preds: Array) -> Array:
        """Of true (F, T) and predicted (F, P) instances, (F, T, P)."""
        points, area = self.truth.points[truths], box_area(self.truth.points[truths])
        sigma = per_node(self.by.sigma, self.truth.nodes, points.shape[2])
        squares = squared_distances(points, self.pred.points[preds])
        spread = (2 * sigma) ** 2 * 2 * (area[..., None] + EPS)
        similar = oks(squares, ~np.isnan(points[..., 0]), spread)
        thin = area < self.by.min_area
        if thin.any():
            both = ~np.isnan(squares)
            apart = ratio(np.sqrt(squares).sum(axis=-1, where=both), both.sum(axis=-1))
            similar = np.where(thin[:, None], (1 - apart / self.by.near).clip(min=0), similar)
        return np.nan_to_num(similar).swapaxes(1, 2)

    def place(self, poses: Poses, index: Array) -> Array:
        """The places of the frames of instances among the labelled frames."""
        return np.searchsorted(self.truth.labelled, poses.frame[index])

    def per_frame(self, poses: Poses, index: Array) -> Array:
        """How many of these instances each frame has."""
        return np.bincount(self.place(poses, index), minlength=len(self.truth.labelled))

    def elements(self) -> Elements:
        """The rows of the frames, and of the identity switches."""
        frames = self.truth.labelled
        _refuse_doubles("truth", self.truth, self.video.truths)
        _refuse_doubles("prediction", self.pred, self.claimed)
        columns = self.counted() | self.hota() | self.clear() | self.identity()
        at, before = turned(self.video, self.matches)
        tracks = {
            "truth_track": self.truth.track[self.matches.truth[at]],
            "track_before": np.unique(self.pred.track)[before],
            "track_after": self.pred.track[self.matches.pred[at]],
        }
        columns |= {name: np.full(len(frames), -1, np.int64) for name in tracks}
        switches = {name: np.zeros((len(at), *column.shape[1:]), column.dtype) for name, column in columns.items()}
        switches |= tracks | {"switches": np.ones(len(at), np.int64)}
        return Elements(
            np.concatenate([frames, frames[self.matches.frame[at]]]),
            {name: np.concatenate([column, switches[name]]) for name, column in columns.items()},
            tuple(f"{alpha:.2f}" for alpha in ALPHAS),
        )

    def counted(self) -> dict[str, Array]:
        """Who is there."""
        frames, truth, pred = self.truth.labelled, self.truth, self.pred
        asked = truth.user | (not self.by.user_labels_only)
        aside = self.asked[~self.counts[self.asked]]
        return {
            "frames": np.ones(len(frames), np.int64),
            "frames_without_pred": (~np.isin(frames, pred.labelled)).astype(np.int64),
            "truths": self.per_frame(truth, self.video.truths),
            "truths_aside": self.per_frame(truth, aside),
            "truths_unlabelled": self.per_frame(truth, np.flatnonzero(asked & ~_seen(truth))),
            "preds": self.per_frame(pred, self.video.preds),
            "preds_aside": self.per_frame(pred, self.excused),
            "preds_untracked": self.per_frame(pred, np.flatnonzero(self.there & (pred.track < 0))),
            "preds_nodeless": self.per_frame(pred, np.flatnonzero(self.inside & ~_seen(pred))),
        }

    def hota(self) -> dict[str, Array]:
        """Matches at every alpha, how alike they are and how well their tracks agree, by frame and alpha."""
        pairs, count = global_pairs(self.video), len(self.truth.labelled)
        counts = near(pairs.similarity[:, None], np.array(ALPHAS)).astype(np.float64)
        jaccard, recall, precision = associated(self.video, pairs, counts)
        return {
            "hota_tp": summed(counts, pairs.frame, count).astype(np.int64),
            "hota_similarity": summed(counts * pairs.similarity[:, None], pairs.frame, count),
            "hota_jaccard": summed(jaccard, pairs.frame, count),
            "hota_recall": summed(recall, pairs.frame, count),
            "hota_precision": summed(precision, pairs.frame, count),
        }

    def clear(self) -> dict[str, Array]:
        """Matches and breaks by frame, and whole tracks in their last frames."""
        video, matches = self.video, self.matches
        hits = np.bincount(video.truth_track[matches.truth], minlength=len(video.truth_length))
        length = video.truth_length[(tracked := np.flatnonzero(video.truth_length))]
        last = self.last(self.truth, video.truths)
        whole = {
            "tracks": np.ones(len(tracked), np.int64),
            "tracks_above_80": 5 * hits[tracked] > 4 * length,
            "tracks_from_80": 5 * hits[tracked] >= 4 * length,
            "tracks_from_20": 5 * hits[tracked] >= length,
        }
        of_main = np.flatnonzero(of_main_truth(video, matches))
        return {
            "matches": self.at(matches),
            "similarity": summed(matches.similarity, matches.frame, video.frames),
            "switches": np.zeros(video.frames, np.int64),
            "segments": self.at(matches.take(resumed(video, matches, "segments"))),
            "gaps": self.at(matches.take(resumed(video, matches, "gaps"))),
            **{name: summed(values, last, video.frames).astype(np.int64) for name, values in whole.items()},
            "coverage": summed(hits[tracked] / length, last, video.frames),
            "pred_tracks": np.bincount(self.last(self.pred, self.claimed), minlength=video.frames),
            "matches_of_main_truth": self.at(matches.take(of_main)),
        }

    def identity(self) -> dict[str, Array]:
        """What each frame adds to the identities that belong together: of pairs that could be, and of matches."""
        could = all_near(self.video.scenes, self.by.match_threshold)
        return {
            "idtp": self.at(could.take(np.flatnonzero(of_best_tracks(self.video, could)))),
            "idtp_matched": self.at(self.matches.take(np.flatnonzero(of_best_tracks(self.video, self.matches)))),
        }

    def at(self, pairs: Pairs) -> Array:
        """How many of the pairs each frame has."""
        return np.bincount(pairs.frame, minlength=self.video.frames)

    def last(self, poses: Poses, index: Array) -> Array:
        """The place of the last frame of every track of these instances, which are in time; by rising track."""
        from_end = np.unique(poses.track[index][::-1], return_index=True)[1]
        return self.place(poses, index[::-1][from_end])


def _in_time(poses: Poses, which: Array) -> Array:
    """The instances that are chosen, in the order of their frames."""
    index = np.flatnonzero(which)
    ordered: Array = index[np.argsort(poses.frame[index], kind="stable")]
    return ordered


def _seen(poses: Poses) -> Array:
    return np.asarray(~np.isnan(poses.points).all(axis=(1, 2)))


def _refuse_odd(pred: Poses, truth: Poses) -> None:
    """What has no one answer."""
    space = truth.points.shape[2]
    if pred.points.shape[2] != 2 or space != 2:
        raise refusal(
            "the poses",
            f"have points of {max(space, pred.points.shape[2])} coordinates",
            "two were expected, since the similarity is measured on the area of a box",
            "project them",
        )
    for side, poses in (("truth", truth), ("prediction", pred)):
        twice = np.intersect1d(poses.repeated, truth.labelled)
        if len(twice):
            raise refusal(
                _told(side, poses),
                f"lists frame {twice[0]} twice",
                "each frame once was expected",
                "merge its instances",
            )


def _refuse_doubles(side: str, poses: Poses, index: Array) -> None:
    """A track is one individual: it cannot be in a frame twice."""
    order = index[np.lexsort((poses.track[index], poses.frame[index]))]
    frame, track = poses.frame[order], poses.track[order]
    twice = np.flatnonzero((frame[1:] == frame[:-1]) & (track[1:] == track[:-1]))
    if len(twice):
        raise refusal(
            _told(side, poses),
            f"has several instances of track {track[twice[0]]} in frame {frame[twice[0]]}",
            "one at most was expected",
            "give them tracks of their own, or drop the copies",
        )


def _told(side: str, poses: Poses) -> str:
    return f"the {side} of {poses.name or 'the video'}"
