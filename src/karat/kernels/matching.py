"""Who is paired with whom, from a matrix of similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def best_of_each_row(similarity: Array) -> tuple[Array, Array]:
    """Every row with its most similar column, the first of equals; a column may be taken more than once."""
    if similarity.shape[1] == 0:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    return np.arange(len(similarity)), similarity.argmax(axis=1)


def one_to_one(similarity: Array) -> tuple[Array, Array]:
    """The assignment of largest total similarity. Kuhn 1955, doi:10.1002/nav.3800020109; Crouse 2016."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(1.0 - similarity)
    return rows, columns
