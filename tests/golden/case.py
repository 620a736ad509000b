"""One case of a folder of reference outputs, and what an adapter answers to it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
UNDEFINED = re.compile(r"raises\b")  # a text in the place of numbers: the reference stops, so there is no number


@dataclass(frozen=True)
class Answer:
    """Karat's values in the structure of the expected ones, and what is left out: pattern of a path -> reason.

    A path is the keys from the case's root, joined by "/"; patterns are those of fnmatch and cover what lies below.
    """

    values: Any
    skipped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """An entry of index.json: `expected` is the value it points at, `document` all of that file."""

    family: str
    name: str
    folder: Path
    inputs: Mapping[str, Any]
    expected: Any
    document: Any
    protocol: Mapping[str, Any]

    def arrays(self, role: str = "arrays") -> Mapping[str, Array]:
        """The arrays of the npz that is given as `role`."""
        return load_arrays(self.folder / self.inputs[role])

    def array(self, role: str) -> Array:
        """The array whose name is given as `role`; booleans packed into bits come with `<name>_shape`."""
        return unpacked(self.arrays(), self.inputs[role])


def unpacked(arrays: Mapping[str, Array], name: str) -> Array:
    """The array of that name, unpacked where a shape lies beside it."""
    if name not in arrays:
        raise KeyError(f"there is no array {name!r}; there are {', '.join(sorted(arrays))}")
    if f"{name}_shape" not in arrays:
        return arrays[name]
    shape = tuple(map(int, arrays[f"{name}_shape"]))
    return np.unpackbits(arrays[name], count=int(np.prod(shape))).reshape(shape).astype(bool)


def read_case(folder: Path, entry: Mapping[str, Any]) -> Case:
    """The case with what it expects: one reference to a file, or one for each part of the answer."""
    given = entry["expected"]
    if isinstance(given, str):
        expected, document = _referred(folder, given), load_json(folder / given.partition("#")[0])
    else:
        expected = document = {part: _referred(folder, reference) for part, reference in given.items()}
    return Case(entry["family"], entry["case"], folder, entry["inputs"], expected, document, entry["protocol"])


def _referred(folder: Path, reference: str) -> Any:
    """`file.json#/a/0/b` is a JSON pointer into a file; an npz is its arrays."""
    path, _, pointer = reference.partition("#")
    if path.endswith(".npz"):
        return {name: array.tolist() for name, array in load_arrays(folder / path).items()}
    return resolve(load_json(folder / path), pointer)


def resolve(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901)."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


@lru_cache(maxsize=16)
def load_json(path: Path) -> Any:
    """A JSON file, read once."""
    return json.loads(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=4)
def load_arrays(path: Path) -> dict[str, Array]:
    """All arrays of an npz, read once; nothing is unpickled."""
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    for array in found.values():
        array.flags.writeable = False  # other cases read it too
    return found


def forget() -> None:
    """Files are read anew from here on."""
    load_json.cache_clear()
    load_arrays.cache_clear()
