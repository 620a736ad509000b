"""How much of the asked boxes and the found object is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.errors import UsageError
from karat.metric import Array, Metric, Score, Sums, Weighted, ratio
from karat.metrics.following import Following


@dataclass(frozen=True)
class BoxIoU(Metric):
    """Intersection over union of the tubes: the sum over all frames of what both cover / of what either covers.

    pred, truth: tubes. Of frames with a box that was asked for; an undetected one has no intersection. `miou` is the
    mean of the videos with a detection in at least half of the frames (filter="majority": in more than half), the
    others are excluded; `miou_all` is the mean of all videos. `eps` is added to the union of a video.
    Jain et al. 2024 (Peekaboo), arXiv:2312.07509.
    """

    of: Following = Following()
    filter: Literal["half", "majority"] = "half"
    eps: float = 0.0
    pool: Literal["sample"] = "sample"

    scores: ClassVar = {
        "miou": Score("higher", (0, 1), 1, "of the tubes, in videos with at least half of the frames detected"),
        "miou_all": Score("higher", (0, 1), 1, "of the tubes, in all videos"),
        "miou_frame": Score("higher", (0, 1), 1, "mean IoU of the frames, in the videos of miou"),
        "miou_frame_all": Score("higher", (0, 1), 1, "mean IoU of the frames, in all videos"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps < 0:
            raise UsageError(f"BoxIoU.eps is at least 0, not {self.eps!r}.")

    def score(self, s: Sums) -> dict[str, Array | Weighted]:
        enough = 2 * s.counted >= s.expected if self.filter == "half" else 2 * s.counted > s.expected
        tube, frame = ratio(s.inter, (s.union + self.eps) * (s.union > 0)), ratio(s.iou, s.truth)
        return {
            "miou": Weighted(tube, enough),
            "miou_all": tube,
            "miou_frame": Weighted(frame, enough),
            "miou_frame_all": frame,
        }
