"""Precision and recall over what is ranked by a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
RECALLS = np.linspace(0.0, 1.0, 101)  # the recall points of Pascal VOC and COCO
EPS = float(np.spacing(1.0))


@dataclass(frozen=True)
class Ranked:
    """Interpolated precision (T, 101) at the recall points, and the largest recall (T), of T thresholds."""

    precision: Array
    recall: Array

    @property
    def ap(self) -> Array:
        """Average precision (T)."""
        mean: Array = self.precision.mean(axis=-1)
        return mean


def ranked(
    score: Array,
    right: Array,
    wrong: Array,
    truths: Array,
    arithmetic: Literal["exact", "published"] = "exact",
    eps: float = EPS,
) -> Ranked:
    """Precision made monotone and read at 101 recalls, 0 beyond the largest recall that is reached.

    score: (n), ranked falling, equal ones in their order.  right, wrong: (n, T) booleans; what is neither is left out.
    truths: (T) how many there are to be found; NaN results where there are none.
    "published" computes as pycocotools and its likes do: the precision is tp / (fp + tp + eps), and recalls are
    compared in floating point, where "exact" divides what it counted and compares integers.
    """
    order = np.argsort(-score, kind="stable")
    right, seen = right[order], np.cumsum((right | wrong)[order], axis=0, dtype=np.int64)
    precision, recall = np.full((len(truths), len(RECALLS)), np.nan), np.full(len(truths), np.nan)
    for t in np.flatnonzero(truths):
        hits = np.flatnonzero(right[:, t])  # precision only rises there
        found, shown = np.arange(1, len(hits) + 1), seen[hits, t]
        if arithmetic == "exact":
            at, first = found / shown, -(-np.arange(len(RECALLS)) * int(truths[t]) // (len(RECALLS) - 1)) - 1
        else:
            at = found / ((shown - found) + found + eps)
            first = np.searchsorted(found / truths[t], RECALLS, side="left")
        best = np.maximum.accumulate(at[::-1])[::-1]
        first = first.clip(min=0)
        reached = first < len(hits)
        precision[t] = 0.0
        precision[t, reached] = best[first[reached]]
        recall[t] = len(hits) / truths[t]
    return Ranked(precision, recall)
