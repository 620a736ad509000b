"""`python -m bench [transfer] [pose] [radiomap] [control] [generation]`: Karat beside its peers, as ratios.

One process on one core, the same inputs, in turns; the best time of each; ratios, since machines differ.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import cv2  # noqa: E402

from bench.race import table  # noqa: E402

SUITES = ("transfer", "pose", "radiomap", "control", "generation")


def main() -> int:
    """Prints a table a suite; 1 where a promise is not kept, 2 where a suite does not exist."""
    wanted = sys.argv[1:] or SUITES
    if unknown := set(wanted) - set(SUITES):
        print(f"there is no bench of {', '.join(unknown)}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    cv2.setNumThreads(1)
    kept = True
    for suite in wanted:
        with tempfile.TemporaryDirectory() as folder:
            kept &= table(import_module(f"bench.{suite}").races(Path(folder)))
    return 0 if kept else 1


sys.exit(main())
