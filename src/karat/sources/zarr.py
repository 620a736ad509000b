"""Arrays of the zarr format: a folder of chunks, read item by item; optional, and imported when one is met."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .guard import GIB, MAX_WHOLE_BYTES, refusal
from .slab import Slab
from .stream import Array

ZARR = ".zarr"
MAX_CHUNK = GIB


def is_store(path: Path) -> bool:
    """Whether a folder is an array."""
    return path.suffix.lower() == ZARR


def files_of(path: Path) -> list[Path]:
    """Everything in a store, in order."""
    return sorted(one for one in path.rglob("*") if one.is_file())


def open_zarr(path: Path, names: tuple[str, ...]) -> Slab:
    """The array of a store, or of a group the one of a known name or the only one; links are not followed out of it."""
    try:
        import zarr
    except ImportError:
        raise refusal(path, "is zarr", "that is not installed", "pip install 'karat[zarr]'") from None
    _check_inside(path)
    opened = zarr.open(str(path), mode="r")
    array = opened if isinstance(opened, zarr.Array) else _chosen(path, opened, names)
    shape, dtype = tuple(map(int, array.shape)), np.dtype(array.dtype)
    if dtype.kind not in "biuf":
        raise refusal(path, f"holds {dtype}", "numbers were expected", "convert it")
    if math.prod(array.chunks) * dtype.itemsize > MAX_CHUNK:
        raise refusal(path, f"has chunks of shape {array.chunks}", "one takes at most 1 GiB", "write smaller chunks")

    def item(index: int) -> Array:
        return np.asarray(array[index])

    def read(depth: int) -> Iterator[Array]:
        if not depth:
            if math.prod(shape) * dtype.itemsize > MAX_WHOLE_BYTES:
                raise refusal(path, f"has shape {shape}", "8 GiB can be read whole", "give a stack of maps")
            yield np.asarray(array[...])
            return
        yield from (np.asarray(array[index]) for index in np.ndindex(shape[:depth]))

    return Slab(str(path), shape, dtype, read, item)


def _chosen(path: Path, group: Any, names: tuple[str, ...]) -> Any:
    """The array of a group that is meant."""
    found = dict(group.arrays())
    known = [name for name in names if name in found]
    if not known and len(found) != 1:
        listed = ", ".join(sorted(found)[:8]) or "none"
        raise refusal(
            path,
            f"holds {len(found)} arrays ({listed})",
            f"one, or one named {' or '.join(names)}, was expected",
            "rename it",
        )
    return found[known[0]] if known else next(iter(found.values()))


def _check_inside(path: Path) -> None:
    """No entry of the store lies elsewhere."""
    root = path.resolve()
    for entry in path.rglob("*"):
        if entry.is_symlink() and not entry.resolve().is_relative_to(root):
            raise refusal(entry, "leads out of the store", "its chunks were expected in it", "copy them")
