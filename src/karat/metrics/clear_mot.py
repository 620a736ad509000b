"""CLEAR MOT: misses, false positives and identity switches of tracks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from karat.metric import Array, Metric, Score, Sums
from karat.metrics.tracks import COUNTED, LEAVES, Tracks, Undefined, identity_switches, share
from karat.rows import Rows

TOLD = 8  # identity switches that a note lists
_FEWER = "a prediction that is matched less often can break less often"


def _count(better: Literal["higher", "lower"] | None, about: str, identity: float | None = None) -> Score:
    return Score(better, (0, np.inf), identity, about, whole=True)


@dataclass(frozen=True)
class ClearMOT(Metric):
    """CLEAR MOT: MOTA = 1 - (FN + FP + IDSW) / true instances, MOTP = mean similarity of the matches.

    A switch (IDSW) is a true track that is matched with another predicted track than it was last matched with; the
    rows of `Tracks` say in which frame, and `identity_switches` lists them. A track is mostly tracked (MT) where more
    than 80 % of its instances are matched (`mostly="from"`: at least 80 %), mostly lost (ML) below 20 %, else partly
    (PT). Frag counts how often a track is taken up again: after any frame with instances on both sides in which it is
    not matched (`fragmentation="segments"`), or only after one in which it is there and missed (`"gaps"`).

    pred, truth: poses with tracks; similarity is OKS, see `Tracks`. The defaults are TrackEval's; py-motmetrics has
    `Tracks(matching="established")`, `mostly="from"`, `fragmentation="gaps"`, and a MOTP that is a distance,
    `MOTP_distance` = 1 - MOTP. What has nothing to divide by is undefined; `undefined="trackeval"` divides by 1.
    Bernardin & Stiefelhagen 2008, doi:10.1155/2008/246309; MT, PT, ML, Frag: Li et al. 2009,
    doi:10.1109/CVPR.2009.5206735.
    """

    of: Tracks = Tracks()
    mostly: Literal["above", "from"] = "above"
    fragmentation: Literal["segments", "gaps"] = "segments"
    undefined: Undefined = "nan"
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {
        "MOTA": Score("higher", (-np.inf, 1), 1, "1 - (FN + FP + IDSW) / true instances"),
        "MOTP": Score("higher", (0, 1), 1, "mean similarity of the matches"),
        "MODA": Score("higher", (-np.inf, 1), 1, "1 - (FN + FP) / true instances"),
        "IDSW": _count("lower", "identity switches", 0),
        "Frag": _count("lower", "times that a track is taken up again"),
        "MT": _count("higher", "true tracks that are mostly tracked"),
        "PT": _count(None, "true tracks that are partly tracked"),
        "ML": _count("lower", "true tracks that are mostly lost", 0),
        "MTR": Score("higher", (0, 1), 1, "MT / true tracks"),
        "PTR": Score(None, (0, 1), 0, "PT / true tracks"),
        "MLR": Score("lower", (0, 1), 0, "ML / true tracks"),
        "CLR_TP": _count("higher", "matches"),
        "CLR_FN": _count("lower", "true instances without a match", 0),
        "CLR_FP": _count("lower", "predictions without a match", 0),
        "CLR_Re": Score("higher", (0, 1), 1, "TP / (TP + FN)"),
        "CLR_Pr": Score("higher", (0, 1), 1, "TP / (TP + FP)"),
        "CLR_F1": Score("higher", (0, 1), 1, "2 TP / (2 TP + FN + FP)"),
        "sMOTA": Score("higher", (-np.inf, 1), 1, "as MOTA, a match counting as much as it is similar"),
        "MOTAL": Score("higher", (-np.inf, 1), 1, "as MOTA, with log10(IDSW)"),
        "MOTP_sum": Score("higher", (0, np.inf), None, "summed similarity of the matches"),
        "MOTP_distance": Score("lower", (0, 1), 0, "1 - MOTP"),
        "FP_per_frame": Score("lower", (0, np.inf), 0, "predictions without a match a frame"),
        "CLR_Frames": _count(None, "frames"),
        "mean_gt_coverage": Score("higher", (0, 1), 1, "mean over true tracks of the share that is matched"),
        "mean_track_purity": Score("higher", (0, 1), 1, "share of matches with their predicted track's main truth"),
        "n_gt_tracks": _count(None, "true tracks"),
        "n_pred_tracks": _count(None, "predicted tracks"),
        "n_gt_untracked": _count(None, "true instances without a track or to be ignored: neither for nor against"),
        "n_pred_untracked": _count(None, "predictions without a track: left out"),
        "n_dont_care": _count(None, "predictions matched with those true instances: neither for nor against"),
        "n_gt_unlabelled": _count(None, "true instances without a visible node"),
        "n_pred_unseen": _count(None, "predictions without a node"),
        "n_frames_missing_pred": _count(None, "frames that the prediction does not list"),
    }
    aliases: ClassVar = ("clear", "id_switches", "num_switches", "fragmentations", "num_fragmentations")
    exempt: ClassVar = {
        "direction:IDSW": _FEWER,
        "direction:Frag": _FEWER,
        "direction:MOTP": LEAVES,
        "direction:MOTP_distance": LEAVES,
        "direction:mean_track_purity": LEAVES,
        **{f"undefined:{name}": COUNTED for name, score in scores.items() if score.bounds[1] == np.inf},
    }

    def score(self, s: Sums) -> dict[str, Array]:
        tp, fn, fp, switches = s.matches, s.truths - s.matches, s.preds - s.matches, s.switches
        tracked = s.tracks_above_80 if self.mostly == "above" else s.tracks_from_80
        lost = s.tracks - s.tracks_from_20
        partly = s.tracks - tracked - lost
        motp = self._share(s.similarity, tp)
        found = {
            "MOTA": self._share(tp - fp - switches, s.truths),
            "MOTP": motp,
            "MODA": self._share(tp - fp, s.truths),
            "IDSW": switches,
            "Frag": s.segments if self.fragmentation == "segments" else s.gaps,
            "MT": tracked,
            "PT": partly,
            "ML": lost,
            "MTR": self._share(tracked, s.tracks),
            "PTR": self._share(partly, s.tracks),
            "MLR": self._share(lost, s.tracks),
            "CLR_TP": tp,
            "CLR_FN": fn,
            "CLR_FP": fp,
            "CLR_Re": self._share(tp, s.truths),
            "CLR_Pr": self._share(tp, s.preds),
            "CLR_F1": self._share(tp, (s.truths + s.preds) / 2),
            "sMOTA": self._share(s.similarity - fp - switches, s.truths),
            "MOTAL": self._share(tp - fp - np.log10(np.maximum(switches, 1)), s.truths),
            "MOTP_sum": s.similarity,
            "MOTP_distance": 1 - motp,
            "FP_per_frame": self._share(fp, s.frames),
            "CLR_Frames": s.frames,
            "mean_gt_coverage": self._share(s.coverage, s.tracks),
            "mean_track_purity": self._share(s.matches_of_main_truth, tp),
            "n_gt_tracks": s.tracks,
            "n_pred_tracks": s.pred_tracks,
            "n_gt_untracked": s.truths_aside,
            "n_pred_untracked": s.preds_untracked,
            "n_dont_care": s.preds_aside,
            "n_gt_unlabelled": s.truths_unlabelled,
            "n_pred_unseen": s.preds_nodeless,
            "n_frames_missing_pred": s.frames_without_pred,
        }
        return {name: np.where(s.frames > 0, value, np.nan) for name, value in found.items()}

    def remarks(self, rows: Rows) -> Iterable[str]:
        """Where the identity switches are."""
        switches = identity_switches(rows)
        if switches:
            told = [f"{s.video}:{s.frame} ({s.truth}: {s.before} to {s.after})" for s in switches[:TOLD]]
            more = f" and {len(switches) - TOLD} more" if len(switches) > TOLD else ""
            yield f"Identity switches, video:frame (true track: predicted tracks): {', '.join(told)}{more}."

    def _share(self, part: Array, whole: Array) -> Array:
        return share(part, whole, self.undefined)
