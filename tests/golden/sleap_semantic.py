"""`sleap-semantic`: the foreground of every frame as the evaluation of SLEAP-NN compares it."""

from __future__ import annotations

from karat.metric import Sums
from karat.metrics.mask_matches import boundary_iou, centre_dice, iou

from ._masks import evaluated
from .case import Answer, Case


def answer(case: Case) -> Answer:
    """Means over the frames whose truth has a pixel, and the values of these frames."""
    run = evaluated(case, "semantic")
    names = ("mean_iou", "mean_cldice", "mean_boundary_iou", "n_frames")
    means = {name: run.scores[f"semantic_{name}"].value for name in names}
    rows = Sums(run.rows["foregrounds"].columns)
    each = {"ious": iou, "cldices": centre_dice, "boundary_ious": boundary_iou}
    return Answer({"semantic_metrics": means | {name: of(rows, rows.held).tolist() for name, of in each.items()}})
