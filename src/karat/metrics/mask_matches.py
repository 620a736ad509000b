"""Who is who among masks of instances: predicted ones and true ones, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Literal

import numpy as np

from karat.errors import Inapplicable, InputError, UsageError
from karat.kernels.assignment import least_total, where_allowed
from karat.kernels.keypoints import frames_alike
from karat.kernels.masks import Outlines, Packed, intersections, jaccard, outlines, packed, reach
from karat.metric import Array, Statistic
from karat.rows import Elements
from karat.sources.instance_masks import InstanceMasks

Frames = Literal["truth", "common"]
Blank = Literal["ignore", "count"]


class Role(IntEnum):
    """What a row is."""

    PAIR = 0
    MISSED = 1
    FALSE = 2
    BLANK_TRUTH = 3
    BLANK_PRED = 4
    OUTSIDE = 5
    NOBODY = 6  # a frame that was evaluated and has no row otherwise


@dataclass(frozen=True)
class Scene:
    """Both sides of a video, the frames of it that are evaluated, and which instances take part there."""

    frames: Array
    truth: Packed
    pred: Packed
    truth_frame: Array
    pred_frame: Array
    truth_in: Array
    pred_in: Array
    set_aside: tuple[tuple[Role, Array, Array], ...]  # role, truths, predictions

    def groups(self) -> Iterator[tuple[Array, Array, Array]]:
        """Truths (F, T), predictions (F, P) and their intersections (F, P, T) in frames with equally many."""
        of = frames_alike(self.frames, self.truth_frame[self.truth_in], self.pred_frame[self.pred_in])
        for at in of:
            t, p = self.truth_in[at.truth], self.pred_in[at.pred]
            yield t, p, self.shared(*np.broadcast_arrays(p[:, :, None], t[:, None]))

    def shared(self, pred: Array, truth: Array) -> Array:
        """The pixels that predictions share with truths."""
        return intersections(self.pred, self.truth, pred, truth)

    def union(self, pred: Array, truth: Array, both: Array) -> Array:
        """The pixels that they cover together."""
        union: Array = self.pred.area[pred] + self.truth.area[truth] - both
        return union


def scene(pred: InstanceMasks, truth: InstanceMasks, frames: Frames, blank: Blank) -> Scene:
    """frames="truth": all that the truth labels; "common": those that the predictions list too.

    blank="ignore" leaves out masks without a pixel.
    """
    if len(pred) and len(truth) and pred.shape != truth.shape:
        (height, width), (tall, wide) = pred.shape, truth.shape
        raise InputError(f"The predicted masks are {width}x{height} and the true ones {wide}x{tall}: scale one side.")
    evaluated = truth.labelled if frames == "truth" else np.intersect1d(truth.labelled, pred.labelled)
    if not len(evaluated):
        raise Inapplicable("no frame can be evaluated: the truth labels none, or the predictions list none of them.")
    p, t = packed(pred.masks, pred.shape[1]), packed(truth.masks, truth.shape[1])
    inside, with_truth = np.isin(pred.frame, evaluated), np.isin(truth.frame, evaluated)
    blank_p, blank_t = (inside & (p.area == 0), with_truth & (t.area == 0)) if blank == "ignore" else (False, False)
    none = np.zeros(0, np.intp)
    set_aside = (
        (Role.BLANK_TRUTH, np.flatnonzero(blank_t), none),
        (Role.BLANK_PRED, none, np.flatnonzero(blank_p)),
        (Role.OUTSIDE, none, np.flatnonzero(~inside)),
    )
    taking_part = np.flatnonzero(with_truth & ~blank_t), np.flatnonzero(inside & ~blank_p)
    return Scene(evaluated, t, p, truth.frame, pred.frame, *taking_part, set_aside)


@dataclass(frozen=True)
class MaskMatches(Statistic):
    """Pairs of true and predicted masks: frame by frame the assignment of largest total IoU, of which those pairs are
    kept whose IoU is at least `match_threshold`.

    A row is a pair, a missed truth, a false prediction, or something that counts neither for nor against (`role`):
    masks without a pixel (`blank="count"` counts them like others, two of them as equal), and predictions in frames
    that the truth does not label. Rows hold pixels as whole numbers: areas and, of a pair, intersection and union,
    those of both borders (`border` of the picture's diagonal wide), and both centre lines with how much of each lies in
    the other's mask. split: a truth of which two predictions or more cover at least `cover`; merged: a prediction that
    covers as much of two truths or more. frames="common": without those that the predictions do not list.
    Kuhn 1955, doi:10.1002/nav.3800020109; Cheng et al. 2021, arXiv:2103.16562; Shit et al. 2021, arXiv:2003.07311.
    """

    match_threshold: float = 0.5
    border: float = 0.02
    cover: float = 0.1
    frames: Frames = "truth"
    blank: Blank = "ignore"

    unit: ClassVar = "element"
    record: ClassVar = "instance_masks"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("match_threshold", "border", "cover"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"MaskMatches.{name} is a number from 0 to 1, not {getattr(self, name)!r}.")

    def measure(self, pred_instances: InstanceMasks, truth_instances: InstanceMasks) -> Elements:
        of = scene(pred_instances, truth_instances, self.frames, self.blank)
        parts = list(of.set_aside)
        for t, p, both in of.groups():
            parts += self._matched(of, t, p, both)
        columns = of.rows(parts)
        frame, truth, pred, both = (columns[name] for name in ("frame", "truth", "pred", "both"))
        pairs = columns["role"] == Role.PAIR
        columns["either"] = np.where(pairs, columns["truth_area"] + columns["pred_area"] - both, 0)
        wide = reach(of.truth.height, of.truth.width, self.border)
        for name, counts in outlines(of.pred, of.truth, pred[pairs], truth[pairs], wide).items():
            columns[name] = np.zeros(len(frame), np.int64)
            columns[name][pairs] = counts
        return Elements(columns.pop("frame"), columns)

    def _matched(self, of: Scene, t: Array, p: Array, both: Array) -> Iterator[Columns]:
        iou = of.iou(t, p, both)
        partner = where_allowed(least_total(-iou), iou >= self.match_threshold)
        covers = both / np.maximum(of.truth.area[t], 1)[:, None] >= self.cover
        split, merged = covers.sum(axis=1) >= 2, covers.sum(axis=2) >= 2
        frame, place = np.nonzero(partner >= 0)
        found = frame, partner[frame, place]
        missed, false = np.ones(t.shape, bool), partner < 0
        missed[found] = False
        shared = both[frame, place, found[1]]
        yield row(Role.PAIR, t[found], p[frame, place], both=shared, split=split[found], merged=merged[frame, place])
        yield row(Role.FALSE, pred=p[false], merged=merged[false])
        yield row(Role.MISSED, t[missed], split=split[missed])


def row(role: Role, truth: Any = -1, pred: Any = -1, both: Any = 0, split: Any = False, merged: Any = False) -> Columns:
    """Rows of one role; truth and pred are places in their records, -1 for none."""
    role_, truth, pred, both, split, merged = np.broadcast_arrays(np.uint8(role), truth, pred, both, split, merged)
    return {"role": role_, "truth": truth, "pred": pred, "both": both, "split": split, "merged": merged}
