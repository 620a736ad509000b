"""Linear algebra on one thread: cut by the number of threads, products and factorisations are rounded otherwise."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

_NAMES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
)
_lock = Lock()
_inside = 0
_before: list[int] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for NumPy's and SciPy's OpenBLAS or MKL until the last of those inside leaves, so that the same inputs
    have the same bits on any number of cores. Several threads may be inside, each of them computes alone."""
    global _inside
    with _lock:
        _inside += 1
        if _inside == 1:
            _before[:] = [get() for get, _ in _libraries()]
            _set([1] * len(_before))
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _set(_before)


def _set(counts: list[int]) -> None:
    for count, (_, put) in zip(counts, _libraries(), strict=True):
        put(count)


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], None]]]:
    """How the threads of the libraries are counted and set; the loader finds these names in what a module links to."""
    import numpy.linalg._umath_linalg as of_numpy
    import scipy.linalg._flapack as of_scipy

    found = []
    for module in (of_numpy, of_scipy):
        library = ctypes.CDLL(module.__file__)
        known = [names for names in _NAMES if all(hasattr(library, name) for name in names)]
        for get, put in known[:1]:
            found.append((getattr(library, get), getattr(library, put)))
    return found
