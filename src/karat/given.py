"""Images and captions as a call in Python is given them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from karat.errors import UsageError, told
from karat.sources.guard import refusal
from karat.sources.pairing import as_array
from karat.sources.stream import Array

WANTED = "(N, 3, height, width), or one image (3, height, width)"
TOLERANCE = 1e-6  # of numbers in 0..1, which arithmetic in float32 left just outside


def pictured(value: Any) -> bool:
    """Whether it is images: an array of more than two axes, an image of PIL, or a list of either."""
    if isinstance(value, list | tuple):
        return bool(value) and pictured(value[0])
    return _of_pil(value) or getattr(value, "ndim", 0) > 2


def images_of(value: Any, normalize: bool = False, what: str = "images") -> Array:
    """Images of one size as bytes (N, 3, H, W); with `normalize` they are given as numbers in 0..1."""
    if isinstance(value, list | tuple):
        array = _stacked([_planes(one, what) for one in value], what)
    else:
        array = _planes(value, what)
    if array.ndim == 3:
        array = array[None]
    kind = f"are {array.dtype} {array.shape}"
    if array.ndim != 4 or array.shape[1] != 3 or 0 in array.shape[2:]:
        raise refusal(what, kind, f"{WANTED} was expected", "put red, green and blue in front of the height")
    if normalize:
        if array.dtype.kind != "f":
            raise refusal(what, kind, "numbers in 0..1 were expected", "leave normalize=True out for bytes")
        return np.array([_rounded(one, f"{what}, number {i}") for i, one in enumerate(array)], np.uint8).reshape(
            array.shape
        )
    if array.dtype != np.uint8:
        raise refusal(what, kind, "uint8 was expected", "set normalize=True for numbers in 0..1, or convert them")
    return np.ascontiguousarray(array)


def captions_of(value: Any, count: int, what: str) -> list[str]:
    """The captions of so many images: a list, or a string for one."""
    captions = [value] if isinstance(value, str) else value
    if not isinstance(captions, list | tuple) or not all(isinstance(one, str) for one in captions):
        raise UsageError(
            f"The {what} are {told(type(value).__name__)}, but a string or a list of strings was expected."
        )
    if len(captions) != count:
        raise UsageError(f"The images are {count} and the {what} {len(captions)}: give one for each image.")
    return [str(one) for one in captions]


def ids_of(value: Iterable[Any] | None, count: int) -> list[str] | None:
    """The ids of so many samples; those of a tensor are its numbers."""
    if value is None:
        return None
    listed = value.tolist() if hasattr(value, "tolist") else value
    ids = [str(one) for one in listed]
    if len(ids) != count:
        raise UsageError(f"There are {len(ids)} ids for {count} samples.")
    return ids


def _of_pil(value: Any) -> bool:
    pil = sys.modules.get("PIL.Image")
    return pil is not None and isinstance(value, pil.Image)


def _planes(value: Any, what: str) -> Array:
    """An array as it is, an image of PIL with its channels first."""
    if not _of_pil(value):
        return as_array(value)
    if value.mode != "RGB":
        raise refusal(what, f"have the mode {value.mode}", "RGB was expected", "use image.convert('RGB')")
    return np.asarray(value).transpose(2, 0, 1)


def _stacked(arrays: list[Array], what: str) -> Array:
    if not arrays:
        return np.zeros((0, 3, 1, 1), np.uint8)
    kinds = {(array.dtype, array.shape) for array in arrays}
    if len(kinds) > 1:
        several = " and ".join(sorted(f"{dtype} {shape}" for dtype, shape in kinds)[:2])
        raise refusal(what, f"are {several}", "one size and type was expected", "give those of one size together")
    return np.stack(arrays)


def _rounded(image: Array, what: str) -> Array:
    """255 times the numbers, of which halves go to the even neighbour."""
    wide = image.astype(np.float64)
    if not ((wide >= -TOLERANCE) & (wide <= 1 + TOLERANCE)).all():  # NaN is neither
        extent = f"has numbers from {wide.min():.6g} to {wide.max():.6g}"
        raise refusal(what, extent, "0..1 was expected", "bring it into that range first")
    rounded: Array = np.rint(255 * wide).astype(np.uint8)
    return rounded
