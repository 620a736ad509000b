"""`generation-kid`: kernel distances of all samples and of given subsets."""

from __future__ import annotations

from typing import Any

from karat.kernels import mmd
from karat.kernels.mmd import Polynomial

from ._features import part, sides
from .case import Answer, Case

SKIPPED = {"*/mean_float32_input": "computed in float32 by the package"}
DRAWS = {"torch_fidelity_seed2020": "torchfidelity", "torchmetrics_recorded_permutations": "torchmetrics"}


def answer(case: Case) -> Answer:
    """With the subsets that the packages drew."""
    name, arrays = part(case), case.arrays()
    real, fake = sides(case, name)
    found: dict[str, Any] = {
        "all_samples_unbiased_f64": mmd.mmd(fake, real),
        "all_samples_biased_f64": mmd.mmd(fake, real, unbiased=False),
        "all_samples_unbiased_degree2_gamma0.01_coef0.5": mmd.mmd(fake, real, Polynomial(2, 0.01, 0.5)),
    }
    for section, package in DRAWS.items():
        at_real, at_fake = (arrays[f"kid_{name}_{package}_idx_{side}"] for side in "ab")
        subsets = mmd.of_subsets(fake, real, at_fake, at_real)
        found["subsets"], found["subset_size"] = at_real.shape
        found[section] = {"mean": subsets.mean, "std_ddof0": subsets.std, "per_subset": subsets.values}
    return Answer(found, SKIPPED)
