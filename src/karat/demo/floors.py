"""Floor plans seen from above: an office of rooms, an old town of crooked streets, a campus of scattered halls."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from karat.kernels.distance import to_nearest

Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rng = np.random.Generator

SIZE = 160
"""Pixels along either side, a metre each."""
_WALL, _FACADE, _INSIDE = 2.5, 4.0, 0.8  # dB that a ray loses in a metre


@dataclass(frozen=True, eq=False)
class Floor:
    """What stands where."""

    name: str
    building: Bools
    """(H, W) where nobody can walk: walls, and the whole of a building that has no rooms."""
    loss: Doubles
    """(H, W) dB that a ray loses in a metre."""

    @property
    def depth(self) -> Doubles:
        """(H, W) metres from a building's pixel to the open, 0 in the open."""
        return to_nearest(~self.building)


def floor(name: str, seed: int) -> Floor:
    """The plan of that name."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, list(FLOORS).index(name)])))
    building, within = FLOORS[name](rng)
    depth = to_nearest(~building)
    return Floor(name, building, np.where(building, np.where(depth <= 2, within, _INSIDE), 0.0))


def office(rng: Rng) -> tuple[Bools, float]:
    """Walls around rooms on both sides of a corridor, every room with a door."""
    walls = np.zeros((SIZE, SIZE), bool)
    left, top, right, bottom = 8, 10, SIZE - 8, SIZE - 10
    north, south = SIZE // 2 - 6, SIZE // 2 + 6  # the corridor's sides
    walls[top:bottom, left:right] = True
    walls[top + 3 : bottom - 3, left + 3 : right - 3] = False
    _rooms(walls[top + 3 : north, left + 3 : right - 3], rng)
    _rooms(walls[south : bottom - 3, left + 3 : right - 3][::-1], rng)
    walls[north + 1 : south - 1, left:right] = False
    return walls, _WALL


def _rooms(walls: Bools, rng: Rng) -> None:
    """Rooms side by side, their doors towards the corridor along the last row; behind some of them is another one."""
    height, width = walls.shape
    walls[-2:] = True
    ends = [0, *_cuts(rng, width, 22, 40), width]
    for a, b in pairwise(ends):
        walls[:, b : b + 2] = True
        _door(walls[-2:], rng, a, b)
        if rng.random() < 0.5:
            behind = height // 2 + int(rng.integers(-6, 7))
            walls[behind : behind + 2, a:b] = True
            _door(walls[behind : behind + 2], rng, a, b)


def _door(wall: Bools, rng: Rng, a: int, b: int) -> None:
    at = int(rng.integers(a + 4, b - 9))
    wall[:, at : at + 5] = False


def _cuts(rng: Rng, length: int, least: int, most: int) -> list[int]:
    """Where a line is cut into pieces of `least` to `most`, the last one maybe longer."""
    cuts = np.cumsum(rng.integers(least, most, length // least))
    return [int(at) for at in cuts if at < length - least]


def town(rng: Rng) -> tuple[Bools, float]:
    """Blocks around scattered points, streets along the lines that are equally far from two; some have a courtyard."""
    y, x = np.indices((SIZE, SIZE))
    rows, columns = (np.indices((5, 5)).reshape(2, -1) * SIZE / 4 + rng.uniform(-15, 15, (2, 25)))[:, :, None, None]
    square = (y - rows) ** 2 + (x - columns) ** 2
    block = square.argmin(0)
    own = np.take_along_axis(square, block[None], 0)
    between = 2 * np.hypot(rows - rows[block, 0, 0], columns - columns[block, 0, 0])
    beside = np.divide(square - own, between, out=np.full(square.shape, np.inf), where=between > 0).min(0)
    yards = np.isin(block, rng.permutation(25)[:9])
    return (beside > 4) & ~(yards & (beside > 13)), _FACADE


def campus(rng: Rng) -> tuple[Bools, float]:
    """Halls of one and two wings, turned every way, on open ground."""
    y, x = np.indices((SIZE, SIZE))
    building = np.zeros((SIZE, SIZE), bool)
    for _ in range(200):
        cy, cx, turn = *rng.uniform(14, SIZE - 14, 2), rng.uniform(0, np.pi / 2)
        long, wide = rng.uniform(12, 22), rng.uniform(6, 10)
        u = (x - cx) * np.cos(turn) + (y - cy) * np.sin(turn)
        v = (y - cy) * np.cos(turn) - (x - cx) * np.sin(turn)
        hall = (np.abs(u) < long) & (np.abs(v) < wide)
        if rng.random() < 0.5:
            hall |= (np.abs(u - long + wide) < wide) & (np.abs(v - wide) < 2 * wide)
        if building.any() and to_nearest(building)[hall].min(initial=99) < 11:
            continue
        building |= hall
    return building, _FACADE


FLOORS: dict[str, Callable[[Rng], tuple[Bools, float]]] = {"office": office, "town": town, "campus": campus}
