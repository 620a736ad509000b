"""Whether each image is clearly something, and all together many things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import Inapplicable, UsageError
from karat.kernels.draws import shuffled
from karat.kernels.inception_score import inception_score
from karat.metric import Metric, Score, Statistic, Sums
from karat.rows import Elements
from karat.sources.feature_sets import FeatureSet


@dataclass(frozen=True)
class Logits(Statistic):
    """A row for the logits of each predicted image."""

    unit: ClassVar = "element"
    record: ClassVar = "features"

    def measure(self, pred: FeatureSet) -> Elements:
        if not len(pred.logits):
            raise Inapplicable("the predictions have no logits.")
        return Elements(np.zeros(len(pred.logits), np.int32), {"logits": pred.logits})


@dataclass(frozen=True)
class InceptionScore(Metric):
    """exp(E_x KL(p(y|x) || p(y))) of the classes y that a network gives images x, over parts of the images.

    pred: logits (n, classes). Images are shuffled by `seed` (None: left in order) and cut into `splits` parts, of which
    part i is [i n / splits, (i + 1) n / splits); rule="ceil" makes parts of ceil(n / splits). `ddof` is that of the
    deviation over the parts. Undefined for fewer images than splits.
    Salimans et al. 2016, arXiv:1606.03498.
    """

    of: Logits = Logits()
    splits: int = 10
    seed: int | None = 0
    rule: Literal["even", "ceil"] = "even"
    ddof: Literal[0, 1] = 0
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "inception_score": Score("higher", (1, np.inf), about="mean over the parts"),
        "inception_score_std": Score(None, (0, np.inf), about="standard deviation over the parts"),
    }
    aliases: ClassVar = ("is",)
    exempt: ClassVar = {
        "weights": "which images are in a part hangs on all",
        "one_frame": "one image cannot be cut into parts",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.splits < 1 or (self.seed is not None and self.seed < 0):
            raise UsageError("InceptionScore takes at least 1 split, and a seed of at least 0, or None.")

    def score(self, s: Sums) -> dict[str, float]:
        if len(s.logits) < self.splits:
            return dict.fromkeys(self.scores, np.nan)
        order = None if self.seed is None else shuffled(len(s.logits), self.seed)
        found = inception_score(s.logits, self.splits, self.rule, order)
        return {"inception_score": found.mean, "inception_score_std": found.std(self.ddof)}
