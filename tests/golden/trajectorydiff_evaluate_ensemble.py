"""`trajectorydiff-evaluate-ensemble`: the evaluation script's table for the mean of several samples of each map."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .case import Answer, Case
from .trajectorydiff_evaluate import evaluated, table

SCALE, STORED = (-186.0, -47.0), (-1.0, 1.0)
UNIT = (SCALE[1] - SCALE[0]) / 2  # dB of 1 in [-1, 1], in which the script leaves what it says of uncertainty


def answer(case: Case) -> Answer:
    """Samples and truth are stored in [-1, 1]."""
    params = dict(case.protocol["params"])
    count, arrays = params.pop("n_samples"), case.arrays()
    if params:
        raise ValueError(f"{', '.join(params)} is no parameter that this adapter knows")
    samples = np.moveaxis(arrays["samples"][:count], 0, 1)
    run = evaluated(None, arrays["target"], arrays, pred_samples=samples, scale=SCALE, stored=STORED)
    diversity = np.array([of["diversity_mean_std"] for of in run.sample_scores.values()]) / UNIT
    uncertainty = diversity * math.sqrt(count / (count - 1))  # the script takes ddof 1 here, and 0 there
    found: dict[str, Any] = {
        "mean_uncertainty": uncertainty.mean(),
        "per_sample_uncertainty": uncertainty,
        "mean_diversity": diversity.mean(),
        "std_diversity": diversity.std(),
    }
    return Answer(table(run) | found)
