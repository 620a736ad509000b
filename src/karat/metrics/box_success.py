"""How the share of good frames falls with what is called good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.following import OVERLAPS, PIXELS, Following


@dataclass(frozen=True)
class BoxSuccess(Metric):
    """Success: the share of frames with an IoU above a threshold, and its mean over the thresholds 0, .05, ..., 1;
    precision: the share of frames whose centres are at most 20 px apart.

    pred, truth: tubes. Of the frames that a box was asked for in, an undetected one being a miss. Nothing exceeds 1, so
    that a perfect tracker has an area of 20/21, as in the published benchmarks.
    Wu, Lim & Yang 2013, doi:10.1109/CVPR.2013.312; Fan et al. 2019 (LaSOT), doi:10.1109/CVPR.2019.00552.
    """

    of: Following = Following()
    pool: Literal["sample"] = "sample"

    scores: ClassVar = {
        "success_auc": Score("higher", (0, 20 / 21), 20 / 21, "area under the success curve"),
        "precision_20px": Score("higher", (0, 1), 1, "frames with centres at most 20 px apart"),
    }
    parts: ClassVar = {"iou": "the IoU that must be exceeded", "px": "the largest distance in pixels"}
    aliases: ClassVar = ("success",)

    def score(self, s: Sums) -> dict[str, Array]:
        success = ratio(s.exceeds, s.truth[:, None])
        precision = ratio(s.near, s.truth[:, None])
        curve = {f"success_auc@iou:{t:.2f}": success[:, i] for i, t in enumerate(OVERLAPS)}
        within = {f"precision_20px@px:{px}": precision[:, i] for i, px in enumerate(PIXELS)}
        return {
            "success_auc": success.sum(axis=1) / np.float64(len(OVERLAPS)),
            "precision_20px": precision[:, PIXELS.index(20)],
            **curve,
            **within,
        }
