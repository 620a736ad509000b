"""One point for an instance, and how far such points are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.kernels.keypoints import squared_distances

Array = NDArray[Any]


def mean_seen(points: Array) -> Array:
    """The mean of the seen nodes of (n, K, D); NaN where none is seen."""
    seen = _seen(points)
    # A copy in one order of memory: the nodes are added in the same order whatever the layout was.
    total = np.ascontiguousarray(np.where(seen[..., None], points, 0.0)).sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean: Array = total / seen.sum(axis=1)[:, None]
    return mean


def first_seen(points: Array) -> Array:
    """The first seen node of (n, K, D); NaN where none is seen."""
    first = _seen(points).argmax(axis=1)
    chosen: Array = points[np.arange(len(points)), first]
    return chosen


def node_or_mean(points: Array, node: int) -> Array:
    """One node of (n, K, D); where it is not seen, the mean of those that are."""
    own = points[:, node]
    centroid: Array = np.where(np.isnan(own), mean_seen(points), own)
    return centroid


def distances(truth: Array, pred: Array) -> Array:
    """Between all points of a frame, (F, T, D) and (F, P, D) -> (F, P, T)."""
    with np.errstate(over="ignore"):
        apart: Array = np.sqrt(squared_distances(truth[:, :, None], pred[:, :, None])[..., 0])
    return apart


def _seen(points: Array) -> Array:
    seen: Array = ~np.logical_or.reduce(np.isnan(points), axis=2)
    return seen
