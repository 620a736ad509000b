"""Records of boxes or masks, as JSON, pickles and users have them: mappings with an id, checked by their schema."""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain, count
from typing import Any

import numpy as np

from karat.errors import InputError, told

from .guard import GIB, check_sides, guarded, refusal
from .rle import Runs, parse_runs
from .stream import Array
from .tubes import Masks, Order, Tube, frame_size, inverted, make_masks, make_tube

IDS = (str, int)
LISTS, NUMBERS = frozenset({list, tuple}), frozenset({int, float})
NOTHING = (math.nan,) * 4
NO_BOXES = np.zeros((0, 4))
MASKS = ("masks", "mask")
MAX_STACK = GIB
SHOWN = 80  # characters
DOUBTED = 0.01  # the share of inverted boxes from which on it is not the boxes but their order that is doubted
LASOT = "lasot_name"  # in the metadata of records that Peekaboo made of LaSOT


def tubes_of(name: str, records: Any, lasot: bool = False, pickled: bool = False) -> dict[str, Tube]:
    """The tube of every record by its id; of one whose id came before it is `id (2)`, `id (3)`, ...

    lasot: the file is known to have its boxes in the order x1, x2, y1, y2.
    """
    if not isinstance(records, list | tuple) or not all(isinstance(record, Mapping) for record in records):
        raise refusal(
            name, "holds no list of records", 'a list of {"id": ..., "bboxes": ...} was expected', "convert it"
        )
    ids = [id_of(name, place, record.get("id")) for place, record in enumerate(records)]
    tubes: dict[str, Tube] = {}
    free, times = _again(set(ids)), Counter[str]()
    for place, (own, record) in enumerate(zip(ids, records, strict=True)):
        about: dict[str, Any] = {"id": own, "repeated": times[own], "place": place, "pickled": pickled}
        key = own if not times[own] else next(free(own))
        tubes[key] = replace(_tube_or_reason(f"{name}, id {own[:SHOWN]}", record), **about)
        times[own] += 1
    return in_order(tubes, lasot, any(_is_lasot(record) for record in records))


def _again(taken: set[str]) -> Callable[[str], Iterator[str]]:
    """Names for what comes again: `id (2)`, `id (3)`, ..., those that are ids themselves left out."""

    @cache
    def free(own: str) -> Iterator[str]:
        return (name for n in count(2) if (name := f"{own} ({n})") not in taken)

    return free


def _tube_or_reason(name: str, record: Mapping[str, Any]) -> Tube:
    """One bad record costs itself alone."""
    try:
        with guarded(name, "boxes or masks"):
            return tube_of(name, record)
    except InputError as error:
        return Tube(name, NO_BOXES, damage=str(error))


def id_of(name: str, place: int, given: Any) -> str:
    """An id as text: 1 and "1" are one."""
    plain = given.item() if isinstance(given, np.generic) else given
    if type(plain) not in IDS or (text := str(plain).strip()) == "":
        raise refusal(name, f"has the id {_shown(given)} in record {place}", "text or a number was expected", "name it")
    return text


def tube_of(name: str, record: Mapping[str, Any]) -> Tube:
    """The tube of one record."""
    if "failure" in record:
        raise InputError(f"nothing could be detected: {told(str(record['failure'])[:500])}")
    about: dict[str, Any] = {key: _text(name, key, record.get(key)) for key in ("subject", "caption", "detector")}
    about |= {"found": _count(name, record.get("num_bb")), "painted": record.get("painted") is True}
    size = None if (given := [record.get(key) for key in ("width", "height")]) == [None, None] else given
    boxes = record.get("bboxes", record.get("boxes"))
    masks = next((record[key] for key in MASKS if record.get(key) is not None), None)
    if (boxes is None) == (masks is None):
        found = told(", ".join(map(str, record))[:SHOWN])
        raise refusal(name, f"has {found}", "bboxes or masks were expected", "give one of them")
    if masks is not None:
        return make_tube(name, masks=masks_of(name, masks), **about)
    if _is_pixels(boxes):
        return make_tube(name, masks=masks_of(name, boxes), **about)
    return make_tube(name, box_rows(name, boxes), None if size is None else frame_size(name, size), **about)


def box_rows(name: str, boxes: Any) -> Array:
    """Rows of four numbers, NaN where a box is null, of lists or of an array."""
    if hasattr(boxes, "__array__") or hasattr(boxes, "read"):
        array = _read(boxes)
        if array.dtype.kind not in "iuf":
            raise refusal(name, f"has boxes of {array.dtype.name}", "numbers were expected", "convert them")
        return array.astype(np.float64)
    if not isinstance(boxes, Sequence) or isinstance(boxes, str | bytes):
        raise refusal(name, f"has {type(boxes).__name__} as boxes", "a list of them was expected", "give a box a frame")
    with suppress(OverflowError):  # of integers beyond any number
        if _are_boxes(boxes):
            return np.array([NOTHING if box is None else box for box in boxes], np.float64)
    frame, box = next((frame, box) for frame, box in enumerate(boxes) if box is not None and not _is_box(box))
    raise refusal(
        name,
        f"has the box {_shown(box)} in frame {frame}",
        "null or four numbers x1, y1, x2, y2 were expected",
        "correct it",
    )


def _shown(value: Any) -> str:
    """The start of a value: a long one is not spelled out to be cut."""
    return told(reprlib.repr(value)[:SHOWN])


def _are_boxes(boxes: Sequence[Any]) -> bool:
    given = [box for box in boxes if box is not None]
    plain = LISTS.issuperset(map(type, given)) and {4}.issuperset(map(len, given))
    return (plain and NUMBERS.issuperset(map(type, chain.from_iterable(given)))) or all(map(_is_box, given))


def _is_box(box: Any) -> bool:
    if isinstance(box, np.ndarray):
        return box.shape == (4,) and box.dtype.kind in "iuf"
    if not isinstance(box, list | tuple) or len(box) != 4:
        return False
    numbers = all(isinstance(one, np.floating | np.integer) or type(one) in NUMBERS for one in box)
    return numbers and all(type(one) is not int or one.bit_length() <= 64 for one in box)


def _is_pixels(boxes: Any) -> bool:
    """Whether what is called boxes are masks, as the specification has it: pictures, or all of them in an array."""
    if isinstance(boxes, list | tuple):
        return any(len(getattr(box, "shape", ())) >= 2 for box in boxes)
    return len(getattr(boxes, "shape", ())) >= 3


def masks_of(name: str, given: Any) -> Masks:
    """Masks of T frames: an array (T, H, W) or (T, 1, H, W), or a list of arrays (H, W), run lengths or null."""
    if not isinstance(given, list | tuple):
        shape = _flat(tuple(given.shape)) if hasattr(given, "shape") else ()
        check_numbers(name, given)
        if hasattr(given, "read") and math.prod(shape) * given.dtype.itemsize > MAX_STACK:
            raise refusal(
                name,
                f"has masks of shape {shape} in one array",
                "up to 1 GiB is read whole",
                "save them frame by frame",
            )
        return make_masks(name, shape, given.dtype.itemsize, lambda: _read(given).reshape(shape))
    sizes = [size for one in given if (size := _size(name, one)) is not None]
    height, width = sizes[0] if sizes else (1, 1)
    item = max((one.dtype.itemsize for one in given if hasattr(one, "dtype")), default=1)
    return make_masks(name, (len(given), height, width), item, lambda: _planes(name, given, (height, width)))


def _flat(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], *shape[2:]) if len(shape) == 4 and shape[1] == 1 else shape


def check_numbers(name: str, array: Any) -> None:
    """Refuses an array of anything but numbers and booleans."""
    kind = getattr(getattr(array, "dtype", None), "kind", "nothing")
    if kind not in "biuf":
        raise refusal(name, "has masks that are no arrays of numbers", "booleans were expected", "convert them")


def _size(name: str, one: Any) -> tuple[int, int] | None:
    """The height and width that a frame's mask says; None where it says none."""
    if one is None:
        return None
    if isinstance(one, Mapping):
        size = one.get("size")
        if not isinstance(size, list | tuple) or len(size) != 2 or {*map(type, size)} != {int}:
            raise refusal(
                name, "has run lengths without a size", '{"size": [height, width], ...} was expected', "add it"
            )
        check_sides(name, size[1], size[0])
        return size[0], size[1]
    check_numbers(name, one)
    shape = tuple(one.shape)
    shape = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape
    if len(shape) != 2:
        raise refusal(name, f"has a mask of shape {shape}", "(height, width) was expected", "give one a frame")
    return shape[0], shape[1]


def _planes(name: str, given: Sequence[Any], size: tuple[int, int]) -> Iterator[Array]:
    for frame, one in enumerate(given):
        if one is None:
            yield np.zeros(size, bool)
        elif isinstance(one, Mapping):
            yield _drawn(name, frame, one)
        else:
            plane = _read(one)
            yield plane[0] if plane.ndim == 3 else plane


def _drawn(name: str, frame: int, lengths: Mapping[str, Any]) -> Array:
    height, width = lengths["size"]
    try:
        runs: Runs = parse_runs(lengths.get("counts"), height * width)
    except ValueError as error:
        raise refusal(
            name, f"has {error} in frame {frame}", "run lengths as COCO writes them were expected", "write them again"
        ) from None
    return runs.window(0, height * width).reshape(width, height).T


def _read(stored: Any) -> Array:
    """An array, from its file where it lies there."""
    array: Array = stored.read() if hasattr(stored, "read") else np.asarray(stored)
    return array


def in_order(tubes: Mapping[str, Tube], lasot: bool, told_lasot: bool) -> dict[str, Tube]:
    """The tubes with the order of their boxes, as all of them together tell it: LaSOT's published file has x1, x2, y1,
    y2. Another file in which many boxes end before they begin is in doubt."""
    given = [one.boxes for one in tubes.values() if one.masks is None]
    boxes = np.concatenate(given) if given else np.zeros((0, 4))
    plain, swapped = (_share_inverted(boxes[:, list(order)]) for order in ((0, 1, 2, 3), (0, 2, 1, 3)))
    order: Order | None = "x1y1x2y2"
    if lasot or (told_lasot and plain > DOUBTED and not swapped):
        order = "x1x2y1y2"
    elif plain > DOUBTED or (told_lasot and not plain and not swapped):
        order = None
    if order == "x1y1x2y2":
        return dict(tubes)
    doubt = "" if order else _doubt(plain, swapped, len(boxes))
    return {key: replace(one, order=order, doubt=doubt) if one.masks is None else one for key, one in tubes.items()}


def _share_inverted(boxes: Array) -> float:
    return float(inverted(boxes).mean()) if len(boxes) else 0.0


def _doubt(plain: float, swapped: float, count: int) -> str:
    if not plain:
        return (
            f"The records come from LaSOT, whose published boxes are x1, x2, y1, y2, and these {count} boxes do not "
            "tell: pass --box-order x1x2y1y2, or x1y1x2y2 if they have been put in order."
        )
    remedy = "correct them" if swapped else "pass --box-order x1x2y1y2, in which none does, or correct them"
    return f"{plain:.0%} of {count} boxes end before they begin (x2 < x1 or y2 < y1): {remedy}."


def _is_lasot(record: Mapping[str, Any]) -> bool:
    metadata = record.get("metadata")
    return isinstance(metadata, Mapping) and LASOT in metadata


def _text(name: str, key: str, given: Any) -> str:
    plain = given.item() if isinstance(given, np.generic) else given
    if plain is not None and not isinstance(plain, str):
        raise refusal(name, f"has {_shown(given)} as {key}", "text was expected", "correct it")
    return plain or ""


def _count(name: str, given: Any) -> int | None:
    plain = given.item() if isinstance(given, np.generic) else given
    if plain is None:
        return None
    if type(plain) is not int or not 0 <= plain < 1 << 31:
        raise refusal(name, f"has {_shown(given)} as num_bb", "a whole number was expected", "correct it")
    return plain
