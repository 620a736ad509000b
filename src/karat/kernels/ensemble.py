"""What samples (B, N, H, W) of a map say of it, by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TILE_PIXELS = 1 << 14


@dataclass(frozen=True)
class SampleMean:
    """The mean of the samples of each map."""

    def __call__(self, samples: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(samples.mean(axis=1, dtype=np.float64))


@dataclass(frozen=True)
class SampleDeviation:
    """The standard deviation of the samples of each map: the root of the summed squares over N - `ddof`, NaN where that
    is not above 0."""

    ddof: int = 1

    def __call__(self, samples: Array) -> Array:
        if samples.shape[1] <= self.ddof:
            return np.full((len(samples), *samples.shape[2:]), np.nan)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(samples.std(axis=1, dtype=np.float64, ddof=self.ddof))


def rising(maps: list[Array]) -> list[Array]:
    """The values of every pixel in rising order, as maps: Batcher's exchanges of whole maps take a fraction of the time
    of sorting pixel by pixel.

    Knuth, The Art of Computer Programming 3, 5.2.2, Algorithm M.
    """
    maps, count = list(maps), len(maps)
    top = p = 1 << max(count - 1, 1).bit_length() - 1
    while p > 0:
        q, r, d = top, 0, p
        while d > 0:
            for i in range(count - d):
                if i & p == r:
                    maps[i], maps[i + d] = np.minimum(maps[i], maps[i + d]), np.maximum(maps[i], maps[i + d])
            d, q, r = q - p, q >> 1, p
        p >>= 1
    return maps


def crps(samples: Array, truth: Array) -> tuple[Array, Array]:
    """Continuous ranked probability scores: mean |x_i - y| less half the mean |x_i - x_j|, over all N^2 pairs and, fair
    to few samples, over the N (N - 1) pairs of different ones (NaN of a single one).

    Hersbach 2000, doi:10.1175/1520-0434(2000)015<0559:DOTCRP>2.0.CO;2; Ferro 2014, doi:10.1002/qj.2270.
    """
    count = samples.shape[1]
    away, apart = np.zeros((2, *truth.shape))
    with np.errstate(invalid="ignore", over="ignore"):
        for frame in range(len(truth)):
            for rows in _tiles(*truth.shape[1:]):
                true = truth[frame, rows].astype(np.float64)
                for i, one in enumerate(rising(list(samples[frame, :, rows])), 1):
                    gap = one - true
                    apart[frame, rows] += (2 * i - count - 1) * gap  # of all pairs |x_i - x_j|, each once
                    away[frame, rows] += np.abs(gap)
        away /= count
        fair = away - apart / (count * (count - 1)) if count > 1 else np.full(truth.shape, np.nan)
        return away - apart / count**2, fair


def _tiles(height: int, width: int) -> list[slice]:
    """Rows of a map, so few that their samples stay in a cache and so many that they are worth a call."""
    step = max(1, TILE_PIXELS // max(width, 1))
    return [slice(start, start + step) for start in range(0, height, step)]


def ranks(samples: Array, truth: Array) -> tuple[Array, Array]:
    """How many samples are less than the truth, and how many equal to it."""
    size = np.min_scalar_type(samples.shape[1])
    less, equal = (
        np.add.reduce(compare(samples, truth[:, None]), axis=1, dtype=size) for compare in (np.less, np.equal)
    )
    return less, equal
