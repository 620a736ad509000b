"""The features of both sides, as rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np

from karat.errors import Inapplicable, InputError
from karat.kernels.features import same_width
from karat.kernels.frechet import Side, of_features, of_statistics
from karat.metric import Array, Statistic, Sums
from karat.rows import Elements
from karat.sources.feature_sets import FeatureSet

NAN = {"nan_input": "NaN among features is an error that names the first row"}


class Part(IntEnum):
    """What a row is."""

    PRED = 0
    PRED_MEAN = 1
    PRED_COVARIANCE = 2
    TRUTH = 3
    TRUTH_MEAN = 4
    TRUTH_COVARIANCE = 5


@dataclass(frozen=True)
class FeatureRows(Statistic):
    """A row for the features of each image of either side; where only statistics are known, one for their mean and one
    for each row of their covariance, with the number of images that they are of (0: not said)."""

    unit: ClassVar = "element"
    record: ClassVar = "features"

    def measure(self, pred: FeatureSet, truth: FeatureSet) -> Elements:
        if not (pred.length or len(pred.mean)) or not (truth.length or len(truth.mean)):
            raise Inapplicable("there are no images on one side.")
        blocks, parts, counts = [], [], []
        for side, first in ((pred, Part.PRED), (truth, Part.TRUTH)):
            for block, kind in ((side.features, 0), (side.mean[None, :], 1), (side.covariance, 2)):
                if block.size:
                    blocks.append(block)
                    parts.append(np.full(len(block), first + kind, np.int8))
                    counts.append(np.full(len(block), side.count if kind else 1, np.int64))
        if len({Part(int(part[0])) < Part.TRUTH for part in parts}) < 2:
            raise InputError("one side has logits only: features of both were expected.")
        for block in blocks[1:]:
            same_width(blocks[0].shape[1], block.shape[1])
        dtype = np.result_type(*blocks)
        columns = {
            "features": np.concatenate([block.astype(dtype, copy=False) for block in blocks]),
            "part": np.concatenate(parts),
            "count": np.concatenate(counts),
        }
        return Elements(np.zeros(len(columns["part"]), np.int32), columns)


def of_pred(s: Sums) -> Array:
    """The features of the prediction, rows (n, d)."""
    return np.asarray(s.features[s.part == Part.PRED])


def of_truth(s: Sums) -> Array:
    """Those of the truth."""
    return np.asarray(s.features[s.part == Part.TRUTH])


def normal_of(s: Sums, side: Part) -> Side | None:
    """The normal distribution of a side, PRED or TRUTH; None of fewer than two images."""
    features, mean = s.features[s.part == side], s.features[s.part == side + 1]
    if len(mean) > 1 or (len(mean) and len(features)):
        raise InputError("Statistics cannot be joined with other data: evaluate each by itself, or give the features.")
    if len(mean):
        count = int(s.count[s.part == side + 1][0])
        return of_statistics(mean[0], s.features[s.part == side + 2], count or None)
    return of_features(features) if len(features) > 1 else None
