"""`tracking-mot`: HOTA, CLEAR MOT and identity scores of SLEAP-NN, which follow TrackEval."""

from __future__ import annotations

import karat
from karat.metrics.tracks import ALPHAS

from ._tracking import DECLARED, answered, parameters, scores, tracks
from .case import Answer, Case

NAMES = {
    "mota": "MOTA",
    "motp": "MOTP",
    "moda": "MODA",
    "idsw": "IDSW",
    "frag": "Frag",
    "mt": "MT",
    "pt": "PT",
    "ml": "ML",
    "clr_tp": "CLR_TP",
    "clr_fn": "CLR_FN",
    "clr_fp": "CLR_FP",
    "idf1": "IDF1",
    "idp": "IDP",
    "idr": "IDR",
    "idtp": "IDTP",
    "idfp": "IDFP",
    "idfn": "IDFN",
    "hota": "HOTA",
    "det_a": "DetA",
    "ass_a": "AssA",
    "loc_a": "LocA",
    "det_re": "DetRe",
    "det_pr": "DetPr",
    "ass_re": "AssRe",
    "ass_pr": "AssPr",
    "owta": "OWTA",
    "hota_0": "HOTA_0",
    "loc_a_0": "LocA_0",
    "n_gt_untracked": "n_gt_untracked",
    "n_pred_untracked": "n_pred_untracked",
    "n_dont_care": "n_dont_care",
    "n_frames": "CLR_Frames",
    "n_frames_missing_pred": "n_frames_missing_pred",
}
CURVES = {"hota_alpha": "HOTA", "det_a_alpha": "DetA", "ass_a_alpha": "AssA", "loc_a_alpha": "LocA"}


def answer(case: Case) -> Answer:
    """Every score, and the curves over alpha."""
    of = tracks(case)
    found = scores(case, *(kind(of=of, undefined="trackeval") for kind in (karat.HOTA, karat.ClearMOT, karat.Identity)))
    own = answered(NAMES, found) | parameters(of)
    own |= {
        "n_videos": 1,  # a case is one
        "n_gt_dets": found["CLR_TP"] + found["CLR_FN"],
        "n_pred_dets": found["CLR_TP"] + found["CLR_FP"],
    }
    curves = {theirs: [found[f"{own}@alpha:{alpha:.2f}"] for alpha in ALPHAS] for theirs, own in CURVES.items()}
    return Answer(own | curves, DECLARED)
