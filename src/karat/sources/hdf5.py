"""HDF5 files before anything is read from them: where they lead, and how much memory they ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .guard import GIB, refusal

MAX_BYTES = 2 * GIB
MAX_OBJECTS = 1_000_000


def open_hdf5(path: Path, counts: Callable[[str], bool] = lambda name: True) -> Any:  # noqa: ARG005
    """The open file, in which no name leads to another file and no dataset that counts is larger than it may be."""
    try:
        import h5py
    except ImportError:
        raise refusal(
            path, "is HDF5", "sleap-io, which reads such poses, is not installed", "pip install 'karat[pose]'"
        ) from None
    with path.open("rb") as file:
        if not file.read(1):
            raise refusal(path, "is empty (0 bytes)", "HDF5 was expected", "write the file again")
    opened = h5py.File(path, "r")
    try:
        _check(path, opened, counts)
    except BaseException:
        opened.close()
        raise
    return opened


def _check(path: Path, opened: Any, counts: Callable[[str], bool]) -> None:
    import h5py

    objects = total = 0

    def link(name: str, to: Any) -> None:
        nonlocal objects
        objects += 1
        if objects > MAX_OBJECTS:
            raise refusal(path, f"has over {MAX_OBJECTS} objects", "fewer were expected", "split it")
        if isinstance(to, h5py.ExternalLink):
            raise refusal(path, f"leads from {name} to another file", "one file was expected", "copy it into one")

    def thing(name: str, one: Any) -> None:
        nonlocal total
        if not isinstance(one, h5py.Dataset):
            return
        if one.external or one.is_virtual:
            raise refusal(path, f"takes {name} out of another file", "one file was expected", "copy it into one")
        if counts(name):
            largest = max(one.size or 0, math.prod(one.chunks or ()))
            total += largest * max(one.dtype.itemsize, 1)
        if total > MAX_BYTES:
            raise refusal(
                path, f"declares {total / GIB:.1f} GB by {name}", "at most 2 GB of poses are read", "split it"
            )

    opened.visititems_links(link)
    opened.visititems(thing)
