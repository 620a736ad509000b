"""Poses in JSON as COCO has them: the truth with its images and categories, or a list of detections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from karat.errors import InputError, told

from .coco_json import (
    REAL,
    Items,
    check_each,
    check_ids,
    frames_of,
    image_ids,
    is_list,
    items_of,
    misplaced,
    numbers_of,
    optional,
    real,
    shown,
    whole,
)
from .guard import refusal
from .poses import Poses, make_poses
from .stream import Array

Categories = dict[int, tuple[str, tuple[str, ...]]]
VISIBILITIES = (0, 1, 2)


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
            frames_of(self.name, self.image[held], by.images),
            nodes=nodes or None,
            labelled=None if listed is None else frames_of(self.name, listed, by.images),
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


def read_coco(name: str, document: Any) -> Coco:
    """A COCO document, checked. Annotations of one category are read; one without keypoints has all nodes missing.

    Of annotations, v = 0 is a missing node. Of detections, v is a visibility where all are 0, 1 or 2 and not all the
    same, and then 0 is a missing node; otherwise no node is missing, as for pycocotools, and v is the confidence unless
    all are 0, 1 or 2.
    """
    if isinstance(document, list):
        items = items_of(name, "detections", document)
        keypoints = _keypoints(name, "detections", items)
        v, rest = keypoints[..., 2], _rest(name, "detections", items)
        flags = np.isin(v, VISIBILITIES).all()
        seen = v > 0 if flags and (v != v.ravel()[:1]).any() else ~np.isnan(keypoints[..., 0])
        rest |= {"user": np.zeros(len(items), bool), **({} if flags else {"confidence": v})}
        image, category = (whole(name, "detections", key, items) for key in ("image_id", "category_id"))
        return Coco(name, None, (), None, (), image, category, _where(seen, keypoints), rest)
    ids = image_ids(name, items_of(name, "images", document["images"]))
    categories = _categories(name, document.get("categories", []))
    items = items_of(name, "annotations", document["annotations"])
    check_ids(name, items)
    image, category = (whole(name, "annotations", key, items) for key in ("image_id", "category_id"))
    chosen = _chosen(name, categories, items, category.tolist())
    nodes = categories[chosen][1] if chosen in categories else ()
    keypoints, rest = _keypoints(name, "annotations", items, len(nodes), chosen), _rest(name, "annotations", items)
    seen = keypoints[..., 2] > 0
    rest["ignore"] |= (optional(name, "annotations", "num_keypoints", items, -1) == 0) & seen.any(axis=1)
    rest["user"] = np.isnan(rest["score"])
    known = list(categories) or np.unique(category).tolist()
    points, held = _where(seen, keypoints), np.flatnonzero(category == chosen)
    own = {key: column[held] for key, column in rest.items()}
    return Coco(name, ids, known, chosen, nodes, image[held], category[held], points[held], own)


def _categories(name: str, given: Any) -> Categories:
    """What categories are called, and what their keypoints are."""
    items = items_of(name, "categories", given)
    categories: Categories = {}
    for place, number in enumerate(whole(name, "categories", "id", items).tolist()):
        if number in categories:
            raise refusal(name, f"lists category {number} twice", "ids of categories are unique", "renumber one")
        names = items[place].get("keypoints", [])
        if not isinstance(names, list) or set(map(type, names)) - {str}:
            raise misplaced(name, "categories", "keypoints", place, shown(names), "a list of names")
        categories[number] = str(items[place].get("name", "")), tuple(names)
    return categories


def _chosen(name: str, categories: Categories, items: Items, numbers: list[int]) -> int | None:
    """The one category with keypoints: that declares some where any does, or that has annotations with some."""
    for place, number in enumerate(numbers if categories else ()):
        if number not in categories:
            raise misplaced(name, "annotations", "category_id", place, str(number), "one of its categories")
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
    check_each(name, where, "bbox", boxes, lambda box: box is None or is_list(box, 4), "x, y, width, height")
    flat = list(chain.from_iterable([None] * 4 if box is None else box for box in boxes))
    return {
        "score": real(name, where, "score", [item.get("score") for item in items]),
        "area": real(name, where, "area", [item.get("area") for item in items]),
        "box": real(name, where, "bbox", flat, 4).reshape(-1, 4),
        "track": optional(name, where, "track_id", items, -1),
        "crowd": optional(name, where, "iscrowd", items, 0) != 0,
        "ignore": optional(name, where, "ignore", items, 0) != 0,
    }


def _keypoints(name: str, where: str, items: Items, nodes: int = 0, category: int | None = None) -> Array:
    """(n, K, 3) x, y and v of every instance (of a category), NaN and 0 where it has none."""
    given = [
        None if (one := item.get("keypoints")) == [] or category not in (None, item["category_id"]) else one
        for item in items
    ]
    lists = [one for one in given if one is not None]
    size = 3 * nodes or (len(lists[0]) // 3 * 3 if lists and isinstance(lists[0], list) else 3)
    check_each(
        name,
        where,
        "keypoints",
        given,
        lambda one: one is None or is_list(one, size),
        f"a list of {size} numbers, x, y and v of each node,",
    )
    flat = list(chain.from_iterable(lists))
    keypoints = np.full((len(given), size // 3, 3), (np.nan, np.nan, 0.0))
    present = np.array([one is not None for one in given], bool)
    numbers = numbers_of(name, where, "keypoints", flat, REAL, np.float64, size)
    keypoints[present] = numbers.reshape(-1, size // 3, 3)
    return keypoints
