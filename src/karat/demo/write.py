"""Writes the demo scenes and what the pretend models make of them as H.264 videos and npz files."""

import os
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from karat.demo.models import MODELS, Prediction
from karat.demo.scenes import Scene, film
from karat.demo.shapes import Bytes

FPS = 12
# Equal frames give equal bytes: with macroblock trees, x264's vector code reads memory that nobody has written.
_X264 = {"crf": "18", "preset": "veryfast", "threads": "1", "x264-params": "mbtree=0"}
# Named in the file, so that no reader has to guess the matrix: the converter's own choice, BT.601 at limited range.
_BT601 = {"color_range": "tv", "colorspace": "smpte170m", "color_primaries": "smpte170m", "color_trc": "smpte170m"}


def write(
    folder: Path, count: int = 3, frames: int = 16, height: int = 240, width: int = 320, seed: int = 0
) -> dict[str, Path]:
    """Write ``count`` scenes and every model's version of them; the size must be even.

    Returns the folders ``truth`` (mp4), ``truth_depth``, ``truth_segments`` and ``masks`` (npz), and for every model
    its folder under its name, with the subfolders ``videos`` (mp4), ``depth`` and ``segments`` (npz).
    """
    places = {name: folder / name for name in ("truth", "truth_depth", "truth_segments", "masks")}
    places |= {model: folder / "models" / model for model in MODELS}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(film, index, frames, height, width, seed) for index in range(count)]
        writes: list[Future[None]] = []
        for index, job in enumerate(jobs):
            scene = job.result()
            writes.append(pool.submit(_write_truth, scene, places))
            for model in MODELS:
                writes.append(pool.submit(_write_model, scene, model, seed + index, places[model]))
        for done in writes:
            done.result()
    return places


def _write_truth(scene: Scene, places: dict[str, Path]) -> None:
    _write_clip(scene, scene.name, places["truth"], places["truth_depth"], places["truth_segments"])
    _write_arrays(places["masks"] / f"{scene.name}.npz", mask=scene.foreground)


def _write_model(scene: Scene, model: str, seed: int, home: Path) -> None:
    _write_clip(MODELS[model](scene, seed), scene.name, home / "videos", home / "depth", home / "segments")


def write_video(path: Path, frames: Bytes) -> None:
    """Write RGB ``frames`` (T, H, W, 3) of even size as H.264 in the container that ``path`` names."""
    height, width = frames.shape[1:3]
    with _whole(path) as part, av.open(str(part), "w", format=path.suffix[1:]) as container:
        stream = container.add_stream("libx264", rate=FPS, options=_X264 | _BT601)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())


def _write_clip(clip: Scene | Prediction, name: str, videos: Path, depth: Path, segments: Path) -> None:
    write_video(videos / f"{name}.mp4", clip.frames)
    _write_arrays(depth / f"{name}.npz", depth=clip.depth)
    _write_arrays(segments / f"{name}.npz", labels=clip.labels, names=np.array(clip.names))


def _write_arrays(path: Path, **arrays: NDArray[np.generic]) -> None:
    # np.savez_compressed offers no level, and its level 6 takes three times as long for a little less.
    with _whole(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A path to write to that becomes ``path`` once its content is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
