"""Features: a row for each sample, n x d, of float32 or float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError, counted

Array = NDArray[Any]
Doubles = NDArray[np.float64]
BLOCK = 1024  # rows
LARGEST = 1e40  # above all of float32; the sixth power, as KID takes it, is still a double


def checked(features: Array, least: int = 1, what: str = "features") -> Array:
    """The same array, once it is known to be rows of usable numbers, and at least so many."""
    features = np.asarray(features)
    if features.ndim != 2 or not features.shape[1] or features.dtype.kind not in "fiu":
        raise InputError(
            f"The {what} have shape {features.shape} of {features.dtype}, but numbers (n, d) were expected: give a row "
            "for each sample."
        )
    for start in range(0, len(features), BLOCK):
        rows = features[start : start + BLOCK].astype(np.float64, copy=False)
        usable = (np.abs(rows) <= LARGEST).all(axis=1)
        if not usable.all():
            row = start + int(usable.argmin())
            kind = "beyond 1e40" if np.isfinite(features[row]).all() else "NaN or infinite"
            raise InputError(
                f"Row {row} of the {what} (the first is 0) has values that are {kind}: leave that sample out."
            )
    if len(features) < least:
        there = "is 1 row" if len(features) == 1 else f"are {len(features)} rows"
        raise InputError(f"There {there} of {what}, but at least {least} are needed: give more samples.")
    return features


def pair(pred: Array, truth: Array, least: int = 1, what: str = "features") -> tuple[Array, Array]:
    """Both sides, of as many features."""
    pred, truth = checked(pred, least, f"{what} of the prediction"), checked(truth, least, f"{what} of the truth")
    same_width(pred.shape[1], truth.shape[1])
    return pred, truth


def same_width(pred: int, truth: int) -> None:
    """Refuses sides of different networks."""
    if pred != truth:
        raise InputError(
            f"The prediction has {counted(pred, 'feature')} a sample and the truth has {truth}: take both from one "
            "layer of one network."
        )


def blocks(features: Array, size: int) -> Iterator[Doubles]:
    """The rows in order, `size` at once, in float64 and C order."""
    for start in range(0, len(features), size):
        yield np.ascontiguousarray(features[start : start + size], np.float64)


def unit(features: Array) -> Doubles:
    """Rows of length 1; NaN where all features are 0, since that has no direction."""
    wide = np.ascontiguousarray(features, np.float64)
    with np.errstate(invalid="ignore"):
        rows: Doubles = wide / np.sqrt((wide * wide).sum(axis=-1, keepdims=True))
    return rows


def directed(features: Array, what: str = "features") -> Doubles:
    """Rows of length 1, of rows that all have a direction."""
    rows = unit(features)
    lost = np.isnan(rows[:, 0])
    if lost.any():
        raise InputError(f"Row {int(lost.argmax())} of the {what} (the first is 0) has no direction: all of it is 0.")
    return rows
