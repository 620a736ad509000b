"""What the scenes are furnished with: every prop is a list of parts under one label."""

from itertools import pairwise

import numpy as np

from karat.demo.render import Part
from karat.demo.shapes import Ball, Floats, Prism, Rod, box, disc
from karat.demo.textures import Colour, Paint, between, facade, flat, lamps, leaves, tiles, two_tone


def turned(yaw: float = 0.0, pitch: float = 0.0) -> Floats:
    """Rotation (3, 3): ``pitch`` tips up to forward about x, then ``yaw`` swings forward to the right about y."""
    cp, sp, cy, sy = np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    tip = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    swing = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    return np.asarray(swing @ tip, np.float32)


def point(x: float, y: float, z: float) -> Floats:
    return np.array([x, y, z], np.float32)


LYING = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]], np.float32)
"""Turns the x axis up, so that a disc lies flat."""


def houses(rng: np.random.Generator) -> list[Part]:
    """Rows of houses and trees on both sides, in the background."""
    walls = [(196, 142, 112), (214, 196, 160), (158, 168, 182), (190, 112, 96), (206, 206, 198)]
    parts = []
    for i in range(5):
        for side in (-1, 1):
            height, z = float(rng.uniform(4.5, 8.5)), 13.0 + 9.5 * i + side
            wall = walls[int(rng.integers(len(walls)))]
            house = Prism(((-4, 0), (4, 0), (4, height), (-4, height)), 3)
            x = (-10.2 if side < 0 else 11.6) + float(rng.uniform(-0.4, 0.4))
            parts.append(Part(house, facade(wall), point(x, 0, z), turned(), gloss=0))
            roof = Prism(((-4.3, 0), (4.3, 0), (0, 1.9)), 3.3)
            parts.append(Part(roof, tiles, point(x, height, z), turned(), gloss=0))
            parts += _tree(rng, point(-5.3 if side < 0 else 7.4, 0, z - 4.4))
    return parts


def _tree(rng: np.random.Generator, at: Floats) -> list[Part]:
    """A trunk and a few leafy balls."""
    parts = [Part(Rod(2.4, 0.14), flat((104, 78, 56)), at, turned(), gloss=0)]
    for _ in range(3):
        offset = rng.uniform((-0.5, 2.3, -0.5), (0.5, 3.4, 0.5)).astype(np.float32)
        parts.append(Part(Ball(float(rng.uniform(0.7, 1.05))), leaves, at + offset, turned(), gloss=0))
    return parts


def car(colour: Colour, at: Floats, yaw: float, label: int) -> list[Part]:
    """A hatchback that faces +z when ``yaw`` is 0."""
    turn = turned(yaw)
    body = Prism(((-2.05, 0.28), (2.05, 0.28), (2.1, 0.62), (1.95, 0.8), (1.0, 0.95), (-2.05, 0.98)), 0.86)
    cabin = Prism(((-1.95, 0.94), (1.05, 0.94), (0.3, 1.46), (-1.55, 1.46)), 0.76)
    glazed = two_tone(colour, (44, 58, 76), lambda p: between(p[1], 1.0, 1.38) * (np.abs(p[2] + 0.45) > 0.06))
    return [
        Part(body, lamps(colour), at, turn, label, 0.35),
        Part(cabin, glazed, at, turn, label, 0.35),
        *_wheels(at, turn, 0.8, 1.28, label),
    ]


def van(colour: Colour, at: Floats, label: int) -> list[Part]:
    """A parked box van that faces +z."""
    turn = turned()
    body = Prism(((-2.4, 0.32), (2.3, 0.32), (2.4, 0.9), (1.7, 1.2), (1.2, 2.05), (-2.4, 2.1)), 0.92)
    return [Part(body, lamps(colour), at, turn, label, 0.2), *_wheels(at, turn, 0.86, 1.5, label)]


def _wheels(at: Floats, turn: Floats, x: float, z: float, label: int) -> list[Part]:
    """Four wheels with light hubs."""
    paint = two_tone((34, 34, 36), (176, 178, 182), lambda p: (p[1] ** 2 + p[2] ** 2 < 0.036).astype(np.float32))
    wheel = disc(0.33, 0.11, 16)
    return [Part(wheel, paint, turn @ point(i * x, 0.33, k * z) + at, turn, label, 0) for i in (-1, 1) for k in (-1, 1)]


def walker(at: Floats, s: float, label: int) -> list[Part]:
    """A person who walks to the right, two strides per clip."""
    swing = 0.55 * float(np.sin(4 * np.pi * s))
    coat = two_tone((230, 226, 214), (62, 74, 120), lambda p: (p[1] % 0.14 < 0.07).astype(np.float32))
    trousers, skin = flat((54, 58, 70)), flat((224, 172, 138))
    hip, shoulder = at + point(0, 0.88, 0), at + point(0, 1.42, 0)
    parts = [
        Part(Rod(0.55, 0.19), coat, hip, turned(), label),
        Part(Ball(0.19), coat, shoulder, turned(), label),
        Part(Ball(0.19), trousers, hip, turned(), label),
        Part(Ball(0.13), skin, at + point(0.02, 1.74, 0), turned(), label),
        Part(Ball(0.135), flat((70, 46, 34)), at + point(-0.015, 1.78, 0), turned(), label),
    ]
    for side in (-1, 1):
        leg = hip + point(side * swing * 0.85, -0.86, 0.09 * side)
        arm = shoulder + point(-side * swing * 0.6, -0.5, 0.22 * side)
        parts += _limb(hip + point(0, 0, 0.09 * side), leg, 0.085, trousers, label)
        parts += _limb(shoulder + point(0, 0, 0.2 * side), arm, 0.06, coat, label)
    return parts


def _limb(start: Floats, end: Floats, radius: float, paint: Paint, label: int, gloss: float = 0.1) -> list[Part]:
    """A capsule from ``start`` to ``end`` (3,)."""
    along = end - start
    length = float(np.linalg.norm(along))
    y = along / length
    x = np.cross(y, point(0.3, 0.2, 1))
    x /= np.linalg.norm(x)
    turn = np.stack([x, y, np.cross(x, y)], 1).astype(np.float32)
    ends = [Part(Ball(radius), paint, at, turn, label, gloss) for at in (start, end)]
    return [Part(Rod(length, radius), paint, start, turn, label, gloss), *ends]


def rolling(colour: Colour, radius: float, start: Floats, end: Floats, s: float, label: int) -> Part:
    """A striped ball that has rolled a share ``s`` of the way."""
    path = end - start
    length = float(np.linalg.norm(path))
    yaw = float(np.arctan2(path[0], path[2]))
    band = 0.28 * radius, 0.62 * radius
    stripes = two_tone(colour, (244, 240, 228), lambda p: between(np.abs(p[0] + 0.6 * p[1]), *band))
    turn = turned(yaw) @ turned(pitch=s * length / radius)
    return Part(Ball(radius), stripes, start + path * np.float32(s) + point(0, radius, 0), turn, label, 0.5)


def mug(colour: Colour, at: Floats, label: int) -> list[Part]:
    """A dotted mug with a handle, closed by a dark lid."""
    height, radius = 0.21, 0.085

    def dots(p: Floats) -> Floats:
        u, v = np.arctan2(p[2], p[0]) * 10 / (2 * np.pi), p[1] / 0.052
        u = u + 0.5 * (np.floor(v) % 2)
        return np.asarray((u % 1 - 0.5) ** 2 + (v % 1 - 0.5) ** 2 < 0.075, np.float32)

    glaze = two_tone(colour, (246, 242, 230), dots)
    lid = Part(disc(radius, 0.004, 32), flat((58, 38, 28)), at + point(0, height, 0), LYING, label, 0)
    rim = flat(colour)
    grip = [point(x, y, 0) + at for x, y in ((0.08, 0.17), (0.13, 0.16), (0.14, 0.1), (0.12, 0.05), (0.08, 0.04))]
    handle = [part for p, q in pairwise(grip) for part in _limb(p, q, 0.013, rim, label)]
    return [Part(Rod(height, radius), glaze, at, turned(), label, 0.4), lid, *handle]


def arm(foot: Floats, hand: Floats, yaw: float, label: int) -> list[Part]:
    """A two-link arm on a round base at ``foot``, gripper at ``hand`` (3,), elbow up."""
    shoulder, link = foot + point(0, 0.5, 0), 0.86
    span = hand - shoulder
    length = float(np.linalg.norm(span))
    rise = np.arctan2(span[1], np.hypot(span[0], span[2])) + np.arccos(min(length / (2 * link), 1.0))
    turn = turned(yaw)
    elbow = shoulder + turn @ point(0, link * float(np.sin(rise)), link * float(np.cos(rise)))
    shell, joint, steel = flat((238, 238, 232)), flat((232, 120, 32)), flat((86, 92, 102))
    finger = box(0.03, 0.2, 0.07)
    return [
        Part(disc(0.3, 0.05, 32), steel, foot + point(0, 0.05, 0), LYING, label),
        Part(Rod(0.36, 0.17), shell, foot + point(0, 0.1, 0), turn, label),
        Part(disc(0.17, 0.01, 32), steel, foot + point(0, 0.46, 0), LYING, label),
        *_limb(shoulder, elbow, 0.1, shell, label, 0.3),
        *_limb(elbow, hand, 0.075, shell, label, 0.3),
        Part(disc(0.15, 0.14, 28), joint, shoulder, turn, label, 0.3),
        Part(disc(0.125, 0.12, 28), joint, elbow, turn, label, 0.3),
        Part(disc(0.09, 0.09, 28), joint, hand, turn, label, 0.3),
        Part(box(0.28, 0.05, 0.1), steel, hand - point(0, 0.15, 0), turn, label),
        *(Part(finger, steel, hand + turn @ point(x, -0.32, 0), turn, label) for x in (-0.117, 0.117)),
    ]


def drum(colour: Colour, at: Floats, label: int) -> list[Part]:
    """A standing barrel with pale hoops."""
    hoops = two_tone(colour, (226, 226, 218), lambda p: between(p[1] % 0.21, 0.07, 0.11))
    lid = Part(disc(0.24, 0.005, 32), flat(colour), at + point(0, 0.63, 0), LYING, label)
    return [Part(Rod(0.63, 0.24), hoops, at, turned(), label, 0.25), lid]
