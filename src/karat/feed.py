"""A field's frames as statistics want them: selected, in range, at the size of the truth."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import cv2
import numpy as np

from karat.errors import InputError
from karat.kernels.pixels import nearest as nearest_pixels
from karat.metric import Array
from karat.sources.stream import Stream
from karat.suite import Reading

ON_SCALE = ("field", "spread", "ensemble")  # kinds of fields that a declared scale is for


class Feed:
    """Reads one stream block by block; `size` (H, W) is what its frames are brought to, None leaves them."""

    def __init__(self, stream: Stream, kind: str, reading: Reading, size: tuple[int, int] | None = None) -> None:
        self.stream, self.kind, self.reading, self.size = stream, kind, reading, size
        self.read, self.ended = 0, False
        fitted = map(self._fit, stream)
        self._frames: Iterator[Array] = chain.from_iterable(map(repeat, fitted)) if stream.still else fitted

    def take(self, count: int) -> Array:
        """Up to `count` further frames, stacked; fewer where the source ends."""
        frames: list[Array] = []
        while len(frames) < count and not self.ended:
            frame = next(self._frames, None)
            self.ended = frame is None
            if frame is not None:
                frames.append(frame)
        self.read += len(frames)
        return np.stack(frames) if frames else np.zeros((0, *self.stream.shape), self.stream.dtype)

    def _fit(self, frame: Array) -> Array:
        if self.kind == "frames":
            frame = as_bytes(frame, self.reading.value_range, self.stream.name)
        if self.kind in ON_SCALE:
            frame = in_units(frame, self.reading, self.kind == "spread", self.stream.name)
        return (
            frame if self.size is None else resized(frame, self.kind, self.size, self.reading.depth_resize == "nearest")
        )


def size_of(stream: Stream, kind: str) -> tuple[int, int]:
    """Height and width of a stream's frames."""
    height, width = stream.shape[-2:] if kind in ("segments", "ensemble") else stream.shape[:2]
    return height, width


def as_bytes(frame: Array, value_range: tuple[float, float] | None, name: str) -> Array:
    """Bytes stay; floats in a declared range become bytes, rounded half to even."""
    if frame.dtype == np.uint8:
        return frame
    if value_range is None:
        found = (
            f", from {np.fmin.reduce(frame, axis=None):.4g} to {np.fmax.reduce(frame, axis=None):.4g} in the first"
            if frame.size
            else ""
        )
        raise InputError(
            f"{name} holds {frame.dtype} frames{found}: say what is black and white with --range, such as --range 0..1."
        )
    low, high = value_range
    levels = (frame.astype(np.float64) - low) * (255 / (high - low))
    if frame.size and not (levels.min() >= -1e-3 and levels.max() <= 255 + 1e-3):
        if np.isnan(levels).any():
            raise InputError(f"{name} holds NaN, which is in no range: replace it.")
        raise InputError(
            f"{name} holds values from {frame.min():.4g} to {frame.max():.4g}, outside the declared range "
            f"{low:g}..{high:g}: declare the right one with --range."
        )
    rounded: Array = np.rint(levels.clip(0, 255)).astype(np.uint8)
    return rounded


def in_units(frame: Array, reading: Reading, spread: bool, name: str) -> Array:
    """Values brought from the range they are stored in to the scale they stand for: (x - a) (d - c) / (b - a) + c; of a
    standard deviation only stretched. Without a declared scale they are what they are.

    Without a declared range, unsigned numbers of 8 and 16 bits are stored in that of their type, and floats are on the
    scale already. A range that ends at 1 is of floats, beside pictures too.
    """
    if reading.scale is None:
        return frame
    stored = reading.stored
    if frame.dtype in (np.uint8, np.uint16) and (stored is None or stored[1] <= 1):
        stored = (0.0, float(np.iinfo(frame.dtype).max))
    if stored is None:
        if frame.dtype.kind == "f":
            return frame
        raise InputError(
            f"{name} holds {frame.dtype}: say what range it is stored in with --from, such as --from 0..255."
        )
    (a, b), (c, d) = stored, reading.scale
    wide = frame.astype(np.float64)
    return wide * (d - c) / (b - a) if spread else (wide - a) * (d - c) / (b - a) + c


def resized(frame: Array, kind: str, size: tuple[int, int], nearest: bool) -> Array:
    """The frame at `size`: linear where the truth is taller, else area; labels by nearest neighbour."""
    height, width = size
    if kind == "segments" and frame.ndim == 3:
        return (
            np.stack([resized(mask, kind, size, nearest) for mask in frame])
            if len(frame)
            else np.zeros((0, *size), bool)
        )
    if kind in ("segments", "plain") or (kind == "depth" and nearest):
        return nearest_pixels(frame, size)
    if kind == "ensemble":
        return np.stack([resized(one, "field", size, nearest) for one in frame])
    wide = frame if kind == "frames" else frame.astype(np.float64)
    how = cv2.INTER_LINEAR if height > frame.shape[0] else cv2.INTER_AREA
    changed: Array = cv2.resize(wide, (width, height), interpolation=how)
    return changed
