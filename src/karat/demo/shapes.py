"""Shapes a ray can hit, each in its own object space."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class Shape(Protocol):
    def extent(self) -> tuple[Floats, Floats]:
        """Lowest and highest corner, (3,) each."""

    def outline(self) -> Floats:
        """Points (3, M) whose convex hull is the shape, for its shadow."""

    def depth(self, eye: Floats, rays: Floats) -> Floats:
        """Ray parameter (N,) of the first hit from ``eye`` (3,) along ``rays`` (3, N); inf on a miss."""

    def normal(self, points: Floats) -> Floats:
        """Unit normals (3, K) at surface points (3, K)."""


@dataclass(frozen=True)
class Ball:
    """A sphere about the origin."""

    radius: float

    def extent(self) -> tuple[Floats, Floats]:
        return np.full(3, -self.radius, np.float32), np.full(3, self.radius, np.float32)

    def outline(self) -> Floats:
        i = np.arange(60) + 0.5
        y, turn = 1 - i / 30, i * np.pi * (3 - 5**0.5)
        ring = np.sqrt(1 - y * y)
        return (self.radius * np.stack([ring * np.cos(turn), y, ring * np.sin(turn)])).astype(np.float32)

    def depth(self, eye: Floats, rays: Floats) -> Floats:
        return _nearest_root(dot(rays, rays), eye @ rays, float(eye @ eye) - self.radius**2)

    def normal(self, points: Floats) -> Floats:
        return points / np.float32(self.radius)


@dataclass(frozen=True)
class Rod:
    """An open tube around the y axis from y = 0 to ``length``; balls close its ends."""

    length: float
    radius: float

    def extent(self) -> tuple[Floats, Floats]:
        r = self.radius
        return np.array([-r, 0, -r], np.float32), np.array([r, self.length, r], np.float32)

    def outline(self) -> Floats:
        turn = np.arange(24) * (np.pi / 12)
        x, z = self.radius * np.cos(turn), self.radius * np.sin(turn)
        ends = [np.stack([x, np.full_like(x, y), z]) for y in (0.0, self.length)]
        return np.concatenate(ends, 1).astype(np.float32)

    def depth(self, eye: Floats, rays: Floats) -> Floats:
        flat, start = rays[::2], eye[::2]
        t = _nearest_root(dot(flat, flat), start @ flat, float(start @ start) - self.radius**2)
        with np.errstate(invalid="ignore"):
            y = eye[1] + t * rays[1]
        return np.where((y >= 0) & (y <= self.length), t, np.float32(np.inf))

    def normal(self, points: Floats) -> Floats:
        return points * np.array([[1], [0], [1]], np.float32) / np.float32(self.radius)


@dataclass(frozen=True)
class Prism:
    """A convex (z, y) profile, in counter-clockwise order, swept along x from -``half`` to ``half``."""

    profile: tuple[tuple[float, float], ...]
    half: float

    @cached_property
    def planes(self) -> tuple[Floats, Floats]:
        """Outward normals (F, 3) and offsets (F,) of the faces."""
        here = np.array(self.profile)
        edge = np.roll(here, -1, 0) - here
        out = np.stack([edge[:, 1], -edge[:, 0]], 1) / np.linalg.norm(edge, axis=1, keepdims=True)
        normals = np.zeros((len(here) + 2, 3))
        normals[:-2, 2], normals[:-2, 1] = out.T
        normals[-2:, 0] = -1, 1
        offsets = np.append((out * here).sum(1), [self.half, self.half])
        return normals.astype(np.float32), offsets.astype(np.float32)

    def extent(self) -> tuple[Floats, Floats]:
        points = self.outline()
        return points.min(1), points.max(1)

    def outline(self) -> Floats:
        corners = [(x, y, z) for x in (-self.half, self.half) for z, y in self.profile]
        return np.array(corners, np.float32).T

    def depth(self, eye: Floats, rays: Floats) -> Floats:
        normals, offsets = self.planes
        room = offsets - normals @ eye
        outside, inside = room < 0, room >= 0
        with np.errstate(divide="ignore", invalid="ignore"):
            front, back = normals[outside] @ rays, normals[inside] @ rays
            enter = np.where(front < 0, room[outside, None] / front, np.float32(np.inf)).max(0, initial=0)
            leave = np.where(back > 0, room[inside, None] / back, np.float32(np.inf)).min(0, initial=np.inf)
        return np.where(enter < leave, enter, np.float32(np.inf))

    def normal(self, points: Floats) -> Floats:
        normals, offsets = self.planes
        return np.ascontiguousarray(normals[(normals @ points - offsets[:, None]).argmax(0)].T)


def box(x: float, y: float, z: float) -> Prism:
    """A box of the given size standing on the origin."""
    return Prism(((-z / 2, 0), (z / 2, 0), (z / 2, y), (-z / 2, y)), x / 2)


def disc(radius: float, half: float, sides: int) -> Prism:
    """A wheel about the x axis."""
    turns = [2 * np.pi * i / sides for i in range(sides)]
    return Prism(tuple((radius * float(np.cos(a)), radius * float(np.sin(a))) for a in turns), half)


def dot(a: Floats, b: Floats) -> Floats:
    """Column-wise dot product of two (D, N) bundles."""
    return np.asarray(np.einsum("dn,dn->n", a, b), np.float32)


def unit(vectors: Floats) -> Floats:
    """Vectors (D, N) at length 1."""
    return np.asarray(vectors / np.sqrt(dot(vectors, vectors)), np.float32)


def _nearest_root(a: Floats, b: Floats, c: float) -> Floats:
    """The smaller root (N,) of ``a t² + 2 b t + c`` in front of the eye, inf where there is none."""
    with np.errstate(invalid="ignore"):
        t = (-b - np.sqrt(b * b - a * np.float32(c))) / a
    return np.where(t > 0, t, np.float32(np.inf))
