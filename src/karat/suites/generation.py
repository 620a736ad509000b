"""Sets of generated images against sets of real ones, by their features, as MindONE's specification names them."""

from __future__ import annotations

from karat.metrics.cmmd import CMMD
from karat.metrics.feature_manifold import FeatureManifold
from karat.metrics.fid import FID
from karat.metrics.inception_score import InceptionScore
from karat.metrics.kid import KID
from karat.metrics.vendi import Vendi
from karat.suite import Protocol, Suite


def _differ(question: str, spec: str, torchmetrics: str, adm: str) -> tuple[str, dict[str, str]]:
    return question, {"spec": spec, "torchmetrics": torchmetrics, "adm": adm}


SUITE = Suite(
    name="generation",
    title="Generation: distributions of generated images, from their features",
    fields={"pred": "features", "truth": "features"},
    required=("pred", "truth"),
    embeds=("pred", "truth"),
    truth="truth",
    metrics=(FID(), KID(), FeatureManifold(), InceptionScore(), Vendi(), CMMD()),
    headline=(
        *("fid", "kid", "kid_std", "kid_all", "precision", "recall", "density", "coverage"),
        *("inception_score", "inception_score_std", "vendi", "vendi_truth", "cmmd"),
    ),
    protocols={
        "spec": Protocol("The specification's text, right at every edge."),
        "torchmetrics": Protocol(
            "The conventions of torchmetrics 1.9: logits in order, parts rounded up, deviation with ddof 1.",
            {"inception_score": {"seed": None, "rule": "ceil", "ddof": 1}},
        ),
        "adm": Protocol(
            "The conventions of guided-diffusion's evaluator: closed balls to the 3rd neighbour, logits in order.",
            {"feature_manifold": {"k": 3, "balls": "closed"}, "inception_score": {"seed": None}},
        ),
    },
    differences=[
        _differ("neighbours of precision and recall", "5, the border outside", "as spec", "3, the border inside"),
        _differ("order of the logits", "shuffled by a seed", "as they are", "as they are"),
        _differ("parts of the inception score", "[iN/s, (i+1)N/s)", "ceil(N/s), perhaps fewer", "as spec"),
        _differ("deviation over the parts", "ddof 0: one part has 0", "ddof 1: one part has none", "as spec"),
        _differ(
            "root of the product of covariances",
            "exact for any number of images",
            "as spec (published: of eigenvalues)",
            "as spec",
        ),
    ],
    citation=(
        "Heusel et al. 2017, arXiv:1706.08500; Salimans et al. 2016, arXiv:1606.03498; Binkowski et al. 2018, "
        "arXiv:1801.01401; mindspore-lab/mindone@2f3898d7a, mindone/metrics/README.md."
    ),
)
