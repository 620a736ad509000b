"""What the published script says of predictions and boxes: canvases of pixels, a sum at a time, in its order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Canvas = NDArray[Any]
Box = Sequence[float] | None
ENOUGH, LEAST, EPS = 8, 5, 1e-5
DIAGONAL = math.sqrt(320 * 320 + 576 * 576)
LEAST_IOU = 0.5


@dataclass(frozen=True)
class Prediction:
    """A generated video, as the script reads it: one mask (H, W) a frame, and in how many frames it was found."""

    id: Any
    masks: list[Canvas]
    num_bb: int


@dataclass(frozen=True)
class Record:
    """What the script says of one video."""

    id: str
    num_bb: int
    iou: float
    ap50: float
    centroid_dist: float
    gt_area: float
    pred_area: float


@dataclass(frozen=True)
class Said:
    """Everything that the script says: its lines are None where it stops for want of a video."""

    records: list[Record]
    line1: dict[str, float] | None
    line2: dict[str, float] | None
    unknown: list[str]


def asked(box: Box, height: int, width: int) -> Canvas:
    """The canvas of a box relative to the frame; whatever cannot be painted leaves it empty."""
    canvas = np.zeros((height, width))
    try:
        x1, y1, x2, y2 = box  # type: ignore[misc]
        canvas[int(y1 * height) : int(y2 * height), int(x1 * width) : int(x2 * width)] = 1
    except (TypeError, ValueError):
        return np.zeros((height, width))
    return canvas


def detected(box: Box, height: int, width: int) -> Canvas:
    """The canvas of a detection in pixels."""
    canvas = np.zeros((height, width))
    if box is not None:
        x1, y1, x2, y2 = (int(edge) for edge in box)
        canvas[y1:y2, x1:x2] = 1
    return canvas


def of_boxes(own: Any, boxes: Sequence[Box], height: int, width: int, num_bb: int | None = None) -> Prediction:
    """A prediction of boxes, painted as the script that detects them does; every box counts."""
    found = sum(box is not None for box in boxes) if num_bb is None else num_bb
    return Prediction(own, [detected(box, height, width) for box in boxes], found)


def of_masks(own: Any, masks: Sequence[Canvas], num_bb: int | None = None) -> Prediction:
    """A prediction of masks; where nobody counted, every one with a pixel counts."""
    found = sum(bool((mask != 0).any()) for mask in masks) if num_bb is None else num_bb
    return Prediction(own, list(masks), found)


def middle(canvas: Canvas, axis: int) -> float:
    """Along an axis: half way from the first of the largest sums to the first of the largest running totals."""
    sums = canvas.sum(axis=axis)
    totals = sums.cumsum()
    largest = running = 0
    for place in range(len(sums)):
        if sums[place] > sums[largest]:
            largest = place
        if totals[place] > totals[running]:
            running = place
    return (largest + running) / 2


def score(prediction: Prediction, boxes: Sequence[Box]) -> Record | None:
    """One video; None where too little was asked for."""
    height, width = prediction.masks[0].shape
    frames = min(len(prediction.masks), len(boxes))
    inter = union = 0
    gt_area = pred_area = 0.0
    hits, far = [], []
    for frame in range(frames):
        wanted, found = asked(boxes[frame], height, width), prediction.masks[frame]
        gt_area += float(wanted.sum())
        pred_area += float(found.sum(dtype=np.float64))
        both = either = any_found = 0
        for row in range(height):
            for column in range(width):
                in_wanted, in_found = bool(wanted[row, column] != 0), bool(found[row, column] != 0)
                both += in_wanted and in_found
                either += in_wanted or in_found
                any_found += in_found
        inter, union = inter + both, union + either
        if any_found:
            hits.append(both / (either + EPS) >= LEAST_IOU)
        across = middle(wanted, 0) - middle(found, 0)
        along = middle(wanted, 1) - middle(found, 1)
        far.append(math.sqrt(across * across + along * along))
    if gt_area < LEAST:
        return None
    return Record(
        str(prediction.id),
        prediction.num_bb,
        inter / (union + EPS),
        float(np.mean(hits)) if hits else math.nan,
        float(np.mean(far)),
        gt_area,
        pred_area,
    )


def script(predictions: Sequence[Prediction], truth: Sequence[tuple[Any, Sequence[Box]]]) -> Said:
    """The whole of it: truth is (id, boxes) of every record."""
    records, unknown = [], []
    for one in predictions:
        boxes = next((boxes for own, boxes in truth if str(own) == str(one.id)), None)
        if boxes is None:
            unknown.append(f"Could not find {one.id}")
        elif (found := score(one, boxes)) is not None:
            records.append(found)
    if not records:
        return Said([], None, None, unknown)
    covered = np.array([record.num_bb > ENOUGH for record in records])
    iou, far = (np.array([getattr(record, name) for record in records]) for name in ("iou", "centroid_dist"))
    shared = {"Coverage": float(np.mean(covered)), "CD": float(np.mean(far / DIAGONAL))}
    known = [record for record in records if not math.isnan(record.ap50)]
    hits = np.array([record.ap50 for record in known])
    counted = np.array([record.num_bb for record in known])
    all_counted = sum(record.num_bb for record in records)
    ap50_1 = 100 * (float((hits * counted).sum()) / all_counted) if all_counted else math.nan
    miou_1 = 100 * (float((iou * covered).sum()) / int(covered.sum())) if covered.any() else math.nan
    ap50_2 = 100 * float(np.mean(hits)) if known else math.nan
    line1 = {"mIoU": miou_1, **shared, "AP50": ap50_1}
    line2 = {"mIoU": 100 * float(np.mean(iou)), **shared, "AP50": ap50_2}
    return Said(records, line1, line2, unknown)


def printed(said: Said) -> list[str]:
    """The lines as they are printed."""
    lines = [said.line1, said.line2]
    shown = [
        f"{one['mIoU']:.1f} , {one['Coverage']} , {one['CD']:.2f} , {one['AP50']:.1f}"
        for one in lines
        if one is not None
    ]
    return [*said.unknown, "mIoU , Coverage , CD , AP50", *shown, 10 * "-"]
