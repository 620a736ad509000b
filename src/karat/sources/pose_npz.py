"""Poses in npz: the arrays that poses are in memory, of one video or of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .arrays import members_of, open_npz
from .guard import GIB, refusal
from .poses import Poses, grouped, make_poses
from .stream import Array

MAX_BYTES = 2 * GIB
MAX_VIDEOS = 100_000
ALIASES = {
    "frame_idx": "frame",
    "video_idx": "video",
    "labeled": "labelled",
    "labeled_frame_idx": "labelled",
    "labeled_video": "labelled_video",
    "labeled_video_idx": "labelled_video",
}
INSTANCES = ("points", "frame", "score", "confidence", "track", "user", "area", "box", "ignore", "crowd")
FRAMES = ("labelled", "repeated")
TEXT = ("nodes", "name")
KNOWN = (*INSTANCES, *FRAMES, *TEXT, "video", *(f"{name}_video" for name in FRAMES))


def read_npz(path: Path) -> dict[str, Poses]:
    """The poses of a file by video: "" without an array `video`, else "0000", "0001", ... as that numbers them."""
    arrays = _arrays(path)
    nodes = arrays.pop("nodes", None)
    given: dict[str, Any] = {} if nodes is None else {"nodes": nodes.tolist()}
    if "video" not in arrays:
        name = str(arrays.pop("name", ""))
        return {"": make_poses(**arrays, **given, name=name)}
    video = _numbers(path, "video", arrays.pop("video"), len(arrays["frame"]))
    by_frame: dict[str, tuple[Array, Array]] = {}
    for name in FRAMES:
        if name in arrays:
            frames = arrays.pop(name)
            by_frame[name] = (frames, _numbers(path, f"{name}_video", arrays.pop(f"{name}_video", None), len(frames)))
    left = [name for name in arrays if name not in INSTANCES]
    if left:
        raise refusal(path, f"has {left[0]} and video", "one of them was expected", "leave one out")
    numbers = np.unique(np.concatenate([video, *(of for _, of in by_frame.values())]))
    if not len(numbers):  # nothing was found in the first video, nor in any other
        numbers = np.zeros(1, np.int32)
    held = grouped(video, numbers)
    listed = {name: (frames, grouped(of, numbers)) for name, (frames, of) in by_frame.items()}
    return {
        f"{number:04d}": make_poses(
            **{name: column[held[i]] for name, column in arrays.items()},
            **{name: frames[places[i]] for name, (frames, places) in listed.items()},
            **given,
        )
        for i, number in enumerate(numbers.tolist())
    }


def _arrays(path: Path) -> dict[str, Array]:
    """Every array of the file under its own name, none of them larger than it may be."""
    arrays: dict[str, Array] = {}
    for info in members_of(path, MAX_BYTES, "split it, or save it with np.savez"):
        stored = info.filename.removesuffix(".npy")
        name = ALIASES.get(stored, stored)
        if name not in KNOWN or name in arrays:
            found = "twice" if name in arrays else f"under {stored!r}"
            raise refusal(
                path,
                f"holds {name if name in arrays else 'an array'} {found}",
                f"each at most once of {', '.join(KNOWN)} was expected",
                "rename or remove it",
            )
        slab = open_npz(path, (stored,), ())
        (arrays[name],) = slab.read(0)
        if slab.dtype.kind not in ("U" if name in TEXT else "biuf"):
            kind = "text" if name in TEXT else "numbers"
            raise refusal(slab.name, f"is {slab.dtype.name}", f"{kind} were expected", "save it as such")
    missing = [name for name in ("points", "frame") if name not in arrays]
    if missing:
        raise refusal(path, f"holds no {missing[0]}", "points and frame were expected", "add it")
    return arrays


def _numbers(path: Path, name: str, numbers: Array | None, count: int) -> Array:
    """The numbers of videos, one for each instance or frame."""
    fits = numbers is not None and numbers.shape == (count,)
    if numbers is None or not fits or (count and not 0 <= numbers.min() <= numbers.max() < MAX_VIDEOS):
        found = "missing" if numbers is None else f"{numbers.dtype.name} of shape {numbers.shape}"
        raise refusal(
            f"{path}[{name}]",
            f"is {found}",
            f"a number from 0 to {MAX_VIDEOS - 1} for each of {count} entries was expected",
            "correct it",
        )
    whole = numbers.astype(np.int32)
    if not np.array_equal(whole, numbers):
        raise refusal(f"{path}[{name}]", "has fractions", "numbers of videos were expected", "round them")
    return whole
