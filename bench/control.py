"""Boxes and masks of objects in videos: Karat beside the published way, which paints both sides and adds up pixels."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import karat
from bench import peers
from bench.race import Race

RECORDS, FRAMES, HEIGHT, WIDTH = 456, 24, 320, 576  # as LaSOT's, as ZeroScope generates them
PEER = 38  # records that the peer is given, which takes it long enough

Boxes = NDArray[np.float64]


def races(folder: Path) -> list[Race]:
    """What is compared."""
    asked, found = boxes(0), boxes(1)
    truth = folder / "truth.json"
    truth.write_text(json.dumps(truth_records(asked)))
    listed, pickled = folder / "boxes.json", folder / "masks.pkl"
    listed.write_text(json.dumps(boxes_records(found)))
    write_masks(pickled, found)
    relative = asked / (WIDTH, HEIGHT, WIDTH, HEIGHT)
    masks = painted(found[:PEER])
    near = found[:PEER] / (WIDTH, HEIGHT, WIDTH, HEIGHT)
    paint = lambda: peers.peekaboo([peers.painted(one, HEIGHT, WIDTH) for one in near], relative[:PEER])  # noqa: E731
    given = lambda: peers.peekaboo(masks, relative[:PEER])  # noqa: E731
    share = PEER / RECORDS
    return [
        Race("456 videos as boxes", "painting, NumPy", paint, lambda: evaluate(listed, truth), 200, 3, share),
        Race(
            "456 videos as masks (2 GB file)", "NumPy, in memory", given, lambda: evaluate(pickled, truth), 10, 2, share
        ),
    ]


def evaluate(pred: Path, truth: Path) -> Any:
    """Everything, from files to the scores with their intervals."""
    return karat.evaluate("control", pred=pred, truth=truth, workers=1).scores


def boxes(seed: int) -> Boxes:
    """(records, frames, 4) in whole pixels: each wanders, some records are near those of other seeds."""
    rng, shared = np.random.default_rng(seed + 1), np.random.default_rng(0)
    corner = shared.uniform(0, (WIDTH * 0.6, HEIGHT * 0.6), (RECORDS, 1, 2)) + shared.normal(
        0, 4, (RECORDS, FRAMES, 2)
    ).cumsum(1)
    size = shared.uniform(30, 120, (RECORDS, 1, 2))
    both = np.concatenate([corner, corner + size], axis=2) + rng.normal(0, 5, (RECORDS, FRAMES, 4))
    return np.rint(both.clip(0, (WIDTH, HEIGHT, WIDTH, HEIGHT)))


def truth_records(asked: Boxes) -> list[dict[str, Any]]:
    """In the layout of the published files."""
    relative = (asked / (WIDTH, HEIGHT, WIDTH, HEIGHT)).tolist()
    return [{"id": i, "caption": "", "subject": "a thing", "bboxes": one} for i, one in enumerate(relative)]


def boxes_records(found: Boxes) -> list[dict[str, Any]]:
    """As detectors write them."""
    return [{"id": i, "width": WIDTH, "height": HEIGHT, "bboxes": one} for i, one in enumerate(found.tolist())]


def painted(found: Boxes) -> list[list[NDArray[np.bool_]]]:
    """Masks of these boxes."""
    return [[_mask(box) for box in one] for one in found.astype(int).tolist()]


def _mask(box: list[int]) -> NDArray[np.bool_]:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[box[1] : box[3], box[0] : box[2]] = True
    return mask


def write_masks(path: Path, found: Boxes) -> None:
    """The specification's pickle."""
    records = [
        {"id": i, "subject": "a thing", "caption": "", "num_bb": FRAMES, "mask": masks}
        for i, masks in enumerate(painted(found))
    ]
    with path.open("wb") as file:
        pickle.dump(records, file, protocol=4)
