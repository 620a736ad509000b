"""Who is who: predicted instances and true ones, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, Literal

import numpy as np

from karat.errors import Inapplicable, InputError, UsageError, told
from karat.kernels.keypoints import (
    EPS,
    Frames,
    areas,
    extent,
    frames_alike,
    greedy,
    oks,
    per_node,
    squared_distances,
)
from karat.metric import Array, Statistic, Sums, snake
from karat.rows import Elements
from karat.sources.guard import refusal
from karat.sources.pose_frames import Compared, compared
from karat.sources.poses import Poses

TORSO = ("left_shoulder", "right_hip")
IGNORED_OKS = 0.5  # how alike a prediction is to a truth that is to be ignored, to be ignored with it
FALLBACK = 50.0  # px, at which `thin="pixels"` has fallen to 0
ROWS = 1 << 14  # rows whose distances are computed at once


class Role(IntEnum):
    """What a row of `Matches` is."""

    PAIR = 0
    MISSED = 1
    FALSE = 2
    THIN_PAIR = 3
    THIN_MISSED = 4
    IGNORED_TRUTH = 5
    IGNORED_PRED = 6
    NODELESS = 7
    OUTSIDE = 8


@dataclass(frozen=True)
class Matches(Statistic):
    """Pairs of true and predicted instances: frame by frame, predictions by falling score each take the free truth of
    the largest OKS, where that is greater than `match_threshold`. One matching serves all metrics.

    OKS: the mean over the nodes that are visible in the truth of exp(-d^2 / (2 (2 sigma)^2 area)) (`form="coco"`), or
    of exp(-d^2 / (2 sigma^2 area^2)) (`"squared_area"`); 0 for a node that is not predicted. area: of the box of the
    visible true nodes (`scale="box"`), given with the truth (`"given"`, else the box), the median of the video's boxes
    (`"median"`), or a number. sigma: one for all nodes, one a node, or by the nodes' names.

    A row is a pair, a missed truth, a false prediction, or something that counts neither for nor against (`role`):
    - truths without a visible node (`unlabelled="miss"` counts them as missed) and truths that are marked to be
      ignored, with the predictions that are alike;
    - thin truths, of an area below `min_area` square pixels: their OKS would ask for equality. They are matched last,
      by a mean node distance of at most `near` pixels, and count in distances, PCK and visibility, not in OKS and VOC.
      `thin="exact"` scores them as they are, `"pixels"` by max(0, 1 - distance / 50) of jointly visible nodes;
    - predictions without a node, and those in frames that are not labelled.

    frames="truth": all frames that are labelled, where what is not predicted is missed. "common": those that both sides
    list and that hold a truth. user_labels_only: of the truth only what a person labelled, and the frames where one did
    or that are labelled as empty. A frame that a file lists twice is an error (`repeated="skip"` leaves it out); so is
    a prediction without a score, unless `default_score` gives one. length: what distances are divided by where they
    are: the longer side of the true box, the torso, or the distance of two nodes by name.

    pred, truth: poses. Ronchi & Perona 2017, arXiv:1707.05388.
    """

    unit: ClassVar = "element"
    record: ClassVar = "poses"

    sigma: float | tuple[float, ...] | tuple[tuple[str, float], ...] = 0.025
    form: Literal["coco", "squared_area"] = "coco"
    scale: Literal["box", "given", "median"] | float = "box"
    match_threshold: float = 0.0
    thin: Literal["ignore", "exact", "pixels"] = "ignore"
    min_area: float = 1.0
    near: float = 50.0
    unlabelled: Literal["ignore", "miss"] = "ignore"
    frames: Literal["truth", "common"] = "truth"
    user_labels_only: bool = True
    repeated: Literal["error", "skip"] = "error"
    default_score: float | None = None
    length: Literal["box", "torso"] | tuple[str, str] = "box"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_area(self)

    @np.errstate(over="ignore", invalid="ignore")  # coordinates of 1e200: their areas and distances are no pairs
    def measure(self, pred: Poses, truth: Poses) -> Elements:
        one_skeleton(pred, truth)
        pred = pred.ordered_as(truth)
        both = compared(truth, pred, self.frames, self.user_labels_only, self.repeated)
        score = scores_of(self, pred, both.inside)
        there = ~np.isnan(pred.points[..., 0]).all(axis=1)
        turn = by_score(score, both.inside & there)
        known = self._known(both.truth)
        groups = frames_alike(both.frames, both.truth.frame, pred.frame[turn], len(truth.nodes) or pred.points.shape[1])
        seats = [
            self._seats(Frames(at.frame, at.truth, turn[at.pred]), both.truth.points, pred.points, known)
            for at in groups
        ]
        unseen = {Role.NODELESS: both.inside & ~there, Role.OUTSIDE: ~both.inside}
        seats += [_unmatched(pred.frame, np.flatnonzero(which), role) for role, which in unseen.items()]
        return self._elements(_in_frames(seats), both, pred, score, known)

    def _known(self, truth: Poses) -> _Known:
        seen = ~np.isnan(truth.points[..., 0])
        size = extent(truth.points)
        area = areas(size, truth.area, self.scale)
        sigma = per_node(self.sigma, truth.nodes, seen.shape[1])
        shown = seen.any(axis=1)
        thin = shown & (area < self.min_area) & (self.thin != "exact")
        flagged = truth.ignore | truth.crowd | (~shown & (self.unlabelled == "ignore"))
        missed = np.where(thin & (self.thin == "ignore"), Role.THIN_MISSED, Role.MISSED)
        return _Known(
            seen,
            area,
            2 * (2 * sigma) ** 2 * (area[:, None] + EPS)
            if self.form == "coco"
            else 2 * sigma**2 * (area[:, None] + EPS) ** 2,
            thin,
            flagged,
            truth.crowd,
            size.max(axis=1, initial=-np.inf) if self.length == "box" else span(truth, self.length),
            np.where(flagged, Role.IGNORED_TRUTH, missed),
        )

    def _seats(self, at: Frames, truth: Array, pred: Array, known: _Known) -> _Seats:
        """The rows of frames that have equally many instances."""
        squares = squared_distances(truth[at.truth], pred[at.pred])
        alike = oks(squares, known.seen[at.truth], known.spread[at.truth])
        thin, flagged = known.thin[at.truth], known.flagged[at.truth]
        set_aside = flagged | thin
        if self.thin == "pixels":
            alike = np.where(thin[:, None], (1 - _mean_distance(squares) / FALLBACK).clip(min=0), alike)
            set_aside = flagged
        partner = greedy(np.where(set_aside[:, None], np.nan, alike), self.match_threshold)
        role = np.where(partner >= 0, Role.PAIR, Role.FALSE)
        if self.thin == "ignore" and (beside := thin & ~flagged).any():
            free = (role == Role.FALSE)[:, :, None] & beside[:, None]
            last = greedy(np.where(free, -_mean_distance(squares), np.nan), np.nextafter(-self.near, -np.inf))
            partner, role = np.where(last >= 0, last, partner), np.where(last >= 0, Role.THIN_PAIR, role)
        if flagged.any():
            free = (role == Role.FALSE)[:, :, None] & flagged[:, None] & (alike >= IGNORED_OKS)
            crowd = known.crowd[at.truth][:, None]
            once = greedy(np.where(free & ~crowd, alike, np.nan), 0.0) >= 0
            role = np.where(once | (free & crowd).any(axis=2), Role.IGNORED_PRED, role)
        return _both_sides(at, alike, partner, role, known.role_alone[at.truth])

    def _elements(self, seats: _Seats, both: Compared, pred: Poses, score: Array, known: _Known) -> Elements:
        truth, shape = both.truth, (len(seats.frame), known.seen.shape[1])
        with_truth, with_pred = seats.truth >= 0, seats.pred >= 0
        truth_seen, pred_seen = np.zeros((2, *shape), bool)
        truth_seen[with_truth] = known.seen[seats.truth[with_truth]]
        pred_seen[with_pred] = ~np.isnan(pred.points[seats.pred[with_pred], :, 0])
        columns: dict[str, Array] = {
            "role": seats.role.astype(np.uint8),
            "truth": _looked_up(both.index, seats.truth, -1).astype(np.int32),
            "pred": seats.pred.astype(np.int32),
            "score": _looked_up(score, seats.pred, np.nan),
            "oks": seats.oks,
            "area": _looked_up(known.area, seats.truth, np.nan),
            "length": _looked_up(known.length, seats.truth, np.nan),
            "distance": _distances(truth.points, pred.points, seats),
            "truth_seen": truth_seen,
            "pred_seen": pred_seen,
        }
        return Elements(seats.frame, columns, truth.nodes or tuple(map(str, range(shape[1]))))


@dataclass(frozen=True)
class _Known:
    """What matching needs to know of the true instances."""

    seen: Array  # (n, K)
    area: Array
    spread: Array  # (n, K)
    thin: Array
    flagged: Array
    crowd: Array
    length: Array
    role_alone: Array  # what each is where nothing was matched to it


@dataclass(frozen=True)
class _Seats:
    """Rows before what they measure: who is in them and as what; a side that is not there is -1."""

    frame: Array
    truth: Array
    pred: Array
    role: Array
    oks: Array


def positive_area(of: Any) -> None:
    """Fails where a number that similarities are scaled by is no area."""
    if isinstance(of.scale, float) and of.scale <= 0:
        raise UsageError(f"{type(of).__name__}.scale is a positive area, or says which, not {of.scale:g}.")


def paired(s: Sums) -> Array:
    """The rows that have both sides, thin truths included."""
    both: Array = (s.role == Role.PAIR) | (s.role == Role.THIN_PAIR)
    return both


def one_skeleton(pred: Poses, truth: Poses) -> None:
    """Poses of one space; predictions of one node say where instances are, not how they are posed."""
    space, wanted = pred.points.shape[2], truth.points.shape[2]
    if len(pred) and space != wanted:
        raise refusal(
            pred.name or "the prediction",
            f"has points of {space} coordinates",
            f"{wanted} as in the truth were expected",
            "evaluate predictions of the same space",
        )
    if pred.points.shape[1] == 1 < truth.points.shape[1]:
        raise Inapplicable("the predictions have one node and the truth has more: only centroids can be compared.")


def scores_of(by: Any, pred: Poses, evaluated: Array) -> Array:
    """The scores by which predictions are ranked; a statistic may have a default for those without."""
    default = by.default_score
    lacking = np.flatnonzero(np.isnan(pred.score) & evaluated)
    if len(lacking) and default is None:
        raise InputError(
            f"{told(pred.name or 'the prediction')} has an instance without a score in frame {pred.frame[lacking[0]]}: "
            f"leave it out, or give all of these a score with {snake(type(by).__name__)}.default_score."
        )
    return pred.score if default is None else np.where(np.isnan(pred.score), default, pred.score)


def by_score(score: Array, chosen: Array) -> Array:
    """The chosen predictions by falling score, equal ones in their order."""
    order = np.argsort(-score, kind="stable")
    turn: Array = order[chosen[order]]
    return turn


def span(truth: Poses, between: str | tuple[str, ...]) -> Array:
    """The distance of two nodes of each true instance, by name; NaN where one of them is not visible."""
    ends = TORSO if between == "torso" else between
    lacking = [name for name in ends if name not in truth.nodes]
    if lacking:
        raise InputError(
            f"the skeleton has no node {told(lacking[0])}, but {told(', '.join(truth.nodes) or 'nodes without names')}"
            ": name the two ends with matches.length."
        )
    a, b = (truth.points[:, truth.nodes.index(name)] for name in ends)
    apart: Array = np.sqrt(((a - b) ** 2).sum(axis=-1))
    return apart


def _mean_distance(squares: Array) -> Array:
    """Over the jointly visible nodes; NaN where there is none."""
    both = ~np.isnan(squares)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(both, np.sqrt(squares), 0.0).sum(axis=-1) / both.sum(axis=-1)
    return mean


def _both_sides(at: Frames, alike: Array, partner: Array, role: Array, alone: Array) -> _Seats:
    """A row for every prediction, then one for every truth that none of them has."""
    frame, turn = np.nonzero(partner >= 0)
    truth, similar, taken = np.full(partner.shape, -1), np.full(partner.shape, np.nan), np.zeros(alone.shape, bool)
    truth[frame, turn] = at.truth[frame, partner[frame, turn]]
    taken[frame, partner[frame, turn]] = True
    similar[frame, turn] = np.where(role[frame, turn] == Role.PAIR, alike[frame, turn, partner[frame, turn]], np.nan)
    left = np.nonzero(~taken)
    absent, undefined = np.full(len(left[0]), -1), np.full(len(left[0]), np.nan)
    return _Seats(
        np.concatenate([np.repeat(at.frame, partner.shape[1]), at.frame[left[0]]]),
        np.concatenate([truth.ravel(), at.truth[left]]),
        np.concatenate([at.pred.ravel(), absent]),
        np.concatenate([role.ravel(), alone[left]]),
        np.concatenate([similar.ravel(), undefined]),
    )


def _unmatched(frame: Array, pred: Array, role: Role) -> _Seats:
    """Predictions that nothing is matched to."""
    count = len(pred)
    return _Seats(frame[pred], np.full(count, -1), pred, np.full(count, role), np.full(count, np.nan))


def _in_frames(seats: Sequence[_Seats]) -> _Seats:
    """All rows in the order of their frames; within a frame they stay in theirs."""
    every = {one.name: np.concatenate([getattr(seat, one.name) for seat in seats]) for one in fields(_Seats)}
    order = np.argsort(every["frame"], kind="stable")
    return _Seats(**{name: column[order] for name, column in every.items()})


def _looked_up(values: Array, index: Array, otherwise: float) -> Array:
    """values[index], and `otherwise` where the index is -1."""
    found = np.full(len(index), otherwise, values.dtype if otherwise == -1 else np.float64)
    there = index >= 0
    found[there] = values[index[there]]
    return found


def _distances(truth: Array, pred: Array, seats: _Seats) -> Array:
    """Distances (n, K) between the nodes of those that are matched, some rows at a time."""
    found = np.full((len(seats.frame), truth.shape[1]), np.nan)
    pairs = np.flatnonzero((seats.truth >= 0) & (seats.pred >= 0))
    for start in range(0, len(pairs), ROWS):
        some = pairs[start : start + ROWS]
        gap = truth[seats.truth[some]] - pred[seats.pred[some]]
        found[some] = np.sqrt((gap * gap).sum(axis=-1))
    return found
