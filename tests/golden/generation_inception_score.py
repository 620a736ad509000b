"""`generation-inception-score`: scores from logits, in the parts of two packages."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.kernels.inception_score import inception_score

from ._features import features, part
from .case import Answer, Array, Case

SKIPPED = {"note": "a text"}


def answer(case: Case) -> Answer:
    """Unshuffled by both rules, and shuffled as torch-fidelity does."""
    name = part(case)
    if name == "closed_form_one_hot_20x10_logit60":
        return Answer({"value": inception_score(60.0 * np.eye(10)[np.arange(20) % 10], 1).mean}, SKIPPED)
    if name == "closed_form_identical_rows":
        rows = np.tile(200 * np.random.default_rng(0).standard_normal(10), (20, 1))
        return Answer({"value": inception_score(rows, 1).mean}, SKIPPED)
    logits = features(case, f"is_{name}")
    return Answer({splits: _scores(logits, int(splits.removeprefix("splits"))) for splits in case.expected})


def _scores(logits: Array, splits: int) -> dict[str, Any]:
    even, ceil = (inception_score(logits, splits, rule) for rule in ("even", "ceil"))
    order = np.random.RandomState(2020).permutation(len(logits))
    mixed = inception_score(logits, splits, order=order)
    return {
        "torch_fidelity_rule_unshuffled": {
            "mean": even.mean,
            "std_ddof0": even.std(),
            "chunk_sizes": even.sizes,
            "per_split": even.values,
        },
        "torch_fidelity_rule_shuffled_RandomState2020": {"mean": mixed.mean, "std_ddof0": mixed.std()},
        "torchmetrics_rule_unshuffled": {
            "mean": ceil.mean,
            "std_ddof1": ceil.std(ddof=1),
            "chunk_sizes": ceil.sizes,
            "per_split": ceil.values,
        },
    }
