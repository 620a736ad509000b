"""What is doubtful about poses before they are compared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from karat.errors import InputError

from .poses import Poses
from .records import Finding


def find(pred: Poses, truth: Poses) -> Iterator[Finding]:
    """Of one video."""
    for side, poses in (("prediction", pred), ("truth", truth)):
        if len(poses.repeated):
            yield "error", f"the {side} lists frame {poses.repeated[0]} twice: merge its instances into one."
    one_node = len(pred) and pred.points.shape[1] == 1 < truth.points.shape[1]
    if one_node:
        yield "note", "the predictions have one node: only centroids are compared."
    else:
        try:
            pred.ordered_as(truth)
        except InputError as error:
            yield "error", str(error)
    unscored = int(np.isnan(pred.score).sum())
    if unscored and not one_node:
        yield "error", f"{unscored} of {len(pred)} predictions have no score: pass --default-score 1, say."
    elif len(pred) > 1 and not np.ptp(pred.score):
        yield "warning", "all predictions have one score: their order in the file decides the average precision."
    beyond = ~np.isin(pred.frame, truth.labelled)
    if len(pred) and beyond.all():
        yield "error", "no prediction is in a labelled frame: are frames counted from 0 on both sides?"
    elif beyond.any():
        yield "note", f"{int(beyond.sum())} of {len(pred)} predictions are in frames that are not labelled: left out."
    absent = int((~np.isin(truth.labelled, pred.labelled)).sum())
    if absent:
        yield "note", f"{absent} of {truth.length} labelled frames are not in the predictions."
    nodeless = int(np.isnan(truth.points[..., 0]).all(axis=1).sum())
    if nodeless:
        yield "note", f"{nodeless} of {len(truth)} true instances have no visible node."
