"""Walks over a floor: somebody goes from place to place and measures on the way."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from karat.demo.floors import SIZE, Bools, Doubles, Rng
from karat.kernels.distance import to_nearest

Place = tuple[int, int]
STOPS, STEP, REACH = 8, 3, 0.5 * SIZE
_TURNS = ((0, 1), (1, 0), (1, 1), (1, -1))


def observed(ground: Bools, rng: Rng) -> Bools:
    """Every third pixel of a walk (H, W) between some places that lie in one part of the floor."""
    ground = connected(ground)
    home = anywhere(ground, rng)
    near = ground & (away(home) < REACH)
    stops = [home, *(anywhere(near, rng) for _ in range(STOPS))]
    ways = Ways(ground)
    seen = np.zeros(ground.shape, bool)
    for start, goal in pairwise(stops):
        seen[tuple(ways.between(start, goal)[::STEP].T)] = True
    return seen


class Ways:
    """The easiest ways over open ground; close to walls is hard to walk."""

    def __init__(self, ground: Bools) -> None:
        number = np.arange(ground.size).reshape(ground.shape)
        effort = 1 + 8 / to_nearest(~np.pad(ground, 1))[1:-1, 1:-1].clip(1)
        parts = []
        for down, across in _TURNS:
            a = np.s_[: SIZE - down, max(0, -across) : SIZE - max(0, across)]
            b = np.s_[down:, max(0, across) : SIZE + min(0, across)]
            both = ground[a] & ground[b]
            parts.append((number[a][both], number[b][both], (effort[a] + effort[b])[both] * np.hypot(down, across)))
        one, other, cost = map(np.concatenate, zip(*parts, strict=True))
        self._graph = coo_array((cost, (one, other)), shape=(ground.size, ground.size)).tocsr()
        self._shape = ground.shape

    def between(self, start: Place, goal: Place) -> NDArray[np.intp]:
        """The pixels (n, 2) from one place to another."""
        first, last = np.ravel_multi_index(np.transpose([start, goal]), self._shape).tolist()
        _, before = dijkstra(self._graph, directed=False, indices=first, return_predecessors=True)
        path = [last]
        while path[-1] != first:
            path.append(int(before[path[-1]]))
        return np.stack(np.unravel_index(path[::-1], self._shape), axis=1)


def connected(mask: Bools) -> Bools:
    """The largest part of a mask that hangs together."""
    parts, _ = label(mask)
    return np.asarray(parts == np.bincount(parts[mask]).argmax())


def anywhere(mask: Bools, rng: Rng) -> Place:
    """Some pixel of a mask."""
    places = np.argwhere(mask)
    row, column = places[rng.integers(len(places))].tolist()
    return row, column


def away(place: Place) -> Doubles:
    """The distance (H, W) from a place, in metres."""
    y, x = np.indices((SIZE, SIZE)) - np.array(place)[:, None, None]
    return np.asarray(np.hypot(y, x))
