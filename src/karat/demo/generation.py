"""Small pictures of objects of eight classes, and pretend generators of such pictures, each wrong in one recognisable
way; their files; their scores side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.demo.props import arm, car, drum, houses, mug, point, rolling, turned, walker
from karat.demo.render import Camera, Part, World, colour
from karat.demo.shapes import Bytes, Floats, box
from karat.demo.textures import PALETTE, Colour, Sheet, checkers, letters, panels, planks, road, sky, wallpaper
from karat.embedding import embed
from karat.evaluation import evaluate
from karat.networks.weights import require
from karat.run import Run

Rng = np.random.Generator
NETWORK = "efficientnet-lite0"
PICTURES, SIDE = 96, 96
GRAIN, SIGMA, QUALITY = 10.0, 1.2, 15
MODES, KNOWN = 6, ("car", "mug", "robot", "drum")
SUN = point(-4 / 9, 7 / 9, -4 / 9)


@dataclass(frozen=True)
class Stage:
    """Where objects of a class stand, what they are made of, and from where they are seen."""

    build: Callable[[Rng, Floats], list[Part]]
    ground: Callable[[Rng], Sheet]
    wall: Callable[[Rng], Sheet]
    distance: float
    """The z of the wall."""
    at: tuple[float, float]
    """Its x and z."""
    middle: float
    """How high its middle is."""
    away: float
    """How far the camera is."""
    around: float
    """How far the camera goes around it, to either side, in radians."""


def _car(rng: Rng, at: Floats) -> list[Part]:
    return car(_paint(rng), at, float(rng.uniform(0, 2 * np.pi)), 1)


def _person(rng: Rng, at: Floats) -> list[Part]:
    return walker(at, float(rng.uniform()), 1)


def _house(rng: Rng, _: Floats) -> list[Part]:
    return houses(rng)[:6]


def _mug(rng: Rng, at: Floats) -> list[Part]:
    return mug(_paint(rng), at, 1)


def _ball(rng: Rng, at: Floats) -> list[Part]:
    return [rolling(_paint(rng), 0.1, at, at + point(0.6, 0, 0.3), float(rng.uniform(0, 0.2)), 1)]


def _block(rng: Rng, at: Floats) -> list[Part]:
    return [Part(box(0.2, 0.2, 0.2), letters(_paint(rng)), at, turned(float(rng.uniform(0, np.pi / 2))), 1)]


def _robot(rng: Rng, at: Floats) -> list[Part]:
    bearing, reach = float(rng.uniform(-1.4, 1.4)), float(rng.uniform(0.8, 1.1))
    hand = point(reach * float(np.sin(bearing)), float(rng.uniform(0.4, 0.9)), -reach * float(np.cos(bearing)))
    return arm(at, at + hand, float(np.pi) - bearing, 1)


def _drum(rng: Rng, at: Floats) -> list[Part]:
    return drum(_paint(rng), at, 1)


def _paint(rng: Rng) -> Colour:
    return list(PALETTE.values())[int(rng.integers(len(PALETTE)))]


CLASSES: Mapping[str, Stage] = {
    "car": Stage(_car, road, sky, 80, (1.75, 10), 0.7, 5.5, 0.5),
    "person": Stage(_person, road, sky, 80, (-3.6, 10), 1.0, 2.8, 0.5),
    "house": Stage(_house, road, sky, 80, (-9.4, 11), 3.4, 14, 0.5),
    "mug": Stage(_mug, planks, wallpaper, 2.3, (0, 1.2), 0.1, 0.42, 0.6),
    "ball": Stage(_ball, planks, wallpaper, 2.3, (0, 1.2), 0.09, 0.42, 0.6),
    "block": Stage(_block, planks, wallpaper, 2.3, (0, 1.2), 0.1, 0.5, 0.6),
    "robot": Stage(_robot, checkers, panels, 4.6, (0, 2.75), 0.75, 2.4, 0.5),
    "drum": Stage(_drum, checkers, panels, 4.6, (0, 2.75), 0.32, 1.2, 0.5),
}


def draw(name: str, rng: Rng, seed: int = 0) -> Bytes:
    """A picture (SIDE, SIDE, 3) of an object of that class, in front of the walls of that seed."""
    stage = CLASSES[name]
    x, z = stage.at
    at = point(x + float(rng.uniform(-0.1, 0.1)) * stage.away, 0, z + float(rng.uniform(-0.1, 0.1)) * stage.away)
    angle, away = float(rng.uniform(-1, 1)) * stage.around, stage.away * float(rng.uniform(0.85, 1.3))
    rise = float(rng.uniform(0.05, 0.4))
    eye = at + point(away * np.sin(angle), stage.middle + away * rise, -away * np.cos(angle))
    off = rng.uniform(-0.07, 0.07, 2)
    camera = Camera(eye, turned(-angle + float(off[0]), float(np.arctan(rise) + off[1])), 1.1)
    ground, wall = _sheet(stage.ground, seed), _sheet(stage.wall, seed)
    fine = colour(World(camera, stage.build(rng, at), ground, wall, stage.distance, SUN), 2 * SIDE, 2 * SIDE)
    picture = cv2.resize(fine, (SIDE, SIDE), interpolation=cv2.INTER_AREA) * rng.uniform(0.8, 1.15)
    return _bytes(picture[:, ::-1] if rng.uniform() < 0.5 else picture)


@cache
def _sheet(make: Callable[[Rng], Sheet], seed: int) -> Sheet:
    return make(_rng(seed, make.__name__))


def several(count: int, seed: int, of: str, classes: Sequence[str] = tuple(CLASSES)) -> Bytes:
    """Pictures (count, SIDE, SIDE, 3), the classes in turn; other ones for every name and seed."""
    rng = _rng(seed, of)
    return np.stack([draw(classes[i % len(classes)], rng, seed) for i in range(count)])


@dataclass(frozen=True, eq=False)
class Sets:
    """What pretend generators are made of: two draws of as many pictures that have none in common."""

    truth: Bytes
    fresh: Bytes
    seed: int = 0


def sets(count: int = PICTURES, seed: int = 0) -> Sets:
    """The truth, and as many other pictures."""
    return Sets(several(count, seed, "truth"), several(count, seed, "fresh"), seed)


def perfect(given: Sets) -> Bytes:
    """Draws as the truth was drawn."""
    return given.fresh


def noise(given: Sets) -> Bytes:
    """Leaves grain in the same pictures."""
    return _bytes(given.fresh + GRAIN * _rng(given.seed, "noise").standard_normal(given.fresh.shape))


def blur(given: Sets) -> Bytes:
    """Loses what is fine in the same pictures."""
    return np.stack([_bytes(cv2.GaussianBlur(one.astype(np.float64), (0, 0), SIGMA)) for one in given.fresh])


def jpeg(given: Sets) -> Bytes:
    """Leaves the artefacts of strong compression in the same pictures."""
    how = (cv2.IMWRITE_JPEG_QUALITY, QUALITY)
    coded = (cv2.imencode(".jpg", one[..., ::-1], how)[1] for one in given.fresh)
    decoded = (np.asarray(cv2.imdecode(one, cv2.IMREAD_COLOR), np.uint8) for one in coded)
    return np.stack([one[..., ::-1] for one in decoded])


def collapsed(given: Sets) -> Bytes:
    """Knows a few pictures, good ones, and gives no others."""
    return np.asarray(given.fresh[np.arange(len(given.fresh)) % MODES])


def partial(given: Sets) -> Bytes:
    """Draws as the truth was drawn, but only half of its classes."""
    return several(len(given.truth), given.seed, "partial", KNOWN)


def memorised(given: Sets) -> Bytes:
    """Gives the pictures of the truth again, in another order."""
    return np.asarray(given.truth[_rng(given.seed, "memorised").permutation(len(given.truth))])


MODELS: Mapping[str, Callable[[Sets], Bytes]] = {
    "perfect": perfect,
    "noise": noise,
    "blur": blur,
    "jpeg": jpeg,
    "collapsed": collapsed,
    "partial": partial,
    "memorised": memorised,
}


def write(folder: Path, seed: int = 0, count: int = PICTURES) -> dict[str, Path]:
    """Write `count` pictures (png) of the truth and of every model: their folders by name."""
    given = sets(count, seed)
    places = {"truth": folder / "truth"} | {model: folder / "models" / model for model in MODELS}
    for name, place in places.items():
        place.mkdir(parents=True, exist_ok=True)
        for i, picture in enumerate(given.truth if name == "truth" else MODELS[name](given)):
            cv2.imwrite(str(place / f"{i:03}.png"), picture[..., ::-1])
    return places


def run(folder: Path, workers: int | None = None) -> dict[str, Run]:
    """Writes the pictures under `folder`, evaluates every model against the truth, keeps the runs under `folder`/runs.

    The features of the truth are computed once, under `folder`/features; those of a model are kept in its run. KID is
    of subsets of half the pictures.
    """
    require("The demo of generation")
    places = write(folder)
    truth = embed(places["truth"], folder / "features" / "truth.npz", NETWORK, keep=True).path
    return {
        model: evaluate(
            "generation",
            pred=places[model],
            truth=truth,
            network=NETWORK,
            settings={"kid.size": PICTURES // 2},
            out=folder / "runs" / model,
            workers=workers,
        )
        for model in MODELS
    }


def _rng(seed: int, of: str) -> Rng:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *of.encode()])))


def _bytes(picture: NDArray[np.floating]) -> Bytes:
    return np.asarray(np.clip(np.rint(picture), 0, 255), np.uint8)
