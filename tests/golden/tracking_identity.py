"""`tracking-identity`: SLEAP-NN's own identity metrics, each frame matched by itself."""

from __future__ import annotations

import math

import karat

from ._tracking import DECLARED, answered, parameters, scores, tracks
from .case import Answer, Case

NAMES = {
    "id_switches": "IDSW",
    "idf1": "IDF1",
    "idp": "IDP",
    "idr": "IDR",
    "idf1_matched": "IDF1_matched",
    "mostly_tracked": "MT",
    "partly_tracked": "PT",
    "mostly_lost": "ML",
    "fragmentations": "Frag",
    "mean_gt_coverage": "mean_gt_coverage",
    "mean_track_purity": "mean_track_purity",
    "n_matched": "CLR_TP",
    "n_gt_untracked": "n_gt_untracked",
    "n_pred_untracked": "n_pred_untracked",
    "n_dont_care": "n_dont_care",
    "n_frames_compared": "CLR_Frames",
    "n_frames_missing_pred": "n_frames_missing_pred",
    "n_gt_tracks": "n_gt_tracks",
    "n_pred_tracks": "n_pred_tracks",
}


def answer(case: Case) -> Answer:
    """Every score; the published code has none of the identities where a side has no tracks."""
    of = tracks(case, matching="frame")
    clear = karat.ClearMOT(of=of, mostly="from", fragmentation="gaps")
    found = scores(case, clear, karat.Identity(of=of, common="matched"))
    own = answered(NAMES, found) | parameters(of)
    own |= {
        "n_videos_compared": 1,  # a case is one
        "n_gt_dets": found["CLR_TP"] + found["CLR_FN"],
        "n_pred_dets": found["CLR_TP"] + found["CLR_FP"] + found["n_dont_care"] + found["n_pred_untracked"],
    }
    if not (found["n_gt_tracks"] and found["n_pred_tracks"]):
        own |= dict.fromkeys(("idf1", "idp", "idr", "idf1_matched"), math.nan)
    return Answer(own, DECLARED)
