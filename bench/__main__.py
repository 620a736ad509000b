"""`python -m bench`: Karat beside scikit-image, torchmetrics (if installed) and the plain OpenCV script.

One process on one core, the same frames, in turns; the best time of each; ratios, since machines differ.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import cv2  # noqa: E402
import numpy as np  # noqa: E402

import karat  # noqa: E402
from bench import frames, peers  # noqa: E402


@dataclass(frozen=True)
class Race:
    """The same numbers from a peer and from Karat; `bound` is the ratio that is promised."""

    name: str
    peer: str
    theirs: Callable[[], object]
    ours: Callable[[], object]
    bound: float | None = None
    repeats: int = 5


def races(folder: Path) -> list[Race]:
    """What is compared."""
    pred, truth = frames.pair(3)
    gray = [np.stack([cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in side]) for side in (pred, truth)]
    clip = frames.write_pair(folder)
    gaussian = {"window": "gaussian", "size": 11, "sample_covariance": False}
    found = []
    for precision, gaussian_bound, uniform_bound in (("float64", 4, 4), ("float32", 6, 8)):
        grey = karat.SSIM(**gaussian, precision=precision)
        rgb = karat.SSIM(precision=precision)
        theirs = (
            lambda: peers.skimage_ssim_gaussian_gray(*gray),
            lambda: peers.skimage_ssim_uniform_rgb(pred, truth),
        )
        found += [
            Race(f"SSIM Gaussian grey {precision}", "scikit-image", theirs[0], lambda m=grey: m(*gray), gaussian_bound),
            Race(f"SSIM 7x7 RGB {precision}", "scikit-image", theirs[1], lambda m=rgb: m(pred, truth), uniform_bound),
        ]
        if find_spec("torchmetrics"):
            torch = lambda: peers.torchmetrics_ssim_gaussian_gray(*gray)  # noqa: E731
            found.append(Race(f"SSIM Gaussian grey {precision}", "torchmetrics", torch, lambda m=grey: m(*gray)))
    canny = lambda: peers.skimage_canny_f1(pred, truth)  # noqa: E731
    script = lambda: peers.opencv_script(*clip)  # noqa: E731
    found.append(Race("Canny + F1", "scikit-image", canny, lambda: karat.CannyF1()(pred, truth), 15))
    whole = lambda: evaluate_clip(*clip)  # noqa: E731
    found.append(Race("clip: blur SSIM + Canny F1", "OpenCV + scikit-image", script, whole, 3, 2))
    return found


def evaluate_clip(pred: Path, truth: Path) -> karat.Run:
    """The plain script's numbers: decoding, fingerprints and records included."""
    settings = {"blur_ssim.blur": "gaussian", "blur_ssim.color": "gray"}
    metrics = ["blur_ssim", "canny_f1"]
    return karat.evaluate(
        "transfer", pred=pred, truth=truth, metrics=metrics, settings=settings, workers=1, cache=False
    )


def ratio(race: Race) -> tuple[float, float]:
    """Best seconds of the peer and of Karat, measured in turns."""
    best = [float("inf"), float("inf")]
    for _ in range(race.repeats):
        for side, call in enumerate((race.theirs, race.ours)):
            began = time.perf_counter()
            call()
            best[side] = min(best[side], time.perf_counter() - began)
    return best[0], best[1]


def main() -> None:
    """Prints the table; exits with 1 where a promise is not kept."""
    cv2.setNumThreads(1)
    print(f"{'what':34} {'peer':22} {'peer':>9} {'karat':>9} {'ratio':>7} {'promised':>9}")
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        for race in races(Path(folder)):
            theirs, ours = ratio(race)
            promised = f">= {race.bound:g}x" if race.bound else ""
            kept &= race.bound is None or theirs / ours >= race.bound
            row = f"{race.name:34} {race.peer:22} {theirs:8.3f}s {ours:8.3f}s {theirs / ours:6.1f}x {promised:>9}"
            print(row, flush=True)
    sys.exit(0 if kept else 1)


main()
