"""Frame filters as values: each is applied to frames (B, H, W[, C]) and its repr says exactly what it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError, UsageError

Array = NDArray[Any]
Kind = Literal["bilateral", "gaussian", "box", "median"]
Strength = Literal["low", "medium", "high"]


@dataclass(frozen=True)
class Filter(ABC):
    """Something done to every frame by itself. `slow` filters are worth keeping on disk."""

    def __call__(self, frames: Array) -> Array:
        return np.stack([self.frame(frame) for frame in frames]) if len(frames) else frames

    @abstractmethod
    def frame(self, frame: Array) -> Array:
        """The filtered frame."""

    @property
    def slow(self) -> bool:
        return False


@dataclass(frozen=True)
class Gray(Filter):
    """ITU-R 601 luma of RGB bytes by OpenCV's fixed-point rule; grey frames stay as they are."""

    def frame(self, frame: Array) -> Array:
        if frame.ndim == 2 or frame.shape[2] == 1:
            return frame.reshape(frame.shape[:2])
        if frame.shape[2] != 3 or frame.dtype not in (np.uint8, np.float32):
            raise InputError(
                "Grey is made of RGB frames of uint8 or float32, "
                f"these have {frame.shape[2]} channels of {frame.dtype}: convert them first."
            )
        gray: Array = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        return gray


@dataclass(frozen=True)
class Bilateral(Filter):
    """Edge-preserving blur on bytes, `size` pixels across. Tomasi & Manduchi 1998, doi:10.1109/ICCV.1998.710815."""

    size: int
    sigma_color: float
    sigma_space: float

    @property
    def slow(self) -> bool:
        return True

    def frame(self, frame: Array) -> Array:
        blurred: Array = cv2.bilateralFilter(_bytes(frame), self.size, self.sigma_color, self.sigma_space)
        return blurred


@dataclass(frozen=True)
class Gaussian(Filter):
    """Gaussian of a fixed odd `size`, so that the kernel does not depend on the dtype; border reflect-101."""

    size: int
    sigma: float

    def frame(self, frame: Array) -> Array:
        blurred: Array = cv2.GaussianBlur(frame, (self.size, self.size), self.sigma)
        return blurred


@dataclass(frozen=True)
class Box(Filter):
    """Mean of `size` x `size` pixels; border reflect-101."""

    size: int

    def frame(self, frame: Array) -> Array:
        blurred: Array = cv2.blur(frame, (self.size, self.size))
        return blurred


@dataclass(frozen=True)
class Median(Filter):
    """Median of `size` x `size` bytes, channel by channel; border replicated."""

    size: int

    def frame(self, frame: Array) -> Array:
        blurred: Array = cv2.medianBlur(_bytes(frame), self.size)
        return blurred


# Bilateral: the presets that control-conditioned video models are trained with; the others share their reach.
STRENGTHS: dict[str, dict[str, tuple[int, tuple[float, ...]]]] = {
    "bilateral": {"low": (15, (100, 50)), "medium": (30, (150, 100)), "high": (50, (300, 150))},
    "gaussian": {"low": (13, (6.5,)), "medium": (25, (12.5,)), "high": (51, (25.5,))},
    "box": {"low": (13, ()), "medium": (25, ()), "high": (51, ())},
    "median": {"low": (13, ()), "medium": (25, ()), "high": (51, ())},
}


def blur_filter(kind: Kind, strength: Strength, size: int | None, sigmas: tuple[float, ...] | None) -> Filter:
    """The filter of a named kind and strength; `size` and `sigmas` replace the strength's own."""
    named_size, named_sigmas = STRENGTHS[kind][strength]
    pixels, spreads = named_size if size is None else size, named_sigmas if sigmas is None else sigmas
    if pixels < 1 or not all(spread > 0 for spread in spreads):
        raise UsageError(f"The size and the sigmas of a blur are positive, not {pixels} and {spreads}.")
    if len(spreads) != len(named_sigmas):
        raise UsageError(f"A {kind} blur takes {len(named_sigmas)} sigmas, not {len(spreads)}.")
    if kind == "bilateral":
        return Bilateral(pixels, *map(float, spreads))
    if pixels % 2 == 0:
        raise UsageError(f"The size of a {kind} blur is odd, not {pixels}.")
    if kind == "gaussian":
        return Gaussian(pixels, *map(float, spreads))
    return Box(pixels) if kind == "box" else Median(pixels)


def _bytes(frame: Array) -> Array:
    if frame.dtype != np.uint8:
        raise InputError(
            f"This blur works on uint8 frames, these are {frame.dtype}: convert them with a declared range."
        )
    return frame
