"""The Frechet distance of two normal distributions, |m_a - m_b|^2 + tr(S_a + S_b - 2 (S_a S_b)^(1/2)).

With any roots S = R R' the trace of the square root is the sum of the singular values of R_a' R_b: never complex, and
as exact as the roots. Few rows are their own root; otherwise it is Cholesky's where the covariance has full rank.
Dowson & Landau 1982, doi:10.1016/0047-259X(82)90077-X; Heusel et al. 2017, arXiv:1706.08500.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from karat.errors import InputError
from karat.kernels import moments
from karat.kernels.blas import one_thread
from karat.kernels.draws import chosen
from karat.kernels.features import Array, Doubles, blocks, checked, pair, same_width
from karat.kernels.moments import Moments

Origin = Literal["features", "cholesky", "eigenvectors"]
Route = Literal["features", "cholesky", "cholesky, singular values", "eigenvectors"]
EPS = float(np.finfo(np.float64).eps)
BOUND = 1e-9  # of the traces, for the worst that rounding can do to eigenvalues; what it does is a thousandth or less
ASYMMETRY, NEGATIVE = 1e-6, 1e-4  # of the largest entry and eigenvalue: what statistics kept in float32 stay below


@dataclass(frozen=True)
class Side:
    """A normal distribution: its mean (d), a root R (d, r) of its covariance R R', the trace of that, and what the root
    was made of."""

    mean: Doubles
    root: Doubles
    trace: float
    origin: Origin


@dataclass(frozen=True)
class Frechet:
    """The distance in its parts."""

    mean_term: float
    trace_a: float
    trace_b: float
    trace_root: float
    route: Route

    @property
    def raw(self) -> float:
        """The sum of the parts; equal sides leave a rounding error, of either sign."""
        return self.mean_term + self.trace_a + self.trace_b - 2 * self.trace_root

    @property
    def value(self) -> float:
        """The distance, which is not below 0."""
        return max(self.raw, 0.0)


def of_features(features: Array, ddof: int = 1) -> Side:
    """A side from rows (n, d): the root is A' of A = (X - mean) / sqrt(n - ddof) where n <= d, Cholesky's of the
    covariance where that has full rank, and else R' of A = Q R."""
    features = checked(features, 2)
    n, d = features.shape
    scale = 1 / math.sqrt(n - ddof)
    if n > d:
        known = moments.of(features)
        covariance = known.covariance(ddof)
        trace, root = float(np.trace(covariance)), _cholesky(covariance)
        if root is not None:
            return Side(known.mean, root, trace, "cholesky")
        root = _triangle(rows - known.mean for rows in blocks(features, moments.ROWS)) * scale
        return Side(known.mean, root, trace, "features")
    wide = np.ascontiguousarray(features, np.float64)
    mean = wide.mean(axis=0)
    centred = (wide - mean) * scale
    return Side(mean, centred.T, float(np.square(centred).sum()), "features")


def of_moments(known: Moments, ddof: int = 1) -> Side:
    """A side from moments, where the rows are gone."""
    return _of_covariance(known.mean, known.covariance(ddof), known.n)


def of_statistics(mean: Array, covariance: Array, n: int | None = None) -> Side:
    """A side from a mean (d), a covariance (d, d) and, where it is known, the number of rows: of n rows all eigenvalues
    but n - 1 are 0, and what rounding made of them is dropped."""
    if n is not None and n < 2:
        raise InputError(f"Statistics of {n} rows have no covariance: at least 2 are needed.")
    return _of_covariance(*_normal(mean, covariance), n)


def between(a: Side, b: Side) -> Frechet:
    """The distance of two sides."""
    same_width(len(a.mean), len(b.mean))
    gap = a.mean - b.mean
    trace_root, route = _nuclear(a, b)
    return Frechet(float(np.square(gap).sum()), a.trace, b.trace, trace_root, route)


def distance(pred: Array, truth: Array, ddof: int = 1) -> Frechet:
    """The distance of two sets of features."""
    pred, truth = pair(pred, truth, 2)
    return between(of_features(pred, ddof), of_features(truth, ddof))


@dataclass(frozen=True)
class Extrapolated:
    """Distances of parts of the prediction, and where their line in 1 / N ends: `value` at 1 / N = 0."""

    value: float
    slope: float
    sizes: tuple[int, ...]
    values: tuple[float, ...]


def infinity(pred: Array, truth: Array, least: int = 5000, points: int = 15, seed: int = 0) -> Extrapolated:
    """The distance of endlessly many predictions: draws of `points` sizes from `least` to all of them, each drawn anew
    without replacement, and the line a + b / N through their distances by least squares.

    Chong & Forsyth 2020, arXiv:1911.07023.
    """
    pred, truth = pair(pred, truth, 2)
    sizes = np.linspace(least, len(pred), points).astype(int).tolist()
    if not 2 <= least <= len(pred) - points + 1 or points < 2:
        raise InputError(
            f"{points} sizes from {least} to {len(pred)} rows were asked for: there must be two of them or more, all "
            "different, the least of 2 rows or more."
        )
    side = of_features(truth)
    values = [between(of_features(pred[chosen(len(pred), n, seed)]), side).raw for n in sizes]
    x, y = 1 / np.array(sizes), np.array(values)
    slope = ((x - x.mean()) * (y - y.mean())).sum() / np.square(x - x.mean()).sum()
    return Extrapolated(float(y.mean() - slope * x.mean()), float(slope), tuple(sizes), tuple(values))


def _of_covariance(mean: Doubles, covariance: Doubles, n: int | None) -> Side:
    trace, rank = float(np.trace(covariance)), len(mean) if n is None else min(n - 1, len(mean))
    root = _cholesky(covariance) if rank == len(mean) else None
    if root is not None:
        return Side(mean, root, trace, "cholesky")
    return Side(mean, _eigenvectors(covariance, rank), trace, "eigenvectors")


def _nuclear(a: Side, b: Side) -> tuple[float, Route]:
    """The sum of the singular values of M = R_a' R_b: by the eigenvalues of M M', which take a third of the time, where
    both sides have full rank and rounding cannot matter."""
    from scipy.linalg import eigvalsh, svdvals
    from scipy.linalg.blas import dtrmm

    full = a.origin == b.origin == "cholesky"
    with one_thread():
        if not full:
            product = a.root.T @ b.root
        else:
            product = dtrmm(1.0, a.root.T, b.root.T, side=1, trans_a=1)  # M' of two triangles, half the work
            eigenvalues = eigvalsh(product @ product.T, check_finite=False, overwrite_a=True)
            off = EPS * eigenvalues[-1]
            if eigenvalues[0] > off and (off / (2 * np.sqrt(eigenvalues))).sum() <= BOUND * (a.trace + b.trace):
                return float(np.sqrt(eigenvalues).sum()), "cholesky"
        total = float(svdvals(product, check_finite=False, overwrite_a=True).sum()) if product.size else 0.0
    if full:
        return total, "cholesky, singular values"
    return total, "eigenvectors" if "eigenvectors" in (a.origin, b.origin) else "features"


def _cholesky(covariance: Doubles) -> Doubles | None:
    """The lower triangle L of S = L L'; None where a pivot is within the rounding of S, so that its rank is not known.

    A feature that is constant has a row and a column of zeros, in L as in S.
    """
    from scipy.linalg import cholesky

    variance = np.diag(covariance).copy()
    constant = np.flatnonzero(variance == 0)
    if len(constant):
        covariance = covariance.copy()
        covariance[constant, constant] = variance[constant] = 1.0
    with one_thread():
        try:
            root: Doubles = cholesky(covariance.T, check_finite=False).T  # turned twice: rows are columns to LAPACK
        except np.linalg.LinAlgError:
            return None
    known = (np.square(np.diag(root)) > len(covariance) * EPS * variance).all()
    root[constant, constant] = 0.0
    return root if known else None


def _triangle(parts: Iterator[Doubles]) -> Doubles:
    """R' of the rows Q R of all parts: as exact a root of their scatter as they are."""
    from scipy.linalg import qr

    with one_thread():
        triangle = next(parts)
        for part in parts:
            (triangle,) = qr(np.concatenate([triangle, part]), mode="r", overwrite_a=True, check_finite=False)
            triangle = triangle[: part.shape[1]]
    root: Doubles = triangle.T
    return root


def _eigenvectors(covariance: Doubles, rank: int) -> Doubles:
    """V sqrt(values) of the largest eigenvalues; those within the rounding of the covariance are 0."""
    from scipy.linalg import eigh

    with one_thread():
        values, vectors = eigh(covariance, check_finite=False)
    if values[0] < -NEGATIVE * max(values[-1], 0.0):
        raise InputError(
            f"The covariance has the eigenvalue {values[0]:.3g}, and the largest is {values[-1]:.3g}: there is no "
            "distribution of that."
        )
    first = max(len(values) - rank, int(np.searchsorted(values, len(values) * EPS * values[-1], side="right")))
    root: Doubles = vectors[:, first:] * np.sqrt(values[first:])
    return root


def _normal(mean: Array, covariance: Array) -> tuple[Doubles, Doubles]:
    """Both in float64, the covariance symmetric to the bit, once they can be a mean and a covariance."""
    from scipy.linalg import issymmetric

    mean, covariance = np.asarray(mean), np.asarray(covariance)
    if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
        raise InputError(
            f"Statistics have a mean of shape {mean.shape} and a covariance of shape {covariance.shape}, but (d) and "
            "(d, d) were expected."
        )
    wide = checked(mean[None], 1, "mean")[0].astype(np.float64)
    square = np.ascontiguousarray(checked(covariance, 1, "covariance"), np.float64)
    if not issymmetric(square):
        if np.abs(square - square.T).max() > ASYMMETRY * np.abs(square).max():
            raise InputError("The covariance is not symmetric: it is no covariance.")
        square = (square + square.T) / 2
    return wide, square
