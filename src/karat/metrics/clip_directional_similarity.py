"""Whether pictures were edited as their captions say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.metric import Array, Metric, Score, Sums, ratio
from karat.metrics.alignment import NAN, EditAlignment
from karat.metrics.clip_score import Pooled


@dataclass(frozen=True)
class CLIPDirectionalSimilarity(Metric):
    """Mean of cos(E_I1 - E_I0, E_C1 - E_C0), of the embeddings of images and captions before (0) and after (1) an edit.

    pred_aligned: images, texts, original_images, original_texts (n, d), brought to length 1 before the difference.
    Equal images or captions are no step: they are left out, and counted.
    Gal et al. 2022, arXiv:2108.00946; Brooks et al. 2023, arXiv:2211.09800.
    """

    of: EditAlignment = EditAlignment()
    pool: Pooled = "dataset"

    scores: ClassVar = {
        "clip_directional_similarity": Score("higher", (-1, 1), about="the cosine of both steps"),
        "n_edits_without_step": Score(None, (0, np.inf), about="equal images or captions, left out", whole=True),
    }
    aliases: ClassVar = ("directional_similarity", "clip_dir_sim")
    exempt: ClassVar = {"undefined:n_edits_without_step": "a count of nothing is zero", **NAN}

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "clip_directional_similarity": ratio(s.step, s.step_known),
            "n_edits_without_step": s.edits - s.step_known,
        }


@dataclass(frozen=True)
class EditSimilarity(Metric):
    """Means of the cosines cos(E_I0, E_C0), cos(E_I1, E_C1) and cos(E_I0, E_I1), of images and captions before (0) and
    after (1) an edit: an edit that changes nothing has a `sim_image` of 1.

    pred_aligned: images, texts, original_images, original_texts (n, d). What is 0 has no direction and is left out.
    Brooks et al. 2023, arXiv:2211.09800.
    """

    of: EditAlignment = EditAlignment()
    pool: Pooled = "dataset"

    scores: ClassVar = {
        "sim_0": Score(None, (-1, 1), about="image and caption before the edit"),
        "sim_1": Score("higher", (-1, 1), about="image and caption after it"),
        "sim_image": Score(None, (-1, 1), about="both images: what is kept"),
    }
    exempt: ClassVar = NAN

    def score(self, s: Sums) -> dict[str, Array]:
        return {
            "sim_0": ratio(s.sim_0, s.sim_0_known),
            "sim_1": ratio(s.sim_1, s.sim_1_known),
            "sim_image": ratio(s.sim_image, s.sim_image_known),
        }
