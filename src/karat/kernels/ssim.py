r"""Structural similarity of two frames, in row strips that stay in the cache.

Wang, Bovik, Sheikh and Simoncelli 2004, *Image quality assessment: from error visibility to structural similarity*,
doi:10.1109/TIP.2003.819861, compare two frames x and y inside a sliding window by

    SSIM = (2 m_x m_y + C1) (2 s_xy + C2) / ((m_x^2 + m_y^2 + C1) (s_xx + s_yy + C2)),   C_i = (K_i L)^2,

with the windowed means m, variances s_xx, s_yy and covariance s_xy, and the dynamic range L.

The same number, written in the sum u = x + y and the difference v = x - y, needs four moments instead of five and
loses no digits where the frames agree, because the difference is formed before anything is squared:

    SSIM = (m_u^2 - m_v^2 + 2 C1) (s_uu - s_vv + 2 C2) / ((m_u^2 + m_v^2 + 2 C1) (s_uu + s_vv + 2 C2)).

Identical frames have v = 0, so both quotients are exactly one.  A variance does not change when u is centred, and
centring removes the cancellation in E[u^2] - E[u]^2.  A uniform window over bytes is summed in integers, exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

WindowName: TypeAlias = Literal["uniform", "gaussian"]
Precision: TypeAlias = Literal["float64", "float32"]
Frame: TypeAlias = NDArray[Any]
Array: TypeAlias = NDArray[Any]
Moments: TypeAlias = tuple[Array, Array]
"""Squared mean m^2 and variance s of one strip, both multiplied by the same constant."""

_STRIP_BYTES = 3 << 17
"""Bytes of one strip buffer: the few of one filter step fit an L2 cache of 1 MB; taller strips gain nothing."""
_STRIP_HALOS = 8
"""A strip has at least this many times the rows it borrows above and below, which are computed twice."""
_INT32_SAMPLES = 90
"""The largest n with n^2 (255 + 255)^2 < 2^31: window sums of bytes can be squared in int32."""
_INTEGER_SIZE = 181
"""The widest window whose sum of 255^2 fits int32."""

_MAX_CHANNELS = 128
"""OpenCV 5 reads a longer last axis as a third dimension."""


@dataclass(frozen=True)
class Window:
    """A square window of `size` x `size` pixels; `sigma` counts for the Gaussian only."""

    name: WindowName
    size: int
    sigma: float = 1.5

    @property
    def radius(self) -> int:
        return self.size // 2

    @property
    def samples(self) -> int:
        return self.size * self.size

    def weights(self) -> NDArray[np.float64]:
        """Weights along one axis, with sum one: w_i = 1/size, or proportional to exp(-i^2 / (2 sigma^2))."""
        if self.name == "uniform":
            return np.full(self.size, 1.0 / self.size)
        offsets = np.arange(-self.radius, self.radius + 1)
        weights = np.exp(-0.5 / (self.sigma * self.sigma) * offsets**2)
        return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True)
class _Constants:
    """2 C1 and 2 C2, in the unit in which the moments come."""

    luminance: float
    contrast: float


def ssim_map(
    x: Frame,
    y: Frame,
    *,
    window: WindowName,
    size: int,
    sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_range: float,
    sample_covariance: bool = True,
    precision: Precision = "float64",
) -> Array:
    """SSIM at every pixel, averaged over the channels (Wang et al. 2004, doi:10.1109/TIP.2003.819861).

    Equal to the full map of `skimage.metrics.structural_similarity`: symmetric borders, and variances multiplied by
    n / (n - 1), n = size^2, when `sample_covariance` is set.

    Parameters
    ----------
    x, y
        Two frames of the same shape, (H, W) or (H, W, C), uint8 or floating point.
    window, size, sigma
        "uniform", or "gaussian" with standard deviation `sigma`; `size` is odd.
    k1, k2, data_range
        K1, K2 and L of the formula.  Where the formula gives 0 / 0 the map is NaN.
    sample_covariance
        Divide the variances by n - 1 instead of n.
    precision
        The arithmetic of the map: "float64", or "float32", which is up to twice as fast.  Sums of bytes in a uniform
        window are exact in both.

    Returns
    -------
    The (H, W) map; the mean over channels is always taken in float64.
    """
    job = _job(x, y, Window(window, size, sigma), k1, k2, data_range, sample_covariance, precision)
    height, width, channels = job.x.shape
    out = np.empty((height, width), np.float64)
    for start, strip in job.strips():
        rows = out[start : start + len(strip)]
        # Plane by plane: numpy's mean over a short last axis costs as much as the rest of the map.
        rows[...] = strip[:, ::channels]
        for channel in range(1, channels):
            rows += strip[:, channel::channels]
        rows /= channels
    return out


def ssim_sum(
    x: Frame,
    y: Frame,
    *,
    window: WindowName,
    size: int,
    sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_range: float,
    sample_covariance: bool = True,
    precision: Precision = "float64",
    border: int = 0,
) -> float:
    """Sum of `ssim_map` over all pixels that are at least `border` pixels away from every side.

    The map never exists as a whole, and the sum is always taken in float64, strip by strip in a fixed order: the same
    frames give the same bits every time.  Divide by (H - 2 border) (W - 2 border) for the mean.
    """
    job = _job(x, y, Window(window, size, sigma), k1, k2, data_range, sample_covariance, precision)
    height, width, channels = job.x.shape
    if border < 0 or 2 * border >= min(height, width):
        raise InputError(
            f"A border of {border} pixels leaves nothing of a {width}x{height} frame; use one below half its sides."
        )
    channel_sum = 0.0
    for start, strip in job.strips():
        first, last = max(border - start, 0), max(height - border - start, 0)
        inner = strip[first:last, border * channels : (width - border) * channels]
        channel_sum += float(inner.sum(dtype=np.float64))
    return channel_sum / int(channels)


def _job(
    x: Frame,
    y: Frame,
    window: Window,
    k1: float,
    k2: float,
    data_range: float,
    sample_covariance: bool,
    precision: Precision,
) -> _Job:
    """Check the arguments and choose the arithmetic."""
    _check_frames(x, y)
    _check_window(window, sample_covariance)
    if precision not in ("float64", "float32"):
        raise InputError(f'The precision of SSIM is "float64" or "float32", not "{precision}".')
    unbias = window.samples / (window.samples - 1) if sample_covariance else 1.0
    c1, c2 = 2.0 * (k1 * data_range) ** 2, 2.0 * (k2 * data_range) ** 2
    exact = window.name == "uniform" and window.size <= _INTEGER_SIZE and x.dtype == y.dtype == np.uint8
    unit = window.samples**2 if exact else 1
    # Dividing both factors of the second quotient by n / (n - 1) moves that factor from every pixel into one constant.
    constants = _Constants(luminance=c1 * unit, contrast=c2 * unit / unbias)
    return _Job(_channels_last(x), _channels_last(y), window, constants, np.dtype(precision), exact)


def _check_frames(x: Frame, y: Frame) -> None:
    if x.shape != y.shape or x.ndim not in (2, 3) or x.size == 0:
        raise InputError(
            f"SSIM compares two frames of one shape, (H, W) or (H, W, C), but these have the shapes {x.shape} and "
            f"{y.shape}; resize or convert one of them first."
        )
    if x.ndim == 3 and x.shape[2] > _MAX_CHANNELS:
        raise InputError(f"SSIM takes at most {_MAX_CHANNELS} channels on the last axis, but got {x.shape[2]}.")
    for frame in (x, y):
        if frame.dtype != np.uint8 and not np.issubdtype(frame.dtype, np.floating):
            raise InputError(f"SSIM takes uint8 or floating point frames, but got {frame.dtype}; convert it first.")


def _check_window(window: Window, sample_covariance: bool) -> None:
    if window.name not in ("uniform", "gaussian"):
        raise InputError(f'The SSIM window is "uniform" or "gaussian", not "{window.name}".')
    if window.size < 1 or window.size % 2 == 0:
        raise InputError(f"The SSIM window needs an odd size, so that it has a centre, but got {window.size}.")
    if window.size == 1 and sample_covariance:
        raise InputError("A window of one pixel has no sample covariance; use a size of at least 3.")
    if window.name == "gaussian" and not window.sigma > 0:
        raise InputError(f"The Gaussian SSIM window needs a positive sigma, but got {window.sigma}.")


def _channels_last(frame: Frame) -> Frame:
    return frame[:, :, np.newaxis] if frame.ndim == 2 else frame


@dataclass(frozen=True)
class _Job:
    """Two frames (H, W, C) and everything that one pass over them needs."""

    x: Frame
    y: Frame
    window: Window
    constants: _Constants
    dtype: np.dtype[Any]
    exact: bool

    def strips(self) -> Iterator[tuple[int, Array]]:
        """The map in strips: the first row, and (rows, W * C) values in a buffer that the next strip overwrites.

        The height of a strip depends on nothing but the job, so that no value depends on the machine or on threads.
        The buffers belong to this call: several threads may run one job each.
        """
        height, width, channels = self.x.shape
        radius = self.window.radius
        rows = min(height, self._strip_rows(width * channels))
        kind: type[_Moments] = _IntegerMoments if self.exact else _FloatMoments
        moments = kind(self.window, (rows + 2 * radius, width, channels), self.dtype)
        for start in range(0, height, rows):
            around = (start - radius, min(start + rows, height) + radius)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                strip = moments(_mirrored_rows(self.x, *around), _mirrored_rows(self.y, *around))
                similarity = _similarity(strip, self.constants, moments.scratch)
            yield start, similarity

    def _strip_rows(self, row_values: int) -> int:
        return max(_STRIP_BYTES // (row_values * self.dtype.itemsize), _STRIP_HALOS * self.window.radius, 1)


def _mirrored_rows(frame: Frame, start: int, stop: int) -> Frame:
    """Rows start..stop of the frame continued by reflection, d c b a | a b c d | d c b a."""
    height = len(frame)
    if start >= 0 and stop <= height:
        return frame[start:stop]
    rows = np.arange(start, stop) % (2 * height)
    return frame[np.minimum(rows, 2 * height - 1 - rows)]


def _similarity(moments: tuple[Moments, Moments], constants: _Constants, scratch: Array) -> Array:
    """Luminance term times contrast and structure term, pixel by pixel; overwrites the moments."""
    (mean_u, var_u), (mean_v, var_v) = moments
    scratch = scratch[: len(mean_u)]
    luminance = _quotient(mean_u, mean_v, constants.luminance, scratch)
    structure = _quotient(var_u, var_v, constants.contrast, scratch)
    return np.multiply(luminance, structure, out=luminance)


def _quotient(p: Array, q: Array, constant: float, scratch: Array) -> Array:
    """(p - q + constant) / (p + q + constant), in place of p; exactly one where q is zero."""
    np.add(p, p.dtype.type(constant), out=p)
    np.subtract(p, q, out=scratch)
    np.add(p, q, out=p)
    return np.divide(scratch, p, out=p)


class _Moments(ABC):
    """Buffers for the moments of one strip, halo rows included."""

    def __init__(self, window: Window, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
        self.window = window
        self.inner = (-1, shape[1] * shape[2])
        self.scratch = np.empty((shape[0] - 2 * window.radius, shape[1] * shape[2]), dtype)
        # OpenCV drops a last axis of length one, so single channels go in without it.
        self.shape: tuple[int, ...] = shape if shape[2] > 1 else shape[:2]

    @abstractmethod
    def __call__(self, x: Frame, y: Frame) -> tuple[Moments, Moments]:
        """(m_u^2, s_uu) and (m_v^2, s_vv) without the halo, all multiplied by one constant."""

    def _without_halo(self, strip: Array) -> Array:
        radius = self.window.radius
        return strip[radius : len(strip) - radius].reshape(self.inner)


class _FloatMoments(_Moments):
    """Weighted means by a separable convolution; u is centred on the strip, which keeps s_uu free of cancellation."""

    def __init__(self, window: Window, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
        super().__init__(window, shape, dtype)
        self.weights = window.weights()
        self.values = np.empty(self.shape, dtype)
        self.filtered = [np.empty(self.shape, dtype) for _ in range(4)]

    def __call__(self, x: Frame, y: Frame) -> tuple[Moments, Moments]:
        x, y = x.reshape(len(x), *self.shape[1:]), y.reshape(len(y), *self.shape[1:])
        wide = np.int16 if x.dtype == y.dtype == np.uint8 else np.float64
        total = np.add(x, y, dtype=wide)
        centre = _centre(total)
        total -= centre
        of_u = self._moments(total, centre, *self.filtered[:2])
        difference = np.subtract(x, y, out=total, dtype=wide)
        return of_u, self._moments(difference, 0.0, *self.filtered[2:])

    def _moments(self, centred: Array, centre: float, mean: Array, var: Array) -> Moments:
        """m^2 = (E[c] + centre)^2 and s = E[c^2] - E[c]^2 of the centred values c."""
        rows = len(centred)
        values = self.values[:rows]
        np.copyto(values, centred, casting="same_kind")
        mean = self._without_halo(self._average(values, mean[:rows]))
        var = self._without_halo(self._average(np.square(values, out=values), var[:rows]))
        scratch = self.scratch[: len(mean)]
        var -= np.square(mean, out=scratch)
        np.add(mean, mean.dtype.type(centre), out=mean)
        return np.square(mean, out=mean), var

    def _average(self, values: Array, out: Array) -> Array:
        cv2.sepFilter2D(values, -1, self.weights, self.weights, out, borderType=cv2.BORDER_REFLECT)
        return out


def _centre(values: Array) -> float:
    """The mean of every eighth row, rounded for integers: any value near the mean will do."""
    mean = float(values[::8].mean())
    if not math.isfinite(mean):
        return 0.0
    return round(mean) if values.dtype.kind == "i" else mean


class _IntegerMoments(_Moments):
    """Window sums over bytes: with S = sum c and Q = sum c^2, n^2 m^2 = (S + n centre)^2 and n^2 s = n Q - S^2.

    u is centred on 255, so that |c| <= 255 for both u and v: c fits int16 and c^2 fits uint16.
    """

    def __init__(self, window: Window, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
        super().__init__(window, shape, dtype)
        self.values, self.squares = np.empty(self.shape, np.int16), np.empty(self.shape, np.int16)
        self.sums, self.sums_of_squares = np.empty(self.shape, np.int32), np.empty(self.shape, np.int32)
        self.moments = [np.empty_like(self.scratch) for _ in range(4)]

    def __call__(self, x: Frame, y: Frame) -> tuple[Moments, Moments]:
        x, y = x.reshape(len(x), *self.shape[1:]), y.reshape(len(y), *self.shape[1:])
        values = self.values[: len(x)]
        np.add(x, y, out=values, dtype=np.int16)
        values -= 255
        of_u = self._moments(values, 255, *self.moments[:2])
        np.subtract(x, y, out=values, dtype=np.int16)
        return of_u, self._moments(values, 0, *self.moments[2:])

    def _moments(self, centred: Array, centre: int, mean: Array, var: Array) -> Moments:
        rows, n = len(centred), self.window.samples
        # The product wraps around in int16 and is right when its bits are read as uint16.
        squares = np.multiply(centred, centred, out=self.squares[:rows]).view(np.uint16)
        s, q = self._sum(centred, self.sums[:rows]), self._sum(squares, self.sums_of_squares[:rows])
        if n > _INT32_SAMPLES:
            s, q = s.astype(np.float64), q.astype(np.float64)
        mean, var = mean[: len(s)], var[: len(s)]
        np.multiply(q, n, out=q)
        q -= s * s
        np.copyto(var, q, casting="unsafe")
        s += n * centre
        np.multiply(s, s, out=s)
        np.copyto(mean, s, casting="unsafe")
        return mean, var

    def _sum(self, values: Array, out: Array) -> Array:
        size = (self.window.size, self.window.size)
        cv2.boxFilter(values, cv2.CV_32S, size, out, normalize=False, borderType=cv2.BORDER_REFLECT)
        return self._without_halo(out)
