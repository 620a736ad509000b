"""Embeddings of pictures and of their captions, row by row; of edits also those of before the edit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import told

from .arrays import npz_slabs
from .feature_sets import numbers, said, whole
from .fingerprint import digest
from .guard import refusal
from .records import RecordKind, Source
from .safetensors import safetensors_slabs
from .stream import Array

EXPECTS = "images (n, d) and texts (n, d) of n pictures, for edits also original_images and original_texts"
EMBEDDINGS = ("images", "texts", "original_images", "original_texts")
COUNTS = ("truncated", "empty")
TEXTS = ("network", "ids", "left_out")


@dataclass(frozen=True, eq=False)
class AlignedSet:
    """Pictures with captions, a row each.

    images, texts: embeddings (n, d).  original_images, original_texts: those of before an edit (n, d), or of no row.
    truncated, empty: how many captions of each picture lost words, and how many have none (n).  network: what computed
    them, left_out: what is not among them, sentence by sentence, where that is said.
    """

    images: Array
    texts: Array
    original_images: Array
    original_texts: Array
    truncated: Array
    empty: Array
    network: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """The number of pictures."""
        return len(self.images)

    @property
    def edited(self) -> bool:
        """Whether it is known what was before."""
        return bool(self.original_images.shape[1])

    def select(self, first: int | None, stride: int) -> AlignedSet:
        """The first pictures, and every `stride` of those."""
        return replace(self, **{name: getattr(self, name)[:first:stride] for name in (*EMBEDDINGS, *COUNTS)})

    def digest(self) -> str:
        """sha256 of the content, in hex."""
        state = hashlib.sha256(repr((self.network, self.left_out)).encode())
        for name in (*EMBEDDINGS, *COUNTS):
            state.update(digest(np.ascontiguousarray(getattr(self, name))).encode())
        return state.hexdigest()

    def open(self) -> AlignedSet:
        """Itself."""
        return self


def make_aligned(name: str, arrays: Mapping[str, Any]) -> AlignedSet:
    """Checked embeddings of arrays by their names."""
    known = (*EMBEDDINGS, *COUNTS, *TEXTS)
    for own in arrays:
        if own not in known:
            raise refusal(
                name,
                f"has an array {told(own)[:40]!r}",
                f"{', '.join(known)} were expected",
                "rename it or leave it out",
            )
    for own in ("images", "texts"):
        if own not in arrays:
            raise refusal(name, f"has no {own}", f"{EXPECTS} were expected", "add them")
    if ("original_images" in arrays) != ("original_texts" in arrays):
        raise refusal(name, "has half of what was before", f"{EXPECTS} were expected", "give both or none")
    given = {own: numbers(name, own, arrays[own], 2) for own in EMBEDDINGS if own in arrays}
    shape = given["images"].shape
    given |= {own: np.zeros((shape[0], 0)) for own in EMBEDDINGS if own not in given}
    for own in EMBEDDINGS:
        if own in arrays and given[own].shape != shape:
            raise refusal(
                name,
                f"has {own} of shape {given[own].shape} and images of {shape}",
                "a row a picture, of one network, was expected",
                "check them",
            )
    counts = {own: _counts(name, own, arrays.get(own, np.zeros(shape[0], np.int64)), shape[0]) for own in COUNTS}
    network = str(np.asarray(arrays.get("network", ""))[()])
    left_out = tuple(map(str, np.atleast_1d(np.asarray(arrays.get("left_out", ())))))
    return AlignedSet(**given, **counts, network=network, left_out=left_out)


def _counts(name: str, own: str, value: Any, pictures: int) -> Array:
    array = np.asarray(value)
    if array.shape != (pictures,) or array.dtype.kind not in "biu" or (array.size and array.min() < 0):
        raise refusal(
            f"{own} of {name}",
            f"is {array.dtype.name} of shape {array.shape}",
            f"{pictures} whole numbers were expected",
            "give one a picture",
        )
    return array.astype(np.int64)


def to_aligned(value: Any) -> AlignedSet:
    """What a user has in memory: a mapping of arrays."""
    if isinstance(value, AlignedSet):
        return value
    if not isinstance(value, Mapping):
        raise refusal(
            "the embeddings", f"are of type {type(value).__name__}", f"{EXPECTS} were expected", "give them by name"
        )
    return make_aligned("the embeddings", value)


@dataclass(frozen=True)
class AlignedFile:
    """Embeddings in a file."""

    path: Path

    @property
    def network(self) -> str:
        """What computed them, where the file says that."""
        return " ".join(self._said("network"))

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not among them, where the file says that."""
        return self._said("left_out")

    def _said(self, what: str) -> tuple[str, ...]:
        return tuple(map(str, np.atleast_1d(said(self.path, what, ()))))

    def digest(self) -> str:
        """sha256 of the file, in hex."""
        return digest(self.path)

    def open(self) -> AlignedSet:
        """The embeddings of the file."""
        slabs = npz_slabs(self.path) if self.path.suffix.lower() == ".npz" else safetensors_slabs(self.path)
        return make_aligned(str(self.path), {own: whole(announced()) for own, announced in slabs.items()})


def _origin(sources: Iterable[Any]) -> str:
    found = sorted({one.network for one in sources if isinstance(one, AlignedSet | AlignedFile)} - {""})
    return told("+".join(found).replace("|", ";"))  # which parts signatures


def _remarks(_: str, sources: Iterable[Any]) -> Iterable[str]:
    """What was left out, as the files say."""
    said = (one.left_out for one in sources if isinstance(one, AlignedSet | AlignedFile))
    return dict.fromkeys(told(sentence) for sentences in said for sentence in sentences)


def _expand(path: Path) -> Mapping[str, Source]:
    if path.suffix.lower() not in SUFFIXES:
        known = " ".join(sorted(SUFFIXES))
        raise refusal(path, f"has the suffix {path.suffix!r}", f"embeddings are read from {known}", "convert the file")
    return {"": AlignedFile(path)}


SUFFIXES = frozenset({".npz", ".safetensors"})
ALIGNED = RecordKind("aligned", EXPECTS, SUFFIXES, _expand, to_aligned, remarks=_remarks, origin=_origin)
