"""Small, medium and large masks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from karat.metric import Array

PARTS = {
    "size": "small, medium and large truths as COCO has it: below 32^2 pixels, below 96^2, and above",
    "third": "small, medium and large truths: thirds of them all by area",
}
COCO = (32.0**2, 96.0**2)
THIRDS = (100 / 3, 200 / 3)
NAMES = ("small", "medium", "large")


def thirds(areas: Array) -> Array:
    """The least medium and the least large area: percentiles (linear) of true areas, NaN of none."""
    bounds: Array = np.percentile(areas, THIRDS) if len(areas) else np.full(2, np.nan)
    return bounds


def by_size(areas: Array, *groups: Array) -> Iterator[tuple[str, list[Array]]]:
    """For every size, as kind:size, which of each group of areas are of it; `areas` are those of all truths."""
    for kind, bounds in {"size": np.array(COCO), "third": thirds(areas)}.items():
        places = [np.searchsorted(bounds, group, side="right") for group in groups]
        for place, name in enumerate(NAMES):
            yield f"{kind}:{name}", [of == place for of in places]
