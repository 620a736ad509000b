"""Identity scores: how long tracks are followed by the predicted track that is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums
from karat.metrics.tracks import COUNTED, LEAVES, Tracks, Undefined, share


@dataclass(frozen=True)
class Identity(Metric):
    """Identity scores: IDF1 = 2 IDTP / (2 IDTP + IDFN + IDFP), IDP = IDTP / (IDTP + IDFP), IDR = IDTP / (IDTP + IDFN).

    True and predicted tracks are paired one to one over the whole video, so that they have most instances in common:
    the IDTP. The other true instances are IDFN, the other predictions IDFP. Instances are in common where they are
    similar enough to be matched (`common="possible"`, as defined and in TrackEval and py-motmetrics), or where they
    are matched (`"matched"`, as in SLEAP-NN). IDF1_matched is the share of matches whose tracks are paired, with
    misses and false positives left out.

    pred, truth: poses with tracks; similarity is OKS, see `Tracks`. What has nothing to divide by is undefined;
    `undefined="trackeval"` divides by 1. Ristani et al. 2016, doi:10.1007/978-3-319-48881-3_2.
    """

    of: Tracks = Tracks()
    common: Literal["possible", "matched"] = "possible"
    undefined: Undefined = "nan"
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "IDF1": Score("higher", (0, 1), 1, "2 IDTP / (2 IDTP + IDFN + IDFP)"),
        "IDP": Score("higher", (0, 1), 1, "IDTP / (IDTP + IDFP)"),
        "IDR": Score("higher", (0, 1), 1, "IDTP / (IDTP + IDFN)"),
        "IDTP": Score("higher", (0, np.inf), None, "instances that paired tracks have in common", whole=True),
        "IDFP": Score("lower", (0, np.inf), 0, "the other predictions", whole=True),
        "IDFN": Score("lower", (0, np.inf), 0, "the other true instances", whole=True),
        "IDF1_matched": Score("higher", (0, 1), 1, "share of matches whose tracks are paired"),
    }
    exempt: ClassVar = {
        "direction:IDF1_matched": LEAVES,
        **{f"undefined:{name}": COUNTED for name in ("IDTP", "IDFP", "IDFN")},
    }

    def score(self, s: Sums) -> dict[str, Array]:
        tp = s.idtp if self.common == "possible" else s.idtp_matched
        found = {
            "IDF1": share(tp, (s.truths + s.preds) / 2, self.undefined),
            "IDP": share(tp, s.preds, self.undefined),
            "IDR": share(tp, s.truths, self.undefined),
            "IDTP": tp,
            "IDFP": s.preds - tp,
            "IDFN": s.truths - tp,
            "IDF1_matched": share(s.idtp_matched, s.matches, self.undefined),
        }
        return {name: np.where(s.frames > 0, value, np.nan) for name, value in found.items()}
