"""`generation-directional-similarity`: whether images change as their texts do."""

from __future__ import annotations

from karat.kernels.alignment import cosines, directional_similarity

from ._features import features
from .case import Answer, Case

EPS = 1e-8
SKIPPED = {"note": "a text"}


def answer(case: Case) -> Answer:
    """With the eps of the published code, by which no step is 0."""
    images = features(case, "clip_image"), features(case, "dir_image2")
    texts = features(case, "clip_text"), features(case, "dir_text2")
    steps = directional_similarity(*images, *texts, eps=EPS)
    raw = cosines(images[1] - images[0], texts[1] - texts[0], EPS)
    found = {
        "per_pair": steps,
        "mean": steps.mean(),
        "per_pair_without_normalisation": raw,
        "mean_without_normalisation": raw.mean(),
        "sim_image0_text0": cosines(images[0], texts[0]),
        "sim_image1_text1": cosines(images[1], texts[1]),
        "sim_image0_image1": cosines(*images),
    }
    return Answer(found, SKIPPED)
