"""Array files that hold many samples, one after another along their first axis."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .arrays import open_npy, open_npz
from .guard import GIB, refusal
from .safetensors import open_safetensors
from .slab import Slab
from .stream import Array
from .zarr import ZARR, is_store, open_zarr

STACK_SUFFIXES = frozenset({".npy", ".npz", ".safetensors", ZARR})
MAX_PACKED = GIB  # of an archive, which is read whole to reach any of its items
KEPT = 2


def array_slab(path: Path, arrays: tuple[str, ...], labels: tuple[str, ...] = ()) -> Slab:
    """The array that a file is about, announced."""
    if is_store(path):
        return open_zarr(path, arrays)
    if path.suffix.lower() == ".npy":
        return open_npy(path)
    opener = open_npz if path.suffix.lower() == ".npz" else open_safetensors
    return opener(path, arrays, labels)


@dataclass(frozen=True)
class StackItem:
    """One sample of a stack."""

    path: Path
    index: int
    arrays: tuple[str, ...]

    def open(self) -> Array:
        """The array of this sample."""
        slab = array_slab(self.path, self.arrays)
        if self.path.suffix.lower() == ".npz":
            item: Array = _WHOLE.read(self.path, slab)[self.index]
            return item
        return slab.item(self.index)

    def digest(self) -> str:
        """sha256 of the content, in hex: as of the same array in memory."""
        array = self.open()
        state = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
        for row in array:
            state.update(row.tobytes())
        return state.hexdigest()


def items(path: Path, arrays: tuple[str, ...], single: int) -> Mapping[str, StackItem] | None:
    """The samples of a file whose array has one axis more than a sample's `single`; None where it is one sample."""
    if path.suffix.lower() not in STACK_SUFFIXES:
        return None
    slab = array_slab(path, arrays)
    if len(slab.shape) != single + 1:
        return None
    width = max(4, len(str(slab.shape[0] - 1)))
    return {f"{index:0{width}d}": StackItem(path, index, arrays) for index in range(slab.shape[0])}


class _Whole:
    """The arrays of the archives that were read last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, int, int], Array] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, path: Path, slab: Slab) -> Array:
        """The whole array of an archive."""
        about = path.stat()
        key = (path, about.st_mtime_ns, about.st_size)
        with self._lock:
            if key not in self._kept:
                size = slab.dtype.itemsize
                for side in slab.shape:
                    size *= side
                if size > MAX_PACKED:
                    raise refusal(
                        slab.name,
                        f"is a stack of {size / GIB:.1f} GB in an archive",
                        "1 GB is read whole",
                        "save it with np.save, which is read item by item",
                    )
                (self._kept[key],) = slab.read(0)
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


_WHOLE = _Whole()
