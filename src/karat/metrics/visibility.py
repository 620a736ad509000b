"""Which nodes are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Metric, Score, Sums, quotient
from karat.metrics.matches import Matches, paired


@dataclass(frozen=True)
class Visibility(Metric):
    """Nodes of matched pairs that are visible in both (TP), only predicted (FP), only in the truth (FN), in neither
    (TN); precision = TP / (TP + FP), recall = TP / (TP + FN), undefined where nothing is predicted or nothing there.
    """

    of: Matches = Matches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "visibility_precision": Score("higher", (0, 1), 1),
        "visibility_recall": Score("higher", (0, 1), 1),
        "visibility_tp": Score(None, (0, np.inf), about="nodes visible in both", whole=True),
        "visibility_fp": Score(None, (0, np.inf), 0, "nodes that are only predicted", whole=True),
        "visibility_tn": Score(None, (0, np.inf), about="nodes missing in both", whole=True),
        "visibility_fn": Score(None, (0, np.inf), 0, "nodes that are only in the truth", whole=True),
    }
    parts: ClassVar = {"node": "precision and recall of each node"}
    exempt: ClassVar = {
        f"undefined:visibility_{name}": "a count of nothing is zero" for name in ("tp", "fp", "tn", "fn")
    }
    aliases: ClassVar = tuple(f"visibility_metrics.{name}" for name in ("precision", "recall", "tp", "fp", "tn", "fn"))

    def score(self, s: Sums) -> dict[str, float]:
        pairs = paired(s)
        truth, pred = s.truth_seen[pairs], s.pred_seen[pairs]
        both, either = (truth & pred).sum(axis=0), (truth | pred).sum(axis=0)
        tp, truths, preds = both.sum(), truth.sum(), pred.sum()
        scored = {
            "visibility_precision": quotient(tp, preds),
            "visibility_recall": quotient(tp, truths),
            "visibility_tp": tp,
            "visibility_fp": preds - tp,
            "visibility_tn": truth.size - either.sum(),
            "visibility_fn": truths - tp,
        }
        for name, found, true, shown in zip(s.labels, both, truth.sum(axis=0), pred.sum(axis=0), strict=True):
            scored[f"visibility_precision@node:{name}"] = quotient(found, shown)
            scored[f"visibility_recall@node:{name}"] = quotient(found, true)
        return scored
