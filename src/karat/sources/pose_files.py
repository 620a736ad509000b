"""What poses are read from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .guard import refusal
from .poses import Poses, make_poses, no_poses
from .records import RecordKind, Source


def to_poses(value: Any) -> Poses:
    """Poses of what a user has in memory: themselves, or a mapping of their arrays."""
    if isinstance(value, Poses):
        return value
    if isinstance(value, Mapping):
        given = dict(value)
        for name in ("points", "frame"):
            if name not in given:
                raise refusal("the poses", f"have no {name}", "points and frame were expected", "add it")
        return make_poses(given.pop("points"), given.pop("frame"), **given)
    raise refusal(
        f"a value of type {type(value).__name__}", "holds no poses", POSES.expects, "pass a mapping of arrays"
    )


def expand(path: Path) -> Mapping[str, Source]:
    """The videos of a file."""
    raise refusal(path, f"has the suffix {path.suffix!r}", POSES.expects, "convert the file")


POSES = RecordKind(
    "poses",
    "poses: points (n, nodes, 2) with their frame, score and track",
    frozenset({".npz"}),
    expand,
    to_poses,
    empty=no_poses,
)
