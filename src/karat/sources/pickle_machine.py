"""The machine that reads pickles: its stack, its memo, its operations, and what stands for NumPy's functions."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from .stream import Array

Standin = Literal["array", "nothing"]
Names = Mapping[tuple[str, str], Standin]

MAX_STEPS = 10_000_000
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


class Unfit(Exception):
    """What was found, for the refusal."""


class PickledName:
    """A name that a file asks for, standing for nothing but itself."""

    def __init__(self, module: str, name: str, role: str) -> None:
        self.text, self.role = f"{module}.{name}", role


class PickledType:
    """numpy.dtype, until its byte order is known."""

    def __init__(self, code: str) -> None:
        if not TYPES.fullmatch(code):
            raise Unfit(f"holds arrays of the type {code[:40]!r}")
        self.code, self.order = code, "="

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


class Unfilled:
    """The content of an array that has none yet."""


class PickledArray:
    """numpy.ndarray, until it is filled: with an array, or with nested lists of objects."""

    def __init__(self, value: Any = Unfilled) -> None:
        self.value = value


class Dropped:
    """An object that is left out, whatever it is filled with."""


class _Mark:
    """Where a container starts on the stack."""


MARK = _Mark()


class Machine:
    """The stack, the memo and the operations."""

    def __init__(self, data: bytes, names: Names) -> None:
        self.data, self.at, self.names = data, 0, names
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.spent = 0

    def run(self) -> Any:
        for _ in range(MAX_STEPS):
            operation = self.data[self.at]
            self.at += 1
            if operation == STOP:
                value = self.pop()
                if self.stack or self.at != len(self.data):
                    raise Unfit("holds more than one value")
                return value
            if operation not in OPERATIONS:
                raise Unfit(f"uses the operation 0x{operation:02x}")
            OPERATIONS[operation](self)
        raise Unfit(f"takes over {MAX_STEPS} steps")

    def spend(self, count: int) -> None:
        """Counts the bytes that arrays are made of, twice where these are spelled as text: more than that is some of
        them many times."""
        self.spent += count
        if self.spent > 2 * len(self.data):
            raise Unfit("uses the same bytes many times")

    # --- the bytes

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise Unfit("ends early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> bytes:
        start, self.at = self.at, self.data.index(b"\n", self.at) + 1
        return self.data[start : self.at - 1]

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
            key = key.item() if isinstance(key, np.generic) else key
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
            case "_frombuffer", (data, dtype, shape, order, *axes):
                array = self.array(shape, dtype, order == "F", data)
                return PickledArray(array.transpose(axes[0]) if axes and axes[0] is not None else array)
            case "scalar", (PickledType() as dtype, data):
                return self.array((), dtype, False, data)[()]
            case "dtype", (code, *_):
                return PickledType(_text(code))
            case "encode", (str() as text, "latin1" | "latin-1"):
                self.spend(len(text))
                return text.encode("latin-1")
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
            case PickledArray() as array, (*_, shape, dtype, fortran, data) if array.value is Unfilled:
                array.value = self.array(shape, dtype, bool(fortran), data)
            case PickledType() as kind, (_, order, None, None, None, *_) if _text(order) in ("<", ">", "=", "|"):
                kind.order = _text(order)
            case _:
                raise Unfit("gives an object a state that plain arrays do not have")

    def array(self, shape: Any, dtype: Any, fortran: bool, data: Any) -> Any:
        """The array of these bytes, read-only; of objects, nested lists."""
        if type(dtype) is not PickledType or type(shape) is not tuple or not all(type(side) is int for side in shape):
            raise Unfit("describes an array by what is no shape and type")
        if type(data) is str:
            self.spend(len(data))
            data = data.encode("latin-1")
        size = len(data)
        if len(shape) > MAX_AXES or any(side < 0 for side in shape):
            raise Unfit(f"holds an array of shape {shape}"[:200])
        if math.prod(max(side, 1) for side in shape) > max(size, MAX_EMPTY):
            raise Unfit(f"holds an array of shape {shape} in {size} bytes"[:200])
        self.spend(size)
        if dtype.code[0] == "O":
            if type(data) is not list or size != math.prod(shape):
                raise Unfit(f"holds an array of shape {shape} with {size} entries"[:200])
            array: Array = np.empty(size, object)
            for place, one in enumerate(data):
                array[place] = one
            return array.reshape(shape).tolist()  # objects are listed in this order, whatever theirs is
        if type(data) not in (bytes, bytearray) or size != math.prod(shape) * dtype.dtype.itemsize:
            raise Unfit(f"holds an array of shape {shape} and {dtype.code} in {size} bytes"[:200])
        array = np.ndarray(shape, dtype.dtype, bytes(data), order="F" if fortran else "C")
        if dtype.code[0] == "U" and size:
            codes = np.frombuffer(data, np.dtype("u4").newbyteorder(array.dtype.byteorder))
            if codes.max() > 0x10FFFF:
                raise Unfit("holds text beyond Unicode")
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _text(value: Any) -> str:
    if type(value) not in (str, bytes):
        raise Unfit("uses what is no text as a name")
    return value.decode("latin-1") if type(value) is bytes else str(value)


def _whole(digits: bytes) -> int | bool:
    return digits == b"01" if digits in (b"00", b"01") else int(digits)


def _pushing(value: Any) -> Callable[[Machine], Any]:
    return lambda machine: machine.push(value)


def _reading(form: str) -> Callable[[Machine], Any]:
    return lambda machine: machine.push(machine.number(form))


def _decoding(form: str, decode: Callable[[bytes], Any]) -> Callable[[Machine], Any]:
    return lambda machine: machine.push(decode(machine.take(machine.number(form))))


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _latin(data: bytes) -> str:
    return data.decode("latin-1")


def _quoted(text: bytes) -> str:
    if len(text) < 2 or text[:1] not in (b"'", b'"') or text[-1:] != text[:1]:
        raise Unfit("is in disorder")
    return text[1:-1].decode("unicode_escape")


def _protocol(machine: Machine) -> None:
    if machine.number("<B") > 5:
        raise Unfit("is of a protocol above 5")


STOP = ord(".")
OPERATIONS: Mapping[int, Callable[[Machine], Any]] = {
    0x80: _protocol,
    0x95: lambda m: m.number("<Q"),  # the size of a frame says nothing about values
    ord("("): lambda m: m.push(MARK),
    ord("0"): lambda m: m.pop(),
    ord("1"): lambda m: m.pop_many(),
    # values
    **{ord(code): _pushing(value) for code, value in (("N", None), ("\x88", True), ("\x89", False))},
    **{ord(code): _reading(form) for code, form in (("J", "<i"), ("K", "<B"), ("M", "<H"), ("G", ">d"))},
    **{ord(code): _decoding(form, _utf8) for code, form in (("X", "<I"), ("\x8c", "<B"), ("\x8d", "<Q"))},
    **{ord(code): _decoding(form, _latin) for code, form in (("T", "<I"), ("U", "<B"))},
    **{ord(code): _decoding(form, bytes) for code, form in (("B", "<I"), ("C", "<B"), ("\x8e", "<Q"))},
    0x96: _decoding("<Q", bytearray),
    0x8A: _decoding("<B", lambda data: int.from_bytes(data, "little", signed=True)),
    ord("I"): lambda m: m.push(_whole(m.line())),
    ord("L"): lambda m: m.push(int(m.line().removesuffix(b"L"))),
    ord("F"): lambda m: m.push(float(m.line())),
    ord("S"): lambda m: m.push(_quoted(m.line())),
    ord("V"): lambda m: m.push(m.line().decode("raw_unicode_escape")),
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
    ord("g"): lambda m: m.push(m.memo[int(m.line())]),
    ord("h"): lambda m: m.push(m.memo[m.number("<B")]),
    ord("j"): lambda m: m.push(m.memo[m.number("<I")]),
    ord("p"): lambda m: m.put(int(m.line())),
    ord("q"): lambda m: m.put(m.number("<B")),
    ord("r"): lambda m: m.put(m.number("<I")),
    0x94: lambda m: m.put(len(m.memo)),
    # names
    ord("c"): lambda m: m.name(m.line(), m.line()),
    0x93: lambda m: m.name(*[m.pop(), m.pop()][::-1]),
    ord("R"): lambda m: m.call(),
    0x81: lambda m: m.new(),
    ord("b"): lambda m: m.build(),
}
