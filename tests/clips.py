"""Small clips on disk, and Karat as its users call it, for the tests of the whole program."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FAST = ("--set", "blur_ssim.blur=gaussian")
COUNTS = ("n", "undefined", "excluded", "failed")


def write_video(path: Path, frames: Array, fps: int = 12) -> None:
    """RGB frames (T, H, W, 3) of even size as H.264."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps, options={"crf": "18", "preset": "veryfast", "threads": "1"})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def moving(seed: int = 0, frames: int = 4, height: int = 48, width: int = 64) -> Array:
    """Gradients and a bright rectangle that moves: (T, H, W, 3) bytes with edges."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    clip = np.stack([np.stack([2 * x + 7 * t + seed, y + 3 * t, x + y + 11 * seed], -1) % 128 for t in range(frames)])
    color = rng.integers(190, 256, 3)
    for t, frame in enumerate(clip):
        frame[8 + t : 24 + t, 10 + 2 * t + seed % 5 : 34 + 2 * t + seed % 5] = color
    return clip.astype(np.uint8)


def noisy(clip: Array, seed: int = 0, strength: int = 30) -> Array:
    """The clip as a poor model would make it."""
    noise = np.random.default_rng(seed).integers(-strength, strength + 1, clip.shape)
    return np.clip(clip.astype(np.int64) + noise, 0, 255).astype(np.uint8)


def rectangle(frames: int = 4, height: int = 48, width: int = 64) -> Array:
    """Where the rectangle of `moving(0)` is: (T, H, W) booleans."""
    mask = np.zeros((frames, height, width), bool)
    for t, frame in enumerate(mask):
        frame[8 + t : 24 + t, 10 + 2 * t : 34 + 2 * t] = True
    return mask


def pair(folder: Path, names: Sequence[str] = ("a", "b", "c"), frames: int = 4, **size: int) -> tuple[Path, Path]:
    """Folders of predicted and of true videos."""
    for seed, name in enumerate(names):
        clip = moving(seed, frames, **size)
        write_video(folder / "truth" / f"{name}.mp4", clip)
        write_video(folder / "pred" / f"{name}.mp4", noisy(clip, seed))
    return folder / "pred", folder / "truth"


def save(folder: Path, samples: Mapping[str, Mapping[str, Array]]) -> Path:
    """A folder of npz files, one a sample."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, arrays in samples.items():
        np.savez(folder / f"{name}.npz", **arrays)
    return folder


def cut(path: Path, share: float = 0.5) -> None:
    """Truncates a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def command(*args: Any) -> list[str]:
    """Karat's command line in this interpreter."""
    return [sys.executable, "-m", "karat", *map(str, args)]


def karat(*args: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs the command line to its end; `env` adds to the environment."""
    env = {**os.environ, **options.pop("env", {})}
    return subprocess.run(command(*args), capture_output=True, env=env, timeout=120, check=False, **options)


def called(*args: Any) -> subprocess.CompletedProcess[bytes]:
    """The command line inside this process, for refusals by the dozen: a start costs half a second."""
    from karat.cli import main

    given, streams = sys.argv, (sys.stdout, sys.stderr)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.argv, sys.stdout, sys.stderr = ["karat", *map(str, args)], out, err
    try:
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    finally:
        sys.argv, (sys.stdout, sys.stderr) = given, streams
    return subprocess.CompletedProcess(args, code, out.buffer.getvalue(), err.buffer.getvalue())  # type: ignore[attr-defined]


def scored(*args: Any, **options: Any) -> dict[str, Any]:
    """What `karat run transfer ... --format json` says; samples may fail, the command may not."""
    done = karat("run", "transfer", *args, "--format", "json", **options)
    assert done.returncode in (0, 3), done.stderr.decode()
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def values(content: Mapping[str, Any]) -> dict[str, Any]:
    """{score: value} of a scores.json."""
    return {name: one["value"] for name, one in content["scores"].items()}


def refused(done: subprocess.CompletedProcess[bytes], *words: str, code: int = 2) -> str:
    """The one line that a refusal is: on stderr, from Karat, printable, without a traceback."""
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert done.stdout == b""
    lines = [line for line in text.splitlines() if not line.startswith("karat: about ")]
    assert len(lines) == 1, text
    assert lines[0].startswith("karat: "), text
    assert lines[0].isprintable()
    for word in words:
        assert word in lines[0], text
    return lines[0]
