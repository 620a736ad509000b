"""Where HDF5 keeps texts of any length: heaps in which its library, up to version 2.0, may go round for ever."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

from .guard import GIB

SIGNATURE = b"GCOL\x01\0\0\0"
HEADER, ENTRY = 16, 16
MAX_SCANNED = GIB  # what is larger holds pictures, and is as large as it says


def endless_heap(path: Path) -> int | None:
    """The place of a heap with an entry of no size, at which the library stops for ever; None where there is none.

    A heap is its signature, its size in 8 bytes, and entries: a number in 2 bytes, 6 that do not matter, a size in 8,
    and, but for number 0, so many bytes filled up to a multiple of 8. Number 0 is what is left; it counts its own head.
    """
    size = path.stat().st_size
    if not HEADER <= size <= MAX_SCANNED:
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        heap = data.find(SIGNATURE)
        while heap >= 0:
            if _is_endless(data, heap, size):
                return heap
            heap = data.find(SIGNATURE, heap + 1)
    return None


def declared_text(path: Path, dataset: Any) -> int:
    """How much text the entries of a dataset declare, in bytes, as far as they lie open: the library takes memory for
    it before it looks whether there is any. An entry is a length in 4 bytes, the place of a heap, and a number in it.
    """
    places: list[tuple[int, int]] = []
    if dataset.chunks is None:
        start = dataset.id.get_offset()
        places += [(start, dataset.size)] if start is not None else []
    elif not dataset.id.get_create_plist().get_nfilters():
        dataset.id.chunk_iter(lambda chunk: places.append((chunk.byte_offset, chunk.size // ENTRY)))
    total = 0
    with path.open("rb") as file:
        for start, count in places:
            file.seek(start)
            entries = file.read(count * ENTRY)
            total += sum(length for (length,) in struct.iter_unpack("<I12x", entries[: len(entries) // ENTRY * ENTRY]))
    return total


def _is_endless(data: mmap.mmap, heap: int, size: int) -> bool:
    if heap + HEADER > size:
        return False
    (length,) = struct.unpack_from("<Q", data, heap + 8)
    place, end = heap + HEADER, min(heap + length, size)
    while place + ENTRY <= end:
        number, _, taken = struct.unpack_from("<HHxxxxQ", data, place)
        step = ENTRY + -(-taken // 8) * 8 if number else taken
        if not step:
            return True
        place += step
    return False
