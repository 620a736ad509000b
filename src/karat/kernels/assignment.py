"""One-to-one pairs of least cost, over all frames of one shape at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FAR = 1e300  # the solver takes no infinite cost


def least_total(cost: Array) -> Array:
    """For each row of every frame the column it is paired with, -1 for none; (F, P, T) -> (F, P).

    As many pairs as fit, at the least total of a frame; equal totals are decided as scipy's solver decides them.
    Kuhn 1955, doi:10.1002/nav.3800020109; Crouse 2016, doi:10.1109/TAES.2016.140952.
    """
    from scipy.optimize import linear_sum_assignment

    frames, rows, columns = cost.shape
    if rows > columns:  # the solver turns these too
        return _inverse(least_total(cost.swapaxes(1, 2)), rows)
    if not rows:
        return np.full((frames, 0), -1, np.intp)
    cost = np.minimum(cost, FAR)
    pairs: Array = cost.argmin(axis=2)
    for one in np.flatnonzero(~_settled(cost, pairs)):
        pairs[one] = linear_sum_assignment(cost[one])[1]
    return pairs


def most_pairs(cost: Array, allowed: Array) -> Array:
    """As `least_total`, of allowed pairs alone: as many of them as there can be, and of those the least total."""
    within = np.where(allowed, cost, 0.0)
    above_any_total = 1 + 2 * min(cost.shape[1:]) * within.max(axis=(1, 2), keepdims=True, initial=0.0)
    return where_allowed(least_total(np.where(allowed, cost, above_any_total)), allowed)


def where_allowed(pairs: Array, allowed: Array) -> Array:
    """The pairs (F, P) that are allowed (F, P, T), -1 for the others."""
    chosen = pairs[..., None] == np.arange(allowed.shape[2])
    kept: Array = np.where((chosen & allowed).any(axis=2), pairs, -1)
    return kept


def _settled(cost: Array, pairs: Array) -> Array:
    """The frames where every row has one cheapest column and no two rows the same: those are the least total."""
    single = ((cost == cost.min(axis=2, keepdims=True)).sum(axis=2) == 1).all(axis=1)
    distinct = (np.diff(np.sort(pairs, axis=1), axis=1) > 0).all(axis=1)
    settled: Array = single & distinct
    return settled


def _inverse(pairs: Array, count: int) -> Array:
    """Of each of `count` columns the row that it is paired with, -1 for none."""
    inverse = np.full((len(pairs), count), -1, np.intp)
    frame, row = np.nonzero(pairs >= 0)
    inverse[frame, pairs[frame, row]] = row
    return inverse
