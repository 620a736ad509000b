"""Distances of features: Karat beside the published ways to the trace of a root of a product of covariances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.race import Race
from karat.kernels import frechet, moments

WIDTH = 2048  # features of the last pooling of Inception
FEW, MANY = 500, 5000

Doubles = NDArray[np.float64]
Statistics = tuple[Doubles, Doubles]


def races(folder: Path) -> list[Race]:  # noqa: ARG001
    """What is compared: from statistics, and from features of fewer images than there are features."""
    many, few = ([features(count, seed) for seed in (0, 1)] for count in (MANY, FEW))
    known = [(found.mean, found.covariance()) for found in map(moments.of, many)]
    ours = lambda: frechet.between(*(frechet.of_statistics(*one) for one in known)).value  # noqa: E731
    rows = lambda: frechet.distance(*few).value  # noqa: E731
    by_root = lambda: by_sqrtm(*map(statistics, few))  # noqa: E731
    return [
        Race("Frechet, 2048 features", "SciPy sqrtm", lambda: by_sqrtm(*known), ours, 6, 2),
        Race("Frechet, 2048 features", "torch eigvals", lambda: by_eigvals(*known), ours, 2, 3),
        Race("Frechet, 500 rows of 2048", "NumPy + SciPy sqrtm", by_root, rows, 40, 2),
        Race("Covariance, 5000 rows of 2048", "NumPy", lambda: statistics(many[0]), lambda: moments.of(many[0])),
    ]


def features(count: int, seed: int) -> NDArray[np.float32]:
    """Rows that are not negative, of variances that fall off, as networks give them."""
    rng = np.random.default_rng(seed)
    spread = (1 + 0.1 * seed) / np.sqrt(1 + np.arange(WIDTH))
    return (np.abs(rng.standard_normal((count, WIDTH))) * spread).astype(np.float32)


def statistics(rows: NDArray[np.float32]) -> Statistics:
    """As evaluators take them."""
    return rows.mean(axis=0, dtype=np.float64), np.cov(rows.astype(np.float64), rowvar=False)


def by_sqrtm(a: Statistics, b: Statistics) -> float:
    """The root of the product of the covariances, of which the real part is kept."""
    from scipy.linalg import sqrtm

    return _distance(a, b, float(np.trace(sqrtm(a[1] @ b[1])).real))


def by_eigvals(a: Statistics, b: Statistics) -> float:
    """The roots of the eigenvalues of the product, which is not symmetric, and of which the real parts are kept."""
    import torch

    product = torch.from_numpy(a[1]) @ torch.from_numpy(b[1])
    return _distance(a, b, float(torch.linalg.eigvals(product).sqrt().real.sum()))


def _distance(a: Statistics, b: Statistics, trace_root: float) -> float:
    return float(np.square(a[0] - b[0]).sum() + np.trace(a[1]) + np.trace(b[1]) - 2 * trace_root)
