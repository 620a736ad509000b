"""The sigmas of repeated labels, label by label: every pairing is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

Point = tuple[float, float]
Pose = Sequence[Point | None]
Given = tuple[Pose, float | None]  # a pose, and its area where one was given


def box(pose: Pose) -> float | None:
    """The area of the box around what is seen."""
    seen = [point for point in pose if point is not None]
    return math.prod(max(axis) - min(axis) for axis in zip(*seen, strict=True)) if seen else None


def area(one: Given, scale: str) -> float | None:
    """As given, else of the box."""
    return one[1] if scale == "given" and one[1] is not None else box(one[0])


def apart(a: Pose, b: Pose) -> list[float | None]:
    """Distances of the nodes that both show."""
    return [None if p is None or q is None else math.dist(p, q) for p, q in zip(a, b, strict=True)]


def pairings(first: Sequence[int], second: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """All one-to-one ones, from none to all."""
    if not first:
        yield []
        return
    head, *rest = first
    yield from pairings(rest, second)
    for partner in second:
        for others in pairings(rest, [one for one in second if one != partner]):
            yield [(head, partner), *others]


def by_node(
    first: Mapping[int, Sequence[Given]],
    second: Mapping[int, Sequence[Given]],
    nodes: int,
    scale: str = "box",
    min_area: float = 1.0,
    gate: float = 0.5,
) -> list[float]:
    """{frame: labels} of two people -> the sigma of each node."""
    relative: list[list[float]] = [[] for _ in range(nodes)]
    for frame, own in first.items():
        other = second.get(frame, [])
        mean: dict[tuple[int, int], float] = {}
        size: dict[tuple[int, int], float] = {}
        for i, a in enumerate(own):
            for j, b in enumerate(other):
                known = [d for d in apart(a[0], b[0]) if d is not None]
                areas = area(a, scale), area(b, scale)
                if not known or areas[0] is None or areas[1] is None:
                    continue
                both = (areas[0] + areas[1]) / 2
                if both >= min_area and fmean(known) <= gate * math.sqrt(both):
                    mean[i, j], size[i, j] = fmean(known), both
        ways = [way for way in pairings(range(len(own)), range(len(other))) if all(pair in mean for pair in way)]
        best = min(ways, key=lambda way: (-len(way), math.fsum(mean[pair] for pair in way)))
        for i, j in best:
            for k, d in enumerate(apart(own[i][0], other[j][0])):
                if d is not None:
                    relative[k].append(d * d / size[i, j])
    return [math.sqrt(fmean(values) / 2) if values else math.nan for values in relative]
