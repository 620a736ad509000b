"""What SLEAP and SLEAP-NN write as `metrics.npz`: a pickled dictionary, read without running anything in it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import members_of, open_npz
from .guard import GIB, MIB, guarded, read_bounded, refusal
from .pickle_machine import Names
from .safe_pickle import loads
from .strict import loads as loads_json

MAX_JSON = 512 * MIB
MAX_BYTES = GIB
EXPECTED = "metrics of SLEAP or SLEAP-NN"
POINTS: Names = {("sleap.instance", name): "array" for name in ("PointArray", "PredictedPointArray")}


def read_metrics(path: Path) -> dict[str, Any]:
    """Numbers, arrays and texts by name, in sections where the file has them; None is undefined. The JSON beside an npz
    holds the same, large arrays left out, and is read instead."""
    with guarded(path, EXPECTED):
        beside = path.with_suffix(".json")
        found = _json(beside) if beside.is_file() else _npz(path)
        if not isinstance(found, dict) or not _are_named(found):
            raise refusal(path, "holds no numbers by name", f"{EXPECTED} were expected", "check the path")
        return found


def _json(path: Path) -> Any:
    return loads_json(read_bounded(path, MAX_JSON, EXPECTED))


def _npz(path: Path) -> Any:
    """What is stored as `metrics`; older files store every section, or every number, by itself."""
    members = members_of(path, MAX_BYTES, "split it")
    with zipfile.ZipFile(path) as archive:
        found = {info.filename.removesuffix(".npy"): _member(path, archive, info) for info in members}
    return found["metrics"] if list(found) == ["metrics"] else found


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        _, _, dtype = read(member)
        if dtype.hasobject:
            return loads(member.read(), f"{path}[{name}]", POINTS)
    (array,) = open_npz(path, (name,), ()).read(0)
    return array


def _are_named(found: dict[Any, Any]) -> bool:
    """Whether all names are texts."""
    return all(isinstance(name, str) and (not isinstance(one, dict) or _are_named(one)) for name, one in found.items())
