"""The peak memory of `karat run`, over a long 1080p pair and over a million poses: `python -m bench.memory` (Linux).

Writes 600 frames of moving gradients as H.264, evaluates the first 100, 300 and 600 of them with two workers and the
Gaussian blur, adds up the resident memory of the command and everything it started, and exits with 1 where the peak
passes 1.5 GB or grows with the number of frames. A million instances of fifteen nodes may take 4 GB, 10,000 maps of
256x256 pixels 1.5 GB, the masks of 456 videos in a pickle of 2 GB 300 MB. `python -m bench.memory video poses maps
masks` names what is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from bench.control import RECORDS, boxes, truth_records, write_masks
from bench.poses import ANIMALS, pair

LENGTHS = (100, 300, 600)
WIDTH, HEIGHT = 1920, 1080
BOUND = 1.5e9
POSES, POSES_BOUND = 1_000_000, 4e9
MAPS, MAP = (1_000, 10_000), 256
MASKS_BOUND = 300e6
GROWTH = 1.1  # of the longest clip's peak over the shortest's: noise of the sampling, not of the length
EVERY = 0.02  # seconds between samples
PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Prints a line a run; 1 where memory is not bounded."""
    kept = [MEASURED[name]() for name in sys.argv[1:] or MEASURED]
    return 0 if all(kept) else 1


def video() -> bool:
    """Whether long videos take what short ones take."""
    with tempfile.TemporaryDirectory(prefix="karat-memory-") as name:
        home = Path(name)
        print(f"writing {LENGTHS[-1]} frames of {WIDTH}x{HEIGHT} twice", file=sys.stderr)
        for seed, side in enumerate(("truth", "pred")):
            write_clip(home / side / "clip.mp4", LENGTHS[-1], seed)
        peaks = {length: measure(home, length) for length in LENGTHS}
    flat = peaks[LENGTHS[-1]] <= GROWTH * peaks[LENGTHS[0]]
    bounded = max(peaks.values()) < BOUND
    print(f"bound 1.5 GB: {'kept' if bounded else 'PASSED'}; flat: {'yes' if flat else 'NO'}")
    return flat and bounded


def a_million_poses() -> bool:
    """Whether a million instances in a plain file fit."""
    with tempfile.TemporaryDirectory(prefix="karat-memory-") as name:
        for side, poses in zip(("pred", "truth"), pair(POSES // ANIMALS), strict=True):
            given = {"points": poses.points, "frame": poses.frame, "labelled": poses.labelled}
            np.savez(Path(name) / side, nodes=np.array(poses.nodes), score=poses.score, **given)
        sides = (f"--{side}={name}/{side}.npz" for side in ("pred", "truth"))
        peak, seconds = peak_of(["pose", *sides, "--out", f"{name}/run", "--format", "csv"], Path(name))
    print(f"{POSES} poses: peak {peak / 1e6:.0f} MB, {seconds:.0f} s", flush=True)
    print(f"bound 4 GB: {'kept' if peak < POSES_BOUND else 'PASSED'}")
    return peak < POSES_BOUND


def many_maps() -> bool:
    """Whether thousands of maps take what hundreds take."""
    peaks = []
    for count in MAPS:
        with tempfile.TemporaryDirectory(prefix="karat-memory-") as name:
            home, rng = Path(name), np.random.default_rng(0)
            noise = rng.normal(0, 4, (MAP, MAP)).astype(np.float32)
            for side in ("pred", "truth", "observed"):
                dtype = np.uint8 if side == "observed" else np.float32
                stack = np.lib.format.open_memmap(home / f"{side}.npy", "w+", dtype, (count, MAP, MAP))
                for i in range(count):
                    stack[i] = rng.random((MAP, MAP)) < 0.005 if side == "observed" else np.roll(noise, i) - 100
                del stack
            sides = [f"--{side}={home / side}.npy" for side in ("pred", "truth", "observed")]
            peak, seconds = peak_of(["radiomap", *sides, "--workers", "2", "--format", "csv"], home)
        print(f"{count} maps: peak {peak / 1e6:.0f} MB, {seconds:.0f} s", flush=True)
        peaks.append(peak)
    print(f"bound 1.5 GB: {'kept' if max(peaks) < BOUND else 'PASSED'}")
    return max(peaks) < BOUND


def streamed_masks() -> bool:
    """Whether masks are read from their pickle one after another."""
    with tempfile.TemporaryDirectory(prefix="karat-memory-") as name:
        home = Path(name)
        write_masks(home / "masks.pkl", boxes(1))
        (home / "truth.json").write_text(json.dumps(truth_records(boxes(0))))
        sides = [f"--pred={home / 'masks.pkl'}", f"--truth={home / 'truth.json'}"]
        peak, seconds = peak_of(["control", *sides, "--workers", "2", "--format", "csv"], home)
    print(f"masks of {RECORDS} videos: peak {peak / 1e6:.0f} MB, {seconds:.0f} s", flush=True)
    print(f"bound 300 MB: {'kept' if peak < MASKS_BOUND else 'PASSED'}")
    return peak < MASKS_BOUND


def write_clip(path: Path, frames: int, seed: int) -> None:
    """One frame at a time, so that writing needs no memory either."""
    path.parent.mkdir()
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"preset": "ultrafast", "crf": "23"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for picture in pictures(frames, seed):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def pictures(frames: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """A gradient that moves under a band of noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.uint16)
    noise = rng.integers(0, 256, (120, WIDTH, 3), np.uint8)

    def picture(t: int) -> NDArray[np.uint8]:
        levels = ((x // 8 + 2 * t) % 256, (y // 5 + t) % 256, ((x + y) // 12 + 3 * t) % 256)
        image = np.stack(levels, axis=-1).astype(np.uint8)
        top = 7 * t % (HEIGHT - 120)
        image[top : top + 120] = np.roll(noise, 11 * t, axis=1)
        return image

    return map(picture, range(frames))


def measure(home: Path, frames: int) -> int:
    """The peak in bytes over the first `frames` frames; prints it."""
    fields = ("--pred", str(home / "pred"), "--truth", str(home / "truth"))
    how = ("--set", "blur_ssim.blur=gaussian", "--workers", "2", "--frames", str(frames), "--format", "csv")
    peak, seconds = peak_of(["transfer", *fields, *how], home)
    print(f"{frames:4} frames: peak {peak / 1e6:.0f} MB, {seconds:.0f} s", flush=True)
    return peak


def peak_of(arguments: list[str], cache: Path) -> tuple[int, float]:
    """The peak in bytes of `karat run` and all that it starts, and how many seconds it takes."""
    began, peak = time.perf_counter(), 0
    command, environment = [sys.executable, "-m", "karat", "run", *arguments], {**os.environ, "KARAT_CACHE": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(resident, tree(process.pid))))
            time.sleep(EVERY)
    if process.returncode:
        raise SystemExit(f"karat ended with {process.returncode}")
    return peak, time.perf_counter() - began


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    found = [root]
    for parent in found:
        for file in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, _text(file).split())
    return found


def resident(pid: int) -> int:
    """Resident bytes, 0 once the process is gone."""
    fields = _text(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * PAGE if fields else 0


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


MEASURED = {"video": video, "poses": a_million_poses, "maps": many_maps, "masks": streamed_masks}

if __name__ == "__main__":
    sys.exit(main())
