"""How far two sets of embeddings are apart, by their directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.mmd import cmmd
from karat.metric import Metric, Score, Sums
from karat.metrics.feature_rows import NAN, FeatureRows, of_pred, of_truth


@dataclass(frozen=True)
class CMMD(Metric):
    """1000 times the squared maximum mean discrepancy with the kernel exp(-|x - y|^2 / (2 sigma^2)), of directions.

    pred, truth: embeddings (n, d), usually of CLIP, brought to length 1. Biased, as published: a pair of an image with
    itself counts.
    Jayasumana et al. 2024, arXiv:2401.09603.
    """

    of: FeatureRows = FeatureRows()
    sigma: float = 10.0
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {"cmmd": Score("lower", about="1000 times the discrepancy")}
    exempt: ClassVar = {"constant_input": "what is 0 has no direction: an error that names it", **NAN}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma <= 0:
            raise UsageError(f"CMMD.sigma is above 0, not {self.sigma!r}.")

    def score(self, s: Sums) -> dict[str, float]:
        pred, truth = (of_pred(s), of_truth(s)) if len(s.part) else (np.zeros((0, 1)), np.zeros((0, 1)))
        return {"cmmd": cmmd(pred, truth, self.sigma) if len(pred) and len(truth) else np.nan}
