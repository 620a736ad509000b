"""What was there to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Statistic, Sums
from karat.metrics.matches import Matches, Role
from karat.rows import Elements
from karat.sources.pose_frames import compared
from karat.sources.poses import Poses

WEAK = 0.1  # an OKS below which a pair is one in name only


@dataclass(frozen=True)
class PoseCounts(Metric):
    """How many instances there are, and what became of them. A weak pair has an OKS below 0.1."""

    of: Matches = Matches()
    pool: Literal["dataset"] = "dataset"

    combine: ClassVar = "rows"
    scores: ClassVar = {
        "n_gt": Score(None, (0, np.inf), about="true instances in the frames that are evaluated", whole=True),
        "n_pred": Score(None, (0, np.inf), about="predicted instances in these frames", whole=True),
        "n_pairs": Score(None, (0, np.inf), about="matched pairs", whole=True),
        "n_fn_unmatched": Score("lower", (0, np.inf), 0, "truths that were missed", whole=True),
        "n_fp_unmatched": Score("lower", (0, np.inf), 0, "predictions without a partner", whole=True),
        "n_gt_ignored": Score(
            None, (0, np.inf), about="truths without a visible node, or marked to be ignored", whole=True
        ),
        "n_gt_degenerate": Score(None, (0, np.inf), about="thin truths, left out of OKS and VOC", whole=True),
        "n_pred_ignored": Score(None, (0, np.inf), about="predictions that are ignored with such a truth", whole=True),
        "n_pred_nodeless": Score(None, (0, np.inf), about="predictions without a node, left out", whole=True),
        "n_pred_outside": Score(None, (0, np.inf), about="predictions in frames that are not evaluated", whole=True),
        "n_weak_pairs": Score("lower", (0, np.inf), 0, "pairs of an OKS below 0.1", whole=True),
    }
    exempt: ClassVar = {f"undefined:{name}": "a count of nothing is zero" for name in scores}

    def score(self, s: Sums) -> dict[str, int]:
        of = {role: int((s.role == role).sum()) for role in Role}
        thin = of[Role.THIN_PAIR] + of[Role.THIN_MISSED]
        pairs = of[Role.PAIR] + of[Role.THIN_PAIR]
        return {
            "n_gt": of[Role.PAIR] + of[Role.MISSED] + thin + of[Role.IGNORED_TRUTH],
            "n_pred": pairs + of[Role.FALSE] + of[Role.IGNORED_PRED] + of[Role.NODELESS],
            "n_pairs": pairs,
            "n_fn_unmatched": of[Role.MISSED] + of[Role.THIN_MISSED],
            "n_fp_unmatched": of[Role.FALSE],
            "n_gt_ignored": of[Role.IGNORED_TRUTH],
            "n_gt_degenerate": thin,
            "n_pred_ignored": of[Role.IGNORED_PRED],
            "n_pred_nodeless": of[Role.NODELESS],
            "n_pred_outside": of[Role.OUTSIDE],
            "n_weak_pairs": int((s.oks[s.role == Role.PAIR] < WEAK).sum()),
        }


@dataclass(frozen=True)
class PoseFrames(Statistic):
    """The frames that are evaluated, and whether the predictions list them; the parameters are those of `Matches`."""

    unit: ClassVar = "element"
    record: ClassVar = "poses"

    frames: Literal["truth", "common"] = "truth"
    user_labels_only: bool = True
    repeated: Literal["error", "skip"] = "error"

    def measure(self, pred: Poses, truth: Poses) -> Elements:
        both = compared(truth, pred, self.frames, self.user_labels_only, self.repeated)
        listed, held = np.isin(both.frames, pred.labelled), np.isin(both.frames, both.truth.frame)
        skipped = np.setdiff1d(truth.labelled, both.frames)
        there = np.ones(len(both.frames), bool)
        columns = {"evaluated": there, "skipped": ~there, "listed": listed, "held": held}
        unseen = {name: np.full(len(skipped), name == "skipped") for name in columns}
        return Elements(
            np.concatenate([both.frames, skipped]),
            {name: np.concatenate([column, unseen[name]]) for name, column in columns.items()},
        )


@dataclass(frozen=True)
class FrameCounts(Metric):
    """How many frames the truth labels, how many of these are evaluated, and in how many there is no prediction."""

    of: PoseFrames = PoseFrames()
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "n_frames_gt": Score(None, (0, np.inf), about="frames that are evaluated", whole=True),
        "n_frames_skipped": Score(None, (0, np.inf), about="labelled frames that are not evaluated", whole=True),
        "n_frames_without_prediction": Score(
            None, (0, np.inf), about="evaluated frames the predictions do not list", whole=True
        ),
        "n_frames_empty": Score(None, (0, np.inf), about="evaluated frames that are labelled as empty", whole=True),
    }
    exempt: ClassVar = {f"undefined:{name}": "a count of nothing is zero" for name in scores}

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "n_frames_gt": s.evaluated,
            "n_frames_skipped": s.skipped,
            "n_frames_without_prediction": s.evaluated - s.listed,
            "n_frames_empty": s.evaluated - s.held,
        }
