"""Frames and clips: Karat beside scikit-image, torchmetrics (if installed) and the plain OpenCV script."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np

import karat
from bench import frames, peers
from bench.race import Race


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
