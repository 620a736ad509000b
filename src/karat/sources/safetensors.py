"""The safetensors format: an 8-byte little-endian header length, a JSON header, then the data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from .arrays import choose
from .guard import MIB, refusal
from .slab import Slab, file_slab
from .strict import loads

MAX_HEADER = 16 * MIB
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}


def _tensors_of(path: Path) -> tuple[dict[str, Any], int]:
    """What the header says of every tensor, checked, and where the data starts."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(MAX_HEADER, size - 8):
            raise refusal(
                path,
                f"declares a header of {length} bytes in a file of {size}",
                "a safetensors header fits in the file and in 16 MiB",
                "copy or write the file again",
            )
        header = loads(file.read(length))
    data_start = 8 + length
    if not isinstance(header, dict):
        raise refusal(path, "has a header that is no object", "safetensors was expected", "write the file again")
    tensors = {key: value for key, value in header.items() if key != "__metadata__"}
    for key, value in tensors.items():
        _check_tensor(f"{path}[{key}]", value, size - data_start)
    return tensors, data_start


def open_safetensors(path: Path, names: tuple[str, ...], label_names: tuple[str, ...]) -> Slab:
    tensors, data_start = _tensors_of(path)
    chosen = choose(path, list(tensors), names, label_names)
    return _tensor_slab(path, chosen, tensors[chosen], data_start)


def safetensors_slabs(path: Path) -> dict[str, Callable[[], Slab]]:
    """What announces each tensor of a file, whose header is read once."""
    tensors, data_start = _tensors_of(path)
    return {name: partial(_tensor_slab, path, name, entry, data_start) for name, entry in tensors.items()}


def _tensor_slab(path: Path, name: str, entry: Any, data_start: int) -> Slab:
    begin, end = entry["data_offsets"]

    @contextmanager
    def at_data() -> Iterator[BinaryIO]:
        with path.open("rb") as file:
            file.seek(data_start + begin)
            yield cast("BinaryIO", _Window(file, end - begin))

    return file_slab(
        f"{path}[{name}]",
        tuple(entry["shape"]),
        np.dtype(DTYPES[entry["dtype"]]),
        at_data,
        bfloat16=entry["dtype"] == "BF16",
    )


def _check_tensor(name: str, entry: Any, available: int) -> None:
    match entry:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [int(begin), int(end)]} if all(
            type(side) is int and side >= 0 for side in shape
        ):
            pass
        case _:
            raise refusal(
                name,
                f"is described by {json.dumps(entry)[:80]}",
                "dtype, shape and data_offsets were expected",
                "write the file again",
            )
    if kind not in DTYPES:
        raise refusal(name, f"has dtype {kind[:20]!r}", f"one of {', '.join(DTYPES)} was expected", "convert it")
    need = math.prod(shape) * np.dtype(DTYPES[kind]).itemsize
    if not 0 <= begin <= end <= available or end - begin != need:
        raise refusal(
            name,
            f"lies at bytes {begin} to {end}",
            f"{need} bytes inside the {available} bytes of data were expected",
            "copy or write the file again",
        )


class _Window:
    """The next `left` bytes of a file, so that a tensor ends where its entry says."""

    def __init__(self, file: Any, left: int) -> None:
        self._file = file
        self._left = left

    def readinto(self, target: memoryview) -> int:
        count: int = self._file.readinto(target[: self._left])
        self._left -= count
        return count

    def seek(self, offset: int, _whence: int) -> None:
        """Forward, from here."""
        self._file.seek(offset, 1)
        self._left -= offset

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data
