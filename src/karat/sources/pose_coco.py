"""Poses in JSON as COCO has them: the truth with its images and categories, or a list of detections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from karat.errors import InputError, told

from .guard import refusal
from .poses import Poses, make_poses
from .stream import Array

Items = Sequence[dict[str, Any]]
Categories = dict[int, tuple[str, tuple[str, ...]]]
MOST = int(np.iinfo(np.int32).max)
VISIBILITIES = (0, 1, 2)
REAL: frozenset[type] = frozenset({int, float})


@dataclass(frozen=True, eq=False)
class Coco:
    """One file, which is one video: its frames are the ids of the images, or their ranks where these are too large.

    images: their ids, rising; None in a list of detections.  categories: the known ids.  chosen: the one that the
    instances are of; None where that is not known.  nodes: names, empty where there are none.
    image, category: of each instance.  points: (n, K, 2), NaN for missing nodes.
    rest: what else is known of the instances, by the names of `Poses`.
    """

    name: str
    images: Array | None
    categories: Sequence[int]
    chosen: int | None
    nodes: tuple[str, ...]
    image: Array
    category: Array
    points: Array
    rest: dict[str, Array]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.image, self.category, self.points, *self.rest.values()))

    def poses(self, truth: Coco | None = None) -> Poses:
        """The instances. Detections do not say which images there are, which category has keypoints, and what these are
        called: they take that from the truth, and those of its other categories are left out."""
        by = self if truth is None or truth.images is None else truth
        if by.images is not None:
            self._check_known("image", self.image, by, by.images)
        held, nodes, listed = np.arange(len(self.image)), self.nodes, self.images
        if listed is not None and by.images is not None:
            listed = np.intersect1d(listed, by.images)
        elif by is not self:
            self._check_known("category", self.category, by, np.array(by.categories, np.int64))
            held = np.flatnonzero(self.category == by.chosen)
            nodes = by.nodes if len(by.nodes) == self.points.shape[1] else ()
        elif len(np.unique(self.category)) > 1:
            raise _several(self.name, dict.fromkeys(np.unique(self.category).tolist(), ""))
        return make_poses(
            self.points[held],
            _frames(self.name, self.image[held], by.images),
            nodes=nodes or None,
            labelled=None if listed is None else _frames(self.name, listed, by.images),
            **{name: column[held] for name, column in self.rest.items()},
        )

    def _check_known(self, name: str, own: Array, truth: Coco, known: Array) -> None:
        """Every instance belongs to an image and to a category that the truth has."""
        strange = np.flatnonzero(~np.isin(own, known))
        if len(strange):
            where = "detections" if self.images is None else "annotations"
            raise refusal(
                self.name,
                f"has {own[strange[0]]} as {name}_id of {where}[{strange[0]}]",
                f"{'it' if truth is self else told(truth.name)} lists no such {name}",
                "give the files of one dataset",
            )


def is_coco(document: Any) -> bool:
    """Whether a JSON document is a COCO truth or a list of COCO detections."""
    if isinstance(document, dict):
        return "annotations" in document and "images" in document
    return isinstance(document, list) and (
        not document or (isinstance(document[0], dict) and "image_id" in document[0])
    )


def read_coco(name: str, document: Any) -> Coco:
    """A COCO document, checked. Annotations of one category are read; one without keypoints has all nodes missing.

    Of annotations, v = 0 is a missing node. Of detections, v is a visibility where all are 0, 1 or 2 and not all the
    same, and then 0 is a missing node; otherwise no node is missing, as for pycocotools, and v is the confidence unless
    all are 0, 1 or 2.
    """
    if isinstance(document, list):
        items = _items(name, "detections", document)
        keypoints = _keypoints(name, "detections", items)
        v, rest = keypoints[..., 2], _rest(name, "detections", items)
        flags = np.isin(v, VISIBILITIES).all()
        seen = v > 0 if flags and (v != v.ravel()[:1]).any() else ~np.isnan(keypoints[..., 0])
        rest |= {"user": np.zeros(len(items), bool), **({} if flags else {"confidence": v})}
        image, category = (_whole(name, "detections", key, items) for key in ("image_id", "category_id"))
        return Coco(name, None, (), None, (), image, category, _where(seen, keypoints), rest)
    images = _items(name, "images", document["images"])
    ids, times = np.unique(_whole(name, "images", "id", images), return_counts=True)
    if (times > 1).any():
        raise refusal(name, f"lists image {ids[times > 1][0]} twice", "ids of images are unique", "remove one")
    categories = _categories(name, document.get("categories", []))
    items = _items(name, "annotations", document["annotations"])
    _check_ids(name, items)
    image, category = (_whole(name, "annotations", key, items) for key in ("image_id", "category_id"))
    chosen = _chosen(name, categories, items, category.tolist())
    nodes = categories[chosen][1] if chosen in categories else ()
    keypoints, rest = _keypoints(name, "annotations", items, len(nodes), chosen), _rest(name, "annotations", items)
    seen = keypoints[..., 2] > 0
    rest["ignore"] |= (_optional(name, "annotations", "num_keypoints", items, -1) == 0) & seen.any(axis=1)
    rest["user"] = np.isnan(rest["score"])
    known = list(categories) or np.unique(category).tolist()
    points, held = _where(seen, keypoints), np.flatnonzero(category == chosen)
    own = {key: column[held] for key, column in rest.items()}
    return Coco(name, ids, known, chosen, nodes, image[held], category[held], points[held], own)


def _frames(name: str, ids: Array, images: Array | None) -> Array:
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


def _categories(name: str, given: Any) -> Categories:
    """What categories are called, and what their keypoints are."""
    items = _items(name, "categories", given)
    categories: Categories = {}
    for place, number in enumerate(_whole(name, "categories", "id", items).tolist()):
        if number in categories:
            raise refusal(name, f"lists category {number} twice", "ids of categories are unique", "renumber one")
        names = items[place].get("keypoints", [])
        if not isinstance(names, list) or set(map(type, names)) - {str}:
            raise _misplaced(name, "categories", "keypoints", place, _shown(names), "a list of names")
        categories[number] = str(items[place].get("name", "")), tuple(names)
    return categories


def _chosen(name: str, categories: Categories, items: Items, numbers: list[int]) -> int | None:
    """The one category with keypoints: that declares some where any does, or that has annotations with some."""
    for place, number in enumerate(numbers if categories else ()):
        if number not in categories:
            raise _misplaced(name, "annotations", "category_id", place, str(number), "one of its categories")
    declared = [number for number, (_, nodes) in categories.items() if nodes]
    used = {number for number, item in zip(numbers, items, strict=True) if item.get("keypoints")}
    found = sorted(used.intersection(declared) if declared else used) or declared
    if len(found) > 1:
        raise _several(name, {number: categories.get(number, ("", ()))[0] for number in found})
    if not found and items:
        raise refusal(name, "has no keypoints", "poses were expected", "choose the file with the keypoints")
    return found[0] if found else None


def _several(name: str, found: dict[int, str]) -> InputError:
    listed = ", ".join(f"{number} {label!r}" if label else str(number) for number, label in list(found.items())[:20])
    return refusal(
        name,
        f"has keypoints of {len(found)} categories: {listed}",
        "those of one are evaluated at a time",
        "keep one of them",
    )


def _where(seen: Array, keypoints: Array) -> Array:
    points: Array = np.where(seen[..., None], keypoints[..., :2], np.nan)
    return points


def _rest(name: str, where: str, items: Items) -> dict[str, Array]:
    """What is known of instances besides their keypoints."""
    boxes = [item.get("bbox") for item in items]
    _check_each(name, where, "bbox", boxes, lambda box: box is None or _is_list(box, 4), "x, y, width, height")
    flat = list(chain.from_iterable([None] * 4 if box is None else box for box in boxes))
    return {
        "score": _real(name, where, "score", [item.get("score") for item in items]),
        "area": _real(name, where, "area", [item.get("area") for item in items]),
        "box": _real(name, where, "bbox", flat, 4).reshape(-1, 4),
        "track": _optional(name, where, "track_id", items, -1),
        "crowd": _optional(name, where, "iscrowd", items, 0) != 0,
        "ignore": _optional(name, where, "ignore", items, 0) != 0,
    }


def _keypoints(name: str, where: str, items: Items, nodes: int = 0, category: int | None = None) -> Array:
    """(n, K, 3) x, y and v of every instance (of a category), NaN and 0 where it has none."""
    given = [
        None if (one := item.get("keypoints")) == [] or category not in (None, item["category_id"]) else one
        for item in items
    ]
    lists = [one for one in given if one is not None]
    size = 3 * nodes or (len(lists[0]) // 3 * 3 if lists and isinstance(lists[0], list) else 3)
    _check_each(
        name,
        where,
        "keypoints",
        given,
        lambda one: one is None or _is_list(one, size),
        f"a list of {size} numbers, x, y and v of each node,",
    )
    flat = list(chain.from_iterable(lists))
    keypoints = np.full((len(given), size // 3, 3), (np.nan, np.nan, 0.0))
    present = np.array([one is not None for one in given], bool)
    numbers = _numbers(name, where, "keypoints", flat, REAL, np.float64, size)
    keypoints[present] = numbers.reshape(-1, size // 3, 3)
    return keypoints


def _is_list(value: Any, size: int) -> bool:
    return isinstance(value, list) and len(value) == size


def _check_ids(name: str, items: Items) -> None:
    """Ids of annotations are unique where there are any."""
    ids = [one for item in items if (one := item.get("id")) is not None]
    if set(map(type, ids)) - {int, str}:
        raise refusal(name, "has an annotation whose id is neither a number nor text", "one was expected", "correct it")
    if len(set(ids)) < len(ids):
        met: set[Any] = set()
        twice = next(one for one in ids if one in met or met.add(one))  # type: ignore[func-returns-value]
        raise refusal(name, f"has two annotations of id {_shown(twice)}", "ids are unique", "renumber them")


def _items(name: str, where: str, given: Any) -> Items:
    """A list of objects."""
    if not isinstance(given, list) or set(map(type, given)) - {dict}:
        raise refusal(name, f"has {where} that are no list of objects", "COCO has one", "correct it")
    return given


def _whole(name: str, where: str, key: str, items: Items) -> Array:
    """A whole number of every item."""
    return _numbers(name, where, key, [item.get(key) for item in items], frozenset({int}), np.int64)


def _optional(name: str, where: str, key: str, items: Items, filling: int) -> Array:
    """A whole number, a truth value or nothing of every item."""
    given = [filling if (one := item.get(key)) is None else one for item in items]
    return _numbers(name, where, key, given, frozenset({int, bool}), np.int64)


def _real(name: str, where: str, key: str, given: list[Any], each: int = 1) -> Array:
    """A number or nothing, NaN, of every item; `each` of them belong to one."""
    return _numbers(name, where, key, given, REAL | {type(None)}, np.float64, each)


def _numbers(
    name: str, where: str, key: str, given: list[Any], types: frozenset[type], dtype: Any, each: int = 1
) -> Array:
    if not types.issuperset(map(type, given)):
        place = next(i for i, one in enumerate(given) if type(one) not in types)
        raise _misplaced(name, where, key, place // each, _shown(given[place]))
    try:
        numbers = np.array(given, dtype)
        beyond = np.flatnonzero(np.isinf(numbers)).tolist()
    except OverflowError:
        most = np.iinfo(dtype).max if dtype is np.int64 else int(np.finfo(dtype).max)
        beyond = [i for i, one in enumerate(given) if isinstance(one, int) and abs(one) > most]
    if beyond:
        raise _misplaced(name, where, key, beyond[0] // each, "a number beyond 64 bits")
    return numbers


def _check_each(name: str, where: str, key: str, given: list[Any], fits: Callable[[Any], bool], expected: str) -> None:
    for place, one in enumerate(given):
        if not fits(one):
            raise _misplaced(name, where, key, place, _shown(one), expected)


def _misplaced(name: str, where: str, key: str, place: int, found: str, expected: str = "a number") -> InputError:
    return refusal(name, f"has {found} as {key} of {where}[{place}]", f"{expected} was expected", "correct it")


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)} entries"
    text = repr(value)
    return "nothing" if value is None else text if len(text) < 60 else text[:60] + "..."
