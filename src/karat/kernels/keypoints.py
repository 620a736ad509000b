"""Similarity of keypoints and the assignment of predictions to truths, over all frames of one shape at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPS = float(np.spacing(1.0))
CHUNK = 1 << 18  # numbers that are looked at at once: they stay in the cache


@dataclass(frozen=True)
class Frames:
    """Frames (F) with equal numbers of instances, and where those are: `truth` (F, T), `pred` (F, P)."""

    frame: Array
    truth: Array
    pred: Array


def frames_alike(frames: Array, truth_frame: Array, pred_frame: Array, nodes: int = 1) -> Iterator[Frames]:
    """The frames (rising, each once) grouped by how many instances they have, in pieces of a bounded size.

    Within a frame the instances keep their order.
    """
    truth_order, truth_first, truth_count = _grouped(frames, truth_frame)
    pred_order, pred_first, pred_count = _grouped(frames, pred_frame)
    shapes = np.stack([truth_count, pred_count], axis=1)
    for truths, preds in np.unique(shapes, axis=0):
        chosen = np.flatnonzero((truth_count == truths) & (pred_count == preds))
        step = max(1, CHUNK // max(1, int(truths) * int(preds) * nodes))
        for start in range(0, len(chosen), step):
            some = chosen[start : start + step]
            yield Frames(
                frames[some],
                truth_order[truth_first[some, None] + np.arange(truths)],
                pred_order[pred_first[some, None] + np.arange(preds)],
            )


def _grouped(frames: Array, of: Array) -> tuple[Array, Array, Array]:
    """Instances in the order of their frames, and for each of `frames` the first of them and how many there are."""
    order = np.argsort(of, kind="stable")
    ordered = of[order]
    first = np.searchsorted(ordered, frames, side="left")
    return order, first, np.searchsorted(ordered, frames, side="right") - first


def box_area(points: Array) -> Array:
    """Area of the bounding boxes of the visible nodes of (..., K, 2); NaN where no node is visible."""
    area: Array = np.prod(extent(points), axis=-1)
    return area


def extent(points: Array) -> Array:
    """Width and height of the visible nodes of (..., K, D), (..., D); NaN where no node is visible."""
    return box_of(points)[1]


def box_of(points: Array) -> tuple[Array, Array]:
    """The least corner and the size of the bounding boxes of visible nodes; NaN where no node is visible."""
    low, high = np.fmin.reduce(points, axis=-2), np.fmax.reduce(points, axis=-2)
    return low, high - low


def squared_distances(truth: Array, pred: Array) -> Array:
    """Between the nodes of all pairs, (F, T, K, D) and (F, P, K, D) -> (F, P, T, K); NaN where one is missing."""
    total = np.zeros(())
    for axis in range(truth.shape[-1]):
        gap = pred[:, :, None, :, axis] - truth[:, None, :, :, axis]
        total = total + gap * gap
    return total


def oks(squares: Array, seen: Array, spread: Array) -> Array:
    """Object keypoint similarity (F, P, T) of squared distances (F, P, T, K): the mean of exp(-d^2 / spread) over the
    nodes that are seen in the truth, `seen` (F, T, K); a missing predicted node counts 0. NaN where no node is seen.

    spread: (F, T, K), 2 (2 sigma)^2 area in the form of COCO.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        similar = np.exp(-squares / spread[:, None])
        similar[np.isnan(squares)] = 0.0
        similar *= seen[:, None]
        mean: Array = similar.sum(axis=-1) / seen.sum(axis=-1)[:, None]
    return mean


def greedy(similarity: Array, above: float) -> Array:
    """Of each prediction in turn the free truth that is most similar, where that is greater than `above`; -1 for none.

    similarity: (F, P, T), predictions in the order of their turn; NaN is no candidate.  Of equal ones the first.
    """
    frames, preds, truths = similarity.shape
    matched = np.full((frames, preds), -1, np.intp)
    if not truths:
        return matched
    free = np.where(np.isnan(similarity), -np.inf, similarity)
    rows = np.arange(frames)
    for turn in range(preds):
        best = free[:, turn].argmax(axis=1)
        takes = free[rows, turn, best] > above
        matched[takes, turn] = best[takes]
        free[rows[takes], :, best[takes]] = -np.inf
    return matched
