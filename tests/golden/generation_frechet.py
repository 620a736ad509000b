"""`generation-frechet`: the distance in its parts, of features by every route, and of means and covariances."""

from __future__ import annotations

import math
from typing import Any

from karat.kernels import frechet, moments
from karat.kernels.frechet import Frechet

from ._features import features, part, sides
from .case import Answer, Case

WRONG = "what packages return: eigenvalues of a product that is not symmetric, so they are off by up to 4e-6"
EXACT = "40 digits as a text: compared with the value here, as a number"
PACKAGES = ("torchmetrics", "torch_fidelity", "pytorch_fid")
SKIPPED = {"*packages": WRONG, "truth_mpmath*": EXACT} | {f"*/{name}": WRONG for name in PACKAGES}


def answer(case: Case) -> Answer:
    """Of the case's section."""
    name = part(case)
    if name == "closed_form":
        return Answer({one: {"truth": _closed(case, one)} for one in case.expected}, SKIPPED)
    if name.startswith("identical_"):
        own = features(case, f"{name.removeprefix('identical_')}_a")
        found = frechet.distance(own, own)
        if abs(found.raw) > 1e-9:
            raise AssertionError(f"the parts of equal sets leave {found.raw}")
        return Answer({"n": len(own), "d": own.shape[1], "truth": found.value}, SKIPPED)
    real, fake = sides(case, name)
    found: dict[str, Any] = {"n_a": len(real), "n_b": len(fake), "d": real.shape[1]}
    for form, ddof in (("unbiased_ddof1", 1), ("biased_ddof0", 0)):
        of = frechet.distance(real, fake, ddof)
        found[form] = _parts(of)
        _agree(of.value, float(case.expected.get(f"truth_mpmath_ddof{ddof}", of.value)), 1e-14)
        statistics = frechet.between(*(frechet.of_moments(moments.of(side), ddof) for side in (real, fake)))
        _agree(statistics.value, of.value, 1e-13)
    return Answer(found, SKIPPED)


def _parts(found: Frechet) -> dict[str, float]:
    return {
        "mean_term": found.mean_term,
        "trace_a": found.trace_a,
        "trace_b": found.trace_b,
        "trace_sqrt": found.trace_root,
        "value": found.value,
    }


def _closed(case: Case, name: str) -> float:
    arrays: Any = case.arrays()
    a, b = (frechet.of_statistics(arrays[f"cf_{name}_mu{i}"], arrays[f"cf_{name}_sigma{i}"]) for i in (1, 2))
    return frechet.between(a, b).value


def _agree(found: float, wanted: float, tolerance: float) -> None:
    if not math.isclose(found, wanted, rel_tol=tolerance):
        raise AssertionError(f"the value is {found}, but should be {wanted}")
