"""Whether pictures show what their captions say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError, counted
from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.alignment import NAN, TextAlignment
from karat.rows import Rows

Pooled = Literal["sample", "dataset"]


@dataclass(frozen=True)
class CLIPScore(Metric):
    """CLIP score, the mean over pictures of max(scale cos(E_I, E_C), 0) of the embeddings of a picture and its caption.

    pred_aligned: images (n, d) and texts (n, d). `scale` is 100, or 2.5 in the paper; clamp="mean" takes the maximum
    of the mean with 0 instead of each picture's. An embedding that is 0 has no direction: its picture is left out.
    Hessel et al. 2021, arXiv:2104.08718.
    """

    of: TextAlignment = TextAlignment()
    scale: float = 100.0
    clamp: Literal["picture", "mean"] = "picture"
    pool: Pooled = "dataset"

    scores: ClassVar = {"clip_score": Score("higher", (0, 100), about="100 times the cosine, at least 0")}
    exempt: ClassVar = NAN

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.scale < np.inf:
            raise UsageError(f"CLIPScore.scale is above 0, not {self.scale!r}.")

    def score(self, s: Sums) -> dict[str, Array]:
        mean = ratio(s.positive if self.clamp == "picture" else s.cosine, s.known)
        return {"clip_score": self.scale * np.maximum(mean, 0.0)}

    def remarks(self, rows: Rows) -> Iterable[str]:
        """What is not in the mean, and what is there in part."""
        if lost := int((~rows.columns["known"]).sum()):
            yield f"clip_score: {counted(lost, 'picture')} without a direction left out."
        if cut := int(rows.columns["truncated"].sum()):
            yield f"{counted(cut, 'caption')} longer than the network reads: the last words were cut."
        if empty := int(rows.columns["empty"].sum()):
            yield f"{counted(empty, 'caption')} without a word."


@dataclass(frozen=True)
class CaptionCounts(Metric):
    """How many pictures have a caption, and what is doubtful of these captions (of edits there are two a picture).

    pred_aligned: with truncated (n) and empty (n), which are 0 where they are not given.
    """

    of: TextAlignment = TextAlignment()
    pool: Pooled = "dataset"

    scores: ClassVar = {
        "n_pictures": Score(None, (0, np.inf), about="pictures with captions", whole=True),
        "n_captions_truncated": Score(None, (0, np.inf), about="captions that lost their last words", whole=True),
        "n_captions_empty": Score(None, (0, np.inf), about="captions without a word", whole=True),
    }
    exempt: ClassVar = {**{f"undefined:{name}": "a count of nothing is zero" for name in scores}, **NAN}

    def score(self, s: Sums) -> dict[str, Array]:
        return {"n_pictures": s.pictures, "n_captions_truncated": s.truncated, "n_captions_empty": s.empty}
