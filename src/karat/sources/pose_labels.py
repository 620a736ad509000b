"""Labels that a user of sleap-io has in memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .guard import refusal
from .pose_rows import Rows, joined, one_skeleton
from .poses import Poses

MAX_NAME = 10_000


def is_labels(value: Any) -> bool:
    """Whether a value is a sleap_io.Labels; sleap-io is not imported to ask."""
    sio = sys.modules.get("sleap_io")
    return sio is not None and isinstance(value, sio.Labels)


def poses_of(labels: Any) -> list[Poses]:
    """The poses of each video of a sleap_io.Labels."""
    predicted = sys.modules["sleap_io"].PredictedInstance
    frames = list(labels.labeled_frames)
    videos: dict[tuple[str, ...], str] = {}
    for video in [*labels.videos, *(frame.video for frame in frames)]:
        videos.setdefault(_key(video), _path(video))
    place = {key: i for i, key in enumerate(videos)}
    skeletons = {id(skeleton): i for i, skeleton in enumerate(labels.skeletons)}
    tracks = {id(track): i for i, track in enumerate(labels.tracks)} | {id(None): -1}
    lists = [frame.instances for frame in frames]
    every = [instance for some in lists for instance in some]
    by_hand = [not isinstance(one, predicted) for one in every]
    arrays = [one.points for one in every]
    named = list(labels.skeletons)
    for one in every:
        if id(one.skeleton) not in skeletons:
            skeletons[id(one.skeleton)] = len(named)
            named.append(one.skeleton)
    nodes = one_skeleton(
        [skeleton.node_names for skeleton in named],
        np.array([skeletons[id(one.skeleton)] for one in every], np.intp),
        "the labels",
    )
    for points in arrays:
        if len(points) != len(nodes):
            raise refusal(
                "the labels", f"have an instance of {len(points)} nodes", f"its skeleton has {len(nodes)}", "fix it"
            )
    seen = joined([one["visible"] for one in arrays], (0,), bool)
    xy = joined([one["xy"] for one in arrays], (0, 2), np.float64)
    unsure = [np.full(len(nodes), np.nan) if own else one["score"] for one, own in zip(arrays, by_hand, strict=True)]
    return Rows(
        list(videos.values()) or [""],
        nodes,
        np.array([place[_key(frame.video)] for frame in frames], np.intp),
        np.array([int(frame.frame_idx) for frame in frames], np.int64),
        np.repeat(np.arange(len(frames)), [len(some) for some in lists]),
        np.where(seen[:, None], xy, np.nan).reshape(-1, len(nodes), 2),
        joined(unsure, (0,), np.float64).reshape(-1, len(nodes)),
        np.array([np.nan if own else one.score for one, own in zip(every, by_hand, strict=True)], np.float64),
        np.array([tracks.setdefault(id(one.track), len(tracks) - 1) for one in every], np.intp),
        np.array(by_hand, bool),
    ).by_video("the labels")


def _key(video: Any) -> tuple[str, ...]:
    """What tells videos apart: the same one may be listed many times."""
    view = video.backend_metadata
    return str(video.filename), str(view.get("dataset")), str(view.get("crop"))


def _path(video: Any) -> str:
    """A video's path as it was recorded; of a video that is a list of pictures their folder."""
    while video.source_video is not None:
        video = video.source_video
    found = video.filename
    if not isinstance(found, str):
        first = str(found[0]).replace("\\", "/") if len(found) else ""
        found = first.rpartition("/")[0] or first
    return found[:MAX_NAME]
