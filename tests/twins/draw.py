"""What the property tests are tried on: small arrays of every memory layout, and regions of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]

MODEST = settings(deadline=None, max_examples=40, derandomize=True)
FEW = settings(deadline=None, max_examples=25, derandomize=True)

seeds = st.integers(0, 2**32 - 1)
layouts = st.sampled_from(["C", "Fortran", "reversed", "strided", "read-only"])
region_kinds = st.sampled_from(["everything", "half", "empty", "weights", "sparse weights", "one pixel"])


def laid_out(array: Array, layout: str) -> Array:
    """The same values in another memory layout."""
    if layout == "Fortran":
        return np.asfortranarray(array)
    if layout == "reversed":
        back = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[back])[back]
    if layout == "strided":
        wide = np.repeat(array, 2, axis=-1)
        return wide[..., ::2]
    held = array.copy()
    held.flags.writeable = layout != "read-only"
    return held


def mask_of(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array | None:
    """A weight map of (B, H, W): None, boolean or floating."""
    if kind == "everything":
        return None
    if kind == "half":
        return rng.random(shape) < 0.5
    if kind == "weights":
        return rng.random(shape)
    if kind == "sparse weights":
        return np.where(rng.random(shape) < 0.4, rng.random(shape), 0.0).astype(np.float32)
    mask = np.zeros(shape, bool)
    if kind == "one pixel" and mask.size:
        mask[(slice(None), *(int(rng.integers(0, side)) for side in shape[1:]))] = True
    return mask


def weight_at(mask: Array | None, frame: int, row: int, column: int) -> float:
    """How much a pixel counts."""
    return 1.0 if mask is None else float(mask[frame, row, column])


def named(mask: Array | None) -> dict[str, Array]:
    """The `regions` argument of a metric: the mask as "m", nothing where it is everything."""
    return {} if mask is None else {"m": mask}


def key(score: str, mask: Array | None) -> str:
    """The score of that region."""
    return score if mask is None else f"{score}@m"
