"""Detection by centroids, frame by frame: every assignment is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import fmean
from typing import Any

Point = tuple[float, ...]
Pose = list[Point | None]  # None is a node that is not seen
PERCENTILES = (50, 75, 90, 95, 99)


@dataclass(frozen=True)
class Label:
    """An instance of one frame."""

    pose: Pose
    user: bool = True
    ignore: bool = False


@dataclass
class Counted:
    """What was found in the frames; `unique` says whether every frame had one best assignment."""

    distances: list[float] = field(default_factory=list)
    tp: int = 0
    fp: int = 0
    fn: int = 0
    undefined: int = 0
    frames: int = 0
    unique: bool = True


def centroid(pose: Pose, anchor: int | None) -> Point | None:
    """A node, else the mean of those that are seen."""
    if anchor is not None and pose[anchor] is not None:
        return pose[anchor]
    seen = [point for point in pose if point is not None]
    return tuple(fmean(axis) for axis in zip(*seen, strict=True)) if seen else None


def first(pose: Pose) -> Point | None:
    """The first node that is seen."""
    return next((point for point in pose if point is not None), None)


def assignments(preds: int, truths: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to pair as many as there can be."""
    if preds <= truths:
        yield from (list(enumerate(chosen)) for chosen in permutations(range(truths), preds))
    else:
        yield from ([(p, t) for t, p in enumerate(chosen)] for chosen in permutations(range(preds), truths))


def count(
    truth: dict[int, list[Label]],
    pred: dict[int, list[Pose]],
    match_threshold: float = 50.0,
    assignment: str = "then_gate",
    anchor: tuple[int | None, int | None] = (None, None),
    pred_centroid: str = "mean",
    frames: str = "truth",
    user_labels_only: bool = True,
) -> Counted:
    """truth, pred: {labelled frame: its instances}; anchor: the node of either skeleton."""
    found = Counted()
    for frame in sorted(truth):
        labels = truth[frame]
        if user_labels_only:
            own = [label for label in labels if label.user]
            if not own and (labels or frames == "common"):
                continue
            labels = own
        if frames == "common" and frame not in pred:
            continue
        found.frames += 1
        of_frame(found, labels, pred.get(frame, []), match_threshold, assignment, anchor, pred_centroid)
    return found


def of_frame(
    found: Counted,
    labels: Sequence[Label],
    poses: Sequence[Pose],
    limit: float,
    assignment: str,
    anchor: tuple[int | None, int | None],
    pred_centroid: str,
) -> None:
    """Adds one frame."""
    every = [(label, centroid(label.pose, anchor[0])) for label in labels]
    found.undefined += sum(point is None for label, point in every if not label.ignore)
    wanted = [point for label, point in every if point is not None and not label.ignore]
    ignored = [point for label, point in every if point is not None and label.ignore]
    points = [first(pose) if pred_centroid == "first" else centroid(pose, anchor[1]) for pose in poses]
    given = [point for point in points if point is not None]
    ways = []
    for pairs in assignments(len(given), len(wanted)):
        near = [(p, t) for p, t in pairs if math.dist(given[p], wanted[t]) <= limit]
        counted = near if assignment == "gated" else pairs
        total = math.fsum(math.dist(given[p], wanted[t]) for p, t in counted)
        ways.append((-len(counted), total, near))
    most, total, near = min(ways)
    found.unique &= all(way[2] == near for way in ways if way[0] == most and way[1] < total + 1e-9)
    found.distances += [math.dist(given[p], wanted[t]) for p, t in near]
    found.tp += len(near)
    found.fn += len(wanted) - len(near)
    taken = {p for p, _ in near}
    alone = [point for p, point in enumerate(given) if p not in taken]
    found.fp += sum(not any(math.dist(point, one) <= limit for one in ignored) for point in alone)


def scores(found: Counted, undefined_truth: str = "ignore", empty: str = "undefined") -> dict[str, float]:
    """Named numbers of what was counted."""
    fn = found.fn + (found.undefined if undefined_truth == "miss" else 0)
    nothing = 0.0 if empty == "zero" else math.nan

    def share(part: float, of: float) -> float:
        return part / of if of else nothing

    return {
        "centroid_dist_avg": fmean(found.distances) if found.distances else math.nan,
        "centroid_dist_median": percentile(found.distances, 50),
        **{f"centroid_dist_p{part}": percentile(found.distances, part) for part in PERCENTILES},
        "centroid_dist_max": max(found.distances, default=math.nan),
        "centroid_precision": share(found.tp, found.tp + found.fp),
        "centroid_recall": share(found.tp, found.tp + fn),
        "centroid_f1": share(2 * found.tp, 2 * found.tp + found.fp + fn),
        "centroid_n_tp": found.tp,
        "centroid_n_fp": found.fp,
        "centroid_n_fn": fn,
        "centroid_n_gt_undefined": found.undefined,
    }


def percentile(values: list[float], part: float) -> float:
    """Linear between the two nearest ranks."""
    if not values:
        return math.nan
    ordered, place = sorted(values), part / 100 * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def as_pose(points: Any) -> Pose:
    """Points (K, D) as a list; a node with a NaN is not seen."""
    return [None if any(map(math.isnan, point)) else tuple(point) for point in points.tolist()]
