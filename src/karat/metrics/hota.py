"""Higher order tracking accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums
from karat.metrics.tracks import COUNTED, LEAVES, Tracks, Undefined, share

_CURVES = ("HOTA", "DetA", "AssA", "LocA")


def _higher(about: str) -> Score:
    return Score("higher", (0, 1), 1, about)


@dataclass(frozen=True)
class HOTA(Metric):
    """Higher order tracking accuracy: HOTA = sqrt(DetA AssA), each the mean over 19 similarities alpha = .05:.05:.95.

    At alpha, DetA = TP / (TP + FN + FP) and AssA = the mean over all TP of TPA / (TPA + FNA + FPA), where TPA are the
    frames in which the same two tracks are matched, FNA and FPA those in which one of them is not. LocA is the mean
    similarity of the TP. One assignment a frame serves all alphas, as in TrackEval: the largest total of similarity
    times the alignment of the tracks over the video. Videos are added: AssA and LocA are means over the TP of all.

    pred, truth: poses with tracks; similarity is OKS, see `Tracks`. An alpha without a match has HOTA and AssA 0 and no
    LocA; without any match at all AssA, AssRe, AssPr and LocA are undefined. `undefined="trackeval"`: 0, and LocA 1.
    Luiten et al. 2021, doi:10.1007/s11263-020-01375-2; OWTA: Liu et al. 2022, arXiv:2104.11221.
    """

    of: Tracks = Tracks()
    undefined: Undefined = "nan"
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "HOTA": _higher("sqrt(DetA AssA)"),
        "DetA": _higher("detection: TP / (TP + FN + FP)"),
        "AssA": _higher("association: how well the tracks of a match agree over the video"),
        "DetRe": _higher("share of true instances that are matched"),
        "DetPr": _higher("share of predictions that are matched"),
        "AssRe": _higher("share of the true track that is matched with the same predicted track"),
        "AssPr": _higher("share of the predicted track that is matched with the same true track"),
        "LocA": _higher("mean similarity of the matches"),
        "OWTA": _higher("sqrt(DetRe AssA), where not all true instances are labelled"),
        "HOTA_TP": Score("higher", (0, np.inf), None, "matches"),
        "HOTA_FN": Score("lower", (0, np.inf), 0, "true instances without a match"),
        "HOTA_FP": Score("lower", (0, np.inf), 0, "predictions without a match"),
        "HOTA_0": _higher("HOTA at alpha 0.05, TrackEval's HOTA(0)"),
        "LocA_0": _higher("LocA at alpha 0.05, TrackEval's LocA(0)"),
        "HOTALocA_0": _higher("their product"),
    }
    parts: ClassVar = {"alpha": "similarity from which on a pair is a match"}
    exempt: ClassVar = {
        "direction:LocA": LEAVES,
        "direction:LocA_0": LEAVES,
        **{f"undefined:HOTA_{name}": COUNTED for name in ("TP", "FN", "FP")},
    }

    def score(self, s: Sums) -> dict[str, Array]:
        tp, frames = s.hota_tp, s.frames > 0
        fn, fp = s.truths[:, None] - tp, s.preds[:, None] - tp
        some = (tp[:, :1] > 0) | (self.undefined == "trackeval")
        association = {
            name: np.where(some, total / np.maximum(tp, 1), np.nan)
            for name, total in (("AssA", s.hota_jaccard), ("AssRe", s.hota_recall), ("AssPr", s.hota_precision))
        }
        by_alpha = {
            "HOTA": np.sqrt(share(s.hota_jaccard, tp + fn + fp, self.undefined)),
            "DetA": share(tp, tp + fn + fp, self.undefined),
            **association,
            "DetRe": share(tp, tp + fn, self.undefined),
            "DetPr": share(tp, tp + fp, self.undefined),
            "LocA": self._similarity(s.hota_similarity, tp),
            "OWTA": np.sqrt(share(s.hota_jaccard, tp + fn, self.undefined)),
            "HOTA_TP": tp.astype(np.float64),
            "HOTA_FN": fn.astype(np.float64),
            "HOTA_FP": fp.astype(np.float64),
        }
        first = {f"{name}_0": by_alpha[name][:, 0] for name in ("HOTA", "LocA")}
        parts = {
            f"{name}@alpha:{alpha}": by_alpha[name][:, at] for name in _CURVES for at, alpha in enumerate(s.labels)
        }
        found = {name: _mean(values) for name, values in by_alpha.items()} | first
        found |= {"HOTALocA_0": first["HOTA_0"] * first["LocA_0"]} | parts
        return {name: np.where(frames, value, np.nan) for name, value in found.items()}

    def _similarity(self, total: Array, tp: Array) -> Array:
        mean = share(total, tp, "nan")
        return np.where(tp == 0, 1.0, mean) if self.undefined == "trackeval" else mean


def _mean(by_alpha: Array) -> Array:
    """Over the alphas (groups, alphas) where there is a value."""
    known = ~np.isnan(by_alpha)
    return share(by_alpha.sum(axis=1, where=known), known.sum(axis=1), "nan")
