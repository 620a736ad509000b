"""Poses: the instances of one side of one video, as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from karat.errors import InputError, told

from .guard import refusal
from .stream import Array


@dataclass(frozen=True, eq=False)
class Poses:
    """n instances of a skeleton of K nodes. A missing coordinate is NaN; a node counts as seen where none is.

    nodes: names, empty where there are none.  points: (n, K, 2 or 3).  frame: (n) index in the video.
    score: (n), NaN where none was given.  confidence: (n, K) of each node, likewise.  track: (n), -1 for none.
    user: (n), labelled by a person.
    area: (n) given area, NaN for none.  box: (n, 4) given x, y, width, height, NaN for none.
    ignore: (n), neither to be found nor wrong to be found.  crowd: (n), likewise, and it may be found many times.
    labelled: (f) the frames that were looked at, empty ones included, in rising order.
    repeated: (r) the frames that the file lists more than once.  name: what to call the video.
    """

    nodes: tuple[str, ...]
    points: Array
    frame: Array
    score: Array
    confidence: Array
    track: Array
    user: Array
    area: Array
    box: Array
    ignore: Array
    crowd: Array
    labelled: Array
    repeated: Array
    name: str = ""

    @property
    def length(self) -> int:
        """The number of labelled frames."""
        return len(self.labelled)

    @property
    def nbytes(self) -> int:
        """How much memory the instances take."""
        return sum(getattr(self, name).nbytes for name in (*_OF_INSTANCES, "labelled"))

    def __len__(self) -> int:
        return len(self.points)

    def select(self, first: int | None, stride: int) -> Poses:
        """The frames before `first`, and every `stride` of those."""
        if first is None and stride == 1:
            return self
        labelled = _chosen(self.labelled, first, stride)
        own = self.take(np.flatnonzero(_chosen(self.frame, first, stride)))
        return replace(
            own, labelled=self.labelled[labelled], repeated=self.repeated[_chosen(self.repeated, first, stride)]
        )

    def take(self, index: Array) -> Poses:
        """The instances at `index`, in that order; the labelled frames stay."""
        return replace(self, **{name: getattr(self, name)[index] for name in _OF_INSTANCES})

    def digest(self) -> str:
        """sha256 of the content, in hex."""
        state = hashlib.sha256(repr(self.nodes).encode())
        for name in (*_OF_INSTANCES, "labelled", "repeated"):
            array = np.ascontiguousarray(getattr(self, name))
            state.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            given = array.size and not (array.dtype.kind == "f" and np.isnan(array).all())
            state.update(array.data if given else b"none")
        return state.hexdigest()

    def open(self) -> Poses:
        """Itself."""
        return self

    def ordered_as(self, truth: Poses) -> Poses:
        """The same instances with their nodes in the order of the truth's, by name where both have names; nothing has
        no skeleton of its own."""
        if not len(self):
            return replace(no_poses(truth), labelled=self.labelled, repeated=self.repeated, name=self.name)
        if self.points.shape[1] != truth.points.shape[1] or set(self.nodes) != set(truth.nodes):
            raise InputError(
                f"The prediction's skeleton has {_listed(self)} and the truth's has {_listed(truth)}: evaluate "
                "predictions of the same skeleton, or rename the nodes."
            )
        if self.nodes == truth.nodes:
            return self
        place = {name: i for i, name in enumerate(self.nodes)}
        order = [place[name] for name in truth.nodes]
        return replace(self, nodes=truth.nodes, points=self.points[:, order], confidence=self.confidence[:, order])


_OF_INSTANCES = ("points", "frame", "score", "confidence", "track", "user", "area", "box", "ignore", "crowd")
_GIVEN = {field.name for field in fields(Poses)}


def make_poses(points: Any, frame: Any, **given: Any) -> Poses:
    """Checked poses from arrays; what is not given is absent. Labelled are also the frames that have an instance, and
    repeated also those that are listed as labelled more than once."""
    for name in given:
        if name not in _GIVEN:
            raise refusal(
                "the poses", f"have an array {name!r}", f"{', '.join(sorted(_GIVEN))} were expected", "rename it"
            )
    points = np.asarray(points, np.float64)
    if points.ndim != 3 or points.shape[2] not in (2, 3):
        raise refusal("the poses", f"have points of shape {points.shape}", "(n, nodes, 2) was expected", "reshape them")
    count, nodes = points.shape[:2]
    points = np.ascontiguousarray(np.where(np.isfinite(points).all(axis=2, keepdims=True), points, np.nan))
    shapes: Mapping[str, tuple[tuple[int, ...], Any, Any]] = {
        "frame": ((count,), np.int32, None),
        "score": ((count,), np.float64, np.nan),
        "confidence": ((count, nodes), np.float64, np.nan),
        "track": ((count,), np.int32, -1),
        "user": ((count,), bool, True),
        "area": ((count,), np.float64, np.nan),
        "box": ((count, 4), np.float64, np.nan),
        "ignore": ((count,), bool, False),
        "crowd": ((count,), bool, False),
    }
    arrays = {
        name: np.full(shape, filling, dtype)
        if (value := {**given, "frame": frame}.get(name)) is None
        else _column(name, value, shape, dtype)
        for name, (shape, dtype, filling) in shapes.items()
    }
    names = () if given.get("nodes") is None else tuple(map(str, given["nodes"]))
    if names and (len(names) != nodes or len(set(names)) != nodes):
        raise refusal(
            "the skeleton",
            f"has the names {', '.join(names)} for {nodes} nodes",
            "one name a node, each once, was expected",
            "name the nodes",
        )
    listed, times = np.unique(_frames("labelled", given.get("labelled")), return_counts=True)
    labelled = np.unique(np.concatenate([listed, arrays["frame"]]))
    if len(labelled) and labelled[0] < 0:
        raise refusal("the poses", f"have a frame {labelled[0]}", "frames count from 0", "correct it")
    return Poses(
        names,
        points,
        **arrays,
        labelled=labelled,
        repeated=np.union1d(listed[times > 1], _frames("repeated", given.get("repeated"))),
        name=str(given.get("name", "")),
    )


def no_poses(truth: Poses) -> Poses:
    """The prediction of nothing beside a truth."""
    points = np.zeros((0, *truth.points.shape[1:]))
    return make_poses(points, np.zeros(0, np.int32), nodes=truth.nodes, name=truth.name)


def grouped(of: Array, among: Array) -> list[Array]:
    """For each of the rising `among` where it is in `of`, in order."""
    order = np.argsort(of, kind="stable")
    ends = np.searchsorted(of[order], among, side="right")
    return [order[start:end] for start, end in zip(np.searchsorted(of[order], among), ends, strict=True)]


def _column(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise refusal(
            "the poses",
            f"have {name} of shape {array.shape} and {array.dtype}",
            f"numbers of shape {shape} were expected",
            "give one entry an instance",
        )
    with np.errstate(invalid="ignore"):
        column: Array = array.astype(dtype)
    if not np.array_equal(column, array, equal_nan=column.dtype.kind == "f"):
        raise refusal(
            "the poses", f"have {name} that are no {np.dtype(dtype)}", "whole numbers were expected", "round them"
        )
    return column


def _frames(name: str, given: Any) -> Array:
    """A list of frames, none where there is none."""
    frames = np.asarray(() if given is None else given)
    return _column(name, frames if frames.size else np.zeros(0, np.int32), (frames.size,), np.int32)


def _chosen(frame: Array, first: int | None, stride: int) -> Array:
    chosen: Array = (frame % stride == 0) & (frame < (np.iinfo(np.int32).max if first is None else first))
    return chosen


def _listed(poses: Poses) -> str:
    names = f": {', '.join(poses.nodes)}" if poses.nodes else " without names"
    return told(f"{poses.points.shape[1]} nodes{names}")
