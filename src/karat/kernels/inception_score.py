"""The Inception Score, exp(mean over samples of KL(p(y|x) || p(y))), from logits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from karat.errors import InputError
from karat.kernels.draws import Index
from karat.kernels.features import Array, Doubles, checked

Rule = Literal["even", "ceil"]


@dataclass(frozen=True)
class InceptionScore:
    """The score of each part of the samples, and the sizes of the parts."""

    values: Doubles
    sizes: tuple[int, ...]

    @property
    def mean(self) -> float:
        """The mean over the parts."""
        return float(self.values.mean())

    def std(self, ddof: int = 0) -> float:
        """The standard deviation over the parts; NaN where there are no more than `ddof`."""
        return float(self.values.std(ddof=ddof)) if len(self.values) > ddof else float("nan")


def inception_score(logits: Array, splits: int = 10, rule: Rule = "even", order: Index | None = None) -> InceptionScore:
    """The scores of `splits` parts of the rows, put in `order` first: part i is [i N / splits, (i + 1) N / splits); by
    the rule "ceil" parts have ceil(N / splits) rows, the last one what is left, and there may be fewer.

    Salimans et al. 2016, arXiv:1606.03498.
    """
    logits = checked(logits, 1, "logits")
    n = len(logits)
    if not 1 <= splits <= n:
        raise InputError(
            f"{n} samples cannot be cut into {splits} parts: choose splits from 1 to the number of samples."
        )
    size = -(-n // splits)
    edges = [i * n // splits for i in range(splits + 1)] if rule == "even" else [*range(0, n, size), n]
    rows = logits if order is None else logits[order]
    parts = [rows[start:stop] for start, stop in pairwise(edges)]
    return InceptionScore(np.array([_score(part) for part in parts]), tuple(map(len, parts)))


def _score(logits: Array) -> float:
    """log p(y) is taken of the log p(y|x), so that it is finite where every p(y|x) is too small for a double."""
    wide = np.ascontiguousarray(logits, np.float64)
    given = wide - _log_sum_exp(wide, axis=1)
    marginal = _log_sum_exp(given, axis=0) - np.log(len(wide))
    divergence = (np.exp(given) * (given - marginal)).sum(axis=1)
    return float(np.exp(divergence.mean()))


def _log_sum_exp(values: Doubles, axis: int) -> Doubles:
    top = values.max(axis=axis, keepdims=True)
    total: Doubles = top + np.log(np.exp(values - top).sum(axis=axis, keepdims=True))
    return total
