"""Agreement of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.blur import Gray
from karat.kernels.edges import canny, widen
from karat.metric import Array, Columns, Derived, Metric, Pool, Score, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class CannyF1(Metric):
    """Agreement of Canny edges: F1 = 2PR / (P + R), P = TP / (TP + FP), R = TP / (TP + FN).

    pred, truth: uint8 frames (B, H, W, 3) or (B, H, W). An edge pixel counts as found within `tolerance` pixels of an
    edge of the other side (0: the same pixel); then P and R count the matched pixels of their own side.
    Undefined where neither side has an edge; 0 where one side has none (`edgeless="either"` leaves that undefined too).
    Canny 1986, doi:10.1109/TPAMI.1986.4767851; tolerance: Martin, Fowlkes & Malik 2004, doi:10.1109/TPAMI.2004.1273918.
    """

    low: float = 100.0
    high: float = 200.0
    aperture: Literal[3, 5, 7] = 3
    norm: Literal["l1", "l2"] = "l1"
    edges_of: Literal["gray", "rgb"] = "gray"
    tolerance: int = 0
    edgeless: Literal["both", "either"] = "both"
    pool: Pool = "sample"

    scores: ClassVar = {
        "canny_f1_score": Score("higher", (0, 1), 1, "harmonic mean of precision and recall"),
        "canny_precision": Score("higher", (0, 1), 1, "share of predicted edge pixels that are true"),
        "canny_recall": Score("higher", (0, 1), 1, "share of true edge pixels that are found"),
    }
    aliases: ClassVar = ("canny", "edge_f1")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise UsageError(f"CannyF1.low ({self.low}) is above CannyF1.high ({self.high}).")
        if self.tolerance < 0:
            raise UsageError(f"CannyF1.tolerance is 0 or more pixels, not {self.tolerance}.")

    def inputs(self) -> dict[str, Derived]:
        if self.edges_of == "rgb":
            return {}
        return {side: Derived(side, Gray()) for side in ("pred", "truth")}

    def measure(self, pred: Array, truth: Array, regions: Regions) -> Columns:
        p, t = self._edges(pred), self._edges(truth)
        if self.tolerance == 0:
            tp = tp_of_truth = regions.sum(p & t)
        else:
            tp, tp_of_truth = regions.sum(p & self._near(t)), regions.sum(t & self._near(p))
        return {"tp": tp, "fp": regions.sum(p) - tp, "fn": regions.sum(t) - tp_of_truth, "tp_of_truth": tp_of_truth}

    def score(self, s: Sums) -> dict[str, Array]:
        p, t = s.tp + s.fp, s.tp_of_truth + s.fn
        measurable = (p > 0) & (t > 0) if self.edgeless == "either" else (p > 0) | (t > 0)
        precision = np.where(p > 0, ratio(s.tp, p), 0.0)
        recall = np.where(t > 0, ratio(s.tp_of_truth, t), 0.0)
        if self.tolerance == 0:
            f1 = ratio(2 * s.tp, p + t)
        else:
            f1 = np.where(s.tp > 0, ratio(2 * precision * recall, precision + recall), 0.0)
        scored = {"canny_f1_score": f1, "canny_precision": precision, "canny_recall": recall}
        return {name: np.where(measurable, value, np.nan) for name, value in scored.items()}

    def _edges(self, frames: Array) -> Array:
        maps = [canny(frame, self.low, self.high, self.aperture, self.norm == "l2") for frame in frames]
        return np.stack(maps) if maps else np.zeros(frames.shape[:3], bool)

    def _near(self, edges: Array) -> Array:
        return np.stack([widen(edge, self.tolerance) for edge in edges])
