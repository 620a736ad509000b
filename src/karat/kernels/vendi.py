"""The Vendi Score: how many different samples there seem to be."""

from __future__ import annotations

import numpy as np

from karat.kernels.blas import one_thread
from karat.kernels.features import Array, checked, directed


def vendi(features: Array) -> float:
    """exp(-sum of v log v) over the eigenvalues v of K / n, K the cosines of all samples: 1 where all point one way, n
    where all are orthogonal. X'X / n has the same ones above 0, and is taken where it is smaller.

    Friedman & Dieng 2023, arXiv:2210.02410.
    """
    from scipy.linalg import eigvalsh

    rows = directed(checked(features))
    with one_thread():
        likeness = rows @ rows.T if len(rows) <= rows.shape[1] else rows.T @ rows
        values = eigvalsh(likeness / len(rows), check_finite=False, overwrite_a=True)
    positive = values[values > 0]
    return float(np.exp(-(positive * np.log(positive)).sum()))
