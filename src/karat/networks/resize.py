"""How images become the input of a network: one function a published way, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from karat.errors import UsageError

Resize = Callable[[torch.Tensor, int], torch.Tensor]


def tf1(images: torch.Tensor, side: int) -> torch.Tensor:
    """Bilinear without half a pixel, as TensorFlow 1: source = place * inside / outside, in float32."""
    x = images.float()
    for axis in (3, 2):
        inside = x.shape[axis]
        source = torch.arange(side, dtype=torch.float32, device=x.device) * (inside / side)
        low = source.long()
        share = (source - low).reshape(-1, *[1] * (3 - axis))
        first, second = (x.index_select(axis, place) for place in (low, (low + 1).clamp_max(inside - 1)))
        x = first + (second - first) * share
    return _centred(x)


def pytorch_fid(images: torch.Tensor, side: int) -> torch.Tensor:
    """Bilinear of pixels' centres, then x / 127.5 - 1."""
    return (_bilinear(images, side) / 127.5 - 1).float()


def torchmetrics(images: torch.Tensor, side: int) -> torch.Tensor:
    """Bilinear of pixels' centres, with a filter as wide as the step where images shrink."""
    return _centred(_bilinear(images, side, antialias=True)).float()


def clean(images: torch.Tensor, side: int) -> torch.Tensor:
    """Bicubic of pillow, channel by channel in float32, clipped and not rounded."""
    planes = images.flatten(0, 1).cpu().float().numpy()
    resized = [np.asarray(Image.fromarray(plane).resize((side, side), Image.Resampling.BICUBIC)) for plane in planes]
    whole = torch.from_numpy(np.stack(resized)).to(images.device)
    return _centred(whole.clamp(0, 255).unflatten(0, images.shape[:2]))


def clean_legacy_pytorch(images: torch.Tensor, side: int) -> torch.Tensor:
    """Bilinear of pixels' centres, clipped."""
    return _centred(_bilinear(images, side).clamp(0, 255)).float()


def small(images: torch.Tensor, side: int) -> torch.Tensor:
    """Bilinear of pixels' centres with a filter as wide as the step, then (x - 127) / 128."""
    return ((_bilinear(images, side, antialias=True) - 127) / 128).float()


RESIZES: dict[str, Resize] = {
    "tf1": tf1,
    "pytorch-fid": pytorch_fid,
    "torchmetrics": torchmetrics,
    "clean": clean,
    "clean-legacy-pytorch": clean_legacy_pytorch,
}


def named(name: str) -> Resize:
    """The way of that name."""
    if name not in RESIZES:
        raise UsageError(f"There is no resize {name!r}: choose {', '.join(RESIZES)}.")
    return RESIZES[name]


def _bilinear(images: torch.Tensor, side: int, antialias: bool = False) -> torch.Tensor:
    # In float64, rounded once at the end: float32 leaves errors of 5e-6, other ones on every device.
    return functional.interpolate(images.double(), (side, side), mode="bilinear", antialias=antialias)


def _centred(x: torch.Tensor) -> torch.Tensor:
    return (x - 128) / 128
