"""Tracks of a case, and what Karat says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import karat
from karat.metric import Metric
from karat.metrics.tracks import Tracks

from .case import Case

SIDES = {"pred": "pr", "truth": "gt"}
DECLARED = {
    "match_method": "a text: names the similarity",
    "global_identity": "no number: tracks are those of one video",
    "notes": "texts, whose counts are compared as numbers",
}


def tracks(case: Case, **fields: Any) -> Tracks:
    """The statistic with the case's parameters; instances without nodes and small boxes as in the published code."""
    params = {
        "sigma": case.protocol["params"]["oks_stddev"],
        "match_threshold": case.protocol["params"]["match_threshold"],
    }
    return Tracks(**params, min_area=1e-9, unlabelled="miss", nodeless="count", **fields)


def scores(case: Case, *metrics: Metric) -> Mapping[str, float]:
    """All scores of the case's video."""
    arrays = case.arrays()
    video = {
        side: {
            "points": arrays[f"{key}_points"],
            "frame": arrays[f"{key}_frame"],
            "track": arrays[f"{key}_track"],
            "labelled": arrays[f"{key}_labeled_frame_idx"],
        }
        for side, key in SIDES.items()
    }
    meter = karat.Meter(*metrics)
    meter.update(**{side: [poses] for side, poses in video.items()})
    return meter.compute()


def answered(names: Mapping[str, str], found: Mapping[str, float]) -> dict[str, float]:
    """{their name: Karat's score}."""
    return {theirs: found[own] for theirs, own in names.items()}


def parameters(of: Tracks) -> dict[str, Any]:
    """What SLEAP-NN repeats of its call."""
    return {"match_threshold": of.match_threshold, "oks_stddev": of.sigma}
