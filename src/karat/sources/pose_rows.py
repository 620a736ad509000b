"""Labels of several videos as arrays, on their way to the poses of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .guard import refusal
from .poses import Poses, grouped, make_poses
from .stream import Array


@dataclass(frozen=True)
class Rows:
    """Of each listed frame its video (a place in `videos`) and number; of each instance what follows.

    videos: what they are called.  nodes: names.
    row: of its frame.  points: (n, K, 2).  confidence: (n, K).  score, track, user: (n), as in `Poses`.
    """

    videos: Sequence[str]
    nodes: Sequence[str]
    video: Array
    frame: Array
    row: Array
    points: Array
    confidence: Array | None = None
    score: Array | None = None
    track: Array | None = None
    user: Array | None = None

    def by_video(self, name: object) -> list[Poses]:
        """The poses of each video; `name` is what they are of, in refusals."""
        if len(self.video) and not 0 <= self.video.min() <= self.video.max() < len(self.videos):
            raise refusal(name, "has frames of a video that it does not list", "each was expected", "save it again")
        places = np.arange(len(self.videos))
        listed, held = grouped(self.video, places), grouped(self.video[self.row], places)
        columns = {key: getattr(self, key) for key in ("points", "confidence", "score", "track", "user")}
        return [
            make_poses(
                frame=self.frame[self.row[some]],
                nodes=self.nodes,
                labelled=self.frame[frames],
                name=video,
                **{key: column[some] for key, column in columns.items() if column is not None},
            )
            for video, frames, some in zip(self.videos, listed, held, strict=True)
        ]


def one_skeleton(skeletons: Sequence[Sequence[str]], used: Array, name: object) -> tuple[str, ...]:
    """The node names of the skeleton that instances are of, by its number; skeletons with equal nodes are one."""
    numbers = np.unique(used).tolist()
    if numbers and not 0 <= numbers[0] <= numbers[-1] < len(skeletons):
        raise refusal(name, "has an instance of a skeleton that it does not list", "each was expected", "save it again")
    found = list(dict.fromkeys(tuple(skeletons[one]) for one in numbers))
    if len(found) > 1:
        listed = "; ".join(", ".join(nodes) for nodes in found)
        raise refusal(name, f"has instances of {len(found)} skeletons: {listed[:400]}", "one was expected", "split it")
    return found[0] if found else tuple(skeletons[0]) if skeletons else ()


def spans(first: Array, last: Array, count: int, name: object) -> tuple[Array, Array]:
    """All places from first to last of each span, one span after another, and the number of the span."""
    sizes = last - first
    if len(first) and (first.min() < 0 or sizes.min() < 0 or last.max() > count or sizes.sum() > count):
        raise refusal(name, "refers to entries that it does not hold", f"there are {count}", "save it again")
    span = np.repeat(np.arange(len(first)), sizes)
    starts = np.cumsum(sizes) - sizes
    return np.arange(len(span)) - starts[span] + first[span], span


def whole(column: Array, name: object) -> Array:
    """Whole numbers, which files written elsewhere keep as floats."""
    with np.errstate(invalid="ignore"):
        numbers = column.astype(np.int64)
    if not np.array_equal(numbers, column):
        raise refusal(
            name, f"numbers its entries by {column.dtype.name}", "whole numbers were expected", "save it again"
        )
    return numbers


def mean_seen(confidence: Array, seen: Array) -> Array:
    """The mean of each row's seen entries, NaN where there are none: added as a list of those alone is."""
    mean = np.full(len(seen), np.nan)
    counts = seen.sum(axis=1)
    for count in np.unique(counts[counts > 0]).tolist():
        rows = counts == count
        mean[rows] = confidence[rows][seen[rows]].reshape(-1, count).mean(axis=1)
    return mean


def joined(arrays: Sequence[Array], empty: tuple[int, ...], dtype: Any) -> Array:
    """One array of many."""
    return np.concatenate(arrays).astype(dtype, copy=False) if arrays else np.zeros(empty, dtype)
