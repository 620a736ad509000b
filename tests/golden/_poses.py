"""The poses of the folder: arrays of an inputs.npz, or frames written out in a list of small cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.sources.poses import Poses, make_poses

from .case import Array, Case

INPUT = dict.fromkeys(
    ("case", "note", "name", "kwargs", "gt", "pred", "inputs", "tie_dependent", "differs_in_0.3.5"),
    "describes the input",
)
WORDS = {"exception": "the words of the reference's refusal"}


@dataclass(frozen=True)
class Video:
    """Both sides of one video, and which rows of the inputs they are."""

    id: str
    truth: Poses
    pred: Poses
    truth_rows: Array
    pred_rows: Array


def videos(case: Case) -> list[Video]:
    """The videos of a case."""
    if "inline" in case.inputs:
        truth, pred = inline(case.expected["gt"]), inline(case.expected["pred"])
        return [Video("0", truth, pred, np.arange(len(truth)), np.arange(len(pred)))]
    arrays = case.arrays()
    numbers = np.unique(np.concatenate([arrays["gt_labeled_video_idx"], arrays["pr_labeled_video_idx"]]))
    found = []
    for video in numbers.tolist():
        rows = {which: np.flatnonzero(arrays[f"{which}_video_idx"] == video) for which in ("gt", "pr")}
        truth, pred = (_side(arrays, which, video, rows[which]) for which in ("gt", "pr"))
        found.append(Video(f"{video:06d}", truth, pred, rows["gt"], rows["pr"]))
    return found


def skipped() -> dict[str, str]:
    """What every case says besides numbers, wherever it stands."""
    return {f"{where}{name}": why for name, why in (INPUT | WORDS).items() for where in ("", "scalars/")}


def inline(frames: Sequence[Any]) -> Poses:
    """A list of [frame, instances]; an instance is a list of points, or a mapping with `pts`."""
    found = [
        (frame, one if isinstance(one, Mapping) else {"pts": one}) for frame, instances in frames for one in instances
    ]
    nodes = len(found[0][1]["pts"]) if found else 0
    points = np.array([one["pts"] for _, one in found], np.float64).reshape(len(found), nodes, 2)
    return make_poses(
        points,
        np.array([frame for frame, _ in found], np.int32),
        score=np.array([one.get("score", np.nan) for _, one in found]),
        user=np.array(["pred" not in one for _, one in found], bool),
        labelled=[frame for frame, _ in frames],
    )


def _side(arrays: Mapping[str, Array], which: str, video: int, rows: Array) -> Poses:
    labelled = arrays[f"{which}_labeled_video_idx"] == video
    return make_poses(
        arrays[f"{which}_points"][rows],
        arrays[f"{which}_frame_idx"][rows],
        score=arrays[f"{which}_score"][rows] if f"{which}_score" in arrays else None,
        labelled=arrays[f"{which}_labeled_frame_idx"][labelled],
    )
