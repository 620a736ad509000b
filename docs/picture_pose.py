"""Draws docs/images/pose.png: the demo's mice as five pretend pose models see them, and what Karat measures on them.

python docs/picture_pose.py
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from picture import FOUND, HEADER, INK, INVENTED, MARGIN, MISSED, PALE, PAPER, WIDTH, measure, save, title, write
from scipy.interpolate import CubicSpline, PchipInterpolator

import karat
from karat.demo.animals import EDGES, FRAMES, GIRTH, NODES, TRUNK, WALLS, Film, film
from karat.demo.pose import MODELS, predict
from karat.metrics.matches import Role
from karat.rows import Rows
from karat.run import Run
from karat.sources.poses import Poses

Image = NDArray[np.uint8]
Floats = NDArray[np.float64]
Colour = tuple[int, int, int]
Window = tuple[int, int, int, int]

COLUMNS, GAP = 1 + len(MODELS), 14
CELL = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) // COLUMNS
TITLE, CAPTION, SMALL, FINE = 46, 38, 0.6, 3
FAR, NEAR = 64, 10

TRACKS: list[Colour] = [(56, 189, 248), (250, 204, 21), (192, 132, 252)]
LEFT, RIGHT, OUTLINE = (255, 255, 255), (20, 22, 28), (25, 25, 30)
FUR: list[Colour] = [(92, 86, 84), (150, 112, 78), (206, 198, 186)]
SKIN, FLOOR, WALL = (226, 160, 150), (206, 197, 180), (120, 116, 112)
RULE, EMPTY, WEAK = (224, 228, 233), (233, 236, 240), (250, 190, 60)
PARTS = {"head": (14, 116, 144), "trunk": (37, 99, 235), "tail": (124, 58, 237), "paws": (190, 110, 30)}
PART = dict(zip(NODES, 4 * ["head"] + 5 * ["trunk"] + 2 * ["tail"] + 4 * ["paws"], strict=True))
FLAWS = {
    "truth": "known exactly",
    "sharp": "off by a pixel or two",
    "misses": "loses mice and nodes",
    "swaps": "mixes up sides, names",
    "jitter": "shakes, most at the tail",
    "eager": "doubles and ghosts",
}


def main() -> None:
    films = {name: film(name, 0) for name in FRAMES}
    truth = {name: mice.truth for name, mice in films.items()}
    guesses = {model: {name: predict(model, mice, 0) for name, mice in films.items()} for model in MODELS}
    runs = {model: karat.evaluate("pose", pred=guess, truth=truth, workers=1) for model, guess in guesses.items()}
    arena, corridor = films.values()
    seen = {"truth": truth} | guesses
    rows = [
        (187, lambda page, y: scene(page, y, 187, "Arena", arena, seen, 117, (0, 0, 640, 484))),
        (187, lambda page, y: scene(page, y, 187, "Close up", arena, seen, 42, (4, 128, 310, 360))),
        (108, lambda page, y: scene(page, y, 108, "Corridor", corridor, seen, 33, (0, 100, 640, 380))),
        (78, lambda page, y: identities(page, y, 78, arena, seen, runs)),
        (24, lambda page, y: instances(page, y, 24, runs)),
        (225, lambda page, y: nodes(page, y, 225, runs)),
        (120, lambda page, y: within(page, y, 120, runs)),
    ]
    height = HEADER + sum(TITLE + h + CAPTION for h, _ in rows) + MARGIN // 2
    page = np.full((height, WIDTH, 3), PAPER, np.uint8)
    for column, name in enumerate(seen):
        write(page, name, (left(column), 52), 1.0, INK, bold=True)
    page[HEADER - 16 : HEADER - 14, MARGIN : WIDTH - MARGIN] = INK
    top = HEADER
    for h, draw in rows:
        draw(page, top)
        top += TITLE + h + CAPTION
    save(Path(__file__).parent / "images" / "pose.png", page)


def scene(
    page: Image, top: int, height: int, name: str, mice: Film, seen: dict[str, dict[str, Poses]], t: int, window: Window
) -> None:
    title(page, top, name, f"frame {t} of the {mice.name}")
    if name == "Arena":
        first, second, third = TRACKS
        key = [(first, "first mouse"), (second, "second"), (third, "third"), (INVENTED, "none of them")]
        legend(page, top, [*key, (LEFT, "left side"), (RIGHT, "right side")])
    if name == "Close up":
        legend(page, top, [], "what lies under another mouse has no truth")
    for column, (model, guess) in enumerate(seen.items()):
        poses = guess[mice.name]
        now = poses.points[poses.frame == t]
        counted = f"{len(now)} mice, {np.isfinite(now).all(2).sum()} nodes"
        image = skeletons(mice, t, window, height, poses, 1.2 if window[2] - window[0] > 400 else 1.6)
        place(page, top, column, image, FLAWS[model] if name == "Arena" else counted)


def identities(
    page: Image, top: int, height: int, mice: Film, seen: dict[str, dict[str, Poses]], runs: dict[str, Run]
) -> None:
    title(page, top, "Identity", f"the name that each of the three mice has in each frame of the {mice.name}")
    legend(page, top, [(EMPTY, "not found"), (INVENTED, "taken by a double or a ghost")])
    truth, lane = seen["truth"][mice.name], (height - 12) // 3
    for column, guess in enumerate(seen.values()):
        name = np.full((len(mice.points), 3), -1)
        if column:
            pairs = matched(list(runs.values())[column - 1], mice.name)
            mine, its = pairs.columns["truth"], pairs.columns["pred"]
            name[truth.frame[mine], truth.track[mine]] = guess[mice.name].track[its]
        else:
            name[truth.frame, truth.track] = truth.track
        colours = np.array([*TRACKS, *[INVENTED] * 6, EMPTY], np.uint8)[name]
        chart = np.full((height * FINE, CELL * FINE, 3), PAPER, np.uint8)
        frame = np.arange(CELL * FINE) * len(name) // (CELL * FINE)
        for i in range(3):
            chart[i * (lane + 6) * FINE : (i * (lane + 6) + lane) * FINE] = colours[frame, i]
        changes = sum(int((np.diff(one[one >= 0]) != 0).sum()) for one in name.T)
        caption = f"{changes} changes of name" if column else "each keeps its own"
        place(page, top, column, shrunk(chart), caption)


def instances(page: Image, top: int, height: int, runs: dict[str, Run]) -> None:
    title(page, top, "Instances", "matched by similarity (OKS) from the best score down")
    legend(page, top, [(FOUND, "found"), (WEAK, "OKS below .5"), (MISSED, "missed"), (INVENTED, "invented")])
    most = max(len(run.rows["matches"]) for run in runs.values())
    for column, run in enumerate(runs.values(), 1):
        role, oks = (run.rows["matches"].columns[name] for name in ("role", "oks"))
        kinds = [oks >= 0.5, oks < 0.5, role == Role.MISSED, role == Role.FALSE]
        ends = np.cumsum([0, *(kind.sum() for kind in kinds)]) * CELL * FINE // most
        chart = np.full((height * FINE, CELL * FINE, 3), PAPER, np.uint8)
        for start, end, colour in zip(ends, ends[1:], (FOUND, WEAK, MISSED, INVENTED), strict=False):
            chart[:, start:end] = colour
        precision, alike = (run.scores[name].value for name in ("oks_voc.mAP", "mOKS"))
        place(page, top, column, shrunk(chart), f"mAP {precision:.3f}   mOKS {alike:.3f}")
    write(page, "840 mice to be found", (left(0), top + TITLE + 17), SMALL, PALE)


def nodes(page: Image, top: int, height: int, runs: dict[str, Run]) -> None:
    title(
        page,
        top,
        "Error by node",
        "distance in matched mice: median, in pale 90th percentile; lines at 1, 4, 16, 64 px",
    )
    legend(page, top, [(colour, part) for part, colour in PARTS.items()])
    step, wide = height / len(NODES), (CELL - 1) * FINE
    for k, name in enumerate(NODES):
        label = name.replace("_", " ")
        baseline = round(top + TITLE + (k + 0.5) * step + 5)
        write(page, label, (left(1) - GAP - measure(label, 0.45), baseline), 0.45, PALE)
    for column, run in enumerate(runs.values(), 1):
        far = matched(run).columns["distance"]
        chart = ruled(height, np.sqrt(np.array([0, 1, 4, 16, 64]) / FAR))
        for k, name in enumerate(NODES):
            y0, y1 = round((k * step + 2.3) * FINE), round(((k + 1) * step - 2.3) * FINE)
            half, tenth = (round(min(at / FAR, 1) ** 0.5 * wide) for at in np.nanpercentile(far[:, k], (50, 90)))
            colour = np.array(PARTS[PART[name]])
            chart[y0:y1, FINE:tenth] = 255 - (255 - colour) * 0.3
            chart[y0:y1, FINE:half] = colour
        mean, p90 = (run.scores[name].value for name in ("Avg_dist", "Dist@p90"))
        place(page, top, column, shrunk(chart), f"mean {mean:.1f}   p90 {p90:.1f} px")


def within(page: Image, top: int, height: int, runs: dict[str, Run]) -> None:
    title(page, top, "Correct keypoints", f"the share of the visible nodes that is found within 0 to {NEAR} px")
    for share, baseline in ((1.0, 10), (0.5, height // 2 + 5), (0.0, height)):
        label = f"{share:.0%}"
        write(page, label, (left(1) - GAP - measure(label, 0.45), top + TITLE + baseline), 0.45, PALE)
    for column, run in enumerate(runs.values(), 1):
        pairs = matched(run)
        far, asked = np.sort(pairs.columns["distance"], axis=None), pairs.columns["truth_seen"].sum()
        chart = ruled(height, np.arange(0, 1.01, 0.2))
        for share in (0.0, 0.5):
            y = round(share * height * FINE)
            chart[y : y + FINE] = RULE
        px = np.arange(CELL * FINE) / (CELL * FINE) * NEAR
        right = np.searchsorted(far, px, side="right") / asked
        y = np.rint((1 - right) * (height * FINE - 1)).astype(int)
        under = np.arange(height * FINE)[:, None] > y
        chart[under] = 255 - (255 - chart[under]) // 2 - (255 - np.array([214, 231, 255])) // 2
        line = np.stack([np.arange(len(y)), y], axis=1)
        cv2.polylines(chart, [line], False, PARTS["trunk"], 2 * FINE, cv2.LINE_AA)
        scores = run.scores
        place(page, top, column, shrunk(chart), f"PCK@5 {scores['PCK@5'].value:.3f}   mean {scores['mPCK'].value:.3f}")


def matched(run: Run, video: str | None = None) -> Rows:
    """The rows of pairs of a true and a predicted mouse."""
    rows = run.rows["matches"]
    chosen = rows.columns["role"] == Role.PAIR
    if video is not None:
        chosen &= rows.sample == rows.samples.index(video)
    return rows.take(np.flatnonzero(chosen))


# Charts


def left(column: int) -> int:
    return MARGIN + column * (CELL + GAP)


def place(page: Image, top: int, column: int, image: Image, caption: str) -> None:
    y, x, height = top + TITLE, left(column), len(image)
    page[y : y + height, x : x + CELL] = image
    write(page, caption, (x, y + height + 25), SMALL, INK if column else PALE)


def ruled(height: int, shares: Floats) -> Image:
    """Empty fine paper with lines at shares of its width, the first of them dark."""
    chart = np.full((height * FINE, CELL * FINE, 3), PAPER, np.uint8)
    for x in np.rint(shares * (CELL - 1) * FINE).astype(int)[::-1]:
        chart[:, x : x + FINE] = RULE if x else PALE
    return chart


def shrunk(fine: Image) -> Image:
    return cv2.resize(fine, None, fx=1 / FINE, fy=1 / FINE, interpolation=cv2.INTER_AREA)


def legend(page: Image, top: int, entries: Sequence[tuple[Colour, str]], remark: str = "") -> None:
    """Dots with their meanings, or a remark, flush right."""
    x = WIDTH - MARGIN
    if remark:
        write(page, remark, (x - measure(remark, SMALL), top + 34), SMALL, PALE)
    for colour, meaning in reversed(entries):
        x -= measure(meaning, SMALL)
        write(page, meaning, (x, top + 34), SMALL, PALE)
        x -= 24
        part = page[top + 15 : top + 39, x - 3 : x + 21]
        big = cv2.resize(part, None, fx=8, fy=8, interpolation=cv2.INTER_NEAREST)
        cv2.circle(big, (96, 96), 62, PALE, -1, cv2.LINE_AA)
        cv2.circle(big, (96, 96), 52, colour, -1, cv2.LINE_AA)
        part[:] = cv2.resize(big, (24, 24), interpolation=cv2.INTER_AREA)
        x -= 20


# Skeletons


def skeletons(mice: Film, t: int, window: Window, height: int, poses: Poses, thick: float) -> Image:
    """A part of a frame with the skeletons that `poses` has in it."""
    image = np.uint8(0.85 * paint(mice, t, window, CELL * FINE, height * FINE) + 0.15 * 255)
    now = np.flatnonzero(poses.frame == t)
    now = now[np.argsort(poses.track[now] < len(TRACKS), kind="stable")]  # what is invented lies below
    scale = image.shape[1] / (window[2] - window[0])
    for spots, track in zip((poses.points[now] - window[:2]) * scale - 0.5, poses.track[now], strict=True):
        skeleton(image, spots, TRACKS[track] if track < len(TRACKS) else INVENTED, thick * FINE)
    return shrunk(image)


def skeleton(image: Image, spots: Floats, colour: Colour, thick: float) -> None:
    """The nodes (K, 2) of an animal and what links them; those of its left side are white, of its right side black."""
    seen = np.isfinite(spots).all(1)
    at = np.rint(np.nan_to_num(spots) * 16).astype(int).tolist()  # OpenCV counts in sixteenths
    for ink, wide in ((OUTLINE, thick + FINE), (colour, thick)):
        for a, b in EDGES:
            if seen[a] and seen[b]:
                cv2.line(image, at[a], at[b], ink, round(wide), cv2.LINE_AA, 4)
    for k in np.flatnonzero(seen):
        fill = LEFT if "left" in NODES[k] else RIGHT if "right" in NODES[k] else colour
        cv2.circle(image, at[k], round((1.5 * thick + 0.6 * FINE) * 16), OUTLINE, -1, cv2.LINE_AA, 4)
        cv2.circle(image, at[k], round(1.5 * thick * 16), fill, -1, cv2.LINE_AA, 4)


# Mice


def floor(window: Window, width: int, height: int, walls: Window) -> Image:
    """The empty floor, lit from the left, with a wall around it and some bedding on it."""
    x, y = grid(window, width, height)
    rng = np.random.Generator(np.random.Philox(5))
    speckle = cv2.resize(rng.normal(0, 1, (240, 320)).astype(np.float32), (640, 480), interpolation=cv2.INTER_CUBIC)
    speckle += cv2.resize(rng.normal(0, 1, (24, 32)).astype(np.float32), (640, 480), interpolation=cv2.INTER_CUBIC)
    bedding = cv2.remap(speckle, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR, borderMode=2)
    x0, y0, x1, y1 = walls
    depth = np.minimum.reduce([x - x0, x1 - x, y - y0, y1 - y])
    light = (1 + 0.018 * bedding - 0.1 * (x - 320) / 640) * (1 - 0.16 * np.exp(-np.maximum(depth, 0) / 14))
    image = np.where((depth > 0)[..., None], light[..., None] * FLOOR, np.array(WALL, float))
    image[(depth <= 0) & (depth > -5)] = (150, 146, 140)
    return np.clip(image, 0, 255).astype(np.uint8)


def grid(window: Window, width: int, height: int) -> tuple[Floats, Floats]:
    """Where in the film the centres (H, W) of an image's pixels lie."""
    x0, y0, x1, y1 = window
    x = x0 + (np.arange(width) + 0.5) * (x1 - x0) / width
    y = y0 + (np.arange(height) + 0.5) * (y1 - y0) / height
    x, y = np.meshgrid(x, y)
    return x, y


@cache
def paint(mice: Film, t: int, window: Window, width: int, height: int) -> Image:
    """The mice of a frame on their floor."""
    image = floor(window, width, height, WALLS[mice.name]).astype(float)
    x, y = grid(window, width, height)
    scale = width / (window[2] - window[0])
    for animal in np.argsort(mice.rank):
        node = dict(zip(NODES, mice.points[t, animal], strict=True))
        size = mice.size[animal]
        trunk = bumps(x, y, [node[NODES[i]] for i in TRUNK], size * GIRTH)
        tail = bumps(x, y, [node[n] for n in ("spine_3", "tail_base", "tail_mid", "tail_tip")], [5, 4, 3, 1.2])
        paws = np.maximum.reduce([dome(x, y, node[n], 4.6 * size) for n in NODES if n.startswith("paw")])
        ears = np.maximum.reduce([dome(x, y, node[f"ear_{side}"], 7.5 * size) for side in ("left", "right")])
        shade = cv2.GaussianBlur(np.float32((trunk > 0) | (tail > 0)), (0, 0), 5 * scale)
        move = np.float32([[1, 0, 3 * scale], [0, 1, 4 * scale]])
        image *= 1 - 0.5 * cv2.warpAffine(shade, move, (width, height))[..., None]
        fur = np.array(FUR[animal], float)
        ahead = node["nose"] - node["head"]
        across = np.array([-ahead[1], ahead[0]])
        eyes = [dome(x, y, node["head"] + 0.42 * ahead + k * 0.32 * across, 2.1 * size) for k in (-1, 1)]
        lay(image, paws, np.array(SKIN), scale)
        lay(image, tail, 0.6 * np.array(SKIN) + 0.25 * fur, scale)
        lay(image, trunk, fur, scale)
        lay(image, ears, 0.55 * np.array(SKIN) + 0.4 * fur, scale)
        lay(image, dome(x, y, node["nose"], 2.6 * size), np.array(SKIN), scale)
        lay(image, np.maximum(*eyes), np.array([16.0, 14, 14]), scale)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def bumps(x: Floats, y: Floats, through: Sequence[Floats], girth: Sequence[float] | Floats) -> Floats:
    """How high (H, W) a round body stands that runs smoothly through some points."""
    at = np.arange(len(through))
    fine = np.linspace(0, len(through) - 1, 24 * len(through))
    middle, radius = CubicSpline(at, through)(fine), PchipInterpolator(at, girth)(fine)
    height = np.zeros_like(x)
    for centre, r in zip(middle, radius, strict=True):
        np.maximum(height, dome(x, y, centre, r), out=height)
    return height


def dome(x: Floats, y: Floats, centre: Floats, radius: float) -> Floats:
    """How high (H, W) a ball stands of which half lies on the ground."""
    height = np.zeros_like(x)
    rows, columns = (np.flatnonzero(np.abs(axis - c) < radius) for axis, c in ((y[:, 0], centre[1]), (x[0], centre[0])))
    if len(rows) and len(columns):
        part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        square = (x[part] - centre[0]) ** 2 + (y[part] - centre[1]) ** 2
        height[part] = np.sqrt(np.maximum(radius**2 - square, 0))
    return height


def lay(image: Floats, height: Floats, colour: Floats, scale: float) -> None:
    """Light from above and the left on what stands `height` (H, W) units high."""
    smooth = cv2.GaussianBlur(height, (0, 0), 1.2 * scale)
    dy, dx = np.gradient(smooth * scale)
    light = (0.45 * dx + 0.55 * dy + 1) / np.sqrt(dx * dx + dy * dy + 1)
    there = height > 0
    image[there] = (0.35 + 0.72 * np.clip(light, 0, 1.2))[there, None] * colour


if __name__ == "__main__":
    main()
