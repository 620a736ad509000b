"""Boxes and masks in npz and safetensors: arrays named by video, or those of one video."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from karat.errors import InputError

from .arrays import npz_slabs
from .guard import MIB, guarded, refusal
from .safetensors import safetensors_slabs
from .slab import Slab
from .stream import Array
from .tube_records import NO_BOXES, SHOWN, check_numbers
from .tubes import Masks, Tube, frame_size, make_masks, make_tube

PARTS = ("boxes", "masks", "size")
ALONE = "0"
MAX_BOXES = 64 * MIB
Announced = Callable[[], Slab]


def tubes_of_arrays(path: Path) -> dict[str, Tube]:
    """The tubes of a file by id. `ID/boxes` (T, 4) with `ID/size` (width, height), or `ID/masks` (T, H, W), or `ID`
    alone, which is either by its shape; of one video `boxes` and `size`, or `masks`. NaN is no box."""
    slabs = npz_slabs(path) if path.suffix.lower() == ".npz" else safetensors_slabs(path)
    by_video: dict[str, dict[str, Announced]] = {}
    for stored, announced in slabs.items():
        video, _, part = stored.rpartition("/") if stored.rpartition("/")[2] in PARTS else (stored, "", "")
        if not part and stored in PARTS:
            video, part = ALONE, stored
        by_video.setdefault(video or ALONE, {})[part] = announced
    return {video: _tube(path, video, parts, place) for place, (video, parts) in enumerate(by_video.items())}


def _tube(path: Path, video: str, parts: Mapping[str, Announced], place: int) -> Tube:
    """One bad video costs itself alone."""
    name = f"{path}, id {video[:SHOWN]}"
    try:
        with guarded(name, "boxes or masks"):
            slabs = {part: announced() for part, announced in parts.items()}
            named = {part or _part(slab): slab for part, slab in slabs.items()}
            return replace(_tube_of(name, named), id=video, place=place)
    except InputError as error:
        return Tube(name, NO_BOXES, id=video, place=place, damage=str(error))


def _part(slab: Slab) -> str:
    return "boxes" if len(slab.shape) == 2 and slab.shape[1] == 4 else "masks"


def _tube_of(name: str, parts: Mapping[str, Slab]) -> Tube:
    if ("boxes" in parts) == ("masks" in parts):
        raise refusal(name, f"has {' and '.join(sorted(parts))}", "boxes or masks were expected", "save one of them")
    if "masks" in parts:
        return make_tube(name, masks=_masks(name, parts["masks"]))
    boxes, size = (None if part not in parts else _small(parts[part]) for part in ("boxes", "size"))
    return make_tube(name, boxes, None if size is None else frame_size(name, size))


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
