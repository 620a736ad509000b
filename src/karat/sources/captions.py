"""Captions of pictures, by the ids of the pictures: one each, or two of an edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from karat.errors import short

from .guard import MIB, guarded, read_bounded, refusal
from .images import IMAGE_SUFFIXES
from .strict import loads

CAPTION = (("caption", "text", "prompt"),)
EDIT = (("original", "original_caption"), ("modified", "modified_caption"))
SPELLED = {
    CAPTION: 'captions {"id": "..."} or [{"id": "...", "caption": "..."}]',
    EDIT: 'captions {"id": {"original": "...", "modified": "..."}} or a list of such records with their id',
}
MAX_BYTES = 256 * MIB
LONGEST = 100_000  # letters
Names = tuple[tuple[str, ...], ...]


def captions(value: Any, names: Names = CAPTION) -> dict[str, tuple[str, ...]]:
    """The texts of every id, of a JSON file or of what it would hold; `names` are what each text may be called.

    Texts without ids are those of pictures in an array, which are numbered. The suffix of a picture is no part of an
    id.
    """
    given, place = value, "the captions"
    if isinstance(value, str | Path):
        place = str(value)
        with guarded(place, SPELLED[names]):
            given = loads(read_bounded(Path(value), MAX_BYTES, SPELLED[names]))
    found: dict[str, tuple[str, ...]] = {}
    for key, record in _pairs(place, given, names):
        name = _bare(key)
        if name in found:
            raise refusal(place, f"has {short(name)} twice", "a record a picture was expected", "leave one out")
        found[name] = _texts(f"{short(name)} of {place}", record, names)
    if not found:
        raise refusal(place, "has no captions", f"{SPELLED[names]} were expected", "add them")
    return found


def _pairs(place: str, given: Any, names: Names) -> Iterator[tuple[str, Any]]:
    """Ids and records."""
    if isinstance(given, Mapping):
        for key, record in given.items():
            yield str(key), record
        return
    if not isinstance(given, list | tuple):
        raise refusal(place, f"is a {type(given).__name__}", f"{SPELLED[names]} were expected", "write them as that")
    width = max(4, len(str(len(given) - 1)))
    for number, record in enumerate(given):
        if isinstance(record, str):
            yield f"{number:0{width}d}", record
            continue
        key = record.get("id") if isinstance(record, Mapping) else None
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise refusal(f"record {number} of {place}", "has no id", f"{SPELLED[names]} were expected", "add it")
        yield str(key), record


def _texts(place: str, record: Any, names: Names) -> tuple[str, ...]:
    if isinstance(record, str) and len(names) == 1:
        record = {names[0][0]: record}
    if not isinstance(record, Mapping):
        found = "is one text" if isinstance(record, str) else f"is a {type(record).__name__}"
        raise refusal(place, found, f"{SPELLED[names]} were expected", "write it as that")
    texts = []
    for known in names:
        here = [record[name] for name in known if name in record]
        if len(here) != 1 or not isinstance(here[0], str):
            found = "no" if not here else "more than one" if len(here) > 1 else f"a {type(here[0]).__name__} as"
            raise refusal(place, f"has {found} {known[0]}", "a text was expected", "give one")
        texts.append(_text(place, here[0]))
    return tuple(texts)


def _text(place: str, text: str) -> str:
    if len(text) > LONGEST:
        raise refusal(place, f"has {len(text)} letters", f"{LONGEST} are the most", "shorten it")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise refusal(place, "has half of a letter", "Unicode text was expected", "write it again as UTF-8")
    return text


def _bare(key: str) -> str:
    """An id without the suffix of a picture."""
    path = PurePosixPath(key)
    return key[: -len(path.suffix)] if path.suffix.lower() in IMAGE_SUFFIXES else key
