"""Poses of SLEAP, and of what else sleap-io reads: that is optional, and imported when such a file is met."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError

from .guard import refusal
from .hdf5 import open_hdf5
from .pose_dlc import read_dlc_hdf5
from .poses import Poses, grouped, make_poses
from .stream import Array

PICTURES = re.compile(r"video\d+/")  # embedded in packages, never read here
EMBEDDED = re.compile(r"video(\d+)/")
FIRST_CENTRED = 1.1  # earlier SLEAP files count from a pixel's corner
MAX_TEXT = 10_000


@dataclass(frozen=True)
class Rows:
    """Labels as arrays: of each listed frame its video and number, of each instance what follows.

    row: of its frame.  skeleton: by number.  points, confidence: (sum of nodes) of all instances one after another.
    """

    video: Array
    frame: Array
    row: Array
    skeleton: Array
    track: Array
    user: Array
    score: Array
    sizes: Array
    points: Array
    confidence: Array


def read_slp(path: Path) -> list[Poses]:
    """The poses of a .slp file by video, without opening what these are called after."""
    open_hdf5(path, lambda name: not PICTURES.match(name)).close()
    labels = _sleap_io(path).load_slp(str(path.absolute()), open_videos=False, lazy=True)
    return poses_of(labels, path)


def read_hdf5(path: Path) -> list[Poses]:
    """The poses of a .h5: an analysis by SLEAP, or tables of DeepLabCut or JABS."""
    with open_hdf5(path) as file:
        tables = [name for name in file if "pandas_type" in file[name].attrs]
        if len(tables) == 1:
            return read_dlc_hdf5(path, file[tables[0]])
        video = _scalar(file["video_path"][()]) if "video_path" in file else ""
        analysis, jabs = "track_occupancy" in file, "poseest" in file
    sio = _sleap_io(path)
    if analysis:  # given, since sleap-io would look whether there is a video, also on the net
        named = sio.Video(filename=video, open_backend=False)
        return poses_of(sio.load_analysis_h5(str(path.absolute()), video=named), path)
    if jabs:
        return poses_of(sio.load_jabs(str(path.absolute())), path)
    raise refusal(
        path,
        "holds neither tracks, poseest nor a table",
        "an analysis by SLEAP, or poses of JABS or DeepLabCut were expected",
        "convert it to .slp or .npz",
    )


def read_nwb(path: Path) -> list[Poses]:
    """The poses that a .nwb holds as training data; predictions there know the time of a frame, not its number."""
    videos: list[str] = []

    def note(name: str, thing: Any) -> None:
        if name.endswith("/external_file"):
            videos.extend(map(_scalar, thing[()].ravel().tolist()))

    with open_hdf5(path, lambda name: name.startswith("processing/")) as file:
        if "PoseTraining" not in file.get("processing/behavior", ()):
            raise refusal(
                path,
                "holds no PoseTraining",
                "frames of a video by number were expected, which NWB keeps of training data alone",
                "convert it to .slp or .npz",
            )
        file.visititems(note)
    for name in videos:
        if "://" in name:  # sleap-io would look whether it is there
            raise refusal(path, f"refers to {name[:80]}", "nothing is read from the net", "convert it to .slp")
    return poses_of(_sleap_io(path).load_nwb(str(path.absolute())), path)


def read_json(path: Path, document: Any) -> list[Poses]:
    """The poses of a JSON document that is not COCO's: of Label Studio or AlphaTracker."""
    first = document[0] if isinstance(document, list) and document else None
    if isinstance(first, dict) and "annotations" in first:
        sio = _sleap_io(path)
        load = sio.load_alphatracker if first.get("class") == "image" else sio.load_labelstudio
        return poses_of(load(str(path.absolute())), path)
    raise refusal(
        path,
        "is no COCO truth (images, annotations, categories), nor COCO detections (a list with image_id)",
        "one of these, or tasks of Label Studio or AlphaTracker were expected",
        "convert it",
    )


def is_labels(value: Any) -> bool:
    """Whether a value is a sleap_io.Labels."""
    sio = sys.modules.get("sleap_io")
    return sio is not None and isinstance(value, sio.Labels)


def poses_of(labels: Any, name: object = "the labels") -> list[Poses]:
    """The poses of each video of a sleap_io.Labels."""
    store = getattr(labels, "_lazy_store", None)
    videos = list(labels.videos)
    rows = _of_objects(labels, videos) if store is None else _of_store(store, videos, name)
    nodes = _nodes(labels, rows, name)
    count = len(nodes)
    if (rows.sizes != count).any():
        raise refusal(
            name,
            f"has an instance of {rows.sizes[rows.sizes != count][0]} nodes",
            f"its skeleton has {count}",
            "fix it",
        )
    if len(rows.video) and not 0 <= rows.video.min() <= rows.video.max() < len(videos):
        raise refusal(name, f"has frames of video {rows.video.max()}", f"it lists {len(videos)}", "save it again")
    points, confidence = rows.points.reshape(-1, count, rows.points.shape[-1]), rows.confidence.reshape(-1, count)
    own, of = _distinct(videos)
    listed = grouped(of[rows.video], np.arange(len(own)))
    held = grouped(of[rows.video][rows.row], np.arange(len(own)))
    return [
        make_poses(
            points[some],
            rows.frame[rows.row[some]],
            nodes=nodes,
            score=rows.score[some],
            confidence=confidence[some],
            track=rows.track[some],
            user=rows.user[some],
            labelled=rows.frame[frames],
            name=path,
        )
        for path, frames, some in zip(own, listed, held, strict=True)
    ]


def _of_objects(labels: Any, videos: Sequence[Any]) -> Rows:
    """Labels whose frames and instances are objects."""
    predicted = sys.modules["sleap_io"].PredictedInstance
    place = {id(video): i for i, video in enumerate(videos)}
    skeletons = {id(skeleton): i for i, skeleton in enumerate(labels.skeletons)}
    tracks = {id(track): i for i, track in enumerate(labels.tracks)} | {id(None): -1}
    frames = list(labels.labeled_frames)
    lists = [frame.instances for frame in frames]
    every = [instance for some in lists for instance in some]
    user = [not isinstance(one, predicted) for one in every]
    arrays = [one.points for one in every]
    seen = _joined([one["visible"] for one in arrays], (0,), bool)
    xy = _joined([one["xy"] for one in arrays], (0, 2), np.float64)
    sizes = np.array([len(one) for one in arrays], np.intp)
    unsure = [np.full(len(one), np.nan) if by_hand else one["score"] for one, by_hand in zip(arrays, user, strict=True)]
    return Rows(
        np.array([place[id(frame.video)] for frame in frames], np.intp),
        np.array([int(frame.frame_idx) for frame in frames], np.int64),
        np.repeat(np.arange(len(frames)), [len(some) for some in lists]),
        np.array([skeletons[id(one.skeleton)] for one in every], np.intp),
        np.array([tracks.setdefault(id(one.track), len(tracks) - 1) for one in every], np.intp),
        np.array(user, bool),
        np.array([np.nan if by_hand else one.score for one, by_hand in zip(every, user, strict=True)], np.float64),
        sizes,
        np.where(seen[:, None], xy, np.nan),
        _joined(unsure, (0,), np.float64),
    )


def _of_store(store: Any, videos: Sequence[Any], name: object) -> Rows:
    """Labels that sleap-io has read and not yet made objects of."""
    frames, instances = store.frames_data, store.instances_data
    first, last = _whole(frames["instance_id_start"]), _whole(frames["instance_id_end"])
    index, row = _spans(first, last, len(instances), name)
    own = instances[index]
    user = _whole(own["instance_type"]) == 0
    start, end = _whole(own["point_id_start"]), _whole(own["point_id_end"])
    which = [np.flatnonzero(~user), np.flatnonzero(user)]
    tables = [store.pred_points_data, store.points_data]
    taken = [_spans(start[some], end[some], len(table), name)[0] for some, table in zip(which, tables, strict=True)]
    sizes = end - start
    points = np.full((int(sizes.sum()), 2), np.nan)
    confidence = np.full(len(points), np.nan)
    by_hand = np.repeat(user, sizes)
    for mine, rows, table in zip((~by_hand, by_hand), taken, tables, strict=True):
        some = table[rows]
        points[mine] = np.where(some["visible"][:, None] != 0, np.stack([some["x"], some["y"]], axis=1), np.nan)
        if "score" in (some.dtype.names or ()):
            confidence[mine] = some["score"]
    if store.format_id < FIRST_CENTRED:
        points -= 0.5
    return Rows(
        _list_places(_whole(frames["video"]), videos),
        _whole(frames["frame_idx"]),
        row,
        _whole(own["skeleton"]),
        _whole(own["track"]),
        user,
        np.where(user, np.nan, own["score"]),
        sizes,
        points,
        confidence,
    )


def _spans(first: Array, last: Array, count: int, name: object) -> tuple[Array, Array]:
    """All places from first to last of each span, one span after another, and the number of the span."""
    sizes = last - first
    if len(first) and (first.min() < 0 or sizes.min() < 0 or last.max() > count or sizes.sum() > count):
        raise refusal(name, "refers to entries that it does not hold", f"there are {count}", "save it again")
    span = np.repeat(np.arange(len(first)), sizes)
    starts = np.cumsum(sizes) - sizes
    return np.arange(len(span)) - starts[span] + first[span], span


def _list_places(numbers: Array, videos: Sequence[Any]) -> Array:
    """Places in the list of videos: what frames refer to, unless packages are numbered with gaps."""
    used = np.unique(numbers)
    if len(used) == len(videos) and len(used) and used[-1] == len(videos) - 1:
        return numbers
    own = [EMBEDDED.match(str(video.backend_metadata.get("dataset") or "")) for video in videos]
    place = {int(found.group(1)) if found else i: i for i, found in enumerate(own)}
    return np.array([place.get(one, -1) for one in used.tolist()], np.intp)[np.searchsorted(used, numbers)]


def _nodes(labels: Any, rows: Rows, name: object) -> tuple[str, ...]:
    """The node names of the skeleton that is used; skeletons with equal nodes are one."""
    skeletons = [tuple(skeleton.node_names) for skeleton in labels.skeletons]
    used = np.unique(rows.skeleton).tolist()
    if used and not 0 <= used[0] <= used[-1] < len(skeletons):
        raise refusal(name, f"refers to skeleton {used[-1]}", f"it has {len(skeletons)}", "save it again")
    found = list(dict.fromkeys(skeletons[one] for one in used)) or skeletons[:1] or [()]
    if len(found) > 1:
        listed = "; ".join(", ".join(nodes) for nodes in found)
        raise refusal(name, f"has instances of {len(found)} skeletons: {listed[:400]}", "one was expected", "split it")
    return found[0]


def _distinct(videos: Sequence[Any]) -> tuple[list[str], Array]:
    """What videos are called, and which of those each is; the same entry twice is one video."""
    names: dict[tuple[str, ...], str] = {}
    keys = []
    for video in videos:
        source = video
        while source.source_video is not None:
            source = source.source_video
        view = video.backend_metadata
        keys.append((str(video.filename), str(view.get("dataset")), str(view.get("crop"))))
        names.setdefault(keys[-1], _path(source.filename))
    place = {key: i for i, key in enumerate(names)}
    return list(names.values()) or [""], np.array([place[key] for key in keys], np.intp)


def _path(filename: Any) -> str:
    """A video's path as it was recorded; of a video that is a list of pictures their folder."""
    if isinstance(filename, str):
        return filename[:MAX_TEXT]
    first = str(filename[0]) if len(filename) else ""
    return (first.replace("\\", "/").rpartition("/")[0] or first)[:MAX_TEXT]


def _joined(arrays: Sequence[Array], empty: tuple[int, ...], dtype: Any) -> Array:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(empty, dtype)


def _whole(column: Array) -> Array:
    """Whole numbers, which files written elsewhere keep as floats."""
    whole = column.astype(np.int64)
    if not np.array_equal(whole, column):
        raise InputError(f"{column.dtype.name} numbers of entries are no whole numbers.")
    return whole


def _scalar(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _sleap_io(path: Path) -> Any:
    try:
        import sleap_io
    except ImportError:
        raise refusal(path, "is read by sleap-io", "that is not installed", "pip install 'karat[pose]'") from None
    return sleap_io
