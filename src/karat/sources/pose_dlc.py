"""Poses of DeepLabCut: tables of labelled images or of a video's frames, in CSV, or in HDF5 as pandas writes it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from .guard import refusal
from .hdf5 import Hdf5
from .pose_rows import mean_seen
from .poses import Poses, grouped, make_poses
from .safe_pickle import loads
from .stream import Array

MAX_NODES = 100_000_000
MAX_SPARSE = 1_000_000  # animals by body parts, of which few need a column
HEADERS = ("scorer", "individuals", "bodyparts", "coords")
AXES = ("x", "y", "z")
TRAILING_NUMBER = re.compile(r"(\d+)$")


@dataclass(frozen=True)
class Table:
    """headers: what each column is, by header.  index: of each row, the frame or the path of the image.
    values: (rows, columns)."""

    headers: Mapping[str, Sequence[str]]
    index: Sequence[str]
    values: Array


def is_dlc(header: bytes) -> bool:
    """Whether a CSV begins as those of DeepLabCut do."""
    return header.lstrip(b"\xef\xbb\xbf")[:7].lower() == b"scorer,"


def read_dlc_csv(path: Path, data: bytes) -> list[Poses]:
    """The poses of a CSV, one for each folder of images, or of one video."""
    from pyarrow import BufferReader, float64, string
    from pyarrow import csv as arrow

    rows = list(islice(csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")), len(HEADERS)))
    rows = [row for row in rows if row and row[0].lower() in HEADERS]
    lengths = {len(row) for row in rows}
    if not rows or len(lengths) > 1:
        raise refusal(path, "has headers of unequal lengths", "those of DeepLabCut were expected", "export it again")
    width = 1 + next((i for i, cell in enumerate(rows[-1][1:]) if cell), 0)
    headers = {row[0].lower(): row[width:] for row in rows}
    names = [str(place) for place in range(lengths.pop())]
    kinds = {name: string() if place < width else float64() for place, name in enumerate(names)}
    body = data
    for _ in rows:
        body = body[body.find(b"\n") + 1 or len(body) :]
    if not body.strip():
        return _videos(path, Table(headers, (), np.zeros((0, len(names) - width))))
    table = arrow.read_csv(
        BufferReader(body),
        arrow.ReadOptions(column_names=names),
        convert_options=arrow.ConvertOptions(column_types=kinds),
    )
    index = ["/".join(cells) for cells in zip(*(table[name].to_pylist() for name in names[:width]), strict=True)]
    values = [table[name].to_numpy(zero_copy_only=False) for name in names[width:]]
    return _videos(path, Table(headers, index, np.stack(values, axis=1)))


def read_dlc_hdf5(file: Hdf5, group: str) -> list[Poses]:
    """The poses of a table that pandas wrote in either of its formats."""
    path = file.path
    if f"{group}/table" in file:
        table = file.array(f"{group}/table")
        if set(table.dtype.names or ()) != {"index", "values_block_0"}:
            raise _unknown(path)
        ((_, columns),) = _unpickled(file, group, "non_index_axes")
        names = _unpickled(file, group, "info")[1]["names"]
        index = [[_text(one)] for one in table["index"].tolist()]
        values = table["values_block_0"]
    elif f"{group}/block0_values" in file and file.attribute(group, "nblocks") == 1:
        columns, names = _levels(file, f"{group}/block0_items")
        index, _ = _levels(file, f"{group}/axis1")
        values = file.array(f"{group}/block0_values")
    else:
        raise _unknown(path)
    if not all(len(one) == len(names) for one in columns) or values.dtype.kind not in "biuf":
        raise _unknown(path)
    headers = {str(name): [str(one[level]) for one in columns] for level, name in enumerate(names)}
    return _videos(path, Table(headers, ["/".join(one) for one in index], values.astype(np.float64)))


def _unpickled(file: Hdf5, group: str, key: str) -> Any:
    """What pandas pickles: lists of texts, read without calling anything."""
    value = file.attribute(group, key)
    if not isinstance(value, str):
        raise _unknown(file.path)
    return loads(value.encode(), file.path)


def _levels(file: Hdf5, name: str) -> tuple[list[Any], list[str]]:
    """The entries of an axis, each a list of texts, and what its levels are called."""
    if name in file:
        return [[_text(one)] for one in file.array(name).tolist()], []
    group, _, axis = name.rpartition("/")
    count = int(file.attribute(group, f"{axis}_nlevels"))
    columns = []
    for level in range(count):
        known, codes = file.array(f"{name}_level{level}").tolist(), file.array(f"{name}_label{level}")
        if codes.size and not 0 <= codes.min() <= codes.max() < len(known):
            raise _unknown(file.path)
        columns.append([_text(known[code]) for code in codes.tolist()])
    names = [str(file.attribute(f"{name}_level{level}", "name")) for level in range(count)]
    return [list(one) for one in zip(*columns, strict=True)], names


def _videos(path: Path, table: Table) -> list[Poses]:
    """Frames are numbered as in the names of their images. Where there is a likelihood, it is a node's confidence, an
    animal's score is the mean of its nodes', and nobody labelled it."""
    if not {"scorer", "bodyparts", "coords"} <= set(table.headers):
        raise refusal(path, "lacks headers", f"{', '.join(HEADERS)} were expected", "export it again")
    parts, coords = table.headers["bodyparts"], table.headers["coords"]
    animals = table.headers.get("individuals", [""] * len(parts))
    nodes, every = tuple(dict.fromkeys(parts)), tuple(dict.fromkeys(animals))
    cells = {key: column for column, key in enumerate(zip(animals, parts, coords, strict=True))}
    axes = [axis for axis in AXES if axis in coords]
    if len(cells) < len(parts) or len(axes) < 2 or not set(coords) <= {*AXES, "likelihood"}:
        raise refusal(
            path,
            f"has coordinates {', '.join(dict.fromkeys(coords))}",
            "x, y and likelihood of each body part were expected",
            "export it again",
        )
    if table.values.shape != (len(table.index), len(parts)) or np.isinf(table.values).any():
        raise refusal(
            path, "has infinite or missing cells", "a number or nothing was expected in each", "export it again"
        )
    if len(every) * len(nodes) > max(MAX_SPARSE, len(parts)) or len(every) * len(nodes) * len(table.index) > MAX_NODES:
        raise refusal(
            path,
            f"declares {len(every)} animals of {len(nodes)} body parts in {len(table.index)} frames",
            f"at most {MAX_NODES} were expected",
            "split it",
        )
    values = np.column_stack([table.values, np.full(len(table.index), np.nan)])  # what no column says is missing
    places = [{name: i for i, name in enumerate(names)} for names in (every, nodes, (*axes, "likelihood"))]
    taken = np.full((len(every), len(nodes), len(axes) + 1), -1)
    for key, column in cells.items():
        taken[tuple(place[name] for place, name in zip(places, key, strict=True))] = column
    whole = values[:, taken]
    points, likelihood = whole[..., :-1], whole[..., -1]
    present = ~np.isnan(points).any(axis=3)
    row, animal = np.nonzero(present.any(axis=2))
    confidence = np.where(present, likelihood, np.nan)[row, animal]
    score = mean_seen(confidence, ~np.isnan(confidence))
    frame, video = _numbered(path, table)
    names = list(dict.fromkeys(video)) or [_video_name(path, table)]
    place = {name: i for i, name in enumerate(names)}
    of = np.array([place[one] for one in video], np.intp)
    rows, held = grouped(of, np.arange(len(names))), grouped(of[row], np.arange(len(names)))
    return [
        make_poses(
            points[row[some], animal[some]],
            frame[row[some]],
            nodes=nodes,
            score=score[some],
            confidence=confidence[some],
            track=animal[some] if "individuals" in table.headers else None,
            user=np.full(len(some), "likelihood" not in coords),
            labelled=frame[listed],
            name=name,
        )
        for name, listed, some in zip(names, rows, held, strict=True)
    ]


def _numbered(path: Path, table: Table) -> tuple[Array, list[str]]:
    """The frame of each row, and what its video is called: as the folder of its image."""
    numbers, videos = [], []
    for one in table.index:
        image = PurePosixPath(one.replace("\\", "/"))
        found = TRAILING_NUMBER.search(image.stem)
        if found is None or len(found.group()) > 10:
            raise refusal(path, f"has a row {one[:80]!r}", "a number of a frame was expected at its end", "rename it")
        numbers.append(int(found.group()))
        is_image = len(image.parts) > 1 or image.suffix
        videos.append(str(image.parent) if is_image else _video_name(path, table))
    return np.array(numbers, np.int64), videos


def _video_name(path: Path, table: Table) -> str:
    """What DeepLabCut was given to analyse: the file is called after it and the model."""
    scorer = next(iter(table.headers["scorer"]), "")
    before, model, _ = path.stem.partition(scorer) if scorer else (path.stem, "", "")
    return before if model else ""


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _unknown(path: Path) -> Exception:
    return refusal(path, "holds a table of another layout", "one of DeepLabCut was expected", "save it as CSV")
