"""How far two distributions of features are apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.kernels.frechet import between
from karat.metric import Metric, Score, Sums
from karat.metrics.feature_rows import NAN, FeatureRows, Part, normal_of
from karat.rows import Rows


@dataclass(frozen=True)
class FID(Metric):
    """Frechet distance of two sets of features taken as normal, |m_a - m_b|^2 + tr(S_a + S_b - 2 (S_a S_b)^(1/2)).

    pred, truth: features (n, d), or mu (d) and sigma (d, d). Covariances are unbiased (n - 1); the root is exact for
    few images too, and nothing is added to it. Undefined for fewer than 2 images. With few images it is too large,
    about in proportion to 1 / n: compare equal numbers of images.
    Heusel et al. 2017, arXiv:1706.08500; Dowson & Landau 1982, doi:10.1016/0047-259X(82)90077-X.
    """

    of: FeatureRows = FeatureRows()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {"fid": Score("lower", (0, np.inf), 0, "Frechet distance of the features")}
    aliases: ClassVar = ("frechet_inception_distance", "frechet_distance", "fd")
    exempt: ClassVar = {"one_frame": "one image has no covariance", **NAN}

    def score(self, s: Sums) -> dict[str, float]:
        sides = [normal_of(s, side) for side in (Part.PRED, Part.TRUTH)] if len(s.part) else [None, None]
        pred, truth = sides
        return {"fid": np.nan if pred is None or truth is None else between(pred, truth).value}

    def remarks(self, rows: Rows) -> Iterable[str]:
        """Of how many images it is, and whether that is few."""
        part, count, width = rows.columns["part"], rows.columns["count"], rows.columns["features"].shape[1]
        numbers = []
        for side in (Part.PRED, Part.TRUTH):
            known = count[part == side + 1]
            numbers.append(int(known[0]) if len(known) else int((part == side).sum()))
        of = " and ".join(str(n) if n else "an unknown number of" for n in numbers)
        yield f"FID is of {of} images, of {width} features."
        if any(0 < n <= width for n in numbers):
            yield f"FID of no more images than features ({width}) is far too large: its bias falls with 1 / n."
