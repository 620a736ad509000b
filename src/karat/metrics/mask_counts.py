"""What there was to be compared, of masks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from karat.metric import Array, Metric, Score, Sums
from karat.metrics.foregrounds import Foregrounds
from karat.metrics.mask_matches import MaskMatches, Role, true_areas
from karat.metrics.mask_sizes import PARTS, by_size, thirds
from karat.rows import Rows

INF = float("inf")
LEFT_OUT = {
    Role.BLANK_TRUTH: "true masks without a pixel",
    Role.BLANK_PRED: "predicted masks without a pixel",
    Role.OUTSIDE: "predicted masks in frames that are not evaluated",
}


@dataclass(frozen=True)
class MaskCounts(Metric):
    """How many masks there are and how large, and what was left out."""

    of: MaskMatches = MaskMatches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "mask_n_gt": Score(None, (0, INF), about="true masks in the frames that are evaluated", whole=True),
        "mask_n_pred": Score(None, (0, INF), about="predicted masks in these frames", whole=True),
        "mask_n_gt_blank": Score(None, (0, INF), about="true masks without a pixel, left out", whole=True),
        "mask_n_pred_blank": Score(None, (0, INF), about="predicted masks without a pixel, left out", whole=True),
        "mask_n_pred_outside": Score(None, (0, INF), about="predictions in frames that are not evaluated", whole=True),
        "mask_area_p33": Score(None, (0, INF), about="area in pixels below which a third of the true masks are"),
        "mask_area_p67": Score(None, (0, INF), about="area in pixels below which two thirds of the true masks are"),
    }
    parts: ClassVar = PARTS
    exempt: ClassVar = {
        f"undefined:{name}": "a count of nothing is zero" for name, score in scores.items() if score.whole
    }

    def score(self, s: Sums) -> dict[str, float]:
        of, areas = {role: int((s.role == role).sum()) for role in Role}, true_areas(s)
        third, two_thirds = thirds(areas).tolist()
        return {
            "mask_n_gt": len(areas),
            "mask_n_pred": of[Role.PAIR] + of[Role.FALSE],
            "mask_n_gt_blank": of[Role.BLANK_TRUTH],
            "mask_n_pred_blank": of[Role.BLANK_PRED],
            "mask_n_pred_outside": of[Role.OUTSIDE],
            "mask_area_p33": third,
            "mask_area_p67": two_thirds,
            **{f"mask_n_gt@{part}": int(own.sum()) for part, (own,) in by_size(areas, areas)},
        }

    def remarks(self, rows: Rows) -> Iterable[str]:
        """Masks that count neither for nor against."""
        for role, what in LEFT_OUT.items():
            if count := int((rows.columns["role"] == role).sum()):
                yield f"Left out: {what}, {count}."


@dataclass(frozen=True)
class MaskFrames(Metric):
    """How many frames the truth labels, how many of these are evaluated, and in how many there is no mask."""

    of: Foregrounds = Foregrounds()
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "mask_n_frames": Score(None, (0, INF), about="frames that are evaluated", whole=True),
        "mask_n_frames_skipped": Score(None, (0, INF), about="labelled frames that are not evaluated", whole=True),
        "mask_n_frames_without_prediction": Score(
            None, (0, INF), about="evaluated frames that the predictions do not list", whole=True
        ),
        "mask_n_frames_empty": Score(None, (0, INF), about="evaluated frames without a true pixel", whole=True),
    }
    exempt: ClassVar = {f"undefined:{name}": "a count of nothing is zero" for name in scores}

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "mask_n_frames": s.evaluated,
            "mask_n_frames_skipped": s.labelled - s.evaluated,
            "mask_n_frames_without_prediction": s.evaluated - s.listed,
            "mask_n_frames_empty": s.evaluated - s.held,
        }

    def remarks(self, rows: Rows) -> Iterable[str]:
        """Frames that count neither for nor against."""
        if skipped := int((~rows.columns["evaluated"]).sum()):
            yield f"Left out: labelled frames that the predictions do not list, {skipped}."
