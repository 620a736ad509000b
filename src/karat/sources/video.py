"""Videos through PyAV: RGB frames one at a time; what a file declares must also decode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .containers import check_whole
from .guard import check_sides, guarded, refusal
from .stream import Array, Frames, Stream

VIDEO_SUFFIXES = frozenset({".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".gif"})
EXPECTED = "a video"
MASK_THRESHOLD = 128

# Without these a text file named .mp4 is a playlist, and a playlist reads other files and addresses.
_SAFE = {"format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,gif", "protocol_whitelist": "file"}


def open_video(path: Path, *, mask: bool) -> Stream:
    """RGB frames (H, W, 3) uint8, or for a mask (H, W) bool where the grey value is 128 or more."""
    with _opened(path) as (_, video):
        height, width = video.codec_context.height, video.codec_context.width
        check_sides(path, width, height)
        length = video.frames or None
        fps = float(video.average_rate) if video.average_rate else None
    return Stream(
        _frames(path, (height, width), length, mask),
        name=str(path),
        shape=(height, width) if mask else (height, width, 3),
        dtype=np.dtype(np.bool_ if mask else np.uint8),
        length=length,
        fps=fps,
    )


def count_packets(path: Path) -> int:
    """How many shown frames the file holds, by demuxing alone: intact packets, nothing decoded."""
    with guarded(path, EXPECTED), _opened(path) as (container, video):
        return sum(
            1 for packet in container.demux(video) if packet.size and not packet.is_corrupt and not packet.is_discard
        )


def _frames(path: Path, size: tuple[int, int], length: int | None, mask: bool) -> Frames:
    decoded = hidden = 0
    with _opened(path) as (container, video):
        video.thread_type = "AUTO"
        for packet in container.demux(video):
            # Edit lists hide packets that the container still counts.
            hidden += packet.is_discard
            for frame in _decode(packet, path, decoded, length):
                if (frame.height, frame.width) != size:
                    raise refusal(
                        path,
                        f"changes its size to {frame.width}x{frame.height} at frame {decoded}",
                        f"it opened with {size[1]}x{size[0]}",
                        "encode it with one size",
                    )
                decoded += 1
                yield frame.to_ndarray(format="gray") >= MASK_THRESHOLD if mask else _rgb(frame)
    if decoded == 0:
        raise refusal(path, "holds no frame that decodes", "a video was expected", "encode or copy it again")
    if length is not None and decoded < length - hidden:
        raise refusal(
            path,
            f"is truncated: {decoded} of {length - hidden} declared frames decode",
            "all of them must",
            "encode or copy it again",
        )


def _decode(packet: Any, path: Path, decoded: int, length: int | None) -> Iterator[Any]:
    """The frames of one packet; a damaged one ends the video."""
    import av

    try:
        frames = packet.decode()
    except av.error.FFmpegError as error:
        raise _damaged(path, decoded, length) from error
    for offset, frame in enumerate(frames):
        if frame.is_corrupt:
            raise _damaged(path, decoded + offset, length)
        yield frame


def _damaged(path: Path, decoded: int, length: int | None) -> Exception:
    of = "" if length is None else f" of {length} declared"
    return refusal(
        path, f"is damaged or truncated: {decoded}{of} frames decode", "all of them must", "encode or copy it again"
    )


def _rgb(frame: Any) -> Array:
    rgb: Array = frame.to_ndarray(format="rgb24")
    return rgb


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """The container and its best video stream; "file:" keeps names with a colon from being addresses."""
    import av

    check_whole(path)
    # Tags that are no UTF-8 end a PyAV before 19, which no longer takes the option.
    tags = {} if int(av.__version__.partition(".")[0]) >= 19 else {"metadata_errors": "replace"}
    with av.open(f"file:{path}", options=dict(_SAFE), **tags) as container:
        video = container.streams.best("video")
        if video is None:
            raise refusal(path, "has no video stream", "a video was expected", "check the file")
        yield container, video
