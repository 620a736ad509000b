"""Similarity of keypoints and the assignment of predictions to truths, over all frames of one shape at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError, told

Array = NDArray[Any]
EPS = float(np.spacing(1.0))
CHUNK = 1 << 18  # numbers that are looked at at once: they stay in the cache
BOXES = 1 << 11  # instances, likewise


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
    most = 1 + int(pred_count.max(initial=0))
    shape = truth_count * most + pred_count
    for one in np.unique(shape).tolist():
        truths, preds = divmod(one, most)
        chosen = np.flatnonzero(shape == one)
        step = max(1, CHUNK // max(1, truths * preds * nodes))
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
    flat = points.reshape(-1, *points.shape[-2:])
    low, high = np.full((2, len(flat), points.shape[-1]), np.nan)
    for start in range(0, len(flat), BOXES):
        some = slice(start, start + BOXES)
        for node in range(points.shape[-2]):  # faster than a reduction over a short axis
            np.fmin(low[some], flat[some, node], out=low[some])
            np.fmax(high[some], flat[some, node], out=high[some])
    shape = (*points.shape[:-2], points.shape[-1])
    return low.reshape(shape), (high - low).reshape(shape)


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


def greedy_by_threshold(
    similarity: Array, ignored: Array, crowd: Array, thresholds: tuple[float, ...]
) -> tuple[Array, Array]:
    """As COCO assigns: for each threshold anew, each prediction in turn takes the free truth that is most similar, of
    those that are at least as similar as the threshold; one that is to be ignored only where there is no other, and a
    crowd again and again. Of equal ones the last.

    similarity: (F, P, T), NaN is no candidate.  ignored, crowd: (F, T).  Returns (F, P, thresholds) twice: whether a
    truth was found, and whether it is one to be ignored.
    """
    frames, preds, truths = similarity.shape
    found, passed = np.zeros((2, frames, preds, len(thresholds)), bool)
    if not truths:
        return found, passed
    rows, last = np.arange(frames), truths - 1
    for place, threshold in enumerate(thresholds):
        free = np.where(similarity >= min(threshold, 1 - 1e-10), similarity, -np.inf)
        for turn in range(preds):
            for kind in (~ignored, ignored):
                own = np.where(kind, free[:, turn], -np.inf)
                best = last - own[:, ::-1].argmax(axis=1)
                takes = (own[rows, best] > -np.inf) & ~found[:, turn, place]
                found[:, turn, place] |= takes
                passed[:, turn, place] |= takes & ignored[rows, best]
                gone = takes & ~crowd[rows, best]
                free[rows[gone], :, best[gone]] = -np.inf
    return found, passed


def per_node(sigma: float | tuple[Any, ...], nodes: tuple[str, ...], count: int) -> Array:
    """One sigma a node: the same for all, in the order of the nodes, or by their names."""
    given = [sigma] if isinstance(sigma, float) else [one[1] if isinstance(one, tuple) else one for one in sigma]
    if not all(one > 0 for one in given):
        raise InputError(f"a sigma is {min(given):g}: it says how far people place a node apart, above 0.")
    if isinstance(sigma, float):
        return np.full(count, sigma)
    if sigma and isinstance(sigma[0], tuple):
        named = dict(sigma)
        if set(named) != set(nodes):
            raise InputError(
                f"the sigmas are of {told(', '.join(named))} and the nodes are {told(', '.join(nodes) or 'not named')}"
                ": give one sigma for each node."
            )
        return np.array([named[node] for node in nodes])
    if len(sigma) != count:
        raise InputError(f"there are {len(sigma)} sigmas for {count} nodes: give one for each node, or one for all.")
    return np.array(sigma, np.float64)


def areas(size: Array, given: Array, scale: str | float) -> Array:
    """What similarities of true instances of a visible extent (n, D) are scaled by: a number, the area that was `given`
    (the box where none was), the area of the box of the visible nodes, or the median of those boxes."""
    if isinstance(scale, float):
        return np.full(len(size), scale)
    if size.shape[1] > 2 and not (scale == "given" and not np.isnan(given).any()):
        raise InputError("the points have three coordinates, whose box has no area: give the scale as a number.")
    boxes = np.prod(size, axis=1)
    if scale == "given":
        if (given < 0).any():
            raise InputError(f"a true instance has a given area of {np.nanmin(given):g}: leave it out, or correct it.")
        return np.where(np.isnan(given), boxes, given)
    known = boxes[~np.isnan(boxes)]
    return np.full(len(boxes), np.median(known)) if scale == "median" and len(known) else boxes


def counts_within(distance: Array, limits: Sequence[float], inclusive: bool) -> Array:
    """How many distances (n, K) of each node are within each of the rising limits, (K, limits); NaN is within none."""
    nodes, size = distance.shape[1], len(limits) + 1
    place = np.searchsorted(np.array(limits), distance, side="left" if inclusive else "right")  # NaN sorts last
    bins = np.bincount((place + np.arange(nodes) * size).ravel(), minlength=nodes * size).reshape(nodes, size)
    counts: Array = bins[:, :-1].cumsum(axis=1)
    return counts
