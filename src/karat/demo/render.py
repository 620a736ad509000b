"""A ray caster: painted parts on a ground plane, in front of a wall, under a sun.

World axes: x right, y up, z forward, metres; the ground is y = 0. A camera ray has length 1 along the optical axis,
so the ray parameter of a hit *is* its depth. Bundles of vectors are float32 arrays of shape (3, N) or (3, H, W).
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import cv2
import numpy as np
from numpy.typing import NDArray

from karat.demo.shapes import Floats, Shape, dot, unit
from karat.demo.textures import Paint, Sheet


@dataclass(frozen=True)
class Part:
    """A shape placed by ``turn`` (3, 3) and ``at`` (3,): world = turn @ point + at."""

    shape: Shape
    paint: Paint
    at: Floats
    turn: Floats
    label: int = 0
    gloss: float = 0.1

    @cached_property
    def corners(self) -> Floats:
        """World corners (3, 8) of a box around the shape."""
        low, high = self.shape.extent()
        return self._world(np.array(list(product(*zip(low, high, strict=True))), np.float32).T)

    @cached_property
    def outline(self) -> Floats:
        """World points (3, M) whose convex hull is the shape."""
        return self._world(self.shape.outline())

    def _world(self, points: Floats) -> Floats:
        return self.turn @ points + self.at[:, None]


@dataclass(frozen=True)
class Camera:
    """A pinhole at ``eye`` (3,) whose axes right, up, forward are the columns of ``turn`` (3, 3)."""

    eye: Floats
    turn: Floats
    focal: float
    """Focal length in image widths."""

    def axes(self, height: int, width: int) -> tuple[Floats, Floats]:
        """Where the pixel centres lie on the image plane at depth 1: rightwards (W,) and upwards (H,)."""
        scale = np.float32(1 / (self.focal * width))
        u = (np.arange(width, dtype=np.float32) + np.float32(0.5 - width / 2)) * scale
        v = (np.float32(height / 2 - 0.5) - np.arange(height, dtype=np.float32)) * scale
        return u, v

    def project(self, points: Floats, height: int, width: int) -> Floats:
        """Pixel positions (2, M') of those world points (3, M) that lie in front of the camera."""
        x, y, z = self.turn.T @ (points - self.eye[:, None])
        seen = z > 0.05
        scale = self.focal * width / z[seen]
        return np.stack([width / 2 + scale * x[seen], height / 2 - scale * y[seen]])

    def windows(self, hulls: Floats, height: int, width: int) -> list[tuple[slice, slice]]:
        """Rows and columns that enclose the projections of the hulls of world points (P, 3, M)."""
        x, y, z = np.moveaxis(self.turn.T @ (hulls - self.eye[:, None]), 1, 0)
        with np.errstate(divide="ignore"):
            scale = self.focal * width / z
        across, down = width / 2 + scale * x, height / 2 - scale * y
        ends = np.stack([down.min(1) - 1, down.max(1) + 2, across.min(1) - 1, across.max(1) + 2], 1)
        ends[(z <= 0.05).any(1)] = 0, height, 0, width
        ends = ends.clip(0, [height, height, width, width]).astype(int)
        return [(slice(top, bottom), slice(left, right)) for top, bottom, left, right in ends.tolist()]


@dataclass(frozen=True)
class World:
    """Everything one frame shows."""

    camera: Camera
    parts: list[Part]
    ground: Sheet
    wall: Sheet
    distance: float
    """The z of the wall."""
    sun: Floats
    """Vector (3,) of length 1 towards the light."""


WALL, GROUND = -2, -1


def trace(world: World, height: int, width: int) -> tuple[Floats, NDArray[np.int16]]:
    """Depth (H, W) and owner (H, W) of the first hit per pixel centre: an index into the parts, WALL or GROUND."""
    camera = world.camera
    eye, (u, v) = camera.eye, camera.axes(height, width)
    _, down, ahead = _bundle(camera.turn, u, v)
    with np.errstate(divide="ignore"):
        ground = np.where(down < 0, -eye[1] / down, np.float32(np.inf))
    depth = (np.float32(world.distance) - eye[2]) / ahead
    owner = np.where(ground < depth, GROUND, WALL).astype(np.int16)
    np.minimum(depth, ground, out=depth)
    windows = camera.windows(np.stack([part.corners for part in world.parts]), height, width)
    for index, (part, (rows, columns)) in enumerate(zip(world.parts, windows, strict=True)):
        near = depth[rows, columns]
        if near.size:
            rays = _bundle(part.turn.T @ camera.turn, u[columns], v[rows]).reshape(3, -1)
            t = part.shape.depth(part.turn.T @ (eye - part.at), rays).reshape(near.shape)
            hit = t < near
            np.copyto(near, t, where=hit)
            np.copyto(owner[rows, columns], np.int16(index), where=hit)
    return depth, owner


def colour(world: World, height: int, width: int) -> Floats:
    """The lit picture (H, W, 3), 0..255, one ray per pixel centre; the size must be even."""
    camera = world.camera
    eye, (u, v) = camera.eye, camera.axes(height, width)
    depth, owner = trace(world, height, width)
    picture = np.empty((height, width, 3), np.float32)
    for plane, sheet, axis in ((WALL, world.wall, 1), (GROUND, world.ground, 2)):
        mine = owner == plane
        seen = np.flatnonzero(mine.any(1))
        if not seen.size:
            continue
        rows = slice(int(seen[0]), int(seen[-1]) + 1)
        at_x, at_v = (eye[i] + depth[rows] * _bundle(camera.turn[i, None], u, v[rows])[0] for i in (0, axis))
        painted = sheet.sample(at_x, at_v).astype(np.float32)
        if plane == GROUND:
            painted *= _sunlight(world, height, width)[rows]
        cv2.copyTo(painted, mine[rows].astype(np.uint8), picture[rows])
    flat, flat_depth, colours = owner.ravel(), depth.ravel(), picture.reshape(-1, 3)
    visible = np.flatnonzero(flat >= 0)
    order = visible[np.argsort(flat[visible], kind="stable")]
    starts = np.searchsorted(flat[order], np.arange(len(world.parts) + 1))
    for part, pixels in zip(world.parts, np.split(order, starts[1:-1]), strict=True):
        if not pixels.size:
            continue
        y, x = np.divmod(pixels, width)
        turn = part.turn.T @ camera.turn
        rays = turn[:, :1] * u[x] + turn[:, 1:2] * v[y] + turn[:, 2:]
        colours[pixels] = _shade(part, eye, rays, flat_depth[pixels], world.sun).T
    return picture


def _bundle(turn: Floats, u: Floats, v: Floats) -> Floats:
    """Rays (3, H, W) of the image-plane points ``u`` (W,) by ``v`` (H,), turned by (3, 3)."""
    columns, rows = turn[:, :1] * u, turn[:, 1:2] * v + turn[:, 2:]
    return columns[:, None, :] + rows[:, :, None]


def _sunlight(world: World, height: int, width: int) -> Floats:
    """What the shadows of the parts leave of the light on the ground, at most 1, (H, W, 3) with equal channels."""
    mask = np.zeros((height // 2, width // 2), np.uint8)
    for part in world.parts:
        on_ground = part.outline - world.sun[:, None] * (part.outline[1] / world.sun[1])
        seen = world.camera.project(on_ground, *mask.shape)
        if seen.shape[1] > 2:
            hull = cv2.convexHull(seen.T.copy()).clip(-4 * width, 4 * width)
            cv2.fillConvexPoly(mask, np.round(hull * 16).astype(np.int32), 255, cv2.LINE_AA, 4)
    soft = cv2.GaussianBlur(mask, (0, 0), width / 440)
    light = 1 - np.float32(0.55 / 255) * np.asarray(cv2.resize(soft, (width, height)), np.float32)
    return np.asarray(cv2.cvtColor(light, cv2.COLOR_GRAY2RGB), np.float32)


def _shade(part: Part, eye: Floats, rays: Floats, t: Floats, sun: Floats) -> Floats:
    """Colours (3, K) of the surface points at ``t`` (K,) along object-space ``rays`` (3, K); eye and sun in world."""
    points = (part.turn.T @ (eye - part.at))[:, None] + t * rays
    sun = part.turn.T @ sun
    normal = part.shape.normal(points)
    lit = part.paint(points) * (0.48 + 0.14 * (part.turn[1] @ normal) + 0.6 * np.maximum(sun @ normal, 0))
    if part.gloss:
        halfway = unit(sun[:, None] - unit(rays))
        lit += part.gloss * 255 * np.maximum(dot(normal, halfway), 0) ** 32
    return np.asarray(lit, np.float32)
