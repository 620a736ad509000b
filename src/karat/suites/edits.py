"""Pictures that are edited as captions say, by the steps of their embeddings."""

from __future__ import annotations

from karat.metrics.clip_directional_similarity import CLIPDirectionalSimilarity, EditSimilarity
from karat.metrics.clip_score import CaptionCounts
from karat.suite import Protocol, Suite

_PUBLISHED = {"eps": 1e-8}


def _differ(question: str, spec: str, reference: str) -> tuple[str, dict[str, str]]:
    return question, {"spec": spec, "reference": reference}


SUITE = Suite(
    name="edits",
    title="Edits: whether pictures change as their captions do",
    fields={"pred_aligned": "aligned"},
    required=("pred_aligned",),
    aligns={"pred_aligned": ("pred", "truth")},
    truth="pred_aligned",
    metrics=(CLIPDirectionalSimilarity(), EditSimilarity(), CaptionCounts()),
    headline=(
        *("clip_directional_similarity", "sim_0", "sim_1", "sim_image"),
        *("n_pictures", "n_edits_without_step", "n_captions_truncated", "n_captions_empty"),
    ),
    protocols={
        "spec": Protocol("The specification's text, right at every edge."),
        "reference": Protocol("The conventions of mindspore-lab/mindone@2f3898d7a.", {"edit_alignment": _PUBLISHED}),
    },
    differences=[
        _differ("equal images or captions", "no step: left out, counted", "a cosine of 0, by an eps of 1e-8"),
        _differ(
            "captions that are too long",
            "cut before the token that ends them, counted",
            "as spec (published: an error)",
        ),
        _differ("the embeddings", "brought to length 1 before the difference", "as spec"),
    ],
    citation=(
        "Gal et al. 2022, arXiv:2108.00946; Brooks et al. 2023, arXiv:2211.09800; mindspore-lab/mindone@2f3898d7a, "
        "mindone/metrics/README.md."
    ),
)
