"""Draws docs/images/generation.png: the demo's pictures as pretend generators give them, where their features lie, and
what Karat measures on them.

python docs/picture_generation.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
from numpy.typing import NDArray
from picture import HEADER, INK, MARGIN, PALE, PAPER, WIDTH, measure, save, title, write
from picture_pose import FINE, SMALL, legend, shrunk

from karat.demo.generation import CLASSES, KNOWN, MODELS, MODES, PICTURES, run, sets
from karat.run import Run

Image = NDArray[np.uint8]
Floats = NDArray[np.float64]
Colour = tuple[int, int, int]

GAP, TITLE, CAPTION, TINY = 14, 46, 38, 0.55
CELL = (WIDTH - 2 * MARGIN - 7 * GAP) // 8
ACROSS, DOWN, SEAM, NEAR, LINE, FIGURE = 4, 6, 3, 3, 29, 62
SMALLER = (CELL - (ACROSS - 1) * SEAM) // ACROSS
TALL = DOWN * SMALLER + (DOWN - 1) * SEAM
FAR: Colour = (214, 62, 52)
GOOD: Colour = (37, 99, 235)
VARIED: Colour = (20, 140, 110)
CLOUD, SHEET, TRACK = (205, 210, 218), (247, 248, 250), (238, 240, 243)
ROAD, TABLE, WORKSHOP = (62, 140, 66), (206, 116, 24), (92, 84, 190)
SCENES: dict[str, Colour] = {"on a road": ROAD, "on a table": TABLE, "in a workshop": WORKSHOP}
SCENE = dict(zip(CLASSES, 3 * [ROAD] + 3 * [TABLE] + 2 * [WORKSHOP], strict=True))
BARS: dict[str, tuple[str, float, str, Colour]] = {
    "Frechet distance": ("fid", 200, ".0f", FAR),
    "KID": ("kid", 0.12, ".3f", FAR),
    "precision": ("precision", 1, ".2f", GOOD),
    "density": ("density", 1, ".2f", GOOD),
    "recall": ("recall", 1, ".2f", VARIED),
    "coverage": ("coverage", 1, ".2f", VARIED),
    "Vendi, line: of the truth": ("vendi", 13, ".1f", VARIED),
}
FLAWS = {
    "truth": f"{PICTURES}, rendered",
    "perfect": "another draw",
    "noise": "grainy",
    "blur": "soft",
    "jpeg": "artefacts",
    "collapsed": f"{MODES} pictures",
    "partial": f"{len(KNOWN)} of {len(CLASSES)} classes",
    "memorised": "copies the truth",
}


def main() -> None:
    given = sets()
    pictures = {"truth": given.truth} | {name: model(given) for name, model in MODELS.items()}
    with TemporaryDirectory() as place:
        runs = run(Path(place))
        features = {"truth": kept(Path(place) / "features" / "truth.npz")}
        features |= {name: kept(next((Path(place) / "runs" / name).rglob("pred.npz"))) for name in runs}
    heights = (CELL, TALL, CELL, LINE * len(BARS))
    page = np.full((HEADER + sum(TITLE + CAPTION + h for h in heights) - CAPTION, WIDTH, 3), PAPER, np.uint8)
    for column, name in enumerate(pictures):
        write(page, name, (left(column), 52), 0.92, INK, bold=True)
    page[HEADER - 16 : HEADER - 14, MARGIN : WIDTH - MARGIN] = INK
    top = HEADER
    close(page, top, pictures)
    top += TITLE + CELL + CAPTION
    several(page, top, pictures)
    top += TITLE + TALL + CAPTION
    clouds(page, top, features, pictures)
    bars(page, top + TITLE + CELL + CAPTION // 2, runs)
    save(Path(__file__).parent / "images" / "generation.png", page)


def kept(path: Path) -> Floats:
    with np.load(path) as file:
        return np.asarray(file["features"], np.float64)


def close(page: Image, top: int, pictures: dict[str, Image]) -> None:
    title(page, top, "Picture", "a mug, as each of them gives it")
    mugs = dict.fromkeys(pictures, NEAR) | {"partial": KNOWN.index("mug")}
    mugs["memorised"] = originals(pictures).index(NEAR)
    for column, (name, images) in enumerate(pictures.items()):
        image = cv2.resize(images[mugs[name]], (CELL, CELL), interpolation=cv2.INTER_CUBIC)
        place(page, top, column, image, FLAWS[name])


def several(page: Image, top: int, pictures: dict[str, Image]) -> None:
    title(page, top, "Set", f"the first {ACROSS * DOWN} of {PICTURES} pictures")
    for column, images in enumerate(pictures.values()):
        sheet = np.full((TALL, CELL, 3), PAPER, np.uint8)
        for i, picture in enumerate(images[: ACROSS * DOWN]):
            y, x = (step * (SMALLER + SEAM) for step in divmod(i, ACROSS))
            small = cv2.resize(picture, (SMALLER, SMALLER), interpolation=cv2.INTER_AREA)
            sheet[y : y + SMALLER, x : x + SMALLER] = small
        different = len(np.unique(images.reshape(len(images), -1), axis=0))
        place(page, top, column, sheet, f"{different} different")


def originals(pictures: dict[str, Image]) -> list[int]:
    """Which picture of the truth every memorised one is."""
    where = {picture.tobytes(): i for i, picture in enumerate(pictures["truth"])}
    return [where[picture.tobytes()] for picture in pictures["memorised"]]


def clouds(page: Image, top: int, features: dict[str, Floats], pictures: dict[str, Image]) -> None:
    title(
        page, top, "Features", "a dot for each picture, above the truth's in grey: the first two principal components"
    )
    legend(page, top, [(colour, where) for where, colour in SCENES.items()])
    every = np.concatenate(list(features.values()))
    axes = np.linalg.svd(every - every.mean(axis=0), full_matrices=False)[2][:2]
    seen = {name: one @ axes.T for name, one in features.items()}
    low, high = (edge([edge(one, axis=0) for one in seen.values()], axis=0) for edge in (np.min, np.max))
    order = {name: list(range(PICTURES)) for name in seen} | {
        "collapsed": [i % MODES for i in range(PICTURES)],
        "memorised": originals(pictures),
    }
    for column, (name, mine) in enumerate(seen.items()):
        chart = np.full((CELL * FINE, CELL * FINE, 3), SHEET, np.uint8)
        classes = KNOWN if name == "partial" else tuple(CLASSES)
        dots(chart, (seen["truth"] - low) / (high - low), PICTURES * [CLOUD])
        dots(chart, (mine - low) / (high - low), [SCENE[classes[i % len(classes)]] for i in order[name]])
        place(page, top, column, shrunk(chart), "")


def dots(chart: Image, at: Floats, colours: list[Colour]) -> None:
    """Those at one place are one, larger: its area is their number."""
    where, first, count = np.unique(at.round(4), axis=0, return_index=True, return_counts=True)
    spots = np.rint((10 + where * (CELL - 20)) * FINE * 16).astype(int).tolist()
    for spot, i, n in zip(spots, first.tolist(), count.tolist(), strict=True):
        cv2.circle(chart, spot, round(2.6 * n**0.5 * FINE * 16), colours[i], -1, cv2.LINE_AA, 4)


def bars(page: Image, top: int, runs: dict[str, Run]) -> None:
    title(page, top, "Scores", "of these features: no FID numbers of the literature")
    legend(page, top, [(FAR, "how far from the truth"), (GOOD, "how good each is"), (VARIED, "how varied they are")])
    for row, (label, (name, most, form, colour)) in enumerate(BARS.items()):
        y = top + TITLE + row * LINE
        write(page, label, (left(1) - GAP - measure(label, TINY), y + 18), TINY, INK)
        for column, one in enumerate(runs.values(), 1):
            value, x, wide = one.scores[name].value, left(column), CELL - FIGURE
            page[y : y + LINE - 6, x : x + wide] = TRACK
            page[y : y + LINE - 6, x : x + round(np.clip(value / most, 0, 1) * wide)] = colour
            if name == "vendi":
                truth = x + round(one.scores["vendi_truth"].value / most * wide)
                page[y - 2 : y + LINE - 4, truth - 1 : truth + 1] = INK
            write(page, format(value, form), (x + wide + 7, y + 18), TINY, INK)


def left(column: int) -> int:
    return MARGIN + column * (CELL + GAP)


def place(page: Image, top: int, column: int, image: Image, caption: str) -> None:
    y, x, height = top + TITLE, left(column), len(image)
    page[y : y + height, x : x + CELL] = image
    write(page, caption, (x, y + height + 25), SMALL, INK if column else PALE)


if __name__ == "__main__":
    main()
