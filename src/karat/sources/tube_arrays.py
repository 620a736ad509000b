"""Boxes and masks in npz and safetensors: arrays named by video, or those of one video."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from .arrays import open_npz
from .guard import MIB, refusal
from .safetensors import open_safetensors, tensors_of
from .slab import Slab
from .stream import Array
from .tube_records import check_numbers
from .tubes import Masks, Tube, frame_size, make_masks, make_tube

PARTS = ("boxes", "masks", "size")
ALONE = "0"
MAX_BOXES = 64 * MIB


def tubes_of_arrays(path: Path) -> dict[str, Tube]:
    """The tubes of a file by id. `ID/boxes` (T, 4) with `ID/size` (width, height), or `ID/masks` (T, H, W), or `ID`
    alone, which is either by its shape; of one video `boxes` and `size`, or `masks`. NaN is no box."""
    opener: Callable[..., Slab] = open_npz if path.suffix.lower() == ".npz" else open_safetensors
    by_video: dict[str, dict[str, Slab]] = {}
    for stored in _names(path):
        video, _, part = stored.rpartition("/") if stored.rpartition("/")[2] in PARTS else (stored, "", "")
        slab = opener(path, (stored,), ())
        if not part and stored in PARTS:
            video, part = ALONE, stored
        by_video.setdefault(video or ALONE, {})[part or _part(slab)] = slab
    return {video: _tube(f"{path}, id {video}", parts, place) for place, (video, parts) in enumerate(by_video.items())}


def _names(path: Path) -> list[str]:
    if path.suffix.lower() == ".npz":
        with zipfile.ZipFile(path) as archive:
            return [info.filename.removesuffix(".npy") for info in archive.infolist()]
    return list(tensors_of(path)[0])


def _part(slab: Slab) -> str:
    return "boxes" if len(slab.shape) == 2 and slab.shape[1] == 4 else "masks"


def _tube(name: str, parts: dict[str, Slab], place: int) -> Tube:
    if ("boxes" in parts) == ("masks" in parts):
        raise refusal(name, f"has {' and '.join(sorted(parts))}", "boxes or masks were expected", "save one of them")
    if "masks" in parts:
        return make_tube(name, masks=_masks(name, parts["masks"]), place=place)
    boxes, size = (None if part not in parts else _small(parts[part]) for part in ("boxes", "size"))
    return make_tube(name, boxes, None if size is None else frame_size(name, size), place=place)


def _masks(name: str, slab: Slab) -> Masks:
    check_numbers(name, slab)
    shape = slab.shape
    if len(shape) == 4 and shape[1] == 1:
        return make_masks(name, (shape[0], *shape[2:]), slab.dtype.itemsize, partial(slab.read, 2))
    return make_masks(name, shape, slab.dtype.itemsize, partial(slab.read, 1))


def _small(slab: Slab) -> Array:
    if slab.dtype.kind not in "biuf" or slab.dtype.itemsize * int(np.prod(slab.shape)) > MAX_BOXES:
        raise refusal(
            slab.name, f"is {slab.dtype.name} of shape {slab.shape}", "numbers (T, 4) were expected", "save them"
        )
    (array,) = slab.read(0)
    return array
