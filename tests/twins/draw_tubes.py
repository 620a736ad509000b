"""What the property tests of tubes are tried on: few small frames, where edges, ties and nothing at all abound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]
Rng = np.random.Generator
Box = list[float] | None
PLACEHOLDER = [0.5, 0.5, 0.5, 0.5]
DYADIC, ODD = ((8, 4), (16, 16), (32, 8)), ((7, 5), (10, 12), (23, 9), (28, 20))


@dataclass(frozen=True)
class Kind:
    """What sort of videos are drawn. exact: all edges are in quarters of pixels, which floats add without rounding.
    inverted: some boxes end before they begin.  masks: the predictions are these.  soft: of any values."""

    exact: bool = False
    inverted: bool = False
    masks: bool = False
    soft: bool = False
    counted: bool = False


@dataclass
class Drawn:
    """One video: relative boxes that are asked for, and boxes or masks that are found; None is no prediction."""

    id: Any
    size: tuple[int, int]
    asked: list[Box]
    found: list[Box] | None = None
    masks: list[Array] | None = None
    num_bb: int | None = None
    stacked: str = field(default="list")

    def truth(self, pixels: bool = False) -> dict[str, Any]:
        """What is asked for, as a record."""
        if not pixels:
            return {"id": self.id, "bboxes": self.asked}
        width, height = self.size
        boxes = [None if box is None else np.multiply(box, (width, height) * 2).tolist() for box in self.asked]
        return {"id": self.id, "bboxes": boxes, "width": width, "height": height}

    def pred(self) -> dict[str, Any]:
        """What is found, as a record."""
        about = {"id": self.id} | ({} if self.num_bb is None else {"num_bb": self.num_bb})
        if self.masks is not None:
            return about | {"mask": stacked(self.masks, self.stacked)}
        return about | {"width": self.size[0], "height": self.size[1], "bboxes": self.found}


def stacked(masks: list[Array], how: str) -> Any:
    """The masks of a video as a list, or as one array."""
    if how == "list":
        return masks
    return np.stack(masks)[:, None] if how == "(T, 1, H, W)" else np.stack(masks)


kinds = st.builds(Kind, st.booleans(), st.just(False), st.booleans(), st.booleans(), st.just(False))
published_kinds = st.builds(Kind, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans())


def drawn(seed: Any, kind: Kind, own: Any = 1, missing: bool = False) -> Drawn:
    """A video of 1 to 12 frames; the sides are of unequal lengths more often than not."""
    rng = np.random.default_rng(seed)
    size: tuple[int, int] = tuple(rng.choice(DYADIC if kind.exact else ODD).tolist())
    asked_frames, frames = (int(rng.integers(1, 13)) for _ in range(2))
    anchor = box_near(rng, size, None, kind)
    asked = [asked_box(rng, size, anchor, kind) for _ in range(asked_frames)]
    video = Drawn(own, size, asked, stacked=str(rng.choice(["list", "(T, H, W)", "(T, 1, H, W)"])))
    if kind.counted and rng.random() < 0.7:
        video.num_bb = int(rng.integers(0, 30))
    if missing:
        return video
    where = [None if rng.random() < 0.2 else box_near(rng, size, anchor, kind) for _ in range(frames)]
    if rng.random() < 0.1:
        where = [None] * frames
    if kind.masks:
        video.masks = [mask_like(rng, size, box) for box in where]
        if kind.soft:
            dtype = rng.choice(["f8", "f4", "u1"])
            video.masks = [softened(rng, mask).astype(dtype) for mask in video.masks]
    else:
        video.found = where
    return video


def box_near(rng: Rng, size: tuple[int, int], anchor: Box, kind: Kind) -> list[float]:
    """A box in pixels: near another one, or anywhere, outside of the frame too."""
    width, height = size
    limits = np.array((width, height))
    if anchor is not None and rng.random() < 0.8:
        moved = np.asarray(anchor) + rng.choice([0, 0, 0.25, 1, 3]) * rng.integers(-2, 3, 4)
        low, high = np.minimum(moved[:2], moved[2:]), np.maximum(moved[:2], moved[2:])
    else:
        low = rng.integers(-4, limits)
        high = low + rng.integers(0, limits + 5)
    box = np.concatenate([low, high]).astype(float)
    if not kind.exact and rng.random() < 0.4:
        box += np.tile(rng.random(2), 2)
        box[2:] += rng.random(2)
    elif rng.random() < 0.3:
        box += rng.integers(0, 4) / 4
    if kind.inverted and rng.random() < 0.1:
        box = box[[2, 1, 0, 3]]
    return [float(edge) for edge in box]


def asked_box(rng: Rng, size: tuple[int, int], anchor: Box, kind: Kind) -> Box:
    """A relative box that is asked for: mostly within the frame; placeholders and null are none."""
    chance = rng.random()
    if chance < 0.15:
        return None if chance < 0.03 else [*PLACEHOLDER]
    box = np.array(box_near(rng, size, anchor, kind))
    if chance < 0.9:
        box = np.clip(box, 0, (*size, *size))
    relative = box / (*size, *size)
    return [float(edge) for edge in np.clip(relative, -0.9, 1.9)]


def mask_like(rng: Rng, size: tuple[int, int], box: Box) -> Array:
    """Booleans (H, W): a box, one with holes, anything, or nothing."""
    width, height = size
    mask = np.zeros((height, width), bool)
    if box is None:
        return mask
    x1, y1, x2, y2 = np.clip(np.floor(np.asarray(box)), 0, (width, height, width, height)).astype(int)
    mask[y1:y2, x1:x2] = True
    chance = rng.random()
    if chance < 0.3:
        mask &= rng.random(mask.shape) < 0.7
    elif chance < 0.4:
        mask = rng.random(mask.shape) < 0.3
    return mask


def softened(rng: Rng, mask: Array) -> Array:
    """Other values above 0 in the place of 1."""
    return mask * rng.choice([1.0, 2.0, 255.0]) if rng.random() < 0.5 else mask * rng.integers(1, 9, mask.shape) / 8


def dataset(seed: int, kind: Kind, missing: bool = True) -> list[Drawn]:
    """Up to 6 videos, some of them without a prediction, but not all."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(60)[: rng.integers(1, 7)].tolist()
    absent = rng.random(len(ids)) < (0.2 if missing else 0)
    absent[0] = False
    pairs = zip(ids, absent, strict=True)
    return [drawn([seed, own], kind, own if own % 2 else str(own), bool(gone)) for own, gone in pairs]
