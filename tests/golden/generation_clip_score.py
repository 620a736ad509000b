"""`generation-clip-score`: scores of images with their texts, in the forms of torchmetrics and of Hessel."""

from __future__ import annotations

import numpy as np

from karat.kernels import alignment

from ._features import features
from .case import Answer, Case

SKIPPED = {"all_negative_case/input": "a text"}


def answer(case: Case) -> Answer:
    """Each sample, and the means."""
    images, texts, references = (features(case, f"clip_{name}") for name in ("image", "text", "refs"))
    cosine, hessel = alignment.cosines(images, texts), alignment.hessel(images, texts)
    nearest = np.max([alignment.cosines(texts, one) for one in references.swapaxes(0, 1)], axis=0)
    both = alignment.hessel_with_references(images, texts, references)
    found = {
        "cosine": cosine,
        "torchmetrics_per_sample_100cos": 100 * cosine,
        "torchmetrics_value": alignment.clip_score_clamped_mean(images, texts),
        "mean_of_clamped_samples": alignment.clip_score(images, texts).mean(),
        "hessel_per_sample_w2_5": hessel,
        "hessel_clipscore": hessel.mean(),
        "ref_max_cosine": nearest,
        "refclipscore_per_sample": both,
        "refclipscore": both.mean(),
        "all_negative_case": {
            "torchmetrics_value": alignment.clip_score_clamped_mean(images, -images),
            "mean_100cos": (100 * alignment.cosines(images, -images)).mean(),
            "hessel": alignment.hessel(images, -images).mean(),
        },
    }
    return Answer(found, SKIPPED)
