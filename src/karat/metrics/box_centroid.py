"""How far the object is from where it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.following import Following


@dataclass(frozen=True)
class BoxCentroid(Metric):
    """Centroid distance: between the centres of the found object and of the box asked for, / the frame's diagonal.

    pred, truth: tubes. The mean of the frames that have both; undefined without any. `_l1` adds up the distances along
    both axes (Tora's TrajError), `_px` is in pixels; `centroid_distance_px` is ObjMC, which others call EPE.
    Jain et al. 2024 (Peekaboo), arXiv:2312.07509; Wu et al. 2024 (DragAnything), arXiv:2403.07420; Zhang et al. 2024
    (Tora), arXiv:2407.21705.
    """

    of: Following = Following()
    pool: Literal["sample"] = "sample"

    scores: ClassVar = {
        "centroid_distance": Score("lower", (0, 1), 0, "in diagonals of the frame"),
        "centroid_distance_px": Score("lower", (0, np.inf), 0, "in pixels: ObjMC, EPE"),
        "trajectory_l1": Score("lower", (0, 2**0.5), 0, "along the axes, in diagonals of the frame"),
        "trajectory_l1_px": Score("lower", (0, np.inf), 0, "along the axes, in pixels: TrajError"),
    }
    aliases: ClassVar = ("cd", "obj_mc", "traj_error", "trajectory_l2")

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "centroid_distance": ratio(s.l2, s.placed),
            "centroid_distance_px": ratio(s.l2_px, s.placed),
            "trajectory_l1": ratio(s.l1, s.placed),
            "trajectory_l1_px": ratio(s.l1_px, s.placed),
        }
