"""Masks of instances in COCO's JSON: the truth with its images, or a list of detections; run lengths or polygons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.errors import told

from .coco_json import (
    Items,
    check_ids,
    frames_of,
    image_ids,
    is_list,
    items_of,
    misplaced,
    optional,
    real,
    shown,
    whole,
)
from .guard import check_sides, refusal
from .instance_masks import InstanceMasks, from_planes
from .polygon import filled
from .rle import parse_runs
from .stream import Array

Size = tuple[int, int]  # height, width


@dataclass(frozen=True, eq=False)
class CocoMasks:
    """One file, which is one video: its frames are the ids of the images, or their ranks where these are too large.

    images: their ids, rising; None in a list of detections.  size: of the images, None where that is not said.
    image, category, score: of each instance.  drawn: its segmentation.  where: what the instances are called.
    """

    name: str
    images: Array | None
    size: Size | None
    image: Array
    category: Array
    score: Array
    drawn: Sequence[Any]
    where: str

    def instances(self, truth: CocoMasks | None = None) -> InstanceMasks:
        """The instances of one category. Detections do not say which images there are and how large these are: they
        take that from the truth."""
        by = self if truth is None or truth.images is None else truth
        listed = self.images
        if by.images is not None:
            strange = np.flatnonzero(~np.isin(self.image, by.images))
            if len(strange):
                raise refusal(
                    self.name,
                    f"has {self.image[strange[0]]} as image_id of {self.where}[{strange[0]}]",
                    f"{'it' if by is self else told(by.name)} lists no such image",
                    "give the files of one dataset",
                )
            listed = None if listed is None else np.intersect1d(listed, by.images)
        kinds = np.union1d(self.category, by.category)
        if len(kinds) > 1:
            raise refusal(
                self.name,
                f"has masks of the categories {', '.join(map(str, kinds[:20].tolist()))}"
                + ("" if by is self else f", those of {told(by.name)} included"),
                "those of one are evaluated at a time",
                "keep one of them",
            )
        size = self.size or by.size or self._first_size()
        columns = {"frame": frames_of(self.name, self.image, by.images), "score": self.score}
        if listed is not None:
            columns["labelled"] = frames_of(self.name, listed, by.images)
        return from_planes(self.name, self._planes(size), len(self.drawn), size, columns)

    def _first_size(self) -> Size:
        """What the first run lengths say."""
        said = (_size_of(one) for one in self.drawn if isinstance(one, dict))
        size = next((size for size in said if size is not None), (0, 0))
        if self.drawn and 0 in size:
            raise self._misplaced(0, shown(self.drawn[0]), "run lengths, or an image of a known size,")
        return size

    def _planes(self, size: Size) -> Iterator[Array]:
        for place, drawn in enumerate(self.drawn):
            try:
                yield _mask(drawn, size)
            except ValueError as error:
                expected = f"run lengths of {[*size]}, or polygons"
                raise self._misplaced(place, str(error), expected) from None

    def _misplaced(self, place: int, found: str, expected: str) -> Exception:
        return misplaced(self.name, self.where, "segmentation", place, found, expected)


def read_coco(name: str, document: Any) -> CocoMasks:
    """A COCO document, checked; segmentations are looked at when they are drawn."""
    if isinstance(document, list):
        return _read(name, "detections", document, None, None)
    images = items_of(name, "images", document["images"])
    height, width = (optional(name, "images", key, images, 0) for key in ("height", "width"))
    sizes = {size for size in zip(height.tolist(), width.tolist(), strict=True) if 0 not in size}
    if len(sizes) > 1:
        found = ", ".join(f"{wide}x{high}" for high, wide in sorted(sizes)[:5])
        raise refusal(name, f"has images of {found}", "those of one size are a video", "make a file of each size")
    size = sizes.pop() if sizes else None
    if size is not None:
        check_sides(name, *reversed(size))
    return _read(name, "annotations", document["annotations"], image_ids(name, images), size)


def _read(name: str, where: str, given: Any, images: Array | None, size: Size | None) -> CocoMasks:
    items: Items = items_of(name, where, given)
    if images is not None:
        check_ids(name, items)
        crowds = np.flatnonzero(optional(name, where, "iscrowd", items, 0))
        if len(crowds):
            raise misplaced(name, where, "iscrowd", int(crowds[0]), "1", "a single instance")
    image, category = (whole(name, where, key, items) for key in ("image_id", "category_id"))
    score = real(name, where, "score", [item.get("score") for item in items])
    return CocoMasks(name, images, size, image, category, score, [item.get("segmentation") for item in items], where)


def _mask(drawn: Any, size: Size) -> Array:
    """A segmentation as pixels; ValueError says what is wrong."""
    height, width = size
    if isinstance(drawn, dict):
        if _size_of(drawn) != size:
            raise ValueError(f"run lengths of {shown(drawn.get('size'))}")
        runs = parse_runs(drawn.get("counts"), height * width)
        return runs.window(0, height * width).reshape(width, height).T
    if not isinstance(drawn, list) or not drawn:
        raise ValueError(shown(drawn))
    return filled(drawn, size)


def _size_of(drawn: dict[str, Any]) -> Size | None:
    """What run lengths say of their picture; None where that is nothing."""
    size: Any = drawn.get("size")
    known = is_list(size, 2) and set(map(type, size)) == {int}
    return (size[0], size[1]) if known else None
