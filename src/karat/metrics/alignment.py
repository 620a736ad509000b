"""Pictures and their captions, as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.errors import Inapplicable, UsageError
from karat.kernels.alignment import cosines, directional_similarity
from karat.metric import Array, Statistic
from karat.rows import Elements
from karat.sources.aligned_sets import AlignedSet

NAN = {"nan_input": "NaN among embeddings is an error that names the first row"}


@dataclass(frozen=True)
class TextAlignment(Statistic):
    """A row a picture: the cosine of its embedding and its caption's, whether both have a direction, and how many of
    its captions lost words or have none."""

    unit: ClassVar = "element"
    record: ClassVar = "aligned"

    def measure(self, pred_aligned: AlignedSet) -> Elements:
        _refuse_nothing(pred_aligned)
        own = cosines(pred_aligned.images, pred_aligned.texts)
        known = ~np.isnan(own)
        cosine = np.where(known, own, 0.0)
        return _rows(
            cosine=cosine,
            positive=np.maximum(cosine, 0.0),
            known=known,
            pictures=np.ones(len(own), bool),
            truncated=pred_aligned.truncated,
            empty=pred_aligned.empty,
        )


@dataclass(frozen=True)
class AlignedRows(Statistic):
    """A row a picture: its embedding and its caption's."""

    unit: ClassVar = "element"
    record: ClassVar = "aligned"

    def measure(self, pred_aligned: AlignedSet) -> Elements:
        _refuse_nothing(pred_aligned)
        return _rows(images=pred_aligned.images, texts=pred_aligned.texts)


@dataclass(frozen=True)
class EditAlignment(Statistic):
    """A row an edited picture: the cosines of the step between its embeddings and that between its captions', of image
    and text before and after, and of both images, each with whether it is defined; lengths of steps are at least `eps`.
    """

    unit: ClassVar = "element"
    record: ClassVar = "aligned"

    eps: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.eps < np.inf:
            raise UsageError(f"EditAlignment.eps is 0 or above, not {self.eps!r}.")

    def measure(self, pred_aligned: AlignedSet) -> Elements:
        _refuse_nothing(pred_aligned)
        if not pred_aligned.edited:
            raise Inapplicable("it is not known what was before the edit.")
        images, texts = pred_aligned.images, pred_aligned.texts
        before, said = pred_aligned.original_images, pred_aligned.original_texts
        found = {
            "step": directional_similarity(before, images, said, texts, self.eps),
            "sim_0": cosines(before, said),
            "sim_1": cosines(images, texts),
            "sim_image": cosines(before, images),
        }
        known = {f"{name}_known": ~np.isnan(values) for name, values in found.items()}
        sums = {name: np.where(np.isnan(values), 0.0, values) for name, values in found.items()}
        return _rows(**sums, **known, edits=np.ones(len(images), bool))


def _refuse_nothing(given: AlignedSet) -> None:
    if not given.length:
        raise Inapplicable("there are no pictures with captions.")


def _rows(**columns: Array) -> Elements:
    return Elements(np.zeros(len(next(iter(columns.values()))), np.int32), columns)
