"""Pretend video models: each spoils a true scene in one recognisable way.

A prediction also holds what a perfect detector and depth estimator would read off the spoiled frames.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.demo.scenes import Scene, visible_boxes
from karat.demo.shapes import Bytes, Floats

Images = TypeVar("Images", Bytes, Floats)


@dataclass(frozen=True)
class Prediction:
    """A generated clip and its analysis, in the layout of ``Scene``; a hallucinated object adds a name and a box."""

    frames: Bytes
    """(T, H, W, 3) RGB."""
    depth: Floats
    """(T, H, W) metres, of half precision, as networks answer."""
    labels: Bytes
    """(T, H, W) instance ids, 0 is background."""
    names: tuple[str, ...]
    boxes: Floats
    """(T, N, 4), as in ``Scene``."""


def sharp(scene: Scene, seed: int) -> Prediction:
    """Fine grain and a slightly warm cast; depth within 1 %."""
    rng = np.random.Generator(np.random.Philox(seed))
    count, height, width, _ = scene.frames.shape
    grain = rng.normal(0, 1.5, (2 * height, 2 * width, 3)).astype(np.float32)
    warm = np.multiply(scene.frames, (1.02, 1.0, 0.98), dtype=np.float32)
    for t in range(count):
        y, x = rng.integers(height), rng.integers(width)
        warm[t] += grain[y : y + height, x : x + width]
    depth = scene.depth * _wobble(rng, scene.depth.shape, 0.01)
    return _read(_bytes(warm), depth, scene.labels, scene.names)


def soft(scene: Scene, seed: int) -> Prediction:
    """Blurred detail and ghosts of the previous frame; depth and outlines lose their edges."""
    rng = np.random.Generator(np.random.Philox(seed))
    sigma = scene.frames.shape[2] / 180
    frames = _per_frame(scene.frames.astype(np.float32), lambda image: cv2.GaussianBlur(image, (0, 0), sigma))
    frames[1:] = 0.7 * frames[1:] + 0.3 * frames[:-1]
    depth = _per_frame(scene.depth, lambda image: cv2.GaussianBlur(image, (0, 0), 2 * sigma))
    labels = _per_frame(scene.labels, lambda image: cv2.medianBlur(image, 2 * round(2 * sigma) + 1))
    return _read(_bytes(frames), depth * 1.04 * _wobble(rng, depth.shape, 0.02), labels, scene.names)


def drifting(scene: Scene, seed: int) -> Prediction:
    """The picture slides off by up to 2 % of its width, and half-way the smallest object is painted over for good."""
    rng = np.random.Generator(np.random.Philox(seed))
    count, _, width = scene.labels.shape
    later = scene.labels[count // 2 :]
    instances, sizes = np.unique(later[later > 0], return_counts=True)
    victim = instances[sizes.argmin()]
    frames, depth, labels = scene.frames.copy(), scene.depth.copy(), scene.labels.copy()
    for t in range(count // 2, count):
        gone = labels[t] == victim
        frames[t], depth[t] = _paint_over(frames[t], gone), _bridge(depth[t], gone)
        labels[t][gone] = 0
    angle = rng.uniform(-0.3, 0.3)
    for t in range(count):
        reach = 0.02 * width * (t + 1) / count
        slide = np.array([[1, 0, reach * np.cos(angle)], [0, 1, reach * np.sin(angle)]])
        frames[t] = _warp(frames[t], slide, cv2.INTER_CUBIC)
        depth[t], labels[t] = (_warp(image, slide, cv2.INTER_NEAREST) for image in (depth[t], labels[t]))
    return _read(frames, depth * _wobble(rng, depth.shape, 0.02), labels, scene.names)


def haze(scene: Scene, seed: int) -> Prediction:
    """Distance turns to fog, depth is an affine distortion of the truth, and a balloon that never was floats by."""
    rng = np.random.Generator(np.random.Philox(seed))
    middle = np.float32(np.median(scene.depth))
    clear = (0.3 + 0.5 * np.exp(-0.5 * scene.depth / middle))[..., None]
    frames = scene.frames * clear + np.array([198, 202, 208], np.float32) * (1 - clear)
    depth = (0.75 * scene.depth + 0.3 * middle) * _wobble(rng, scene.depth.shape, 0.02)
    labels = scene.labels.copy()
    _, height, width = labels.shape
    y, x = np.mgrid[:height, :width].astype(np.float32)
    radius, top = 0.1 * height, rng.uniform(0.26, 0.34) * height
    for t, along in enumerate(np.linspace(0.3, 0.72, len(labels))):
        u, v = (x - along * width) / radius, (y - top - 0.05 * height * np.sin(5 * along)) / (1.2 * radius)
        inside = u * u + v * v < 1
        bulge = np.sqrt(1 - (u * u + v * v)[inside])
        light = 0.62 + 0.38 * np.clip(0.7 * bulge - 0.4 * u[inside] - 0.6 * v[inside], 0, 1)
        frames[t][inside] = light[:, None] * np.array([250, 150, 178], np.float32)
        depth[t][inside] = 0.7 * scene.depth[t].min() - 0.05 * middle * bulge
        labels[t][inside] = len(scene.names) + 1
    return _read(_bytes(frames), depth, labels, (*scene.names, "pink balloon"))


MODELS: dict[str, Callable[[Scene, int], Prediction]] = {
    "sharp": sharp,
    "soft": soft,
    "drifting": drifting,
    "haze": haze,
}


def _read(frames: Bytes, depth: Floats, labels: Bytes, names: tuple[str, ...]) -> Prediction:
    """A prediction whose boxes are those of its labels."""
    return Prediction(
        frames, depth.astype(np.float16).astype(np.float32), labels, names, visible_boxes(labels, len(names))
    )


def _bytes(frames: Floats) -> Bytes:
    return np.clip(np.rint(frames), 0, 255).astype(np.uint8)


def _wobble(rng: np.random.Generator, shape: tuple[int, ...], size: float) -> Floats:
    """Smooth relative depth errors (T, H, W) around 1 of deviation ``size``, different in every frame."""
    frames, height, width = shape
    coarse = rng.standard_normal((frames, 7, 9), np.float32)
    return np.stack(
        [1 + np.float32(size) * cv2.resize(c, (width, height), interpolation=cv2.INTER_CUBIC) for c in coarse]
    )


def _per_frame(images: Images, change: Callable[[Images], Images]) -> Images:
    return np.stack([change(image) for image in images])


def _warp(image: Images, matrix: NDArray[np.float64], method: int) -> Images:
    height, width = image.shape[:2]
    moved = cv2.warpAffine(image, matrix, (width, height), flags=method, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(moved, image.dtype)


def _paint_over(image: Bytes, gone: NDArray[np.bool_]) -> Bytes:
    """``image`` (H, W, 3) with what lies under ``gone`` (H, W) guessed from its surroundings."""
    hole = cv2.dilate(gone.astype(np.uint8), np.ones((3, 3), np.uint8))
    return np.asarray(cv2.inpaint(image, hole, 3, cv2.INPAINT_TELEA), np.uint8)


def _bridge(depth: Floats, gone: NDArray[np.bool_]) -> Floats:
    """``depth`` (H, W) with straight lines from the left to the right edge of ``gone`` (H, W)."""
    filled = depth.copy()
    for y in np.flatnonzero(gone.any(1)):
        filled[y, gone[y]] = np.interp(np.flatnonzero(gone[y]), np.flatnonzero(~gone[y]), depth[y, ~gone[y]])
    return filled
