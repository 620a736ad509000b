"""Exact Euclidean distances, and smooth coverage, of pictures (H, W) and volumes (D, H, W)."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def to_nearest(here: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The distance of every pixel to the nearest one that is true, in pixels; somewhere it is.

    OpenCV's precise transform is of float32, and so exact only once its squares are rounded to the integers they are.
    Felzenszwalb & Huttenlocher 2012, doi:10.4086/toc.2012.v008a019.
    """
    if here.ndim > 2:
        from scipy.ndimage import distance_transform_edt

        return np.asarray(distance_transform_edt(~here))
    near = cv2.distanceTransform((~here).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE).astype(np.float64)
    exact: NDArray[np.float64] = np.sqrt(np.rint(near * near))
    return exact


def blurred(values: NDArray[np.float64], sigma: float, cut: float = 4.0) -> NDArray[np.float64]:
    """A Gaussian of `sigma` px, cut at `cut` sigma, the border reflected with its last pixel doubled."""
    if values.ndim > 2:
        from scipy.ndimage import gaussian_filter

        return np.asarray(gaussian_filter(values, sigma, truncate=cut, mode="reflect"))
    radius = int(cut * sigma + 0.5)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    taps /= taps.sum()
    padded = np.pad(values, radius, mode="symmetric")
    smooth = cv2.sepFilter2D(padded, cv2.CV_64F, taps, taps)[radius : -radius or None, radius : -radius or None]
    return np.ascontiguousarray(smooth, np.float64)
