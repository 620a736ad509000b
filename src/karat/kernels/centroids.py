"""One point for an instance, and how far such points are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.kernels.keypoints import squared_distances

Array = NDArray[Any]


def mean_seen(points: Array) -> Array:
    """The mean of the seen nodes of (n, K, D); NaN where none is seen."""
    total, count = np.zeros((len(points), points.shape[2])), np.zeros((len(points), 1), np.int64)
    for node in np.moveaxis(points, 1, 0):  # faster than a sum over a short axis
        missing = _missing(node)
        total += np.where(missing[:, None], 0.0, node)
        count += ~missing[:, None]
    with np.errstate(invalid="ignore"):
        mean: Array = total / count
    return mean


def first_seen(points: Array) -> Array:
    """The first seen node of (n, K, D); NaN where none is seen."""
    first = _missing(points).argmin(axis=1)
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


def _missing(points: Array) -> Array:
    """Whether a coordinate of a node (..., D) is missing."""
    missing = np.isnan(points[..., 0])
    for axis in range(1, points.shape[-1]):
        missing = missing | np.isnan(points[..., axis])
    return np.asarray(missing)
