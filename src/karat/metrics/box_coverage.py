"""In how many videos the object is there at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.following import Following

TENTHS = range(10)
OF_ONE = "of one video it is yes or no"


@dataclass(frozen=True)
class BoxCoverage(Metric):
    """Coverage: the share of videos with a detection in more than half of the frames, 2 detected > frames.

    pred, truth: tubes. A video without a prediction is not covered; one that nothing was asked of is undefined.
    coverage@share:0.3 is the same with more than 30 % of the frames.
    Jain et al. 2024 (Peekaboo), arXiv:2312.07509.
    """

    of: Following = Following()
    pool: Literal["sample"] = "sample"

    scores: ClassVar = {
        "coverage": Score("higher", (0, 1), 1, "videos with a detection in more than half of the frames"),
        "detection_rate": Score("higher", (0, 1), about="mean share of the frames with a detection"),
    }
    parts: ClassVar = {"share": "the share of the frames that must be exceeded"}
    exempt: ClassVar = {
        "graded:coverage": OF_ONE,
        "direction:detection_rate": "what is detected where nothing was asked for counts too",
    }

    def score(self, s: Sums) -> dict[str, Array]:
        def where(share: Array) -> Array:
            return np.where(s.truth > 0, share, np.nan)

        return {
            "coverage": where(2 * s.counted > s.expected),
            "detection_rate": where(np.minimum(ratio(s.counted, s.expected), 1)),
            **{f"coverage@share:{k / 10}": where(10 * s.counted > k * s.expected) for k in TENTHS},
        }
