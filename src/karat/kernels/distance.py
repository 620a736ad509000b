"""Exact Euclidean distances, and smooth coverage, of pictures (H, W) and volumes (D, H, W)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FLOAT32_SIDE, FLOAT32_REACH = 2000, 600  # px


def binned(here: NDArray[np.bool_], edges: Sequence[float]) -> NDArray[np.intp]:
    """In which bin the distance of every pixel to the nearest true one lies, somewhere being one: 0 up to and with the
    first of the rising edges, 1 to the second, ..."""
    squares = _squares(here, edges[-1] + 1)
    top = int(min(squares.max(initial=0), edges[-1] * edges[-1] + 2))  # beyond it is but one bin
    bins = np.searchsorted(np.array(edges), np.sqrt(np.arange(top + 1)), side="left")
    return bins[np.minimum(squares, top)]


def to_nearest(here: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The exact distance of every pixel to the nearest one that is true, in pixels; somewhere there is one.

    Felzenszwalb & Huttenlocher 2012, doi:10.4086/toc.2012.v008a019.
    """
    exact: NDArray[np.float64] = np.sqrt(_squares(here))
    return exact


def _squares(here: NDArray[np.bool_], reach: float = math.inf) -> NDArray[np.int64]:
    """Distances squared, which are integers: exact up to `reach`.

    OpenCV's precise transform compares in float32, exactly on sides of up to 2000 px, and its roots are within 7e-7,
    which tells squares apart up to 600 px.
    """
    if here.ndim > 2 or max(here.shape) > FLOAT32_SIDE or min(reach, math.hypot(*here.shape)) > FLOAT32_REACH:
        from scipy.ndimage import distance_transform_edt

        near = distance_transform_edt(~here)
    else:
        near = cv2.distanceTransform((~here).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    squares: NDArray[np.int64] = np.rint(near * near).astype(np.int64)
    return squares


def blurred(values: NDArray[np.float64], sigma: float, cut: float = 4.0) -> NDArray[np.float64]:
    """A Gaussian of `sigma` px, cut at `cut` sigma, the border reflected with its last pixel doubled."""
    if values.ndim > 2:
        from scipy.ndimage import gaussian_filter

        return np.asarray(gaussian_filter(values, sigma, truncate=cut, mode="reflect"))
    radius = int(cut * sigma + 0.5)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    taps /= taps.sum()
    smooth = np.zeros(values.shape)
    reached = _reached(values, radius)
    if values[reached].size:
        smooth[reached] = cv2.sepFilter2D(values[reached], cv2.CV_64F, taps, taps, borderType=cv2.BORDER_REFLECT)
    return smooth


def _reached(values: Array, radius: int) -> tuple[slice, slice]:
    """Around everything that is not 0, so far as the filter reaches: beyond there is nothing."""
    places = [np.flatnonzero(values.any(axis=axis)) for axis in (1, 0)]
    rows, columns = (slice(max(at[0] - radius, 0), at[-1] + radius + 1) if len(at) else slice(0) for at in places)
    return rows, columns
