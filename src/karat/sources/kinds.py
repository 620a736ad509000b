"""What a field may be, and the one way to open it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .aligned_sets import ALIGNED
from .convert import (
    check_depth,
    check_ensemble,
    check_frames,
    check_map,
    check_mask,
    check_segments,
    to_depth,
    to_ensemble,
    to_map,
    to_mask,
    to_rgb,
    to_segments,
)
from .feature_sets import FEATURES
from .guard import check_frame, guarded, refusal
from .images import IMAGE_SUFFIXES, images_in, open_folder, open_image
from .instance_files import INSTANCE_MASKS
from .pose_files import POSES
from .records import RecordKind, Source
from .segments import open_segments
from .slab import Slab, memory_slab, stack_frames
from .stacks import array_slab
from .stream import Array, Frames, Stream
from .tube_files import TUBES
from .video import VIDEO_SUFFIXES, open_video
from .zarr import ZARR, is_store

ARRAY_SUFFIXES = frozenset({".npy", ".npz", ".safetensors"})
Declared = tuple[tuple[int, ...], np.dtype[Any]]
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Kind:
    """A kind of field.

    arrays: names of its array in npz and safetensors, best first.  label_names: arrays that name segments.
    layouts: for each number of axes of an array, how it is read: "still" (for every frame), "one", "sequence", "stack".
    check: shape and dtype of a frame as given -> as it will be, or InputError.  convert: the frame itself.
    single: where every frame is a sample of its own, how many axes one has; a file with one more holds several samples.
    """

    name: str
    expects: str
    suffixes: frozenset[str]
    arrays: tuple[str, ...]
    layouts: dict[int, str]
    check: Callable[[str, tuple[int, ...], np.dtype[Any]], Declared]
    convert: Callable[[str, Array], Array]
    label_names: tuple[str, ...] = ()
    single: int | None = None


_MAP_FILES = frozenset({".png", ".tif", ".tiff", ZARR}) | ARRAY_SUFFIXES
_MAP_NAMES = ("map", "field", "pred", "target", "truth", "mean", "std", "mask", "building")


def _map(name: str, expects: str, check: Any, convert: Any) -> Kind:
    return Kind(name, expects, _MAP_FILES, _MAP_NAMES, {2: "one", 3: "sequence"}, check, convert, single=2)


KINDS = {
    kind.name: kind
    for kind in (
        _map("field", "a map (H, W) of real numbers, or a stack of maps (n, H, W)", check_map, to_map),
        _map("spread", "a map (H, W) of standard deviations, or a stack of them (n, H, W)", check_map, to_map),
        _map("plain", "a map (H, W) of real numbers, or a stack of maps (n, H, W)", check_map, to_map),
        Kind(
            "ensemble",
            "the samples (N, H, W) of a map, or of several maps (n, N, H, W)",
            ARRAY_SUFFIXES | {ZARR},
            ("samples", "ensemble"),
            {3: "one", 4: "sequence"},
            check_ensemble,
            to_ensemble,
            single=3,
        ),
        Kind(
            "frames",
            "RGB frames (T, H, W, 3) or grey ones (T, H, W), uint8 or float",
            VIDEO_SUFFIXES | IMAGE_SUFFIXES | ARRAY_SUFFIXES,
            ("frames",),
            {3: "sequence", 4: "sequence"},
            check_frames,
            to_rgb,
        ),
        Kind(
            "picture",
            "a picture (H, W, 3) or (H, W, 1), uint8 or float, or a stack of them",
            IMAGE_SUFFIXES | ARRAY_SUFFIXES,
            ("images", "arr_0"),
            {3: "one", 4: "sequence"},
            check_frames,
            to_rgb,
            single=3,
        ),
        Kind(
            "depth",
            "depth (T, H, W) of real numbers",
            IMAGE_SUFFIXES | ARRAY_SUFFIXES,
            ("depth", "data"),
            {3: "sequence"},
            check_depth,
            to_depth,
        ),
        Kind(
            "segments",
            "a label map (T, H, W) of integers or masks (N, T, H, W) of booleans",
            IMAGE_SUFFIXES | ARRAY_SUFFIXES | {".json"},
            ("labels", "masks"),
            {3: "sequence", 4: "stack"},
            check_segments,
            to_segments,
            ("names", "phrases"),
        ),
        Kind(
            "mask",
            "a mask (T, H, W) or (H, W) of booleans, 0 and 1, 0 and 255, or float weights",
            VIDEO_SUFFIXES | IMAGE_SUFFIXES | ARRAY_SUFFIXES,
            ("mask",),
            {2: "still", 3: "sequence"},
            check_mask,
            to_mask,
        ),
    )
}


RECORDS: dict[str, RecordKind] = {kind.name: kind for kind in (POSES, INSTANCE_MASKS, TUBES, FEATURES, ALIGNED)}


def kind_of(name: str) -> Kind | RecordKind:
    """The kind of that name."""
    known: dict[str, Kind | RecordKind] = {**KINDS, **RECORDS}
    return _asked(name, known)


def _asked(name: str, known: Mapping[str, Asked]) -> Asked:
    if name not in known:
        raise refusal(f"the kind {name!r}", "does not exist", f"one of {', '.join(known)} was expected", "choose one")
    return known[name]


def open_record(source: Source | Path, kind: str) -> Any:
    """The record that a source holds. Anything that cannot be read raises InputError."""
    asked = _asked(kind, RECORDS)
    with guarded(source if isinstance(source, Path) else asked.name, asked.expects):
        if isinstance(source, Path):  # a file that could not be expanded says here why
            (source,) = asked.expand(source).values()
        return source.open()


def open_stream(source: Path | Array | Source, kind: str) -> Stream:
    """Frames of a video, picture, folder of pictures, array file, JSON, array or what opens as one, as the kind asks.

    Anything that cannot be read raises InputError, here or while the frames are read.
    """
    asked = _asked(kind, KINDS)
    name = str(source) if isinstance(source, Path) else "the array"
    with guarded(name, asked.expects):
        given: Path | Array = source if isinstance(source, Path | np.ndarray) else source.open()
        raw = _open_path(given, asked) if isinstance(given, Path) else _open_slab(memory_slab(given), asked)
        return _conformed(raw, asked)


def _open_path(path: Path, kind: Kind) -> Stream:
    ids = kind.name not in ("frames", "field", "spread", "picture")
    if kind.name == "segments":
        _refuse_lossy(images_in(path) if path.is_dir() else [path])
    if path.is_dir() and not is_store(path):
        return open_folder(path, ids=ids)
    path.stat()
    suffix = path.suffix.lower()
    if suffix not in kind.suffixes:
        raise refusal(
            path,
            f"has the suffix {suffix!r}",
            f"{kind.name} are read from {' '.join(sorted(kind.suffixes))}",
            "convert the file",
        )
    if suffix in VIDEO_SUFFIXES:
        return open_video(path, mask=kind.name == "mask")
    if suffix in IMAGE_SUFFIXES:
        picture = open_image(path, ids=ids)
        if kind.single is not None and picture.length != 1:
            raise refusal(
                path, f"has {picture.length} pages", "a map is one", "save each by itself, or all with np.save"
            )
        return picture
    if suffix == ".json":
        return open_segments(path)
    return _open_slab(array_slab(path, kind.arrays, kind.label_names), kind)


def _refuse_lossy(paths: list[Path]) -> None:
    for path in paths:
        if path.suffix.lower() in (".jpg", ".jpeg"):
            raise refusal(path, "is a JPEG", "labels do not survive its compression", "save label maps as PNG")


def _open_slab(slab: Slab, kind: Kind) -> Stream:
    layout = kind.layouts.get(len(slab.shape))
    stack = layout == "stack"
    # A stack without objects is a prediction; anything else without pixels is not.
    if layout is None or 0 in slab.shape[stack:] or stack != (kind.name == "segments" and slab.dtype.kind == "b"):
        raise refusal(
            slab.name,
            f"has shape {slab.shape} of {slab.dtype.name}",
            f"{kind.expects} was expected",
            "reorder, convert or index the axes",
        )
    if kind.name == "frames" and len(slab.shape) == 3 and slab.shape[2] in (3, 4):
        raise refusal(
            slab.name,
            f"has shape {slab.shape}, which reads as grey frames {slab.shape[2]} pixels wide",
            f"{kind.expects} was expected",
            "add an axis in front if it is one picture",
        )
    length, shape = slab.shape[0], slab.shape[1:]
    whole = layout in ("still", "one")
    if whole:
        length, shape = 1, slab.shape
    elif stack:
        length, shape = slab.shape[1], (slab.shape[0], *slab.shape[2:])
    check_frame(slab.name, shape, slab.dtype.itemsize)

    def frames() -> Frames:
        yield from stack_frames(slab) if stack else slab.read(0 if whole else 1)

    return Stream(
        frames(),
        name=slab.name,
        shape=shape,
        dtype=slab.dtype,
        length=length,
        labels=slab.labels,
        still=layout == "still",
    )


def _conformed(raw: Stream, kind: Kind) -> Stream:
    """The frames as the kind has them, each checked against what was declared."""
    shape, dtype = kind.check(raw.name, raw.shape, raw.dtype)

    def frames() -> Frames:
        with guarded(raw.name, kind.expects):
            for index, given in enumerate(raw):
                frame = kind.convert(raw.name, given)
                if frame.shape != shape or frame.dtype != dtype:
                    raise refusal(
                        raw.name,
                        f"has a frame {index} of shape {frame.shape} and {frame.dtype.name}",
                        f"the first is {shape} of {dtype.name}",
                        "give all frames one shape and type",
                    )
                yield frame

    return Stream(
        frames(),
        name=raw.name,
        shape=shape,
        dtype=dtype,
        length=raw.length,
        fps=raw.fps,
        labels=raw.labels,
        # A single picture is a clip of one frame, except where one mask stands for a whole video.
        still=raw.still and (kind.name == "mask" or raw.shape == (0, 0, 0)),
    )
