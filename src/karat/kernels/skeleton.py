"""Skeletons of masks: pixels are taken off their borders until lines are left that are one pixel wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_AROUND = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))  # clockwise from the north

# Where scikit-image's table is not that of Zhang and Suen: patterns by their neighbours' places in _AROUND, which go in
# no turn, in the first, in the second, in either. Squares of two by two stay, corners of stairs go.
_AMENDED = (
    "34 67",
    "01 12 012 07 067 016 056 027 467 0156",
    "23 234 45 56 456 023 245 346 1245",
    "02 24 46 06",
)


def _turns() -> NDArray[np.uint8]:
    """In which turns a pixel goes, by its pattern (bit i is neighbour i): 1 the first, 2 the second, 3 either."""
    around = np.arange(256) >> np.arange(8)[:, None] & 1
    n, e, s, w = around[::2]
    enough = (around.sum(axis=0) >= 2) & (around.sum(axis=0) <= 6)
    one_run = ((around == 0) & (np.roll(around, -1, axis=0) == 1)).sum(axis=0) == 1
    south_east = enough & one_run & (n * e * s == 0) & (e * s * w == 0)
    north_west = enough & one_run & (n * e * w == 0) & (n * s * w == 0)
    turns: NDArray[np.uint8] = (south_east + 2 * north_west).astype(np.uint8)
    for value, patterns in enumerate(_AMENDED):
        turns[[sum(1 << int(place) for place in pattern) for pattern in patterns.split()]] = value
    return turns


_TURNS = _turns()


def skeletons(masks: Sequence[Array]) -> list[Array]:
    """The skeletons of boolean masks (H, W), each for itself, all at once; outside of a mask is nothing.

    In turn from south-east and from north-west every pixel goes whose neighbours allow it, all of a turn together,
    until none goes. Equal, pixel by pixel, to scikit-image's `skeletonize`.
    Zhang & Suen 1984, doi:10.1145/357994.358023.
    """
    width = 1 + max((mask.shape[1] for mask in masks), default=0)  # what is left of a row is right of the row above
    tops = np.cumsum([1, *(len(mask) + 1 for mask in masks)])
    sheet = np.zeros((tops[-1], width), np.uint8)
    places = [sheet[top : top + len(mask), : mask.shape[1]] for top, mask in zip(tops, masks, strict=False)]
    for place, mask in zip(places, masks, strict=True):
        place[:] = mask
    _thin(sheet)
    return [place.view(np.bool_) for place in places]


def _thin(sheet: NDArray[np.uint8]) -> None:
    """Thins what is 1 in place; the first and last rows and the last column are 0.

    A pixel is looked at again only after a neighbour went.
    """
    flat, steps = sheet.reshape(-1), np.array([down * sheet.shape[1] + right for down, right in _AROUND])
    goes, ticket, numbers = np.zeros_like(flat), np.empty(flat.size, np.int32), np.arange(flat.size, dtype=np.int32)

    def once(places: Array) -> Array:
        ticket[places] = numbers[: len(places)]
        distinct: Array = places[ticket.take(places) == numbers[: len(places)]]
        return distinct

    inside = cv2.erode(sheet, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0)
    changed = np.flatnonzero(sheet != inside)
    later, turn = changed[:0], 1
    while len(changed) or len(later):
        goes[changed] = _TURNS[np.packbits(flat.take(changed[:, None] + steps), axis=1, bitorder="little")[:, 0]]
        candidates = np.concatenate([changed, later])
        gone = once(candidates[goes.take(candidates) & turn != 0])
        turn = 3 - turn
        later = changed[goes.take(changed) & turn != 0]
        flat[gone] = goes[gone] = 0
        around = (gone[:, None] + steps).reshape(-1)
        changed = once(around[flat.take(around) == 1])
