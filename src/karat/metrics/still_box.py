"""What a video in which nothing moves would have scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.following import Following

_ABOUT = "of a box that never moves"


@dataclass(frozen=True)
class StillBox(Metric):
    """The scores of a box that lies at the mean of those asked for, and never moves: where they are as good as a
    method's, the data do not tell whether it follows.

    pred, truth: tubes; of the truth only the frames that the prediction has too.
    """

    of: Following = Following()
    pool: Literal["sample"] = "sample"

    scores: ClassVar = {
        "still_miou": Score(None, (0, 1), about=f"IoU of the tube, {_ABOUT}"),
        "still_ap50": Score(None, (0, 1), about=f"frames with an IoU of at least 0.5, {_ABOUT}"),
        "still_centroid_distance": Score(None, (0, 1), about=f"in diagonals of the frame, {_ABOUT}"),
    }
    aliases: ClassVar = ("static_video",)

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "still_miou": ratio(s.still_inter, s.still_union),
            "still_ap50": ratio(s.still_hit, s.truth),
            "still_centroid_distance": ratio(s.still_l2, s.truth),
        }
