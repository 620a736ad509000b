"""Segments in JSON: objects with a COCO run length per frame, SAM2 records, and YouTube-VIS files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .guard import MIB, check_frame, check_sides, guarded, read_bounded, refusal
from .rle import Runs, parse_runs
from .stream import Frames, Stream
from .strict import loads

MAX_JSON = 512 * MIB
NAME_KEYS = ("phrase", "label", "category", "name")
EXPECTED = "segments in JSON"
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Track:
    """One object: its name, its frames (None where it has no say about their number) and a mask for each."""

    label: str
    length: int
    size: tuple[int, int] | None
    mask: Callable[[int], Mask | None]


def decode_rle(rle: Any) -> Mask:
    """The mask (H, W) of {"size": [H, W], "counts": text or list}, as pycocotools decodes it."""
    with guarded("the run lengths", '{"size": [H, W], "counts": ...}'):
        height, width = _size(rle)
        runs: Runs = parse_runs(rle["counts"], height * width)
        return runs.window(0, height * width).reshape(width, height).T


def open_segments(path: Path) -> Stream:
    """Frames (N, H, W) bool and the objects' names.

    A file without any object is a prediction too: one still frame of shape (0, 0, 0).
    """
    document = loads(read_bounded(path, MAX_JSON, EXPECTED))
    declared: tuple[int, int, int] | None = None
    if isinstance(document, dict) and "annotations" in document:
        tracks, declared = _youtube_vis(document)
    elif isinstance(document, list):
        tracks = [_sam2(entry) if "segmentation_mask_rle" in entry else _coco(entry) for entry in document]
    else:
        raise ValueError("neither a list of objects nor a dictionary with annotations")
    sizes = {track.size for track in tracks if track.size}
    lengths = {track.length for track in tracks}
    if declared:
        sizes.add(declared[1:])
        lengths.add(declared[0])
    if len(sizes) > 1 or len(lengths) > 1:
        raise refusal(
            path,
            f"has objects of {len(sizes)} sizes and {len(lengths)} lengths",
            "one size and one length was expected",
            "write all objects on the same frames",
        )
    if not lengths:
        return _nothing(path)
    if not sizes or 0 in lengths:
        raise refusal(path, "has objects without any mask", "at least one was expected", "leave empty objects out")
    height, width = sizes.pop()
    length = lengths.pop()
    check_sides(path, width, height)
    check_frame(path, (len(tracks), height, width), 1)

    def frames() -> Frames:
        for index in range(length):
            frame = np.zeros((len(tracks), height, width), np.bool_)
            for target, track in zip(frame, tracks, strict=True):
                mask = track.mask(index)
                if mask is not None:
                    target[:] = mask
            yield frame

    return Stream(
        frames(),
        name=str(path),
        shape=(len(tracks), height, width),
        dtype=np.dtype(np.bool_),
        length=length,
        labels=tuple(track.label for track in tracks),
    )


def _nothing(path: Path) -> Stream:
    frames = (np.zeros((0, 0, 0), np.bool_) for _ in range(1))
    return Stream(frames, name=str(path), shape=(0, 0, 0), dtype=np.dtype(np.bool_), length=1, still=True)


def _coco(entry: dict[str, Any]) -> _Track:
    label = next((entry[key] for key in NAME_KEYS if key in entry), "")
    return _frame_by_frame(label, entry["segmentations"])


def _frame_by_frame(label: Any, masks: Any) -> _Track:
    if not isinstance(masks, list):
        raise ValueError('"segmentations" is no list')
    sizes = {_size(rle) for rle in masks if rle is not None}
    if len(sizes) > 1:
        raise ValueError("an object whose masks differ in size")
    return _Track(
        _text(label),
        len(masks),
        next(iter(sizes), None),
        lambda index: None if masks[index] is None else decode_rle(masks[index]),
    )


def _sam2(entry: dict[str, Any]) -> _Track:
    """A volume (T, H, W) flattened in C order into a picture of one column."""
    record = entry["segmentation_mask_rle"]
    shape = record["mask_shape"]
    if not (isinstance(shape, list) and len(shape) == 3 and all(type(side) is int and side > 0 for side in shape)):
        raise ValueError('"mask_shape" is not [T, H, W]')
    length, height, width = shape
    if record["data"]["size"] != [length * height * width, 1]:
        raise ValueError(f'"size" {str(record["data"]["size"])[:60]} is not [{length * height * width}, 1]')
    runs = parse_runs(record["data"]["counts"], length * height * width)
    plane = height * width
    return _Track(
        _text(entry.get("phrase", "")),
        length,
        (height, width),
        lambda index: runs.window(index * plane, (index + 1) * plane).reshape(height, width),
    )


def _youtube_vis(document: dict[str, Any]) -> tuple[list[_Track], tuple[int, int, int] | None]:
    """One video of a YouTube-VIS file, and its declared (T, H, W) where it has a "videos" entry."""
    annotations, videos = document["annotations"], document.get("videos", [])
    if len({entry.get("video_id") for entry in annotations}) > 1 or len(videos) > 1:
        raise ValueError("annotations of several videos, where one file describes one sample")
    names = {category["id"]: category["name"] for category in document.get("categories", [])}
    tracks = [
        _frame_by_frame(names.get(entry["category_id"], str(entry["category_id"])), entry["segmentations"])
        for entry in annotations
    ]
    if not videos:
        return tracks, None
    length, height, width = (videos[0][key] for key in ("length", "height", "width"))
    if not all(type(side) is int and side > 0 for side in (length, height, width)):
        raise ValueError('"videos" without a proper length, height and width')
    return tracks, (length, height, width)


def _text(label: Any) -> str:
    if not isinstance(label, str):
        raise ValueError(f"a name is a {type(label).__name__}, where text was expected")
    return label


def _size(rle: Any) -> tuple[int, int]:
    """(H, W) of one run length, checked before anything is allocated."""
    match rle:
        case {"size": [height, width], "counts": _} if type(height) is int and type(width) is int:
            check_sides("the mask", width, height)
            return height, width
    raise ValueError('a mask that is not {"size": [H, W], "counts": ...} nor null')
