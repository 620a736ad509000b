"""The machine that reads pickles: its stack, its memo, its operations, and what stands for NumPy's functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from .stored import MAX_LEFT, RAW, STRING, UNICODE, UTF8, Kind, Stored, StoredArray, Unfit, Window, arranged
from .stream import Array

Standin = Literal["array", "nothing"]
Names = Mapping[tuple[str, str], Standin]

MAX_STEPS = 10_000_000
MAX_STEPS_IN_FILE = 1_500_000  # what one makes takes up to 100 bytes
MAX_AXES = 32
MAX_EMPTY = 1_000_000  # entries of arrays that take no memory
KEYS: tuple[type, ...] = (str, bytes, int, float, bool, type(None))
TYPES = re.compile(r"b1|[iu][1248]|f[248]|c8|c16|O8?|[US]\d{1,7}")
FUNCTIONS = {
    **{(f"numpy.{core}.multiarray", name): name for core in ("core", "_core") for name in ("_reconstruct", "scalar")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): "_frombuffer" for core in ("core", "_core")},
    ("numpy", "ndarray"): "array",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",
    ("builtins", "bytes"): "bytes",
    ("__builtin__", "bytes"): "bytes",
}


class PickledName:
    """A name that a file asks for, standing for nothing but itself."""

    __slots__ = ("role", "text")

    def __init__(self, module: str, name: str, role: str) -> None:
        self.text, self.role = f"{module}.{name}", role


class PickledType:
    """numpy.dtype, until its byte order is known."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        if not TYPES.fullmatch(code):
            raise Unfit(f"holds arrays of the type {code[:40]!r}")
        self.code, self.order = code, "="

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Item size, alignment and flags as NumPy writes them: of types of one size it leaves them out."""
        match self.code[0]:
            case "U":
                return self.dtype.itemsize, 4, 8
            case "S":
                return self.dtype.itemsize, 1, 0
            case "O":
                return -1, -1, 63
        return -1, -1, 0


class Unfilled:
    """The content of an array that has none yet."""


class PickledArray:
    """numpy.ndarray, until it is filled: with an array, or with nested lists of objects."""

    __slots__ = ("value",)

    def __init__(self, value: Any = Unfilled) -> None:
        self.value = value


class Dropped:
    """An object that is left out, whatever it is filled with."""


class _Mark:
    """Where a container starts on the stack."""


MARK = _Mark()


class Machine:
    """The stack, the memo and the operations."""

    def __init__(self, source: Window, names: Names) -> None:
        self.source, self.names = source, names
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.spent = 0

    def run(self) -> Any:
        most = MAX_STEPS if self.source.origin is None else MAX_STEPS_IN_FILE
        for _ in range(most):
            operation = self.source.take(1)[0]
            if operation == STOP:
                value = self.pop()
                if self.stack or self.source.left:
                    raise Unfit("holds more than one value")
                return value
            if operation not in OPERATIONS:
                raise Unfit(f"uses the operation 0x{operation:02x}")
            OPERATIONS[operation](self)
        raise Unfit(f"takes over {most} steps")

    def spend(self, count: int) -> None:
        """Counts the bytes that arrays are made of, twice where these are spelled as text: more than that is some of
        them many times."""
        self.spent += count
        if self.spent > 2 * self.source.size:
            raise Unfit("uses the same bytes many times")

    # --- the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def top(self) -> Any:
        if self.stack[-1] is MARK:
            raise Unfit("is in disorder")
        return self.stack[-1]

    def pop(self) -> Any:
        value = self.top()
        del self.stack[-1]
        return value

    def pop_many(self) -> list[Any]:
        """All above the last mark, which goes too."""
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            if place == 0:
                raise Unfit("is in disorder")
            place -= 1
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def put(self, key: int) -> None:
        self.memo[key] = self.top()

    # --- containers

    def extend(self, values: list[Any]) -> None:
        into = self.top()
        if type(into) is list:
            into.extend(values)
        elif type(into) is not Dropped:
            raise Unfit("is in disorder")

    def dictionary(self, flat: list[Any]) -> None:
        self.push({})
        self.update(flat)

    def update(self, flat: list[Any]) -> None:
        into = self.top()
        if type(into) is Dropped:
            return
        if type(into) is not dict:
            raise Unfit("is in disorder")
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            key = key.item() if isinstance(key, np.generic) else self.kept(key)
            if type(key) not in KEYS or (type(key) is int and key.bit_length() > 64):
                raise Unfit("has keys that are neither text nor numbers of 64 bits")
            into[key] = value

    # --- what a file names

    def name(self, module: Any, name: Any) -> None:
        module, name = _text(module), _text(name)
        role = FUNCTIONS.get((module, name)) or self.names.get((module, name))
        if role is None:
            raise Unfit(f"asks for {module}.{name}"[:200])
        self.push(PickledName(module, name, role))

    def call(self) -> None:
        given, function = self.pop(), self.pop()
        if type(function) is not PickledName or type(given) is not tuple:
            raise Unfit("calls what is no function")
        self.push(self.result(function, given))

    def result(self, function: PickledName, given: tuple[Any, ...]) -> Any:
        match function.role, given:
            case ("nothing", _) | ("_reconstruct", (PickledName(role="nothing"), *_)):
                return Dropped()
            case "_reconstruct", (PickledName(role="array"), (0,), _):
                return PickledArray()
            case "_frombuffer", (data, dtype, shape, "C" | "F" as order, *axes) if axes in ([], [None]):
                return PickledArray(self.array(shape, dtype, order, data))
            case "_frombuffer", (data, dtype, shape, "K", tuple() as axes):
                return PickledArray(self.array(shape, dtype, axes, data))
            case "scalar", (PickledType() as dtype, data):
                return self.array((), dtype, "C", self.kept(data))[()]
            case "dtype", (code, *_):
                return PickledType(_text(code))
            case "encode", (str() | Stored() as text, "latin1" | "latin-1") if _is_text(text):
                return self.encoded(text)
            case "bytes", ():
                return b""
        raise Unfit(f"calls {function.text} with what it does not take"[:200])

    def new(self) -> None:
        _, kind = self.pop(), self.pop()
        if type(kind) is not PickledName or kind.role != "nothing":
            raise Unfit("makes an object of what is no class")
        self.push(Dropped())

    def build(self) -> None:
        """Fills the array or the type below with its state."""
        state = self.pop()
        match self.top(), state:
            case Dropped(), _:
                pass
            case PickledArray() as array, (*_, shape, dtype, bool() as fortran, data) if array.value is Unfilled:
                array.value = self.array(shape, dtype, "F" if fortran else "C", data)
            case PickledType() as kind, (_, order, None, None, None, *sizes) if tuple(sizes) == kind.sizes:
                if _text(order) not in ("<", ">", "=", "|"):
                    raise Unfit(f"holds arrays of the byte order {_text(order)[:40]!r}")
                kind.order = _text(order)
            case _:
                raise Unfit("gives an object a state that plain arrays do not have")

    def encoded(self, text: str | Stored) -> bytes | Stored:
        """The bytes whose numbers are those of the characters."""
        self.spend(len(text) if isinstance(text, str) else text.size)
        if isinstance(text, str):
            return text.encode(RAW)
        if text.wide:
            raise Unfit("holds bytes above 255")
        return text.encoded()

    def array(self, shape: Any, dtype: Any, order: Any, data: Any) -> Any:
        """The array of these bytes, read-only, or where it is; of objects, nested lists.

        order: C, F, or which of the sides each axis is.
        """
        if type(dtype) is not PickledType or type(shape) is not tuple or not all(type(side) is int for side in shape):
            raise Unfit("describes an array by what is no shape and type")
        if _is_text(data):
            data = self.encoded(data)
        size = data.size if type(data) is Stored else len(data)
        if len(shape) > MAX_AXES:
            raise Unfit(f"holds an array of {len(shape)} axes")
        entries = math.prod(max(side, 1) for side in shape)
        if any(side < 0 for side in shape) or entries > max(size, MAX_EMPTY):
            raise Unfit(f"holds an array of shape {shape} in {size} bytes"[:200])
        self.spend(entries if dtype.code[0] == "O" else size)
        if dtype.code[0] == "O":
            if type(data) is not list or size != math.prod(shape):
                raise Unfit(f"holds an array of shape {shape} with {size} entries"[:200])
            array: Array = np.empty(size, object)
            for place, one in enumerate(data):
                array[place] = one
            return array.reshape(shape).tolist()  # objects are listed in this order, whatever theirs is
        of, axes = dtype.dtype, _axes(order, len(shape))
        if type(data) not in (bytes, bytearray, Stored) or size != math.prod(shape) * of.itemsize:
            raise Unfit(f"holds an array of shape {shape} and {dtype.code} in {size} bytes"[:200])
        sides = shape[::-1] if order == "F" else shape
        if type(data) is Stored and size > MAX_LEFT and of.kind not in "SU":
            return StoredArray(data, of, sides, axes)
        data = bytes(self.kept(data))
        if of.kind == "U" and size:
            codes = np.frombuffer(data, np.dtype("u4").newbyteorder(of.byteorder))
            if codes.max() > 0x10FFFF:
                raise Unfit("holds text beyond Unicode")
        return arranged(data, of, sides, axes)

    def kept(self, value: Any) -> Any:
        """The value itself, out of the file where it was left there."""
        return self.source.kept(value) if type(value) is Stored else value


def _is_text(value: Any) -> bool:
    return type(value) is str or (type(value) is Stored and value.kind is str)


def _axes(order: Any, count: int) -> tuple[int, ...]:
    forward = tuple(range(count))
    axes: tuple[Any, ...] = {"C": forward, "F": forward[::-1]}[order] if type(order) is str else order
    if not all(type(axis) is int for axis in axes) or tuple(sorted(axes)) != forward:
        raise Unfit(f"holds an array whose {count} axes are in no order")
    return axes


def _text(value: Any) -> str:
    if type(value) not in (str, bytes):
        raise Unfit("uses what is no text as a name")
    return value.decode("latin-1") if type(value) is bytes else str(value)


def _whole(digits: bytes) -> int | bool:
    return digits == b"01" if digits in (b"00", b"01") else int(digits)


def _pushing(value: Any) -> Callable[[Machine], Any]:
    return lambda machine: machine.push(value)


def _reading(form: str) -> Callable[[Machine], Any]:
    return lambda machine: machine.push(machine.source.number(form))


def _decoding(form: str, spelling: str, kind: Kind) -> Callable[[Machine], Any]:
    return lambda machine: machine.push(machine.source.payload(machine.source.number(form), spelling, kind))


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _quoted(source: Window) -> Any:
    length = source.length_of_line() - 2
    quote = source.take(1)
    if length < 0 or quote not in (b"'", b'"'):
        raise Unfit("is in disorder")
    text = source.payload(length, STRING, str)
    if source.take(2) != quote + b"\n":
        raise Unfit("is in disorder")
    return text


def _unquoted(source: Window) -> Any:
    text = source.payload(source.length_of_line(), UNICODE, str)
    source.take(1)
    return text


def _protocol(machine: Machine) -> None:
    if machine.source.number("<B") > 5:
        raise Unfit("is of a protocol above 5")


STOP = ord(".")
OPERATIONS: Mapping[int, Callable[[Machine], Any]] = {
    0x80: _protocol,
    0x95: lambda m: m.source.check(m.source.number("<Q")),  # a frame says nothing about values
    ord("("): lambda m: m.push(MARK),
    ord("0"): lambda m: m.pop(),
    ord("1"): lambda m: m.pop_many(),
    # values
    **{ord(code): _pushing(value) for code, value in (("N", None), ("\x88", True), ("\x89", False))},
    **{ord(code): _reading(form) for code, form in (("J", "<i"), ("K", "<B"), ("M", "<H"), ("G", ">d"))},
    **{ord(code): _decoding(form, UTF8, str) for code, form in (("X", "<I"), ("\x8c", "<B"), ("\x8d", "<Q"))},
    **{ord(code): _decoding(form, RAW, str) for code, form in (("T", "<I"), ("U", "<B"))},
    **{ord(code): _decoding(form, RAW, bytes) for code, form in (("B", "<I"), ("C", "<B"), ("\x8e", "<Q"))},
    0x96: _decoding("<Q", RAW, bytearray),
    0x8A: lambda m: m.push(_integer(m.source.take(m.source.number("<B")))),
    ord("I"): lambda m: m.push(_whole(m.source.line())),
    ord("L"): lambda m: m.push(int(m.source.line().removesuffix(b"L"))),
    ord("F"): lambda m: m.push(float(m.source.line())),
    ord("S"): lambda m: m.push(_quoted(m.source)),
    ord("V"): lambda m: m.push(_unquoted(m.source)),
    # containers
    ord("]"): lambda m: m.push([]),
    ord("l"): lambda m: m.push(m.pop_many()),
    ord("a"): lambda m: m.extend([m.pop()]),
    ord("e"): lambda m: m.extend(m.pop_many()),
    ord(")"): lambda m: m.push(()),
    ord("t"): lambda m: m.push(tuple(m.pop_many())),
    0x85: lambda m: m.push((m.pop(),)),
    0x86: lambda m: m.push((m.pop(), m.pop())[::-1]),
    0x87: lambda m: m.push((m.pop(), m.pop(), m.pop())[::-1]),
    ord("}"): lambda m: m.push({}),
    ord("d"): lambda m: m.dictionary(m.pop_many()),
    ord("s"): lambda m: m.update([m.pop(), m.pop()][::-1]),
    ord("u"): lambda m: m.update(m.pop_many()),
    # the memo
    ord("g"): lambda m: m.push(m.memo[int(m.source.line())]),
    ord("h"): lambda m: m.push(m.memo[m.source.number("<B")]),
    ord("j"): lambda m: m.push(m.memo[m.source.number("<I")]),
    ord("p"): lambda m: m.put(int(m.source.line())),
    ord("q"): lambda m: m.put(m.source.number("<B")),
    ord("r"): lambda m: m.put(m.source.number("<I")),
    0x94: lambda m: m.put(len(m.memo)),
    # names
    ord("c"): lambda m: m.name(m.source.line(), m.source.line()),
    0x93: lambda m: m.name(*[m.pop(), m.pop()][::-1]),
    ord("R"): lambda m: m.call(),
    0x81: lambda m: m.new(),
    ord("b"): lambda m: m.build(),
}
