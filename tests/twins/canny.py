"""Agreement of edge maps, pixel by pixel; the edge maps themselves are OpenCV's, by definition."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from .draw import weight_at

Array = NDArray[Any]
Counts = dict[str, float]


def luma(red: int, green: int, blue: int) -> int:
    """ITU-R 601 in OpenCV's fixed point: 0.299, 0.587 and 0.114 in units of 2^-15, rounded."""
    return (9798 * red + 19235 * green + 3735 * blue + (1 << 14)) >> 15


def gray(frame: Array) -> NDArray[np.uint8]:
    """The luma of every pixel of (H, W, 3)."""
    return np.array([[luma(*map(int, pixel)) for pixel in row] for row in frame], np.uint8).reshape(frame.shape[:2])


def edges(frame: Array, low: float, high: float, aperture: int = 3, l2: bool = False) -> Array:
    """Where OpenCV sees an edge."""
    return cv2.Canny(np.ascontiguousarray(frame), low, high, apertureSize=aperture, L2gradient=l2) > 0


def near(edge_map: Array, row: int, column: int, tolerance: int) -> bool:
    """Whether any edge pixel is within `tolerance` of that pixel, in Euclidean distance."""
    return any(
        math.hypot(i - row, j - column) <= tolerance
        for i in range(edge_map.shape[0])
        for j in range(edge_map.shape[1])
        if edge_map[i, j]
    )


def counts(pred: Array, truth: Array, mask: Array | None, tolerance: int) -> Counts:
    """tp, fp of the predicted pixels and tp_of_truth, fn of the true ones, of edge maps (B, H, W)."""
    found: dict[str, list[float]] = {"tp": [], "fp": [], "tp_of_truth": [], "fn": []}
    for b in range(truth.shape[0]):
        for i in range(truth.shape[1]):
            for j in range(truth.shape[2]):
                weight = weight_at(mask, b, i, j)
                if pred[b, i, j]:
                    found["tp" if near(truth[b], i, j, tolerance) else "fp"].append(weight)
                if truth[b, i, j]:
                    found["tp_of_truth" if near(pred[b], i, j, tolerance) else "fn"].append(weight)
    return {name: math.fsum(weights) for name, weights in found.items()}


def scores(c: Counts, edgeless: str) -> tuple[float, float, float]:
    """F1, precision and recall."""
    predicted, true = c["tp"] + c["fp"], c["tp_of_truth"] + c["fn"]
    if predicted == 0 and true == 0:
        return math.nan, math.nan, math.nan
    if edgeless == "either" and (predicted == 0 or true == 0):
        return math.nan, math.nan, math.nan
    precision = c["tp"] / predicted if predicted else 0.0
    recall = c["tp_of_truth"] / true if true else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return f1, precision, recall
