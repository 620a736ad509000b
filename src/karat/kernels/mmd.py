"""Squared maximum mean discrepancies, mean k(x, x') + mean k(y, y') - 2 mean k(x, y), of two sets of features.

Gretton et al. 2012, jmlr.org/papers/v13/gretton12a.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from karat.errors import InputError
from karat.kernels.blas import one_thread
from karat.kernels.draws import Index, chosen
from karat.kernels.features import BLOCK, Array, Doubles, blocks, directed, pair


class Kernel(Protocol):
    """A similarity of every row of x with every row of y."""

    def __call__(self, x: Doubles, y: Doubles) -> Doubles: ...


@dataclass(frozen=True)
class Polynomial:
    """(gamma x.y + coef)^degree, gamma = 1 / d where it is None."""

    degree: int = 3
    gamma: float | None = None
    coef: float = 1.0

    def __call__(self, x: Doubles, y: Doubles) -> Doubles:
        base = (x @ y.T) * (1 / x.shape[1] if self.gamma is None else self.gamma) + self.coef
        power = base.copy()
        for _ in range(self.degree - 1):  # several times faster than a power
            power *= base
        return power


@dataclass(frozen=True)
class Gaussian:
    """exp(-|x - y|^2 / (2 sigma^2))."""

    sigma: float = 10.0

    def __call__(self, x: Doubles, y: Doubles) -> Doubles:
        apart = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1) - 2 * (x @ y.T)
        likeness: Doubles = np.exp(np.maximum(apart, 0.0) / (-2 * self.sigma**2))
        return likeness


@dataclass(frozen=True)
class Subsets:
    """An estimate of each subset."""

    values: Doubles

    @property
    def mean(self) -> float:
        """The mean over the subsets."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """Their standard deviation, ddof 0."""
        return float(self.values.std())


CUBIC = Polynomial()


def mmd(pred: Array, truth: Array, kernel: Kernel = CUBIC, unbiased: bool = True) -> float:
    """Of all samples, a block of 1024 x 1024 pairs at a time; unbiased leaves out the pairs of a sample with itself.

    With the cubic kernel it is the kernel inception distance: Binkowski et al. 2018, arXiv:1801.01401.
    """
    pred, truth = pair(pred, truth, 2 if unbiased else 1)
    with one_thread():
        return _estimate(pred, truth, kernel, unbiased)


def of_subsets(pred: Array, truth: Array, at_pred: Index, at_truth: Index, kernel: Kernel = CUBIC) -> Subsets:
    """The unbiased estimates of subsets, given as rows of places (subsets, size) of each side."""
    pred, truth = pair(pred, truth, 2)
    places = list(zip(at_pred, at_truth, strict=True))
    with one_thread():
        return Subsets(np.array([_estimate(pred[p], truth[t], kernel, unbiased=True) for p, t in places]))


def drawn_subsets(n_pred: int, n_truth: int, count: int = 100, size: int = 1000, seed: int = 0) -> tuple[Index, Index]:
    """`count` subsets of `size` rows of each side, without replacement."""
    if count < 1 or not 2 <= size <= min(n_pred, n_truth):
        raise InputError(
            f"{count} subsets of {size} of {n_pred} predictions and {n_truth} truths were asked for: there must be "
            "one, of at least 2 samples and of at most those of the smaller side."
        )
    at_pred, at_truth = (
        np.stack([chosen(n, size, seed, side, subset) for subset in range(count)])
        for side, n in enumerate((n_pred, n_truth))
    )
    return at_pred, at_truth


def cmmd(pred: Array, truth: Array, sigma: float = 10.0, scale: float = 1000.0) -> float:
    """`scale` times the biased estimate with a Gaussian kernel, on embeddings of length 1.

    Jayasumana et al. 2024, arXiv:2401.09603.
    """
    pred, truth = pair(pred, truth)
    sides = directed(pred, "features of the prediction"), directed(truth, "features of the truth")
    return scale * mmd(*sides, Gaussian(sigma), unbiased=False)


def _estimate(pred: Array, truth: Array, kernel: Kernel, unbiased: bool) -> float:
    across = sum(_total(rows, truth, kernel) for rows in blocks(pred, BLOCK)) / (len(pred) * len(truth))
    return _alike(pred, kernel, unbiased) + _alike(truth, kernel, unbiased) - 2 * across


def _alike(x: Array, kernel: Kernel, unbiased: bool) -> float:
    """The mean over pairs of one set, of different samples only where it is unbiased."""
    pairs = own = 0.0
    for i, rows in enumerate(blocks(x, BLOCK)):
        block = kernel(rows, rows)
        own += float(np.trace(block))
        np.fill_diagonal(block, 0.0)
        pairs += float(block.sum()) + 2 * _total(rows, x[: i * BLOCK], kernel)
    return pairs / (len(x) * (len(x) - 1)) if unbiased else (pairs + own) / len(x) ** 2


def _total(rows: Doubles, x: Array, kernel: Kernel) -> float:
    return sum((float(kernel(rows, columns).sum()) for columns in blocks(x, BLOCK)), 0.0)
