"""Files are hostile: the bounds, and how a refusal is told."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from karat.errors import InputError, KaratError, told

MIB = 1 << 20
GIB = 1 << 30
MAX_SIDE = 16384
MAX_FRAME_BYTES = GIB
MAX_WHOLE_BYTES = 8 * GIB
MAX_FILE_IN_MEMORY = 2 * GIB


def refusal(name: object, found: str, expected: str, remedy: str) -> InputError:
    """The one sentence: what was found, what was expected, what to do."""
    return InputError(f"{told(name)} {told(found)}, but {told(expected)}: {told(remedy)}.")


@contextmanager
def guarded(name: object, expected: str) -> Iterator[None]:
    """Turns whatever a parser of hostile bytes raises into one InputError.

    Everything is caught on purpose: zipfile, json, struct and the codecs raise far more types on
    forged input than they document.
    """
    try:
        yield
    except KaratError:
        raise
    except Exception as error:
        # The system's own words repeat the path.
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = " ".join(words.split())[:200]
        why = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        raise refusal(
            name, f"cannot be read ({why})", f"{expected} was expected", "check or replace the file"
        ) from error


def read_bounded(path: Path, limit: int, purpose: str) -> bytes:
    """The whole file, refused before it is loaded where it is empty or larger than `limit` bytes."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise refusal(path, "is empty (0 bytes)", f"{purpose} was expected", "write the file again")
        if size > limit:
            raise refusal(
                path, f"has {size} bytes", f"{purpose} may have at most {limit}", "split it or choose another format"
            )
        return file.read(size)


def read_exactly(file: BinaryIO, target: memoryview, name: str) -> None:
    """Fills `target` from the file, or says how much was missing."""
    filled = 0
    while filled < len(target):
        # ZipExtFile and buffered files have readinto; BinaryIO does not declare it.
        count: int = file.readinto(target[filled:])  # type: ignore[attr-defined]
        if not count:
            raise refusal(
                name, "ends early", f"{len(target) - filled} more bytes were declared", "copy or write the file again"
            )
        filled += count


def check_frame(name: object, shape: tuple[int, ...], itemsize: int) -> None:
    """Refuses a single frame that would not fit in a bounded amount of memory."""
    size = math.prod(shape) * itemsize
    if size > MAX_FRAME_BYTES:
        raise refusal(
            name,
            f"has frames of shape {shape} ({size / GIB:.1f} GiB each)",
            "one frame may take at most 1 GiB",
            "check that the axes are in the right order",
        )


def check_sides(name: object, width: int, height: int) -> None:
    """Refuses empty pictures and decompression bombs before anything is decoded."""
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise refusal(
            name,
            f"declares a size of {width}x{height} pixels",
            f"a side has 1 to {MAX_SIDE} pixels",
            "check the file or scale it down",
        )
