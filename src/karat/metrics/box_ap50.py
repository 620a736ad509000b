"""In how many frames the object is where it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums, Weighted, ratio
from karat.metrics.following import Following


@dataclass(frozen=True)
class BoxAP50(Metric):
    """Frames with an IoU of at least 0.5 / frames. What is published as average precision is this hit rate: there is no
    ranking in it.

    pred, truth: tubes. `ap50` is of the frames that a box was asked for in, an undetected one being a miss;
    frames="detected": of those with a detection. `ap50_detected` is always of these, and undefined without any.
    weight="detections": in the mean over videos one counts as often as it has detections, a video in which none of them
    can be judged having none right, as the published script has it.
    Jain et al. 2024 (Peekaboo), arXiv:2312.07509.
    """

    of: Following = Following()
    frames: Literal["truth", "detected"] = "truth"
    weight: Literal["video", "detections"] = "video"
    pool: Literal["sample"] = "sample"

    scores: ClassVar = {
        "ap50": Score("higher", (0, 1), 1, "frames with an IoU of at least 0.5"),
        "ap50_detected": Score("higher", (0, 1), 1, "the same, of the frames with a detection"),
    }

    def score(self, s: Sums) -> dict[str, Array | Weighted]:
        judged = s.both if self.weight == "video" else s.detected
        of_detected = ratio(s.hit, judged)
        hits = ratio(s.hit, s.truth) if self.frames == "truth" else of_detected
        if self.weight == "detections":
            return {"ap50": Weighted(np.nan_to_num(hits), s.counted), "ap50_detected": of_detected}
        return {"ap50": hits, "ap50_detected": of_detected}
