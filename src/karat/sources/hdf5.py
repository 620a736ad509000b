"""HDF5 files are hostile: no name leads out of one, and nothing is read that is larger than it may be."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any, Self

import numpy as np

from .guard import GIB, MIB, refusal
from .hdf5_heap import declared_text, endless_heap
from .stream import Array

MAX_BYTES = 8 * GIB  # of all that is read
TRUSTED_BYTES = GIB  # of which no file is too small to hold as much
MAX_RATIO = 200
MAX_TEXT = 64 * MIB
MAX_TEXTS = 100_000
MAX_ATTRIBUTE = 16 * MIB
MAX_LINKS = 10_000_000
MAX_CHUNK = 256 * MIB  # that a chunk can expand to unseen
MAX_DEFLATED = 1032  # times its size, which is what deflate can make of a chunk
DEFLATE, SHUFFLE, CHECKSUM = FILTERS = 1, 2, 3
CHECKSUM_BYTES = 4


class Hdf5:
    """An open file, read by the names of its datasets."""

    def __init__(self, path: Path) -> None:
        try:
            import h5py
        except ImportError:
            raise refusal(
                path, "is HDF5", "h5py, which reads such poses, is not installed", "pip install 'karat[pose]'"
            ) from None
        with path.open("rb") as file:
            if not file.read(1):
                raise refusal(path, "is empty (0 bytes)", "HDF5 was expected", "write the file again")
        self.path = path
        self._size = path.stat().st_size
        self._most = self._left = min(MAX_BYTES, max(TRUSTED_BYTES, MAX_RATIO * self._size))
        self._h5py = h5py
        self._file = h5py.File(path, "r")
        try:
            self._check_links()
            if self._file.id.get_create_plist().get_sizes() != (8, 8) or endless_heap(path) is not None:
                raise refusal(path, "is damaged where its texts are", "HDF5 was expected", "write the file again")
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._file

    def names(self, group: str = "/") -> list[str]:
        """What a group holds; nothing where there is no such group."""
        found = self._file.get(group)
        return list(found) if isinstance(found, self._h5py.Group) else []

    def target(self, name: str) -> str:
        """Where a name leads to, by a link inside the file or by itself."""
        link = self._file.get(name, getlink=True)
        return str(link.path) if isinstance(link, self._h5py.SoftLink) else name

    def array(self, name: str) -> Array:
        """Numbers, or a table of numbers and of text of a fixed width."""
        dataset = self._dataset(name)
        if dataset.dtype.hasobject or dataset.shape is None:
            raise self._unfit(name, f"is {dataset.dtype}", "an array of numbers was expected")
        self._check_size(name, dataset)
        found: Array = np.asarray(dataset[()])
        return found

    def texts(self, name: str) -> list[str]:
        """A list of texts, of fixed or of any width; one that is no list is the only one."""
        dataset = self._dataset(name)
        if dataset.dtype.kind == "S":
            found = self.array(name).ravel().tolist()
        elif self._h5py.check_string_dtype(dataset.dtype) is None or not dataset.size:
            if dataset.size or dataset.dtype.kind not in "Of":
                raise self._unfit(name, f"is {dataset.dtype}", "text was expected")
            found = []
        else:
            if dataset.size > MAX_TEXTS:
                raise self._unfit(name, f"has {dataset.size} texts", f"at most {MAX_TEXTS} were expected")
            self._check_size(name, dataset)
            if declared_text(self.path, dataset) > MAX_TEXT:
                raise self._unfit(name, f"declares over {MAX_TEXT // MIB} MB of text", "less was expected")
            found = self._texts(name, dataset)
        return [_text(one) for one in found]

    def _texts(self, name: str, dataset: Any) -> list[Any]:
        """So many at once as the file would fill a bounded memory: all may be the same long one."""
        at_once = max(MAX_TEXT // self._size, 1)
        found, size = [], 0
        if not dataset.shape:
            return [dataset[()]]
        for start in range(0, len(dataset), at_once):
            some = dataset[start : start + at_once].ravel().tolist()
            size += sum(map(len, some))
            if size > MAX_TEXT:
                raise self._unfit(name, f"has over {MAX_TEXT // MIB} MB of text", "less was expected")
            found += some
        return found

    def text(self, name: str) -> str:
        """The only text of a dataset; empty where there is no such dataset."""
        return next(iter(self.texts(name)), "") if name in self else ""

    def attribute(self, name: str, key: str) -> Any:
        """The value of an attribute, text as such; None where there is none."""
        found = self._file.get(name)
        if found is None or key not in found.attrs:
            return None
        about = found.attrs.get_id(key)
        if about.shape is None:
            return None
        texts = self._h5py.check_string_dtype(about.dtype) is not None
        size = math.prod(about.shape) * about.dtype.itemsize
        if size > MAX_ATTRIBUTE or (about.dtype.hasobject and not (texts and size <= about.dtype.itemsize)):
            raise self._unfit(
                f"{name}, {key}", f"is {about.dtype} of shape {about.shape}", "a small attribute was expected"
            )
        value = found.attrs[key]
        value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
        return _text(value) if isinstance(value, bytes | str) else value

    def _dataset(self, name: str) -> Any:
        found = self._file.get(name)
        if not isinstance(found, self._h5py.Dataset):
            raise refusal(self.path, f"holds no {name}", "a dataset of that name was expected", "write the file again")
        if found.external or found.is_virtual:
            raise self._unfit(name, "lies in another file", "one file was expected")
        return found

    def _check_links(self) -> None:
        """No name leads to another file."""
        count = 0

        def strange(name: str, link: Any) -> str | None:  # nothing may be raised out of the library's own loop
            nonlocal count
            count += 1
            return name if count > MAX_LINKS or isinstance(link, self._h5py.ExternalLink) else None

        name = self._file.visititems_links(strange)
        if count > MAX_LINKS:
            raise refusal(self.path, f"has over {MAX_LINKS} names", "fewer were expected", "split it")
        if name is not None:
            raise self._unfit(name, "leads to another file", "one file was expected")

    def _check_size(self, name: str, dataset: Any) -> None:
        """The memory that reading takes, packed chunks included, before anything is read."""
        size = dataset.size * dataset.dtype.itemsize
        self._left -= size
        if self._left < 0:
            raise self._unfit(
                name,
                f"declares {size / GIB:.1f} GB",
                f"at most {self._most / GIB:.0f} GB are read from a file of its size",
            )
        if dataset.chunks is None:
            return
        properties = dataset.id.get_create_plist()
        filters = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
        if not set(FILTERS).issuperset(filters) or filters.count(DEFLATE) > 1:
            raise self._unfit(name, f"is packed by the filters {filters}", "gzip and shuffle were expected")
        whole = math.prod(dataset.chunks) * dataset.dtype.itemsize
        if whole > max(size, MAX_CHUNK):
            raise self._unfit(name, f"has chunks of {whole / MIB:.0f} MB", "none larger than its content was expected")
        if DEFLATE not in filters:
            return
        skipped = 1 << filters.index(DEFLATE)

        large: list[Any] = []

        def note(chunk: Any) -> None:
            if chunk.size * MAX_DEFLATED > MAX_CHUNK and not chunk.filter_mask & skipped:
                large.append(chunk.chunk_offset)

        dataset.id.chunk_iter(note)
        most = whole + CHECKSUM_BYTES
        for place in large:
            _, data = dataset.id.read_direct_chunk(place)
            if len(zlib.decompressobj().decompress(data, most + 1)) > most:
                raise self._unfit(name, "expands to more than it declares", "a sound file was expected")

    def _unfit(self, name: str, found: str, expected: str) -> Exception:
        return refusal(f"{self.path}[{name}]", found, expected, "write the file again, as one plain file")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
