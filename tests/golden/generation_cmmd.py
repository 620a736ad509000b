"""`generation-cmmd`: the discrepancy of embeddings with a Gaussian kernel, and its other forms."""

from __future__ import annotations

from karat.kernels.features import unit
from karat.kernels.mmd import Gaussian, cmmd, mmd

from ._features import part, sides
from .case import Answer, Case

SIGMA, SCALE = 10, 1000
SKIPPED = {"cmmd_pytorch_float32_normalised": "computed in float32 by the package"}


def answer(case: Case) -> Answer:
    """The published form is biased and of embeddings of length 1."""
    real, fake = sides(case, part(case))
    kernel, directions = Gaussian(SIGMA), (unit(fake), unit(real))
    found = {
        "biased_normalised_f64": cmmd(fake, real, SIGMA, SCALE),
        "unbiased_normalised_f64": SCALE * mmd(*directions, kernel),
        "biased_unnormalised_f64": SCALE * mmd(fake, real, kernel, unbiased=False),
        "sigma": SIGMA,
        "scale": SCALE,
        "identical_biased": cmmd(real, real, SIGMA, SCALE),
    }
    found["cmmd_pytorch_float64_normalised"] = found["biased_normalised_f64"]
    return Answer(found, SKIPPED)
