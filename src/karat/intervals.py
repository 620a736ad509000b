"""How far a mean over samples would move with other samples: bootstraps, of clusters too, and paired tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

Array = NDArray[Any]
DRAWS, SEED, LEVEL = 1000, 42, 0.95


@dataclass(frozen=True)
class Interval:
    """A mean, the standard deviation of its samples (ddof 0) and error, and the percentile interval."""

    mean: float
    std: float
    se: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Paired:
    """The mean difference of two methods on the same samples, its interval, and how likely no difference makes it."""

    difference: float
    low: float
    high: float
    p_value: float


def bootstrap(values: Sequence[float] | Array, draws: int = DRAWS, seed: int = SEED, level: float = LEVEL) -> Interval:
    """Means of samples drawn with replacement; draws are those of NumPy's RandomState(seed).choice, as in published
    scripts. Efron 1979, doi:10.1214/aos/1176344552."""
    known = _known(values)
    random = np.random.RandomState(seed)
    means = np.array([random.choice(known, len(known), replace=True).mean() for _ in range(draws)])
    low, high = _percentiles(means, level)
    std = float(known.std())
    return Interval(float(known.mean()), std, std / math.sqrt(len(known)), low, high, len(known))


def paired(
    a: Sequence[float] | Array, b: Sequence[float] | Array, draws: int = DRAWS, seed: int = SEED, level: float = LEVEL
) -> Paired:
    """a - b on the samples that both have: a bootstrap of the differences, and the two-sided signed-rank test.

    Wilcoxon 1945, doi:10.2307/3001968.
    """
    from scipy.stats import wilcoxon

    one, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if one.shape != other.shape:
        raise InputError(f"There are {len(one)} and {len(other)} values: a paired test needs the same samples.")
    gaps = _known(one - other)
    interval = bootstrap(gaps, draws, seed, level)
    p = float(wilcoxon(gaps).pvalue) if gaps.any() else 1.0
    return Paired(interval.mean, interval.low, interval.high, p)


def clustered(
    values: Array,
    weights: Array,
    clusters: Sequence[str] | Array,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = LEVEL,
) -> tuple[float, float] | None:
    """The interval of a weighted mean whose samples come in clusters (80 transmitters of one building), which are drawn
    whole, with replacement; None of fewer than two. Samples that are undefined or weigh nothing are left out.

    Draws are counted, not stateful: the same clusters give the same bits. Cameron, Gelbach & Miller 2008,
    doi:10.1162/rest.90.3.414.
    """
    defined = ~np.isnan(values) & (weights > 0) & ~np.isinf(values)
    names, index = np.unique(np.asarray(clusters)[defined], return_inverse=True)
    if len(names) < 2:
        return None
    total = np.bincount(index, values[defined] * weights[defined], len(names))
    share = np.bincount(index, weights[defined], len(names))
    times = _drawn(len(names), draws, seed)
    # Not a matrix product of the linear algebra library, whose sums depend on its threads.
    means = np.einsum("dn,n->d", times, total) / np.einsum("dn,n->d", times, share)
    return _percentiles(means, level)


@lru_cache(maxsize=2)
def _drawn(count: int, draws: int, seed: int) -> Array:
    """How often each of `count` clusters is in each of the draws (draws, count)."""
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, count])))
    chosen = random.integers(0, count, (draws, count)) + np.arange(draws)[:, None] * count
    times: Array = np.bincount(chosen.ravel(), minlength=draws * count).reshape(draws, count).astype(np.float64)
    return times


def _percentiles(means: Array, level: float) -> tuple[float, float]:
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


def _known(values: Sequence[float] | Array) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    known: NDArray[np.float64] = array[~np.isnan(array)]
    if not len(known):
        raise InputError("There is no defined value to draw from.")
    return known
