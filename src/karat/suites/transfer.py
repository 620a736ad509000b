"""Fidelity of control-conditioned video models (ControlNet, Cosmos Transfer) to their control signals, on pixels."""

from __future__ import annotations

from typing import Any

from karat.metrics.blur_ssim import BlurSSIM
from karat.metrics.canny_f1 import CannyF1
from karat.metrics.depth_rmse import DepthRMSE
from karat.metrics.segment_iou import SegmentIoU
from karat.suite import Protocol, Suite

_PUBLIC_CODE: dict[str, dict[str, Any]] = {
    "blur_ssim": {"data_range": "truth", "pool": "sample"},
    "canny_f1": {"edgeless": "either"},
    "depth_rmse": {"invalid_frame": "zero", "cap": 10.0},
    "segment_iou": {"overlap": "last", "recall_over": "pairs", "nothing": "zero", "inside": 1 / 3},
}
_FIRST_121: dict[str, Any] = {"first": 121, "on_length": "truncate", "on_size": "resize"}

SUITE = Suite(
    name="transfer",
    title="Transfer: fidelity of generated videos to blur, edge, depth and segment controls",
    fields={
        "pred": "frames",
        "truth": "frames",
        "pred_depth": "depth",
        "truth_depth": "depth",
        "pred_segments": "segments",
        "truth_segments": "segments",
    },
    required=("pred", "truth"),
    truth="truth",
    metrics=(BlurSSIM(), CannyF1(), DepthRMSE(), SegmentIoU()),
    protocols={
        "spec": Protocol("The specification's text, right at every edge."),
        "reference": Protocol(
            "The numbers of trungtpham/pai-bench-c-cosmos3@5864378, defects included.",
            _PUBLIC_CODE,
            _FIRST_121,
        ),
        "reference-upstream": Protocol(
            "The numbers of SHI-Labs/physical-ai-bench@5bf80d1, defects included.",
            {
                **_PUBLIC_CODE,
                "canny_f1": {"edgeless": "either", "edges_of": "rgb"},
                "depth_rmse": {"invalid_frame": "zero", "cap": None},
                "segment_iou": {**_PUBLIC_CODE["segment_iou"], "empty": "keep", "inside": 0.0},
            },
            {**_FIRST_121, "depth_resize": "nearest"},
        ),
        "paper": Protocol(
            "The definitions printed in arXiv:2503.14492 on the first 121 frames; what it leaves open is as in spec.",
            {},
            _FIRST_121,
        ),
    },
    differences=[
        (
            "SSIM dynamic range",
            {
                "spec": "255 or the declared range",
                "reference": "max - min of each blurred true frame; a constant frame makes the video undefined",
                "reference-upstream": "as reference",
                "paper": "not said: as spec",
            },
        ),
        (
            "Canny input",
            {
                "spec": "grey (ITU-R 601)",
                "reference": "grey",
                "reference-upstream": "the three RGB channels",
                "paper": "not said: as spec",
            },
        ),
        (
            "a video without edges",
            {
                "spec": "one side: F1 0; both: undefined, counted",
                "reference": "either side: dropped from the mean",
                "reference-upstream": "as reference",
                "paper": "not said: as spec",
            },
        ),
        (
            "depth residuals",
            {
                "spec": "as they are",
                "reference": "clipped to +-10",
                "reference-upstream": "as they are",
                "paper": "as spec",
            },
        ),
        (
            "a frame without valid depth",
            {
                "spec": "undefined, counted, left out of the mean",
                "reference": "scores 0, which is perfect, and counts",
                "reference-upstream": "as reference",
                "paper": "not said: as spec",
            },
        ),
        (
            "infinite depth",
            {
                "spec": "invalid, counted in a note",
                "reference": "as spec, where the code takes it for a number",
                "reference-upstream": "as reference",
                "paper": "as spec",
            },
        ),
        (
            "resized depth",
            {
                "spec": "area when shrinking, linear when growing",
                "reference": "as spec",
                "reference-upstream": "nearest",
                "paper": "as spec",
            },
        ),
        (
            "seg_recall",
            {
                "spec": "matches / true segments",
                "reference": "matches / paired segments",
                "reference-upstream": "as reference",
                "paper": "as spec",
            },
        ),
        (
            "overlapping segments",
            {
                "spec": "kept, each mask whole",
                "reference": "the later mask takes the pixel",
                "reference-upstream": "as reference",
                "paper": "as spec",
            },
        ),
        (
            "empty segments",
            {"spec": "left out", "reference": "left out", "reference-upstream": "kept and matched", "paper": "as spec"},
        ),
        (
            "segments of a region",
            {
                "spec": "those with a pixel in it",
                "reference": "those with a third of their pixels in it",
                "reference-upstream": "all",
                "paper": "as spec",
            },
        ),
        (
            "no true segment",
            {
                "spec": "undefined, counted",
                "reference": "scores 0 and counts",
                "reference-upstream": "as reference",
                "paper": "as spec",
            },
        ),
        (
            "frames",
            {
                "spec": "all; unequal lengths or sizes are an error",
                "reference": "the first 121, cut to the shorter; resized to the truth",
                "reference-upstream": "as reference",
                "paper": "as reference",
            },
        ),
    ],
    citation="NVIDIA 2025, Cosmos-Transfer1, arXiv:2503.14492; specification: nvidia-cosmos/cosmos-cookbook@48a30c0.",
)
