"""How far two sets of features are apart, without assuming a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.mmd import drawn_subsets, mmd, of_subsets
from karat.metric import Metric, Score, Sums
from karat.metrics.feature_rows import NAN, FeatureRows, of_pred, of_truth


@dataclass(frozen=True)
class KID(Metric):
    """Kernel distance: the unbiased squared maximum mean discrepancy with the kernel (x.y / d + 1)^3.

    pred, truth: features (n, d). `kid` is the mean over `subsets` of `size` images (of all, where a side has fewer),
    drawn without replacement by `seed`, and `kid_std` its standard deviation (ddof 0); `kid_all` is of all images at
    once. Around 0, also below, for sets of one distribution. Undefined for fewer than 2 images.
    Binkowski et al. 2018, arXiv:1801.01401.
    """

    of: FeatureRows = FeatureRows()
    subsets: int = 100
    size: int = 1000
    seed: int = 0
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "kid": Score("lower", about="mean of the subsets"),
        "kid_std": Score(None, (0, np.inf), about="standard deviation over the subsets"),
        "kid_all": Score("lower", about="of all images"),
    }
    aliases: ClassVar = ("kernel_inception_distance",)
    exempt: ClassVar = {
        "one_frame": "it is of pairs of images",
        "weights": "which images are in a subset hangs on all",
        "graded:kid_std": "which images are drawn is the generator's choice",
        **NAN,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subsets < 1 or self.size < 2 or self.seed < 0:
            raise UsageError("KID takes at least 1 subset of at least 2 images, and a seed of at least 0.")

    def score(self, s: Sums) -> dict[str, float]:
        pred, truth = (of_pred(s), of_truth(s)) if len(s.part) else (np.zeros((0, 1)), np.zeros((0, 1)))
        size = min(self.size, len(pred), len(truth))
        if size < 2:
            return dict.fromkeys(self.scores, np.nan)
        drawn = drawn_subsets(len(pred), len(truth), self.subsets, size, self.seed)
        found = of_subsets(pred, truth, *drawn)
        return {"kid": found.mean, "kid_std": found.std, "kid_all": mmd(pred, truth)}
