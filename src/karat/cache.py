"""Filtered frames kept between runs: a file a frame, named by the frame's bytes, the filter and what computes it."""

from __future__ import annotations

import hashlib
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.kernels.blur import Filter

Array = NDArray[Any]


def cache_folder() -> Path:
    """Where what can be made again is kept: `KARAT_CACHE`, or the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("KARAT_CACHE") or Path(home) / "karat")


@dataclass(frozen=True)
class FrameCache:
    """A folder of PNG files, at most `limit` bytes of them (the oldest go first when `trim` is called)."""

    folder: Path
    limit: int

    @classmethod
    def default(cls) -> FrameCache:
        """`KARAT_CACHE` or the user's cache folder; `KARAT_CACHE_GB` (20) is its limit."""
        try:
            limit = int(float(os.environ.get("KARAT_CACHE_GB", "20")) * 1e9)
        except (ValueError, OverflowError):
            raise UsageError(f"KARAT_CACHE_GB is a number, not {os.environ['KARAT_CACHE_GB']!r}.") from None
        return cls(cache_folder() / "frames", limit)

    def apply(self, filter: Filter, frames: Array) -> Array:
        """The filtered frames, read where they are known and kept where they are not."""
        return np.stack([self._frame(filter, frame) for frame in frames]) if len(frames) else frames

    def trim(self) -> None:
        """Remove the files that were used longest ago until the folder is within its limit."""
        files = []
        for file in self.folder.glob("*/*"):
            with suppress(OSError):  # another run may trim at the same time
                files.append((file.stat().st_mtime, file.stat().st_size, file))
        excess = sum(size for _, size, _ in files) - self.limit
        for _, size, file in sorted(files):
            if excess <= 0:
                return
            with suppress(OSError):
                file.unlink()
                excess -= size

    def _frame(self, filter: Filter, frame: Array) -> Array:
        if frame.dtype != np.uint8:
            return filter.frame(frame)
        head = f"{filter!r} OpenCV {cv2.__version__} {frame.shape}"
        name = hashlib.sha256(head.encode() + np.ascontiguousarray(frame).data).hexdigest()
        file = self.folder / name[:2] / f"{name}.png"
        known = self._read(file, frame.shape)
        if known is not None:
            return known
        filtered = filter.frame(frame)
        self._write(file, filtered)
        return filtered

    def _read(self, file: Path, shape: tuple[int, ...]) -> Array | None:
        try:
            stored = np.fromfile(file, np.uint8)
        except OSError:
            return None
        with suppress(OSError):  # another user's cache can be read, if not marked as used
            os.utime(file)
        image = cv2.imdecode(stored, cv2.IMREAD_UNCHANGED) if len(stored) else None
        return image if image is not None and image.shape == shape and image.dtype == np.uint8 else None

    def _write(self, file: Path, frame: Array) -> None:
        done, encoded = cv2.imencode(".png", frame, [cv2.IMWRITE_PNG_COMPRESSION, 1])
        part = file.with_suffix(f".{uuid.uuid4().hex}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(encoded.tobytes() if done else b"")
            part.replace(file)
        except OSError:  # a full or read-only disk costs the shortcut, not the run
            with suppress(OSError):
                part.unlink(missing_ok=True)
