"""Maps from a few observed pixels, without learning: what a model of fields has to beat.

A `Method` is given the observed pixels (n, 2) as rows and columns, their values (n) and the shape (H, W) of the map.
Every observed pixel keeps its value. The order of the observations does not matter to the last bit; a pixel that is
given twice counts once, with the mean of its values, so that no system of equations is singular. Values that are all
alike, a single one above all, make a constant map. Without any observation there is no map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

from .variogram import fitted

Array = NDArray[Any]
Doubles = NDArray[np.float64]
Shape = tuple[int, int]
Method = Callable[[Array, Array, Shape], Doubles]
MOST = 5000  # observations in one system of equations: 200 MB, a few seconds


def nearest(points: Array, values: Doubles, shape: Shape) -> Doubles:
    """The value of the nearest observation; of several at one distance, of the one that SciPy's transform finds."""
    from scipy.ndimage import distance_transform_edt

    known, field = np.zeros(shape, bool), np.empty(shape)
    known[tuple(points.T)], field[tuple(points.T)] = True, values
    rows, columns = distance_transform_edt(~known, return_distances=False, return_indices=True)
    found: Doubles = field[rows, columns]
    return found


def inverse_distance(points: Array, values: Doubles, shape: Shape, power: int) -> Doubles:
    """The mean of all observations by the weights 1 / distance^power. Shepard 1968, doi:10.1145/800186.810616."""
    weights = _offsets(lambda h: np.divide(1.0, h**power, out=np.zeros_like(h), where=h > 0), shape)
    return _spread(points, values, weights, shape) / _spread(points, np.ones_like(values), weights, shape)


def thin_plate(points: Array, values: Doubles, shape: Shape) -> Doubles:
    """The thin plate spline r^2 log r with a plane: of all surfaces through the observations the one that bends least.

    Where all observations lie on a line, the plane rises along it only. Duchon 1977, doi:10.1007/BFb0086566.
    """
    return _radial(points, values, shape, lambda h: h**2 * np.log(np.where(h > 0, h, 1.0)), degree=1)


def multiquadric(points: Array, values: Doubles, shape: Shape) -> Doubles:
    """Multiquadrics sqrt(1 + r^2), r in pixels, with a constant. Hardy 1971, doi:10.1029/JB076i008p01905."""
    return _radial(points, values, shape, lambda h: -np.sqrt(1 + h**2), degree=0)


def kriging(points: Array, values: Doubles, shape: Shape) -> Doubles:
    """Ordinary kriging by the exponential variogram that is fitted to the observations, solved in its dual form.

    The observations are taken to be exact: the nugget is variation below a pixel, and the map jumps to each of them.
    Cressie 1993, Statistics for Spatial Data, doi:10.1002/9781119115151.
    """
    _solvable(points)
    spread = values / np.ptp(values)  # the map is the same on every scale
    return _radial(points, values, shape, fitted(points, spread).covariance, degree=0)


def interpolated(method: Method, points: Array, values: Array, shape: Shape) -> Doubles:
    """The map that a method makes of observations, once they are checked and in order."""
    points, values = np.asarray(points), np.asarray(values, np.float64)
    _check(points, values, shape)
    points, values = _distinct(points, values, shape)
    if values.min() == values.max():
        return np.full(shape, values[0])
    field = method(points, values, shape)
    field[tuple(points.T)] = values  # to the last bit
    return field


_METHODS: Mapping[str, Method] = {
    "nearest": nearest,
    "idw2": partial(inverse_distance, power=2),
    "idw3": partial(inverse_distance, power=3),
    "thin_plate": thin_plate,
    "multiquadric": multiquadric,
    "kriging": kriging,
}
BASELINES: Mapping[str, Method] = {name: partial(interpolated, method) for name, method in _METHODS.items()}


def _check(points: Array, values: Doubles, shape: Shape) -> None:
    if values.ndim != 1 or points.shape != (len(values), 2) or points.dtype.kind not in "iu":
        raise InputError(
            f"Observations have shape {points.shape} of {points.dtype} and {values.shape}, but pixels (n, 2) in whole "
            "numbers and values (n) were expected: give a row and a column for each value."
        )
    if not len(points):
        raise InputError("Nothing is observed in this map: there is nothing to interpolate from.")
    if (points < 0).any() or (points >= shape).any():
        raise InputError(f"Some observations lie outside of the map of {shape[0]} x {shape[1]} pixels.")
    if not np.isfinite(values).all():
        raise InputError("Some observations are NaN or infinite: leave them out.")


def _distinct(points: Array, values: Doubles, shape: Shape) -> tuple[Array, Doubles]:
    """The observations in the order of their pixels, each pixel once."""
    place = np.ravel_multi_index(tuple(points.T), shape)
    order = np.lexsort([values, place])
    distinct, first, count = np.unique(place[order], return_index=True, return_counts=True)
    return np.stack(np.unravel_index(distinct, shape), axis=1), np.add.reduceat(values[order], first) / count


def _radial(points: Array, values: Doubles, shape: Shape, kernel: Callable[[Doubles], Doubles], degree: int) -> Doubles:
    """The sum of weights[k] kernel(distance to k) and a polynomial P c, through all observations:
    A weights + P c = values, P' weights = 0, with A[j, k] = kernel(distance of j and k)."""
    from scipy.linalg import solve
    from scipy.spatial.distance import cdist

    _solvable(points)
    count, middle, scale = len(points), points.mean(axis=0), max(shape)
    alike = kernel(cdist(points, points))
    top = np.abs(alike).max() or 1.0  # both parts of the system are of one size, or it is ill conditioned
    # Where the observations do not determine the polynomial, as those on a line, it is the flattest one.
    left, singular, right = np.linalg.svd(_monomials((points - middle) / scale, degree), full_matrices=False)
    found = singular > 1e-9 * singular[0]
    basis, terms = top * left[:, found], top * right[found].T / singular[found]
    size = basis.shape[1]
    system = np.block([[alike, basis], [basis.T, np.zeros((size, size))]])
    solved = solve(system, np.concatenate([values, np.zeros(size)]), assume_a="sym", check_finite=False)
    weights, c = solved[:count], terms @ solved[count:]
    rows, columns = ((np.arange(side) - at) / scale for side, at in zip(shape, middle, strict=True))
    return _spread(points, weights, _offsets(kernel, shape), shape) + _polynomial(rows, columns, c)


def _solvable(points: Array) -> None:
    if len(points) > MOST:
        raise InputError(
            f"{len(points)} pixels are observed, but a system of at most {MOST} equations is solved: thin them out, or "
            "choose nearest, idw2 or idw3."
        )


def _monomials(points: Doubles, degree: int) -> Doubles:
    """1, or 1, row and column, of each point."""
    return np.concatenate([np.ones((len(points), 1)), *[points] * degree], axis=1)


def _polynomial(rows: Doubles, columns: Doubles, c: Doubles) -> Doubles:
    """The polynomial of the same terms at every pixel."""
    constant, (down, across) = c[0], c[1:] if len(c) > 1 else (0.0, 0.0)
    return np.asarray(constant + down * rows[:, None] + across * columns)


def _offsets(kernel: Callable[[Doubles], Doubles], shape: Shape) -> Doubles:
    """The kernel at every distance that two pixels of a map can have: (2 H - 1, 2 W - 1), 0 apart in the middle."""
    down, across = (np.arange(1 - side, side, dtype=np.float64) for side in shape)
    return kernel(np.hypot(down[:, None], across))


def _spread(points: Array, weights: Doubles, offsets: Doubles, shape: Shape) -> Doubles:
    """The sum over observations k of weights[k] kernel(distance to k) at every pixel, added in their order.

    Each is a window of the one table of the kernel, so that it is computed once instead of n times.
    """
    (height, width), total, one = shape, np.zeros(shape), np.empty(shape)
    for (row, column), weight in zip(points.tolist(), weights.tolist(), strict=True):
        top, left = height - 1 - row, width - 1 - column
        total += np.multiply(offsets[top : top + height, left : left + width], weight, out=one)
    return total
