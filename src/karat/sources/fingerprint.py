"""The identity of content: sha256 of what would be read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from .guard import MIB, guarded, refusal
from .images import images_in
from .stream import Array
from .zarr import files_of, is_store

CHUNK = 4 * MIB


def digest(source: Any) -> str:
    """sha256 in hex: of a file its bytes; of a folder the names, sizes and bytes of its pictures in natural
    order; of an array its type, shape and bytes in C order; of a record what it says itself."""
    if not isinstance(source, Path | np.ndarray):
        own: str = source.digest()
        return own
    name = source if isinstance(source, Path) else "the array"
    state = hashlib.sha256()
    with guarded(name, "something to fingerprint"):
        if not isinstance(source, Path):
            _add_array(state, source)
        elif source.is_dir() and is_store(source):
            for path in files_of(source):
                state.update(f"{path.relative_to(source).as_posix()} {path.stat().st_size} ".encode())
                _add_file(state, path)
        elif source.is_dir():
            pictures = images_in(source)
            if not pictures:
                raise refusal(source, "holds no picture", "a folder of pictures was expected", "check the path")
            for path in pictures:
                encoded = path.name.encode("utf-8", "surrogateescape")
                state.update(f"{len(encoded)} {path.stat().st_size} ".encode() + encoded)
                _add_file(state, path)
        else:
            _add_file(state, source)
    return state.hexdigest()


def _add_file(state: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            state.update(chunk)


def _add_array(state: hashlib._Hash, array: Array) -> None:
    if array.dtype.hasobject:
        raise refusal("the array", "holds Python objects", "numbers were expected", "convert it")
    state.update(f"{array.dtype.str} {array.shape} ".encode())
    if array.ndim == 0:
        state.update(array.tobytes())
    for item in array if array.ndim else ():
        state.update(np.ascontiguousarray(item).tobytes())
