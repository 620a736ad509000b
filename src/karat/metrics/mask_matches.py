"""Who is who among masks of instances: predicted ones and true ones, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.assignment import least_total, most_pairs, where_allowed
from karat.kernels.keypoints import Frames
from karat.kernels.masks import cldice, jaccard, outlines, reach
from karat.metric import Array, Columns, Statistic, Sums
from karat.metrics.mask_scene import Blank, Scene, Sizes, Which, scene
from karat.rows import Elements
from karat.sources.instance_masks import InstanceMasks


class Role(IntEnum):
    """What a row of `MaskMatches` is."""

    PAIR = 0
    MISSED = 1
    FALSE = 2
    BLANK_TRUTH = 3
    BLANK_PRED = 4
    OUTSIDE = 5


@dataclass(frozen=True)
class MaskMatches(Statistic):
    """Pairs of true and predicted masks of a frame whose IoU is at least `match_threshold`: as many as there can be,
    and of those the largest total IoU. assignment="then_gate": those of the largest total of all that are at least that
    alike, as published code has it.

    A row is a pair, a missed truth, a false prediction, or something that counts neither for nor against (`role`):
    masks without a pixel (`blank="count"` counts them like others, two of them as equal) and predictions in frames that
    are not evaluated. A row holds whole numbers of pixels: areas and, of a pair, intersection and union, those of both
    borders (`border` of the picture's diagonal wide), and both centre lines with how much of each lies in the other
    mask. split: a truth of which two predictions or more cover a share of `cover` each; merged: a prediction that
    covers as much of two truths or more.

    frames="truth": all frames that the truth labels; "common": those that the predictions list too. Both sides have one
    size; `sizes="padded"` lays them on each other at the top left.
    pred, truth: masks of instances. Kuhn 1955, doi:10.1002/nav.3800020109; Cheng et al. 2021, arXiv:2103.16562;
    Shit et al. 2021, arXiv:2003.07311.
    """

    match_threshold: float = 0.5
    assignment: Literal["gated", "then_gate"] = "gated"
    border: float = 0.02
    cover: float = 0.1
    frames: Which = "truth"
    blank: Blank = "ignore"
    sizes: Sizes = "equal"

    unit: ClassVar = "element"
    record: ClassVar = "instance_masks"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("match_threshold", "border", "cover"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"MaskMatches.{name} is a number from 0 to 1, not {getattr(self, name)!r}.")

    def measure(self, pred: InstanceMasks, truth: InstanceMasks) -> Elements:
        of = scene(pred, truth, self.frames, self.blank, self.sizes)
        seats = [
            _seats(Role.BLANK_TRUTH, of.truth_blank),
            _seats(Role.BLANK_PRED, pred=of.pred_blank),
            _seats(Role.OUTSIDE, pred=of.outside),
        ]
        seats += [one for at, both in of.groups() for one in self._matched(of, at, both)]
        columns = {name: np.concatenate([one[name] for one in seats]) for name in seats[0]}
        t, p, pairs = columns["truth"], columns["pred"], columns["role"] == Role.PAIR
        columns["truth_area"], columns["pred_area"] = _at(of.truth.area, t), _at(of.pred.area, p)
        columns["either"] = np.where(pairs, columns["truth_area"] + columns["pred_area"] - columns["both"], 0)
        wide = reach(of.truth.height, of.truth.width, self.border)
        for name, counts in outlines(of.pred, of.truth, p[pairs], t[pairs], wide).items():
            columns[name] = np.zeros(len(t), np.int64)
            columns[name][pairs] = counts
        return Elements(np.where(t >= 0, _at(of.truth_frame, t), _at(of.pred_frame, p)), columns)

    def _matched(self, of: Scene, at: Frames, both: Array) -> Iterator[Columns]:
        """The rows of frames that have equally many instances: pairs in the order of their predictions, then others."""
        similar = jaccard(both, of.either(at, both))
        alike = similar >= self.match_threshold
        gated = self.assignment == "gated"
        partner = most_pairs(1 - similar, alike) if gated else where_allowed(least_total(-similar), alike)
        covers = both / np.maximum(of.truth.area[at.truth], 1)[:, None] >= self.cover
        split, merged = covers.sum(axis=1) >= 2, covers.sum(axis=2) >= 2
        frame, p = found = np.nonzero(partner >= 0)
        t = partner[found]
        false, missed = np.nonzero(partner < 0), np.ones(split.shape, bool)
        missed[frame, t] = False
        shared = both[frame, p, t]
        yield _seats(Role.PAIR, at.truth[frame, t], at.pred[found], shared, split[frame, t], merged[found])
        yield _seats(Role.FALSE, pred=at.pred[false], merged=merged[false])
        yield _seats(Role.MISSED, at.truth[missed], split=split[missed])


def iou(s: Sums, rows: Array) -> Array:
    """Intersection over union of masks, row by row."""
    return jaccard(s.both[rows], s.either[rows])


def boundary_iou(s: Sums, rows: Array) -> Array:
    """Intersection over union of their borders."""
    return jaccard(s.border_both[rows], s.border_either[rows])


def centre_dice(s: Sums, rows: Array) -> Array:
    """clDice, the agreement of their centre lines."""
    lines = (s.pred_line, s.pred_line_inside, s.truth_line, s.truth_line_inside)
    return cldice(*(line[rows] for line in lines))


def true_areas(s: Sums) -> Array:
    """The areas of all true masks that count."""
    areas: Array = s.truth_area[(s.role == Role.PAIR) | (s.role == Role.MISSED)]
    return areas


def _seats(
    role: Role, truth: Any = -1, pred: Any = -1, both: Any = 0, split: Any = False, merged: Any = False
) -> Columns:
    """Rows of one role; truth and pred are places in their records, -1 for none."""
    columns = {"truth": truth, "pred": pred, "both": both, "split": split, "merged": merged}
    types = {"truth": np.int32, "pred": np.int32, "both": np.int64, "split": np.bool_, "merged": np.bool_}
    count = max(np.size(one) if np.ndim(one) else 0 for one in (truth, pred))
    filled: Columns = {name: np.broadcast_to(value, count).astype(types[name]) for name, value in columns.items()}
    return {"role": np.full(count, role, np.uint8), **filled}


def _at(values: Array, places: Array) -> Array:
    """values[places], and 0 where the place is -1."""
    found = np.zeros(len(places), values.dtype)
    found[places >= 0] = values[places[places >= 0]]
    return found
