"""`tracking-motmetrics`: CLEAR MOT and identity scores as py-motmetrics has them."""

from __future__ import annotations

import karat

from ._tracking import answered, scores, tracks
from .case import Answer, Case

NAMES = {
    "mota": "MOTA",
    "motp": "MOTP_distance",
    "idf1": "IDF1",
    "idp": "IDP",
    "idr": "IDR",
    "num_switches": "IDSW",
    "num_fragmentations": "Frag",
    "mostly_tracked": "MT",
    "partially_tracked": "PT",
    "mostly_lost": "ML",
    "num_false_positives": "CLR_FP",
    "num_misses": "CLR_FN",
}


def answer(case: Case) -> Answer:
    """Every score."""
    of = tracks(case, matching="established")
    metrics = karat.ClearMOT(of=of, mostly="from", fragmentation="gaps"), karat.Identity(of=of)
    return Answer(answered(NAMES, scores(case, *metrics)))
