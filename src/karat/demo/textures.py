"""Paints of parts, and the painted planes behind and below them."""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from karat.demo.shapes import Bytes, Floats

Colour = tuple[int, int, int]
Paint = Callable[[Floats], Floats]
"""Object-space points (3, K) to albedo 0..255, (3, K) or (3, 1)."""

PALETTE: dict[str, Colour] = {
    "red": (206, 44, 40),
    "blue": (38, 92, 200),
    "yellow": (240, 190, 36),
    "green": (46, 150, 78),
    "orange": (238, 124, 34),
    "purple": (132, 72, 178),
    "white": (232, 232, 226),
}


def flat(colour: Colour) -> Paint:
    """One colour everywhere."""
    albedo = np.array(colour, np.float32)[:, None]
    return lambda _: albedo


def two_tone(first: Colour, second: Colour, where: Callable[[Floats], Floats]) -> Paint:
    """``second`` where ``where`` (K,) is 1, ``first`` where it is 0."""
    a, b = np.array(first, np.float32)[:, None], np.array(second, np.float32)[:, None]
    return lambda points: a + (b - a) * where(points)


def between(values: Floats, low: float, high: float) -> Floats:
    return ((values > low) & (values < high)).astype(np.float32)


def facade(wall: Colour) -> Paint:
    """A plastered wall with framed windows every 2 m."""
    base, frame, glass = (np.array(c, np.float32)[:, None] for c in (wall, (236, 232, 222), (70, 92, 116)))

    def paint(p: Floats) -> Floats:
        across = np.where(np.abs(np.abs(p[0]) - 3) < 1e-3, p[2], p[0])
        u, v = np.abs(across % 2 - 1), np.abs(p[1] % 2.1 - 1.15)
        framed, glazed = (u < 0.52) & (v < 0.66), (u < 0.42) & (v < 0.56) & (u > 0.03)
        return np.asarray(np.where(glazed, glass + 34 * (v - u), np.where(framed, frame, base)), np.float32)

    return paint


def tiles(p: Floats) -> Floats:
    """Rows of roof tiles."""
    return np.asarray(np.array([[150], [78], [62]]) * (0.8 + p[1] % 0.3), np.float32)


def leaves(p: Floats) -> Floats:
    """Mottled green."""
    x, y, z = p * 9
    spots = np.sin(x + 2 * np.sin(y * 1.3)) * np.sin(y - 2 * np.sin(z * 1.1)) * np.sin(z + 1.7 * np.sin(x))
    return np.asarray(np.array([[78], [122], [56]]) * (1 + 0.3 * spots), np.float32)


def lamps(colour: Colour) -> Paint:
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


def letters(colour: Colour) -> Paint:
    """A toy block: a pale frame, a coloured field and a pale cross on every face."""

    def where(p: Floats) -> Floats:
        q = np.sort(np.abs(p - np.array([[0], [0.1], [0]], np.float32)), axis=0)
        cross = (q[0] < 0.014) & (q[1] < 0.055)
        return np.asarray((q[1] > 0.078) | cross, np.float32)

    return two_tone(colour, (240, 224, 190), where)


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


def road(rng: np.random.Generator) -> Sheet:
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


def sky(rng: np.random.Generator) -> Sheet:
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


def planks(rng: np.random.Generator) -> Sheet:
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


def wallpaper(rng: np.random.Generator) -> Sheet:
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


def checkers(rng: np.random.Generator) -> Sheet:
    """A scuffed checkerboard with 0.3 m fields, 8 m by 6 m."""
    scale, h, w = 160, 960, 1280
    y, x = np.mgrid[:h, :w] // 48
    image = np.where(((x + y) % 2 == 0)[..., None], (206, 208, 208), (92, 108, 126)).astype(np.float32)
    image += (5 * _noise(rng, h, w, 40, 40) + 5 * _noise(rng, h, w, 3, 3))[..., None]
    return _sheet(_soften(image, (1, 3), 0.5), scale, -4)


def panels(rng: np.random.Generator) -> Sheet:
    """A workshop wall of riveted panels with a hazard stripe, 10 m by 4 m."""
    scale, h, w = 120, 480, 1200
    y, x = np.mgrid[:h, :w]
    image = np.array([152, 160, 158], np.float32) + (4 * _noise(rng, h, w, 5, 5))[..., None]
    image *= (1 + 0.05 * rng.standard_normal((4, 10)).astype(np.float32)).repeat(120, 0).repeat(120, 1)[..., None]
    image[(x % 120 < 2) | (y % 120 < 2)] = (104, 110, 112)
    image[((x % 120 - 60.5) ** 2 > 2450) & ((y % 120 - 60.5) ** 2 > 2450) & (x % 3 + y % 3 > 1)] = (88, 92, 96)
    image[h - 40 :] = np.where((((x + y) // 22) % 2 == 0)[h - 40 :, :, None], (232, 186, 40), (48, 48, 50))
    return _sheet(image[::-1], scale, -5)


def _sheet(image: Floats, scale: float, u0: float) -> Sheet:
    """A sheet from colours (h, w, 3) whose first row lies at v = 0."""
    return Sheet(np.clip(image, 0, 255).astype(np.uint8), scale, u0, 0)


def _noise(rng: np.random.Generator, height: int, width: int, grain_y: int, grain_x: int) -> Floats:
    """Smooth noise (height, width) around 0 with unit deviation and blobs of ``grain`` pixels."""
    coarse = rng.standard_normal((height // grain_y + 2, width // grain_x + 2), np.float32)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)


def _soften(image: Floats, blur: tuple[float, float], start: float) -> Floats:
    """``image`` blurred by up to ``blur`` pixels (across, along) with growing distance, where detail would alias."""
    far = np.asarray(cv2.GaussianBlur(image, (0, 0), blur[0], sigmaY=blur[1]), np.float32)
    share = np.clip(np.linspace(-start, 1, len(image), dtype=np.float32) * 2, 0, 1)[:, None, None]
    return image + (far - image) * share
