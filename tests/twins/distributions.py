"""What sets of features say of each other, from the definitions: in whole numbers, in fractions, or with 60 digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
from mpmath import mp, mpf
from numpy.typing import NDArray

Array = NDArray[Any]
Row = Sequence[float]
DIGITS = 60


def rows_of(features: Array) -> list[list[float]]:
    """A list a row; every float is kept as it is."""
    return [[float(value) for value in row] for row in features]


def mean_and_scatter(features: Array) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Exactly."""
    rows = [[Fraction(value) for value in row] for row in rows_of(features)]
    n, d = len(rows), len(rows[0])
    mean = [sum((row[j] for row in rows), Fraction(0)) / n for j in range(d)]
    gaps = [[value - centre for value, centre in zip(row, mean, strict=True)] for row in rows]
    return mean, [[sum((gap[i] * gap[j] for gap in gaps), Fraction(0)) for j in range(d)] for i in range(d)]


def frechet(a: Array, b: Array, ddof: int) -> float:
    """|m_a - m_b|^2 + tr S_a + tr S_b - 2 tr (R S_b R)^(1/2), R the symmetric root of S_a."""
    with mp.workdps(DIGITS):
        sides = [mean_and_scatter(side) for side in (a, b)]
        (mean_a, cov_a), (mean_b, cov_b) = (
            (mean, _matrix([[one / (len(side) - ddof) for one in row] for row in scatter]))
            for side, (mean, scatter) in zip((a, b), sides, strict=True)
        )
        root = _root(cov_a)
        values = mp.eigsy(root * cov_b * root, eigvals_only=True)
        trace_root = sum(mpmath.sqrt(max(value, mpf(0))) for value in values)
        gap = sum((_real(p - q) ** 2 for p, q in zip(mean_a, mean_b, strict=True)), mpf(0))
        return float(gap + _trace(cov_a) + _trace(cov_b) - 2 * trace_root)


def _matrix(rows: Sequence[Sequence[Fraction]]) -> Any:
    return mp.matrix([[_real(one) for one in row] for row in rows])


def _real(number: Fraction) -> Any:
    return mpf(number.numerator) / mpf(number.denominator)


def _trace(matrix: Any) -> Any:
    return sum((matrix[i, i] for i in range(matrix.rows)), mpf(0))


def _root(matrix: Any) -> Any:
    values, vectors = mp.eigsy(matrix)
    return vectors * mp.diag([mpmath.sqrt(max(value, mpf(0))) for value in values]) * vectors.T


def polynomial(degree: int, gamma: float | None, coef: float) -> Callable[[Row, Row], float]:
    """(gamma x.y + coef)^degree."""
    return lambda x, y: (dot(x, y) * (1 / len(x) if gamma is None else gamma) + coef) ** degree


def gaussian(sigma: float) -> Callable[[Row, Row], float]:
    """exp(-|x - y|^2 / (2 sigma^2))."""
    return lambda x, y: math.exp(-math.fsum((p - q) ** 2 for p, q in zip(x, y, strict=True)) / (2 * sigma**2))


def mmd(a: Array, b: Array, kernel: Callable[[Row, Row], float], unbiased: bool) -> float:
    """Over all pairs, of a set with itself without i = j where it is unbiased."""
    xs, ys = rows_of(a), rows_of(b)

    def within(rows: list[list[float]]) -> float:
        pairs = [kernel(x, y) for i, x in enumerate(rows) for j, y in enumerate(rows) if i != j or not unbiased]
        return math.fsum(pairs) / len(pairs)

    return within(xs) + within(ys) - 2 * math.fsum(kernel(x, y) for x in xs for y in ys) / (len(xs) * len(ys))


def manifold(pred: Array, truth: Array, k: int, closed: bool) -> dict[str, float]:
    """Of features that are whole numbers, whose distances squared are whole too."""
    fakes, reals = ([[int(value) for value in row] for row in side] for side in (pred, truth))

    def apart(x: Sequence[int], y: Sequence[int]) -> int:
        return sum((p - q) ** 2 for p, q in zip(x, y, strict=True))

    def reach(rows: list[list[int]], i: int) -> int:
        return sorted(apart(rows[i], other) for j, other in enumerate(rows) if j != i)[k - 1]

    def holds(rows: list[list[int]], others: list[list[int]]) -> list[list[bool]]:
        """For every ball of `rows` which of `others` are in it."""
        radii = [reach(rows, i) for i in range(len(rows))]
        return [
            [apart(row, one) <= radius if closed else apart(row, one) < radius for one in others]
            for row, radius in zip(rows, radii, strict=True)
        ]

    of_truth, of_pred = holds(reals, fakes), holds(fakes, reals)
    return {
        "precision": sum(any(ball[j] for ball in of_truth) for j in range(len(fakes))) / len(fakes),
        "recall": sum(any(ball[i] for ball in of_pred) for i in range(len(reals))) / len(reals),
        "density": sum(map(sum, of_truth)) / (k * len(fakes)),
        "coverage": sum(map(any, of_truth)) / len(reals),
    }


def inception_score(logits: Array) -> float:
    """exp(mean of KL(p(y|x) || p(y)))."""
    with mp.workdps(DIGITS):
        given = []
        for row in rows_of(logits):
            powers = [mpmath.exp(mpf(value)) for value in row]
            given.append([power / sum(powers) for power in powers])
        marginal = [sum(p[c] for p in given) / len(given) for c in range(len(given[0]))]
        terms = [p * mpmath.log(p / q) for row in given for p, q in zip(row, marginal, strict=True) if p > 0]
        return float(mpmath.exp(sum(terms) / len(given)))


def vendi(features: Array) -> float:
    """exp(-sum of v log v) over the eigenvalues of the cosines over n."""
    with mp.workdps(DIGITS):
        rows = [[mpf(value) for value in row] for row in rows_of(features)]
        units = [[value / mpmath.sqrt(sum(v * v for v in row)) for value in row] for row in rows]
        likeness = mp.matrix(
            [[sum(p * q for p, q in zip(x, y, strict=True)) / len(rows) for y in units] for x in units]
        )
        values = [value for value in mp.eigsy(likeness, eigvals_only=True) if value > mpf(10) ** -(DIGITS // 2)]
        return float(mpmath.exp(-sum(value * mpmath.log(value) for value in values)))


def dot(x: Row, y: Row) -> float:
    """x.y, rounded once."""
    return math.fsum(p * q for p, q in zip(x, y, strict=True))


def cosine(x: Row, y: Row, eps: float = 0.0) -> float:
    """x.y / (max(|x|, eps) max(|y|, eps)); NaN where that is 0 / 0."""
    lengths = max(math.sqrt(dot(x, x)), eps) * max(math.sqrt(dot(y, y)), eps)
    return dot(x, y) / lengths if lengths else math.nan


def directional(images: Sequence[Row], texts: Sequence[Row], eps: float) -> float:
    """Of one sample: the cosine of the steps between directions."""

    def step(first: Row, second: Row) -> list[float]:
        (a, b) = ([value / math.sqrt(dot(row, row)) for value in row] for row in (first, second))
        return [q - p for p, q in zip(a, b, strict=True)]

    return cosine(step(*images), step(*texts), eps)


def own_text_is_nearest(image: Row, own: int, texts: Sequence[Row]) -> bool:
    """Whether no other text has a larger cosine."""
    return all(cosine(image, text) <= cosine(image, texts[own]) for text in texts)
