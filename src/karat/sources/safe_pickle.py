"""Pickles of plain values and NumPy arrays, read by a machine of our own: nothing that a file names is ever imported,
looked up or called.

Python's unpickler does not serve, even with every name refused: eight bytes, an index in its memo, make it take
gigabytes, and a tuple nested deeply enough, used as a key, ends the interpreter. This one knows the operations that
plain values need (protocols 0 to 5); the few functions that NumPy's pickles call are written here, and what they make
is never larger than the bytes it is made of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .guard import refusal
from .pickle_machine import Dropped, Machine, Names, PickledArray, PickledType, Unfilled, Unfit

MAX_VALUES = 20_000_000
MAX_DEPTH = 100
SIMPLE = frozenset({str, bytes, bytearray, int, float, bool, type(None)})


def loads(data: bytes, name: object, names: Names | None = None) -> Any:
    """The value: None, truth values, numbers, text, bytes, lists, tuples, dictionaries, and arrays (read-only), scalars
    and types of NumPy; an array of objects is nested lists.

    name: of the file, in refusals.  names: classes by (module, name) that stand for plain arrays, or whose objects are
    left out: they become None.
    """
    try:
        return _Plain().of(Machine(data, names or {}).run())
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

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Any, int, int]] = {}  # by id: itself (kept alive), plain, size, height
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
            self.known[id(value)] = value, *self.measured(value, depth)
            self.inside.remove(id(value))
        _, plain, size, height = self.known[id(value)]
        if depth + height > MAX_DEPTH or size > MAX_VALUES:
            raise Unfit(f"expands to over {MAX_VALUES} values or {MAX_DEPTH} levels")
        return plain, size, height

    def measured(self, value: Any, depth: int) -> tuple[Any, int, int]:
        match value:
            case list() | tuple() | dict():
                inside = value.values() if type(value) is dict else value
                visited = [self.visit(one, depth + 1) for one in inside]
                plain = [one for one, _, _ in visited]
                size, height = 1 + sum(one for _, one, _ in visited), 1 + max((one for _, _, one in visited), default=0)
                if type(value) is dict:
                    return dict(zip(value, plain, strict=True)), size, height
                return (tuple(plain) if type(value) is tuple else plain), size, height
            case PickledArray(value=np.ndarray() as array):
                return array, 1, 0
            case PickledArray(value=nested) if nested is not Unfilled:
                plain, size, height = self.visit(nested, depth + 1)
                return plain, size + 1, height + 1
            case PickledType():
                return value.dtype, 1, 0
            case Dropped():
                return None, 1, 0
        raise Unfit("holds a name or an array without content as a value")
