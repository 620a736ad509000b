"""All masks of a frame as one, on both sides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.errors import UsageError
from karat.kernels.masks import BYTES, OUTLINES, Packed, intersections, outlines, reach, united
from karat.metric import Array, Columns, Statistic
from karat.metrics.mask_scene import Sizes, Which, scene
from karat.rows import Elements
from karat.sources.instance_masks import InstanceMasks


@dataclass(frozen=True)
class Foregrounds(Statistic):
    """What all true masks of a frame cover and what all predicted ones do, whoever is who. A row is a frame that the
    truth labels: whether it is evaluated, and of those whether the predictions list it and the truth holds a pixel, and
    what `MaskMatches` measures of a pair. border, frames, sizes: as there.

    pred, truth: masks of instances. Cheng et al. 2021, arXiv:2103.16562; Shit et al. 2021, arXiv:2003.07311.
    """

    border: float = 0.02
    frames: Which = "truth"
    sizes: Sizes = "equal"

    unit: ClassVar = "element"
    record: ClassVar = "instance_masks"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.border <= 1:
            raise UsageError(f"Foregrounds.border is a number from 0 to 1, not {self.border!r}.")

    def measure(self, pred: InstanceMasks, truth: InstanceMasks) -> Elements:
        of = scene(pred, truth, self.frames, "count", self.sizes)
        labelled, evaluated = truth.labelled, np.isin(truth.labelled, of.frames)
        sides = [_in_frames(of.truth_frame, of.truth_in), _in_frames(of.pred_frame, of.pred_in)]
        filled = np.flatnonzero(np.isin(labelled, np.concatenate([frame for _, frame in sides])))
        wide = reach(of.truth.height, of.truth.width, self.border)
        columns: dict[str, Array] = {
            name: np.zeros(len(labelled), np.int64) for name in ("truth_area", "pred_area", "both", *OUTLINES)
        }
        for some in _pieces(filled, of.truth):
            t, p = (
                _united(*side, of_side, labelled[some])
                for side, of_side in zip(sides, (of.truth, of.pred), strict=True)
            )
            for name, counts in _compared(t, p, wide).items():
                columns[name][some] = counts
        columns["either"] = columns["truth_area"] + columns["pred_area"] - columns["both"]
        columns["labelled"], columns["evaluated"] = np.ones(len(labelled), bool), evaluated
        columns["listed"], columns["held"] = evaluated & np.isin(labelled, pred.labelled), columns["truth_area"] > 0
        return Elements(labelled, columns)


def _compared(t: Packed, p: Packed, wide: int) -> Columns:
    every = np.arange(len(t.area))
    both = intersections(p, t, every, every)
    return {"truth_area": t.area, "pred_area": p.area, "both": both, **outlines(p, t, every, every, wide)}


def _in_frames(frame: Array, places: Array) -> tuple[Array, Array]:
    """The places in the order of their frames, and those."""
    order = places[np.argsort(frame[places], kind="stable")]
    return order, frame[order]


def _united(places: Array, frame: Array, masks: Packed, frames: Array) -> Packed:
    """One mask for each of the frames."""
    some = slice(np.searchsorted(frame, frames[0]), np.searchsorted(frame, frames[-1], side="right"))
    return united(masks, places[some], np.searchsorted(frames, frame[some]), len(frames))


def _pieces(frames: Array, masks: Packed) -> Iterator[Array]:
    step = max(1, BYTES // max(1, math.prod(masks.bits.shape[1:])))
    yield from (frames[start : start + step] for start in range(0, len(frames), step))
