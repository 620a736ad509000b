"""Overlap of segments that were matched over a whole clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from karat.errors import InputError, UsageError
from karat.kernels.matching import best_of_each_row, one_to_one
from karat.kernels.partition import Partition, of_labels, of_masks, shared
from karat.metric import Array, Columns, Metric, Pool, Score, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class Overlaps:
    """What a block of frames says of the segments: areas (B, R, N) on each side, intersections (B, R, truth, pred)."""

    truth: tuple[str, ...]
    pred: tuple[str, ...]
    truth_area: Array
    pred_area: Array
    both: Array


@dataclass(frozen=True)
class SegmentIoU(Metric):
    """Overlap of matched segments: IoU = |P & T| / |P | T| over the clip's (T, H, W) volume, and recall of true ones.

    pred_segments, truth_segments: label maps (T, H, W) with 0 for nothing, or boolean masks (N, T, H, W) that may
    overlap. Segments of one name are united. A match is a pair with IoU above `threshold`; `seg_m_iou` is the mean over
    matches (0 where there is none), `seg_recall` matches / true segments, `seg_m_iou_all_gt` counts an unmatched true
    segment as 0, `seg_m_iou_frame` takes each match's mean of per-frame IoU. Undefined where the truth has no segment.
    A segment belongs to a region when a pixel, and at least `inside` of it, lies there. `overlap="last"`,
    `recall_over="pairs"`, `empty="keep"` and `nothing="zero"` (0 where a side has no segment at all, undefined where
    all were dropped) are published code's choices.
    Kuhn 1955, doi:10.1002/nav.3800020109; protocol: Cosmos-Transfer1 2025, arXiv:2503.14492.
    """

    matching: Literal["hungarian", "max"] = "hungarian"
    threshold: float = 0.1
    require_label: bool = False
    overlap: Literal["keep", "last"] = "keep"
    empty: Literal["drop", "keep"] = "drop"
    inside: float = 0.0
    recall_over: Literal["truth", "pairs"] = "truth"
    nothing: Literal["undefined", "zero"] = "undefined"
    pool: Pool = "sample"

    unit: ClassVar = "item"
    scores: ClassVar = {
        "seg_m_iou": Score("higher", (0, 1), 1, "mean IoU of the matches"),
        "seg_recall": Score("higher", (0, 1), 1, "share of true segments with a match"),
        "seg_m_iou_all_gt": Score("higher", (0, 1), 1, "mean IoU of true segments, 0 without a match"),
        "seg_m_iou_frame": Score("higher", (0, 1), 1, "mean per-frame IoU of the matches"),
        "seg_n_pred_unmatched": Score("lower", (0, np.inf), 0, "predicted segments without a match"),
    }
    aliases: ClassVar = ("seg_miou", "segmentation_iou")
    exempt: ClassVar = {"empty_region:seg_n_pred_unmatched": "a count: without pixels there are 0 segments"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.threshold < 1:
            raise UsageError(f"SegmentIoU.threshold is a number from 0 to below 1, not {self.threshold!r}.")

    def prepare(self, pred_segments: Array, truth_segments: Array, regions: Regions, sample: Any) -> Overlaps:
        p = self._partition(pred_segments, sample.labels.get("pred_segments", ()))
        t = self._partition(truth_segments, sample.labels.get("truth_segments", ()))
        counts = regions.count(t.cell * len(p.member) + p.cell, len(t.member) * len(p.member))
        whole = Partition(t.cell, np.ones((len(t.member), 1), bool), ("",))
        any_pred = Partition(p.cell, np.ones((len(p.member), 1), bool), ("",))
        return Overlaps(
            t.names,
            p.names,
            shared(t, any_pred, counts)[..., 0],
            shared(whole, p, counts)[..., 0, :],
            shared(t, p, counts),
        )

    def measure(self, parts: Sequence[Overlaps], sample: Any) -> Columns:
        clip = _join(parts, sample.labels)
        regions = clip.both.shape[1]
        by_region = [self._region(clip, r) for r in range(regions)]
        return {name: np.stack([columns[name] for columns in by_region], axis=1) for name in by_region[0]}

    def score(self, s: Sums) -> dict[str, Array]:
        recall = ratio(s.matches, s.truth if self.recall_over == "truth" else s.pairs)
        scored = {
            "seg_m_iou": np.where(s.matches > 0, ratio(s.iou, s.matches), 0.0),
            "seg_recall": np.where(s.truth * s.pairs > 0, recall, 0.0),
            "seg_m_iou_all_gt": ratio(s.iou, s.truth),
            "seg_m_iou_frame": np.where(s.matches > 0, ratio(s.frame_iou, s.matches), 0.0),
        }
        unmatched = {"seg_n_pred_unmatched": (s.pred - s.pred_matched).astype(np.float64)}
        if self.nothing == "undefined":
            return {name: np.where(s.truth > 0, value, np.nan) for name, value in scored.items()} | unmatched
        known = s.truth * s.pred > 0
        default = np.where(s.truth_named * s.pred_named > 0, np.nan, 0.0)
        return {name: np.where(known, value, default) for name, value in scored.items()} | unmatched

    def _partition(self, segments: Array, names: Sequence[str]) -> Partition:
        if segments.ndim == 4:
            if segments.dtype != bool:  # their axes are told apart by the dtype
                raise InputError(f"Masks (N, T, H, W) of objects are boolean, not {segments.dtype}: convert them.")
            return of_masks(segments, names, self.overlap == "last").united()
        return of_labels(segments, names).united()

    def _present(self, area: Array, whole: Array) -> Array:
        """Which segments belong to a region, by their area there and in the whole clip."""
        return np.flatnonzero((self.empty == "keep") | ((area > 0) & (area >= self.inside * whole)))

    def _region(self, clip: Overlaps, r: int) -> dict[str, Array]:
        """A row for every true segment, then one for every predicted segment."""
        both, truth_area, pred_area = clip.both[:, r], clip.truth_area[:, r], clip.pred_area[:, r]
        whole = clip.truth_area[:, 0].sum(axis=0), clip.pred_area[:, 0].sum(axis=0)
        t, p = (self._present(a.sum(axis=0), b) for a, b in zip((truth_area, pred_area), whole, strict=True))
        volumes = truth_area.sum(axis=0)[t][:, None], pred_area.sum(axis=0)[p]
        iou = np.nan_to_num(_iou(both.sum(axis=0)[np.ix_(t, p)], *volumes), nan=0.0)
        if self.require_label:
            iou = iou * (np.array(clip.truth)[t][:, None] == np.array(clip.pred)[p])
        rows, columns = (one_to_one if self.matching == "hungarian" else best_of_each_row)(iou)
        match = iou[rows, columns] > self.threshold
        t_pair, p_pair = t[rows], p[columns]
        t_match, p_match = t_pair[match], p_pair[match]
        frames = _iou(both[:, t_match, p_match], truth_area[:, t_match], pred_area[:, p_match])

        first_pred, size = len(clip.truth), len(clip.truth) + len(clip.pred)
        counted = ("truth", "pred", "truth_named", "pred_named", "pairs", "matches", "pred_matched")
        out: dict[str, Array] = {name: np.zeros(size, np.int64) for name in counted}
        out |= {name: np.zeros(size) for name in ("iou", "frame_iou")}
        out["truth_named"][:first_pred] = out["pred_named"][first_pred:] = 1
        out["truth"][t] = out["pred"][first_pred + p] = 1
        out["pairs"][t_pair] = out["matches"][t_match] = out["pred_matched"][first_pred + p_match] = 1
        out["iou"][t_match] = iou[rows, columns][match]
        out["frame_iou"][t_match] = np.nanmean(frames, axis=0) if frames.size else 0.0
        return out


def _iou(both: Array, truth_area: Array, pred_area: Array) -> Array:
    """Intersection over union, undefined where both are empty; sums of float weights may differ in the last bit."""
    return np.minimum(ratio(both, truth_area + pred_area - both), 1.0)


def _join(parts: Sequence[Overlaps], labels: Mapping[str, Sequence[str]]) -> Overlaps:
    """One clip from its blocks, its segments in an order that does not depend on how it was cut."""
    truth = _order([name for part in parts for name in part.truth], labels.get("truth_segments", ()))
    pred = _order([name for part in parts for name in part.pred], labels.get("pred_segments", ()))
    frames, regions = sum(len(part.both) for part in parts), parts[0].both.shape[1]
    kind = np.result_type(*(part.both.dtype for part in parts))
    truth_area, pred_area = (np.zeros((frames, regions, len(names)), kind) for names in (truth, pred))
    both = np.zeros((frames, regions, len(truth), len(pred)), kind)
    start = 0
    for part in parts:
        at = slice(start, start := start + len(part.both))
        t = np.array([truth.index(name) for name in part.truth], np.intp)
        p = np.array([pred.index(name) for name in part.pred], np.intp)
        truth_area[at][:, :, t] = part.truth_area
        pred_area[at][:, :, p] = part.pred_area
        both[at][:, :, t[:, None], p] = part.both
    return Overlaps(truth, pred, truth_area, pred_area, both)


def _order(found: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    place = {name: i for i, name in enumerate(dict.fromkeys(known))}
    return tuple(sorted(set(found), key=lambda name: (place[name], 0) if name in place else (len(place), int(name))))
