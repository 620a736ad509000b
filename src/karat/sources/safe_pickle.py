"""Pickles of plain values and NumPy arrays, read by a machine of our own: nothing that a file names is ever imported,
looked up or called.

Python's unpickler does not serve, even with every name refused: eight bytes, an index in its memo, make it take
gigabytes, and a tuple nested deeply enough, used as a key, ends the interpreter. This one knows the operations that
plain values need (protocols 0 to 5); the few functions that NumPy's pickles call are written here, and what they make
is never larger than the bytes it is made of.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from .guard import GIB, guarded, refusal
from .pickle_machine import Dropped, Machine, Names, PickledArray, PickledType, Unfilled
from .stored import Origin, Stored, StoredArray, Unfit, Window

MAX_FILE = 64 * GIB
GZIP = b"\x1f\x8b"
MAX_VALUES = 20_000_000
MAX_PARTS_IN_FILE = 200_000  # containers and arrays
MAX_DEPTH = 100
SIMPLE = frozenset({str, bytes, bytearray, int, float, bool, type(None)})


def loads(data: bytes, name: object, names: Names | None = None) -> Any:
    """The value: None, truth values, numbers, text, bytes, lists, tuples, dictionaries, and arrays (read-only), scalars
    and types of NumPy; an array of objects is nested lists.

    name: of the file, in refusals.  names: classes by (module, name) that stand for plain arrays, or whose objects are
    left out: they become None.
    """
    return _read(Window(BytesIO(data)), name, names)


def load(path: Path, names: Names | None = None) -> Any:
    """The value in a file, of which little is held: every array of over a KiB is a StoredArray, read when it is asked
    for, unless it holds texts or objects."""
    if not path.is_file():
        raise refusal(path, "is no file", "a pickle was expected", "check the path")
    with guarded(path, "a pickle"), path.open("rb") as file:
        window = Window(file, Origin.of(path, file))
        if not 0 < window.size <= MAX_FILE:
            raise refusal(path, f"has {window.size} bytes", "a pickle has 1 byte to 64 GiB", "check or split the file")
        file.seek(0)
        if file.read(2) == GZIP:
            raise refusal(path, "is compressed", "a pickle is read where it lies", "gunzip it")
        return _read(window, path, names)


def _read(window: Window, name: object, names: Names | None) -> Any:
    try:
        machine = Machine(window, names or {})
        return _Plain(machine).of(machine.run())
    except Unfit as unfit:
        found = str(unfit)
    except Exception as error:  # forged bytes end in more types of errors than are worth telling apart
        found = f"is no sound pickle ({type(error).__name__})"
    raise refusal(
        name, found, "plain values and arrays are all that is read from a pickle", "save it as .npz or as JSON"
    )


class _Plain:
    """Takes what stands for arrays and types out of a value, which is bounded in depth and size: what is shared counts
    wherever it is met, since whoever walks through the value meets it there."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.most = MAX_VALUES if machine.source.origin is None else MAX_PARTS_IN_FILE
        self.known: dict[int, tuple[Any, int, int]] = {}  # by id: plain, size, height; the whole value keeps ids alive
        self.inside: set[int] = set()

    def of(self, value: Any) -> Any:
        return self.visit(value, 0)[0]

    def visit(self, value: Any, depth: int) -> tuple[Any, int, int]:
        """(plain, how many values, how deep)"""
        if type(value) in SIMPLE or isinstance(value, np.generic):
            return value, 1, 0
        if id(value) in self.inside or depth > MAX_DEPTH:
            raise Unfit(f"is nested in over {MAX_DEPTH} levels, or in itself")
        if id(value) not in self.known:
            self.inside.add(id(value))
            self.known[id(value)] = self.measured(value, depth)
            self.inside.remove(id(value))
            if len(self.known) > self.most:
                raise Unfit(f"holds over {self.most} lists, dictionaries and arrays")
        plain, size, height = self.known[id(value)]
        if depth + height > MAX_DEPTH or size > MAX_VALUES:
            raise Unfit(f"expands to over {MAX_VALUES} values or {MAX_DEPTH} levels")
        return plain, size, height

    def measured(self, value: Any, depth: int) -> tuple[Any, int, int]:
        match value:
            case list() | tuple() | dict():
                plain, size, height = [], 1, 1
                for one in value.values() if type(value) is dict else value:
                    inside, count, levels = self.visit(one, depth + 1)
                    plain.append(inside)
                    size, height = size + count, max(height, levels + 1)
                if type(value) is dict:
                    return dict(zip(value, plain, strict=True)), size, height
                return (tuple(plain) if type(value) is tuple else plain), size, height
            case Stored():
                return self.machine.kept(value), 1, 0
            case PickledArray(value=np.ndarray() | StoredArray() as array):
                return array, 1, 0
            case PickledArray(value=nested) if nested is not Unfilled:
                plain, size, height = self.visit(nested, depth + 1)
                return plain, size + 1, height + 1
            case PickledType():
                return value.dtype, 1, 0
            case Dropped():
                return None, 1, 0
        raise Unfit("holds a name or an array without content as a value")
