"""SLEAP's .slp: tables of frames, instances and points in HDF5, read as they lie there. Videos, embedded pictures and
whatever else a file holds are never opened."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .guard import refusal
from .hdf5 import Hdf5
from .pose_rows import Rows, one_skeleton, spans, whole
from .poses import Poses
from .stream import Array

FIRST_CENTRED = 1.1  # earlier files count from a pixel's corner
FIRST_UNKNOWN = 3.0
EMBEDDED = re.compile(r"video(\d+)/")
MAX_NAME = 10_000
MAX_SOURCES = 100

Columns = Mapping[str, Array]


class Video(NamedTuple):
    """An entry in the list of videos. name: of the original file.  key: what tells entries apart.  number: of an
    embedded one, by which frames may refer to it."""

    name: str
    key: tuple[str, ...]
    number: int | None


def read_slp(path: Path) -> list[Poses]:
    """The poses of a .slp file by video."""
    with Hdf5(path) as file:
        version = file.attribute("metadata", "format_id")
        if not isinstance(version, int | float | np.number) or not 1 <= version < FIRST_UNKNOWN:
            raise refusal(
                path,
                "has no version" if version is None else f"is of version {version}",
                "a SLEAP file of version 1 or 2 was expected",
                "save it with sleap-io",
            )
        return _rows(file, _videos(file), float(version)).by_video(path)


def _rows(file: Hdf5, entries: Sequence[Video], version: float) -> Rows:
    frames = _columns(file, "frames", ("video", "frame_idx", "instance_id_start", "instance_id_end"))
    kinds = ("instance_type", "skeleton", "track", "score", "point_id_start", "point_id_end")
    instances = _columns(file, "instances", kinds)
    first, last = whole(frames["instance_id_start"], file.path), whole(frames["instance_id_end"], file.path)
    index, row = spans(first, last, len(instances["score"]), file.path)
    own = {name: column[index] for name, column in instances.items()}
    nodes = one_skeleton(_skeletons(file), whole(own["skeleton"], file.path), file.path)
    user = whole(own["instance_type"], file.path) == 0
    start, end = whole(own["point_id_start"], file.path), whole(own["point_id_end"], file.path)
    unfit = np.flatnonzero(end - start != len(nodes))
    if len(unfit):
        raise refusal(
            file.path,
            f"has an instance of {(end - start)[unfit[0]]} nodes",
            f"its skeleton has {len(nodes)}",
            "save it again",
        )
    points = np.full((len(user), len(nodes), 2), np.nan)
    confidence = np.full((len(user), len(nodes)), np.nan)
    for name, of in (("points", user), ("pred_points", ~user)):
        table = _columns(file, name, ("x", "y", "visible"))
        taken, _ = spans(start[of], end[of], len(table["x"]), file.path)
        some = {key: column[taken].reshape(of.sum(), len(nodes)) for key, column in table.items()}
        seen = some["visible"] != 0
        points[of] = np.where(seen[..., None], np.stack([some["x"], some["y"]], axis=-1), np.nan)
        if "score" in some:
            confidence[of] = some["score"]
    if version < FIRST_CENTRED:
        points -= 0.5
    names: dict[tuple[str, ...], str] = {}
    for entry in entries:
        names.setdefault(entry.key, entry.name)
    place = {key: i for i, key in enumerate(names)}
    of_entry = np.array([place[entry.key] for entry in entries], np.intp)
    return Rows(
        list(names.values()) or [""],
        nodes,
        of_entry[_listed(whole(frames["video"], file.path), entries, file.path)],
        whole(frames["frame_idx"], file.path),
        row,
        points,
        confidence,
        np.where(user, np.nan, own["score"]),
        whole(own["track"], file.path),
        user,
    )


def _columns(file: Hdf5, name: str, needed: Sequence[str]) -> Columns:
    """A table by its columns; files of a browser keep tables as arrays, and the names of their columns beside them."""
    table = file.array(name)
    if table.dtype.names is None and table.ndim == 2:
        names = json.loads(file.attribute(name, "field_names") or "[]")
        columns = dict(zip(names, table.T, strict=True))
    else:
        columns = {name: table[name] for name in table.dtype.names or ()}
    missing = [key for key in needed if key not in columns]
    if missing or any(column.ndim != 1 or column.dtype.kind not in "biuf" for column in columns.values()):
        raise refusal(
            f"{file.path}[{name}]", "is no table", f"{', '.join(needed)} were expected", "save it with sleap-io"
        )
    return columns


def _skeletons(file: Hdf5) -> list[tuple[str, ...]]:
    """The node names of each skeleton."""
    metadata = json.loads(file.attribute("metadata", "json") or "{}")
    names = [str(node["name"]) for node in metadata["nodes"]]
    graphs = [skeleton.get("nx_graph", skeleton) for skeleton in metadata["skeletons"]]
    return [tuple(names[_number(node["id"])] for node in graph["nodes"]) for graph in graphs]


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{str(value)[:40]!r} is the number of no node")
    return value


def _videos(file: Hdf5) -> list[Video]:
    """The list of videos. Of one that is cut out of another, what it shows of it tells it apart."""
    crops = {int(one["video"]): str(one["crop"]) for one in json.loads(file.text("video_crops") or "[]")}
    entries = []
    for place, text in enumerate(file.texts("videos_json")):
        video = json.loads(text)
        dataset = str(video["backend"].get("dataset"))
        found = EMBEDDED.match(dataset)
        entries.append(
            Video(
                _name(_original(file, video)),
                (str(_file(video)), dataset, crops.get(place, "")),
                int(found.group(1)) if found else None,
            )
        )
    return entries


def _original(file: Hdf5, video: Any) -> Any:
    """What a video was made from, at first: an embedded one says it in its own group, another beside its name."""
    for _ in range(MAX_SOURCES):
        source = next((video[key] for key in ("source_video", "original_video") if video.get(key)), None)
        if source is None and _file(video) == ".":
            group = str(video["backend"]["dataset"]).removesuffix("/video")
            texts = (_described(file, f"{group}/{key}") for key in ("source_video", "original_video"))
            source = next((json.loads(text) for text in texts if text), None)
        if source is None:
            return video
        video = source
    raise refusal(file.path, f"has a video of over {MAX_SOURCES} sources", "fewer were expected", "save it again")


def _described(file: Hdf5, group: str) -> str:
    return file.text(f"{group}/json") or str(file.attribute(group, "json") or "")


def _file(video: Any) -> Any:
    backend = video["backend"]
    return backend.get("filenames") or backend.get("filename", video.get("filename"))


def _name(video: Any) -> str:
    """A video's path as it was recorded; of one that is a list of pictures their folder; of an embedded one nothing."""
    found = _file(video)
    if isinstance(found, list):
        first = str(found[0]).replace("\\", "/")
        found = first.rpartition("/")[0] or first
    return "" if found == "." else str(found or "")[:MAX_NAME]


def _listed(numbers: Array, entries: Sequence[Video], name: object) -> Array:
    """Places in the list of videos: what frames refer to, unless packages are numbered with gaps."""
    used = np.unique(numbers)
    if len(used) == len(entries) and len(used) and used[-1] == len(entries) - 1:
        return numbers
    place = {entry.number if entry.number is not None else i: i for i, entry in enumerate(entries)}
    strange = [one for one in used.tolist() if one not in place]
    if strange:
        raise refusal(name, f"has frames of video {strange[0]}", f"it lists {len(entries)} videos", "save it again")
    return np.array([place[one] for one in used.tolist()], np.intp)[np.searchsorted(used, numbers)]
