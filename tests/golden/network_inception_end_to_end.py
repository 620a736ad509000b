"""`network-inception-end-to-end`: FID, KID and the Inception Score of two small sets of images."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import numpy as np

from karat.kernels import frechet, mmd
from karat.kernels.inception_score import inception_score
from karat.networks.features import Way
from karat.networks.inception import Inception

from ._networks import first, image, weights
from .case import Answer, Array, Case
from .network_inception import WAYS

TAPS = ("64", "192", "768", "2048", "logits_unbiased")
FID = re.compile(r"(?:torchmetrics_class_)?fid_(\d+)(?:_float32_network)?")
SPLITS = re.compile(r"isc_set_a_logits_unbiased_splits(\d+)(?:_unshuffled)?")
SKIPPED = dict.fromkeys(("h", "w", "*recipe", "*seeds"), "describes the input")


def answer(case: Case) -> Answer:
    """Every score of every way to resize."""
    given = case.expected
    sets = {name: _images(given[name], given["h"], given["w"]) for name in ("set_a", "set_b")}
    results = {way: _scores(case, way, asked, *sets.values()) for way, asked in given["results"].items()}
    checked = {name: {"sha256_nhwc_uint8": sha256(images.tobytes()).hexdigest()} for name, images in sets.items()}
    return Answer({**checked, "results": results}, SKIPPED)


def _images(given: dict[str, Any], height: int, width: int) -> Array:
    """The recipe names the cell; the seeds are the first and the last."""
    cell = int(given["recipe"].partition("cell=")[2].rstrip(")"))
    begin, end = given["seeds"]
    return np.stack([image(seed, height, width, cell) for seed in range(begin, end + 1)])


def _scores(case: Case, way: str, asked: dict[str, float], *sets: Array) -> dict[str, float]:
    network = Inception(weights(case), Way("cpu", batch=8), TAPS, WAYS[way])
    a, b = (
        {tap: rows[:, where] for tap, where in network.columns.items()}
        for rows in map(network.features, map(first, sets))
    )
    found = {}
    for key in asked:
        if fid := FID.fullmatch(key):
            found[key] = frechet.distance(a[fid[1]], b[fid[1]]).value
        elif splits := SPLITS.fullmatch(key):
            found[key] = inception_score(a["logits_unbiased"], int(splits[1])).mean
        elif key == "kid_2048_all_samples_unbiased":
            found[key] = mmd.mmd(a["2048"], b["2048"])
    return found
