"""How many different images there seem to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.kernels.vendi import vendi
from karat.metric import Metric, Score, Sums
from karat.metrics.feature_rows import NAN, FeatureRows, of_pred, of_truth


@dataclass(frozen=True)
class Vendi(Metric):
    """Vendi score: exp of the entropy of the eigenvalues of K / n, K the cosines of all pairs of features.

    pred, truth: features (n, d). 1 where all predictions are alike, n where none has to do with another; `vendi_truth`
    is that of the truth.
    Friedman & Dieng 2023, arXiv:2210.02410.
    """

    of: FeatureRows = FeatureRows()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "vendi": Score("higher", (1, np.inf), about="of the predictions"),
        "vendi_truth": Score(None, (1, np.inf), about="of the truths"),
    }
    exempt: ClassVar = {
        "constant_input": "what is 0 has no direction: an error that names it",
        "direction:vendi": "what is wrong may be as diverse",
        **NAN,
    }

    def score(self, s: Sums) -> dict[str, float]:
        sides = (of_pred(s), of_truth(s)) if len(s.part) else (np.zeros((0, 1)),) * 2
        return {name: vendi(of) if len(of) else np.nan for name, of in zip(self.scores, sides, strict=True)}
