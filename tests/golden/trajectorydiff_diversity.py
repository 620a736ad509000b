"""`trajectorydiff-diversity`: how different the samples of each map are."""

from __future__ import annotations

import numpy as np

import karat

from .case import Answer, Case


def answer(case: Case) -> Answer:
    """The five numbers of every map, whose samples come first in the file."""
    samples = np.moveaxis(case.arrays()["samples"], 0, 1)
    found = [karat.SampleDiversity()(one) for one in samples]
    return Answer([{name.removeprefix("diversity_"): value for name, value in of.items()} for of in found])
