"""One frame of each kind: which shapes and types are taken, and what they become."""

from __future__ import annotations

from typing import Any

import numpy as np

from .guard import refusal
from .stream import Array

Shape = tuple[int, ...]
Type = np.dtype[Any]


def check_frames(name: str, shape: Shape, dtype: Type) -> tuple[Shape, Type]:
    """(H, W) or (H, W, 1|3|4), uint8 or float -> (H, W, 3) of the same type."""
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise _shape(name, shape, "(H, W, 3), or 1 or 4 channels, or (H, W)")
    if dtype != np.uint8 and dtype.kind != "f":
        raise _type(name, dtype, "uint8 or float frames")
    return (*shape[:2], 3), dtype


def to_rgb(name: str, frame: Array) -> Array:
    """Grey is repeated, alpha is dropped."""
    check_frames(name, frame.shape, frame.dtype)
    if frame.ndim == 2:
        frame = frame[..., None]
    if frame.shape[2] == 1:
        return np.repeat(frame, 3, axis=2)
    return np.ascontiguousarray(frame[..., :3])


def check_depth(name: str, shape: Shape, dtype: Type) -> tuple[Shape, Type]:
    """(H, W) of real numbers."""
    if len(shape) != 2:
        raise _shape(name, shape, "(H, W), one number a pixel")
    if dtype.kind not in "iuf":
        raise _type(name, dtype, "real numbers")
    return shape, dtype


def to_depth(name: str, frame: Array) -> Array:
    check_depth(name, frame.shape, frame.dtype)
    return frame


def check_segments(name: str, shape: Shape, dtype: Type) -> tuple[Shape, Type]:
    """(H, W) integer labels, or (N, H, W) boolean masks."""
    if len(shape) == 3 and dtype == np.bool_:
        return shape, dtype
    if len(shape) != 2:
        raise _shape(name, shape, "(H, W), one label a pixel and no colours")
    if dtype.kind not in "iu":
        raise _type(name, dtype, "integer labels")
    return shape, dtype


def to_segments(name: str, frame: Array) -> Array:
    check_segments(name, frame.shape, frame.dtype)
    return frame


def check_mask(name: str, shape: Shape, dtype: Type) -> tuple[Shape, Type]:
    """(H, W) of booleans, integers or floats; a picture may repeat it in three channels."""
    if len(shape) != 2 and (len(shape) != 3 or shape[2] not in (3, 4)):
        raise _shape(name, shape, "(H, W), one weight a pixel")
    if dtype.kind not in "biuf":
        raise _type(name, dtype, "booleans, integers or float weights")
    return shape[:2], dtype if dtype.kind == "f" else np.dtype(np.bool_)


def to_mask(name: str, frame: Array) -> Array:
    """Booleans from 0 and 1 or 0 and 255; float weights as they are, once they are weights."""
    check_mask(name, frame.shape, frame.dtype)
    if frame.ndim == 3:
        frame = _one_channel(name, frame)
    if frame.dtype.kind == "b":
        return frame
    if frame.dtype.kind == "f":
        if not (np.isfinite(frame).all() and frame.min() >= 0):
            raise refusal(
                name, "has weights that are NaN, infinite or negative", "weights are 0 or more", "replace them by 0"
            )
        return frame
    top = frame.max()
    if top not in (0, 1, 255) or not ((frame == 0) | (frame == top)).all():
        raise refusal(
            name,
            f"has integer values from {frame.min()} to {top}",
            "a mask has 0 and 1, or 0 and 255",
            "threshold it, or save weights as floats",
        )
    mask: Array = frame != 0
    return mask


def check_map(name: str, shape: Shape, dtype: Type) -> tuple[Shape, Type]:
    """(H, W) of real numbers; a picture may repeat it in three channels."""
    if len(shape) != 2 and (len(shape) != 3 or shape[2] not in (3, 4)):
        raise _shape(name, shape, "(H, W), one number a pixel")
    if dtype.kind not in "biuf":
        raise _type(name, dtype, "real numbers")
    return shape[:2], dtype


def to_map(name: str, frame: Array) -> Array:
    check_map(name, frame.shape, frame.dtype)
    return _one_channel(name, frame) if frame.ndim == 3 else frame


def check_ensemble(name: str, shape: Shape, dtype: Type) -> tuple[Shape, Type]:
    """(N, H, W) of real numbers."""
    if len(shape) != 3:
        raise _shape(name, shape, "(N, H, W), the samples of one map")
    if dtype.kind not in "biuf":
        raise _type(name, dtype, "real numbers")
    return shape, dtype


def to_ensemble(name: str, frame: Array) -> Array:
    check_ensemble(name, frame.shape, frame.dtype)
    return frame


def _one_channel(name: str, frame: Array) -> Array:
    grey: Array = frame[..., 0]
    opaque = frame.shape[2] == 3 or bool((frame[..., 3] == frame[..., 3].max()).all())
    if not opaque or not (frame[..., 1:3] == grey[..., None]).all():
        raise refusal(
            name, "has colours or transparency", "one value a pixel was expected", "save it as a grey picture"
        )
    return grey


def _shape(name: str, shape: Shape, expected: str) -> Exception:
    return refusal(name, f"has frames of shape {shape}", f"{expected} was expected", "choose or convert the channel")


def _type(name: str, dtype: Type, expected: str) -> Exception:
    return refusal(name, f"holds {dtype.name}", f"{expected} was expected", "convert it")
