"""Sets of features as unions of balls: every sample reaches to its k-th nearest neighbour in its own set.

Distances are compared as sums of squared differences, which are the same in both directions and for a sample and its
copy: a product of matrices gives all of them nearly, and only those that it leaves in doubt are summed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError
from karat.kernels.features import Array, Doubles, pair

CELLS = 1 << 23  # distances in memory at once
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Manifold:
    """The share of predictions in a ball of a truth and of truths in one of a prediction, in how many balls of truths a
    prediction is over k, and the share of balls of truths that have a prediction in them."""

    precision: float
    recall: float
    density: float
    coverage: float


def manifold(pred: Array, truth: Array, k: int = 5, closed: bool = False) -> Manifold:
    """A sample is in a ball whose radius is above its distance, or equal to it where balls are closed.

    Kynkäänniemi et al. 2019, arXiv:1904.06991 (precision, recall: k = 3, closed); Naeem et al. 2020, arXiv:2002.09797
    (density, coverage: k = 5, open).
    """
    pred, truth = pair(pred, truth)
    if not 1 <= k < min(len(pred), len(truth)):
        raise InputError(
            f"There are {len(pred)} predictions and {len(truth)} truths, and k is {k}: it must be at least 1 and less "
            "than the number of samples of either side."
        )
    p, t = (np.ascontiguousarray(side, np.float64) for side in (pred, truth))
    reach_p, reach_t = _reach(p, k), _reach(t, k)
    among, near, found = np.zeros(len(p), np.int64), 0, 0
    for rows, apart, doubt in _distances(t, p):
        within = _inside(apart, doubt, reach_t[rows, None], closed, t[rows], p)
        among += within.sum(axis=0)
        near += int(within.any(axis=1).sum())
        found += int(_inside(apart, doubt, reach_p[None], closed, t[rows], p).any(axis=1).sum())
    return Manifold(float((among > 0).mean()), found / len(t), float(among.sum() / (k * len(p))), near / len(t))


def _reach(x: Doubles, k: int) -> Doubles:
    """The squared distance of every row to its k-th nearest other."""
    reach = np.empty(len(x))
    for rows, apart, doubt in _distances(x, x):
        apart[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
        rough = np.partition(apart, k - 1, axis=1)[:, k - 1 : k]
        row, other = np.nonzero(apart <= rough + 2 * doubt.max(axis=1, keepdims=True))
        exact = _summed(x[rows], x, row, other)
        order = np.lexsort([exact, row])
        first = np.searchsorted(row, np.arange(rows.stop - rows.start))
        reach[rows] = exact[order][first + k - 1]
    return reach


def _inside(apart: Doubles, doubt: Doubles, reach: Doubles, closed: bool, x: Doubles, y: Doubles) -> Booleans:
    """Whether the distances are within the reach, those in doubt summed anew."""
    inside: Booleans = apart < reach
    row, column = np.nonzero(np.abs(apart - reach) <= doubt)
    exact, limit = _summed(x, y, row, column), np.broadcast_to(reach, apart.shape)[row, column]
    inside[row, column] = exact <= limit if closed else exact < limit
    return inside


def _distances(x: Doubles, y: Doubles) -> Iterator[tuple[slice, Doubles, Doubles]]:
    """Of some rows of x at a time the squared distances to all of y, |x|^2 + |y|^2 - 2 x.y, and how far rounding can
    move them from the sums of squared differences: 4 (d + 4) roundings of |x|^2 + |y|^2.

    Higham 2002, Accuracy and Stability of Numerical Algorithms, 3.1, doi:10.1137/1.9780898718027.
    """
    squares_x, squares_y = np.square(x).sum(axis=1), np.square(y).sum(axis=1)
    unsure = 4 * (x.shape[1] + 4) * np.finfo(np.float64).eps / 2
    height = max(1, CELLS // len(y))
    for start in range(0, len(x), height):
        rows = slice(start, min(start + height, len(x)))
        both = squares_x[rows, None] + squares_y
        yield rows, both - 2 * (x[rows] @ y.T), unsure * both


def _summed(x: Doubles, y: Doubles, row: NDArray[np.intp], column: NDArray[np.intp]) -> Doubles:
    """The sums of squared differences of these pairs of rows."""
    total, step = np.empty(len(row)), max(1, CELLS // x.shape[1])
    for start in range(0, len(row), step):
        here = slice(start, start + step)
        total[here] = np.square(x[row[here]] - y[column[here]]).sum(axis=1)
    return total
