"""Predicted boxes and masks of any format as plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import UsageError, told
from karat.journal import as_lines, publish
from karat.kernels.outlines import Outline, outline
from karat.progress import progress
from karat.sources.guard import guarded
from karat.sources.rle import compressed
from karat.sources.tube_files import EXPECTS, read_tubes
from karat.sources.tubes import Tube


def convert(source: str | Path, target: str | Path) -> int:
    """Write the boxes or masks of a file as JSON, and return how many videos there are.

    Masks that fill a box become that box, to the pixel; a video with others keeps its masks as run lengths. Of the
    values of a mask only whether they are above 0 is kept.
    """
    source, target = Path(source), Path(target)
    if target.suffix.lower() != ".json":
        raise UsageError(f"{told(target)} does not end in .json: that is what boxes are converted to.")
    if target.exists() and source.exists() and target.samefile(source):
        raise UsageError(f"{told(target)} would be read and written: choose another name.")
    with guarded(source, EXPECTS):
        tubes = read_tubes(source)
    with progress("converting", len(tubes)) as advance:
        lines = as_lines(_advancing(tubes, advance))
    try:
        publish(target, lines)
    except OSError as error:
        raise UsageError(f"{told(target)} cannot be written ({error.strerror}): choose another place.") from error
    return len(tubes)


def _advancing(tubes: Mapping[str, Tube], advance: Any) -> Iterator[dict[str, Any]]:
    for tube in tubes.values():
        yield record(tube.id, tube.open())
        advance(1)


def record(name: str, tube: Tube) -> dict[str, Any]:
    """A video as JSON has it."""
    about = {"subject": tube.subject, "caption": tube.caption, "detector": tube.detector}
    size = {} if tube.size is None else {"width": tube.size[0], "height": tube.size[1]}
    found = {} if tube.found is None else {"num_bb": tube.found}
    drawn = {"bboxes": _boxes(tube)} if tube.masks is None else _masks(tube)
    return {"id": name, **{key: text for key, text in about.items() if text}, **size, **found, **drawn}


def _boxes(tube: Tube) -> list[list[float] | None]:
    return [None if np.isnan(box[0]) else box.tolist() for box in tube.boxes]


def _masks(tube: Tube) -> dict[str, Any]:
    """Boxes where all masks are boxes, else run lengths; null of nothing."""
    boxes: list[list[int] | None] = []
    for mask in tube.masks or ():
        one = outline(mask)
        if one.area and not one.is_box:
            return {"masks": [_lengths(mask, outline(mask)) for mask in tube.masks or ()]}
        boxes.append([*one.box] if one.area else None)
    return {"bboxes": boxes}


def _lengths(mask: Any, of: Outline) -> dict[str, Any] | None:
    return {"size": [*mask.shape], "counts": compressed(mask)} if of.area else None
