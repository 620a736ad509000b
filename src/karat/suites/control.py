"""Objects in generated videos that are asked to follow boxes, as Peekaboo evaluates them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from karat.metrics.box_ap50 import BoxAP50
from karat.metrics.box_centroid import BoxCentroid
from karat.metrics.box_counts import BoxCounts
from karat.metrics.box_coverage import BoxCoverage
from karat.metrics.box_iou import BoxIoU
from karat.metrics.box_success import BoxSuccess
from karat.metrics.detector_ceiling import DetectorCeiling
from karat.metrics.following import PUBLISHED_EPS, PublishedFollowing
from karat.metrics.still_box import StillBox
from karat.suite import Export, Option, Protocol, Suite
from karat.suites._peekaboo import in_paper, write_lines

_PUBLISHED = PublishedFollowing()
_ORDERED = ("following", "published_following", "ceiling_following")


def _as_printed(scores: Mapping[str, float], names: Mapping[str, str]) -> str:
    """Shares in percent with a place, distances with two, as the paper's tables have them."""
    shown = {
        name: f"{scores[key]:.2f}" if key == "centroid_distance" else f"{100 * scores[key]:.1f}"
        for name, key in names.items()
        if not math.isnan(scores.get(key, math.nan))
    }
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _comments(scores: Mapping[str, float]) -> Iterator[str]:
    """What a reader of the scores must know."""
    main = {"mIoU": "miou", "AP50": "ap50", "Coverage %": "coverage", "CD": "centroid_distance"}
    if printed := _as_printed(scores, main):
        yield f"As the paper prints them: {printed}."
    if scores.get("coverage") == 0:
        yield f"No video is covered{': miou is undefined' if math.isnan(scores.get('miou', 0)) else ''}."
    if (still := scores.get("still_miou", -1)) >= scores.get("miou_all", math.inf):
        yield f"A box that never moves has a miou of {still:.3f}: these scores do not show that the object follows."


def _differ(question: str, spec: str, reference: str, paper: str = "as spec") -> tuple[str, dict[str, str]]:
    return question, {"spec": spec, "reference": reference, "paper": paper}


def _in_paper(source: Any) -> bool:
    return in_paper(source.caption)


SUITE = Suite(
    name="control",
    title="Control: generated objects that follow boxes",
    fields={"pred": "tubes", "truth": "tubes", "ceiling": "tubes"},
    required=("pred", "truth"),
    truth="truth",
    metrics=(
        BoxCoverage(),
        BoxIoU(),
        BoxCentroid(),
        BoxAP50(),
        BoxSuccess(),
        StillBox(),
        DetectorCeiling(),
        BoxCounts(),
    ),
    shard_samples=64,
    detects={"videos": "pred", "truth_videos": "ceiling"},
    cluster="record",
    subsets={"paper": _in_paper},
    options={"box_order": Option(tuple(f"{name}.box_order" for name in _ORDERED), read=str)},
    exports={"printed": Export("What the published script prints.", write_lines, "reference")},
    headline=(
        *("coverage", "miou", "centroid_distance", "ap50", "ap50_detected", "miou_all", "miou_frame", "miou_frame_all"),
        *("detection_rate", "success_auc", "precision_20px"),
        *("centroid_distance_px", "trajectory_l1", "trajectory_l1_px"),
        *("still_miou", "still_ap50", "still_centroid_distance"),
        *("ceiling_coverage", "ceiling_miou", "ceiling_centroid_distance", "ceiling_ap50"),
        *("n_records", "n_missing_prediction", "n_undefined_gt", "n_frames_scored", "n_frames_undetected"),
        *("n_extra_detections", "n_boxes_clipped", "n_boxes_clipped_truth", "n_frames_unmet", "n_frames_surplus"),
    ),
    protocols={
        "spec": Protocol("The specification's text, right at every edge.", reading={"on_stray": "error"}),
        "reference": Protocol(
            "The two lines that get_metrics.py of microsoft/Peekaboo@0aa5a86 prints, defects included.",
            {
                "box_coverage": {"of": _PUBLISHED},
                "box_iou": {"of": _PUBLISHED, "filter": "majority", "eps": PUBLISHED_EPS},
                "box_centroid": {"of": _PUBLISHED},
                "box_ap50": {"of": _PUBLISHED, "frames": "detected", "weight": "detections"},
                "box_success": {"of": _PUBLISHED},
                "still_box": {"of": _PUBLISHED},
                "box_counts": {"of": _PUBLISHED},
            },
        ),
        "paper": Protocol(
            "Section 5.1.1 of the paper: AP50 of the frames with a detection.",
            {"box_ap50": {"frames": "detected"}},
            reading={"on_stray": "error"},
        ),
    },
    differences=[
        _differ(
            "covered", "a detection in more than half of the scored frames", "more than 8 detections, however long"
        ),
        _differ("videos of mIoU", "at least half of the frames detected", "those that are covered; line 2: all"),
        _differ(
            "IoU of a video",
            "of the tube, over frames that a box was asked for in",
            "of the tube, over all frames: a detection that nobody asked for is false area; 1e-5 added to the union",
        ),
        _differ(
            "AP50",
            "frames with IoU >= 0.5 / frames with a box asked for, mean over videos; ap50_detected beside it",
            "/ frames with a detection; weighted by the detections (line 2, here ap50_detected: mean over videos); an "
            "exact half fails for the 1e-5",
            "/ frames with a detection, mean over videos",
        ),
        _differ(
            "an undetected frame in CD",
            "left out, counted",
            "a prediction in the corner (0, 0), which makes most of it",
        ),
        _differ("CD is normalised by", "the frame's own diagonal", "658.92 px, the diagonal of 576x320"),
        _differ(
            "detections", "non-empty boxes of the scored frames", "num_bb of the file: later frames and empty boxes too"
        ),
        _differ("a video without a prediction", "not covered, nothing detected", "left out"),
        _differ("a record without a box", "undefined, counted", "left out (less than 5 pixels)"),
        _differ("a prediction without a record", "an error (--on-stray note leaves it out)", "left out, told"),
        _differ("two predictions of one id", "an error", "two records"),
        _differ("the order of LaSOT's boxes", "x1, x2, y1, y2, told", "as x1, y1, x2, y2: most are empty"),
        _differ(
            "edges of boxes",
            "exact; with masks rounded to the pixels",
            "cut to whole pixels; a negative one counts from the far side",
        ),
        _differ("a box that leaves the frame", "cut at the frame, counted", "as numpy slices"),
        _differ("an inverted box", "an error that names record and frame", "paints nothing"),
        _differ("the detector's ceiling", "as the scores", "in the arithmetic of spec"),
        _differ("centroid of a mask", "the mean of its pixels", "the middle of its widest and its last row and column"),
        _differ(
            "frames", "the first that both sides have, counted; align=error refuses", "the first that both sides have"
        ),
    ],
    comments=_comments,
    citation="Jain et al. 2024 (Peekaboo), arXiv:2312.07509; microsoft/Peekaboo@0aa5a86, eval/README.md.",
)
