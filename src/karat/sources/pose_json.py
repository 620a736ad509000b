"""Poses in JSON that is not COCO's: tasks of Label Studio, and pictures of AlphaTracker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError

from .guard import refusal
from .pose_rows import Rows
from .poses import Poses
from .stream import Array

Object = dict[str, Any]
MOST = 1e15


def read_json(path: Path, document: Any) -> list[Poses]:
    """The poses of a document, by video."""
    if isinstance(document, list) and document and all(type(one) is dict for one in document):
        if all(one.get("class") == "image" and "annotations" in one for one in document):
            return _alphatracker(path, document).by_video(path)
        if all("annotations" in one or "completions" in one for one in document):
            return _labelstudio(path, document).by_video(path)
    raise refusal(
        path,
        "is no COCO truth (images, annotations, categories), nor COCO detections (a list with image_id)",
        "one of these, or tasks of Label Studio or AlphaTracker were expected",
        "convert it",
    )


def _labelstudio(path: Path, tasks: Sequence[Object]) -> Rows:
    """A task is a frame; of its annotations the first is read. Keypoints belong to the rectangle that a relation links
    them to; those of none are one more animal. Coordinates are percents. Nodes are in the order of their names."""
    videos: dict[str, int] = {}
    video, frame, row, found = [], [], [], []
    for place, task in enumerate(tasks):
        meta = _object(path, place, "meta.video", _object(path, place, "meta", task.get("meta")).get("video"))
        name = meta.get("filename")
        name = str(name[0]).rpartition("/")[0] if isinstance(name, list) and name else str(name or "")
        video.append(videos.setdefault(name, len(videos)))
        frame.append(_frame(path, place, meta.get("frame_idx")))
        annotations = _objects(path, place, task.get("annotations", task.get("completions")))
        result = _objects(path, place, annotations[0].get("result")) if annotations else []
        for animal in _animals(path, place, result):
            found.append(animal)
            row.append(place)
    nodes = sorted({node for animal in found for node in animal})
    return _filled(list(videos) or [""], nodes, video, frame, row, found)


def _animals(path: Path, place: int, result: Sequence[Object]) -> list[Mapping[str, tuple[float, float]]]:
    """The keypoints of each animal of a task, by node."""
    points = [one for one in result if one.get("type") == "keypointlabels"]
    keypoints = {str(one.get("id")): one for one in points}
    if len(keypoints) < len(points):
        raise _misplaced(path, place, "has two keypoints of one id", "ids are unique")
    linked: dict[str, list[str]] = {str(one.get("id")): [] for one in result if one.get("type") == "rectanglelabels"}
    for one in result:
        if one.get("type") == "relation":
            ends = str(one.get("from_id")), str(one.get("to_id"))
            for here, there in (ends, ends[::-1]):
                if here in linked and there in keypoints:
                    linked[here].append(there)
    taken = [key for some in linked.values() for key in some]
    if len(set(taken)) < len(taken):
        raise _misplaced(path, place, "has a keypoint of two animals", "each belongs to one")
    groups = [*linked.values(), [key for key in keypoints if key not in set(taken)]]
    return [_nodes(path, place, [keypoints[key] for key in group]) for group in groups if group]


def _nodes(path: Path, place: int, keypoints: Iterable[Object]) -> Mapping[str, tuple[float, float]]:
    nodes: dict[str, tuple[float, float]] = {}
    for one in keypoints:
        value = _object(path, place, "value", one.get("value"))
        labels = value.get("keypointlabels")
        if not isinstance(labels, list) or len(labels) != 1 or not isinstance(labels[0], str) or labels[0] in nodes:
            raise _misplaced(
                path, place, f"has a keypoint labelled {str(labels)[:60]}", "one label, each once, was expected"
            )
        x, y = (
            _number(path, place, axis, value.get(axis)) * _number(path, place, size, one.get(size)) / 100
            for axis, size in (("x", "original_width"), ("y", "original_height"))
        )
        nodes[labels[0]] = x, y
    return nodes


def _alphatracker(path: Path, pictures: Sequence[Object]) -> Rows:
    """A picture is a frame, by its place in the list; an animal is a face and the points that follow it, called by
    their number."""
    row, found = [], []
    for place, picture in enumerate(pictures):
        points: dict[str, tuple[float, float]] | None = None
        for one in _objects(path, place, picture["annotations"]):
            if one.get("class") == "Face":
                points = {}
                found.append(points)
                row.append(place)
            elif one.get("class") != "point":
                points = None
            elif points is not None:
                points[str(len(points) + 1)] = (
                    _number(path, place, "x", one.get("x")),
                    _number(path, place, "y", one.get("y")),
                )
    nodes = [str(i + 1) for i in range(max(map(len, found), default=0))]
    first = str(pictures[0].get("filename", "")).replace("\\", "/")
    frames = range(len(pictures))
    return _filled([first.rpartition("/")[0]], nodes, [0] * len(pictures), frames, row, found)


def _filled(
    videos: Sequence[str],
    nodes: Sequence[str],
    video: Sequence[int],
    frame: Sequence[int],
    row: Sequence[int],
    animals: Sequence[Mapping[str, tuple[float, float]]],
) -> Rows:
    """The points of each animal in the order of the nodes, NaN for those that it lacks."""
    missing = (np.nan, np.nan)
    points: Array = np.array([[one.get(node, missing) for node in nodes] for one in animals], np.float64)
    return Rows(
        videos,
        nodes,
        np.array(video, np.intp),
        np.array(frame, np.int64),
        np.array(row, np.intp),
        points.reshape(len(animals), len(nodes), 2),
    )


def _number(path: Path, place: int, name: str, value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < MOST:
        raise _misplaced(path, place, f"has {str(value)[:40]} as {name}", "a number was expected")
    return float(value)


def _frame(path: Path, place: int, value: Any) -> int:
    if type(value) is not int or not 0 <= value < MOST:
        raise _misplaced(path, place, f"has {str(value)[:40]} as frame_idx", "the number of a frame was expected")
    return value


def _object(path: Path, place: int, name: str, value: Any) -> Object:
    if not isinstance(value, dict):
        raise _misplaced(
            path, place, f"has no {name}", "the video and its frame, and values of keypoints, were expected"
        )
    return value


def _objects(path: Path, place: int, value: Any) -> list[Object]:
    if not isinstance(value, list) or set(map(type, value)) - {dict}:
        raise _misplaced(path, place, "has no list of annotations", "one was expected")
    return value


def _misplaced(path: Path, place: int, found: str, expected: str) -> InputError:
    return refusal(f"{path}[{place}]", found, expected, "correct it, or export it again")
