"""How an object follows the boxes that were asked for, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import Inapplicable, InputError, counted, told
from karat.kernels.boxes import area, centre, intersection, on_grid, painted, within
from karat.kernels.outlines import outline, published_middle
from karat.metric import Array, Statistic
from karat.rows import Elements
from karat.sources.records import Finding
from karat.sources.tubes import Tube, inverted

OVERLAPS = tuple(step / 20 for step in range(21))
PIXELS = (5, 10, 20, 50)
_OVERLAPS, _PIXELS = np.array(OVERLAPS), np.array(PIXELS)
IN_ORDER, PLAIN = "pass --box-order x1x2y1y2 if that is the order of the file", "give x1, y1, x2, y2"
ROUNDING = 1e-9  # pixels
PUBLISHED_FRAMES = 16  # of a video, as the published script takes it
PUBLISHED_DIAGONAL = float(np.sqrt(320**2 + 576**2))  # in pixels, likewise
PUBLISHED_EPS = 1e-5
PUBLISHED_LEAST = 5  # pixels of truth in a video


@dataclass(frozen=True)
class Scene:
    """Both sides of T frames in pixels: where the object was asked for and where it was found, (T, 4) and (T, 2).

    asked: the boxes, whose area is 0 where there is none.  found: areas.  shared: of both.  apart: (T, 2) from the
    centre of one to that of the other.  clipped: whether the found one left the frame.  amount: the values of a mask
    added up, which are those of its pixels where these are 0 and 1.
    """

    asked: Array
    found: Array
    shared: Array
    apart: Array
    clipped: Array
    amount: Array


@dataclass(frozen=True)
class Following(Statistic):
    """How a predicted object lies on the box that was asked for: a row for each frame that both sides have.

    truth: boxes. pred: boxes, whose areas are exact, or masks (and boxes that are known to have been painted), with
    which the boxes asked for are laid on the pixels: borders rounded, halves up. The centroid of a mask is that of its
    pixels. Boxes are cut at the frame, and one without an area is none. The first frames are compared where one side
    has more (align="error": an error). Without a prediction nothing was detected. box_order="auto": x1, y1, x2, y2
    unless the file is LaSOT's (x1, x2, y1, y2).
    """

    align: Literal["prefix", "error"] = "prefix"
    box_order: Literal["auto", "x1y1x2y2", "x1x2y1y2"] = "auto"

    unit: ClassVar = "element"
    record: ClassVar = "tubes"

    def measure(self, pred: Tube, truth: Tube) -> Elements:
        return self.follow(pred, truth)

    def doubts(self, **records: Tube) -> Iterator[Finding]:
        pred, truth = (records[name] for name in self.fields())
        try:
            self._frames(pred, truth)
            asked = _asked(truth, self._order(truth), _size(pred, truth))
            _check(truth, asked, IN_ORDER)
            if pred.masks is None:
                _check(pred, pred.boxes, PLAIN)
        except InputError as error:
            yield "error", str(error)
            return
        if not (area(asked) > 0).any():
            yield "warning", "no frame of the truth has a box: its scores are undefined."
        if pred.length != truth.length:
            both = f"{counted(pred.length, 'frame')} and {truth.length} boxes were asked for"
            yield "note", f"there are {both}: the first {min(pred.length, truth.length)} are compared."
        if pred.masks is None and np.isnan(pred.boxes).all():
            yield "warning", "nothing was detected in any frame."

    def follow(self, pred: Tube, truth: Tube) -> Elements:
        """The rows of a video."""
        frames = self._frames(pred, truth)
        size = _size(pred, truth)
        order = self._order(truth)
        given = _settled(_asked(truth, order, size)[:frames])
        _check(truth, given, IN_ORDER)
        asked = within(given, *size)
        left = (asked != given).any(axis=1) & ~np.isnan(given[:, 0])
        valid = area(asked) > 0
        asked[~valid] = np.nan
        laid = on_grid(asked) if pred.painted else asked
        scene = _of_masks(pred, asked) if pred.masks is not None else _of_boxes(pred, laid, size)
        detected, asked_area = scene.found > 0, area(scene.asked)
        either = np.where(valid, asked_area + scene.found - scene.shared, 0)
        shared = np.where(valid, scene.shared, 0)
        both, diagonal = valid & detected, float(np.hypot(*size))
        columns = {
            "frames": np.ones(frames, bool),
            "truth": valid,
            "detected": detected,
            "counted": detected,
            "expected": np.ones(frames, bool),
            "both": both,
            "placed": both,
            "hit": valid & (either > 0) & (2 * shared >= either),
            **_overlap(shared, either, valid, 0.0),
            "asked_area": asked_area,
            "found_area": scene.found,
            **_distances(np.where(both[:, None], scene.apart, 0), both, diagonal),
            **_still(asked, valid, diagonal if pred.size or truth.size else np.nan),
            "extra": detected & ~valid,
            "clipped_truth": left,
            "clipped_pred": scene.clipped,
            **_once(frames, records=1, missing=pred.missing, untold=not valid.any(), surplus=pred.length - frames),
            **_once(frames, unmet=0 if pred.missing else truth.length - frames, place=pred.place),
            **_once(frames, reordered=order != "x1y1x2y2"),
        }
        return Elements(np.arange(frames), columns)

    def _frames(self, pred: Tube, truth: Tube) -> int:
        if not truth.length:
            raise Inapplicable("no frame is asked for.")
        if truth.masks is not None:
            raise InputError(f"{told(truth.name)} has masks: boxes are what an object is asked to follow.")
        if not pred.length:
            raise InputError(f"{told(pred.name)} has no frame: a box or null was expected for each.")
        if self.align == "error" and pred.length != truth.length:
            raise InputError(
                f"{told(pred.name)} has {pred.length} frames and {truth.length} boxes were asked for: "
                "pass --set following.align=prefix to compare the first."
            )
        return min(pred.length, truth.length)

    def _order(self, truth: Tube) -> str:
        if self.box_order != "auto":
            return self.box_order
        if truth.order is None:
            raise InputError(truth.doubt)
        return truth.order


@dataclass(frozen=True)
class PublishedFollowing(Following):
    """The same in the arithmetic of the published script: boxes are painted with their edges cut to whole pixels, a box
    that is asked for in vain and one that nobody asked for both count as area, an undetected object is at the corner
    (0, 0) of the picture, detections are as many as the file declares, of 16, the diagonal is always that of 576x320,
    1e-5 is added to the union. A video without a prediction, or with less than 5 pixels of truth, is left out.
    """

    box_order: Literal["auto", "x1y1x2y2", "x1x2y1y2"] = "x1y1x2y2"

    def follow(self, pred: Tube, truth: Tube) -> Elements:
        """The rows of a video."""
        if pred.missing:
            raise Inapplicable("there is no prediction.")
        frames = self._frames(pred, truth)
        width, height = size = _size(pred, truth)
        order = self._order(truth)
        asked = painted(_asked(truth, order, size)[:frames], width, height)
        asked_area = area(asked)
        if asked_area.sum() < PUBLISHED_LEAST:
            raise Inapplicable(f"the boxes asked for have less than {PUBLISHED_LEAST} pixels.")
        scene, counted = _painted_masks(pred, asked) if pred.masks is not None else _painted_boxes(pred, asked, size)
        valid, detected = asked_area > 0, scene.amount > 0
        either = asked_area + scene.found - scene.shared
        columns = {
            "frames": np.ones(frames, bool),
            "truth": valid,
            "detected": detected,
            **_once(frames, counted=counted, expected=PUBLISHED_FRAMES),
            "both": valid & detected,
            "placed": np.ones(frames, bool),
            "hit": detected & (scene.shared / (either + PUBLISHED_EPS) >= 0.5),
            **_overlap(scene.shared.astype(np.float64), either.astype(np.float64), valid, PUBLISHED_EPS),
            "asked_area": asked_area.astype(np.float64),
            "found_area": scene.amount.astype(np.float64),
            **_distances(scene.apart, valid & detected, PUBLISHED_DIAGONAL),
            **_still(asked, valid, PUBLISHED_DIAGONAL),
            "extra": detected & ~valid,
            "clipped_truth": np.zeros(frames, bool),
            "clipped_pred": scene.clipped,
            **_once(frames, records=1, missing=False, untold=False, surplus=pred.length - frames),
            **_once(frames, unmet=truth.length - frames, place=pred.place, reordered=order != "x1y1x2y2"),
        }
        return Elements(np.arange(frames), columns)


def _size(pred: Tube, truth: Tube) -> tuple[int, int]:
    size = pred.size or truth.size or ((1, 1) if pred.missing else None)
    if size is None:
        raise InputError(f"{told(pred.name)} does not say how large its frames are: give their width and height.")
    return size


def _asked(truth: Tube, order: str, size: tuple[int, int]) -> Array:
    """The boxes x1, y1, x2, y2 in pixels of frames of that size."""
    boxes = truth.boxes if order == "x1y1x2y2" else truth.boxes[:, [0, 2, 1, 3]]
    return boxes * (_corners(size) if truth.size is None else _corners(size) / _corners(truth.size))


def _corners(size: tuple[int, int]) -> Array:
    """What both corners are multiplied by."""
    return np.array(size * 2)


def _check(tube: Tube, boxes: Array, otherwise: str) -> None:
    wrong = np.flatnonzero(inverted(boxes))
    if len(wrong):
        box = ", ".join(f"{edge:g}" for edge in tube.boxes[wrong[0]])
        raise InputError(
            f"{told(tube.name)} has the box ({box}) in frame {wrong[0]}, which ends before it begins: correct it, or "
            f"{otherwise}."
        )


def _settled(boxes: Array) -> Array:
    """Edges that only rounding keeps from a whole pixel are on it."""
    whole = np.rint(boxes)
    return np.where(np.abs(boxes - whole) < ROUNDING, whole, boxes)


def _of_boxes(pred: Tube, asked: Array, size: tuple[int, int]) -> Scene:
    boxes = pred.boxes[: len(asked)] * (_corners(size) if pred.size is None else 1)
    _check(pred, boxes, PLAIN)
    cut = within(boxes, *size)
    left = (cut != boxes).any(axis=1) & ~np.isnan(boxes[:, 0])
    found = area(cut)
    return Scene(asked, found, intersection(cut, asked), centre(cut) - centre(asked), left, found)


def _of_masks(pred: Tube, asked: Array) -> Scene:
    """Whole pixels on both sides."""
    asked = np.nan_to_num(on_grid(asked))
    found, shared, middle = np.zeros(len(asked)), np.zeros(len(asked)), np.zeros((len(asked), 2))
    for frame, (mask, box) in enumerate(zip(pred.masks or (), asked, strict=False)):
        one = outline(mask)
        found[frame], shared[frame], middle[frame] = one.area, one.shared(box), one.centroid
    return Scene(asked, found, shared, middle - centre(asked), np.zeros(len(asked), bool), found)


def _painted_boxes(pred: Tube, asked: Array, size: tuple[int, int]) -> tuple[Scene, int]:
    """Both sides as the script paints them, and the number of detections."""
    given = pred.boxes * (_corners(size) if pred.size is None else 1)
    counted = int((~np.isnan(given[:, 0])).sum()) if pred.found is None else pred.found
    boxes = painted(given[: len(asked)], *size)
    apart = _published_middles(boxes) - _published_middles(asked)
    left = (within(given[: len(asked)], *size) != given[: len(asked)]).any(axis=1) & (area(boxes) > 0)
    found = area(boxes)
    return Scene(asked, found, intersection(boxes, asked), apart, left, found), counted


def _painted_masks(pred: Tube, asked: Array) -> tuple[Scene, int]:
    found, shared = np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
    middle, amount, counted = np.zeros((len(asked), 2)), np.zeros(len(asked)), 0
    for frame, stored in enumerate(pred.masks.stored() if pred.masks is not None else ()):
        if frame >= len(asked) and pred.found is not None:
            break
        one = outline(stored if stored.dtype.kind == "b" else stored != 0)
        counted += one.area > 0
        if frame < len(asked):
            found[frame], shared[frame] = one.area, one.shared(asked[frame])
            middle[frame] = published_middle(stored, one)
            amount[frame] = one.area if stored.dtype.kind == "b" else stored.sum(dtype=np.float64)
    apart, inside = middle - _published_middles(asked), np.zeros(len(asked), bool)
    scene = Scene(asked, found, shared, apart, inside, amount)
    return scene, counted if pred.found is None else pred.found


def _published_middles(boxes: Array) -> Array:
    """The middles of the first and the last pixels; (0, 0) of nothing."""
    return np.where((area(boxes) > 0)[:, None], (boxes[:, :2] + boxes[:, 2:] - 1) / 2, 0.0)


def _overlap(shared: Array, either: Array, valid: Array, eps: float) -> Mapping[str, Array]:
    """Areas, their ratio in each frame (0 where there is none), and which thresholds that exceeds."""
    iou = np.divide(shared, either + eps, out=np.zeros(len(either)), where=valid & (either > 0))
    exceeds = (iou[:, None] > _OVERLAPS) & valid[:, None]
    return {"inter": shared, "union": either, "iou": iou, "exceeds": exceeds}


def _distances(apart: Array, both: Array, diagonal: float) -> Mapping[str, Array]:
    """Between the centres: Euclidean and the sum along the axes, in pixels and in diagonals."""
    straight, along = np.sqrt((apart**2).sum(axis=1)), np.abs(apart).sum(axis=1)
    near = (straight[:, None] <= _PIXELS) & both[:, None]
    return {
        "l2_px": straight,
        "l1_px": along,
        "l2": straight / diagonal,
        "l1": along / diagonal,
        "near": near,
    }


def _still(asked: Array, valid: Array, diagonal: float) -> Mapping[str, Array]:
    """How the box that lies at the mean of those asked for, and never moves, does; NaN where no diagonal is known."""
    box = asked[valid].mean(axis=0, keepdims=True) if valid.any() else np.zeros((1, 4))
    shared = np.where(valid, intersection(box, asked), 0)
    either = np.where(valid, area(box) + area(asked) - shared, 0)
    apart = np.where(valid[:, None], centre(box) - centre(asked), 0)
    return {
        "still_inter": shared,
        "still_union": either,
        "still_hit": valid & (2 * shared >= either),
        "still_l2": np.sqrt((apart**2).sum(axis=1)) / diagonal,
    }


def _once(frames: int, **values: int) -> Mapping[str, Array]:
    """What is known of the whole video, in its first row."""
    columns = {name: np.zeros(frames, np.int64) for name in values}
    for name, value in values.items():
        columns[name][0] = value
    return columns
