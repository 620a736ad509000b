"""Pretend generators of videos in which an object is to follow boxes, each wrong in one recognisable way, and what a
detector finds in their videos; their files; their scores side by side."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.demo.scenes import outlines, visible_boxes
from karat.demo.shapes import Bytes
from karat.evaluation import evaluate
from karat.run import Run

Boxes = NDArray[np.float64]
Rng = np.random.Generator
SCENES, FRAMES, HEIGHT, WIDTH = 6, 24, 160, 288
PLACEHOLDER = [0.5, 0.5, 0.5, 0.5]  # what published files have where there is no object
LATE = 6  # frames
NAMES = ("steady", "late", "still", "fading", "drifting", "outlined")


@dataclass(frozen=True, eq=False)
class Prompt:
    """What is asked for: an object, and where it shall be."""

    id: str
    subject: str
    caption: str
    boxes: Boxes
    """(T, 4) x1 y1 x2 y2 in pixels, NaN where it is not to be seen."""
    mask: NDArray[np.bool_]
    """(T, H, W), its pixels in the true scene."""


def prompts(seed: int = 0) -> Iterator[Prompt]:
    """Every object of every scene."""
    for index in range(SCENES):
        scene, names, labels = outlines(index, FRAMES, HEIGHT, WIDTH, seed)
        boxes = visible_boxes(labels, len(names)).astype(np.float64)
        for i, name in enumerate(names):
            caption = f"A {scene.partition('-')[0]} scene with a {name}."
            yield Prompt(f"{scene}-{i + 1}", name, caption, boxes[:, i], _of(labels, i + 1))


def steady(boxes: Boxes, rng: Rng) -> Boxes:
    """Within a few pixels of what was asked for."""
    return _jittered(boxes, rng, 2.0)


def late(boxes: Boxes, rng: Rng) -> Boxes:
    """Follows, some frames behind."""
    return _jittered(_shown(boxes)[np.maximum(np.arange(len(boxes)) - LATE, 0)], rng, 1.0)


def still(boxes: Boxes, rng: Rng) -> Boxes:
    """Stays where it was first asked for: nothing in this video moves."""
    return _jittered(np.repeat(_shown(boxes)[:1], len(boxes), axis=0), rng, 1.0)


def fading(boxes: Boxes, rng: Rng) -> Boxes:
    """Right while it is seen, but gone after some time, in most videos before half of them has passed."""
    gone = np.arange(len(boxes)) >= rng.integers(4, 18)
    return np.where(gone[:, None], np.nan, steady(boxes, rng))


def drifting(boxes: Boxes, rng: Rng) -> Boxes:
    """Begins where it should, then slides off to a side, out of the picture if there is time."""
    away = rng.uniform(5, 9) * rng.choice([-1, 1]) * np.arange(len(boxes))
    return steady(boxes, rng) + np.outer(away, [1, 0.2, 1, 0.2])


MODELS: Mapping[str, Callable[[Boxes, Rng], Boxes]] = {
    "steady": steady,
    "late": late,
    "still": still,
    "fading": fading,
    "drifting": drifting,
}


def write(folder: Path, seed: int = 0) -> dict[str, Path]:
    """Write what is asked for and what is found in every model's videos: their files by name.

    `truth` and the models' are JSON; `outlined` is a perfect generator whose objects were segmented: masks (npz), in
    which an outline fills only a part of its box. `ceiling` is what the detector finds in the true videos.
    """
    places = {name: folder / "models" / f"{name}.json" for name in MODELS}
    places |= {name: folder / f"{name}.json" for name in ("truth", "ceiling")}
    places["outlined"] = folder / "models" / "outlined.npz"
    places["outlined"].parent.mkdir(parents=True, exist_ok=True)
    asked = list(prompts(seed))
    _save(places["truth"], map(record, asked))
    for model, follow in {**MODELS, "ceiling": steady}.items():
        rngs = (np.random.default_rng([seed, *model.encode(), *one.id.encode()]) for one in asked)
        _save(places[model], (found(one, follow(one.boxes, rng)) for one, rng in zip(asked, rngs, strict=True)))
    masks: dict[str, Any] = {f"{one.id}/masks": one.mask for one in asked}
    np.savez_compressed(places["outlined"], **masks)
    return places


def run(folder: Path, workers: int | None = None) -> dict[str, Run]:
    """Writes the files under `folder`, evaluates every model against the truth, keeps the runs under `folder`/runs."""
    places = write(folder)
    return {
        name: evaluate(
            "control",
            pred=places[name],
            truth=places["truth"],
            ceiling=places["ceiling"],
            out=folder / "runs" / name,
            workers=workers,
        )
        for name in NAMES
    }


def record(one: Prompt) -> dict[str, Any]:
    """What is asked for, in the layout of the published files: relative boxes."""
    relative = (one.boxes / (WIDTH, HEIGHT, WIDTH, HEIGHT)).tolist()
    boxes = [PLACEHOLDER if np.isnan(box[0]) else box for box in relative]
    return {"id": one.id, "caption": one.caption, "subject": one.subject, "bboxes": boxes}


def found(one: Prompt, boxes: Boxes) -> dict[str, Any]:
    """What a detector answers: boxes in pixels, null where there is nothing of the object in the frame."""
    outside = (boxes[:, :2] >= (WIDTH, HEIGHT)).any(axis=1) | (boxes[:, 2:] <= 0).any(axis=1)
    listed = [None if gone else box for gone, box in zip(outside | np.isnan(boxes[:, 0]), boxes.tolist(), strict=True)]
    return {"id": one.id, "width": WIDTH, "height": HEIGHT, "bboxes": listed}


def _save(path: Path, records: Iterator[dict[str, Any]]) -> None:
    path.write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n", encoding="utf-8")


def _of(labels: Bytes, instance: int) -> NDArray[np.bool_]:
    return np.asarray(labels == instance)


def _shown(boxes: Boxes) -> Boxes:
    """The boxes, and where there is none the last before it, or the first after it."""
    seen = np.flatnonzero(~np.isnan(boxes[:, 0]))
    return boxes[seen[np.maximum(np.searchsorted(seen, np.arange(len(boxes)), side="right") - 1, 0)]]


def _jittered(boxes: Boxes, rng: Rng, size: float) -> Boxes:
    """Every side moved by some pixels, less of small boxes, in quarters of one."""
    spans = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    moved = boxes + np.minimum(size, spans / 8) * rng.normal(0, 1, boxes.shape).clip(-3, 3)
    return np.asarray(np.rint(4 * moved) / 4)
