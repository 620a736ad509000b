"""Canny edge maps, pixel for pixel OpenCV's, and coincidence within a tolerance."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

Array = NDArray[Any]


def canny(frame: Array, low: float, high: float, aperture: int, l2: bool) -> NDArray[np.bool_]:
    """Edges of one uint8 frame (H, W) or (H, W, 3). Canny 1986, doi:10.1109/TPAMI.1986.4767851."""
    if frame.dtype != np.uint8:
        raise InputError(
            f"Canny edges are taken of uint8 frames, these are {frame.dtype}: convert them with a declared range."
        )
    edges: NDArray[np.uint8] = cv2.Canny(frame, low, high, apertureSize=aperture, L2gradient=l2)
    found: NDArray[np.bool_] = edges != 0
    return found


def widen(edges: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """All pixels within `pixels` (Euclidean) of an edge."""
    if pixels == 0:
        return edges
    reach = np.arange(-pixels, pixels + 1)
    disc = (reach[:, None] ** 2 + reach**2 <= pixels**2).astype(np.uint8)
    grown: NDArray[np.uint8] = cv2.dilate(edges.astype(np.uint8), disc, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return grown.astype(bool)
