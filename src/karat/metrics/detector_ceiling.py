"""How well the detector itself finds the boxes: on the videos that these come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Array, Metric, Score, Sums, Weighted
from karat.metrics.box_ap50 import BoxAP50
from karat.metrics.box_centroid import BoxCentroid
from karat.metrics.box_coverage import OF_ONE, BoxCoverage
from karat.metrics.box_iou import BoxIoU
from karat.metrics.following import Following
from karat.rows import Elements
from karat.sources.tubes import Tube


@dataclass(frozen=True)
class CeilingFollowing(Following):
    """How the boxes that the detector finds in the true videos lie on those asked for, as `Following` has it."""

    def measure(self, ceiling: Tube, truth: Tube) -> Elements:
        return self.follow(ceiling, truth)


@dataclass(frozen=True)
class DetectorCeiling(Metric):
    """The scores of the detector on the true videos: what a perfect generator could reach with it.

    ceiling: tubes that the detector finds in the true videos. truth: tubes.
    """

    of: CeilingFollowing = CeilingFollowing()
    pool: Literal["sample"] = "sample"

    scores: ClassVar = {
        "ceiling_coverage": Score("higher", (0, 1), 1, "coverage of the true videos"),
        "ceiling_miou": Score("higher", (0, 1), 1, "miou of the true videos"),
        "ceiling_centroid_distance": Score("lower", (0, 1), 0, "centroid distance in the true videos"),
        "ceiling_ap50": Score("higher", (0, 1), 1, "ap50 of the true videos"),
    }
    exempt: ClassVar = {"graded:ceiling_coverage": OF_ONE}

    def score(self, s: Sums) -> dict[str, Array | Weighted]:
        found = {**BoxCoverage().score(s), **BoxIoU().score(s), **BoxCentroid().score(s), **BoxAP50().score(s)}
        return {name: found[name.removeprefix("ceiling_")] for name in self.scores}
