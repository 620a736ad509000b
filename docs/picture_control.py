"""Draws docs/images/control.png: objects of the demo's scenes as pretend generators make them follow their boxes, and
what Karat measures on them.

python docs/picture_control.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from picture import FOUND, HEADER, INK, INVENTED, MARGIN, PALE, PAPER, WIDTH, save, title, write
from picture_pose import FINE, SMALL, legend, ruled, shrunk

from karat.demo import control
from karat.demo.scenes import Scene, film
from karat.metrics.following import OVERLAPS
from karat.rows import Rows
from karat.run import Run
from karat.sources.tube_files import read_tubes

Image = NDArray[np.uint8]
Floats = NDArray[np.float64]

GAP, TITLE, CAPTION = 14, 46, 38
CELL = (WIDTH - 2 * MARGIN - 5 * GAP) // 6
TALL = round(CELL * control.HEIGHT / control.WIDTH)
ASKED, NOTHING, CURVE = (255, 255, 255), (206, 211, 218), (37, 99, 235)
FLAWS = {
    "steady": "within a few pixels",
    "late": "6 frames behind",
    "still": "never moves",
    "fading": "gone after some time",
    "drifting": "slides away",
    "outlined": "perfect, as masks",
}
SHOWN = (("street", 0, 1, 16), ("table", 1, 1, 17), ("robot", 2, 2, 14))


def main() -> None:
    with TemporaryDirectory() as place:
        runs = control.run(Path(place))
        tubes = {name: tubes_of(Path(place), name) for name in runs}
    scenes = [film(index, control.FRAMES, control.HEIGHT, control.WIDTH, 0) for index in range(3)]
    heights = (*(TALL for _ in SHOWN), TALL, 150, 130)
    page = np.full((HEADER + sum(TITLE + h + CAPTION for h in heights) + MARGIN // 2, WIDTH, 3), PAPER, np.uint8)
    for column, name in enumerate(runs):
        write(page, name, (left(column), 52), 1.0, INK, bold=True)
    page[HEADER - 16 : HEADER - 14, MARGIN : WIDTH - MARGIN] = INK
    top = HEADER
    for name, index, instance, t in SHOWN:
        boxes(page, top, scenes[index], f"{name}-{instance}", instance, t, tubes, runs)
        top += TITLE + TALL + CAPTION
    paths(page, top, scenes[2], "robot-2", tubes, runs)
    overlaps(page, top + TITLE + TALL + CAPTION, 150, runs)
    success(page, top + 2 * TITLE + TALL + 150 + 2 * CAPTION, 130, runs)
    save(Path(__file__).parent / "images" / "control.png", page)


def tubes_of(folder: Path, name: str) -> dict[str, Any]:
    """What was found in every video; masks in memory, since their file goes."""
    found = read_tubes(folder / "models" / f"{name}.{'npz' if name == 'outlined' else 'json'}")
    return {key: tube if tube.masks is None else [mask.copy() for mask in tube.masks] for key, tube in found.items()}


def boxes(
    page: Image, top: int, scene: Scene, video: str, instance: int, t: int, tubes: dict[str, Any], runs: dict[str, Run]
) -> None:
    title(page, top, scene.name.capitalize(), f"the {scene.names[instance - 1]}, frame {t}")
    if scene.name == "street":
        legend(page, top, [(ASKED, "asked for"), (FOUND, "found, IoU at least .5"), (INVENTED, "below")])
    asked = scene.boxes[t, instance - 1].astype(float)
    for column, (name, run) in enumerate(runs.items()):
        iou = float(of(run, video).columns["iou"][t])
        image = backdrop(scene.frames[t])
        colour = FOUND if iou >= 0.5 else INVENTED
        draw(image, asked, ASKED)
        if name == "outlined":
            mask = cv2.resize(tubes[name][video][t].astype(np.uint8), (CELL * FINE, TALL * FINE))
            outline, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
            cv2.drawContours(image, outline, -1, colour, 2 * FINE, cv2.LINE_AA)
        elif not np.isnan(box := tubes[name][video].boxes[t]).any():
            draw(image, box, colour)
        caption = f"IoU {iou:.2f}" if of(run, video).columns["detected"][t] else "not detected"
        place(page, top, column, shrunk(image), FLAWS[name] if scene.name == "street" else caption)


def paths(page: Image, top: int, scene: Scene, video: str, tubes: dict[str, Any], runs: dict[str, Run]) -> None:
    title(page, top, "Path", f"of the {scene.names[1]}'s centre through all {control.FRAMES} frames")
    legend(page, top, [(ASKED, "asked for"), (FOUND, "found")])
    asked = centres(scene.boxes[:, 1].astype(float))
    for column, (name, run) in enumerate(runs.items()):
        image = backdrop(scene.frames[0])
        line(image, asked, ASKED)
        if name == "outlined":
            inside = [
                np.argwhere(mask)[:, ::-1].mean(axis=0) + 0.5 if mask.any() else (np.nan,) * 2
                for mask in tubes[name][video]
            ]
            line(image, np.array(inside), FOUND)
        else:
            line(image, centres(tubes[name][video].boxes), FOUND)
        far = run.sample_scores[video]["centroid_distance"]
        place(page, top, column, shrunk(image), f"CD {far:.3f}")


def overlaps(page: Image, top: int, height: int, runs: dict[str, Run]) -> None:
    title(page, top, "IoU", "of every frame of every video: a line a video")
    legend(page, top, [(shade(1.0), "1"), (shade(0.5), ".5"), (shade(0.0), "0"), (NOTHING, "not detected")])
    for column, run in enumerate(runs.values()):
        rows = run.rows["following"]
        cells = np.full((len(run.samples), control.FRAMES, 3), PAPER, np.uint8)
        for sample, frame, iou, asked, detected in zip(
            rows.sample, rows.frame, *(rows.columns[name] for name in ("iou", "truth", "detected")), strict=True
        ):
            if asked:
                cells[sample, frame] = shade(iou) if detected else NOTHING
        image = cv2.resize(cells, (CELL, height), interpolation=cv2.INTER_NEAREST)
        scores = run.scores
        place(page, top, column, image, f"mIoU {scores['miou'].value:.3f}   coverage {scores['coverage'].value:.2f}")


def success(page: Image, top: int, height: int, runs: dict[str, Run]) -> None:
    title(page, top, "Success", "the share of frames with an IoU above 0 to 1")
    legend(page, top, [], "grey: the IoU of a box that never moves")
    for column, run in enumerate(runs.values()):
        chart = ruled_to(height)
        share = np.array([run.scores[f"success_auc@iou:{at:.2f}"].value for at in OVERLAPS])
        x = np.array(OVERLAPS) * (CELL * FINE - 1)
        points = np.rint(np.stack([x, (1 - share) * (height * FINE - 1)], axis=1)).astype(np.int32)
        area = np.concatenate([points, [[CELL * FINE - 1, height * FINE - 1], [0, height * FINE - 1]]]).astype(np.int32)
        cv2.fillPoly(chart, [area], (214, 226, 250), cv2.LINE_AA)
        cv2.polylines(chart, [points], False, CURVE, 2 * FINE, cv2.LINE_AA)
        still = round(run.scores["still_miou"].value * (CELL * FINE - 1))
        chart[:, still - FINE : still + FINE] = PALE
        caption = f"AUC {run.scores['success_auc'].value:.3f}   AP50 {run.scores['ap50'].value:.3f}"
        place(page, top, column, shrunk(chart), caption)


# Charts


def left(column: int) -> int:
    return MARGIN + column * (CELL + GAP)


def place(page: Image, top: int, column: int, image: Image, caption: str) -> None:
    y, x, height = top + TITLE, left(column), len(image)
    page[y : y + height, x : x + CELL] = image
    write(page, caption, (x, y + height + 25), SMALL, INK)


def ruled_to(height: int) -> Image:
    return ruled(height, np.arange(0, 1.01, 0.25))[:, : CELL * FINE]


def shade(iou: float) -> tuple[int, int, int]:
    """From red over yellow to green."""
    low, middle, high = np.array([(226, 72, 60), (246, 200, 92), (52, 168, 100)], float)
    mixed = low + (middle - low) * 2 * iou if iou < 0.5 else middle + (high - middle) * (2 * iou - 1)
    red, green, blue = np.rint(mixed).astype(int).tolist()
    return red, green, blue


# Boxes


def backdrop(frame: Image) -> Image:
    big = cv2.resize(frame, (CELL * FINE, TALL * FINE), interpolation=cv2.INTER_CUBIC)
    return np.asarray(np.uint8(0.72 * big))


def of(run: Run, video: str) -> Rows:
    return run.rows["following"].of([video])


def draw(image: Image, box: Floats, colour: tuple[int, int, int]) -> None:
    x1, y1, x2, y2 = np.rint(box * FINE * CELL / control.WIDTH).astype(int).tolist()
    for ink, wide in (((25, 25, 30), 4 * FINE), (colour, 2 * FINE)):
        cv2.rectangle(image, (x1, y1), (x2, y2), ink, wide, cv2.LINE_AA)


def centres(found: Floats) -> Floats:
    return np.asarray((found[:, :2] + found[:, 2:]) / 2)


def line(image: Image, points: Floats, colour: tuple[int, int, int]) -> None:
    """Through the points, each with a dot; the last of them large."""
    seen = np.rint(points[~np.isnan(points[:, 0])] * FINE * CELL / control.WIDTH).astype(np.int32)
    for ink, wide in (((25, 25, 30), 3 * FINE), (colour, round(1.4 * FINE))):
        cv2.polylines(image, [seen], False, ink, wide, cv2.LINE_AA)
    for place, spot in enumerate(seen.tolist()):
        radius = 5 * FINE if place == len(seen) - 1 else 2 * FINE
        cv2.circle(image, spot, radius + FINE, (25, 25, 30), -1, cv2.LINE_AA)
        cv2.circle(image, spot, radius, colour, -1, cv2.LINE_AA)


if __name__ == "__main__":
    main()
