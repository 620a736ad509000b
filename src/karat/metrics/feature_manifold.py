"""Whether predictions are where truths are, and truths where predictions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.manifold import manifold
from karat.metric import Metric, Score, Sums
from karat.metrics.feature_rows import NAN, FeatureRows, of_pred, of_truth


@dataclass(frozen=True)
class FeatureManifold(Metric):
    """Precision, recall, density and coverage of two sets of features, every sample a ball to its `k`-th neighbour.

    pred, truth: features (n, d). Precision: the share of predictions in a ball of a truth. Recall: that of truths in a
    ball of a prediction. Density: in how many balls of truths a prediction is, over k. Coverage: the share of balls of
    truths with a prediction in them. balls="closed": what is on the border is inside. Undefined for at most k images.
    Kynkäänniemi et al. 2019, arXiv:1904.06991; Naeem et al. 2020, arXiv:2002.09797.
    """

    of: FeatureRows = FeatureRows()
    k: int = 5
    balls: Literal["open", "closed"] = "open"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "precision": Score("higher", (0, 1), about="predictions that are among the truths"),
        "recall": Score("higher", (0, 1), about="truths that are among the predictions"),
        "density": Score("higher", (0, np.inf), about="in how many balls of truths a prediction is, over k"),
        "coverage": Score("higher", (0, 1), about="balls of truths with a prediction in them"),
    }
    aliases: ClassVar = ("prdc",)
    exempt: ClassVar = {
        "one_frame": "one image has no neighbour",
        "weights": "a copy is the nearest neighbour of its original",
        **NAN,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise UsageError(f"FeatureManifold.k starts at 1, not {self.k}.")

    def score(self, s: Sums) -> dict[str, float]:
        pred, truth = (of_pred(s), of_truth(s)) if len(s.part) else (np.zeros((0, 1)), np.zeros((0, 1)))
        if min(len(pred), len(truth)) <= self.k:
            return dict.fromkeys(self.scores, np.nan)
        return vars(manifold(pred, truth, self.k, self.balls == "closed"))
