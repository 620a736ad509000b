"""Maps from a few observations as textbooks define them: pixel by pixel, pair by pair, in their own equations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Points = Sequence[Sequence[int]]


def merged(points: Points, values: Sequence[float]) -> tuple[list[tuple[int, int]], list[float]]:
    """Each pixel once, with the mean of its values."""
    found: dict[tuple[int, int], list[float]] = {}
    for (i, j), value in zip(points, values, strict=True):
        found.setdefault((int(i), int(j)), []).append(float(value))
    return list(found), [math.fsum(own) / len(own) for own in found.values()]


def candidates(points: Points, values: Sequence[float], i: int, j: int) -> set[float]:
    """The values of all observations that are nearest to a pixel."""
    far = [(r - i) ** 2 + (c - j) ** 2 for r, c in points]
    return {value for value, own in zip(values, far, strict=True) if own == min(far)}


def inverse_distance(points: Points, values: Sequence[float], i: int, j: int, power: int) -> float:
    """sum v / d^p / sum 1 / d^p, at an observation its value."""
    above, below = [], []
    for (r, c), value in zip(points, values, strict=True):
        distance = math.dist((r, c), (i, j))
        if distance == 0:
            return value
        above.append(value / distance**power)
        below.append(1 / distance**power)
    return math.fsum(above) / math.fsum(below)


def thin_plate(h: float) -> float:
    return h * h * math.log(h) if h else 0.0


def multiquadric(h: float) -> float:
    return math.sqrt(1 + h * h)


def radial(
    points: Points,
    values: Sequence[float],
    shape: tuple[int, int],
    kernel: Callable[[float], float],
    terms: Callable[[int, int], list[float]],
) -> Doubles:
    """s(x) = sum w_k kernel(|x - x_k|) + sum c_m terms_m(x): through all observations, w without any part in terms."""
    n, m = len(points), len(terms(0, 0))
    system, right = np.zeros((n + m, n + m)), np.zeros(n + m)
    for a in range(n):
        right[a] = values[a]
        for b in range(n):
            system[a, b] = kernel(math.dist(points[a], points[b]))
        for b, term in enumerate(terms(*points[a])):
            system[a, n + b] = system[n + b, a] = term
    solved = np.linalg.solve(system, right)
    out = np.zeros(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            basis = [kernel(math.dist(point, (i, j))) for point in points] + terms(i, j)
            out[i, j] = math.fsum(weight * own for weight, own in zip(solved, basis, strict=True))
    return out


def ordinary_kriging(
    points: Points, values: Sequence[float], shape: tuple[int, int], gamma: Callable[[float], float]
) -> Doubles:
    """At every pixel the unbiased mean of least variance: sum_b l_b gamma(a, b) + mu = gamma(a, x), sum_b l_b = 1."""
    n = len(points)
    system = np.ones((n + 1, n + 1))
    system[n, n] = 0
    for a in range(n):
        for b in range(n):
            system[a, b] = gamma(math.dist(points[a], points[b]))
    out = np.zeros(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            right = [gamma(math.dist(point, (i, j))) for point in points] + [1.0]
            shares = np.linalg.solve(system, right)[:n]
            out[i, j] = math.fsum(share * value for share, value in zip(shares, values, strict=True))
    return out


def empirical(points: Points, values: Sequence[float], classes: int) -> list[tuple[float, float, int]]:
    """(mean distance, half the mean squared difference, pairs) of the classes of distance that have any."""
    pairs = [
        (math.dist(points[a], points[b]), (values[a] - values[b]) ** 2) for a in range(len(points)) for b in range(a)
    ]
    longest = max(h for h, _ in pairs)
    limit = longest / 2 if any(square for h, square in pairs if h <= longest / 2) else longest
    sorted_in: dict[int, list[tuple[float, float]]] = {}
    for h, square in pairs:
        if h <= limit:
            sorted_in.setdefault(min(math.floor(h * (classes / limit)), classes - 1), []).append((h, square))
    return [
        (
            math.fsum(h for h, _ in own) / len(own),
            math.fsum(square for _, square in own) / (2 * len(own)),
            len(own),
        )
        for _, own in sorted(sorted_in.items())
    ]
