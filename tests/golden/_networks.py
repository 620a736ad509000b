"""Weights and images of the cases of networks, which are recipes, and how vectors are compared with their summaries."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from .case import Array, Case, load_json

PLACES = 64  # of a vector, that its summary holds
REFERENCE = {"*float32_rel_l2_error": "describes the reference", "*float32_max_abs_error": "describes the reference"}
INPUT = {f"input/{name}": "describes the input" for name in ("recipe", "seeds", "h", "w", "image*", "scaling")}


def weight(key: str, shape: Sequence[int], gain: float, salt: str) -> Array:
    """The recipe of the family's README, for the kinds of tensors that these networks have."""
    end = key.rpartition(".")[2]
    z = np.random.Generator(np.random.PCG64(zlib.crc32((salt + key).encode()))).standard_normal(tuple(shape))
    if end == "running_var":
        z = 0.75 + 0.25 * np.abs(z)
    elif end in ("running_mean", "bias"):
        z = 0.1 * z
    elif len(shape) == 1:
        z = 1 + 0.1 * z
    elif key.startswith("lin"):
        z = 0.2 * np.abs(z)
    else:
        z = z * (gain / np.sqrt(float(np.prod(shape[1:]))))
    return z.astype(np.float32)


def state_of(case: Case) -> dict[str, Array]:
    """All weights of the case, once they are known to be those that were meant."""
    keys = load_json(case.folder / case.inputs["keys"])
    state = {key: weight(key, shape, keys["gain"], case.inputs["salt"]) for key, shape, *_ in keys["keys"]}
    found = sha256(b"".join(state[key].astype("<f4").tobytes() for key in sorted(state))).hexdigest()
    if found != keys["sha256_all_tensors_sorted_by_key"]:
        raise AssertionError("the recipe makes other weights than were meant")
    return state


def weights(case: Case) -> Path:
    """A file of the case's weights, which is there until the program ends."""
    file = Path(_folder().name) / f"{Path(case.inputs['keys']).stem}{case.inputs['salt']}.safetensors"
    if not file.exists():
        store(state_of(case), file)
    return file


def store(state: Mapping[str, Array], file: Path) -> Path:
    """The file, once it holds these weights."""
    from safetensors.numpy import save_file

    save_file(dict(state), file)
    return file


@lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def image(seed: int, height: int, width: int, cell: int = 16) -> Array:
    """Tinted squares with noise, (H, W, 3)."""
    draw = np.random.Generator(np.random.PCG64(seed))
    coarse = draw.integers(0, 256, size=(-(-height // cell), -(-width // cell), 3))
    fine = draw.integers(-20, 21, size=(height, width, 3))
    tint = draw.integers(-60, 61, size=3)
    big = coarse.repeat(cell, 0).repeat(cell, 1)[:height, :width]
    return np.clip(big + fine + tint, 0, 255).astype(np.uint8)


def first(images: Array) -> Array:
    """(N, H, W, 3) with channels first."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def summary(found: Any, expected: Mapping[str, Any], bound: float) -> dict[str, Any]:
    """The summary of a vector, where what is within the bound of vectors stands as expected.

    The bound is the relative L2 error that the protocol states: of the 64 values of `slice`; of the other numbers what
    such an error can make of them.
    """
    values = np.asarray(found, np.float64)
    size, whole = values.size, expected["l2"]
    own: dict[str, Any] = {
        "mean": values.mean(),
        "std": values.std(),
        "sum": values.sum(),
        "l2": np.linalg.norm(values),
        "max_abs": np.abs(values).max(),
        "slice": values.ravel()[np.arange(PLACES) * size // PLACES],
    }
    scales = {"mean": size**-0.5, "std": size**-0.5, "sum": size**0.5, "l2": 1.0, "max_abs": 1.0}
    allowed = {name: bound * whole * scale for name, scale in scales.items()}
    allowed["slice"] = bound * float(np.linalg.norm(expected["slice"]))
    same = [name for name, most in allowed.items() if np.linalg.norm(own[name] - np.asarray(expected[name])) <= most]
    return {"shape": list(values.shape)} | own | {name: expected[name] for name in same}
