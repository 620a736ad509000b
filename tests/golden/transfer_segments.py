"""`transfer-segments`: IoU and recall of matched segments, of the reference and straight."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import karat
from karat.block import Context
from karat.evaluation import evaluate
from karat.feed import resized
from karat.kernels.matching import best_of_each_row, one_to_one
from karat.region import make_regions
from karat.run import Run

from .case import Answer, Array, Case

SKIPPED = {
    "gt_phrases": "an input",
    "pred_phrases": "an input",
    "gt_shape": "describes the input",
    "pred_shape": "describes the input",
}
PROTOCOLS = {"fork": "reference", "upstream": "reference-upstream"}
STRAIGHT = re.compile(r"straight_(?P<matching>hungarian|max)_thr(?P<threshold>[\d.]+)")
HALF = re.compile(r"fg_(?P<side>left|right|top|bottom)_half")


@dataclass(frozen=True)
class Segments:
    """Files of both sides, (N, T, H, W) masks with their phrases, and the masks of the truth's size that are named."""

    pred: Path
    truth: Path
    shape: tuple[int, int, int]
    masks: Mapping[str, Array]

    def run(self, protocol: str, mask: str | None = None, **settings: Any) -> dict[str, float]:
        """Karat's scores of the clip, or of the clip inside a mask; the suite's frames are not looked at."""
        frames = {"clip": np.broadcast_to(np.uint8(0), (*self.shape, 3))}
        reading: dict[str, Any] = (
            {} if protocol.startswith("reference") else {"on_length": "truncate", "on_size": "resize"}
        )
        run: Run = evaluate(
            "transfer",
            pred=frames,
            truth=frames,
            pred_segments={"clip": self.pred},
            truth_segments={"clip": self.truth},
            masks={mask: {"clip": self.masks[mask]}} if mask else None,
            protocol=protocol,
            metrics=["segment_iou"],
            settings={f"segment_iou.{name}": value for name, value in settings.items()},
            workers=1,
            cache=False,
            strict=True,
            **reading,
        )
        at = f"@{mask}" if mask else ""
        return {name: run.sample_scores["clip"][name + at] for name in run.scores if "@" not in name}


@dataclass(frozen=True)
class Overlap:
    """Phrases in their order, and pixels shared and covered over the whole clip: (truth, pred)."""

    truth: tuple[str, ...]
    pred: tuple[str, ...]
    truth_area: Array
    pred_area: Array
    both: Array

    @property
    def union(self) -> Array:
        return self.truth_area[:, None] + self.pred_area - self.both


def answer(case: Case) -> Answer:
    """Every quantity that the case asks for."""
    sides = {side: case.array(side).astype(bool) for side in ("gt", "pred")}
    phrases = {side: case.expected[f"{side}_phrases"] for side in sides}
    overlap = overlaps(sides, phrases)
    found: dict[str, Any] = {
        "phrase_order_gt": list(overlap.truth),
        "phrase_order_pred": list(overlap.pred),
        "intersection": overlap.both.tolist(),
        "union": overlap.union.tolist(),
    }
    with written(sides, phrases, masks_named(case, sides["gt"].shape[1:])) as segments:
        found["reference"] = {key: reference(segments, key) for key in case.expected.get("reference", {})}
        for key in case.expected:
            if form := STRAIGHT.fullmatch(key):
                found[key] = straight(segments, overlap, form["matching"], float(form["threshold"]))
    return Answer(found, SKIPPED)


def reference(segments: Segments, key: str) -> dict[str, float]:
    """What the published function returns, such as `fork|hungarian|thr0.5|fg_left_half`."""
    code, matching, threshold, *mask = key.split("|")
    scores = segments.run(
        PROTOCOLS[code], mask[0] if mask else None, matching=matching, threshold=float(threshold.removeprefix("thr"))
    )
    return {"m_iou": scores["seg_m_iou"], "recall": scores["seg_recall"]}


def straight(segments: Segments, overlap: Overlap, matching: str, threshold: float) -> dict[str, Any]:
    """Pairs before the threshold, the mean over those above it, and both recalls."""
    scores = {
        over: segments.run("spec", matching=matching, threshold=threshold, overlap="last", recall_over=over)
        for over in ("truth", "pairs")
    }
    return {
        "matched_pairs": pairs(overlap, matching),
        "m_iou": scores["truth"]["seg_m_iou"],
        "recall_over_matched": scores["pairs"]["seg_recall"],
        "recall_over_all_gt": scores["truth"]["seg_recall"],
        "m_iou_over_all_gt": scores["truth"]["seg_m_iou_all_gt"],
    }


def pairs(overlap: Overlap, matching: str) -> list[list[Any]]:
    """[truth, pred, IoU] of the segments that are not empty, as Karat's kernels match them."""
    t, p = np.flatnonzero(overlap.truth_area), np.flatnonzero(overlap.pred_area)
    iou = overlap.both[np.ix_(t, p)] / overlap.union[np.ix_(t, p)]
    rows, columns = (one_to_one if matching == "hungarian" else best_of_each_row)(iou)
    return [[int(t[i]), int(p[j]), float(iou[i, j])] for i, j in zip(rows, columns, strict=True)]


def overlaps(sides: Mapping[str, Array], phrases: Mapping[str, Sequence[str]]) -> Overlap:
    """The intersections that Karat's statistic measures, the later mask taking a shared pixel."""
    size, frames = sides["gt"].shape[2:], min(masks.shape[1] for masks in sides.values())
    truth, pred = (np.moveaxis(sides[side], 1, 0)[:frames] for side in ("gt", "pred"))
    if pred.shape[2:] != size:
        pred = np.stack([resized(frame, "segments", size, False) for frame in pred])
    labels = {"pred_segments": tuple(phrases["pred"]), "truth_segments": tuple(phrases["gt"])}
    measured = karat.SegmentIoU(overlap="last").prepare(
        pred, truth, regions=make_regions({}, (frames, *size)), sample=Context("clip", labels)
    )
    areas = (getattr(measured, name)[:, 0].sum(axis=0) for name in ("truth_area", "pred_area", "both"))
    return Overlap(measured.truth, measured.pred, *areas)


def masks_named(case: Case, shape: tuple[int, ...]) -> dict[str, Array]:
    """The foregrounds that keys of the reference name: halves of the frame, or arrays of the inputs."""
    names = {mask for key in case.expected.get("reference", {}) for mask in key.split("|")[3:]}
    return {name: half(found["side"], shape) if (found := HALF.fullmatch(name)) else case.array(name) for name in names}


def half(side: str, shape: tuple[int, ...]) -> Array:
    """True on one half of every frame; of an odd number the first half has less."""
    place = np.zeros(shape, bool)
    axis = 2 if side in ("left", "right") else 1
    first = np.arange(shape[axis]) < shape[axis] // 2
    chosen = first if side in ("left", "top") else ~first
    place[:] = chosen if axis == 2 else chosen[:, None]
    return place


@contextmanager
def written(
    sides: Mapping[str, Array], phrases: Mapping[str, Sequence[str]], masks: Mapping[str, Array]
) -> Iterator[Segments]:
    """Both sides as the files that Karat reads."""
    with tempfile.TemporaryDirectory() as folder:
        for side, objects in sides.items():
            np.savez(Path(folder, f"{side}.npz"), masks=objects, phrases=np.array(phrases[side], dtype=np.str_))
        frames, height, width = sides["gt"].shape[1:]
        yield Segments(Path(folder, "pred.npz"), Path(folder, "gt.npz"), (frames, height, width), masks)
