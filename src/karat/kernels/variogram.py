"""How much values differ with their distance: the empirical variogram, and a model fitted to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Doubles = NDArray[np.float64]
LAGS, REACHES = 20, 120


@dataclass(frozen=True)
class Variogram:
    """gamma(h) = nugget + sill (1 - exp(-h / reach)) beyond h = 0, where it is 0: the exponential model."""

    nugget: float
    sill: float
    reach: float

    def covariance(self, h: Doubles) -> Doubles:
        """C(h) = C(0) - gamma(h), C(0) = nugget + sill."""
        return self.sill * np.exp(-h / self.reach) + np.where(h == 0, self.nugget, 0.0)


def empirical(points: Array, values: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Mean distance h, half the mean squared difference, and number of the pairs in each class of distances.

    Twenty equal classes up to half the largest distance (beyond, where nothing closer differs); empty ones are left
    out. Matheron 1963, doi:10.2113/gsecongeo.58.8.1246.
    """
    from scipy.spatial.distance import pdist

    distance, square = pdist(points.astype(np.float64)), pdist(values[:, None], "sqeuclidean")
    limit = distance.max() / 2
    if not square[distance <= limit].any():
        limit = distance.max()
    near = distance <= limit
    lag = np.minimum((distance[near] * (LAGS / limit)).astype(np.intp), LAGS - 1)
    count = np.bincount(lag, minlength=LAGS)
    h, gap = (np.bincount(lag, of[near], LAGS)[count > 0] for of in (distance, square))
    some = count[count > 0].astype(np.float64)
    return h / some, gap / (2 * some), some


def fitted(points: Array, values: Doubles) -> Variogram:
    """The model of least weighted squares, with the weights pairs / h^2, nugget and sill not below 0.

    Nugget and sill are solved for at each of 120 reaches, in geometric steps from 1 pixel to ten times the farthest
    class; of reaches that fit alike the longest is taken. Values that are all alike have no variogram.
    Pebesma 2004, doi:10.1016/j.cageo.2004.03.012 (weights).
    """
    from scipy.optimize import nnls

    h, gamma, count = empirical(points, values)
    weight = np.sqrt(count) / h
    reaches = np.geomspace(1.0, 10 * max(h.max(), 1.0), REACHES)
    rises = 1 - np.exp(-h / reaches[:, None])
    fits = [nnls(np.stack([weight, weight * rise], axis=1), weight * gamma) for rise in rises]
    error = np.array([residual**2 for _, residual in fits])
    best = np.flatnonzero(error <= error.min() + 1e-12 * np.square(weight * gamma).sum())[-1]
    nugget, sill = fits[best][0].tolist()
    return Variogram(nugget, sill, float(reaches[best]))
