"""The bytes of a pickle through a small window, and what is left where it lies in a file: bytes, texts and arrays."""

from __future__ import annotations

import codecs
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .guard import MIB, guarded, refusal
from .stream import Array

WINDOW = 8192
PIECE = 64 * 1024  # larger ones come from the system anew each time, three times slower
MAX_LEFT = 1024  # bytes; what is longer is left in the file
MAX_TAKEN = 16 * MIB
PLACE = 100  # bytes that knowing where something lies takes
RAW = "latin-1"  # every byte is the character of its number
UTF8, UNICODE, STRING = "utf-8", "raw_unicode_escape", "unicode_escape"
DECODERS = {spelling: codecs.getincrementaldecoder(spelling) for spelling in (UTF8, UNICODE, STRING)}
FOREIGN = re.compile(
    rb"(?<!\\)(?:\\\\)*\\[^\\'\"nrtx]"
)  # escapes that Python 2 never wrote, one of which imports a module

Kind = type[str] | type[bytes] | type[bytearray]


class Unfit(Exception):
    """What was found, for the refusal."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A file as it was when it was opened."""

    path: Path
    stamp: tuple[int, ...]

    @staticmethod
    def of(path: Path, file: BinaryIO) -> Origin:
        state = os.fstat(file.fileno())
        return Origin(path, (state.st_ino, state.st_size, state.st_mtime_ns))


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes or a text, left in a file.

    place, length: in the file.  spelling: of the text, by its codec; bytes may be spelled as a text too.
    size: in bytes or characters.  wide: some characters are above 255.
    """

    origin: Origin
    place: int
    length: int
    spelling: str
    kind: Kind
    size: int
    wide: bool = False

    def encoded(self) -> Stored:
        return replace(self, kind=bytes)

    def value(self, file: BinaryIO) -> str | bytes | bytearray:
        if self.kind is str:
            return "".join(self.texts(file))
        return self.kind(self.content(file))

    def content(self, file: BinaryIO) -> bytes:
        if self.spelling == RAW:
            return _read(file, self.place, self.length)
        return b"".join(text.encode(RAW) for text in self.texts(file))

    def texts(self, file: BinaryIO) -> Iterator[str]:
        """The text in pieces."""
        if self.spelling == RAW:
            yield from (piece.decode(RAW) for piece in self.pieces(file))
            return
        decoder: Any = DECODERS[self.spelling](_errors(self.spelling))
        for piece in self.pieces(file):
            if self.spelling == STRING:
                _check_escapes(decoder.buffer + piece)
            yield decoder.decode(piece)
        yield decoder.decode(b"", True)

    def pieces(self, file: BinaryIO) -> Iterator[bytes]:
        end = self.place + self.length
        for place in range(self.place, end, PIECE):
            yield _read(file, place, min(PIECE, end - place))

    def measured(self, file: BinaryIO) -> Stored:
        """The same after its spelling was checked to the end, with the size that it spells."""
        size = narrow = 0
        for text in self.texts(file):
            size += len(text)
            narrow += len(text.encode(RAW, "ignore"))
        return replace(self, size=size, wide=narrow < size)


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array of numbers, left in a file.

    sides: its shape as it is stored, in C order.  axes: which of these its own axes are.
    """

    content: Stored
    dtype: np.dtype[Any]
    sides: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.sides[axis] for axis in self.axes)

    def read(self) -> Array:
        """The array, read-only, in C order and of native bytes."""
        path, stamp = self.content.origin.path, self.content.origin.stamp
        with guarded(path, "an array in a pickle"), path.open("rb") as file:
            if Origin.of(path, file).stamp != stamp:
                expected = "its arrays are read from where they were"
                raise refusal(path, "has changed since it was opened", expected, "leave the file alone and run again")
            array = np.ascontiguousarray(arranged(self.content.content(file), self.dtype, self.sides, self.axes))
            array.flags.writeable = False
            return array


def arranged(data: bytes, dtype: np.dtype[Any], sides: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """The array of these bytes, read-only and of native bytes."""
    array: Array = np.ndarray(sides, dtype, data)
    if axes != tuple(range(len(sides))):
        array = array.transpose(axes)
    if dtype.kind == "b":
        # A forged file can hold bytes other than 0 and 1, which NumPy's own operations trust.
        array = np.asarray(array.view(np.uint8) != 0)
    elif not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    array.flags.writeable = False
    return array


class Window:
    """Bytes that are read once from front to back.

    Where they lie in a file (`origin`), long bytes and texts are passed over and left there, and what is taken is
    bounded.
    """

    def __init__(self, file: BinaryIO, origin: Origin | None = None) -> None:
        self.file, self.origin = file, origin
        self.size = file.seek(0, os.SEEK_END)
        self.most = self.size if origin is None else MAX_TAKEN
        self.taken = 0
        self.held = b""
        self.start = self.at = 0  # where `held` starts, and the place in it

    @property
    def left(self) -> int:
        return self.size - self.start - self.at

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.held):
            self.fill(count)
            end = count
        self.at = end
        return self.held[end - count : end]

    def fill(self, count: int) -> None:
        """Holds at least so many bytes from here on."""
        self.check(count)
        self.move(0)
        self.held = _read(self.file, self.start, min(max(count, WINDOW), self.left))

    def move(self, count: int) -> None:
        """Passes over so many bytes."""
        self.spend(self.at)
        self.start, self.at, self.held = self.start + self.at + count, 0, b""

    def check(self, count: int) -> None:
        if count > self.left:
            raise Unfit("ends early")

    def spend(self, count: int) -> None:
        self.taken += count
        if self.taken > self.most:
            raise Unfit(f"holds over {self.most} bytes besides its arrays")

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> bytes:
        """A short line, such as numbers and names have."""
        end = self.line_end()
        if end < 0:
            raise Unfit("has a line without an end")
        return self.take(end + 1 - self.at)[:-1]

    def line_end(self) -> int:
        """Where the line ends in `held`, below 0 where that is far away."""
        if self.held.find(b"\n", self.at) < 0:
            self.fill(min(WINDOW, self.left))
        return self.held.find(b"\n", self.at)

    def length_of_line(self) -> int:
        """Of any line, before its end."""
        end = self.line_end()
        if end >= 0:
            return end - self.at
        for start in range(self.start, self.size, PIECE):
            found = _read(self.file, start, min(PIECE, self.size - start)).find(b"\n")
            if found >= 0:
                return start + found - self.start
        raise Unfit("has a line without an end")

    def payload(self, count: int, spelling: str, kind: Kind) -> Any:
        """Bytes or a text: themselves, or where they are."""
        if self.origin is None or count <= MAX_LEFT:
            data = self.take(count)
            return _decoded(data, spelling) if kind is str else kind(data)
        self.check(count)
        stored = Stored(self.origin, self.start + self.at, count, spelling, kind, count)
        self.move(count)
        self.spend(PLACE)
        return stored if spelling == RAW else stored.measured(self.file)

    def kept(self, stored: Stored) -> str | bytes | bytearray:
        """What was left, after all."""
        self.spend(stored.length)
        return stored.value(self.file)


def _read(file: BinaryIO, place: int, count: int) -> bytes:
    file.seek(place)
    data = file.read(count)
    if len(data) < count:
        raise Unfit("ends early")
    return data


def _errors(spelling: str) -> str:
    return "surrogatepass" if spelling == UTF8 else "strict"


def _decoded(data: bytes, spelling: str) -> str:
    if spelling == STRING:
        _check_escapes(data)
    return data.decode(spelling, _errors(spelling))


def _check_escapes(data: bytes) -> None:
    if FOREIGN.search(data):
        raise Unfit("has escapes that no pickle has")
