"""`sleap-mask`: masks of instances as the evaluation of SLEAP-NN matches, compares and ranks them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from karat.metric import Sums
from karat.metrics.mask_matches import Role, iou
from karat.run import Run

from ._masks import evaluated, parts
from .case import Answer, Case

SIZES = ("small", "medium", "large")
SCHEMES = {"": "third", "coco": "size"}
COCO = [1024.0, 9216.0]
SCHEME = "percentile"


def answer(case: Case) -> Answer:
    """Every quantity that the case asks for."""
    run = evaluated(case, "mask")
    return Answer({"detection_metrics": detection(run), "mask_metrics": of_pairs(run), "mask_voc_metrics": ranked(run)})


def detection(run: Run) -> dict[str, float]:
    """What was found; masks have no distances."""
    names = ("precision", "recall", "f1", "n_tp", "n_fp", "n_fn")
    return scores(run, "mask_", *names) | dict.fromkeys(("avg", "p50", "p75", "p90", "p95", "p99"), math.nan)


def of_pairs(run: Run) -> dict[str, Any]:
    """What is said of matched masks, and the IoU of each."""
    rows = Sums(run.rows["mask_matches"].columns)
    per_size: dict[str, Any] = {"scheme": SCHEME}
    for scheme, kind in SCHEMES.items():
        found = {"edges": edges(run, kind)}
        columns = [parts(run, f"mask_{name}", kind) for name in ("n_gt", "n_tp", "mean_iou")]
        for size, *of_size in zip(SIZES, *columns, strict=True):
            found[size] = dict(zip(("n_gt", "n_tp", "mean_iou"), of_size, strict=True))
        per_size |= {scheme: found} if scheme else found
    plain = ("pq", "sq", "rq", "mean_iou", "mean_iou_all_gt", "mean_boundary_iou", "mean_cldice", "n_fp", "n_fn")
    return {
        **scores(run, "mask_", *plain, "oversegmentation", "undersegmentation"),
        **scores(run, "mask_iou_", "min", "max", "p25", "p50", "p75"),
        "n_matched": run.scores["mask_n_tp"].value,
        "per_size": per_size,
        "ious": iou(rows, rows.role == Role.PAIR).tolist(),
    }


def ranked(run: Run) -> dict[str, Any]:
    """Average precision and recall, of all masks and by size."""
    found: dict[str, Any] = {
        "AP": parts(run, "mask_voc.AP", "threshold"),
        "recalls": parts(run, "mask_voc.AR", "threshold"),
        "iou_thresholds": np.linspace(0.5, 0.95, 10).tolist(),
        "AR": run.scores["mask_voc.mAR"].value,
        "n_gt": run.scores["mask_n_gt"].value,
        "size_scheme": SCHEME,
        **scores(run, "mask_voc.", "mAP", "AP50", "AP75"),
    }
    for scheme, kind in SCHEMES.items():
        prefix = f"{scheme}." if scheme else ""
        found[f"{prefix}size_edges"] = edges(run, kind)
        for name, score in (("AP", "mask_voc.mAP"), ("n_gt", "mask_n_gt")):
            values = zip(SIZES, parts(run, score, kind), strict=True)
            found |= {f"{prefix}{name}_{size}": value for size, value in values}
    return {f"mask_voc.{name}": value for name, value in found.items()}


def edges(run: Run, kind: str) -> list[float]:
    """The least medium and the least large area."""
    return COCO if kind == "size" else [run.scores[f"mask_area_{name}"].value for name in ("p33", "p67")]


def scores(run: Run, prefix: str, *names: str) -> dict[str, float]:
    """Scores without what their names begin with."""
    return {name: run.scores[f"{prefix}{name}"].value for name in names}
