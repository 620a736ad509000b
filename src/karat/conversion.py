"""Predicted boxes and masks of any format as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError, UsageError, told
from karat.journal import as_lines, publish
from karat.kernels.outlines import Outline, outline
from karat.measure import Failure
from karat.progress import progress
from karat.sources.guard import guarded
from karat.sources.rle import compressed
from karat.sources.tube_files import EXPECTS, read_tubes
from karat.sources.tubes import Tube


@dataclass(frozen=True)
class Converted:
    """How many videos were converted, why others were not, and how many had masks of other values than 0 and 1."""

    videos: int
    failures: tuple[Failure, ...]
    soft: int


def convert(source: str | Path, target: str | Path) -> Converted:
    """Write the boxes or masks of a file as JSON.

    Masks that fill a box become that box, marked as painted, so that every score stays what it is; a video with others
    keeps its masks as run lengths. Of the values of a mask only whether they are above 0 is kept. Of a video that
    cannot be read the file has the reason.
    """
    source, target = Path(source), Path(target)
    if target.suffix.lower() != ".json":
        raise UsageError(f"{told(target)} does not end in .json: that is what boxes are converted to.")
    if source.is_dir():
        raise UsageError(f"{told(source)} is a folder: convert its files one by one.")
    if target.exists() and source.exists() and target.samefile(source):
        raise UsageError(f"{told(target)} would be read and written: choose another name.")
    with guarded(source, EXPECTS):
        tubes = read_tubes(source)
    records, failures, soft = [], [], 0
    with progress("converting", len(tubes)) as advance:
        for tube in tubes.values():
            try:
                records.append(record(tube.open()))
                soft += tube.masks is not None and any(map(_is_soft, tube.masks.stored()))
            except InputError as error:
                failures.append(Failure(tube.id, "source", str(error)))
                records.append({"id": tube.id, "failure": str(error)})
            advance(1)
    try:
        publish(target, as_lines(records))
    except OSError as error:
        raise UsageError(f"{told(target)} cannot be written ({error.strerror}): choose another place.") from error
    return Converted(len(tubes) - len(failures), tuple(failures), soft)


def _is_soft(plane: Any) -> bool:
    return bool(plane.dtype.kind != "b" and ((plane != 0) & (plane != 1)).any())


def record(tube: Tube) -> dict[str, Any]:
    """A video as JSON has it."""
    about = {"subject": tube.subject, "caption": tube.caption, "detector": tube.detector}
    size = {} if tube.size is None else {"width": tube.size[0], "height": tube.size[1]}
    found = {} if tube.found is None else {"num_bb": tube.found}
    painted = {"painted": True} if tube.painted else {}
    drawn = {"bboxes": _boxes(tube), **painted} if tube.masks is None else _masks(tube)
    return {"id": tube.id, **{key: text for key, text in about.items() if text}, **size, **found, **drawn}


def _boxes(tube: Tube) -> list[list[float] | None]:
    return [None if np.isnan(box[0]) else box.tolist() for box in tube.boxes]


def _masks(tube: Tube) -> dict[str, Any]:
    """Painted boxes where all masks are boxes, else run lengths; null of nothing."""
    boxes: list[list[int] | None] = []
    for mask in tube.masks or ():
        one = outline(mask)
        if one.area and not one.is_box:
            return {"masks": [_lengths(mask, outline(mask)) for mask in tube.masks or ()]}
        boxes.append([*one.box] if one.area else None)
    return {"bboxes": boxes, "painted": True}


def _lengths(mask: Any, of: Outline) -> dict[str, Any] | None:
    return {"size": [*mask.shape], "counts": compressed(mask)} if of.area else None
