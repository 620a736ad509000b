"""LPIPS of a case: as it is computed, and in float64 where the difference of near images loses digits of float32."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import torch

from karat.networks.features import Way
from karat.networks.known import known, present
from karat.networks.lpips import Lpips, LpipsGraph
from karat.networks.state import fill, read_state

from ._networks import INPUT, REFERENCE, first, image, state_of, summary, weights
from .case import Answer, Array, Case

NO_HEADS = "the published heads are not here: karat weights fetch lpips-{}"


def answered(case: Case, trunk: str) -> Answer:
    """Both pairs, the layers of the first image, and an image with itself."""
    given, bound = case.expected["input"], case.protocol["tap_rel_l2"]
    one, far = (image(seed, given["h"], given["w"]) for seed in given["seeds"])
    near = ((3 * one.astype(np.int64) + far) // 4).astype(np.uint8)
    network = Lpips(weights(case), Way("cpu", batch=1), trunk)
    exact, heads = exactly(case, trunk), published(case, trunk)
    found: dict[str, Any] = {}
    for name, other in (("near", near), ("far", far)):
        expected = case.expected["pairs"][name]
        (layers,) = distances(exact, one, other)
        (mapped,) = network.maps(first(one[None]), first(other[None]))
        found[name] = {
            "distance": layers.sum(),
            "distance_float32": network.distances(first(one[None]), first(other[None])).total[0],
            "per_layer": layers,
            "spatial_map": summary(mapped[None, None], expected["spatial_map"], bound),
        }
        if heads is not None:
            found[name]["distance_with_real_v0.1_heads"] = distances(heads, one, other).sum()
    with network.way.computing():
        taps = list(network.graph.taps(centred(one).float()))
    expected = case.expected["trunk_taps_image0"]
    values = {
        "input": {
            f"sha256_{name}": sha256(x.tobytes()).hexdigest()
            for name, x in zip(("image0", "image1", "far"), (one, near, far), strict=True)
        },
        "pairs": found,
        "trunk_taps_image0": {
            name: summary(tap.numpy(), expected[name], bound) for name, tap in zip(expected, taps, strict=True)
        },
        "identical_pair_distance": network.distances(first(one[None]), first(one[None])).total[0],
    }
    left_out = INPUT | REFERENCE
    if heads is None:
        left_out["*/distance_with_real_v0.1_heads"] = NO_HEADS.format(trunk)
    return Answer(values, left_out)


def exactly(case: Case, trunk: str) -> LpipsGraph:
    """The network in float64."""
    graph = LpipsGraph(trunk)
    fill(graph, {name: torch.from_numpy(one) for name, one in state_of(case).items()}, weights(case), trunk)
    return graph.double().eval()


def published(case: Case, trunk: str) -> LpipsGraph | None:
    """The same with the heads that were published, where they are here."""
    file = present(known(f"lpips-{trunk}"))
    if file is None:
        return None
    graph = exactly(case, trunk)
    heads = {name: one for name, one in read_state(file).items() if name.startswith("lin")}
    graph.load_state_dict(graph.state_dict() | heads)
    return graph


@torch.inference_mode()
def distances(graph: LpipsGraph, one: Array, other: Array) -> Array:
    """What each layer adds, (1, layers)."""
    return torch.cat([layer.mean((2, 3)) for layer in graph(centred(one), centred(other))], 1).numpy()


def centred(picture: Array) -> torch.Tensor:
    """In -1..1."""
    return torch.from_numpy(first(picture[None])).double() / 127.5 - 1
