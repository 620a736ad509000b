"""Mean and covariance of features, which add: blocks of rows are folded in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from karat.errors import InputError, counted
from karat.kernels.blas import one_thread
from karat.kernels.features import Array, Doubles, checked

ROWS = 4096  # of a block: merging a block costs little beside its products


@dataclass(frozen=True)
class Moments:
    """Of n rows the mean (d) and the scatter (d, d), the sum of (x - mean)(x - mean)', in float64."""

    n: int
    mean: Doubles
    scatter: Doubles

    def merge(self, other: Moments) -> Moments:
        """Of all rows of both: mean += g n_b / n and scatter += g g' n_a n_b / n, with g the gap of the means.

        Chan, Golub & LeVeque 1983, doi:10.1080/00031305.1983.10483115.
        """
        n, gap = self.n + other.n, other.mean - self.mean
        scatter = np.outer(gap, gap)  # symmetric to the bit
        scatter *= self.n * other.n / n
        scatter += self.scatter
        scatter += other.scatter
        return Moments(n, self.mean + gap * (other.n / n), scatter)

    def covariance(self, ddof: int = 1) -> Doubles:
        """The scatter over n - `ddof`: 1 is unbiased, 0 the biased form."""
        if self.n < 2:
            raise InputError(f"A covariance needs at least 2 rows, and there is {counted(self.n, 'row')}.")
        return self.scatter / (self.n - ddof)


def of(features: Array) -> Moments:
    """The moments of rows."""
    return fold([features])


def fold(parts: Iterable[Array]) -> Moments:
    """The moments of rows that come in parts: the same bits however they are parted, since blocks are cut anew, every
    4096 rows, and merged in order."""
    total: Moments | None = None
    for rows in _recut(parts):
        mean = rows.mean(axis=0)
        centred = rows - mean
        with one_thread():
            block = Moments(len(rows), mean, centred.T @ centred)
        total = block if total is None else total.merge(block)
    if total is None:
        raise InputError("There are no rows of features: give at least 2.")
    return total


def _recut(parts: Iterable[Array]) -> Iterator[Doubles]:
    """Blocks of 4096 rows in float64 and C order, the last one shorter."""
    held: list[Doubles] = []
    count = width = 0
    for place, part in enumerate(parts):
        rows = checked(part, 0, f"part {place} of the features" if place else "features")
        width = width or rows.shape[1]
        if rows.shape[1] != width:
            raise InputError(
                f"Rows of {width} and of {rows.shape[1]} features do not go together: take them from one layer."
            )
        while len(rows):
            taken = np.array(rows[: ROWS - count], np.float64, order="C")  # a copy: who gives parts may use one buffer
            rows = rows[len(taken) :]
            held.append(taken)
            count += len(taken)
            if count == ROWS:
                yield _joined(held)
                held, count = [], 0
    if count:
        yield _joined(held)


def _joined(held: list[Doubles]) -> Doubles:
    return held[0] if len(held) == 1 else np.concatenate(held)
