"""`tracking-trackeval-clear`: CLEAR MOT as TrackEval prints it."""

from __future__ import annotations

import karat

from ._tracking import scores, tracks
from .case import Answer, Case


def answer(case: Case) -> Answer:
    """Every score; the names are the same."""
    return Answer(scores(case, karat.ClearMOT(of=tracks(case), undefined="trackeval")))
