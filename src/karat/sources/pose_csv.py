"""Poses in CSV: analyses by SLEAP, a row an instance; spots of TrackMate. Tables of DeepLabCut are told apart by their
headers."""

from __future__ import annotations

from collections.abc import Sequence
from csv import reader
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np

from .guard import MIB, read_bounded, refusal
from .pose_dlc import is_dlc, read_dlc_csv
from .poses import Poses, grouped, make_poses

MAX_CSV = 512 * MIB
FRAME, TRACK, VIDEO = "frame_idx", "track", "video_path"
SCORES = ("instance.score", "score")
SPOTS = b"LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,"
PIXELS = ("", "(pixel)", "(pixels)", "(px)")
OTHERS = ("track_score", "tracking_score")


def read_csv(path: Path) -> list[Poses]:
    """The poses of a CSV: frame_idx, track, instance.score, and x, y and score of each node; by video_path."""
    from pyarrow import BufferReader, float64, string
    from pyarrow import csv as arrow

    data = read_bounded(path, MAX_CSV, "a CSV of poses")
    if is_dlc(data):
        return read_dlc_csv(path, data)
    if data.startswith(SPOTS):
        return [_spots(path, data)]
    names = arrow.read_csv(BufferReader(data[: data.find(b"\n") + 1 or len(data)])).column_names
    nodes = _nodes(path, names)
    kinds = {name: string() if name in (TRACK, VIDEO) else float64() for name in names}
    table = arrow.read_csv(BufferReader(data), convert_options=arrow.ConvertOptions(column_types=kinds))
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in names if kinds[name] != string()}
    nothing = np.full(len(table), np.nan)
    whole = np.stack(
        [np.stack([columns.get(f"{node}.{of}", nothing) for of in ("x", "y", "score")], axis=1) for node in nodes],
        axis=1,
    )
    score = next((columns[name] for name in SCORES if name in columns), nothing)
    tracks = table[TRACK].to_pylist() if TRACK in names else [None] * len(table)
    place = {name: i for i, name in enumerate(dict.fromkeys(one for one in tracks if one))}
    track = np.array([place[one] if one else -1 for one in tracks], np.intp)
    called = table[VIDEO].to_pylist() if VIDEO in names else [""] * len(table)
    videos = {name: i for i, name in enumerate(dict.fromkeys(called))} or {"": 0}
    held = grouped(np.array([videos[one] for one in called], np.intp), np.arange(len(videos)))
    return [
        make_poses(
            whole[some, :, :2],
            columns[FRAME][some],
            nodes=nodes,
            score=score[some],
            confidence=whole[some, :, 2],
            track=track[some],
            user=np.isnan(score[some]),
            name=name or "",
        )
        for name, some in zip(videos, held, strict=True)
    ]


def _spots(path: Path, data: bytes) -> Poses:
    """Spots of TrackMate: one node, with the quality as its score. Four rows say what the columns are, the last of them
    in which units."""
    from pyarrow import BufferReader, csv, float64

    rows = reader(TextIOWrapper(BytesIO(data), "utf-8", newline=""))
    names, _, _, units = (next(rows) for _ in range(4))
    unit = dict(zip(names, units, strict=True)).get("POSITION_X", "")
    if unit not in PIXELS:
        raise refusal(
            path,
            f"has positions in {unit}",
            "pixels were expected",
            "set the pixel size to 1 pixel, and export it again",
        )
    body = data.split(b"\n", 4)[4]
    columns = ("FRAME", "POSITION_X", "POSITION_Y", "QUALITY", "TRACK_ID")
    table = csv.read_csv(
        BufferReader(body),
        csv.ReadOptions(column_names=names),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(columns, float64()), include_columns=columns),
    )
    frame, x, y, score, track = (table[name].to_numpy(zero_copy_only=False) for name in columns)
    return make_poses(
        np.stack([x, y], axis=1)[:, None],
        frame,
        nodes=("spot",),
        score=score,
        track=np.where(np.isnan(track), -1, track),
        user=np.zeros(len(frame), bool),
        name=path.stem.removesuffix("_spots"),
    )


def _nodes(path: Path, names: Sequence[str]) -> list[str]:
    """The nodes that columns are named after."""
    nodes = [name[:-2] for name in names if name.endswith(".x")]
    expected = {FRAME, TRACK, VIDEO, *SCORES, *OTHERS}
    expected |= {f"{node}.{of}" for node in nodes for of in ("x", "y", "score")}
    missing = [f"{node}.y" for node in nodes if f"{node}.y" not in names]
    strange = [name for name in names if name not in expected]
    if not nodes or FRAME not in names or missing or strange or len(set(names)) < len(names):
        found = f"has a column {strange[0]!r}" if strange else f"has {len(names)} columns without all that are needed"
        raise refusal(
            path,
            found,
            "frame_idx, instance.score, track, video_path, and x, y and score of nodes were expected once each",
            "export it from SLEAP as an analysis, or as .slp",
        )
    return nodes
