"""The map that a classical baseline makes of the truth where it was observed: a prediction that nobody saved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .fingerprint import digest
from .guard import refusal
from .kinds import open_stream
from .records import Source
from .stream import Array

Map = Path | Array | Source


def _as_stored(truth: Array) -> Array:
    return truth.astype(np.float64)


def _not_zero(mask: Array) -> Array:
    return np.asarray(mask != 0)


@dataclass(frozen=True, eq=False)
class Interpolated:
    """One sample of a baseline, computed when it is opened.

    method: pixels (n, 2), values (n), shape -> map, as `karat.kernels.interpolate.BASELINES` has them.  name: of the
    method.  values: the truth in its unit, as float64.  seen: where the mask says that something was observed.
    Observed pixels whose truth is NaN are none.
    """

    truth: Map
    observed: Map | None
    name: str
    method: Callable[[Array, Array, tuple[int, int]], Array]
    values: Callable[[Array], Array] = _as_stored
    seen: Callable[[Array], Array] = _not_zero

    def open(self) -> Array:
        """The map (H, W), float64."""
        if self.observed is None:
            raise refusal("this sample", "has no mask", "baselines are made of what was observed", "give its mask")
        truth, mask = self.values(_only(self.truth, "field")), self.seen(_only(self.observed, "plain"))
        if truth.shape != mask.shape:
            found, wanted = (f"{array.shape[1]}x{array.shape[0]}" for array in (mask, truth))
            raise refusal("observed", f"is {found}", f"the truth is {wanted}", "give a mask of the map's size")
        points = np.argwhere(mask & ~np.isnan(truth))
        return self.method(points, truth[tuple(points.T)], truth.shape)

    def digest(self) -> str:
        """sha256 in hex of what the map is made from: it is the same on every machine, the map to its last bit not."""
        seen = "nothing" if self.observed is None else digest(self.observed)
        parts = ("baseline", self.name, digest(self.truth), seen)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _only(source: Map, kind: str) -> Any:
    """The one map of a source."""
    with open_stream(source, kind) as stream:
        (frame,) = stream
    return frame
