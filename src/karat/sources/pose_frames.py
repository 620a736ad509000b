"""Which frames of a video are evaluated, and which instances they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from karat.errors import Inapplicable, InputError, told

from .poses import Poses
from .stream import Array

Which = Literal["truth", "common"]
Repeated = Literal["error", "skip"]


@dataclass(frozen=True)
class Compared:
    """The frames that are evaluated, in rising order, their true instances, and which of all those these are.

    inside: whether a predicted instance is in one of the frames.
    """

    frames: Array
    truth: Poses
    index: Array
    inside: Array


def compared(truth: Poses, pred: Poses, which: Which, user_labels_only: bool, repeated: Repeated) -> Compared:
    """which="truth": all frames that the truth labels; "common": those that the predictions list too and that hold a
    truth. user_labels_only: only instances that a person labelled, and the frames that hold one or are labelled as
    empty.
    """
    twice = np.union1d(truth.repeated, pred.repeated)
    if len(twice) and repeated == "error":
        name = told(truth.name or pred.name or "the video")
        raise InputError(f"{name} lists frame {twice[0]} twice: merge its instances into one.")
    place = np.searchsorted(truth.labelled, truth.frame)  # every instance's frame is labelled
    all_there = np.bincount(place, minlength=len(truth.labelled))
    own = np.bincount(place[truth.user], minlength=len(truth.labelled)) if user_labels_only else all_there
    chosen = (own > 0) | (all_there == 0)  # a frame where only a model saw something is not labelled
    if which == "common":
        chosen &= _among(truth.labelled, pred.labelled)
        if not user_labels_only and (chosen & (own == 0)).any():
            empty = truth.labelled[chosen & (own == 0)][0]
            raise InputError(
                f"frame {empty} is labelled and empty, where the published code stops: evaluate user labels only, or "
                "under another protocol."
            )
        chosen &= own > 0
    chosen &= ~_among(truth.labelled, twice)
    if not chosen.any():
        raise Inapplicable("no frame can be evaluated: the truth labels none, or the predictions list none of them.")
    frames = truth.labelled[chosen]
    held = np.flatnonzero(chosen[place] & truth.user if user_labels_only else chosen[place])
    own_truth = truth if len(held) == len(truth) else truth.take(held)
    return Compared(frames, own_truth, held, _among(pred.frame, frames))


def _among(values: Array, of: Array) -> Array:
    """Whether each value is one of the rising `of`."""
    if not len(of):
        return np.zeros(len(values), bool)
    found: Array = of[np.searchsorted(of, values).clip(max=len(of) - 1)] == values
    return found
