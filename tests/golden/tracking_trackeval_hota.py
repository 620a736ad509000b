"""`tracking-trackeval-hota`: HOTA, means over the alphas, as TrackEval prints it."""

from __future__ import annotations

import karat

from ._tracking import answered, scores, tracks
from .case import Answer, Case

NAMES = {name: name.replace("_0", "(0)") for name in karat.HOTA.scores}


def answer(case: Case) -> Answer:
    """Every score."""
    found = scores(case, karat.HOTA(of=tracks(case), undefined="trackeval"))
    return Answer(answered({theirs: own for own, theirs in NAMES.items()}, found))
