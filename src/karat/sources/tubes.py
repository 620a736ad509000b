"""Tubes: where one object is in the frames of one video, as boxes or as masks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

import numpy as np

from karat.errors import InputError, told

from .guard import check_frame, check_sides, guarded, refusal
from .stream import Array

Order = Literal["x1y1x2y2", "x1x2y1y2"]
MOST_FRAMES = 1_000_000
FAR = 1e6  # no coordinate in pixels, and none that is relative, is as large


@dataclass(frozen=True, eq=False)
class Masks:
    """The masks (H, W) of `length` frames, which are read one after another each time they are asked for.

    source: yields them as they are stored, numbers of which all above 0 are the object's.
    """

    name: str
    length: int
    size: tuple[int, int]
    source: Callable[[], Iterable[Array]]
    first: int | None = None
    stride: int = 1

    def __len__(self) -> int:
        return len(range(self.length)[: self.first : self.stride])

    def __iter__(self) -> Iterator[Array]:
        """Booleans (H, W)."""
        return (_covered(self.name, plane) for plane in self.stored())

    def stored(self) -> Iterator[Array]:
        """The masks as they are stored."""
        width, height = self.size
        with guarded(self.name, "masks"):
            for frame, stored in enumerate(islice(self.source(), 0, self.first, self.stride)):
                if stored.shape != (height, width):
                    raise refusal(
                        self.name,
                        f"has a mask {frame} of shape {stored.shape}",
                        f"({height}, {width}) as the first was expected",
                        "give all frames of a video one size",
                    )
                yield stored

    def select(self, first: int | None, stride: int) -> Masks:
        """The frames before `first`, and every `stride` of those."""
        return replace(self, first=first, stride=stride)


def _covered(name: str, stored: Array) -> Array:
    if stored.dtype.kind == "b":
        return stored
    if stored.dtype.kind == "f" and np.isnan(stored).any():
        raise refusal(name, "has NaN in its masks", "numbers were expected", "replace them by 0")
    covered: Array = stored > 0
    return covered


@dataclass(frozen=True, eq=False)
class Tube:
    """One object in T frames. `name` is what messages call it, `id` its own in its file.

    boxes: (T, 4) as they were given, NaN where there is none; of masks all are NaN.  size: (width, height) of the
    frames, in whose pixels boxes are; None where these are relative.  masks: in the place of boxes.
    found: in how many frames the object was found, where that is declared.  painted: the boxes are whole pixels, as
    masks had them.  missing: nobody made a prediction.
    order: in which order a box is given; None where that is in `doubt`.  repeated: how often its id came before.
    place: in its file.  subject, caption: what was asked for.  detector: what found the boxes.  pickled: where from.
    damage: why the record cannot be used.
    """

    name: str
    boxes: Array
    id: str = ""
    size: tuple[int, int] | None = None
    masks: Masks | None = None
    found: int | None = None
    painted: bool = False
    missing: bool = False
    order: Order | None = "x1y1x2y2"
    doubt: str = ""
    repeated: int = 0
    place: int = 0
    subject: str = ""
    caption: str = ""
    detector: str = field(default="", repr=False)
    pickled: bool = False
    damage: str = ""

    @property
    def length(self) -> int:
        """The number of frames."""
        return len(self.boxes)

    def select(self, first: int | None, stride: int) -> Tube:
        """The frames before `first`, and every `stride` of those; what was declared of all of them goes."""
        if first is None and stride == 1:
            return self
        masks = None if self.masks is None else self.masks.select(first, stride)
        return replace(self, boxes=self.boxes[:first:stride], masks=masks, found=None)

    def digest(self) -> str:
        """sha256 of the content, in hex: of masks their pixels, however they are stored, and values besides 0 and 1."""
        about = (self.length, self.size, self.found, self.painted, self.missing, self.order, self.detector, self.damage)
        state = hashlib.sha256(repr(about).encode())
        if self.masks is None:
            state.update(np.ascontiguousarray(self.boxes + 0.0).data)  # no negative zeros
        else:
            for plane in self.masks.stored():
                plain = plane.dtype.kind == "b"
                state.update(np.packbits(plane if plain else plane != 0).data)
                if not plain and ((plane != 0) & (plane != 1)).any():
                    state.update(plane.dtype.str.encode() + np.ascontiguousarray(plane).tobytes())
        return state.hexdigest()

    def open(self) -> Tube:
        """Itself, where it can be used."""
        if self.damage:
            raise InputError(self.damage)
        return self


def make_tube(name: str, boxes: Any = None, size: Any = None, masks: Masks | None = None, **about: Any) -> Tube:
    """A checked tube of boxes, rows of four finite numbers or of NaN, or of masks."""
    if masks is not None:
        return Tube(name, np.full((masks.length, 4), np.nan), size=masks.size, masks=masks, **about)
    given = np.asarray(boxes, np.float64)
    given = np.zeros((0, 4)) if not given.size else given
    if given.ndim != 2 or given.shape[1] != 4 or len(given) > MOST_FRAMES:
        raise refusal(name, f"has boxes of shape {given.shape}", "(frames, 4) was expected", "give x1, y1, x2, y2")
    absent = np.isnan(given).all(axis=1)
    if not (np.abs(given[~absent]) < FAR).all():
        frame = int(np.flatnonzero(~absent & ~(np.abs(given) < FAR).all(axis=1))[0])
        raise refusal(
            name,
            f"has the box {given[frame].tolist()} in frame {frame}",
            "four finite numbers were expected",
            "correct it, or give null where there is no object",
        )
    if size is None and not (np.abs(given[~absent] - 0.5) <= 1.5).all():
        raise refusal(
            name,
            f"has boxes up to {np.abs(given[~absent]).max():g}",
            "without a width and a height they are relative to the frame, from 0 to 1",
            "give the width and height of the frames that they are pixels of",
        )
    sides = None if size is None else frame_size(name, size)
    shown = given[~absent]
    if sides is not None and len(shown) and (np.abs(shown - 0.5) <= 0.5).all() and (shown != np.trunc(shown)).any():
        raise refusal(
            name,
            f"has boxes within 0 and 1, and frames of {sides[0]}x{sides[1]}",
            "beside a size they are in pixels",
            "leave the width and height out, or multiply",
        )
    return Tube(name, given, size=sides, **about)


def inverted(boxes: Array) -> Array:
    """Where a box ends before it begins."""
    return np.asarray((boxes[:, 2:] < boxes[:, :2]).any(axis=1))


def frame_size(name: str, size: Any) -> tuple[int, int]:
    """A checked (width, height)."""
    wrong = refusal(name, f"has the size {told(str(size)[:40])}", "a width and a height were expected", "give both")
    try:
        sides = np.asarray(size)
    except ValueError:
        raise wrong from None
    if sides.shape != (2,) or sides.dtype.kind not in "iuf" or not np.isfinite(sides).all():
        raise wrong
    if not (sides == np.trunc(sides)).all():
        raise wrong
    check_sides(name, *map(int, sides))
    return int(sides[0]), int(sides[1])


def make_masks(name: str, shape: tuple[int, ...], itemsize: int, source: Callable[[], Iterable[Array]]) -> Masks:
    """Masks of shape (T, H, W), checked before any of them is read."""
    if len(shape) != 3 or shape[0] > MOST_FRAMES:
        raise refusal(name, f"has masks of shape {shape}", "(frames, height, width) was expected", "reshape them")
    length, height, width = shape
    if length:
        check_sides(name, width, height)
        check_frame(name, shape[1:], itemsize)
    return Masks(name, length, (width, height), source)


def no_tube(truth: Tube) -> Tube:
    """The prediction of nothing beside a truth."""
    return Tube(truth.name, np.full((truth.length, 4), np.nan), missing=True)
