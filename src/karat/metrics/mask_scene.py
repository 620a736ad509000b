"""Both sides of a video of masks: the frames that are evaluated, and which instances take part there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from karat.errors import Inapplicable, InputError
from karat.kernels.keypoints import Frames, frames_alike
from karat.kernels.masks import Packed, intersections, packed
from karat.metric import Array
from karat.sources.instance_masks import InstanceMasks

Which = Literal["truth", "common"]
Blank = Literal["ignore", "count"]
Sizes = Literal["equal", "padded"]


@dataclass(frozen=True)
class Scene:
    """Masks of one size, the evaluated frames in rising order, and the places of the instances that take part.

    The `blank` have no pixel and were set aside; the `outside` are predictions in other frames.
    """

    frames: Array
    truth: Packed
    pred: Packed
    truth_frame: Array
    pred_frame: Array
    truth_in: Array
    pred_in: Array
    truth_blank: Array
    pred_blank: Array
    outside: Array

    def groups(self, turn: Array | None = None) -> Iterator[tuple[Frames, Array]]:
        """Frames with equally many instances, by their places, and the pixels (F, P, T) that each two share.

        turn: the predictions that take part in another order.
        """
        pred = self.pred_in if turn is None else turn
        for at in frames_alike(self.frames, self.truth_frame[self.truth_in], self.pred_frame[pred]):
            found = Frames(at.frame, self.truth_in[at.truth], pred[at.pred])
            places = np.broadcast_arrays(found.pred[:, :, None], found.truth[:, None])
            yield found, intersections(self.pred, self.truth, *places)

    def either(self, at: Frames, both: Array) -> Array:
        """The pixels (F, P, T) that each two cover together."""
        either: Array = self.pred.area[at.pred][:, :, None] + self.truth.area[at.truth][:, None] - both
        return either


def scene(pred: InstanceMasks, truth: InstanceMasks, frames: Which, blank: Blank, sizes: Sizes) -> Scene:
    """frames="truth": all that the truth labels; "common": those of them that the predictions list too.

    blank="ignore" sets masks without a pixel aside. sizes="padded": what one side's pictures lack at the right and at
    the bottom is empty.
    """
    evaluated = truth.labelled if frames == "truth" else np.intersect1d(truth.labelled, pred.labelled)
    if not len(evaluated):
        raise Inapplicable("no frame can be evaluated: the truth labels none, or the predictions list none of them.")
    p, t = _of_one_size(pred, truth, sizes)
    inside, known = np.isin(pred.frame, evaluated), np.isin(truth.frame, evaluated)
    p_blank, t_blank = ((one.area == 0) & (blank == "ignore") for one in (p, t))
    parts = (known & ~t_blank, inside & ~p_blank, known & t_blank, inside & p_blank, ~inside)
    return Scene(evaluated, t, p, truth.frame, pred.frame, *map(np.flatnonzero, parts))


def _of_one_size(pred: InstanceMasks, truth: InstanceMasks, sizes: Sizes) -> tuple[Packed, Packed]:
    sides = [one for one in (pred, truth) if len(one)] or [truth]
    if sizes == "equal" and sides[0].shape != sides[-1].shape:
        found, wanted = (f"{width}x{height}" for height, width in (pred.shape, truth.shape))
        raise InputError(f"the predicted masks are {found} and the true ones {wanted}: scale one side.")
    height, width = (max(one.shape[axis] for one in sides) for axis in (0, 1))
    p, t = (packed(_padded(one.masks, height, -(-width // 8)), width) for one in (pred, truth))
    return p, t


def _padded(bits: Array, height: int, wide: int) -> Array:
    count, *own = bits.shape
    if own == [height, wide]:
        return bits
    padded = np.zeros((count, height, wide), np.uint8)
    if count:
        padded[:, : own[0], : own[1]] = bits
    return padded
