"""Boxes and masks of one object a video: the files that hold them, and what users have in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError, told

from .fingerprint import digest
from .guard import MIB, read_bounded, refusal
from .records import RecordKind, Source
from .safe_pickle import load
from .strict import loads
from .tube_arrays import tubes_of_arrays
from .tube_records import box_rows, masks_of, tube_of, tubes_of
from .tubes import Tube, make_tube, no_tube

EXPECTS = "boxes or masks of one object a video"
MAX_JSON = 512 * MIB
ABOUT = ("name", "size", "found", "missing", "subject", "caption", "detector")
PICKLES = frozenset({".pkl", ".pickle"})
LASOT_FILE = (
    "eff1be0755c346185a74adad3376253f981089ef08c1dd534b29da68be72d8c0"  # sha256 of Peekaboo's lasot_inputs.json
)


def read_tubes(path: Path) -> dict[str, Tube]:
    """The tubes of a file by id."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        data = read_bounded(path, MAX_JSON, EXPECTS)
        return tubes_of(str(path), _listed(loads(data)), lasot=digest(path) == LASOT_FILE)
    if suffix in PICKLES:
        return tubes_of(str(path), _listed(load(path)), pickled=True)
    return tubes_of_arrays(path)


def _listed(document: Any) -> Any:
    """The records; of one video alone the record is enough."""
    alone = isinstance(document, dict) and not {"bboxes", "boxes", "masks", "mask"}.isdisjoint(document)
    return [{"id": "0", **document}] if alone else document


def _expand(path: Path) -> Mapping[str, Source]:
    if path.suffix.lower() not in SUFFIXES:
        known = " ".join(sorted(SUFFIXES))
        raise refusal(path, f"has the suffix {path.suffix!r}", f"{EXPECTS} are read from {known}", "convert the file")
    tubes = read_tubes(path)
    if not tubes:
        raise refusal(path, "holds no record", f"{EXPECTS} were expected", "check the path")
    return tubes


def to_tube(value: Any) -> Tube:
    """A tube of what a user has in memory: itself, or a mapping with `boxes` (frames, 4), NaN where there is none, or
    `masks` (frames, height, width), and the `size` (width, height) of the frames."""
    if isinstance(value, Tube):
        return value
    if not isinstance(value, Mapping):
        found = f"a value of type {type(value).__name__}"
        raise refusal(found, "holds no boxes", f"{EXPECTS} were expected", "pass a mapping of arrays, or records")
    if not {"id", "bboxes", "mask", "width", "height"}.isdisjoint(value):
        return tube_of("the record", value)
    given = dict(value)
    masks, boxes, size = (given.pop(name, None) for name in ("masks", "boxes", "size"))
    if (masks is None) == (boxes is None):
        raise refusal(
            "the tube", f"has {told(', '.join(map(str, value)))[:80]}", "boxes or masks were expected", "add them"
        )
    name = str(given.pop("name", "the tube"))
    if unknown := [key for key in given if key not in ABOUT]:
        raise refusal(name, f"has {told(str(unknown[0])[:40])}", f"{', '.join(ABOUT)} were expected", "leave it out")
    if masks is not None:
        masks = np.asarray(masks) if not isinstance(masks, list | tuple) else masks
        return make_tube(name, masks=masks_of(name, masks), **given)
    return make_tube(name, box_rows(name, boxes), size, **given)


def _split(value: Any) -> Mapping[str, Tube] | None:
    """A list of records, as the specification's files hold it."""
    records = (
        isinstance(value, list | tuple) and value and all(isinstance(one, Mapping) and "id" in one for one in value)
    )
    return tubes_of("the list", value) if records else None


def _once(side: str, tubes: Iterable[Any]) -> None:
    for one in tubes:
        if isinstance(one, Tube) and one.repeated:
            raise InputError(f"{told(one.name)} is listed more than once in the {side}: keep one record an id.")


def _repeated(own: Mapping[str, Any], truth: Mapping[str, Any]) -> Mapping[str, Any]:
    """The truth, and again under the id of every prediction that is listed again."""
    _once("truth", truth.values())
    again = {key: one.id for key, one in own.items() if isinstance(one, Tube) and one.repeated}
    return {**truth, **{key: truth[of] for key, of in again.items() if of in truth}}


def _remarks(name: str, sources: Iterable[Any]) -> Iterator[str]:
    """What a reader must know of the file that a field was read from."""
    tubes = [one for one in sources if isinstance(one, Tube)]
    if any(one.pickled for one in tubes):
        yield f"{name} was read from a pickle, of which nothing was run: karat convert makes small, plain JSON of it."
    for detector in dict.fromkeys(one.detector for one in tubes if one.detector):
        yield f"Boxes of {name} were detected by {detector}."


def _origin(sources: Iterable[Any]) -> str:
    """What made the boxes, where they say."""
    found = sorted({one.detector for one in sources if isinstance(one, Tube) and one.detector})
    return told("+".join(found).replace("|", ";"))  # which parts signatures


SUFFIXES = frozenset({".json", ".npz", ".safetensors"}) | PICKLES
TUBES = RecordKind(
    "tubes",
    EXPECTS,
    SUFFIXES,
    _expand,
    to_tube,
    no_tube,
    split=_split,
    remedy="convert it, or unpack it first",
    repeated=_repeated,
    remarks=_remarks,
    origin=_origin,
)
