"""LPIPS v0.1: how far two images are apart for a network, layer by layer, as people weighed the layers.

Zhang et al. 2018, arXiv:1801.03924.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from karat.errors import UsageError
from karat.sources.guard import refusal
from karat.sources.stream import Array

from .features import Images, Way, pictures, stacks, together
from .state import fill, read_state
from .weights import brief

SHIFT = (-0.030, -0.088, -0.188)
SCALE = (0.458, 0.448, 0.450)
TINY = 1e-10
FIRE = "squeeze", "expand1x1", "expand3x3"


@dataclass(frozen=True)
class Conv:
    """A convolution, of which what is positive is kept."""

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class Fire:
    """A 1 x 1 convolution to `squeezed` channels, then 1 x 1 and 3 x 3 to `expanded` channels each, joined."""

    squeezed: int
    expanded: int


@dataclass(frozen=True)
class Pool:
    """The largest of every window, one every 2 pixels; `whole` keeps the windows that reach over the edge."""

    kernel: int
    whole: bool = False


@dataclass(frozen=True)
class Layer:
    """What is compared here."""


Reduce = Callable[[list[torch.Tensor], torch.Size], torch.Tensor]
Trunk = tuple[tuple[int | None, Conv | Fire | Pool | Layer], ...]  # with their numbers in the published weights


def _vgg() -> Trunk:
    steps: list[tuple[int | None, Any]] = []
    place = 0
    for number, (channels, convolutions) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        if number:
            steps.append((None, Pool(2)))
            place += 1
        for _ in range(convolutions):
            steps.append((place, Conv(channels, 3, padding=1)))
            place += 2
        steps.append((None, Layer()))
    return tuple(steps)


TRUNKS: dict[str, Trunk] = {
    "alex": (
        (0, Conv(64, 11, 4, 2)),
        (None, Layer()),
        (None, Pool(3)),
        (3, Conv(192, 5, padding=2)),
        (None, Layer()),
        (None, Pool(3)),
        (6, Conv(384, 3, padding=1)),
        (None, Layer()),
        (8, Conv(256, 3, padding=1)),
        (None, Layer()),
        (10, Conv(256, 3, padding=1)),
        (None, Layer()),
    ),
    "vgg": _vgg(),
    "squeeze": (
        (0, Conv(64, 3, 2)),
        (None, Layer()),
        (None, Pool(3, whole=True)),
        (3, Fire(16, 64)),
        (4, Fire(16, 64)),
        (None, Layer()),
        (None, Pool(3, whole=True)),
        (6, Fire(32, 128)),
        (7, Fire(32, 128)),
        (None, Layer()),
        (None, Pool(3, whole=True)),
        (9, Fire(48, 192)),
        (None, Layer()),
        (10, Fire(48, 192)),
        (None, Layer()),
        (11, Fire(64, 256)),
        (None, Layer()),
        (12, Fire(64, 256)),
        (None, Layer()),
    ),
}


def convolutions(trunk: str) -> list[int]:
    """The numbers of a trunk's convolutions in the published weights."""
    return [number for number, _ in TRUNKS[trunk] if number is not None]


class LpipsGraph(nn.Module):
    """A trunk and the weights of its layers, whose state dict has the keys of the published files."""

    def __init__(self, trunk: str) -> None:
        super().__init__()
        self.steps = TRUNKS[trunk]
        self.features = nn.ModuleDict()
        channels, compared = 3, []
        for number, step in self.steps:
            if isinstance(step, Conv):
                self.features[str(number)] = nn.Conv2d(channels, step.channels, step.kernel, step.stride, step.padding)
                channels = step.channels
            elif isinstance(step, Fire):
                sides = (
                    (channels, step.squeezed, 1),
                    (step.squeezed, step.expanded, 1),
                    (step.squeezed, step.expanded, 3),
                )
                parts = {name: nn.Conv2d(*side, padding=side[2] // 2) for name, side in zip(FIRE, sides, strict=True)}
                self.features[str(number)] = nn.ModuleDict(parts)
                channels = 2 * step.expanded
            elif isinstance(step, Layer):
                compared.append(channels)
        self.layers = len(compared)
        for place, width in enumerate(compared):
            head = nn.ModuleDict({"model": nn.ModuleDict({"1": nn.Conv2d(width, 1, 1, bias=False)})})
            self.add_module(f"lin{place}", head)

    def taps(self, images: torch.Tensor) -> Iterator[torch.Tensor]:
        """What the layers see of images (N, 3, H, W) in -1..1."""
        x = (images - _channels(SHIFT, images)) / _channels(SCALE, images)
        for number, step in self.steps:
            if isinstance(step, Conv):
                x = functional.relu(self.features[str(number)](x))
            elif isinstance(step, Fire):
                x = _fire(self.features[str(number)], x)
            elif isinstance(step, Pool):
                x = functional.max_pool2d(x, step.kernel, 2, ceil_mode=step.whole)
            else:
                yield x

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> list[torch.Tensor]:
        """The distance at every place of every layer, (N, 1, h, w) each."""
        found = []
        for place, (a, b) in enumerate(zip(self.taps(one), self.taps(other), strict=True)):
            weights = self.get_submodule(f"lin{place}.model.1").weight
            # Not as a convolution: with one channel left, its last bits hang on where in a batch an image is.
            found.append(((_unit(a) - _unit(b)).square() * weights).sum(1, keepdim=True))
        return found


class Distances(NamedTuple):
    """Of pairs of images: the distance (N,), and what each layer adds to it (N, layers)."""

    total: Array
    layers: Array


class Lpips:
    """LPIPS with one of the trunks "alex", "vgg" and "squeeze"."""

    def __init__(self, weights: Path, way: Way, trunk: str = "alex") -> None:
        if trunk not in TRUNKS:
            raise UsageError(f"LPIPS has no trunk {trunk!r}: choose {', '.join(TRUNKS)}.")
        self.name, self.way = f"lpips-{trunk}", way
        graph = LpipsGraph(trunk)
        fill(graph, read_state(weights), weights, f"LPIPS with {trunk}")
        self.graph = way.settled(graph)
        self.identity = f"{self.name}|weights:{brief(weights)}|v0.1|{way.identity()}"

    def distances(self, pred: Images, truth: Images) -> Distances:
        """Of every image to its counterpart of the same size."""
        rows = self._rows(pred, truth, lambda places, _: torch.cat([one.mean((2, 3)) for one in places], 1))
        layers = together(rows, self.graph.layers)
        return Distances(layers.sum(1, dtype=np.float64), layers)

    def maps(self, pred: Images, truth: Images) -> list[Array]:
        """Where the images differ, (H, W) of each pair: the layers brought to the size of the images and added."""
        return [one for rows in self._rows(pred, truth, _mapped) for one in rows]

    def _rows(self, pred: Images, truth: Images, reduce: Reduce) -> Iterator[Array]:
        """What `reduce` makes of the layers, batch by batch, of pairs next to each other that have one size."""
        one, other = pictures(pred), pictures(truth)
        if [image.shape for image in one] != [image.shape for image in other]:
            raise refusal(
                "the prediction",
                "differs from the truth in the number or the sizes of its images",
                "pairs of one size were expected",
                "resize one side",
            )
        for pair in zip(stacks(one), stacks(other), strict=True):
            both, size = torch.stack(pair, 1), pair[0].shape[2:]

            def prepare(which: slice, both: torch.Tensor = both) -> torch.Tensor:
                return _centred(both[which].to(self.way.place))

            def forward(inputs: torch.Tensor, size: torch.Size = size) -> torch.Tensor:
                return reduce(self.graph(*(self.way.moved(inputs[:, side]) for side in (0, 1))), size)

            yield from self.way.rows(len(both), prepare, forward)


def _centred(images: torch.Tensor) -> torch.Tensor:
    return (images.double() / 127.5 - 1).float()


def _mapped(places: list[torch.Tensor], size: torch.Size) -> torch.Tensor:
    whole = [functional.interpolate(one, tuple(size), mode="bilinear") for one in places]
    return torch.cat(whole, 1).sum(1)


def _channels(values: tuple[float, ...], like: torch.Tensor) -> torch.Tensor:
    """Rounded to float32 as published, whatever is computed in."""
    return torch.tensor(values, dtype=torch.float32).to(like)[:, None, None]


def _fire(parts: Any, x: torch.Tensor) -> torch.Tensor:
    squeeze, small, large = (parts[name] for name in FIRE)
    x = functional.relu(squeeze(x))
    return torch.cat([functional.relu(small(x)), functional.relu(large(x))], 1)


def _unit(x: torch.Tensor) -> torch.Tensor:
    return x / (x.square().sum(1, keepdim=True).sqrt() + TINY)
