"""Draws that are counted, not stateful: they depend on what they are for, and on nothing that was drawn before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


def generator(*key: int) -> np.random.Generator:
    """The stream of a key of whole numbers from 0 on. Salmon et al. 2011, doi:10.1145/2063384.2063405."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


def chosen(n: int, count: int, *key: int) -> Index:
    """`count` of n places without replacement, in rising order."""
    places: Index = np.sort(generator(*key, n, count).choice(n, count, replace=False))
    return places


def shuffled(n: int, *key: int) -> Index:
    """All n places in an order of chance."""
    order: Index = generator(*key, n).permutation(n)
    return order
