"""What there was to be followed, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.errors import counted
from karat.metric import Array, Metric, Score, Sums
from karat.metrics.box_coverage import OF_ONE
from karat.metrics.following import Following
from karat.rows import Rows

INF = float("inf")


def _count(about: str, better: Literal["lower"] | None = None) -> Score:
    return Score(better, (0, INF), about=about, whole=True)


@dataclass(frozen=True)
class BoxCounts(Metric):
    """How many videos and frames were compared, and in how many of them something is missing or too many.

    pred, truth: tubes.
    """

    of: Following = Following()
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "n_records": _count("videos that boxes are asked for in"),
        "n_missing_prediction": _count("videos without a prediction: not covered, nothing detected", "lower"),
        "n_undefined_gt": _count("videos without a box in any frame: their scores are undefined"),
        "n_frames_scored": _count("frames that both sides have"),
        "n_frames_truth": _count("of them, frames with a box that is asked for"),
        "n_frames_undetected": _count("of these, frames without a detection", "lower"),
        "n_extra_detections": _count("detections in frames without a box: ignored"),
        "n_boxes_clipped_truth": _count("boxes asked for that leave the frame: cut at it"),
        "n_boxes_clipped": _count("detected boxes that leave the frame: cut at it"),
        "n_frames_unmet": _count("boxes asked for beyond the last frame of the video: not compared"),
        "n_frames_surplus": _count("frames beyond the last box asked for: not compared"),
    }
    exempt: ClassVar = {
        "direction:n_missing_prediction": "some are missing however good the others are",
        **{f"undefined:{name}": "undefined only where there are no frames" for name in scores},
        **{f"graded:{name}": OF_ONE for name in ("n_records", "n_missing_prediction", "n_undefined_gt")},
    }

    def score(self, s: Sums) -> dict[str, Array]:
        found = {
            "n_records": s.records,
            "n_missing_prediction": s.missing,
            "n_undefined_gt": s.untold,
            "n_frames_scored": s.frames,
            "n_frames_truth": s.truth,
            "n_frames_undetected": s.truth - s.both,
            "n_extra_detections": s.extra,
            "n_boxes_clipped_truth": s.clipped_truth,
            "n_boxes_clipped": s.clipped_pred,
            "n_frames_unmet": s.unmet,
            "n_frames_surplus": s.surplus,
        }
        return {name: np.where(s.records > 0, count, np.nan) for name, count in found.items()}

    def remarks(self, rows: Rows) -> Iterable[str]:
        """What was left out or cut."""
        asked = ("missing", "untold", "clipped_truth", "clipped_pred", "reordered")
        sums = {name: int(rows.columns[name].sum()) for name in asked}
        if sums["reordered"]:
            yield f"Boxes asked for in {counted(sums['reordered'], 'video')} were read as x1, x2, y1, y2 (--box-order)."
        if sums["missing"]:
            yield f"{counted(sums['missing'], 'video')} without a prediction: not covered, nothing detected."
        if sums["untold"]:
            yield f"{counted(sums['untold'], 'video')} without a box in any frame: undefined."
        unequal = int(((rows.columns["unmet"] > 0) | (rows.columns["surplus"] > 0)).sum())
        if unequal:
            yield f"{counted(unequal, 'video')} with other numbers of frames than of boxes: the first are compared."
        cut = {"asked for": sums["clipped_truth"], "detected": sums["clipped_pred"]}
        for what, count in cut.items():
            if count:
                yield f"{count} of the boxes {what} leave the frame: cut at it."
