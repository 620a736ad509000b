"""`generation-prdc`: precision, recall, density and coverage with open and with closed balls."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from karat.kernels.manifold import manifold

from ._features import features, part, sides
from .case import Answer, Array, Case

SKIPPED = {
    "closest_decision_margin": "describes the input",
    "torch_fidelity_leq/f_score": "computed in float32 from the two beside it",
}


def answer(case: Case) -> Answer:
    """torch-fidelity rounds its shares to float32."""
    name, _, k = part(case).partition("|k")
    real, fake = _sides(case, name)
    found = {rule: asdict(manifold(fake, real, int(k), rule == "leq")) for rule in ("strict", "leq")}
    rounded = {share: float(np.float32(found["leq"][share])) for share in ("precision", "recall")}
    return Answer({**found, "prdc_package": found["strict"], "torch_fidelity_leq": rounded}, SKIPPED)


def _sides(case: Case, name: str) -> tuple[Array, Array]:
    if name == "d64":
        return sides(case, name)
    real = features(case, "prdc_real")
    others = {
        "real_vs_fake": lambda: features(case, "prdc_fake"),
        "real_vs_collapsed": lambda: features(case, "prdc_collapsed"),
        "real_vs_itself": lambda: real,
        "disjoint": lambda: real + np.float32(100),
    }
    return real, others[name]()
