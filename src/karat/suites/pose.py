"""Keypoints, instances and tracks of animals and people, as SLEAP-NN and COCO evaluate them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from karat.errors import InputError, told
from karat.metrics.centroid import Centroid
from karat.metrics.coco_matches import CocoMatches
from karat.metrics.distance import Distance
from karat.metrics.keypoint_error import NormalizedError, PckAUC
from karat.metrics.oks import OKS
from karat.metrics.pck import PCK
from karat.metrics.pose_counts import FrameCounts, PoseCounts
from karat.metrics.visibility import Visibility
from karat.metrics.voc import OksVOC, PckVOC
from karat.suite import Export, Option, Protocol, Suite, literal
from karat.suites._sleap_nn import write

_BY_OKS = ("oks", "oks_voc", "pck_voc", "pck", "distance", "visibility", "normalized_error", "pck_auc")
_COUNTS = ("pose_counts", "frame_counts")
_PUBLISHED_VOC = {"inclusive": True, "false_positives": False, "arithmetic": "published"}
_COMMON = {"frames": "common", "repeated": "skip"}


def _sigmas(value: Any) -> Any:
    """A number, one a node, or a JSON file of {node: sigma}."""
    if not isinstance(value, str | Path):
        return tuple(value.items()) if isinstance(value, dict) else value
    if not Path(value).is_file():
        return literal(str(value))
    try:
        given = json.loads(Path(value).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        given = None
    numbers = list(given.values()) if isinstance(given, dict) else given
    if not isinstance(numbers, list) or not numbers or not all(type(one) in (int, float) for one in numbers):
        raise InputError(f'{told(value)} holds no sigmas: write JSON such as {{"nose": 0.026, "tail": 0.05}}.')
    if isinstance(given, dict):
        return tuple((str(name), float(sigma)) for name, sigma in given.items())
    return tuple(map(float, numbers))


SUITE = Suite(
    name="pose",
    title="Pose: keypoints, instances, visibility, average precision, centroids and tracks",
    fields={"pred": "poses", "truth": "poses"},
    required=("pred", "truth"),
    truth="truth",
    metrics=(
        OKS(),
        OksVOC(),
        PckVOC(),
        PCK(),
        Distance(),
        Visibility(),
        NormalizedError(),
        PckAUC(),
        PoseCounts(),
        Centroid(),
        FrameCounts(),
    ),
    options={
        "sigma": Option(("matches.sigma", "coco_matches.sigma", "tracks.sigma")),
        "sigmas": Option(("matches.sigma", "coco_matches.sigma", "tracks.sigma"), _sigmas),
        "match": Option(selects={"oks": (*_BY_OKS, *_COUNTS), "centroid": ("centroid", "frame_counts")}),
    },
    exports={"legacy_npz": Export("Also write the results as SLEAP-NN's metrics.npz (and its .json).", write)},
    protocols={
        "spec": Protocol("The specification's text, with every instance counted."),
        "reference": Protocol(
            "The numbers of talmolab/sleap-nn@f45798b2 (0.3.3), defects included.",
            {
                "matches": {"thin": "exact", "unlabelled": "miss", **_COMMON},
                "pose_frames": _COMMON,
                "oks_voc": _PUBLISHED_VOC,
                "pck_voc": {**_PUBLISHED_VOC, "within": "strict", "denominator": "all"},
                "pck": {"inclusive": False, "denominator": "all"},
            },
        ),
        "coco": Protocol(
            "The numbers of pycocotools, whose matching is made anew at every threshold.",
            {
                "matches": {"thin": "exact", "scale": "given"},
                "oks_voc": {"of": CocoMatches(), "inclusive": True, "arithmetic": "published"},
                "pck_voc": {"inclusive": True, "arithmetic": "published"},
            },
        ),
    },
    citation="Pereira et al. 2022 (SLEAP), doi:10.1038/s41592-022-01426-1; Lin et al. 2014 (COCO), arXiv:1405.0312.",
)
