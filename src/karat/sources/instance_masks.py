"""Masks of instances: those of one side of one video, packed eight pixels a byte."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import open_npz
from .guard import GIB, MAX_WHOLE_BYTES, MIB, check_frame, check_sides, guarded, refusal
from .slab import Slab
from .stream import Array

EXPECTS = "masks (n, H, W) of instances with their frame and score"
MAX_COLUMN_BYTES = 64 * MIB
ALIASES = {"frame_idx": "frame", "labeled": "labelled", "labeled_frame_idx": "labelled"}
_COLUMNS: Mapping[str, Any] = {"frame": np.int32, "score": np.float64, "labelled": np.int32}
_KNOWN = ("masks", "shape", *_COLUMNS)


@dataclass(frozen=True, eq=False)
class InstanceMasks:
    """n instances of a video, each a mask.

    masks: (n, H, ceil(W / 8)) bytes as np.packbits makes them of the last axis, what is beyond W 0.  shape: (H, W).
    frame: (n) index in the video.  score: (n), NaN where none was given.
    labelled: (f) the frames that were looked at, empty ones included, in rising order.  name: what to call the video.
    """

    masks: Array
    shape: tuple[int, int]
    frame: Array
    score: Array
    labelled: Array
    name: str = ""

    @property
    def length(self) -> int:
        """The number of labelled frames."""
        return len(self.labelled)

    def __len__(self) -> int:
        return len(self.masks)

    def select(self, first: int | None, stride: int) -> InstanceMasks:
        """The frames before `first`, and every `stride` of those."""
        if first is None and stride == 1:
            return self
        own = self.take(np.flatnonzero(_chosen(self.frame, first, stride)))
        return replace(own, labelled=self.labelled[_chosen(self.labelled, first, stride)])

    def take(self, index: Array) -> InstanceMasks:
        """The instances at `index`, in that order; the labelled frames stay."""
        return replace(self, masks=self.masks[index], frame=self.frame[index], score=self.score[index])

    def digest(self) -> str:
        """sha256 of the content, in hex."""
        state = hashlib.sha256(repr(self.shape).encode())
        for name in ("masks", *_COLUMNS):
            array = np.ascontiguousarray(getattr(self, name))
            state.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            state.update(array.data)
        return state.hexdigest()

    def open(self) -> InstanceMasks:
        """Itself."""
        return self


_GIVEN = {field.name for field in fields(InstanceMasks)}


def make_instances(masks: Any, frame: Any, **given: Any) -> InstanceMasks:
    """Checked instances from arrays: masks (n, H, W) of booleans, 0 and 1 or 0 and 255, or packed bytes with `shape`.

    What is not given is absent, and labelled are the frames that have an instance.
    """
    for name in given:
        if name not in _GIVEN:
            raise _refused("the instances", name)
    declared = {name: value for name, value in {**given, "frame": frame}.items() if value is not None}
    with guarded("the instances", EXPECTS):
        array, shape = np.asarray(masks), np.asarray(declared["shape"]) if "shape" in declared else None
        columns = {name: np.asarray(declared[name]) for name in _COLUMNS if name in declared}
    if not array.size and array.ndim < 3:  # no instance at all, as a list
        array = np.zeros((0, *((0, 0) if shape is None else _size("the masks", shape))), bool)
    layout = _layout("the masks", array.shape, array.dtype, shape)
    return _instances("the instances", array, layout, columns, str(given.get("name", "")))


def from_planes(
    name: str, planes: Iterable[Array], count: int, size: tuple[int, int], columns: Mapping[str, Array]
) -> InstanceMasks:
    """Checked instances from `count` masks (H, W) of booleans, one after another, and the other arrays."""
    return _instances(name, planes, _layout(name, (count, *size), np.dtype(bool), None), columns)


def no_instances(truth: InstanceMasks) -> InstanceMasks:
    """The prediction of nothing beside a truth."""
    return make_instances(np.zeros((0, *truth.shape), bool), np.zeros(0, np.int32), name=truth.name)


def read_npz(path: Path) -> InstanceMasks:
    """The instances of an npz; every array is checked by its header before it is read."""
    with zipfile.ZipFile(path) as archive:
        stored = [info.filename.removesuffix(".npy") for info in archive.infolist()]
    slabs: dict[str, Slab] = {}
    for own in stored:
        name = ALIASES.get(own, own)
        if name not in _KNOWN or name in slabs:
            raise _refused(path, own)
        slabs[name] = open_npz(path, (own,), ())
    for name in ("masks", "frame"):
        if name not in slabs:
            raise refusal(path, f"holds no {name}", "masks and frame were expected", "add it")
    masks = slabs.pop("masks")
    columns = {name: _small(slab) for name, slab in slabs.items()}
    layout = _layout(masks.name, masks.shape, masks.dtype, columns.pop("shape", None))
    return _instances(str(path), masks.read(1), layout, columns)


@dataclass(frozen=True)
class _Layout:
    """How masks are given."""

    count: int
    height: int
    width: int
    packed: bool


def _layout(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], size: Array | None) -> _Layout:
    """What shape and type say of masks, before any of them is read."""
    wrong = refusal(
        name,
        f"is {dtype.name} of shape {shape}",
        "booleans (n, H, W), or bytes (n, H, ceil(W / 8)) with shape = [H, W], were expected",
        "save it so",
    )
    if len(shape) != 3 or dtype.kind not in "biu":
        raise wrong
    packed = size is not None and dtype == np.uint8
    height, width = shape[1:] if size is None else _size(name, size)
    bytes_wide = -(-width // 8)
    if shape[1:] != (height, bytes_wide if packed else width):
        raise wrong
    if shape[0] or (height, width) != (0, 0):  # nobody needs no picture
        check_sides(name, width, height)
        check_frame(name, shape[1:], dtype.itemsize)
    if shape[0] * height * bytes_wide > MAX_WHOLE_BYTES:
        raise refusal(
            name,
            f"has {shape[0]} masks of {width}x{height} pixels",
            f"packed they may take {MAX_WHOLE_BYTES // GIB} GiB",
            "split the video",
        )
    return _Layout(shape[0], height, width, packed)


def _size(name: str, given: Array) -> tuple[int, int]:
    if given.shape != (2,) or given.dtype.kind not in "iu" or given.min() < 0:
        found = f"is {given.dtype.name} of shape {given.shape}: {given.ravel()[:3]}"
        raise refusal(f"shape of {name}", found, "[height, width] was expected", "save both as integers")
    height, width = given.tolist()
    return height, width


def _packed(name: str, planes: Iterable[Array], layout: _Layout) -> Array:
    """The planes as packed bytes, nothing beyond the width."""
    bits = np.empty((layout.count, layout.height, -(-layout.width // 8)), np.uint8)
    for n, plane in enumerate(planes):
        if layout.packed:
            bits[n] = plane
            continue
        if plane.dtype != bool and not np.isin(plane, (0, 1)).all() and not np.isin(plane, (0, 255)).all():
            raise refusal(
                f"the masks of {name}",
                f"have values other than 0 and 1 (in mask {n})",
                "booleans, 0 and 1 or 0 and 255 were expected",
                "threshold them, or give shape = [H, W] beside packed bytes",
            )
        bits[n] = np.packbits(plane != 0, axis=-1)
    bits[..., -1:] &= np.uint8(0xFF << -layout.width % 8 & 0xFF)
    return bits


def _small(slab: Slab) -> Array:
    if slab.dtype.itemsize * int(np.prod(slab.shape)) > MAX_COLUMN_BYTES:
        raise refusal(slab.name, f"has shape {slab.shape}", "64 MiB are read of it", "split the video")
    (array,) = slab.read(0)
    return array


def _column(name: str, column: str, array: Array) -> Array:
    """A row of its type; numbers of frames are whole and not negative."""
    dtype = _COLUMNS[column]
    if not array.size:
        return np.zeros(0, dtype)
    with np.errstate(invalid="ignore"):
        whole: Array = array.astype(dtype) if array.dtype.kind in "biuf" else np.zeros(0, dtype)
    same = np.array_equal(whole, array, equal_nan=column == "score")
    if array.ndim != 1 or not same or (column != "score" and whole.min() < 0):
        raise refusal(
            f"{column} of {name}",
            f"is {array.dtype.name} of shape {array.shape}",
            f"a row of {'numbers' if column == 'score' else 'whole numbers from 0'} was expected",
            "correct it",
        )
    return whole


def _instances(
    name: str, planes: Iterable[Array], layout: _Layout, given: Mapping[str, Array], title: str = ""
) -> InstanceMasks:
    columns = {column: _column(name, column, array) for column, array in given.items()}
    score = columns.get("score", np.full(layout.count, np.nan))
    for column, values in (("frame", columns["frame"]), ("score", score)):
        if len(values) != layout.count:
            raise refusal(
                f"{column} of {name}",
                f"has {len(values)} entries for {layout.count} masks",
                "one a mask was expected",
                "correct it",
            )
    labelled = np.unique(np.concatenate([columns.get("labelled", np.zeros(0, np.int32)), columns["frame"]]))
    masks = _packed(name, planes, layout)
    return InstanceMasks(masks, (layout.height, layout.width), columns["frame"], score, labelled, title)


def _refused(name: object, array: str) -> Exception:
    expected = f"each at most once of {', '.join(_KNOWN)} was expected"
    return refusal(name, f"has an array {array!r}", expected, "rename or remove it")


def _chosen(frame: Array, first: int | None, stride: int) -> Array:
    chosen: Array = (frame % stride == 0) & (frame < (np.iinfo(np.int32).max if first is None else first))
    return chosen
