"""COCO's JSON: lists of objects whose entries are checked, and told by their place where they are wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from karat.errors import InputError

from .guard import refusal
from .stream import Array

Items = Sequence[dict[str, Any]]
MOST = int(np.iinfo(np.int32).max)
REAL: frozenset[type] = frozenset({int, float})


def is_coco(document: Any) -> bool:
    """Whether a JSON document is a COCO truth or a list of COCO detections."""
    if isinstance(document, dict):
        return "annotations" in document and "images" in document
    return isinstance(document, list) and (
        not document or (isinstance(document[0], dict) and "image_id" in document[0])
    )


def image_ids(name: str, images: Items) -> Array:
    """The ids of the images, each once, rising."""
    ids, times = np.unique(whole(name, "images", "id", images), return_counts=True)
    if (times > 1).any():
        raise refusal(name, f"lists image {ids[times > 1][0]} twice", "ids of images are unique", "remove one")
    return ids


def frames_of(name: str, ids: Array, images: Array | None) -> Array:
    """Images as frames: by id, or by rank among all images where one of these is no number that a frame can have."""
    among = ids if images is None else images
    if not len(among) or (among.min() >= 0 and among.max() <= MOST):
        return ids
    if images is None:
        raise refusal(
            name,
            f"has ids of images up to {ids.max()}",
            f"without a truth that lists the images, ids are frames, from 0 to {MOST}",
            "give the COCO truth with it",
        )
    return np.searchsorted(images, ids)


def check_ids(name: str, items: Items) -> None:
    """Ids of annotations are unique where there are any."""
    ids = [one for item in items if (one := item.get("id")) is not None]
    if set(map(type, ids)) - {int, str}:
        raise refusal(name, "has an annotation whose id is neither a number nor text", "one was expected", "correct it")
    if len(set(ids)) < len(ids):
        met: set[Any] = set()
        twice = next(one for one in ids if one in met or met.add(one))  # type: ignore[func-returns-value]
        raise refusal(name, f"has two annotations of id {shown(twice)}", "ids are unique", "renumber them")


def items_of(name: str, where: str, given: Any) -> Items:
    """A list of objects."""
    if not isinstance(given, list) or set(map(type, given)) - {dict}:
        raise refusal(name, f"has {where} that are no list of objects", "COCO has one", "correct it")
    return given


def whole(name: str, where: str, key: str, items: Items) -> Array:
    """A whole number of every item."""
    return numbers_of(name, where, key, [item.get(key) for item in items], frozenset({int}), np.int64)


def optional(name: str, where: str, key: str, items: Items, filling: int) -> Array:
    """A whole number, a truth value or nothing of every item."""
    given = [filling if (one := item.get(key)) is None else one for item in items]
    return numbers_of(name, where, key, given, frozenset({int, bool}), np.int64)


def real(name: str, where: str, key: str, given: list[Any], each: int = 1) -> Array:
    """A number or nothing, NaN, of every item; `each` of them belong to one."""
    return numbers_of(name, where, key, given, REAL | {type(None)}, np.float64, each)


def numbers_of(
    name: str, where: str, key: str, given: list[Any], types: frozenset[type], dtype: Any, each: int = 1
) -> Array:
    """A row of numbers of these types; `each` of them belong to one item."""
    if not types.issuperset(map(type, given)):
        place = next(i for i, one in enumerate(given) if type(one) not in types)
        raise misplaced(name, where, key, place // each, shown(given[place]))
    try:
        numbers = np.array(given, dtype)
        beyond = np.flatnonzero(np.isinf(numbers)).tolist()
    except OverflowError:
        most = np.iinfo(dtype).max if dtype is np.int64 else int(np.finfo(dtype).max)
        beyond = [i for i, one in enumerate(given) if isinstance(one, int) and abs(one) > most]
    if beyond:
        raise misplaced(name, where, key, beyond[0] // each, "a number beyond 64 bits")
    return numbers


def check_each(name: str, where: str, key: str, given: list[Any], fits: Callable[[Any], bool], expected: str) -> None:
    """Refuses the first that does not fit."""
    for place, one in enumerate(given):
        if not fits(one):
            raise misplaced(name, where, key, place, shown(one), expected)


def misplaced(name: str, where: str, key: str, place: int, found: str, expected: str = "a number") -> InputError:
    """The refusal of an entry."""
    return refusal(name, f"has {found} as {key} of {where}[{place}]", f"{expected} was expected", "correct it")


def shown(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)} entries"
    text = repr(value)
    return "nothing" if value is None else text if len(text) < 60 else text[:60] + "..."


def is_list(value: Any, size: int) -> bool:
    """Whether it is a list of that length."""
    return isinstance(value, list) and len(value) == size
