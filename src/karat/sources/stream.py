"""Frames of one field of one sample, read once from front to back."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .guard import refusal

Array = NDArray[Any]
Frames = Generator[Array, None, None]


class Stream:
    """One pass over frames in bounded memory; what is declared is known before anything is decoded.

    name: what messages call the source.
    shape: of one frame, (H, W, 3), (H, W) or (N, H, W).  dtype: of one frame.
    length: the declared number of frames, None where the source does not say.
    fps: frames per second, None where the source has none.
    labels: the names of segments, empty where there are none.
    still: the single frame holds for every frame of the sample.

    The generator opens what it needs when it starts and closes it when it ends, so a stream that is
    never read holds nothing.
    """

    def __init__(
        self,
        frames: Frames,
        *,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        length: int | None,
        fps: float | None = None,
        labels: tuple[str, ...] = (),
        still: bool = False,
    ) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.length = length
        self.fps = fps
        self.labels = labels
        self.still = still
        self._frames = frames
        self._started = False

    def __iter__(self) -> Iterator[Array]:
        if self._started:
            raise refusal(self.name, "has been read already", "a stream is read once", "open it again")
        self._started = True
        return self._frames

    def close(self) -> None:
        self._frames.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def select(stream: Stream, first: int | None, stride: int) -> Stream:
    """Frames 0, stride, 2 * stride, ... of the first `first` frames (all of them where it is None).

    A still stream stays whole: its frame holds for whatever is selected.
    """
    if stride < 1 or (first is not None and first < 1):
        raise refusal(stream.name, f"was asked for first={first}, stride={stride}", "both start at 1", "raise them")
    if stream.still:
        return stream
    length = stream.length
    if length is not None:
        length = -(-(length if first is None else min(length, first)) // stride)

    def frames() -> Frames:
        try:
            yield from islice(stream, 0, first, stride)
        finally:
            stream.close()

    return Stream(
        frames(),
        name=stream.name,
        shape=stream.shape,
        dtype=stream.dtype,
        length=length,
        fps=None if stream.fps is None else stream.fps / stride,
        labels=stream.labels,
    )
