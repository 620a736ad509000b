"""Inception v3 as the Frechet distance takes it: the graph of 2015, in whose pools it differs from later ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from karat.errors import UsageError
from karat.sources.stream import Array

from .features import Images, Way, pictures, stacks, together
from .layers import Norm
from .resize import named
from .state import fill, read_state
from .weights import brief

SIDE = 299
EPS = 1e-3
CLASSES = 1008
DIMS = {"64": 64, "192": 192, "768": 768, "2048": 2048, "spatial": 2023, "logits_unbiased": CLASSES, "logits": CLASSES}
OF_POOL = {"logits_unbiased", "logits"}  # they are computed from tap 2048
SPATIAL_CHANNELS = 7


@dataclass(frozen=True)
class Conv:
    """A convolution without bias, normalised, of which what is positive is kept."""

    name: str
    channels: int
    kernel: int | tuple[int, int]
    stride: int = 1
    padded: bool = True


@dataclass(frozen=True)
class Tap:
    """What comes here is a feature of that name."""

    name: str


@dataclass(frozen=True)
class Block:
    """Branches whose channels are joined; the names of their convolutions begin with its own."""

    name: str
    branches: tuple[Branch, ...]


Step = Conv | Tap | Block | str  # a str names a pool
Branch = tuple[Step, ...]

POOLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "halve": lambda x: functional.max_pool2d(x, 3, 2),
    "mean": lambda x: functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "max": lambda x: functional.max_pool2d(x, 3, 1, 1),
}
HALVED: Branch = ("halve",)


def _small(name: str, pool: int) -> Block:
    double = Conv("branch3x3dbl_1", 64, 1), Conv("branch3x3dbl_2", 96, 3), Conv("branch3x3dbl_3", 96, 3)
    return Block(
        name,
        (
            (Conv("branch1x1", 64, 1),),
            (Conv("branch5x5_1", 48, 1), Conv("branch5x5_2", 64, 5)),
            double,
            ("mean", Conv("branch_pool", pool, 1)),
        ),
    )


def _to_17(name: str) -> Block:
    double = Conv("branch3x3dbl_1", 64, 1), Conv("branch3x3dbl_2", 96, 3), Conv("branch3x3dbl_3", 96, 3, 2)
    return Block(name, ((Conv("branch3x3", 384, 3, 2),), double, HALVED))


def _long(name: str, inner: int, *taps: Tap) -> Block:
    wide, tall = (1, 7), (7, 1)
    once = Conv("branch7x7_1", inner, 1), Conv("branch7x7_2", inner, wide), Conv("branch7x7_3", 192, tall)
    twice = (
        Conv("branch7x7dbl_1", inner, 1),
        Conv("branch7x7dbl_2", inner, tall),
        Conv("branch7x7dbl_3", inner, wide),
        Conv("branch7x7dbl_4", inner, tall),
        Conv("branch7x7dbl_5", 192, wide),
    )
    return Block(name, ((Conv("branch1x1", 192, 1), *taps), once, twice, ("mean", Conv("branch_pool", 192, 1))))


def _to_8(name: str) -> Block:
    long = (
        Conv("branch7x7x3_1", 192, 1),
        Conv("branch7x7x3_2", 192, (1, 7)),
        Conv("branch7x7x3_3", 192, (7, 1)),
        Conv("branch7x7x3_4", 192, 3, 2),
    )
    return Block(name, ((Conv("branch3x3_1", 192, 1), Conv("branch3x3_2", 320, 3, 2)), long, HALVED))


def _forked(name: str, pool: str) -> Block:
    def fork(prefix: str) -> Block:
        return Block("", ((Conv(f"{prefix}a", 384, (1, 3)),), (Conv(f"{prefix}b", 384, (3, 1)),)))

    return Block(
        name,
        (
            (Conv("branch1x1", 320, 1),),
            (Conv("branch3x3_1", 384, 1), fork("branch3x3_2")),
            (Conv("branch3x3dbl_1", 448, 1), Conv("branch3x3dbl_2", 384, 3), fork("branch3x3dbl_3")),
            (pool, Conv("branch_pool", 192, 1)),
        ),
    )


GRAPH: Branch = (
    Conv("Conv2d_1a_3x3", 32, 3, 2),
    Conv("Conv2d_2a_3x3", 32, 3, padded=False),
    Conv("Conv2d_2b_3x3", 64, 3),
    "halve",
    Tap("64"),
    Conv("Conv2d_3b_1x1", 80, 1),
    Conv("Conv2d_4a_3x3", 192, 3, padded=False),
    "halve",
    Tap("192"),
    _small("Mixed_5b", 32),
    _small("Mixed_5c", 64),
    _small("Mixed_5d", 64),
    _to_17("Mixed_6a"),
    _long("Mixed_6b", 128),
    _long("Mixed_6c", 160),
    _long("Mixed_6d", 160, Tap("spatial")),
    _long("Mixed_6e", 192),
    Tap("768"),
    _to_8("Mixed_7a"),
    _forked("Mixed_7b", "mean"),
    _forked("Mixed_7c", "max"),
    Tap("2048"),
)


class Unit(nn.Module):
    """A Conv of the graph."""

    def __init__(self, inside: int, step: Conv) -> None:
        super().__init__()
        kernel = (step.kernel, step.kernel) if isinstance(step.kernel, int) else step.kernel
        padding = tuple(side // 2 for side in kernel) if step.padded and step.stride == 1 else 0
        self.conv = nn.Conv2d(inside, step.channels, kernel, step.stride, padding, bias=False)
        self.bn = Norm(step.channels, EPS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.bn(self.conv(x)))


class InceptionGraph(nn.Module):
    """The network, whose state dict is that of the published weights."""

    def __init__(self) -> None:
        super().__init__()
        _grow(self, GRAPH, 3)
        self.fc = nn.Linear(DIMS["2048"], CLASSES)

    def forward(self, x: torch.Tensor, taps: Collection[str]) -> dict[str, torch.Tensor]:
        """The asked features of images (N, 3, 299, 299) about in -1..1; what no tap needs is not computed."""
        found: dict[str, torch.Tensor] = {}
        wanted = {"2048" if tap in OF_POOL else tap for tap in taps}
        for step in GRAPH:
            if wanted <= set(found):
                break
            x = _through(self, (step,), x, found)
        if OF_POOL & set(taps):
            found["logits_unbiased"] = functional.linear(found["2048"], self.fc.weight)
            found["logits"] = found["logits_unbiased"] + self.fc.bias
        return {tap: found[tap] for tap in taps}


def _grow(place: nn.Module, branch: Branch, channels: int) -> int:
    """Makes the convolutions of a branch; how many channels leave it."""
    for step in branch:
        if isinstance(step, Conv):
            place.add_module(step.name, Unit(channels, step))
            channels = step.channels
        elif isinstance(step, Block):
            inner = _inner(place, step, make=True)
            channels = sum([_grow(inner, one, channels) for one in step.branches])
    return channels


def _through(place: nn.Module, branch: Branch, x: torch.Tensor, found: dict[str, torch.Tensor]) -> torch.Tensor:
    for step in branch:
        if isinstance(step, Conv):
            x = place.get_submodule(step.name)(x)
        elif isinstance(step, Block):
            inner = _inner(place, step)
            x = torch.cat([_through(inner, one, x, found) for one in step.branches], 1)
        elif isinstance(step, Tap):
            found[step.name] = (
                _spatial(x) if step.name == "spatial" else functional.adaptive_avg_pool2d(x, 1)[..., 0, 0]
            )
        else:
            x = POOLS[step](x)
    return x


def _inner(place: nn.Module, block: Block, make: bool = False) -> nn.Module:
    """The module of a block: a fork inside a block has none of its own."""
    if make and block.name:
        place.add_module(block.name, nn.Module())
    return place.get_submodule(block.name)


def _spatial(x: torch.Tensor) -> torch.Tensor:
    """The first channels at every place, channels last as they were published."""
    return x[:, :SPATIAL_CHANNELS].permute(0, 2, 3, 1).flatten(1)


class Inception:
    """The features of FID, IS, KID and sFID: the columns of `taps` side by side.

    resize: the published way in which images become 299 x 299, one of `karat.networks.resize`.
    """

    name = "inception"

    def __init__(self, weights: Path, way: Way, taps: Sequence[str] = ("2048",), resize: str = "tf1") -> None:
        if not taps or not set(taps) <= set(DIMS):
            raise UsageError(f"Inception has no taps {'+'.join(taps)!r}: choose some of {', '.join(DIMS)}.")
        self.taps, self.way = tuple(taps), way
        self.resize = named(resize)
        graph = InceptionGraph()
        fill(graph, read_state(weights), weights, "FID's Inception v3")
        self.graph = way.settled(graph)
        ends = list(accumulate((DIMS[tap] for tap in taps), initial=0))
        self.columns = {tap: slice(*edges) for tap, edges in zip(taps, pairwise(ends), strict=True)}
        self.dims = ends[-1]
        resized = f"input:{resize}", f"taps:{'+'.join(taps)}"
        self.identity = "|".join((self.name, f"weights:{brief(weights)}", *resized, way.identity("pillow")))

    def features(self, images: Images) -> Array:
        """A row of all taps for each image."""
        given = pictures(images)
        return together(self.way.rows(len(given), lambda which: self._prepared(given[which]), self._forward), self.dims)

    def _prepared(self, images: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat([self.resize(stack.to(self.way.place), SIDE) for stack in stacks(images)])

    def _forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.cat(list(self.graph(inputs, self.taps).values()), 1)
