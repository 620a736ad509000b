"""Masks of instances of animals and other things in videos, as SLEAP-NN evaluates them."""

from __future__ import annotations

from typing import Any

from karat.metrics.mask_boundary_iou import MaskBoundaryIoU
from karat.metrics.mask_cl_dice import MaskClDice
from karat.metrics.mask_counts import MaskCounts, MaskFrames
from karat.metrics.mask_detection import MaskDetection
from karat.metrics.mask_fragments import MaskFragments
from karat.metrics.mask_iou import MaskIoU
from karat.metrics.mask_pq import MaskPQ
from karat.metrics.mask_voc import MaskVOC
from karat.metrics.semantic import Semantic
from karat.suite import Option, Protocol, Suite

_BY_MASK = (
    "mask_detection",
    "mask_iou",
    "mask_pq",
    "mask_boundary_iou",
    "mask_cl_dice",
    "mask_fragments",
    "mask_voc",
    "mask_counts",
)
_PADDED: dict[str, Any] = {"frames": "common", "sizes": "padded"}
_PUBLISHED: dict[str, Any] = {"arithmetic": "published"}

SUITE = Suite(
    name="instances",
    title="Instances: masks of animals and things, matched, ranked, and as one foreground",
    fields={"pred": "instance_masks", "truth": "instance_masks"},
    required=("pred", "truth"),
    truth="truth",
    metrics=(
        MaskDetection(),
        MaskIoU(),
        MaskPQ(),
        MaskBoundaryIoU(),
        MaskClDice(),
        MaskFragments(),
        MaskVOC(),
        Semantic(),
        MaskCounts(),
        MaskFrames(),
    ),
    options={
        "match": Option(selects={"mask": (*_BY_MASK, "mask_frames"), "semantic": ("semantic", "mask_frames")}),
        "default_score": Option(("mask_ranks.default_score",)),
    },
    headline=(
        "mask_precision",
        "mask_recall",
        "mask_f1",
        "mask_mean_iou",
        "mask_mean_iou_all_gt",
        "mask_pq",
        "mask_sq",
        "mask_rq",
        "mask_mean_boundary_iou",
        "mask_mean_cldice",
        "mask_oversegmentation",
        "mask_undersegmentation",
        "mask_voc.mAP",
        "mask_voc.mAR",
        "mask_voc.AP50",
        "mask_voc.AP75",
        "semantic_mean_iou",
        "semantic_mean_cldice",
        "semantic_mean_boundary_iou",
        "mask_n_gt",
        "mask_n_pred",
        "mask_n_frames",
    ),
    tables=("size", "third"),
    protocols={
        "spec": Protocol("The published definitions, right at every edge."),
        "reference": Protocol(
            "The numbers of talmolab/sleap-nn@f45798b2 (0.3.3), defects included.",
            {
                "mask_matches": {"assignment": "then_gate", "blank": "count", **_PADDED},
                "mask_ranks": {"default_score": 1.0, "blank": "count", **_PADDED},
                "foregrounds": _PADDED,
                "mask_detection": _PUBLISHED,
                "mask_voc": _PUBLISHED,
                "semantic": {"empty_truth": "skip"},
            },
        ),
    },
    differences=[
        (
            "a labelled frame that the predictions do not list",
            {"spec": "its truths are missed; its foreground is all wrong", "reference": "left out"},
        ),
        (
            "pairs",
            {
                "spec": "as many of an IoU of at least 0.5 as there can be, then the largest total IoU",
                "reference": "the largest total IoU, of which those below 0.5 are let go",
            },
        ),
        (
            "a mask without a pixel",
            {"spec": "left out, counted", "reference": "an instance like others; two of them are equal"},
        ),
        (
            "a prediction without a score",
            {"spec": "an error; where none has one, no average precision", "reference": "a score of 1"},
        ),
        (
            "precision, recall or F1 of 0 / 0",
            {"spec": "undefined, counted", "reference": "0"},
        ),
        (
            "recalls of the average precision",
            {"spec": "whole numbers, compared exactly", "reference": "compared in floating point"},
        ),
        (
            "a frame with a predicted foreground and no true one",
            {"spec": "all wrong, 0", "reference": "left out"},
        ),
        (
            "sides of different sizes",
            {"spec": "an error", "reference": "laid on each other at the top left"},
        ),
    ],
    citation=(
        "Pereira et al. 2022 (SLEAP), doi:10.1038/s41592-022-01426-1; Kirillov et al. 2019, arXiv:1801.00868; "
        "Cheng et al. 2021, arXiv:2103.16562; Shit et al. 2021, arXiv:2003.07311; Lin et al. 2014, arXiv:1405.0312."
    ),
)
