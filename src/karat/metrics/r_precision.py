"""Whether a picture's own caption is the one that fits it best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError, counted
from karat.kernels.alignment import r_precision
from karat.metric import Metric, Score, Sums
from karat.metrics.alignment import NAN, AlignedRows
from karat.rows import Rows


@dataclass(frozen=True)
class RPrecision(Metric):
    """Share of the pictures whose own caption has the largest cosine of `candidates` captions, its own and others that
    are drawn by `seed`; 1/m where m are equally near.

    pred_aligned: images (n, d) and texts (n, d). Undefined for fewer pictures than candidates; a picture without a
    direction is left out. Chance has 1 / candidates.
    Xu et al. 2018, arXiv:1711.10485.
    """

    of: AlignedRows = AlignedRows()
    candidates: int = 100
    seed: int = 0
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {"r_precision": Score("higher", (0, 1), about="the own caption is the nearest")}
    exempt: ClassVar = {
        "weights": "which captions are candidates hangs on all",
        "one_frame": "one caption is the nearest of all",
        **NAN,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates < 2 or self.seed < 0:
            raise UsageError("RPrecision takes at least 2 candidates, and a seed of at least 0.")

    def score(self, s: Sums) -> dict[str, float]:
        if len(s.images) < self.candidates:
            return {"r_precision": np.nan}
        found = r_precision(s.images, s.texts, self.candidates, self.seed)
        known = found[~np.isnan(found)]
        return {"r_precision": float(known.mean()) if len(known) else np.nan}

    def remarks(self, rows: Rows) -> Iterable[str]:
        """Why it is undefined."""
        if len(rows) < self.candidates:
            yield f"r_precision is of {self.candidates} captions: undefined for {counted(len(rows), 'picture')}."
