"""Run lengths as COCO writes them: zeros first, then ones, and so on, in column-major order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_PIXELS = 1 << 34
MAX_RUNS = 1 << 28
MAX_DIGITS = 9


@dataclass(frozen=True)
class Runs:
    """Run lengths that were checked against the number of pixels; `ends` (R,) int64 are their cumulative sums."""

    ends: NDArray[np.int64]

    def window(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Pixels start to stop, flat."""
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.ends, stop, side="left"))
        edges = np.minimum(self.ends[first : last + 1], stop)
        lengths = np.diff(edges, prepend=start)
        values = (np.arange(first, first + len(lengths)) & 1).astype(np.bool_)
        return np.repeat(values, lengths)


def parse_runs(counts: Any, total: int) -> Runs:
    """Checked runs of `total` pixels from a list of numbers or the compressed text; ValueError says what is wrong."""
    if not 0 < total <= MAX_PIXELS:
        raise ValueError(f"run lengths of {total} pixels, where 1 to {MAX_PIXELS} are read")
    if isinstance(counts, str | bytes):
        lengths = _decompress(counts.encode("ascii") if isinstance(counts, str) else counts, total)
    elif isinstance(counts, list) and all(type(count) is int for count in counts):
        if counts and max(map(abs, counts)) > total:
            raise ValueError(f"a run longer than the {total} pixels")
        lengths = np.array(counts, np.int64)
    else:
        raise ValueError(f"run lengths are a {type(counts).__name__}, where text or a list of integers was expected")
    if len(lengths) > MAX_RUNS:
        raise ValueError(f"{len(lengths)} runs, where at most {MAX_RUNS} are read")
    if lengths.size and lengths.min() < 0:
        raise ValueError("a negative run length")
    if lengths.size and lengths.max() > total:
        raise ValueError(f"a run longer than the {total} pixels")
    ends = np.cumsum(lengths)
    if not ends.size or ends[-1] != total:
        raise ValueError(
            f"run lengths add up to {int(ends[-1]) if ends.size else 0}, where {total} pixels were declared"
        )
    return Runs(ends)


def _decompress(text: bytes, total: int) -> NDArray[np.int64]:
    """pycocotools' text: 5 bits a character from 48 on, bit 5 continues, the last bit 4 is the sign; differences
    to the run two before from the fourth run on."""
    codes = np.frombuffer(text, np.uint8).astype(np.int64) - 48
    if codes.size and not (codes.min() >= 0 and codes.max() < 64):
        raise ValueError("a character outside the run-length alphabet")
    finals = np.flatnonzero(codes & 32 == 0)
    if not codes.size or finals.size == 0 or finals[-1] != codes.size - 1:
        raise ValueError("run-length text that is cut off")
    starts = np.concatenate(([0], finals[:-1] + 1))
    digits = finals - starts + 1
    if digits.max() > MAX_DIGITS or len(digits) > MAX_RUNS:
        raise ValueError("a run length beyond any picture")
    places = np.arange(codes.size) - np.repeat(starts, digits)
    values = np.add.reduceat((codes & 31) << (5 * places), starts)
    values[codes[finals] & 16 != 0] -= np.int64(1) << (5 * digits[codes[finals] & 16 != 0])
    # Bounded differences keep the sums below 2**62, so they cannot wrap into something plausible.
    if np.abs(values).max() > total:
        raise ValueError(f"a run longer than the {total} pixels")
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


def compressed(mask: NDArray[np.bool_]) -> str:
    """The text of a mask (H, W), as pycocotools writes it."""
    flat = np.asarray(mask, bool).T.ravel()
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    starts_set = [0] if flat.size and flat[0] else []
    lengths = np.diff(np.concatenate([starts_set, [0], edges, [flat.size]])).astype(np.int64)
    lengths[3:] -= lengths[1:-2].copy()
    return "".join(map(_digits, lengths.tolist()))


def _digits(value: int) -> str:
    """5 bits a character, the least first, until what is left is the sign."""
    text = ""
    while True:
        low, value = value & 31, value >> 5
        last = value == (-1 if low & 16 else 0)
        text += chr(48 + low + 32 * (not last))
        if last:
            return text
