"""Masks of instances, eight pixels a byte: how much of two is shared, of their borders and of their centre lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from .skeleton import skeletons

Array = NDArray[Any]
Box = tuple[int, int, int, int]  # top, left, and what is beyond bottom and right
PIECE = 1 << 18  # pixels that are unpacked or thinned at once: they stay in the cache
BYTES = 1 << 24  # packed bytes that are counted at once
OUTLINES = ("border_both", "border_either", "pred_line", "pred_line_inside", "truth_line", "truth_line_inside")


@dataclass(frozen=True)
class Packed:
    """n masks of one size.

    bits: (n, H, ceil(W / 8)), padded with 0.  area: (n) pixels.  box: (n, 4), 0 where there is no pixel.
    """

    bits: NDArray[np.uint8]
    width: int
    area: NDArray[np.int64]
    box: NDArray[np.int64]

    @property
    def height(self) -> int:
        return int(self.bits.shape[1])

    def crop(self, index: int, box: Box) -> NDArray[np.bool_]:
        """What is in a box of one mask."""
        top, left, bottom, right = box
        first = left // 8
        pixels = np.unpackbits(self.bits[index, top:bottom, first : -(-right // 8)], axis=1)
        return pixels[:, left - 8 * first : right - 8 * first].view(np.bool_)


def packed(bits: NDArray[np.uint8], width: int) -> Packed:
    """Masks with their areas and boxes."""
    count = len(bits)
    area, box = np.zeros(count, np.int64), np.zeros((count, 4), np.int64)
    words = np.ascontiguousarray(bits).view(np.uint64) if bits.shape[2] % 8 == 0 else bits
    step = max(1, BYTES // max(1, bits[:1].size))
    for start in range(0, count, step):
        some = slice(start, start + step)
        area[some] = np.bitwise_count(words[some]).sum(axis=(1, 2), dtype=np.int64)
        columns = np.unpackbits(np.bitwise_or.reduce(bits[some], axis=1), axis=1, count=width)
        rows = np.bitwise_or.reduce(words[some], axis=2)
        box[some, ::2], box[some, 1::2] = _span(rows), _span(columns)
    return Packed(bits, width, area, box)


def _span(rows: Array) -> Array:
    """The first place of each row (n, L) that is not 0 and what follows the last, 0 where all is; (n, 2)."""
    on = rows != 0
    ends = np.stack([on.argmax(axis=1), on.shape[1] - on[:, ::-1].argmax(axis=1)], axis=1)
    span: Array = ends * on.any(axis=1, keepdims=True)
    return span


def united(masks: Packed, index: Array, group: Array, groups: int) -> Packed:
    """One mask for each group: all pixels of the masks at `index`."""
    bits = np.zeros((groups, *masks.bits.shape[1:]), np.uint8)
    for place, one, (top, _, bottom, _) in zip(index.tolist(), group.tolist(), masks.box[index].tolist(), strict=True):
        bits[one, top:bottom] |= masks.bits[place, top:bottom]
    return packed(bits, masks.width)


def intersections(a: Packed, b: Packed, i: Array, j: Array) -> NDArray[np.int64]:
    """|a[i] & b[j]| of every pair (of any shape); only where their boxes overlap is looked at."""
    low, high = np.maximum(a.box[i, :2], b.box[j, :2]), np.minimum(a.box[i, 2:], b.box[j, 2:])
    both = np.zeros(i.shape, np.int64)
    meet = (high > low).all(axis=-1)
    window = np.concatenate([low[meet], high[meet]], axis=1) // (1, 8, 1, 8) + (0, 0, 0, 1)
    both[meet] = [
        np.bitwise_count(a.bits[m, top:bottom, left:right] & b.bits[n, top:bottom, left:right]).sum()
        for m, n, (top, left, bottom, right) in zip(i[meet].tolist(), j[meet].tolist(), window.tolist(), strict=True)
    ]
    return both


def jaccard(both: Array, either: Array) -> Array:
    """Intersection over union; 1 where both sides are empty."""
    share: Array = np.where(either > 0, both / np.maximum(either, 1), 1.0)
    return share


def reach(height: int, width: int, share: float) -> int:
    """How wide a border is: a share of the picture's diagonal, at least a pixel."""
    return max(1, round(share * math.sqrt(height * height + width * width)))


def outlines(pred: Packed, truth: Packed, i: Array, j: Array, wide: int) -> dict[str, NDArray[np.int64]]:
    """Of every pair pred[i], truth[j] the pixels that their borders share and cover, those of each one's centre line
    and those of it that lie in the other.

    Borders of `wide` pixels: Cheng et al. 2021, arXiv:2103.16562; centre lines: Shit et al. 2021, arXiv:2003.07311.
    """
    found = {name: np.zeros(len(i), np.int64) for name in OUTLINES}
    boxes = _around(pred.box[i], truth.box[j])
    for some in _pieces(boxes):
        ours = [pred.crop(int(i[n]), boxes[n]) for n in some]
        theirs = [truth.crop(int(j[n]), boxes[n]) for n in some]
        lines = skeletons([*ours, *theirs])
        for n, p, t, p_line, t_line in zip(some, ours, theirs, lines, lines[len(ours) :], strict=False):
            p_border, t_border = border(p, wide), border(t, wide)
            pixels = (p_border & t_border, p_border | t_border, p_line, p_line & t, t_line, t_line & p)
            for name, which in zip(OUTLINES, pixels, strict=True):
                found[name][n] = np.count_nonzero(which)
    return found


def border(mask: NDArray[np.bool_], wide: int) -> NDArray[np.bool_]:
    """The pixels of a mask that are at most `wide` steps, diagonal ones too, away from what is not of it."""
    if not mask.size:
        return mask
    away = cv2.distanceTransform(np.pad(mask, 1).view(np.uint8), cv2.DIST_C, cv2.DIST_MASK_3)[1:-1, 1:-1]
    near: NDArray[np.bool_] = mask & (away <= wide)
    return near


def cldice(pred_line: Array, pred_inside: Array, truth_line: Array, truth_inside: Array) -> Array:
    """2 P S / (P + S): P the share of the predicted centre line that lies in the truth, S of the true one in the
    prediction; 0 where there is nothing on one side, 1 where there is nothing on both.

    Shit et al. 2021, arXiv:2003.07311.
    """
    precise, complete = pred_inside / np.maximum(pred_line, 1), truth_inside / np.maximum(truth_line, 1)
    total = precise + complete
    dice = 2 * precise * complete / np.where(total > 0, total, 1.0)
    value: Array = np.where((pred_line == 0) & (truth_line == 0), 1.0, dice)
    return value


def _around(a: Array, b: Array) -> list[Box]:
    """The least boxes around two each; one without pixels does not count."""
    a, b = np.where(a[:, 2:3] > 0, a, b), np.where(b[:, 2:3] > 0, b, a)
    low, high = np.minimum(a[:, :2], b[:, :2]), np.maximum(a[:, 2:], b[:, 2:])
    return [(top, left, bottom, right) for top, left, bottom, right in np.concatenate([low, high], axis=1).tolist()]


def _pieces(boxes: list[Box]) -> Iterator[list[int]]:
    """The places of the boxes, narrow ones first, in pieces that fill a sheet of at most `PIECE` pixels."""
    piece: list[int] = []
    rows = 0
    for place in sorted(range(len(boxes)), key=lambda n: boxes[n][3] - boxes[n][1]):
        top, left, bottom, right = boxes[place]
        rows += 2 * (bottom - top + 1)
        if piece and rows * (right - left + 1) > PIECE:
            yield piece
            piece, rows = [], 2 * (bottom - top + 1)
        piece.append(place)
    if piece:
        yield piece
