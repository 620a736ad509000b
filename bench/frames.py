"""What is measured on: natural-like frames, and a clip of them as H.264."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]
HEIGHT, WIDTH, FRAMES = 704, 1280, 121


def degraded(image: Frame, rng: np.random.Generator) -> Frame:
    """A blurred, brighter, noisy copy."""
    noise = rng.normal(3, 6, image.shape)
    return np.asarray(np.clip(cv2.GaussianBlur(image, (9, 9), 2) + noise, 0, 255), np.uint8)


def photographs() -> list[Frame]:
    """Photographs of scikit-image at the size of a 720p clip."""
    from skimage import data

    return [np.asarray(cv2.resize(one, (WIDTH, HEIGHT))) for one in (data.astronaut(), data.chelsea(), data.coffee())]


def pair(count: int) -> tuple[Frame, Frame]:
    """A prediction and a truth clip (count, H, W, 3)."""
    rng = np.random.default_rng(0)
    truth = np.stack([photographs()[i % 3] for i in range(count)])
    return np.stack([degraded(frame, rng) for frame in truth]), truth


def panning() -> Iterator[tuple[Frame, Frame]]:
    """A camera that pans over a photograph, frame by frame, and its degraded copy."""
    rng = np.random.default_rng(0)
    wide = cv2.resize(photographs()[0], (WIDTH + 2 * FRAMES, HEIGHT + FRAMES))
    for t in range(FRAMES):
        frame = np.ascontiguousarray(wide[t : t + HEIGHT, 2 * t : 2 * t + WIDTH])
        yield degraded(frame, rng), frame


def write_pair(folder: Path) -> tuple[Path, Path]:
    """pred/clip.mp4 and truth/clip.mp4 of the panning camera."""
    paths = folder / "pred" / "clip.mp4", folder / "truth" / "clip.mp4"
    outputs: list[tuple[Any, Any]] = []
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        container = av.open(str(path), "w")
        stream = container.add_stream("libx264", rate=24, options={"preset": "veryfast", "crf": "18"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        outputs.append((container, stream))
    for frames in panning():
        for (container, stream), frame in zip(outputs, frames, strict=True):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
    for container, stream in outputs:
        container.mux(stream.encode())
        container.close()
    return paths
