"""NumPy files: .npy, and .npz read through the zip stream; nothing is ever unpickled."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from .guard import GIB, MIB, refusal
from .slab import Slab, file_slab

MAX_RATIO = 200
TRUSTED_BYTES = 64 * MIB  # no harm is done below, however well it is packed
MAX_EXPANDED = 2 * GIB
MAX_LABEL_BYTES = 64 * MIB
LOCAL_HEADER, ENCRYPTED = 30, 1  # bytes before a member's name; a bit of its flags


def choose(path: Path, found: list[str], names: tuple[str, ...], label_names: tuple[str, ...]) -> str:
    """The array that a file is about: a known name, or the only one there is."""
    candidates = [name for name in found if name not in label_names]
    known = [name for name in names if name in candidates]
    if known:
        return known[0]
    if len(candidates) == 1:
        return candidates[0]
    listed = ", ".join(repr(name) for name in sorted(candidates)[:8]) or "none"
    expected = " or ".join(repr(name) for name in names)
    raise refusal(
        path,
        f"holds {len(candidates)} arrays ({listed})",
        f"one array, or one named {expected}, was expected",
        "rename the array or save it alone",
    )


def open_npy(path: Path) -> Slab:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        shape, fortran, dtype = _header(cast("BinaryIO", file), str(path), size)
        start = file.tell()

    @contextmanager
    def at_data() -> Iterator[BinaryIO]:
        with path.open("rb") as file:
            file.seek(start)
            yield cast("BinaryIO", file)

    return file_slab(str(path), shape, dtype, at_data, fortran=fortran)


def open_npz(path: Path, names: tuple[str, ...], label_names: tuple[str, ...]) -> Slab:
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        members = _arrays_in(archive)
        chosen = choose(path, list(members), names, label_names)
        labels: tuple[str, ...] = ()
        for label in label_names:
            if label in members:
                labels = _labels(archive, members[label], size, f"{path}[{label}]")
                break
    return replace(_member_slab(path, chosen, members[chosen], size), labels=labels)


def npz_slabs(path: Path) -> dict[str, Callable[[], Slab]]:
    """What announces each array of an archive, whose list is read once."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        members = _arrays_in(archive)
    return {name: partial(_member_slab, path, name, info, size) for name, info in members.items()}


def _arrays_in(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename[:-4]: info for info in archive.infolist() if info.filename.endswith(".npy")}


def _member_slab(path: Path, own: str, info: zipfile.ZipInfo, size: int) -> Slab:
    name = f"{path}[{own}]"
    _check_member(info, size, name)
    with _member(path, info) as member:
        shape, fortran, dtype = _header(member, name, info.file_size)
        start = member.tell()

    @contextmanager
    def at_data() -> Iterator[BinaryIO]:
        with _member(path, info) as member:
            member.read(start)
            yield member

    return file_slab(name, shape, dtype, at_data, fortran=fortran, packed=True)


@contextmanager
def _member(path: Path, info: zipfile.ZipInfo) -> Iterator[BinaryIO]:
    """A member where the archive's list says that it is: the list of thousands is not read again for each."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        magic, name_length, extra_length = struct.unpack("<4s22xHH", file.read(LOCAL_HEADER))
        if magic != b"PK\x03\x04" or info.flag_bits & ENCRYPTED:
            raise refusal(
                f"{path}[{info.filename}]", "is encrypted or damaged", "plain arrays were expected", "save it again"
            )
        file.seek(name_length + extra_length, 1)
        with zipfile.ZipExtFile(file, "r", info) as member:
            yield cast("BinaryIO", member)


def members_of(path: Path, most: int, remedy: str) -> list[zipfile.ZipInfo]:
    """The members of an archive that is read whole, refused where they expand to more than `most` bytes, or further
    than an honest archive does."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    size = sum(info.file_size for info in members)
    if size > most or size > max(TRUSTED_BYTES, MAX_RATIO * path.stat().st_size):
        said = f"at most {most // GIB} GB, and {MAX_RATIO} times its size, is read"
        raise refusal(path, f"expands to {size / GIB:.1f} GB", said, remedy)
    return members


def _check_member(info: zipfile.ZipInfo, archive_size: int, name: str) -> None:
    if info.compress_size > archive_size:
        raise refusal(
            name,
            f"declares {info.compress_size} compressed bytes",
            f"the archive has {archive_size}",
            "copy or write the file again",
        )
    if info.file_size > MAX_EXPANDED and info.file_size > MAX_RATIO * info.compress_size:
        raise refusal(
            name,
            f"expands to {info.file_size / GIB:.1f} GB from {info.compress_size / MIB:.2f} MB: refused as a zip bomb",
            f"at most {MAX_RATIO}:1 beyond 2 GB is read",
            "save it with np.savez, without compression",
        )


def _header(file: BinaryIO, name: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and dtype of the .npy that starts here; leaves the file at its data."""
    if size == 0:
        raise refusal(name, "is empty (0 bytes)", "a NumPy array was expected", "write the file again")
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise refusal(name, f"is NumPy format {version}", "1.0 or 2.0 was expected", "save a plain numeric array")
    shape, fortran, dtype = readers[version](file)
    if dtype.hasobject:
        raise refusal(
            name, "holds Python objects", "they are never unpickled and numbers were expected", "save a plain array"
        )
    need = math.prod(shape) * dtype.itemsize
    if any(side < 0 for side in shape) or need != size - file.tell():
        raise refusal(
            name,
            f"declares shape {shape} of {dtype.name} ({need} bytes)",
            f"it holds {size - file.tell()} bytes of data",
            "copy or write the file again",
        )
    return shape, fortran, dtype


def _labels(archive: zipfile.ZipFile, info: zipfile.ZipInfo, archive_size: int, name: str) -> tuple[str, ...]:
    _check_member(info, archive_size, name)
    if info.file_size > MAX_LABEL_BYTES:
        raise refusal(name, f"has {info.file_size} bytes", "names take at most 64 MiB", "shorten them")
    with archive.open(info) as member:
        shape, _, dtype = _header(cast("BinaryIO", member), name, info.file_size)
        if dtype.kind not in "US" or len(shape) != 1:
            raise refusal(
                name, f"is {dtype.name} of shape {shape}", "a row of strings was expected", "save np.array(names)"
            )
        values = np.frombuffer(member.read(), dtype) if dtype.itemsize else np.zeros(shape, dtype)
    return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in values.tolist())
