"""Metrics that break one law each. They are known to Karat only within `registered`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import numpy as np

from karat.errors import InputError
from karat.kernels.pixels import absolute_error
from karat.metric import Array, Columns, Metric, Pool, Score, Sums, ratio, registry
from karat.region import Regions

calls = count()


@dataclass(frozen=True)
class Plain(Metric):
    """Mean absolute error, summed over channels: obeys every law."""

    scale: float = 1.0
    pool: Pool = "sample"

    scores: ClassVar = {"plain": Score("lower", (0, np.inf), 0)}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        return {"d": regions.sum(absolute_error(pred, truth)), "n": regions.weight(truth.shape[:3])}

    def score(self, s: Sums) -> dict[str, Array]:
        return {name: self.scale * ratio(s.d, s.n) for name in self.scores}


@dataclass(frozen=True)
class OfTheBlock(Plain):
    """Its frames are weighed by how many were measured together."""

    scores: ClassVar = {"of_the_block": Score("lower", (0, np.inf), 0)}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        columns = super().measure(pred, truth, regions)
        return {"d": columns["d"] * len(pred), "n": columns["n"]}


@dataclass(frozen=True)
class Counting(Plain):
    """Remembers how often it was asked."""

    scores: ClassVar = {"counting": Score("lower", (0, np.inf))}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        columns = super().measure(pred, truth, regions)
        return {"d": columns["d"] + next(calls), "n": columns["n"]}


@dataclass(frozen=True)
class Ranking(Plain):
    """A share of the largest error of all that are scored together."""

    scores: ClassVar = {"ranking": Score("lower", (0, 1))}

    def score(self, s: Sums) -> dict[str, Array]:
        error = ratio(s.d, s.n)
        return {"ranking": error / np.nanmax(error)}


@dataclass(frozen=True)
class HalfMask(Plain):
    """Counts the pixels of a mask twice."""

    scores: ClassVar = {"half_mask": Score("lower", (0, np.inf), 0)}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        columns = super().measure(pred, truth, regions)
        return {"d": columns["d"], "n": columns["n"] * np.minimum(np.arange(len(regions)) + 1, 2)}


@dataclass(frozen=True)
class ZeroOfNothing(Plain):
    """Scores 0, which is perfect, where there is nothing."""

    scores: ClassVar = {"zero_of_nothing": Score("lower", (0, np.inf), 0)}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"zero_of_nothing": s.d / np.maximum(s.n, 1)}


@dataclass(frozen=True)
class Unmasked(Plain):
    """Looks at all pixels whatever the region."""

    scores: ClassVar = {"unmasked": Score("lower", (0, np.inf), 0)}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        columns = super().measure(pred, truth, Regions({"all": None}))
        return {name: np.repeat(column, len(regions), axis=1) for name, column in columns.items()}


@dataclass(frozen=True)
class Offset(Plain):
    """Declares 0 for equal sides and says 1."""

    scores: ClassVar = {"offset": Score("lower", (0, np.inf), 0)}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"offset": 1 + ratio(s.d, s.n)}


@dataclass(frozen=True)
class Unbounded(Plain):
    """Declares 1 as its largest value."""

    scores: ClassVar = {"unbounded": Score("lower", (0, 1), 0)}


@dataclass(frozen=True)
class Backwards(Plain):
    """Declares that a larger error is better."""

    scores: ClassVar = {"backwards": Score("higher", (0, np.inf), 0)}


@dataclass(frozen=True)
class ZeroOfNoFrames(Plain):
    """Turns what is undefined into 0 when it is called."""

    scores: ClassVar = {"zero_of_no_frames": Score("lower", (0, np.inf), 0)}

    def __call__(self, *arrays: Any, regions: Mapping[str, Any] | None = None, **named: Any) -> dict[str, float]:
        found = super().__call__(*arrays, regions=regions, **named)
        return {name: 0.0 if np.isnan(value) else value for name, value in found.items()}


@dataclass(frozen=True)
class Motion(Plain):
    """Needs two frames."""

    scores: ClassVar = {"motion": Score("lower", (0, np.inf), 0)}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        if len(pred) < 2:
            raise InputError("There is no motion in one frame.")
        return super().measure(pred, truth, regions)


@dataclass(frozen=True)
class Textured(Plain):
    """Cannot do without structure."""

    scores: ClassVar = {"textured": Score("lower", (0, np.inf), 0)}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        if truth.max() == truth.min():
            raise InputError("There is no texture.")
        return super().measure(pred, truth, regions)


@dataclass(frozen=True)
class Strict(Metric):
    """Refuses NaN."""

    pool: Pool = "sample"

    scores: ClassVar = {"strict": Score("lower", (0, np.inf), 0)}

    def measure(self, pred_depth: Array, truth_depth: Array, regions: Regions) -> Columns:
        if not (np.isfinite(pred_depth).all() and np.isfinite(truth_depth).all()):
            raise InputError("There are holes.")
        return {"d": regions.sum(np.abs(pred_depth - truth_depth)), "n": regions.weight(truth_depth.shape)}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"strict": ratio(s.d, s.n)}


@dataclass(frozen=True)
class Unsigned(Plain):
    """Keeps a parameter to itself."""

    secret: float = field(default=1.0, repr=False)

    scores: ClassVar = {"unsigned": Score("lower", (0, np.inf), 0)}


@dataclass(frozen=True)
class Gain:
    """Something that a repr spells and nobody can type."""

    by: float = 1.0


@dataclass(frozen=True)
class Untypable(Plain):
    """Has a parameter that is no literal."""

    gain: Gain = Gain(1.0)

    scores: ClassVar = {"untypable": Score("lower", (0, np.inf), 0)}


@dataclass(frozen=True)
class Local(Plain):
    """Has a parameter that cannot leave the process."""

    scores: ClassVar = {"local": Score("lower", (0, np.inf), 0)}

    def __reduce__(self) -> str:
        raise TypeError("it stays here")


@dataclass(frozen=True)
class Clash(Plain):
    """Has a parameter of the name of a field."""

    truth: float = 1.0

    scores: ClassVar = {"clash": Score("lower", (0, np.inf), 0)}


@dataclass(frozen=True)
class Wordless(Plain):
    scores: ClassVar = {"wordless": Score("lower", (0, np.inf), 0)}


@dataclass(frozen=True)
class Lazy(Plain):
    """Compares a clip with the one that was seen before it, whoever saw it."""

    scores: ClassVar = {"lazy": Score("lower", (0, np.inf))}
    seen: ClassVar[list[Array]] = [np.zeros((1, 1, 1), np.uint8)]

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        before = np.broadcast_to(self.seen[-1], truth.shape) if self.seen[-1].ndim == truth.ndim else pred
        self.seen.append(truth[:1])
        return super().measure(before, truth, regions)


TOYS: dict[str, type[Metric]] = {name: kind for name, kind in registry.items() if kind.__module__ == __name__}
for _name in TOYS:
    del registry[_name]


@contextmanager
def registered() -> Iterator[None]:
    """Within, Karat knows the toys."""
    registry.update(TOYS)
    try:
        yield
    finally:
        for name in TOYS:
            del registry[name]
