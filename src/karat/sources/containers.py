"""Whether a video file is whole, by its outermost structure, where a container does not count its frames."""

from __future__ import annotations

from pathlib import Path

from .guard import refusal

_EBML, _SEGMENT = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"


def check_whole(path: Path) -> None:
    """Refuses Matroska and AVI files shorter than they declare and GIFs without their end mark."""
    with path.open("rb") as file:
        head = file.read(4096)
        size = file.seek(0, 2)
        file.seek(max(0, size - 64))
        tail = file.read().rstrip(b"\0")
    if size == 0:
        raise refusal(path, "is empty (0 bytes)", "a video was expected", "write the file again")
    if head.startswith(_EBML):
        declared = _matroska_size(head)
    elif head.startswith(b"RIFF"):
        declared = int.from_bytes(head[4:8], "little") + 8
    else:
        declared = 0
    if declared > size:
        raise _truncated(path, f"{size} of {declared} declared bytes are there")
    if head.startswith(b"GIF8") and not tail.endswith(b";"):
        raise _truncated(path, "its end mark is missing")


def _matroska_size(head: bytes) -> int:
    """The declared end of the segment, 0 where it was written as a live stream and is not known."""
    length, start = _number(head, len(_EBML))
    place = start + length
    if head[place : place + 4] != _SEGMENT:
        return 0
    length, start = _number(head, place + 4)
    unknown = length == (1 << 7 * (start - place - 4)) - 1
    return 0 if unknown else start + length


def _number(data: bytes, place: int) -> tuple[int, int]:
    """An EBML number of 1 to 8 bytes and where it ends; its leading zeros say how long it is."""
    width = 9 - data[place].bit_length()
    value = int.from_bytes(data[place : place + width], "big")
    return value & ((1 << 7 * width) - 1), place + width


def _truncated(path: Path, share: str) -> Exception:
    return refusal(path, f"is truncated: {share}", "all of it must be", "encode or copy it again")
