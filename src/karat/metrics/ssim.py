"""Structural similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import cv2
import numpy as np

from karat.errors import UsageError
from karat.kernels.blur import Gray
from karat.kernels.ssim import ssim_map, ssim_sum
from karat.kernels.ssim_single import single_precision_map
from karat.metric import Array, Columns, Derived, Metric, Pool, Score, Sums, ratio
from karat.region import ALL, Map, Regions


@dataclass(frozen=True)
class SSIM(Metric):
    """Structural similarity: the mean over pixels of luminance x contrast x structure,
    (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2)), C1 = (K1 L)^2, C2 = (K2 L)^2.

    pred, truth: frames (B, H, W, 3) or (B, H, W), numbers within `data_range` L (255, a declared range, or
    "truth": max - min of each true frame; "truth_or_1": 1 where that is 0). Per channel, mean over channels, then over
    the map: all of it, or without the border of half a window. In a region: the mean of the whole frame's map over the
    region (eroded by `erode` pixels), undefined where that has fewer than `least` pixels (None: as many as the window).
    Windows that reach a NaN are left out (`missing="spread"`: the frame is undefined). fill="mean" or "zero": each
    region is scored on frames that are their own mean in it, or 0, everywhere else, over the whole map, as published
    code does.
    Values are those of scikit-image's full map; arithmetic="published": also its rounding, of fields (B, H, W) in
    single precision, whose variances are differences of means, under a uniform window.
    Wang et al. 2004, doi:10.1109/TIP.2003.819861.
    """

    window: Literal["uniform", "gaussian"] = "uniform"
    size: int = 7
    sigma: float = 1.5
    k1: float = 0.01
    k2: float = 0.03
    sample_covariance: bool = True
    data_range: float | Literal["truth", "truth_or_1"] = 255.0
    border: Literal["full", "crop"] = "full"
    color: Literal["rgb", "gray"] = "rgb"
    erode: int = 0
    least: int | None = None
    fill: Literal["mean", "zero"] | None = None
    missing: Literal["leave", "spread"] = "leave"
    arithmetic: Literal["stable", "published"] = "stable"
    precision: Literal["float64", "float32"] = "float64"
    pool: Pool = "frame"

    scores: ClassVar = {"ssim": Score("higher", (-1, 1), 1, "mean over pixels, frames and videos")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 3 or self.size % 2 == 0:
            raise UsageError(f"{type(self).__name__}.size is an odd number from 3, not {self.size}.")
        if self.arithmetic == "published" and self.window != "uniform":
            raise UsageError(f'{type(self).__name__}.arithmetic="published" is that of window="uniform".')
        if isinstance(self.data_range, float) and not self.data_range > 0:
            raise UsageError(
                f'{type(self).__name__}.data_range is a positive number or "truth", not {self.data_range!r}.'
            )

    def inputs(self) -> dict[str, Derived]:
        return {} if self.color == "rgb" else {side: Derived(side, Gray()) for side in ("pred", "truth")}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        shape, every = truth.shape[:3], regions
        pred, truth = _computable(pred), _computable(truth)
        lost = _lost(pred, truth)
        if lost is not None:
            whole = lost.any(axis=(1, 2), keepdims=True) if self.missing == "spread" else self._reached(lost)
            regions = regions.where(~np.broadcast_to(whole, lost.shape))
            pred, truth = (_without_nan(side) for side in (pred, truth))
        if self.fill is not None:
            return self._filled(pred, truth, regions)
        if regions.whole and self.arithmetic == "stable":
            border = self._border()
            area = max(shape[1] - 2 * border, 0) * max(shape[2] - 2 * border, 0)
            sums = [ssim_sum(p, t, border=border, **self._window(t)) for p, t in zip(pred, truth, strict=True)]
            return {"ssim": np.array(sums).reshape(-1, 1), "n": np.full((shape[0], 1), area)}
        maps = [self._map(p, t) for p, t in zip(pred, truth, strict=True)]
        known = regions.change(self._eroded) if self.erode else regions
        known = known.where(self._inside(shape)) if self.border == "crop" else known
        least = self.size**2 if self.least is None else self.least
        given, left = (one.unweighted().weight(shape) for one in (every, known))
        enough = (left >= least) | (given == shape[1] * shape[2])
        return {"ssim": np.where(enough, known.sum(np.stack(maps)), 0.0), "n": known.weight(shape) * enough}

    def _map(self, pred: Array, truth: Array) -> Array:
        """The map of two frames."""
        window = self._window(truth)
        if self.arithmetic == "stable":
            return ssim_map(pred, truth, **window)
        constants = (self.size, self.sample_covariance, self.k1, self.k2, window["data_range"])
        channels = zip(np.atleast_3d(pred).T, np.atleast_3d(truth).T, strict=True)
        return np.asarray(np.mean([single_precision_map(p, t, *constants) for p, t in channels], axis=0).T)

    def _filled(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        """Each region by itself, on frames whose other pixels are their mean in it."""
        shape = truth.shape[:3]
        known = Regions({ALL: None}, regions.valid)
        inside = known.where(self._inside(shape)) if self.border == "crop" else known
        sums, counts = np.zeros((2, shape[0], len(regions)))
        for r, one in regions.each():
            weights = next(iter(one.maps.values()))
            sides = [pred, truth]
            if weights is not None:
                sides = [_outside_filled(side, weights, one, self.fill) for side in sides]
            maps = [self._map(p, t) for p, t in zip(*sides, strict=True)]
            there = one.weight(shape)[:, 0] > 0
            sums[:, r] = np.where(there, inside.sum(np.stack(maps))[:, 0], 0.0)
            counts[:, r] = np.where(there, inside.weight(shape)[:, 0], 0)
        return {"ssim": sums, "n": counts.astype(np.int64)}

    def _reached(self, lost: Array) -> Array:
        """The pixels whose window has one that is lost."""
        square = np.ones((self.size, self.size), np.uint8)
        reach = [cv2.dilate(frame.astype(np.uint8), square, borderType=cv2.BORDER_REFLECT) for frame in lost]
        return np.asarray(np.stack(reach) != 0)

    def score(self, s: Sums) -> dict[str, Array]:
        return {name: ratio(s.ssim, s.n) for name in self.scores}

    def _window(self, truth: Array) -> dict[str, Any]:
        return {
            "window": self.window,
            "size": self.size,
            "sigma": self.sigma,
            "k1": self.k1,
            "k2": self.k2,
            "data_range": self._range(truth) if isinstance(self.data_range, str) else self.data_range,
            "sample_covariance": self.sample_covariance,
            "precision": self.precision,
        }

    def _range(self, truth: Array) -> float:
        span = float(truth.max()) - float(truth.min())
        return span or float(self.data_range == "truth_or_1")

    def _border(self) -> int:
        return self.size // 2 if self.border == "crop" else 0

    def _inside(self, shape: tuple[int, ...]) -> Array:
        inside, border = np.zeros(shape, bool), self._border()
        inside[:, border : shape[1] - border, border : shape[2] - border] = True
        return inside

    def _eroded(self, weights: Array) -> Array:
        disc = np.ones((2 * self.erode + 1, 2 * self.erode + 1), np.uint8)
        inside = [cv2.erode((frame != 0).astype(np.uint8), disc, borderType=cv2.BORDER_REPLICATE) for frame in weights]
        return np.where(np.stack(inside) != 0, weights, np.zeros((), weights.dtype))


def _computable(frames: Array) -> Array:
    """Bytes and floats as they are, other integers widened."""
    return frames if frames.dtype == np.uint8 or frames.dtype.kind == "f" else frames.astype(np.float64)


def _lost(pred: Array, truth: Array) -> Array | None:
    """Where either side (B, H, W[, C]) is NaN; None where none is."""
    if not any(side.dtype.kind == "f" and np.isnan(side).any() for side in (pred, truth)):
        return None
    lost = np.isnan(pred) | np.isnan(truth)
    return np.asarray(lost if lost.ndim == 3 else lost.any(axis=3))


def _without_nan(frames: Array) -> Array:
    """NaN replaced by the least of the frame, which leaves its range as it is."""
    filled: Array = np.where(np.isnan(frames), np.fmin.reduce(frames, axis=(1, 2), keepdims=True), frames)
    return filled


def _outside_filled(frames: Array, weights: Map, one: Regions, fill: str | None) -> Array:
    """Frames (B, H, W[, C]) whose pixels outside of a region are their mean in it, by channel, or 0."""
    if frames.ndim == 4:
        return np.stack([_outside_filled(frames[..., c], weights, one, fill) for c in range(frames.shape[3])], axis=3)
    outside = one.mean(frames)[:, :1, None] if fill == "mean" else 0.0
    filled: Array = np.where(np.asarray(weights) != 0, frames.astype(np.float64), outside)
    return filled
