"""Poses in NWB: frames of training data, as ndx-pose lays them out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .guard import refusal
from .hdf5 import Hdf5
from .images import natural
from .pose_rows import Rows, one_skeleton
from .poses import Poses
from .stream import Array

TRAINING = "processing/behavior/PoseTraining"
SKELETONS = "processing/behavior/Skeletons"


def read_nwb(path: Path) -> list[Poses]:
    """The poses that a .nwb holds as training data; of predictions NWB knows the time, not the frame."""
    with Hdf5(path) as file:
        if TRAINING not in file:
            raise refusal(
                path,
                "holds no PoseTraining",
                "frames of a video by number were expected, which NWB keeps of training data alone",
                "convert it to .slp or .npz",
            )
        return _rows(file).by_video(path)


def _rows(file: Hdf5) -> Rows:
    """All that people labelled, in the order of the names of frames and instances."""
    skeletons = {f"/{SKELETONS}/{name}": i for i, name in enumerate(file.names(SKELETONS))}
    nodes = [tuple(file.texts(f"{name}/nodes")) for name in skeletons]
    videos = {
        f"/{TRAINING}/source_videos/{name}": i for i, name in enumerate(_sorted(file, f"{TRAINING}/source_videos"))
    }
    video, frame, row, used, points = [], [], [], [], []
    for place, name in enumerate(_sorted(file, f"{TRAINING}/training_frames")):
        group = f"{TRAINING}/training_frames/{name}"
        number = file.attribute(group, "source_video_frame_index")
        of = file.target(f"{group}/source_video")
        if number is None or of not in videos:
            raise refusal(f"{file.path}[{name}]", "names no frame of a video", "one was expected", "export it again")
        video.append(videos[of])
        frame.append(int(number))
        for instance in _sorted(file, f"{group}/skeleton_instances"):
            own = f"{group}/skeleton_instances/{instance}"
            row.append(place)
            links = [file.target(f"{own}/{one}") for one in file.names(own)]
            used.append(next((skeletons[one] for one in links if one in skeletons), -1))
            points.append(_points(file, own))
    chosen = one_skeleton(nodes, np.array(used, np.intp), file.path)
    unfit = [len(one) for one in points if len(one) != len(chosen)]
    if unfit:
        raise refusal(
            file.path, f"has an instance of {unfit[0]} nodes", f"its skeleton has {len(chosen)}", "export it again"
        )
    return Rows(
        [_video(file, name) for name in videos] or [""],
        chosen,
        np.array(video, np.intp),
        np.array(frame, np.int64),
        np.array(row, np.intp),
        np.array(points, np.float64).reshape(len(points), len(chosen), 2),
    )


def _sorted(file: Hdf5, group: str) -> list[str]:
    """frame_2 before frame_10: HDF5 lists names by their letters."""
    return sorted(file.names(group), key=natural)


def _points(file: Hdf5, instance: str) -> Array:
    """(K, 2), NaN for what is not visible."""
    points = file.array(f"{instance}/node_locations")
    shown = f"{instance}/node_visibility"
    seen = file.array(shown) != 0 if shown in file else np.ones(len(points), bool)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "iuf" or seen.shape != points.shape[:1]:
        raise refusal(
            f"{file.path}[{instance}]",
            f"has points of shape {points.shape}",
            "(nodes, 2) was expected",
            "export it again",
        )
    return np.where(seen[:, None], points, np.nan)


def _video(file: Hdf5, group: str) -> str:
    """The path of a video; of one that is a list of pictures their folder."""
    files = file.texts(f"{group}/external_file") if f"{group}/external_file" in file else []
    return files[0] if len(files) == 1 else files[0].replace("\\", "/").rpartition("/")[0] if files else ""
