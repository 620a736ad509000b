"""Mice seen from above: they run about, climb over each other, and every node of every one is known."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from karat.sources.poses import Poses, make_poses

Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

WIDTH, HEIGHT = 640, 480
ANIMALS = 3
FRAMES = {"arena": 160, "corridor": 120}
WALLS = {"arena": (16, 16, 624, 464), "corridor": (16, 100, 624, 380)}
"""x0, y0, x1, y1 around every node."""

# Node: how far it is behind the nose along the animal's path and how far to the right of it, in pixels.
_ANATOMY = {
    "nose": (0, 0),
    "ear_left": (21, -12),
    "ear_right": (21, 12),
    "head": (19, 0),
    "neck": (34, 0),
    "spine_1": (51, 0),
    "spine_2": (68, 0),
    "spine_3": (85, 0),
    "tail_base": (101, 0),
    "tail_mid": (136, 0),
    "tail_tip": (174, 0),
    "paw_front_left": (42, -17),
    "paw_front_right": (42, 17),
    "paw_hind_left": (86, -23),
    "paw_hind_right": (86, 23),
}
NODES = tuple(_ANATOMY)
EDGES = tuple(
    (NODES.index(a), NODES.index(b))
    for a, b in (
        ("nose", "head"),
        ("head", "ear_left"),
        ("head", "ear_right"),
        ("head", "neck"),
        ("neck", "spine_1"),
        ("spine_1", "spine_2"),
        ("spine_2", "spine_3"),
        ("spine_3", "tail_base"),
        ("tail_base", "tail_mid"),
        ("tail_mid", "tail_tip"),
        ("spine_1", "paw_front_left"),
        ("spine_1", "paw_front_right"),
        ("spine_3", "paw_hind_left"),
        ("spine_3", "paw_hind_right"),
    )
)
_OTHER_SIDE = {"left": "right", "right": "left"}
MIRRORED = tuple(NODES.index("_".join(_OTHER_SIDE.get(part, part) for part in name.split("_"))) for name in NODES)
"""For each node the same node of the other side."""

TRUNK = tuple(map(NODES.index, ("nose", "head", "neck", "spine_1", "spine_2", "spine_3", "tail_base")))
GIRTH = np.array([3.0, 12.0, 13.0, 16.0, 19.0, 19.0, 6.0])
"""Half the width of the body at the nodes of the trunk, in pixels."""

BEHIND, _BESIDE = np.array(list(_ANATOMY.values()), float).T
_DIAGONAL = {"paw_front_left": 1.0, "paw_hind_right": 1.0, "paw_front_right": -1.0, "paw_hind_left": -1.0}
_GAIT = np.array([_DIAGONAL.get(name, 0.0) for name in NODES])
_MIDDLE = NODES.index("spine_2")
_STEPS, _MARGIN = 1024, 78


@dataclass(frozen=True, eq=False)
class Film:
    """T frames of A animals of K nodes; those of higher rank run over those of lower rank."""

    name: str
    points: Doubles
    """(T, A, K, 2) x, y in pixels, also of what is hidden."""
    size: Doubles
    """(A) by which the anatomy is scaled."""
    rank: Ints
    """(A) 0 is lowest."""

    @cached_property
    def inside(self) -> Bools:
        """(T, A, K, A) whether a node lies within the body of an animal; never within its own."""
        within = _within(self.points[:, :, :, None, None], self.points[:, :, TRUNK], self.size[:, None] * GIRTH)
        return within & ~np.eye(len(self.size), dtype=bool)[:, None]

    @cached_property
    def hidden(self) -> Bools:
        """(T, A, K) whether a node lies under another animal."""
        above = self.rank > self.rank[:, None]
        return np.asarray((self.inside & above[:, None]).any(3))

    @property
    def seen(self) -> Doubles:
        """The points, NaN where hidden."""
        return np.where(self.hidden[..., None], np.nan, self.points)

    @property
    def touching(self) -> Bools:
        """(T, A, A) whether the trunk of one lies partly within the other."""
        one_way = self.inside[:, :, TRUNK].any(2)
        return np.asarray(one_way | np.swapaxes(one_way, 1, 2))

    @property
    def truth(self) -> Poses:
        """What an annotator who makes no mistake would label."""
        count, animals = self.points.shape[:2]
        frame, track = np.divmod(np.arange(count * animals), animals)
        points = self.seen.reshape(count * animals, *self.points.shape[2:])
        some = np.isfinite(points).any((1, 2))
        return make_poses(
            points[some],
            frame[some],
            track=track[some],
            nodes=NODES,
            labelled=np.arange(count),
            name=self.name,
        )


def film(name: str, seed: int) -> Film:
    """The `arena`, where every mouse wanders its own way, or the `corridor`, where all run through the same middle."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, list(FRAMES).index(name)])))
    time = np.arange(FRAMES[name], dtype=float)
    runs: list[Doubles] = []
    size = rng.uniform(1.15, 1.4, ANIMALS)
    for i, loop in enumerate(_LOOPS[name](rng)):
        # The first meets the second in the first half of the film and the third in the second half.
        when = np.array_split(np.arange(FRAMES[name]), ANIMALS - 1)[i - 1]
        runs.append(_run(rng, loop, time, size[i], (when, runs[0][when]) if i else None))
    # Sines differ in their last bit from one processor to the next, their sixty-fourths do not.
    return Film(name, np.rint(np.stack(runs, axis=1) * 64) / 64, size, rng.permutation(ANIMALS))


def _run(
    rng: np.random.Generator, loop: Doubles, time: Doubles, size: float, meet: tuple[Ints, Doubles] | None
) -> Doubles:
    """The nodes (T, K, 2) of a mouse that runs along a closed curve (M, 2), its body bent as its path is.

    It starts anywhere, or so that it runs into another one, best from ahead, whose nodes at some frames `meet` gives.
    """
    closed = np.concatenate([loop, loop[:1]])
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    ahead = np.roll(loop, -1, 0) - np.roll(loop, 1, 0)
    speed, pause, start = rng.uniform(4.5, 6.5), rng.uniform(55, 85), rng.uniform(0, way[-1])
    turns = rng.uniform(0, 2 * np.pi, 3)
    nose = speed * (time + 0.8 * pause / (2 * np.pi) * np.sin(2 * np.pi * time / pause + turns[0]))
    behind = size * BEHIND
    if meet is None:
        nose += start
    else:
        frames, other = meet
        apart = _square(other[:, None, _MIDDLE] - loop) / 30**2
        alike = _unit(other[:, 0] - other[:, _MIDDLE]) @ _unit(ahead).T
        first, second = np.divmod((apart + alike).argmin(), len(loop))
        nose += way[second] + behind[_MIDDLE] - nose[frames[first]]

    stride = 7.0 * size * np.sin(2 * np.pi * nose / (58 * size))  # feet stand still where the mouse does
    at = nose[:, None] - behind + stride[:, None] * _GAIT
    beside = size * (_BESIDE + _look(time, turns[1]) + _wag(time, turns[2]))

    def along(values: Doubles) -> Doubles:
        return np.stack([np.interp(at, way, np.append(one, one[0]), period=way[-1]) for one in values.T], axis=-1)

    right = _unit(along(np.stack([-ahead[:, 1], ahead[:, 0]], axis=-1)))
    return np.asarray(along(loop) + beside[..., None] * right)


def _look(time: Doubles, turn: float) -> Doubles:
    """How far (T, K) a head that looks around is beside the path."""
    reach = np.clip(1 - BEHIND / 45, 0, 1)
    return np.asarray(11 * reach * np.sin(2 * np.pi * time / 37 + turn)[:, None])


def _wag(time: Doubles, turn: float) -> Doubles:
    """How far (T, K) a tail is beside the path."""
    reach = np.clip((BEHIND - 101) / 73, 0, 1)
    return np.asarray(24 * reach**1.5 * np.sin((2 * np.pi * time / 43 + turn)[:, None] - 2.2 * reach))


def _wander(rng: np.random.Generator) -> Doubles:
    """For each animal a closed curve (A, M, 2) over the arena: of random ones the first without a sharp bend."""
    share, phase = rng.uniform(0.3, 1.0, (ANIMALS, 256, 2, 3)), rng.uniform(0, 2 * np.pi, (ANIMALS, 256, 2, 3))
    bend = np.maximum(_sharpest(_curves(share, phase, 256)), 1 / 50)
    gentle = np.arange(ANIMALS), bend.argmin(1)
    return _curves(share[gentle], phase[gentle], _STEPS).transpose(0, 2, 1)


def _curves(share: Doubles, phase: Doubles, steps: int) -> Doubles:
    """Closed curves (..., 2, M) of three waves each way (..., 2, 3) that reach from wall to wall."""
    turn, wave = np.linspace(0, 2 * np.pi, steps, endpoint=False), np.arange(1, 4)
    curve = ((share / wave**2)[..., None] * np.sin(wave[:, None] * turn + phase[..., None])).sum(-2)
    low, high = curve.min(-1, keepdims=True), curve.max(-1, keepdims=True)
    room = np.array([[WIDTH], [HEIGHT]]) - 2 * _MARGIN
    return np.asarray(_MARGIN + (curve - low) / (high - low) * room)


def _sharpest(curve: Doubles) -> Doubles:
    """The greatest curvature of each closed curve (..., 2, M), in 1 / pixel."""
    first = (np.roll(curve, -1, -1) - np.roll(curve, 1, -1)) / 2
    second = np.roll(curve, -1, -1) - 2 * curve + np.roll(curve, 1, -1)
    (dx, dy), (ddx, ddy) = np.moveaxis(first, -2, 0), np.moveaxis(second, -2, 0)
    return np.asarray((np.abs(dx * ddy - dy * ddx) / np.hypot(dx, dy) ** 3).max(-1))


def _eights(rng: np.random.Generator) -> Doubles:
    """For each animal an eight (A, M, 2) that lies in the corridor; every other one runs it backwards."""
    way = np.where(np.arange(ANIMALS) % 2, -1, 1)[:, None]
    turn = way * np.linspace(0, 2 * np.pi, _STEPS, endpoint=False)
    long, wide = rng.uniform(210, 240, (ANIMALS, 1)), rng.uniform(66, 86, (ANIMALS, 1))
    return np.stack([WIDTH / 2 + long * np.sin(turn), HEIGHT / 2 + wide * np.sin(2 * turn)], axis=-1)


_LOOPS: dict[str, Callable[[np.random.Generator], Doubles]] = {"arena": _wander, "corridor": _eights}


def _within(points: Doubles, trunk: Doubles, girth: Doubles) -> Bools:
    """(T, A, K, A) whether points (T, A, K, 1, 1, 2) lie within bodies of trunks (T, A, J, 2), half widths (A, J)."""
    start, step = trunk[:, None, None, :, :-1], np.diff(trunk, axis=2)[:, None, None]
    gap = points - start
    share = np.clip((gap * step).sum(-1) / _square(step), 0, 1)
    width = girth[:, :-1] + share * np.diff(girth, axis=1)
    return np.asarray((_square(gap - share[..., None] * step) <= width * width).any(-1))


def _square(vectors: Doubles) -> Doubles:
    """The squared length of the last axis."""
    return np.asarray((vectors * vectors).sum(-1))


def _unit(vectors: Doubles) -> Doubles:
    return np.asarray(vectors / np.sqrt(_square(vectors))[..., None])
