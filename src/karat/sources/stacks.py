"""Array files that hold many samples, one after another along their first axis."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .arrays import open_npy, open_npz
from .fingerprint import digest
from .guard import GIB, check_frame, refusal
from .safetensors import open_safetensors
from .slab import Slab
from .stream import Array
from .zarr import ZARR, is_store, open_zarr

STACK_SUFFIXES = frozenset({".npy", ".npz", ".safetensors", ZARR})
MAX_PACKED = GIB  # of what is read whole to reach any of its items, and of all that is kept of it
MAX_ITEMS = 1_000_000


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
    """One sample, of `single` axes, of a file: the whole array, or what is at `index` of a stack."""

    path: Path
    index: int | None
    arrays: tuple[str, ...]
    single: int

    def open(self) -> Array:
        """The array of this sample."""
        slab = array_slab(self.path, self.arrays)
        if self.index is None:
            check_frame(slab.name, slab.shape, slab.dtype.itemsize)
            (item,) = slab.read(0)
        elif slab.packed:
            item = _WHOLE.read(self.path, slab)[self.index]
        else:
            check_frame(slab.name, slab.shape[1:], slab.dtype.itemsize)
            item = slab.item(self.index)
        return item if item.ndim == self.single else item[..., 0, :, :]

    def digest(self) -> str:
        """sha256 of the content, in hex: as of the same array in memory."""
        return digest(self.open())


def samples_of(path: Path, arrays: tuple[str, ...], single: int) -> Mapping[str, StackItem] | None:
    """The samples of a file whose array has one axis more than a sample's `single`, besides an axis of one channel
    before the last two; "" is the only one. None where the file is no array, or one of another number of axes."""
    if path.suffix.lower() not in STACK_SUFFIXES:
        return None
    slab = array_slab(path, arrays)
    if len(slab.shape) == single:
        return {"": StackItem(path, None, arrays, single)}
    if len(slab.shape) != single + 1 and (len(slab.shape) != single + 2 or slab.shape[-3] != 1):
        return None
    if 0 in slab.shape or slab.shape[0] > MAX_ITEMS:
        found, most = f"is a stack of shape {slab.shape}", f"one holds 1 to {MAX_ITEMS} samples that have pixels"
        raise refusal(slab.name, found, most, "save them again, in several files if they are more")
    width = max(4, len(str(slab.shape[0] - 1)))
    return {f"{index:0{width}d}": StackItem(path, index, arrays, single) for index in range(slab.shape[0])}


class _Whole:
    """The arrays that were read whole last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int], Array] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, path: Path, slab: Slab) -> Array:
        """The whole array of a file."""
        about = path.stat()
        key = (slab.name, about.st_mtime_ns, about.st_size)
        with self._lock:
            if key not in self._kept:
                size = math.prod(slab.shape) * slab.dtype.itemsize
                if size > MAX_PACKED:
                    raise refusal(
                        slab.name,
                        f"is a stack of {size / GIB:.1f} GB that is packed or in Fortran order",
                        "1 GB is read whole",
                        "save it with np.save(path, np.ascontiguousarray(array)), which is read item by item",
                    )
                (self._kept[key],) = slab.read(0)
                while sum(array.nbytes for array in self._kept.values()) > MAX_PACKED:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


_WHOLE = _Whole()
