"""Sets of generated images against sets of real ones, by their features, as MindONE's specification names them."""

from __future__ import annotations

from karat.metrics.clip_score import CaptionCounts, CLIPScore
from karat.metrics.cmmd import CMMD
from karat.metrics.feature_manifold import FeatureManifold
from karat.metrics.fid import FID
from karat.metrics.inception_score import InceptionScore
from karat.metrics.kid import KID
from karat.metrics.r_precision import RPrecision
from karat.metrics.vendi import Vendi
from karat.suite import Protocol, Suite


def _differ(question: str, spec: str, **others: str) -> tuple[str, dict[str, str]]:
    named = {name.replace("_", "-"): answer for name, answer in others.items()}
    return question, {"spec": spec, **{name: named.get(name, "as spec") for name in _NAMES}}


_NAMES = ("reference", "torchmetrics", "pytorch-fid", "clean", "adm", "paper")
_IN_ORDER = {"seed": None}
_ROUNDED_UP = {"rule": "ceil", "seed": None}
_OF_MEAN = {"clip_score": {"clamp": "mean"}}

SUITE = Suite(
    name="generation",
    title="Generation: distributions of generated images, from their features, and how they fit their captions",
    fields={"pred": "features", "truth": "features", "pred_aligned": "aligned"},
    required=("pred", "truth"),
    embeds=("pred", "truth"),
    aligns={"pred_aligned": ("pred",)},
    truth="truth",
    metrics=(
        FID(),
        KID(),
        FeatureManifold(),
        InceptionScore(),
        Vendi(),
        CMMD(),
        CLIPScore(),
        RPrecision(),
        CaptionCounts(),
    ),
    headline=(
        *("fid", "kid", "kid_std", "kid_all", "precision", "recall", "density", "coverage"),
        *("inception_score", "inception_score_std", "vendi", "vendi_truth", "cmmd"),
        *("clip_score", "r_precision", "n_pictures", "n_captions_truncated", "n_captions_empty"),
    ),
    protocols={
        "spec": Protocol("The specification's text, right at every edge: pictures resized as TensorFlow 1 does."),
        "reference": Protocol(
            "The conventions of mindspore-lab/mindone@2f3898d7a, whose shuffle is not seeded: logits in order.",
            {"inception_score": _ROUNDED_UP, **_OF_MEAN},
        ),
        "torchmetrics": Protocol(
            "The conventions of torchmetrics from 1.8: an antialiased resize, a deviation with ddof 1.",
            {"inception_score": {**_ROUNDED_UP, "ddof": 1}, **_OF_MEAN},
            network={"resize": "torchmetrics"},
        ),
        "pytorch-fid": Protocol(
            "The conventions of pytorch-fid: another resize and range.", network={"resize": "pytorch-fid"}
        ),
        "clean": Protocol("The conventions of clean-fid: PIL's bicubic resize.", network={"resize": "clean"}),
        "adm": Protocol(
            "The conventions of guided-diffusion's evaluator: closed balls to the 3rd neighbour, logits in order.",
            {"feature_manifold": {"k": 3, "balls": "closed"}, "inception_score": _IN_ORDER},
        ),
        "paper": Protocol(
            "CLIPScore as its paper has it, of ViT-B/32.",
            {"clip_score": {"scale": 2.5}},
            network={"clip": "clip_vit_b_32", "prefix": "A photo depicts "},
        ),
    },
    differences=[
        _differ(
            "how pictures become 299x299",
            "bilinear from the corner, as TensorFlow 1",
            torchmetrics="bilinear, antialiased",
            pytorch_fid="bilinear from the centres",
            clean="PIL's bicubic, on floats",
        ),
        _differ("what the network is given", "(x - 128) / 128", pytorch_fid="x / 127.5 - 1"),
        _differ("neighbours of precision and recall", "5, the border outside", adm="3, the border inside"),
        _differ(
            "order of the logits",
            "shuffled by a seed",
            reference="as they are (published: shuffled by chance)",
            torchmetrics="as they are (published: shuffled by chance)",
            adm="as they are",
        ),
        _differ(
            "parts of the inception score",
            "[iN/s, (i+1)N/s)",
            reference="ceil(N/s), perhaps fewer",
            torchmetrics="ceil(N/s), perhaps fewer",
        ),
        _differ("deviation over the parts", "ddof 0: one part has 0", torchmetrics="ddof 1: one part has none"),
        _differ("root of the product of covariances", "exact for any number of images"),
        _differ(
            "CLIP score",
            "mean of max(100 cos, 0)",
            reference="max(mean of 100 cos, 0)",
            torchmetrics="max(mean of 100 cos, 0)",
            paper="mean of max(2.5 cos, 0)",
        ),
        _differ("before every caption", "nothing", paper="A photo depicts"),
        _differ("the CLIP of the captions, if not given", "ViT-L/14", paper="ViT-B/32"),
        _differ(
            "captions that are too long",
            "cut before the token that ends them, counted",
            reference="as spec (published: fail)",
            torchmetrics="as spec (published: without that token, so that all have one embedding)",
        ),
    ],
    citation=(
        "Heusel et al. 2017, arXiv:1706.08500; Salimans et al. 2016, arXiv:1606.03498; Binkowski et al. 2018, "
        "arXiv:1801.01401; Hessel et al. 2021, arXiv:2104.08718; mindspore-lab/mindone@2f3898d7a, "
        "mindone/metrics/README.md."
    ),
)
