"""Poses in .h5: analyses by SLEAP, poses of JABS, and tables that DeepLabCut lets pandas write."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .guard import refusal
from .hdf5 import Hdf5
from .pose_dlc import read_dlc_hdf5
from .pose_rows import mean_seen, whole
from .poses import Poses, make_poses
from .stream import Array

ANALYSIS = ("frame", "track", "node", "xy")
AS_MATLAB = ("track", "xy", "node", "frame")  # of analyses that do not say: the order SLEAP exports in,
AS_BUILT = ("frame", "node", "xy", "track")  # and the one in which it builds them
JABS_NODES = (
    "NOSE",
    "LEFT_EAR",
    "RIGHT_EAR",
    "BASE_NECK",
    "LEFT_FRONT_PAW",
    "RIGHT_FRONT_PAW",
    "CENTER_SPINE",
    "LEFT_REAR_PAW",
    "RIGHT_REAR_PAW",
    "BASE_TAIL",
    "MID_TAIL",
    "TIP_TAIL",
)


def read_hdf5(path: Path) -> list[Poses]:
    """The poses of a .h5."""
    with Hdf5(path) as file:
        tables = [name for name in file.names() if file.attribute(name, "pandas_type") is not None]
        if len(tables) == 1:
            return read_dlc_hdf5(file, tables[0])
        if "tracks" in file and "track_occupancy" in file:
            return [_analysis(file)]
        if "poseest/points" in file:
            return [_jabs(file)]
    raise refusal(
        path,
        f"holds {len(tables)} tables of pandas" if tables else "holds neither tracks, poseest nor a table of pandas",
        "an analysis by SLEAP, poses of JABS or one table of DeepLabCut was expected",
        "convert it to .slp or .npz",
    )


def _analysis(file: Hdf5) -> Poses:
    """A dense array of frames by tracks. Who has no score was labelled by a person; frames without an instance were not
    looked at, as far as such a file tells."""
    exported = bool(file.attribute("/", "transpose") in (None, True, 1))
    order = _order(file, "tracks", AS_MATLAB if exported else AS_BUILT, ANALYSIS)
    points = _turned(file, "tracks", order, ANALYSIS)
    frames, tracks, nodes, _ = points.shape
    names = file.texts("node_names")
    without_xy = [axis for axis in order if axis != "xy"]
    confidence = _scores(file, "point_scores", without_xy, (frames, tracks, nodes))
    score = _scores(file, "instance_scores", [axis for axis in without_xy if axis != "node"], (frames, tracks))
    default = ("frame", "track") if exported else ("track", "frame")
    occupied = _turned(file, "track_occupancy", _order(file, "track_occupancy", default, ANALYSIS[:2]), ANALYSIS[:2])
    if occupied.shape != (frames, tracks) or points.shape[3] != 2 or len(names) != nodes:
        raise refusal(
            file.path,
            f"holds tracks of shape {points.shape} for {len(names)} nodes and occupancy of {occupied.shape}",
            "frames, tracks and nodes of one number were expected",
            "export it again",
        )
    frame, track = np.nonzero((occupied != 0) | np.isfinite(points).any(axis=(2, 3)))
    own = score[frame, track]
    return make_poses(
        points[frame, track],
        frame,
        nodes=names,
        score=own,
        confidence=confidence[frame, track],
        track=track if len(file.texts("track_names")) else None,
        user=np.isnan(own),
        name=file.text("video_path"),
    )


def _order(file: Hdf5, name: str, default: Sequence[str], axes: Sequence[str]) -> Sequence[str]:
    """What the axes of an array are."""
    said = file.attribute(name, "dims")
    order = json.loads(said) if isinstance(said, str) else default
    if not isinstance(order, Sequence) or sorted(map(str, order)) != sorted(axes):
        raise refusal(
            f"{file.path}[{name}]", f"has the axes {order}", f"{', '.join(axes)} were expected", "export it again"
        )
    return order


def _turned(file: Hdf5, name: str, order: Sequence[str], axes: Sequence[str]) -> Array:
    """Numbers with their axes in this order."""
    array = file.array(name)
    if array.ndim != len(axes) or array.dtype.kind not in "biuf":
        raise refusal(
            f"{file.path}[{name}]",
            f"is {array.dtype.name} of shape {array.shape}",
            f"numbers by {', '.join(axes)} were expected",
            "export it again",
        )
    return array.transpose([order.index(axis) for axis in axes])


def _scores(file: Hdf5, name: str, default: Sequence[str], shape: tuple[int, ...]) -> Array:
    """Scores, which early analyses do not have."""
    if name not in file:
        return np.full(shape, np.nan)
    axes = ANALYSIS[: len(shape)]
    scores = _turned(file, name, _order(file, name, default, axes), axes)
    if scores.shape != shape:
        raise refusal(f"{file.path}[{name}]", f"has shape {scores.shape}", f"{shape} was expected", "export it again")
    return scores


def _jabs(file: Hdf5) -> Poses:
    """Points as (y, x) of at most so many mice a frame. A node without confidence is missing, a mouse's score is the
    mean of its nodes', and its id is its track."""
    points, confidence = (file.array(f"poseest/{name}") for name in ("points", "confidence"))
    said = file.attribute("poseest", "version")
    version = int(np.ravel(said)[0]) if said is not None else 2
    if version == 2 and points.ndim == 3:
        points, confidence = points[:, None], confidence[:, None]
    if points.shape[2:] != (len(JABS_NODES), 2) or points.ndim != 4 or confidence.shape != points.shape[:3]:
        raise refusal(
            f"{file.path}[poseest]",
            f"has points of shape {points.shape} with confidence of shape {confidence.shape}",
            f"{len(JABS_NODES)} points of each mouse in each frame were expected",
            "convert it to .slp",
        )
    frames, mice = points.shape[:2]
    if version == 2:
        ids, valid = np.zeros((frames, mice), np.int64), np.ones((frames, mice), bool)
    elif version == 3:
        ids = whole(file.array("poseest/instance_track_id"), file.path)
        valid = np.arange(mice) < whole(file.array("poseest/instance_count"), file.path).reshape(frames, 1)
    else:
        ids = whole(file.array("poseest/instance_embed_id"), file.path)
        valid = ids > 0
    if ids.shape != (frames, mice):
        raise refusal(
            f"{file.path}[poseest]", f"has ids of shape {ids.shape}", f"{(frames, mice)} was expected", "fix it"
        )
    seen = confidence > 0
    frame, mouse = np.nonzero(valid & seen.any(axis=2))
    seen, own = seen[frame, mouse], confidence[frame, mouse].astype(np.float64)
    return make_poses(
        np.where(seen[..., None], points[frame, mouse][..., ::-1], np.nan),
        frame,
        nodes=JABS_NODES,
        score=mean_seen(own, seen),
        confidence=np.where(seen, own, np.nan),
        track=ids[frame, mouse],
        user=np.zeros(len(frame), bool),
        labelled=np.arange(frames),
        name=re.sub(r"(_pose_est_v\d+)?\.h(df)?5$", ".avi", file.path.name, flags=re.IGNORECASE),
    )
