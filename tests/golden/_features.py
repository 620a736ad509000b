"""The sets of features of a case: stored ones, and those that are made by a recipe."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from .case import Array, Case

BORROWED = {"d2048_mixed_a": "d2048_few_a"}


def features(case: Case, name: str) -> Array:
    """The array of that name."""
    name = BORROWED.get(name, name)
    arrays = case.arrays()
    return arrays[name] if name in arrays else _made(**case.document["recipes"][name])


def sides(case: Case, pair: str) -> tuple[Array, Array]:
    """A pair's real and generated set."""
    return features(case, f"{pair}_a"), features(case, f"{pair}_b")


def part(case: Case) -> str:
    """What a case of one family's section is called there."""
    return case.name.partition(":")[2]


@lru_cache(maxsize=8)
def _made(
    seed: int, n: int, d: int, scale: float, shift: float, j0: float, sha256_float32_c_order: str, **given: Any
) -> Array:
    """Normal numbers that fall off with 1 / sqrt(j0 + column); the bytes must be those that were meant."""
    draws = np.random.Generator(np.random.PCG64(seed)).standard_normal((n, d))
    spread = np.abs(draws) if given["abs"] else draws
    made = (spread * (scale / np.sqrt(j0 + np.arange(d))) + shift).astype(np.float32)
    if sha256(made.tobytes()).hexdigest() != sha256_float32_c_order:
        raise AssertionError(f"the recipe with the seed {seed} gives other features here")
    return made
