"""Pictures: a file, a folder of frames in natural order, or the pages of a TIFF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .guard import MAX_FILE_IN_MEMORY, guarded, read_bounded, refusal
from .headers import Picture, inspect
from .png import read_ids, stores_ids
from .stream import Array, Frames, Stream

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"})
EXPECTED = "a picture"


def natural(name: str) -> tuple[tuple[str | int, ...], str]:
    """A sort key under which frame_2 comes before frame_10."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(int(part) if index % 2 else part for index, part in enumerate(parts)), name


def images_in(folder: Path) -> list[Path]:
    """The pictures that lie directly in a folder, in natural order."""
    found = (p for p in folder.iterdir() if is_image(p) and p.is_file())
    return sorted(found, key=lambda path: natural(path.name))


def is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")


def open_folder(folder: Path, *, ids: bool) -> Stream:
    """The pictures of a folder as frames, all of one size; `ids` keeps the stored numbers of label maps."""
    paths = images_in(folder)
    if not paths:
        raise refusal(folder, "holds no picture", f"one of {_suffixes()} was expected", "check the path")
    first = _read_single(paths[0], ids)

    def frames() -> Frames:
        yield first
        for path in paths[1:]:
            with guarded(path, EXPECTED):
                frame = _read_single(path, ids)
                if frame.shape[:2] != first.shape[:2] or frame.dtype != first.dtype:
                    raise refusal(
                        path,
                        f"is {frame.shape[1]}x{frame.shape[0]} {frame.dtype}",
                        f"{paths[0].name} is {first.shape[1]}x{first.shape[0]} {first.dtype}",
                        "give all frames of a folder one size and depth",
                    )
            yield frame

    return Stream(frames(), name=str(folder), shape=first.shape, dtype=first.dtype, length=len(paths))


def open_image(path: Path, *, ids: bool) -> Stream:
    """One picture as a stream of one frame that holds for all; the pages of a TIFF as frames."""
    data = read_bounded(path, MAX_FILE_IN_MEMORY, EXPECTED)
    picture = inspect(data, str(path))
    first = _decode(data, picture, ids, str(path))
    pages = len(picture.pages)

    def frames() -> Frames:
        yield first
        for page in range(1, pages):
            frame = _decode(data, picture, ids, str(path), page)
            if frame.shape != first.shape or frame.dtype != first.dtype:
                raise refusal(
                    path,
                    f"has a page {page} of shape {frame.shape}",
                    f"page 0 has {first.shape}",
                    "give all pages one size and depth",
                )
            yield frame

    return Stream(frames(), name=str(path), shape=first.shape, dtype=first.dtype, length=pages, still=pages == 1)


def _read_single(path: Path, ids: bool) -> Array:
    with guarded(path, EXPECTED):
        data = read_bounded(path, MAX_FILE_IN_MEMORY, EXPECTED)
        picture = inspect(data, str(path))
        if len(picture.pages) > 1:
            raise refusal(path, f"has {len(picture.pages)} pages", "a frame of a folder has one", "give the file alone")
        return _decode(data, picture, ids, str(path))


def _decode(data: bytes, picture: Picture, ids: bool, name: str, page: int = 0) -> Array:
    """One page as stored: (H, W), or (H, W, 3 or 4) in RGB order."""
    import cv2

    with _quiet():
        if ids and picture.format == "png" and stores_ids(data):
            return read_ids(data, name)
        raw = np.frombuffer(data, np.uint8)
        if picture.format == "tiff":
            decoded, images = cv2.imdecodemulti(raw, cv2.IMREAD_UNCHANGED, range=(page, page + 1))
            image = images[0] if decoded and images else None
        else:
            image = cv2.imdecode(raw, cv2.IMREAD_UNCHANGED)
    if image is None:
        raise refusal(name, "does not decode", f"an intact {picture.format} was expected", "copy or write it again")
    if image.ndim == 3 and image.shape[2] in (3, 4):
        if image.dtype in (np.uint8, np.uint16, np.float32):
            image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB if image.shape[2] == 3 else cv2.COLOR_BGRA2RGBA)
        else:
            image = np.ascontiguousarray(image[..., [2, 1, 0, 3][: image.shape[2]]])
    result: Array = image
    return result


@contextmanager
def _quiet() -> Iterator[None]:
    """OpenCV prints what it thinks of a damaged file; the user gets our sentence instead."""
    import cv2

    log = cv2.utils.logging
    level = log.getLogLevel()
    log.setLogLevel(log.LOG_LEVEL_SILENT)
    try:
        yield
    finally:
        log.setLogLevel(level)


def _suffixes() -> str:
    return " ".join(sorted(IMAGE_SUFFIXES))
