"""Pixel differences: widened before they are subtracted, exact for integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

Array = NDArray[Any]


def difference(pred: Array, truth: Array) -> Array:
    """pred - truth: int32 for bytes, int64 for 16 bits, else float64 (a square of 32 bits can pass int64)."""
    if pred.shape != truth.shape:
        raise InputError(f"The prediction has shape {pred.shape} and the truth {truth.shape}: make them the same.")
    if pred.dtype == truth.dtype == np.uint8:
        return pred.astype(np.int32) - truth
    whole = all(side.dtype.kind in "biu" and side.dtype.itemsize <= 2 for side in (pred, truth))
    wide = np.int64 if whole else np.float64
    with np.errstate(invalid="ignore", over="ignore"):  # of pixels that may be in no region
        return pred.astype(wide) - truth.astype(wide)


def squared_error(pred: Array, truth: Array) -> Array:
    """Squared difference, summed over channels: (B, H, W)."""
    gap = difference(pred, truth)
    return over_channels(gap * gap)


def absolute_error(pred: Array, truth: Array) -> Array:
    """Absolute difference, summed over channels: (B, H, W)."""
    return over_channels(np.abs(difference(pred, truth)))


def ranges(frames: Array) -> Array:
    """max - min of each frame (B, H, W[, C]), NaN left out."""
    flat = frames.reshape(len(frames), -1)
    if not flat.size:
        return np.zeros(len(frames))
    high, low = np.fmax.reduce(flat, axis=1), np.fmin.reduce(flat, axis=1)
    with np.errstate(invalid="ignore"):  # infinite everywhere
        return np.asarray(high.astype(np.float64) - low)


@dataclass(frozen=True)
class Stretched:
    """Values from `low` to `high` brought to -1..1."""

    low: float
    high: float

    def __call__(self, frames: Array) -> Array:
        return (frames.astype(np.float64) - self.low) / ((self.high - self.low) / 2) - 1


def lowest(frames: Array) -> Array:
    """The least of each frame (B, H, W), NaN left out; NaN of nothing."""
    flat = frames.reshape(len(frames), -1)
    return np.asarray(np.fmin.reduce(flat, axis=1)) if flat.size else np.full(len(frames), np.nan)


def over_channels(values: Array) -> Array:
    """The sum over a last axis of channels, where there is one: (B, H, W)."""
    total: Array = values.sum(axis=-1) if values.ndim == 4 else values
    return total


def channels(frames: Array) -> int:
    """Channels of frames (B, H, W[, C])."""
    return frames.shape[-1] if frames.ndim == 4 else 1


def nearest(frame: Array, size: tuple[int, int]) -> Array:
    """A frame (H, W[, C]) at `size` (height, width), pixel i from floor(i old / new) with OpenCV's own rounding."""
    if frame.shape[:2] == size:
        return frame
    rows, columns = (
        np.minimum((np.arange(new) * (1 / (new / old))).astype(np.intp), old - 1)
        for new, old in zip(size, frame.shape[:2], strict=True)
    )
    picked: Array = frame[rows[:, None], columns]
    return picked
