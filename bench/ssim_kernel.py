"""How many times faster `karat.kernels.ssim` is than scikit-image, on one core, on the same frames and definition."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.kernels.ssim import ssim_sum

HEIGHT, WIDTH = 704, 1280
UNIFORM: dict[str, Any] = {"window": "uniform", "size": 7}
GAUSSIAN: dict[str, Any] = {"window": "gaussian", "size": 11, "sigma": 1.5}


def natural_frames(seed: int = 0) -> list[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Pairs of RGB frames: photographs and blurred noise with shapes, each beside a blurred, brighter, noisy copy."""
    from skimage import data

    rng = np.random.default_rng(seed)
    smooth = cv2.GaussianBlur(rng.random((HEIGHT, WIDTH, 3)).astype(np.float32), (0, 0), 12)
    drawn = np.asarray(cv2.normalize(smooth, None, 20, 235, cv2.NORM_MINMAX), np.uint8)
    for _ in range(30):
        centre = (int(rng.integers(WIDTH)), int(rng.integers(HEIGHT)))
        colour = [int(value) for value in rng.integers(0, 256, 3)]
        cv2.circle(drawn, centre, int(rng.integers(10, 120)), colour, -1)
    photographs = [cv2.resize(image, (WIDTH, HEIGHT)) for image in (data.astronaut(), data.chelsea(), data.coffee())]
    return [(image, _degraded(image, rng)) for image in (drawn, *photographs)]


def _degraded(image: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    noise = rng.normal(3, 6, image.shape)
    return np.asarray(np.clip(cv2.GaussianBlur(image, (9, 9), 2) + noise, 0, 255), np.uint8)


def ratios(repeats: int = 7) -> dict[str, float]:
    """Best time of scikit-image over best time of karat, measured in turns."""
    from skimage.metrics import structural_similarity

    x, y = natural_frames()[1]
    grey_x, grey_y = (np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)) for frame in (x, y))
    peers: dict[str, Callable[[], object]] = {
        "gaussian grey": lambda: structural_similarity(
            grey_x, grey_y, data_range=255, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, full=True
        ),
        "uniform rgb": lambda: structural_similarity(x, y, data_range=255, channel_axis=2, full=True),
    }
    ours: dict[str, Callable[[str], object]] = {
        "gaussian grey": lambda precision: ssim_sum(
            grey_x, grey_y, **GAUSSIAN, data_range=255, sample_covariance=False, precision=precision
        ),
        "uniform rgb": lambda precision: ssim_sum(x, y, **UNIFORM, data_range=255, precision=precision),
    }
    best: dict[str, float] = {}
    for _ in range(repeats):
        for name, peer in peers.items():
            _record(best, name, peer)
            for precision in ("float64", "float32"):
                for _ in range(3):
                    _record(best, f"{name} {precision}", lambda name=name, precision=precision: ours[name](precision))
    if os.environ.get("SSIM_KERNEL_TIMES"):
        print({name: f"{1e3 * seconds:.2f} ms" for name, seconds in best.items()}, file=sys.stderr)
    return {
        f"{name} {precision}": best[name] / best[f"{name} {precision}"]
        for name in peers
        for precision in ("float64", "float32")
    }


def _record(best: dict[str, float], name: str, call: Callable[[], object]) -> None:
    start = time.perf_counter()
    call()
    best[name] = min(best.get(name, float("inf")), time.perf_counter() - start)


if __name__ == "__main__":
    cv2.setNumThreads(1)
    for name, ratio in ratios().items():
        print(f"{name:24s} {ratio:6.1f} x scikit-image")
