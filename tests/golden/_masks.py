"""Masks of instances of a case, and the run that says what Karat makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import karat
from karat.run import Run
from karat.sources.instance_masks import InstanceMasks, make_instances

from .case import Array, Case

SETTINGS = {"match_threshold": "mask_matches.match_threshold"}


def evaluated(case: Case, match: str) -> Run:
    """All videos of the case under the protocol of the reference."""
    params = case.protocol["params"]
    if unknown := set(params) - {*SETTINGS, "match_method", "user_labels_only"}:
        raise ValueError(f"{', '.join(sorted(unknown))} is no parameter that this adapter knows")
    arrays = case.arrays("masks")
    return karat.evaluate(
        "instances",
        truth=videos(arrays, "gt"),
        pred=videos(arrays, "pr"),
        protocol="reference",
        match=match,
        settings={SETTINGS[name]: float(value) for name, value in params.items() if name in SETTINGS},
        workers=1,
        strict=True,
    )


def videos(arrays: Mapping[str, Array], which: str) -> dict[str, InstanceMasks]:
    """One side of every video; a case that names none holds one. As in the reference, a score of NaN ranks last."""
    found = {}
    for video in np.unique(arrays.get("gt_labeled_video_idx", arrays.get("gt_video_idx", 0))).tolist():
        own, listed = (_of_video(arrays, f"{which}_{name}", video) for name in ("", "labeled_"))
        given: dict[str, Any] = {}
        if f"{which}_score" in arrays:
            score = arrays[f"{which}_score"][own]
            given["score"] = np.where(np.isnan(score), -np.inf, score)
        if f"{which}_labeled_frame_idx" in arrays:
            given["labelled"] = arrays[f"{which}_labeled_frame_idx"][listed]
        masks, frame = (arrays[f"{which}_{name}"][own] for name in ("masks", "frame_idx"))
        found[f"{video:06d}"] = make_instances(masks, frame, shape=arrays["shape"], **given)
    return found


def _of_video(arrays: Mapping[str, Array], prefix: str, video: int) -> Any:
    """Which entries of frame indices are of a video."""
    return arrays[f"{prefix}video_idx"] == video if f"{prefix}video_idx" in arrays else slice(None)


def parts(run: Run, score: str, kind: str) -> list[float]:
    """The parts of one kind of a score, in their order."""
    return [value.value for name, value in run.scores.items() if name.startswith(f"{score}@{kind}:")]
