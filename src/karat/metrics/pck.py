"""Percentage of correct keypoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from karat.errors import UsageError
from karat.kernels.keypoints import counts_within
from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.distance import mean
from karat.metrics.matches import Matches, paired


@dataclass(frozen=True)
class PCK(Metric):
    """Share of the keypoints of matched pairs that lie within 1, 2, ... 10 px of the truth (`inclusive`: exactly that
    far is within). A node that is not predicted is wrong.

    denominator="visible": of the nodes that are visible in the truth; "all": of all, so that what is not labelled is
    wrong too, as published code has it. mPCK@node is the mean over `thresholds`; mPCK the mean over nodes;
    PCK@5 and PCK@10 are over all nodes at once. The rows keep the distance of every node, from which each PCK follows.
    Yang & Ramanan 2013, doi:10.1109/TPAMI.2012.261.
    """

    of: Matches = Matches()
    thresholds: tuple[float, ...] = tuple(float(px) for px in range(1, 11))
    inclusive: bool = True
    denominator: Literal["visible", "all"] = "visible"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mPCK": Score("higher", (0, 1), 1, "mean over thresholds and nodes"),
        "PCK@5": Score("higher", (0, 1), 1, "within 5 px"),
        "PCK@10": Score("higher", (0, 1), 1, "within 10 px"),
    }
    parts: ClassVar = {"node": "mPCK of each node (mPCK part)", "px": "PCK at each threshold"}
    aliases: ClassVar = ("mPCK_part", "pck_metrics.mPCK", "pck_metrics.PCK@5", "pck_metrics.PCK@10")

    def __post_init__(self) -> None:
        super().__post_init__()
        some_thresholds(self)

    def pcks(self, distance: Array) -> Array:
        """Whether each node of each pair is within each threshold, (pairs, nodes, thresholds)."""
        limits = np.array(self.thresholds)
        within: Array = distance[..., None] <= limits if self.inclusive else distance[..., None] < limits
        return within

    def score(self, s: Sums) -> dict[str, float]:
        pairs = paired(s)
        asked = sorted({*self.thresholds, 5.0, 10.0})
        right = counts_within(s.distance[pairs], asked, self.inclusive)
        possible = (
            s.truth_seen[pairs].sum(axis=0) if self.denominator == "visible" else np.full(len(s.labels), pairs.sum())
        )
        of_node = ratio(right, possible[:, None])
        at = dict(zip(asked, ratio(right.sum(axis=0), possible.sum()).tolist(), strict=True))
        part = of_node[:, [asked.index(px) for px in self.thresholds]].mean(axis=1)
        return {
            "mPCK": mean(part[~np.isnan(part)]),
            "PCK@5": at[5.0],
            "PCK@10": at[10.0],
            **{f"PCK@px:{px:g}": at[px] for px in self.thresholds},
            **{f"mPCK@node:{name}": value for name, value in zip(s.labels, part.tolist(), strict=True)},
        }


def some_thresholds(of: Any) -> None:
    """Fails where there is no distance to be within."""
    if not of.thresholds:
        raise UsageError(f"{type(of).__name__}.thresholds is empty: name at least one distance.")
