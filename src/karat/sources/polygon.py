"""Polygons as masks, pixel by pixel as pycocotools draws them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .rle import Runs
from .stream import Array

FINE = 5  # corners are rounded to a fifth of a pixel
MAX_COORDINATE = 1 << 16
MAX_STEPS = 1 << 26  # of a border


def filled(polygons: Any, size: tuple[int, int]) -> Array:
    """The mask (H, W) of what any of the polygons [x, y, x, y, ...] encloses; ValueError says what is wrong.

    Borders are walked on a grid of fifths of pixels; where they pass the middle of a column, what is below changes
    sides. As rleFrPoly of cocodataset/cocoapi.
    """
    mask = np.zeros(size, bool)
    for polygon in polygons:
        mask |= _enclosed(_corners(polygon), size)
    return mask


def _corners(polygon: Any) -> Array:
    if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
        raise ValueError("a polygon that is no list of pairs")
    if set(map(type, polygon)) - {int, float} or not all(abs(one) <= MAX_COORDINATE for one in polygon):
        raise ValueError("a polygon with a corner that is nowhere")
    corners: Array = (FINE * np.array(polygon, np.float64).reshape(-1, 2) + 0.5).astype(np.int64)
    steps = np.abs(np.diff(corners, axis=0, append=corners[:1])).max(axis=1).sum()
    if steps > MAX_STEPS:
        raise ValueError(f"a polygon whose border is {steps // FINE} pixels long")
    return corners


def _enclosed(corners: Array, size: tuple[int, int]) -> Array:
    height, width = size
    changes = [_changes(*edge, size) for edge in pairwise(np.concatenate([corners, corners[:1]]))]
    ends = np.append(np.sort(np.concatenate(changes)), height * width)
    return Runs(ends).window(0, height * width).reshape(width, height).T


def _changes(start: Array, end: Array, size: tuple[int, int]) -> Array:
    """Where an edge passes the middles of columns: the places, column by column, from which on the sides change."""
    height, width = size
    places = _places(start, end)
    (x, y), (x_before, y_before) = places[1:].T, places[:-1].T
    column = (np.where(x < x_before, x, x - 1) + 0.5) / FINE - 0.5
    row = np.ceil(((np.minimum(y, y_before) + 0.5) / FINE - 0.5).clip(0, height))
    passed = (x != x_before) & (column == np.floor(column)) & (column >= 0) & (column <= width - 1)
    changes: Array = (column[passed] * height + row[passed]).astype(np.int64)
    return changes


def _places(start: Array, end: Array) -> Array:
    """The places (n, 2) on an edge, both ends included, one for each step along its longer side."""
    steps = np.abs(end - start)
    along = int(steps[1] > steps[0])
    turned = start[along] > end[along]
    low, high = (end, start) if turned else (start, end)
    t = np.arange(steps[along] + 1)
    slope = (high[1 - along] - low[1 - along]) / max(int(steps[along]), 1)
    places = np.empty((len(t), 2), np.int64)
    places[:, along] = low[along] + t
    places[:, 1 - along] = (low[1 - along] + slope * t + 0.5).astype(np.int64)
    return places[::-1] if turned else places
