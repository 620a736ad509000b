"""Average precision and recall of instances, by how alike they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.kernels.ranking import Ranked, ranked
from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.coco_matches import AREAS, CocoMatches
from karat.metrics.matches import Matches, Role
from karat.metrics.pck import some_thresholds

PERCENT = range(50, 100, 5)
NAMES = [f"{percent / 100:.2f}" for percent in PERCENT]
PARTS = {"threshold": "AP and AR at each match score .50:.05:.95"}


@dataclass(frozen=True)
class OksVOC(Metric):
    """Average precision and recall of instances as Pascal VOC and COCO define them, a match being an OKS greater than
    .50, .55, ... .95 (`inclusive`: or equal).

    Predictions of all frames are ranked by their score, equal ones by video, frame and place. One that is matched to a
    truth at that OKS is a true positive, any other a false positive; truths that are not found are missed. AP is the
    mean of the interpolated precision at 101 recalls, AR the largest recall, mAP and mAR their means over thresholds.
    Defined where there is a truth. `false_positives=False` forgets predictions without a partner, as published code
    does. With `of=CocoMatches()`, matched anew for each threshold, also for truths of medium and large area.
    arithmetic="published": in floating point with an epsilon, where "exact" makes a perfect prediction exactly 1.
    Everingham et al. 2010, doi:10.1007/s11263-009-0275-4; Lin et al. 2014, arXiv:1405.0312.
    """

    of: Matches | CocoMatches = Matches()
    inclusive: bool = False
    false_positives: bool = True
    arithmetic: Literal["exact", "published"] = "exact"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "oks_voc.mAP": Score("higher", (0, 1), 1, "mean of AP over the thresholds"),
        "oks_voc.mAR": Score("higher", (0, 1), 1, "mean of AR over the thresholds"),
    }
    parts: ClassVar = {**PARTS, "area": "mAP and mAR of truths of medium (32^2 to 96^2) and large area"}
    aliases: ClassVar = ("OKS_VOC", "mAP", "mAR", "voc_metrics.oks_voc.mAP", "voc_metrics.oks_voc.mAR")

    def score(self, s: Sums) -> dict[str, float]:
        return self._by_area(s) if isinstance(self.of, CocoMatches) else scores_of("oks_voc", self.curves(s))

    def curves(self, s: Sums) -> Curves:
        """Precision and recall of the pairs of `Matches`."""
        return curves(s, s.oks, self)

    def _by_area(self, s: Sums) -> dict[str, float]:
        found: dict[str, float] = {}
        for place, name in enumerate(AREAS):
            hit, left_out = s.found[:, place], s.left_out[:, place]
            truths = np.full(len(NAMES), s.wanted[:, place].sum())
            result = ranked(s.score, hit, ~(hit | left_out), truths, self.arithmetic)
            whole = name == "all"
            found["oks_voc.mAP" if whole else f"oks_voc.mAP@area:{name}"] = float(result.ap.mean())
            found["oks_voc.mAR" if whole else f"oks_voc.mAR@area:{name}"] = float(result.recall.mean())
            if whole:
                found |= by_threshold("oks_voc", result.ap, result.recall)
        return found


@dataclass(frozen=True)
class PckVOC(Metric):
    """Average precision and recall of instances as in `OksVOC`, a match being a PCK greater than .50, .55, ... .95: the
    share of a pair's nodes that lie within 1, 2, ... 10 px, averaged over these `thresholds`.

    denominator="visible": of the nodes that are visible in the truth; "all": of all (as published code has it).
    """

    of: Matches = Matches()
    thresholds: tuple[float, ...] = tuple(float(px) for px in range(1, 11))
    within: Literal["inclusive", "strict"] = "inclusive"
    denominator: Literal["visible", "all"] = "visible"
    inclusive: bool = False
    false_positives: bool = True
    arithmetic: Literal["exact", "published"] = "exact"
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "pck_voc.mAP": Score("higher", (0, 1), 1, "mean of AP over the thresholds"),
        "pck_voc.mAR": Score("higher", (0, 1), 1, "mean of AR over the thresholds"),
    }
    parts: ClassVar = PARTS
    aliases: ClassVar = ("PCK_VOC", "voc_metrics.pck_voc.mAP", "voc_metrics.pck_voc.mAR")

    def __post_init__(self) -> None:
        super().__post_init__()
        some_thresholds(self)

    def score(self, s: Sums) -> dict[str, float]:
        return scores_of("pck_voc", self.curves(s))

    def curves(self, s: Sums) -> Curves:
        """Precision and recall of the pairs."""
        pairs, pck = s.role == Role.PAIR, np.full(len(s.role), np.nan)
        pck[pairs] = self._of_pairs(s.distance[pairs], s.truth_seen[pairs])
        return curves(s, pck, self)

    def _of_pairs(self, distance: Array, truth_seen: Array) -> Array:
        within = np.less_equal if self.within == "inclusive" else np.less
        right = np.zeros(distance.shape, np.int64)
        for px in self.thresholds:
            right += within(distance, px)
        if self.denominator == "all":  # published code rounds twice: over the thresholds, then over the nodes
            twice: Array = (right / len(self.thresholds)).mean(axis=1)
            return twice
        return ratio(right.sum(axis=1), truth_seen.sum(axis=1) * len(self.thresholds))


def at_most(percent: range, arithmetic: str) -> Array:
    """The thresholds: exact decimals, or as published code computes them (.8999999999999999)."""
    exact = np.array([one / 100 for one in percent])
    return exact if arithmetic == "exact" else np.linspace(exact[0], exact[-1], len(exact))


@dataclass(frozen=True)
class Curves:
    """Precision and recall at each threshold, and the match scores of the pairs by falling score of the prediction."""

    ranked: Ranked
    thresholds: Array
    match_scores: Array


def curves(s: Sums, alike: Array, by: OksVOC | PckVOC) -> Curves:
    """Of rows whose pairs are `alike` (n); NaN for those that are none."""
    pairs, missed = s.role == Role.PAIR, s.role == Role.MISSED
    counted = np.flatnonzero(pairs | (s.role == Role.FALSE) if by.false_positives else pairs)
    limits = at_most(PERCENT, by.arithmetic)
    score, alike = s.score[counted], alike[counted]
    with np.errstate(invalid="ignore"):
        right = alike[:, None] >= limits if by.inclusive else alike[:, None] > limits
    truths = np.full(len(limits), (pairs | missed).sum())
    falling = alike[np.argsort(-score, kind="stable")]
    return Curves(ranked(score, right, ~right, truths, by.arithmetic), limits, falling[~np.isnan(falling)])


def scores_of(name: str, of: Curves) -> dict[str, float]:
    """mAP and mAR, and AP and AR of each threshold."""
    ap, ar = of.ranked.ap, of.ranked.recall
    return {f"{name}.mAP": float(ap.mean()), f"{name}.mAR": float(ar.mean())} | by_threshold(name, ap, ar)


def by_threshold(name: str, ap: Array, ar: Array) -> dict[str, float]:
    """AP and AR of each threshold as parts."""
    ap_at = {f"{name}.AP@threshold:{t}": value for t, value in zip(NAMES, ap.tolist(), strict=True)}
    return ap_at | {f"{name}.AR@threshold:{t}": value for t, value in zip(NAMES, ar.tolist(), strict=True)}
