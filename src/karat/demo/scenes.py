"""Demo scenes with exact depth, instance labels and boxes: who is where at which time."""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.demo.props import arm, car, drum, houses, mug, point, rolling, turned, van, walker
from karat.demo.render import Camera, Part, World, colour, trace
from karat.demo.shapes import Bytes, Floats, box
from karat.demo.textures import PALETTE, checkers, letters, panels, planks, road, sky, wallpaper


@dataclass(frozen=True)
class Scene:
    """A ground-truth clip of T frames with N named instances; label 0 is background, label i is ``names[i - 1]``."""

    name: str
    frames: Bytes
    """(T, H, W, 3) RGB."""
    depth: Floats
    """(T, H, W) metres along the optical axis, sampled at pixel centres."""
    labels: Bytes
    """(T, H, W) instance ids, sampled at pixel centres."""
    names: tuple[str, ...]
    boxes: Floats
    """(T, N, 4) x1 y1 x2 y2 in pixels, far edges exclusive, of the visible part; NaN where nothing is visible."""

    @property
    def foreground(self) -> NDArray[np.bool_]:
        """(T, H, W), true on every instance."""
        return self.labels > 0


def staged(index: int, seed: int) -> tuple[str, tuple[str, ...], Callable[[float], World]]:
    """Scene number ``index``: street, table, robot, then the same again cast differently. Its name, those of its
    instances, and the world at every time from 0 to 1."""
    title, story = list(_STORIES.items())[index % len(_STORIES)]
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, index])))
    return (title if index < len(_STORIES) else f"{title}-{index // len(_STORIES) + 1}", *story(rng))


def film(index: int, frames: int, height: int, width: int, seed: int) -> Scene:
    """Scene number ``index``, filmed."""
    name, names, world = staged(index, seed)
    colours = np.empty((frames, height, width, 3), np.uint8)
    depth, labels = np.empty((frames, height, width), np.float32), np.empty((frames, height, width), np.uint8)
    for t in range(frames):
        moment = world(t / max(frames - 1, 1))
        # Colour is averaged over 2 x 2 rays; depth and labels are not defined by averages and come from the centre ray.
        fine = colour(moment, 2 * height, 2 * width)
        colours[t] = np.clip(cv2.resize(fine, (width, height), interpolation=cv2.INTER_AREA).round(), 0, 255)
        depth[t], owner = trace(moment, height, width)
        labels[t] = _labels(moment, owner)
    return Scene(name, colours, depth, labels, names, visible_boxes(labels, len(names)))


def outlines(index: int, frames: int, height: int, width: int, seed: int) -> tuple[str, tuple[str, ...], Bytes]:
    """Of scene number ``index`` its name, those of its instances, and their ids (T, H, W) alone."""
    name, names, world = staged(index, seed)
    moments = [world(t / max(frames - 1, 1)) for t in range(frames)]
    return name, names, np.stack([_labels(moment, trace(moment, height, width)[1]) for moment in moments])


def _labels(moment: World, owner: NDArray[np.integer]) -> Bytes:
    """The instance of every pixel, from the part that it shows."""
    return np.asarray(np.array([part.label for part in moment.parts] + [0, 0], np.uint8)[owner])


def visible_boxes(labels: Bytes, count: int) -> Floats:
    """Boxes (T, count, 4) around labels 1..count of ``labels`` (T, H, W); far edges exclusive, NaN when absent."""
    boxes = np.full((len(labels), count, 4), np.nan, np.float32)
    for t, image in enumerate(labels):
        for i in range(count):
            inside = image == i + 1
            xs, ys = np.flatnonzero(inside.any(0)), np.flatnonzero(inside.any(1))
            if xs.size:
                boxes[t, i] = xs[0], ys[0], xs[-1] + 1, ys[-1] + 1
    return boxes


def _street(rng: np.random.Generator) -> tuple[tuple[str, ...], Callable[[float], World]]:
    """A tree-lined road: three vehicles and a pedestrian who crosses in front of them."""
    a, b, c = (str(n) for n in rng.permutation(list(PALETTE)[:5])[:3])
    lead, hurry = rng.uniform(-0.6, 0.6), rng.uniform(0.85, 1.15)
    ground, wall, row = road(rng), sky(rng), houses(rng)

    def at(s: float) -> World:
        camera = Camera(point(0.25 + 0.5 * s, 1.75, 0.9 * s), turned(-0.13 + 0.2 * s, 0.0), 1.0)
        parts = [
            *row,
            *car(PALETTE[a], point(1.75, 0, 9.4 + lead + 4.5 * s * hurry), 0.0, 1),
            *car(PALETTE[b], point(-1.9, 0, 23 - 11.5 * s * hurry), np.pi, 2),
            *van(PALETTE[c], point(4.1, 0, 12.5), 3),
            *walker(point(-2.9 + 3.1 * s, 0, 8.0 + lead), s, 4),
        ]
        return World(camera, parts, ground, wall, 80.0, point(-2 / 3, 2 / 3, -1 / 3))

    return (f"{a} car", f"{b} car", f"{c} van", "person"), at


def _table(rng: np.random.Generator) -> tuple[tuple[str, ...], Callable[[float], World]]:
    """Two balls roll across a wooden table, behind and in front of a mug and a toy block."""
    a, b, c, d = (str(n) for n in rng.permutation(list(PALETTE)[:6])[:4])
    drift = float(rng.uniform(-0.04, 0.04))
    ground, wall = planks(rng), wallpaper(rng)
    tilt = float(rng.uniform(0.3, 0.7))

    def at(s: float) -> World:
        camera = Camera(point(-0.26 + 0.5 * s, 0.62, -0.12), turned(0.17 - 0.34 * s, 0.32), 1.2)
        parts = [
            *mug(PALETTE[c], point(0.06 + drift, 0, 1.08), 3),
            Part(box(0.2, 0.2, 0.2), letters(PALETTE[d]), point(-0.36, 0, 1.34), turned(tilt), 4),
            rolling(PALETTE[a], 0.105, point(-0.58, 0, 1.42), point(0.56, 0, 1.26 + drift), s, 1),
            rolling(PALETTE[b], 0.075, point(0.62, 0, 1.5), point(-0.3, 0, 0.84 + drift), s, 2),
        ]
        return World(camera, parts, ground, wall, 2.3, point(4 / 9, 7 / 9, -4 / 9))

    return (f"{a} ball", f"{b} ball", f"{c} mug", f"{d} block"), at


def _robot(rng: np.random.Generator) -> tuple[tuple[str, ...], Callable[[float], World]]:
    """A robot arm carries a cube over a checkered floor, past a ball and a drum."""
    a, b, c = (str(n) for n in rng.permutation(list(PALETTE)[:6])[:3])
    ground, wall = checkers(rng), panels(rng)
    reach = float(rng.uniform(0.92, 1.04))

    def at(s: float) -> World:
        ease = s * s * (3 - 2 * s)
        bearing = -0.95 + 1.75 * ease
        lift = 0.4 + 0.42 * float(np.sin(np.pi * ease))
        foot = point(0, 0, 2.75)
        hand = foot + point(reach * float(np.sin(bearing)), lift, -reach * float(np.cos(bearing)))
        camera = Camera(point(0.34 - 0.68 * s, 1.25, -0.25), turned(-0.12 + 0.24 * s, 0.24), 0.95)
        yaw = float(np.pi) - bearing
        parts = [
            *arm(foot, hand, yaw, 1),
            Part(box(0.2, 0.2, 0.2), letters(PALETTE[a]), hand - point(0, 0.36, 0), turned(yaw), 2),
            rolling(PALETTE[b], 0.17, point(0.62, 0, 1.6), point(0.02, 0, 1.5), s, 3),
            *drum(PALETTE[c], point(-0.95, 0, 2.45), 4),
        ]
        return World(camera, parts, ground, wall, 4.6, point(-4 / 9, 7 / 9, -4 / 9))

    return ("robot arm", f"{a} cube", f"{b} ball", f"{c} drum"), at


_STORIES = {"street": _street, "table": _table, "robot": _robot}
