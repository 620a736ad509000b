"""Fields that are no streams of pixels: records, given whole to what measures them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol


class Source(Protocol):
    """What a record is read from: a place in a file, or the record itself."""

    def digest(self) -> str:
        """sha256 of the content, in hex."""

    def open(self) -> Any:
        """The record."""


Level = Literal["error", "warning", "note"]
Finding = tuple[Level, str]  # of a sample: an error makes it fail, a warning makes its numbers doubtful


def _nothing(own: Any, truth: Any) -> Iterable[Finding]:  # noqa: ARG001
    return ()


def _one(value: Any) -> None:  # noqa: ARG001
    return None


def _alike(own: Mapping[str, Any], truth: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG001
    return own


def _truth(own: Mapping[str, Any], truth: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG001
    return truth


def _silent(name: str, sources: Iterable[Any]) -> Iterable[str]:  # noqa: ARG001
    return ()


def _unknown(sources: Iterable[Any]) -> str:  # noqa: ARG001
    return ""


@dataclass(frozen=True)
class RecordKind:
    """A kind of field that is no stream of pixels: poses, boxes. A record is a frozen dataclass of arrays.

    A record is its own `Source`; `length` is its number of frames, `select(first, stride)` the record of some of them.
    expand: the samples of one file by id ("": the file is one sample).  convert: what a user has in memory -> record.
    split: what a user has in memory -> several records by id, where it may hold several.
    empty: the prediction of nothing beside a truth, where there is such a thing.  align: the sources of a side under
    the ids that the truth's sources have, where names alone do not say what belongs together.  find: what is doubtful
    of a prediction and its truth, before anything is computed.  remedy: what to do with a file of another suffix.
    repeated: the truth's sources, and again under the ids of predictions of what was predicted before.
    remarks: what a reader must know of a field's sources.  origin: what made a field's content, as its files say.
    """

    name: str
    expects: str
    suffixes: frozenset[str]
    expand: Callable[[Path], Mapping[str, Source]]
    convert: Callable[[Any], Any]
    empty: Callable[[Any], Any] | None = None
    align: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] = _alike
    find: Callable[[Any, Any], Iterable[Finding]] = _nothing
    split: Callable[[Any], Mapping[str, Any] | None] = _one
    remedy: str = "convert the file"
    repeated: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] = _truth
    remarks: Callable[[str, Iterable[Any]], Iterable[str]] = _silent
    origin: Callable[[Iterable[Any]], str] = _unknown
