"""What a user gave for one field, as samples: id -> file or array."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from karat.errors import InputError

from .guard import guarded, refusal
from .images import images_in, is_image, natural
from .kinds import Kind, kind_of
from .records import RecordKind
from .stacks import samples_of
from .stream import Array
from .zarr import ZARR, is_store

MAX_FOLDERS = 1_000_000


def collect(
    value: Any,
    kind: str,
    pattern: str | None = None,
    known: Collection[str] = (),
    arrays: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Samples by id, from a folder, a file, a mapping, a list of arrays or one array.

    Files: the id is the path inside the folder, with "/" and without suffix; a folder that directly holds
    pictures is one sample ("." for the root), unless they bear `known` ids: then each of them is one.  `pattern` is
    searched in such an id and its first group, or the whole match, becomes the id; where it does not match it stays.
    Arrays: "0000", "0001", ...; one axis more than a clip of this kind has is many clips.
    Of a kind whose files hold several records, a sample's id is its own name in the file, below the file's id where
    there are several files; of one whose arrays may be stacks of samples, its number likewise, and `arrays` are names
    of the array that is meant, best first, where a file holds several.
    """
    asked = kind_of(kind)
    if isinstance(value, str | Path):
        root = Path(value)
        if not root.exists():
            raise refusal(root, "does not exist", f"a file or folder of {asked.name} was expected", "check the path")
        with guarded(root, f"a file or folder of {asked.name}"):
            folder = root.is_dir() and not is_store(root)
            found = _walk(root, asked) if folder else _single(root, asked)
            if isinstance(asked, RecordKind):
                found = _expanded(found, asked, alone=not folder)
            elif asked.single is not None:
                found = _unstacked(found, asked, arrays, alone=not folder)
            else:
                found = _apart(found, pattern, known)
            return _renamed(found, pattern)
    if isinstance(asked, RecordKind):
        return _records(value, asked)
    if isinstance(value, Mapping):
        given = {_id(key): _source(item) for key, item in value.items()}
        if asked.single is not None:
            given = dict(_unstacked(list(given.items()), asked, arrays, alone=False))
        return given
    if isinstance(value, list | tuple):
        return _numbered([as_array(item) for item in value])
    array = as_array(value)
    if asked.single is not None and array.ndim == asked.single + 2 and array.shape[-3] == 1:
        array = array[..., 0, :, :]  # maps of one channel
    return _numbered(list(array) if _is_many(array, asked) else [array])


def as_array(value: Any) -> Array:
    """An ndarray of whatever speaks NumPy's or DLPack's protocol; tensors are brought to the CPU."""
    name = f"a value of type {type(value).__name__}"
    with guarded(name, "an array"):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            value = value.detach().cpu()
            # NumPy has no bfloat16; float32 holds every one of its values.
            value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
        if isinstance(value, np.ma.MaskedArray):
            raise refusal(name, "hides some values", "NumPy would drop the mask", "give array.filled(...)")
        if hasattr(value, "__array__"):
            array: Array = np.asarray(value)
        elif hasattr(value, "__dlpack__"):
            array = np.from_dlpack(value)
        else:
            raise refusal(
                name,
                "is no array",
                "an array, a tensor or a path in a mapping was expected",
                "convert it with np.asarray",
            )
        if array.dtype.hasobject:
            raise refusal(name, "holds Python objects", "numbers were expected", "make the arrays one shape")
        return array


def _expanded(found: list[tuple[str, Any]], kind: RecordKind, alone: bool) -> list[tuple[str, Any]]:
    """The records of every file; a file among others that cannot be read stays a path, and fails by itself. One that
    holds one record gives it its own id. Of two files of one name that hold the same, as DeepLabCut writes, one is
    enough.
    """
    expanded: list[tuple[str, Any]] = []
    for stem, path in found:
        try:
            with guarded(path, kind.expects):
                inside = dict(kind.expand(path))
        except InputError:
            if alone:
                raise
            inside = {"": path}
        if len(inside) == 1 and not alone:
            inside = {"": next(iter(inside.values()))}
        within = "" if alone else stem + "/"
        expanded += [(within + name if name else stem, source) for name, source in inside.items()]
    return _without_copies(expanded)


def _without_copies(found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    first: dict[str, Any] = {}
    kept = []
    for name, source in found:
        twin = first.setdefault(name, source)
        is_copy = twin is not source and not isinstance(twin, Path) and not isinstance(source, Path)
        if not (is_copy and twin.digest() == source.digest()):
            kept.append((name, source))
    return kept


def _unstacked(found: list[tuple[str, Any]], kind: Kind, arrays: tuple[str, ...], alone: bool) -> list[tuple[str, Any]]:
    """The samples of every file; a stack of several among other files puts their numbers below its name. A file among
    others that cannot be read stays a path, and fails by itself."""
    expanded: list[tuple[str, Any]] = []
    for stem, source in found:
        try:
            with guarded(source, kind.expects):
                inside = (
                    samples_of(source, arrays or kind.arrays, kind.single or 0) if isinstance(source, Path) else None
                )
        except InputError:
            if alone:
                raise
            inside = None
        if inside is not None and len(inside) == 1 and not alone:
            inside = {"": next(iter(inside.values()))}
        within = "" if alone else stem + "/"
        expanded += [(within + name if name else stem, one) for name, one in (inside or {"": source}).items()]
    return expanded


def _source(item: Any) -> Any:
    """A path, what says itself how it is opened, or an array."""
    if isinstance(item, str | Path):
        return Path(item)
    return item if hasattr(item, "open") and hasattr(item, "digest") else as_array(item)


def _records(value: Any, kind: RecordKind) -> dict[str, Any]:
    with guarded(f"a value of type {type(value).__name__}", kind.expects):
        several = kind.split(value)
        if several is not None:
            return dict(several)
        if isinstance(value, Mapping) and not is_columns(value):
            given = {
                _id(key): Path(item) if isinstance(item, str | Path) else kind.convert(item)
                for key, item in value.items()
            }
            paths = [(key, item) for key, item in given.items() if isinstance(item, Path)]
            return {key: item for key, item in given.items() if not isinstance(item, Path)} | dict(
                _expanded(paths, kind, alone=False)
            )
        if isinstance(value, list | tuple):
            return _numbered([kind.convert(item) for item in value])
        return _numbered([kind.convert(value)])


def is_columns(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is one record by its columns, not many records by their ids."""
    return any(hasattr(one, "__array__") or isinstance(one, list | tuple) for one in value.values())


def _is_many(array: Array, kind: Kind) -> bool:
    most = 5 if kind.name == "frames" or (kind.name == "segments" and array.dtype.kind == "b") else 4
    most = most if kind.single is None else kind.single + 1
    if array.ndim > most:
        raise refusal(
            "the array",
            f"has shape {array.shape}",
            f"{kind.expects}, or one axis more for several samples, was expected",
            "reshape it",
        )
    return array.ndim == most


def _numbered(arrays: list[Any]) -> dict[str, Any]:
    if not arrays:
        raise refusal("the list", "is empty", "at least one array was expected", "give one array a sample")
    width = max(4, len(str(len(arrays) - 1)))
    return {f"{index:0{width}d}": array for index, array in enumerate(arrays)}


def _id(key: Any) -> str:
    if not isinstance(key, str):
        raise refusal(f"the id {key!r}", f"is a {type(key).__name__}", "text was expected", "use str(id)")
    return key


def _single(path: Path, kind: Kind | RecordKind) -> list[tuple[str, Any]]:
    path.stat()
    if path.suffix.lower() not in kind.suffixes:
        raise refusal(
            path,
            f"has the suffix {path.suffix!r}",
            f"{kind.name} are read from {' '.join(sorted(kind.suffixes))}",
            kind.remedy if isinstance(kind, RecordKind) else "convert the file",
        )
    return [(path.stem, path)]


def _walk(root: Path, kind: Kind | RecordKind) -> list[tuple[str, Any]]:
    """Every sample under a folder as (id, path), links followed, loops and dead links passed over."""
    found: list[tuple[str, Any]] = []
    pending: list[tuple[Path, frozenset[tuple[int, int]]]] = [(root, frozenset())]
    folders = 0
    while pending:
        folder, above = pending.pop()
        status = folder.stat()
        here = (status.st_dev, status.st_ino)
        if here in above:
            continue
        folders += 1
        if folders > MAX_FOLDERS:
            raise refusal(root, f"leads to over {MAX_FOLDERS} folders", "fewer were expected", "check its links")
        pictures = False
        with os.scandir(folder) as entries:
            for entry in entries:
                path = folder / entry.name
                if entry.name.startswith("."):
                    continue
                try:
                    is_folder, is_file = entry.is_dir(), entry.is_file()
                except OSError:
                    continue  # a link that leads round in a circle
                if is_folder and is_store(path) and ZARR in kind.suffixes:
                    found.append((path.relative_to(root).with_suffix("").as_posix(), path))
                elif is_folder:
                    pending.append((path, above | {here}))
                elif not is_file:
                    continue
                elif is_image(path) and isinstance(kind, Kind) and kind.single is None:
                    pictures = True
                elif path.suffix.lower() in kind.suffixes:
                    found.append((path.relative_to(root).with_suffix("").as_posix(), path))
        if pictures:
            found.append((folder.relative_to(root).as_posix(), folder))
    if not found:
        raise refusal(
            root,
            f"holds nothing that {kind.name} are read from",
            f"one of {' '.join(sorted(kind.suffixes))} was expected",
            "check the path",
        )
    return found


def _apart(found: list[tuple[str, Path]], pattern: str | None, known: Collection[str]) -> list[tuple[str, Path]]:
    """The pictures of a folder by themselves, where they are named as samples are and their folder is not."""
    apart: list[tuple[str, Path]] = []
    for key, path in found:
        pictures = images_in(path) if known and path.is_dir() and _id_in(key, pattern) not in known else []
        inside = [((PurePosixPath(key) / one.stem).as_posix(), one) for one in pictures]
        apart += inside if any(_id_in(name, pattern) in known for name, _ in inside) else [(key, path)]
    return apart


def _id_in(key: str, pattern: str | None) -> str:
    """The id that a pattern finds in a relative stem."""
    try:
        match = re.search(pattern, key) if pattern is not None else None
    except re.error as error:
        raise refusal(
            f"the pattern {pattern!r}", f"does not compile ({error})", "a regular expression was expected", "fix it"
        ) from error
    # An optional first group that took no part leaves the whole match.
    return key if match is None else (match.groups() and match.group(1)) or match.group() or key


def _renamed(found: Iterable[tuple[str, Any]], pattern: str | None) -> dict[str, Any]:
    samples: dict[str, Any] = {}
    for key, path in sorted(found, key=lambda pair: natural(pair[0])):
        name = _id_in(key, pattern)
        if name in samples:
            raise refusal(
                path if isinstance(path, Path) else key,
                f"has the id {name!r}",
                f"{samples[name] if isinstance(path, Path) else 'another'} has it too",
                "rename or remove one, or choose another id pattern",
            )
        samples[name] = path
    return samples
