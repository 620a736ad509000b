"""Keypoints, instances and tracks of animals and people, as SLEAP-NN and COCO evaluate them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from karat.errors import InputError, told
from karat.metric import Metric, snake
from karat.metrics.centroid import Centroid
from karat.metrics.clear_mot import ClearMOT
from karat.metrics.coco_matches import CocoMatches
from karat.metrics.distance import Distance
from karat.metrics.hota import HOTA
from karat.metrics.identity import Identity
from karat.metrics.keypoint_error import NormalizedError, PckAUC
from karat.metrics.node_sigma import write_sigmas
from karat.metrics.oks import OKS
from karat.metrics.pck import PCK
from karat.metrics.pose_counts import FrameCounts, PoseCounts
from karat.metrics.visibility import Visibility
from karat.metrics.voc import OksVOC, PckVOC
from karat.suite import Export, Option, Protocol, Suite, literal
from karat.suites._sleap_nn import write

_BY_OKS = (OKS(), OksVOC(), PckVOC(), PCK(), Distance(), Visibility(), NormalizedError(), PckAUC(), PoseCounts())
_TRACKING = (HOTA(), ClearMOT(), Identity())
_SIGMAS = ("matches.sigma", "coco_matches.sigma", "tracks.sigma")
_PUBLISHED_VOC = {"inclusive": True, "false_positives": False, "arithmetic": "published"}
_COMMON = {"frames": "common", "repeated": "skip"}
_SLEAP_NN: dict[str, dict[str, Any]] = {
    "matches": {"thin": "exact", "unlabelled": "miss", **_COMMON},
    "pose_frames": _COMMON,
    "oks_voc": _PUBLISHED_VOC,
    "pck_voc": {**_PUBLISHED_VOC, "within": "strict", "denominator": "all"},
    "pck": {"inclusive": False, "denominator": "all"},
    "centroid_matches": {"pred_centroid": "first", **_COMMON},
    "centroid": {"undefined_truth": "miss", "empty": "zero"},
    "tracks": {"min_area": 1e-9, "unlabelled": "miss", "nodeless": "count"},
    "hota": {"undefined": "trackeval"},
    "clear_mot": {"undefined": "trackeval"},
    "identity": {"undefined": "trackeval"},
}


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


def _names(*metrics: Metric) -> tuple[str, ...]:
    return tuple(snake(type(metric).__name__) for metric in metrics)


def _write_sigmas(run: Any, path: Path) -> None:
    write_sigmas({name: value.value for name, value in run.scores.items()}, path)


def _differ(question: str, spec: str, reference: str, coco: str, newer: str = "as reference") -> Any:
    return question, {"spec": spec, "reference": reference, "reference-0.3.5": newer, "coco": coco}


SUITE = Suite(
    name="pose",
    title="Pose: keypoints, instances, visibility, average precision, centroids and tracks",
    fields={"pred": "poses", "truth": "poses"},
    required=("pred", "truth"),
    truth="truth",
    metrics=(*_BY_OKS, Centroid(), FrameCounts(), *_TRACKING),
    options={
        "sigma": Option(_SIGMAS),
        "sigmas": Option(_SIGMAS, _sigmas),
        "default_score": Option(("matches.default_score", "coco_matches.default_score")),
        "match": Option(
            selects={
                "oks": _names(*_BY_OKS, FrameCounts(), *_TRACKING),
                "centroid": _names(Centroid(), FrameCounts()),
            }
        ),
    },
    exports={
        "legacy_npz": Export("The results as SLEAP-NN's metrics.npz, and its .json.", write),
        "sigmas_out": Export("The sigmas that node_sigma found, as JSON for --sigmas.", _write_sigmas),
    },
    headline=(
        *("mOKS", "mOKS_all_gt", "oks_voc.mAP", "oks_voc.mAR", "pck_voc.mAP", "pck_voc.mAR", "mPCK", "PCK@5", "PCK@10"),
        *("Avg_dist", *(f"Dist@p{p}" for p in (50, 75, 90, 95, 99)), "NME", "PCK_AUC"),
        *(f"visibility_{name}" for name in ("precision", "recall", "tp", "fp", "tn", "fn")),
        *(f"centroid_{name}" for name in ("dist_avg", "dist_median", "dist_p90", "dist_p95", "dist_max")),
        *(f"centroid_{name}" for name in ("precision", "recall", "f1", "n_tp", "n_fp", "n_fn", "n_gt_undefined")),
        *("HOTA", "DetA", "AssA", "LocA", "MOTA", "MOTP", "IDSW", "Frag", "MT", "PT", "ML", "IDF1", "IDP", "IDR"),
        *("n_gt", "n_pred", "n_pairs", "n_fn_unmatched", "n_fp_unmatched", "n_weak_pairs"),
        *("n_gt_ignored", "n_gt_degenerate", "n_pred_ignored", "n_pred_nodeless", "n_pred_outside"),
        *("n_frames_gt", "n_frames_skipped", "n_frames_without_prediction", "n_frames_empty"),
        *("dlc_rmse", "dlc_rmse_pcutoff", "dlc_map", "dlc_mar", "sigma"),
    ),
    tables=("node",),
    protocols={
        "spec": Protocol("The specification's text, with every instance counted."),
        "reference": Protocol("The numbers of talmolab/sleap-nn@f45798b2 (0.3.3), defects included.", _SLEAP_NN),
        "reference-0.3.5": Protocol(
            "The numbers of SLEAP-NN 0.3.5, which scores truths without an area by their distance in pixels.",
            {**_SLEAP_NN, "matches": {**_SLEAP_NN["matches"], "thin": "pixels", "min_area": 1e-9}},
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
    differences=[
        _differ(
            "predictions without a partner",
            "false positives of AP, counted",
            "forgotten by AP: confident far ones change nothing; counted beside it",
            "false positives, the first 20 of a frame",
        ),
        _differ(
            "true frames without a predicted frame",
            "their truths are missed",
            "left out, counted as skipped",
            "their truths are missed",
        ),
        _differ("true positive of AP", "score > threshold", "score >= threshold", "score >= threshold"),
        _differ(
            "thresholds and rounding",
            "exact decimals, counts as integers: a perfect prediction is 1",
            "linspace (.8999999999999999) and an epsilon: .9999999999999998",
            "as reference",
        ),
        _differ(
            "matching of AP",
            "one greedy pass by falling score; one set of pairs for all metrics",
            "as spec",
            "anew at every threshold; other metrics as spec",
        ),
        _differ(
            "a truth without a visible node", "ignored, counted", "missed", "ignored, and so are predictions in its box"
        ),
        _differ(
            "a truth of an area below 1 px^2",
            "left out of OKS and AP, counted; matched last by distance, for distances, PCK and visibility",
            "OKS asks for equality: a pixel off is 0",
            "as reference",
            "1 - mean distance / 50 px of the nodes that both sides show",
        ),
        _differ(
            "scale of OKS", "box of the visible true nodes", "as spec", "the area given with the truth, else the box"
        ),
        _differ("PCK within a distance", "<=", "<", "as spec"),
        _differ(
            "PCK of nodes that the truth lacks",
            "left out",
            "wrong: perfect predictions of half a skeleton score .5",
            "as spec",
        ),
        _differ("a frame listed twice", "an error that names it", "left out", "an error that names it"),
        _differ(
            "labelled frames without an instance",
            "evaluated: predictions there are false",
            "left out (an error without user_labels_only)",
            "as spec",
        ),
        _differ("centroid of a prediction", "mean of the seen nodes", "the first seen node", "as spec"),
        _differ("a truth without a centroid", "left out, counted", "missed", "as spec"),
        _differ("precision, recall, F1 of 0 / 0", "undefined", "0", "as spec"),
        _differ("tracking of nothing", "undefined", "divided by 1, as TrackEval does", "as spec"),
        _differ(
            "skeletons",
            "nodes are matched by name; unequal ones are an error that lists both",
            "as spec (the published code pairs nodes by place)",
            "as spec",
        ),
        _differ("predictions without a score", "an error, or default_score", "as spec", "as spec"),
    ],
    citation="Pereira et al. 2022 (SLEAP), doi:10.1038/s41592-022-01426-1; Lin et al. 2014 (COCO), arXiv:1405.0312.",
)
