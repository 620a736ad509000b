"""What people run today: a loop over frames with scikit-image and OpenCV, and torchmetrics where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.uint8]


def skimage_ssim_gaussian_gray(pred: Frames, truth: Frames) -> float:
    """The Gaussian 11x11 SSIM of grey frames."""
    from skimage.metrics import structural_similarity

    options: dict[str, Any] = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    pairs = zip(pred, truth, strict=True)
    maps = [structural_similarity(p, t, data_range=255, full=True, **options)[1] for p, t in pairs]
    return float(np.mean([one.mean() for one in maps]))


def skimage_ssim_uniform_rgb(pred: Frames, truth: Frames) -> float:
    """The uniform 7x7 SSIM of RGB frames."""
    from skimage.metrics import structural_similarity

    pairs = zip(pred, truth, strict=True)
    maps = [structural_similarity(p, t, data_range=255, full=True, channel_axis=2)[1] for p, t in pairs]
    return float(np.mean([one.mean() for one in maps]))


def skimage_canny_f1(pred: Frames, truth: Frames) -> float:
    """scikit-image's Canny edges and the F1 of their coincidence, pooled over the clip."""
    from skimage.color import rgb2gray
    from skimage.feature import canny

    both = [[canny(rgb2gray(frame)) for frame in side] for side in (pred, truth)]
    return _f1(np.stack(both[0]), np.stack(both[1]))


def torchmetrics_ssim_gaussian_gray(pred: Frames, truth: Frames) -> float:
    """torchmetrics' SSIM of grey frames."""
    import torch
    from torchmetrics.functional.image import structural_similarity_index_measure

    tensors = [torch.from_numpy(side).float()[:, None] for side in (pred, truth)]
    return float(structural_similarity_index_measure(*tensors, data_range=255.0))


def opencv_script(pred: Path, truth: Path) -> dict[str, float]:
    """The usual script for one clip: grey, Gaussian blur, scikit-image's SSIM, OpenCV's Canny, F1 over the clip."""
    from skimage.metrics import structural_similarity

    captures = [cv2.VideoCapture(str(path)) for path in (pred, truth)]
    similarity: list[float] = []
    edges: list[list[NDArray[np.bool_]]] = [[], []]
    while True:
        frames = [capture.read() for capture in captures]
        if not all(ok for ok, _ in frames):
            break
        gray = [cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY) for _, frame in frames]
        p, t = (cv2.GaussianBlur(image, (25, 25), 12.5) for image in gray)
        similarity.append(float(structural_similarity(p, t, data_range=255, full=True)[1].mean()))
        for side, image in zip(edges, gray, strict=True):
            side.append(cv2.Canny(image, 100, 200) > 0)
    return {"blur_ssim": float(np.mean(similarity)), "canny_f1_score": _f1(np.stack(edges[0]), np.stack(edges[1]))}


def _f1(pred: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    tp, fp, fn = ((a & b).sum() for a, b in ((pred, truth), (pred, ~truth), (~pred, truth)))
    return float(2 * tp / (2 * tp + fp + fn))


Canvases = list[NDArray[Any]]


def peekaboo(pred: list[Canvases], truth: NDArray[np.float64]) -> list[tuple[float, ...]]:
    """Of every video what Peekaboo's script computes, in the way it does: the boxes asked for (videos, frames, 4) are
    painted on canvases of float64, and every number is made anew of the lists of canvases."""
    return [_peekaboo_video(masks, boxes) for masks, boxes in zip(pred, truth, strict=True)]


def painted(boxes: NDArray[np.float64], height: int, width: int) -> Canvases:
    """Canvases (height, width) of float64, 1 in the box."""
    canvases = []
    for x1, y1, x2, y2 in boxes:
        canvas = np.zeros((height, width))
        canvas[int(y1 * height) : int(y2 * height), int(x1 * width) : int(x2 * width)] = 1
        canvases.append(canvas)
    return canvases


def _peekaboo_video(masks: Canvases, boxes: NDArray[np.float64]) -> tuple[float, ...]:
    asked = painted(boxes, *masks[0].shape)
    frames = _overlap(asked, masks, (-1, -2))[np.sum(masks, axis=(-1, -2)) > 0]
    apart = np.linalg.norm(_middles(asked) - _middles(masks), axis=-1).mean()
    sides = [float(np.sqrt(np.sum(canvas))) for canvas in asked]
    return (
        float(_overlap(asked, masks, None)),
        float(np.mean(frames >= 0.5)),
        float(apart),
        float(np.sum(asked)),
        float(np.sum(masks)),
        float(np.std(sides) / np.mean(sides)),
    )


def _overlap(asked: Canvases, masks: Canvases, axis: tuple[int, int] | None) -> Any:
    both, either = np.logical_and(asked, masks), np.logical_or(asked, masks)
    return np.sum(both, axis=axis) / (np.sum(either, axis=axis) + 1e-5)


def _middles(canvases: Canvases) -> NDArray[np.float64]:
    first = [np.argmax(np.sum(canvases, axis=axis), axis=-1) for axis in (-1, -2)]
    last = [np.argmax(np.cumsum(np.sum(canvases, axis=axis), axis=-1), axis=-1) for axis in (-1, -2)]
    return np.stack([(a + b) / 2 for a, b in zip(first, last, strict=True)], axis=1)
