"""Arrays whose items are read one after another: in memory, or at the current place of an open file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from .guard import MAX_WHOLE_BYTES, read_exactly, refusal
from .stream import Array, Frames


@dataclass(frozen=True)
class Slab:
    """An array that has been announced and not yet read.

    read(depth) yields, in C order, the items under its first `depth` axes, each of shape[depth:].
    item(index) is one item under the first axis; of what is `packed` it takes as long as the whole.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[int], Iterator[Array]]
    item: Callable[[int], Array]
    labels: tuple[str, ...] = ()
    packed: bool = False


def memory_slab(array: Array) -> Slab:
    """An array of the user's, yielded as views."""

    def read(depth: int) -> Iterator[Array]:
        return (_native(array[index]) for index in np.ndindex(array.shape[:depth]))

    name = f"the array of shape {array.shape}"
    return Slab(name, array.shape, _native_dtype(array.dtype), read, lambda index: _native(array[index]))


def file_slab(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    open_at_data: Callable[[], AbstractContextManager[BinaryIO]],
    *,
    fortran: bool = False,
    bfloat16: bool = False,
    labels: tuple[str, ...] = (),
    packed: bool = False,
) -> Slab:
    """An array in a file; `open_at_data` opens the file where the first item starts.

    Fortran order has no first item to stop at, so it is read whole, up to a bound.
    """
    final = np.dtype(np.float32) if bfloat16 else _native_dtype(dtype)

    def finish(item: Array) -> Array:
        if bfloat16:
            widened: Array = (item.astype(np.uint32) << 16).view(np.float32)
            return widened
        if dtype.kind == "b":
            # A forged file can hold bytes other than 0 and 1, which NumPy's own operations trust.
            truth: Array = item.view(np.uint8) != 0
            return truth
        return _native(item)

    def read(depth: int) -> Frames:
        with open_at_data() as file:
            if fortran:
                whole = _take(file, shape[::-1], dtype, name).T
                for index in np.ndindex(shape[:depth]):
                    yield finish(np.ascontiguousarray(whole[index]))
            else:
                for _ in range(math.prod(shape[:depth])):
                    yield finish(_take(file, shape[depth:], dtype, name))
            if file.read(1):
                raise refusal(name, "goes on after its last item", "its header declares fewer bytes", "write it again")

    def item(index: int) -> Array:
        with open_at_data() as file:
            if fortran:
                return finish(np.ascontiguousarray(_take(file, shape[::-1], dtype, name).T[index]))
            file.seek(index * math.prod(shape[1:]) * dtype.itemsize, 1)
            return finish(_take(file, shape[1:], dtype, name))

    if fortran and math.prod(shape) * dtype.itemsize > MAX_WHOLE_BYTES:
        raise refusal(
            name,
            f"is in Fortran order with {math.prod(shape) * dtype.itemsize} bytes",
            "only 8 GiB can be read whole",
            "save np.ascontiguousarray(array)",
        )
    return Slab(name, shape, final, read, item, labels, packed or fortran)


def stack_frames(slab: Slab) -> Frames:
    """(N, T, H, W) booleans as T frames (N, H, W); the file has objects outermost, so all bits are kept packed."""
    count, length, height, width = slab.shape
    row = -(-height * width // 8)
    if count * length * row > MAX_WHOLE_BYTES:
        raise refusal(
            slab.name,
            f"is a stack of {slab.shape} masks",
            "8 GiB of packed bits can be held",
            "store it as a label map or as run lengths",
        )
    packed = np.empty((count * length, row), np.uint8)
    for index, plane in enumerate(slab.read(2)):
        packed[index] = np.packbits(plane.ravel())
    for frame in range(length):
        bits = np.unpackbits(packed[frame::length], axis=1, count=height * width)
        yield bits.view(np.bool_).reshape(count, height, width)


def _take(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Array:
    item = np.empty(shape, dtype)
    if item.nbytes:
        read_exactly(file, item.reshape(-1).view(np.uint8).data, name)
    return item


def _native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=")


def _native(item: Array) -> Array:
    return item.astype(_native_dtype(item.dtype), copy=False)
