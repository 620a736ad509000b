"""Ray-cast demo scenes with exact depth, instance labels and boxes.

World axes: x right, y up, z forward, metres; the ground is y = 0. A camera ray has length 1 along the optical axis,
so the ray parameter of a hit *is* its depth. Bundles of vectors are float32 arrays of shape (3, N) or (3, H, W).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Paint = Callable[[Floats], Floats]
"""Object-space points (3, K) to albedo 0..255, (3, K) or (3, 1)."""

PALETTE: dict[str, tuple[int, int, int]] = {
    "red": (206, 44, 40),
    "blue": (38, 92, 200),
    "yellow": (240, 190, 36),
    "green": (46, 150, 78),
    "orange": (238, 124, 34),
    "purple": (132, 72, 178),
    "white": (232, 232, 226),
}


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


# Shapes, in object space.


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
        return _nearest_root(_dot(rays, rays), eye @ rays, float(eye @ eye) - self.radius**2)

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
        t = _nearest_root(_dot(flat, flat), start @ flat, float(start @ start) - self.radius**2)
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


def _dot(a: Floats, b: Floats) -> Floats:
    """Column-wise dot product of two (D, N) bundles."""
    return np.asarray(np.einsum("dn,dn->n", a, b), np.float32)


def _unit(vectors: Floats) -> Floats:
    """Vectors (D, N) at length 1."""
    return np.asarray(vectors / np.sqrt(_dot(vectors, vectors)), np.float32)


def _nearest_root(a: Floats, b: Floats, c: float) -> Floats:
    """The smaller root (N,) of ``a t² + 2 b t + c`` in front of the eye, inf where there is none."""
    with np.errstate(invalid="ignore"):
        t = (-b - np.sqrt(b * b - a * np.float32(c))) / a
    return np.where(t > 0, t, np.float32(np.inf))


def _box(x: float, y: float, z: float) -> Prism:
    """A box of the given size standing on the origin."""
    return Prism(((-z / 2, 0), (z / 2, 0), (z / 2, y), (-z / 2, y)), x / 2)


def _disc(radius: float, half: float, sides: int) -> Prism:
    """A wheel about the x axis."""
    turns = [2 * np.pi * i / sides for i in range(sides)]
    return Prism(tuple((radius * float(np.cos(a)), radius * float(np.sin(a))) for a in turns), half)


# A world: painted parts on a ground plane, in front of a wall, under a sun.


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
class Sheet:
    """A painted plane: ``image`` (h, w, 3), ``scale`` pixels per metre, its corner at (``u0``, ``v0``) metres."""

    image: Bytes
    scale: float
    u0: float
    v0: float

    def sample(self, u: Floats, v: Floats) -> Bytes:
        """Colours (H, W, 3) at metric coordinates (H, W)."""
        x, y = (u - np.float32(self.u0)) * np.float32(self.scale), (v - np.float32(self.v0)) * np.float32(self.scale)
        return np.asarray(cv2.remap(self.image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT), np.uint8)


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

    def window(self, points: Floats, height: int, width: int) -> tuple[slice, slice]:
        """Rows and columns that enclose the projection of the hull of world points (3, M)."""
        pixels = self.project(points, height, width)
        if pixels.shape[1] < points.shape[1]:
            return slice(0, height), slice(0, width)
        (x0, y0), (x1, y1) = pixels.min(1) - 1, pixels.max(1) + 2
        return (
            slice(min(max(int(y0), 0), height), min(max(int(y1), 0), height)),
            slice(min(max(int(x0), 0), width), min(max(int(x1), 0), width)),
        )


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


def _trace(world: World, height: int, width: int) -> tuple[Floats, NDArray[np.int16]]:
    """Depth (H, W) and owner (H, W) of the first hit per pixel centre: an index into the parts, WALL or GROUND."""
    camera = world.camera
    eye, (u, v) = camera.eye, camera.axes(height, width)
    _, down, ahead = _bundle(camera.turn, u, v)
    with np.errstate(divide="ignore"):
        ground = np.where(down < 0, -eye[1] / down, np.float32(np.inf))
    depth = (np.float32(world.distance) - eye[2]) / ahead
    owner = np.where(ground < depth, GROUND, WALL).astype(np.int16)
    np.minimum(depth, ground, out=depth)
    for index, part in enumerate(world.parts):
        rows, columns = camera.window(part.corners, height, width)
        near = depth[rows, columns]
        if near.size:
            rays = _bundle(part.turn.T @ camera.turn, u[columns], v[rows]).reshape(3, -1)
            t = part.shape.depth(part.turn.T @ (eye - part.at), rays).reshape(near.shape)
            hit = t < near
            np.copyto(near, t, where=hit)
            np.copyto(owner[rows, columns], np.int16(index), where=hit)
    return depth, owner


def _bundle(turn: Floats, u: Floats, v: Floats) -> Floats:
    """Rays (3, H, W) of the image-plane points ``u`` (W,) by ``v`` (H,), turned by (3, 3)."""
    columns, rows = turn[:, :1] * u, turn[:, 1:2] * v + turn[:, 2:]
    return columns[:, None, :] + rows[:, :, None]


def _colour(world: World, height: int, width: int) -> Floats:
    """The lit picture (H, W, 3), 0..255, one ray per pixel centre; the size must be even."""
    camera = world.camera
    eye, (u, v) = camera.eye, camera.axes(height, width)
    depth, owner = _trace(world, height, width)
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
        y, x = np.divmod(pixels, width)
        turn = part.turn.T @ camera.turn
        rays = turn[:, :1] * u[x] + turn[:, 1:2] * v[y] + turn[:, 2:]
        colours[pixels] = _shade(part, eye, rays, flat_depth[pixels], world.sun).T
    return picture


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
        halfway = _unit(sun[:, None] - _unit(rays))
        lit += part.gloss * 255 * np.maximum(_dot(normal, halfway), 0) ** 32
    return np.asarray(lit, np.float32)


# Paints and turns.


def _turned(yaw: float = 0.0, pitch: float = 0.0) -> Floats:
    """Rotation (3, 3): ``pitch`` tips up to forward about x, then ``yaw`` swings forward to the right about y."""
    cp, sp, cy, sy = np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    tip = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    swing = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    return np.asarray(swing @ tip, np.float32)


def _point(x: float, y: float, z: float) -> Floats:
    return np.array([x, y, z], np.float32)


def _flat(colour: tuple[int, int, int]) -> Paint:
    """One colour everywhere."""
    albedo = np.array(colour, np.float32)[:, None]
    return lambda _: albedo


def _two_tone(first: tuple[int, int, int], second: tuple[int, int, int], where: Callable[[Floats], Floats]) -> Paint:
    """``second`` where ``where`` (K,) is 1, ``first`` where it is 0."""
    a, b = np.array(first, np.float32)[:, None], np.array(second, np.float32)[:, None]
    return lambda points: a + (b - a) * where(points)


def _noise(rng: np.random.Generator, height: int, width: int, grain_y: int, grain_x: int) -> Floats:
    """Smooth noise (height, width) around 0 with unit deviation and blobs of ``grain`` pixels."""
    coarse = rng.standard_normal((height // grain_y + 2, width // grain_x + 2), np.float32)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)


def _sheet(image: Floats, scale: float, u0: float) -> Sheet:
    """A sheet from colours (h, w, 3) whose first row lies at v = 0."""
    return Sheet(np.clip(image, 0, 255).astype(np.uint8), scale, u0, 0)


def _soften(image: Floats, blur: tuple[float, float], start: float) -> Floats:
    """``image`` blurred by up to ``blur`` pixels (across, along) with growing distance, where detail would alias."""
    far = np.asarray(cv2.GaussianBlur(image, (0, 0), blur[0], sigmaY=blur[1]), np.float32)
    share = np.clip(np.linspace(-start, 1, len(image), dtype=np.float32) * 2, 0, 1)[:, None, None]
    return image + (far - image) * share


# The street.


def _street(rng: np.random.Generator) -> tuple[tuple[str, ...], Callable[[float], World]]:
    """A tree-lined road: three vehicles and a pedestrian who crosses in front of them."""
    a, b, c = (str(n) for n in rng.permutation(list(PALETTE)[:5])[:3])
    lead, hurry = rng.uniform(-0.6, 0.6), rng.uniform(0.85, 1.15)
    ground, wall, houses = _road(rng), _sky(rng), _houses(rng)

    def at(s: float) -> World:
        camera = Camera(_point(0.25 + 0.5 * s, 1.75, 0.9 * s), _turned(-0.13 + 0.2 * s, 0.0), 1.0)
        parts = [
            *houses,
            *_car(PALETTE[a], _point(1.75, 0, 9.4 + lead + 4.5 * s * hurry), 0.0, 1),
            *_car(PALETTE[b], _point(-1.9, 0, 23 - 11.5 * s * hurry), np.pi, 2),
            *_van(PALETTE[c], _point(4.1, 0, 12.5), 3),
            *_walker(_point(-2.9 + 3.1 * s, 0, 8.0 + lead), s, 4),
        ]
        return World(camera, parts, ground, wall, 80.0, _point(-2 / 3, 2 / 3, -1 / 3))

    return (f"{a} car", f"{b} car", f"{c} van", "person"), at


def _road(rng: np.random.Generator) -> Sheet:
    """Asphalt with markings, kerbs, paved walks and grass, 28 m wide and 48 m long."""
    scale, h, w = 32, 48 * 32, 28 * 32
    image = np.empty((h, w, 3), np.float32)
    image[:] = (92, 94, 100)
    image += (7 * _noise(rng, h, w, 3, 3) + 6 * _noise(rng, h, w, 160, 24))[..., None]

    def strip(x0: float, x1: float) -> Floats:
        return image[:, round((x0 + 14) * scale) : round((x1 + 14) * scale)]

    for z in range(0, h, 5 * scale):
        strip(-0.09, 0.09)[z : z + 5 * scale // 2] = (226, 224, 214)
        strip(2.95, 3.03)[z : z + 4 * scale] = (214, 212, 204)
    for x0, x1 in ((-14.0, -4.3), (5.4, 14.0)):
        grass = strip(x0, x1)
        grass[:] = (96, 130, 66)
        grass += (14 * _noise(rng, h, grass.shape[1], 5, 5))[..., None]
    for x0, x1 in ((-4.3, -3.0), (5.2, 6.6)):
        walk = strip(x0, x1)
        walk[:] = (172, 166, 156)
        walk += (6 * _noise(rng, h, walk.shape[1], 20, 20))[..., None]
        walk[np.arange(h) % (scale * 2 // 3) < 2] *= 0.72
        walk[:, np.arange(walk.shape[1]) % (scale * 2 // 3) < 1] *= 0.72
    for x in (-3.06, 5.1):
        strip(x, x + 0.16)[:] = (206, 204, 198)
    for x in np.arange(-2.8, 5.0, 0.8):
        strip(float(x), float(x) + 0.42)[round(6.9 * scale) : round(9.3 * scale)] = (224, 222, 212)
    return _sheet(_soften(image, (2, 10), 0.2), scale, -14)


def _sky(rng: np.random.Generator) -> Sheet:
    """A blue gradient with clouds above distant hills, 160 m wide and 50 m high."""
    scale, h, w = 5, 50 * 5, 160 * 5
    up = np.linspace(1, 0, h, dtype=np.float32)[:, None, None]
    image = np.array([214, 228, 240], np.float32) + up * np.array([-120, -88, -14], np.float32)
    cloud = _noise(rng, h, w, 26, 70) + 0.6 * _noise(rng, h, w, 10, 22) + 0.3 * _noise(rng, h, w, 4, 7)
    veil = np.clip(cloud * 0.55 - 0.1, 0, 0.9)[..., None]
    image = image * (1 - veil) + 250 * veil
    for height, colour in ((26, (150, 172, 186)), (14, (112, 142, 128))):
        ridge = height + 7 * _noise(rng, 1, w, 1, 60)[0] + 2 * _noise(rng, 1, w, 1, 9)[0]
        image[np.arange(h)[:, None] > h - ridge] = colour
    return _sheet(image[::-1], scale, -80)


def _houses(rng: np.random.Generator) -> list[Part]:
    """Rows of houses and trees on both sides, in the background."""
    walls = [(196, 142, 112), (214, 196, 160), (158, 168, 182), (190, 112, 96), (206, 206, 198)]
    parts = []
    for i in range(5):
        for side in (-1, 1):
            height, z = float(rng.uniform(4.5, 8.5)), 13.0 + 9.5 * i + side
            wall = walls[int(rng.integers(len(walls)))]
            house = Prism(((-4, 0), (4, 0), (4, height), (-4, height)), 3)
            x = (-10.2 if side < 0 else 11.6) + float(rng.uniform(-0.4, 0.4))
            parts.append(Part(house, _facade(wall), _point(x, 0, z), _turned(), gloss=0))
            roof = Prism(((-4.3, 0), (4.3, 0), (0, 1.9)), 3.3)
            parts.append(Part(roof, _tiles, _point(x, height, z), _turned(), gloss=0))
            parts += _tree(rng, _point(-5.3 if side < 0 else 7.4, 0, z - 4.4))
    return parts


def _facade(wall: tuple[int, int, int]) -> Paint:
    """A plastered wall with framed windows every 2 m."""
    base, frame, glass = (np.array(c, np.float32)[:, None] for c in (wall, (236, 232, 222), (70, 92, 116)))

    def paint(p: Floats) -> Floats:
        across = np.where(np.abs(np.abs(p[0]) - 3) < 1e-3, p[2], p[0])
        u, v = np.abs(across % 2 - 1), np.abs(p[1] % 2.1 - 1.15)
        framed, glazed = (u < 0.52) & (v < 0.66), (u < 0.42) & (v < 0.56) & (u > 0.03)
        return np.asarray(np.where(glazed, glass + 34 * (v - u), np.where(framed, frame, base)), np.float32)

    return paint


def _tiles(p: Floats) -> Floats:
    """Rows of roof tiles."""
    return np.asarray(np.array([[150], [78], [62]]) * (0.8 + p[1] % 0.3), np.float32)


def _tree(rng: np.random.Generator, at: Floats) -> list[Part]:
    """A trunk and a few leafy balls."""
    parts = [Part(Rod(2.4, 0.14), _flat((104, 78, 56)), at, _turned(), gloss=0)]
    for _ in range(3):
        offset = rng.uniform((-0.5, 2.3, -0.5), (0.5, 3.4, 0.5)).astype(np.float32)
        parts.append(Part(Ball(float(rng.uniform(0.7, 1.05))), _leaves, at + offset, _turned(), gloss=0))
    return parts


def _leaves(p: Floats) -> Floats:
    """Mottled green."""
    x, y, z = p * 9
    spots = np.sin(x + 2 * np.sin(y * 1.3)) * np.sin(y - 2 * np.sin(z * 1.1)) * np.sin(z + 1.7 * np.sin(x))
    return np.asarray(np.array([[78], [122], [56]]) * (1 + 0.3 * spots), np.float32)


def _car(colour: tuple[int, int, int], at: Floats, yaw: float, label: int) -> list[Part]:
    """A hatchback that faces +z when ``yaw`` is 0."""
    turn = _turned(yaw)
    body = Prism(((-2.05, 0.28), (2.05, 0.28), (2.1, 0.62), (1.95, 0.8), (1.0, 0.95), (-2.05, 0.98)), 0.86)
    cabin = Prism(((-1.95, 0.94), (1.05, 0.94), (0.3, 1.46), (-1.55, 1.46)), 0.76)
    glazed = _two_tone(colour, (44, 58, 76), lambda p: _between(p[1], 1.0, 1.38) * (np.abs(p[2] + 0.45) > 0.06))
    return [
        Part(body, _lamps(colour), at, turn, label, 0.35),
        Part(cabin, glazed, at, turn, label, 0.35),
        *_wheels(at, turn, 0.8, 1.28, label),
    ]


def _van(colour: tuple[int, int, int], at: Floats, label: int) -> list[Part]:
    """A parked box van that faces +z."""
    turn = _turned()
    body = Prism(((-2.4, 0.32), (2.3, 0.32), (2.4, 0.9), (1.7, 1.2), (1.2, 2.05), (-2.4, 2.1)), 0.92)
    return [Part(body, _lamps(colour), at, turn, label, 0.2), *_wheels(at, turn, 0.86, 1.5, label)]


def _between(values: Floats, low: float, high: float) -> Floats:
    return ((values > low) & (values < high)).astype(np.float32)


def _lamps(colour: tuple[int, int, int]) -> Paint:
    """Bodywork with head and tail lamps, a number plate, a rear window and door seams."""
    base = np.array(colour, np.float32)[:, None]
    red, lamp, plate, glass = (
        np.array(c, np.float32)[:, None] for c in ((235, 40, 40), (255, 246, 214), (236, 236, 226), (44, 58, 76))
    )

    def paint(p: Floats) -> Floats:
        x, y, z = np.abs(p[0]), p[1], p[2]
        lit, seam = (x > 0.52) & (x < 0.8) & (y > 0.6) & (y < 0.82), (x > 0.8) & (np.abs(np.abs(z) - 0.5) < 0.025)
        out = np.where(seam | (y < 0.36), base * 0.45, base)
        out = np.where((z < -2) & (x < 0.72) & (y > 1.25) & (y < 1.85), glass, out)
        out = np.where((z < -2) & (x < 0.26) & (y > 0.5) & (y < 0.64), plate, out)
        return np.asarray(np.where(lit & (z < -2), red, np.where(lit & (z > 1.9), lamp, out)), np.float32)

    return paint


def _wheels(at: Floats, turn: Floats, x: float, z: float, label: int) -> list[Part]:
    """Four wheels with light hubs."""
    paint = _two_tone((34, 34, 36), (176, 178, 182), lambda p: (p[1] ** 2 + p[2] ** 2 < 0.036).astype(np.float32))
    wheel = _disc(0.33, 0.11, 16)
    return [
        Part(wheel, paint, turn @ _point(i * x, 0.33, k * z) + at, turn, label, 0) for i in (-1, 1) for k in (-1, 1)
    ]


def _walker(at: Floats, s: float, label: int) -> list[Part]:
    """A person who walks to the right, two strides per clip."""
    swing = 0.55 * float(np.sin(4 * np.pi * s))
    coat = _two_tone((230, 226, 214), (62, 74, 120), lambda p: (p[1] % 0.14 < 0.07).astype(np.float32))
    trousers, skin = _flat((54, 58, 70)), _flat((224, 172, 138))
    hip, shoulder = at + _point(0, 0.88, 0), at + _point(0, 1.42, 0)
    parts = [
        Part(Rod(0.55, 0.19), coat, hip, _turned(), label),
        Part(Ball(0.19), coat, shoulder, _turned(), label),
        Part(Ball(0.19), trousers, hip, _turned(), label),
        Part(Ball(0.13), skin, at + _point(0.02, 1.74, 0), _turned(), label),
        Part(Ball(0.135), _flat((70, 46, 34)), at + _point(-0.015, 1.78, 0), _turned(), label),
    ]
    for side in (-1, 1):
        leg = hip + _point(side * swing * 0.85, -0.86, 0.09 * side)
        arm = shoulder + _point(-side * swing * 0.6, -0.5, 0.22 * side)
        parts += _limb(hip + _point(0, 0, 0.09 * side), leg, 0.085, trousers, label)
        parts += _limb(shoulder + _point(0, 0, 0.2 * side), arm, 0.06, coat, label)
    return parts


def _limb(start: Floats, end: Floats, radius: float, paint: Paint, label: int, gloss: float = 0.1) -> list[Part]:
    """A capsule from ``start`` to ``end`` (3,)."""
    along = end - start
    length = float(np.linalg.norm(along))
    y = along / length
    x = np.cross(y, _point(0.3, 0.2, 1))
    x /= np.linalg.norm(x)
    turn = np.stack([x, y, np.cross(x, y)], 1).astype(np.float32)
    ends = [Part(Ball(radius), paint, point, turn, label, gloss) for point in (start, end)]
    return [Part(Rod(length, radius), paint, start, turn, label, gloss), *ends]


# The table.


def _table(rng: np.random.Generator) -> tuple[tuple[str, ...], Callable[[float], World]]:
    """Two balls roll across a wooden table, behind and in front of a mug and a toy block."""
    a, b, c, d = (str(n) for n in rng.permutation(list(PALETTE)[:6])[:4])
    drift = float(rng.uniform(-0.04, 0.04))
    ground, wall = _planks(rng), _wallpaper(rng)
    tilt = float(rng.uniform(0.3, 0.7))

    def at(s: float) -> World:
        camera = Camera(_point(-0.26 + 0.5 * s, 0.62, -0.12), _turned(0.17 - 0.34 * s, 0.32), 1.2)
        parts = [
            *_mug(PALETTE[c], _point(0.06 + drift, 0, 1.08), 3),
            Part(_box(0.2, 0.2, 0.2), _letters(PALETTE[d]), _point(-0.36, 0, 1.34), _turned(tilt), 4),
            _rolling(PALETTE[a], 0.105, _point(-0.58, 0, 1.42), _point(0.56, 0, 1.26 + drift), s, 1),
            _rolling(PALETTE[b], 0.075, _point(0.62, 0, 1.5), _point(-0.3, 0, 0.84 + drift), s, 2),
        ]
        return World(camera, parts, ground, wall, 2.3, _point(4 / 9, 7 / 9, -4 / 9))

    return (f"{a} ball", f"{b} ball", f"{c} mug", f"{d} block"), at


def _rolling(colour: tuple[int, int, int], radius: float, start: Floats, end: Floats, s: float, label: int) -> Part:
    """A striped ball that has rolled a share ``s`` of the way."""
    path = end - start
    length = float(np.linalg.norm(path))
    yaw = float(np.arctan2(path[0], path[2]))
    band = 0.28 * radius, 0.62 * radius
    stripes = _two_tone(colour, (244, 240, 228), lambda p: _between(np.abs(p[0] + 0.6 * p[1]), *band))
    turn = _turned(yaw) @ _turned(pitch=s * length / radius)
    return Part(Ball(radius), stripes, start + path * np.float32(s) + _point(0, radius, 0), turn, label, 0.5)


def _mug(colour: tuple[int, int, int], at: Floats, label: int) -> list[Part]:
    """A dotted mug with a handle, closed by a dark lid."""
    height, radius = 0.21, 0.085

    def dots(p: Floats) -> Floats:
        u, v = np.arctan2(p[2], p[0]) * 10 / (2 * np.pi), p[1] / 0.052
        u = u + 0.5 * (np.floor(v) % 2)
        return np.asarray((u % 1 - 0.5) ** 2 + (v % 1 - 0.5) ** 2 < 0.075, np.float32)

    glaze = _two_tone(colour, (246, 242, 230), dots)
    lid = Part(_disc(radius, 0.004, 32), _flat((58, 38, 28)), at + _point(0, height, 0), _LYING, label, 0)
    rim = _flat(colour)
    grip = [_point(x, y, 0) + at for x, y in ((0.08, 0.17), (0.13, 0.16), (0.14, 0.1), (0.12, 0.05), (0.08, 0.04))]
    handle = [part for p, q in pairwise(grip) for part in _limb(p, q, 0.013, rim, label)]
    return [Part(Rod(height, radius), glaze, at, _turned(), label, 0.4), lid, *handle]


_LYING = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]], np.float32)
"""Turns the x axis up, so that a disc lies flat."""


def _letters(colour: tuple[int, int, int]) -> Paint:
    """A toy block: a pale frame, a coloured field and a pale cross on every face."""

    def where(p: Floats) -> Floats:
        q = np.sort(np.abs(p - np.array([[0], [0.1], [0]], np.float32)), axis=0)
        cross = (q[0] < 0.014) & (q[1] < 0.055)
        return np.asarray((q[1] > 0.078) | cross, np.float32)

    return _two_tone(colour, (240, 224, 190), where)


def _planks(rng: np.random.Generator) -> Sheet:
    """Wooden planks that run away from the viewer, 4 m by 4 m."""
    scale, size = 300, 1200
    grain = 9 * _noise(rng, size, size, 120, 3) + 7 * _noise(rng, size, size, 60, 12)
    image = np.array([176, 128, 82], np.float32) + grain[..., None]
    plank = 60
    for x in range(0, size, plank):
        board = image[:, x : x + plank]
        board *= rng.uniform(0.86, 1.1)
        board[int(rng.integers(size // 2)) :: size // 2][:1] *= 0.5
        board[:, :2] *= 0.55
    return _sheet(_soften(image, (1, 4), 0.6), scale, -2)


def _wallpaper(rng: np.random.Generator) -> Sheet:
    """Blue-grey wallpaper with diamonds above a white skirting board, 6 m by 3 m."""
    scale, h, w = 200, 600, 1200
    y, x = np.mgrid[:h, :w].astype(np.float32)
    diamond = np.abs(x % 48 - 24) + np.abs(y % 72 - 36) * 0.66
    image = np.array([112, 140, 156], np.float32) + (3 * _noise(rng, h, w, 6, 6))[..., None]
    image[np.abs(diamond - 20) < 1.6] = (206, 208, 196)
    image[diamond < 6] = (226, 190, 120)
    image[h - 22 :] = (232, 228, 218)
    image[h - 24 : h - 21] = (150, 146, 138)
    return _sheet(image[::-1], scale, -3)


# The robot.


def _robot(rng: np.random.Generator) -> tuple[tuple[str, ...], Callable[[float], World]]:
    """A robot arm carries a cube over a checkered floor, past a ball and a drum."""
    a, b, c = (str(n) for n in rng.permutation(list(PALETTE)[:6])[:3])
    ground, wall = _checkers(rng), _panels(rng)
    reach = float(rng.uniform(0.92, 1.04))

    def at(s: float) -> World:
        ease = s * s * (3 - 2 * s)
        bearing = -0.95 + 1.75 * ease
        lift = 0.4 + 0.42 * float(np.sin(np.pi * ease))
        foot = _point(0, 0, 2.75)
        hand = foot + _point(reach * float(np.sin(bearing)), lift, -reach * float(np.cos(bearing)))
        camera = Camera(_point(0.34 - 0.68 * s, 1.25, -0.25), _turned(-0.12 + 0.24 * s, 0.24), 0.95)
        yaw = float(np.pi) - bearing
        parts = [
            *_arm(foot, hand, yaw, 1),
            Part(_box(0.2, 0.2, 0.2), _letters(PALETTE[a]), hand - _point(0, 0.36, 0), _turned(yaw), 2),
            _rolling(PALETTE[b], 0.17, _point(0.62, 0, 1.6), _point(0.02, 0, 1.5), s, 3),
            *_drum(PALETTE[c], _point(-0.95, 0, 2.45), 4),
        ]
        return World(camera, parts, ground, wall, 4.6, _point(-4 / 9, 7 / 9, -4 / 9))

    return ("robot arm", f"{a} cube", f"{b} ball", f"{c} drum"), at


def _arm(foot: Floats, hand: Floats, yaw: float, label: int) -> list[Part]:
    """A two-link arm on a round base at ``foot``, gripper at ``hand`` (3,), elbow up."""
    shoulder, link = foot + _point(0, 0.5, 0), 0.86
    span = hand - shoulder
    length = float(np.linalg.norm(span))
    rise = np.arctan2(span[1], np.hypot(span[0], span[2])) + np.arccos(min(length / (2 * link), 1.0))
    turn = _turned(yaw)
    elbow = shoulder + turn @ _point(0, link * float(np.sin(rise)), link * float(np.cos(rise)))
    shell, joint, steel = _flat((238, 238, 232)), _flat((232, 120, 32)), _flat((86, 92, 102))
    finger = _box(0.03, 0.2, 0.07)
    return [
        Part(_disc(0.3, 0.05, 32), steel, foot + _point(0, 0.05, 0), _LYING, label),
        Part(Rod(0.36, 0.17), shell, foot + _point(0, 0.1, 0), turn, label),
        Part(_disc(0.17, 0.01, 32), steel, foot + _point(0, 0.46, 0), _LYING, label),
        *_limb(shoulder, elbow, 0.1, shell, label, 0.3),
        *_limb(elbow, hand, 0.075, shell, label, 0.3),
        Part(_disc(0.15, 0.14, 28), joint, shoulder, turn, label, 0.3),
        Part(_disc(0.125, 0.12, 28), joint, elbow, turn, label, 0.3),
        Part(_disc(0.09, 0.09, 28), joint, hand, turn, label, 0.3),
        Part(_box(0.28, 0.05, 0.1), steel, hand - _point(0, 0.15, 0), turn, label),
        *(Part(finger, steel, hand + turn @ _point(x, -0.32, 0), turn, label) for x in (-0.117, 0.117)),
    ]


def _drum(colour: tuple[int, int, int], at: Floats, label: int) -> list[Part]:
    """A standing barrel with pale hoops."""
    hoops = _two_tone(colour, (226, 226, 218), lambda p: _between(p[1] % 0.21, 0.07, 0.11))
    lid = Part(_disc(0.24, 0.005, 32), _flat(colour), at + _point(0, 0.63, 0), _LYING, label)
    return [Part(Rod(0.63, 0.24), hoops, at, _turned(), label, 0.25), lid]


def _checkers(rng: np.random.Generator) -> Sheet:
    """A scuffed checkerboard with 0.3 m fields, 8 m by 6 m."""
    scale, h, w = 160, 960, 1280
    y, x = np.mgrid[:h, :w] // 48
    image = np.where(((x + y) % 2 == 0)[..., None], (206, 208, 208), (92, 108, 126)).astype(np.float32)
    image += (5 * _noise(rng, h, w, 40, 40) + 5 * _noise(rng, h, w, 3, 3))[..., None]
    return _sheet(_soften(image, (1, 3), 0.5), scale, -4)


def _panels(rng: np.random.Generator) -> Sheet:
    """A workshop wall of riveted panels with a hazard stripe, 10 m by 4 m."""
    scale, h, w = 120, 480, 1200
    y, x = np.mgrid[:h, :w]
    image = np.array([152, 160, 158], np.float32) + (4 * _noise(rng, h, w, 5, 5))[..., None]
    image *= (1 + 0.05 * rng.standard_normal((4, 10)).astype(np.float32)).repeat(120, 0).repeat(120, 1)[..., None]
    image[(x % 120 < 2) | (y % 120 < 2)] = (104, 110, 112)
    image[((x % 120 - 60.5) ** 2 > 2450) & ((y % 120 - 60.5) ** 2 > 2450) & (x % 3 + y % 3 > 1)] = (88, 92, 96)
    image[h - 40 :] = np.where((((x + y) // 22) % 2 == 0)[h - 40 :, :, None], (232, 186, 40), (48, 48, 50))
    return _sheet(image[::-1], scale, -5)


_STORIES = {"street": _street, "table": _table, "robot": _robot}


def scenes(count: int, frames: int, height: int, width: int, seed: int) -> list[Scene]:
    """``count`` scenes of ``frames`` images: street, table, robot, then the same again cast differently."""
    return [_film(i, frames, height, width, seed) for i in range(count)]


def _film(index: int, frames: int, height: int, width: int, seed: int) -> Scene:
    """Scene number ``index``, the same whatever the other scenes are."""
    title, story = list(_STORIES.items())[index % len(_STORIES)]
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, index])))
    names, world = story(rng)
    colours = np.empty((frames, height, width, 3), np.uint8)
    depth, labels = np.empty((frames, height, width), np.float32), np.empty((frames, height, width), np.uint8)
    for t in range(frames):
        moment = world(t / max(frames - 1, 1))
        # Colour is averaged over 2 x 2 rays; depth and labels are not defined by averages and come from the centre ray.
        fine = _colour(moment, 2 * height, 2 * width)
        colours[t] = np.clip(cv2.resize(fine, (width, height), interpolation=cv2.INTER_AREA).round(), 0, 255)
        depth[t], owner = _trace(moment, height, width)
        labels[t] = np.array([part.label for part in moment.parts] + [0, 0], np.uint8)[owner]
    name = title if index < len(_STORIES) else f"{title}-{index // len(_STORIES) + 1}"
    return Scene(name, colours, depth, labels, names, visible_boxes(labels, len(names)))
