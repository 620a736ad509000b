"""DeepLabCut's pixel error and average precision, instance by instance."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

Point = tuple[float, float]
EPS = sys.float_info.epsilon
RECALLS = [k * 0.01 for k in range(100)] + [1.0]
THRESHOLDS = [0.5 + 0.05 * k for k in range(10)]


@dataclass(frozen=True)
class Node:
    """Where a node is, and how sure that is."""

    at: Point | None
    confidence: float


@dataclass(frozen=True)
class Frame:
    """One frame: true poses, and predicted ones in the order of their file."""

    truth: Sequence[Sequence[Point | None]]
    pred: Sequence[Sequence[Node]]


def cleaned(pose: Sequence[Node]) -> list[Node]:
    """A node of negative confidence is not there."""
    return [node if not node.confidence < 0 else Node(None, math.nan) for node in pose]


def score(pose: Sequence[Node]) -> float:
    """The mean of the confidences that are known."""
    return fmean(node.confidence for node in pose if not math.isnan(node.confidence))


def sure_nodes(pose: Sequence[Node]) -> int:
    """How many nodes have a place and a confidence."""
    return sum(node.at is not None and not math.isnan(node.confidence) for node in pose)


def oks(truth: Sequence[Point | None], pose: Sequence[Node], sigma: float) -> float | None:
    """None where the truth's box has no area."""
    seen = [point for point in truth if point is not None]
    if not seen:
        return None
    area = math.prod(max(axis) - min(axis) + EPS for axis in zip(*seen, strict=True))
    if area <= 1e-8:
        return None
    likeness = [
        math.exp(-(math.dist(point, node.at) ** 2) / (2 * area * (2 * sigma) ** 2)) if node.at is not None else 0.0
        for point, node in zip(truth, pose, strict=True)
        if point is not None
    ]
    return fmean(likeness)


def matched(frame: Frame, sigma: float, least: float, least_nodes: int) -> list[tuple[list[Node], int | None]]:
    """Predictions by falling score with the place of their truth; whoever comes late to its best truth has none."""
    poses = [pose for pose in map(cleaned, frame.pred) if sure_nodes(pose) >= least_nodes]
    poses.sort(key=lambda pose: -score(pose))
    found: list[tuple[list[Node], int | None]] = []
    for pose in poses:
        alike = {t: value for t, one in enumerate(frame.truth) if (value := oks(one, pose, sigma)) is not None}
        best = max(alike, key=lambda t: alike[t], default=None)
        taken = [t for _, t in found]
        found.append((pose, None if best is None or best in taken or alike[best] < least else best))
    return found


def errors(frames: Sequence[Frame], pcutoff: float, least: float) -> tuple[list[list[float]], list[list[float]]]:
    """By node the distances of matched instances: all, and those of sure nodes."""
    nodes = max((len(pose) for frame in frames for pose in (*frame.truth, *frame.pred)), default=0)
    every: list[list[float]] = [[] for _ in range(nodes)]
    sure: list[list[float]] = [[] for _ in range(nodes)]
    for frame in frames:
        for pose, t in matched(frame, 0.1, least, 1):
            for k, node in enumerate(pose):
                point = None if t is None else frame.truth[t][k]
                if point is None or node.at is None:
                    continue
                every[k].append(math.dist(point, node.at))
                if node.confidence >= pcutoff:
                    sure[k].append(every[k][-1])
    return every, sure


def precision(frames: Sequence[Frame], sigma: float) -> tuple[float, float]:
    """mAP and mAR in percent."""
    frames = [Frame([t for t in f.truth if sum(p is not None for p in t) > 1], f.pred) for f in frames]
    total = sum(len(frame.truth) for frame in frames)
    if not total:
        return math.nan, math.nan
    aps, ars = [], []
    for least in THRESHOLDS:
        ranked = [(score(pose), t is not None) for frame in frames for pose, t in matched(frame, sigma, least, 2)]
        ranked.sort(key=lambda one: -one[0])
        curve, right = [], 0
        for seen, (_, hit) in enumerate(ranked, 1):
            right += hit
            curve.append((right / total, right / (seen + EPS)))
        aps.append(fmean(max((p for r, p in curve if r >= recall), default=0.0) for recall in RECALLS))
        ars.append(right / total)
    return 100 * fmean(aps), 100 * fmean(ars)
