"""`network-inception`: every tap of FID's Inception v3, behind every published way to resize."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import torch

from karat.networks.features import Way
from karat.networks.inception import SIDE, Inception
from karat.networks.resize import RESIZES

from ._networks import INPUT, REFERENCE, first, image, summary, weights
from .case import Answer, Array, Case

WAYS = {
    "tf1": "tf1",
    "pytorch_fid": "pytorch-fid",
    "torchmetrics_antialias": "torchmetrics",
    "clean_fid_clean": "clean",
    "clean_fid_legacy_pytorch": "clean-legacy-pytorch",
}
TAPS = ("64", "192", "768", "2048", "logits_unbiased", "logits")


def answer(case: Case) -> Answer:
    """All variants of one size of images."""
    given, bound = case.expected["input"], case.protocol["tap_rel_l2"]
    images = np.stack([image(seed, given["h"], given["w"]) for seed in given["seeds"]])
    found: dict[str, Any] = {}
    for variant, expected in case.expected["variants"].items():
        values = taps(case, variant, images)
        found[variant] = {name: summary(values[name], expected[name], bound) for name in expected}
    checked = {"sha256_nhwc_uint8": sha256(images.tobytes()).hexdigest()}
    return Answer({"input": checked, "variants": found}, INPUT | REFERENCE)


def taps(case: Case, variant: str, images: Array) -> dict[str, Array]:
    """Every tap of images (N, H, W, 3), and the input of the network."""
    network = Inception(weights(case), Way("cpu", batch=len(images)), TAPS, WAYS[variant])
    rows = network.features(first(images))
    inputs = RESIZES[WAYS[variant]](torch.from_numpy(first(images)), SIDE).numpy()
    return {"network_input": inputs} | {name: rows[:, columns] for name, columns in network.columns.items()}
