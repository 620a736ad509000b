"""What the property tests of poses are tried on: videos on a coarse grid, where ties and exact thresholds abound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from twins import poses as twin

from karat.sources.poses import Poses, make_poses

NODES = ("nose", "left_shoulder", "right_hip", "tail", *(f"joint {number}" for number in range(8)))
SCORES = (0.25, 0.5, 0.75, 1.0)
AREAS = (0.0, 0.5, 20.0, 32.0**2, 96.0**2, 2e4)


@dataclass(frozen=True)
class Shape:
    """How many frames there are, at most how many instances of either side a frame, how many nodes, and how far they
    are from the origin."""

    frames: int
    truths: int
    preds: int
    nodes: int
    reach: int


shapes = st.builds(
    Shape, st.integers(1, 6), st.integers(0, 4), st.integers(0, 4), st.integers(1, 4), st.sampled_from([2, 9, 120])
)


def video(seed: Any, shape: Shape, distinct: bool = False) -> tuple[Poses, Poses]:
    """Truth and predictions: flat boxes, copies, nodes and instances that are missing, frames that only one side lists,
    instances that nobody labelled or that are to be ignored. Scores are equal and instances alike where they are not to
    be `distinct`."""
    rng = np.random.default_rng(seed)
    frames, nodes = shape.frames, NODES[: shape.nodes]
    truths, preds = (int(rng.integers(0, most + 1, frames).sum()) for most in (shape.truths, shape.preds))
    of_truth, of_pred = rng.integers(0, frames, truths), rng.integers(0, frames + rng.integers(0, 2), preds)
    points, found = (rng.integers(0, shape.reach + 1, (count, shape.nodes, 2)) * 1.0 for count in (truths, preds))
    points[rng.random(truths) < 0.15, :, 0] = 1.0
    for p in np.flatnonzero(rng.random(preds) < 0.8):
        beside, most = np.flatnonzero(of_truth == of_pred[p]), rng.choice([0, 1, 3])
        if len(beside):
            found[p] = points[rng.choice(beside)] + rng.integers(-most, most + 1, found[p].shape)
    if distinct:
        points += rng.random(points.shape) / 4
    for side in (points, found):
        side[rng.random(side.shape[:2]) < 0.2] = np.nan
        side[rng.random(len(side)) < 0.1] = np.nan
    truth = make_poses(
        points,
        2 * of_truth,
        nodes=nodes,
        user=rng.random(truths) < 0.8,
        ignore=rng.random(truths) < 0.1,
        crowd=rng.random(truths) < 0.1,
        area=np.where(rng.random(truths) < 0.5, rng.choice(AREAS, truths), np.nan),
        box=boxes(rng, truths),
        labelled=2 * np.flatnonzero(rng.random(frames) < 0.5),
    )
    pred = make_poses(
        found,
        2 * of_pred,
        nodes=nodes,
        score=rng.permutation(preds) / 8 if distinct else rng.choice(SCORES, preds),
        user=np.zeros(preds, bool),
        box=boxes(rng, preds),
        labelled=2 * np.flatnonzero(rng.random(frames + 1) < 0.8),
    )
    return truth, pred


def some_frames(poses: Poses, frames: Any) -> Poses:
    """The same video where only these frames were looked at."""
    own = poses.take(np.flatnonzero(np.isin(poses.frame, frames)))
    return replace(own, labelled=np.intersect1d(poses.labelled, frames))


def boxes(rng: np.random.Generator, count: int) -> Any:
    """Boxes of every range of areas, of some."""
    corner, size = rng.integers(0, 9, (count, 2)), rng.choice([1.0, 32.0, 96.0, 120.0], (count, 2))
    return np.where(rng.random((count, 1)) < 0.5, np.concatenate([corner, size], axis=1), np.nan)


def listed(poses: Poses) -> twin.Video:
    """By labelled frame, as lists."""
    found: twin.Video = {int(frame): [] for frame in poses.labelled}
    for at in range(len(poses)):
        pose = tuple(None if np.isnan(x) else (float(x), float(y)) for x, y in poses.points[at])
        found[int(poses.frame[at])].append(
            twin.Instance(
                at,
                pose,
                _known(poses.score[at]),
                bool(poses.user[at]),
                bool(poses.ignore[at]),
                bool(poses.crowd[at]),
                _known(poses.area[at]),
                _known(poses.box[at]),
                None if poses.track[at] < 0 else int(poses.track[at]),
            )
        )
    return found


def _known(given: Any) -> Any:
    """Numbers as Python has them, None where they are not given."""
    return None if np.isnan(given).any() else given.tolist()


@dataclass(frozen=True)
class Herd:
    """How many frames, true tracks, predictions of nobody a frame, and nodes; how large the field is, and how often
    something goes wrong."""

    frames: int
    animals: int
    strays: int
    nodes: int
    field: int
    trouble: float


herds = st.builds(
    Herd,
    st.sampled_from([1, 2, 5, 10]),
    st.integers(0, 4),
    st.integers(0, 1),
    st.integers(1, 3),
    st.sampled_from([2, 9]),
    st.sampled_from([0.0, 0.1, 0.3]),
)


def tracked(seed: Any, herd: Herd) -> tuple[Poses, Poses]:
    """Animals that wander and meet, vanish and come back; their predictions swap tracks, begin new ones, are doubled or
    lost; truths and predictions without a track, and truths that are to be ignored."""
    rng = np.random.default_rng(seed)
    bodies = rng.integers(0, 7, (herd.animals, herd.nodes, 2)) + rng.integers(0, herd.field, (herd.animals, 1, 2))
    called, fresh = list(range(10, 10 + herd.animals)), 20
    sides: tuple[list[Any], list[Any]] = ([], [])
    for frame in range(herd.frames):
        bodies = bodies + rng.integers(-1, 2, (herd.animals, 1, 2))
        if herd.animals > 1 and rng.random() < 2 * herd.trouble:
            a, b = rng.choice(herd.animals, 2, replace=False)
            called[a], called[b] = called[b], called[a]
        for animal in range(herd.animals):
            if rng.random() < herd.trouble:
                called[animal], fresh = fresh, fresh + 1
            if rng.random() >= herd.trouble:
                sides[0].append((frame, animal, bodies[animal]))
            if rng.random() >= herd.trouble:
                sides[1].append((frame, called[animal], bodies[animal] + rng.integers(-1, 2, bodies[animal].shape)))
        for stray in range(herd.strays):
            near = bodies[rng.integers(herd.animals)] if herd.animals else np.zeros((herd.nodes, 2))
            sides[1].append((frame, 5 + stray, near + rng.integers(-2, 3, near.shape)))
    truth, pred = (_tracks(rng, side, herd) for side in sides)
    return truth, pred


def _tracks(rng: np.random.Generator, side: list[Any], herd: Herd) -> Poses:
    """One side, in no order."""
    count = len(side)
    points = np.array([points for _, _, points in side], float).reshape(count, herd.nodes, 2)
    points[rng.random(points.shape[:2]) < herd.trouble / 2] = np.nan
    track = np.array([track for _, track, _ in side], int)
    track[rng.random(count) < herd.trouble / 3] = -1
    poses = make_poses(
        points,
        np.array([3 * frame for frame, _, _ in side], int),
        nodes=NODES[: herd.nodes],
        track=track,
        user=rng.random(count) < 0.9,
        ignore=rng.random(count) < herd.trouble / 3,
        crowd=rng.random(count) < herd.trouble / 3,
        labelled=3 * np.flatnonzero(rng.random(herd.frames) < 0.7),
    )
    return poses.take(rng.permutation(count))
