"""EfficientNet-Lite0, a small network of ImageNet: 1280 features of an image. Tan & Le 2019, arXiv:1905.11946."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from karat.sources.stream import Array

from .features import Images, Way, pictures, stacks, together
from .layers import Norm
from .resize import small
from .state import fill, read_state
from .weights import brief

SIDE = 224
EPS = 1e-3
STEM, HEAD, CLASSES = 32, 1280, 1000
# (blocks, kernel, stride of the first, expansion, channels)
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class Same(nn.Conv2d):
    """A convolution without bias of which ceil(input / stride) pixels come, an odd one of padding at the far edge."""

    def __init__(self, inside: int, outside: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inside, outside, kernel, stride, groups=groups, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        edges: list[int] = []
        for side in (x.shape[3], x.shape[2]):
            missing = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            edges += missing // 2, missing - missing // 2
        return super().forward(functional.pad(x, edges) if any(edges) else x)


class Block(nn.Module):
    """Channels are expanded, filtered each by itself and projected; added to what came in where it has that size."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inside * expansion
        self.expands, self.adds = expansion > 1, stride == 1 and inside == outside
        if self.expands:
            self._expand_conv, self._bn0 = Same(inside, inner), Norm(inner, EPS)
        self._depthwise_conv, self._bn1 = Same(inner, inner, kernel, stride, groups=inner), Norm(inner, EPS)
        self._project_conv, self._bn2 = Same(inner, outside), Norm(outside, EPS)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        x = functional.relu6(self._bn0(self._expand_conv(given))) if self.expands else given
        x = functional.relu6(self._bn1(self._depthwise_conv(x)))
        x = self._bn2(self._project_conv(x))
        return x + given if self.adds else x


class EfficientNetLite(nn.Module):
    """The network, whose state dict is that of the published weights."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = Same(3, STEM, 3, 2), Norm(STEM, EPS)
        self._blocks = nn.ModuleList()
        channels = STEM
        for blocks, kernel, stride, expansion, outside in STAGES:
            for number in range(blocks):
                self._blocks.append(Block(channels, outside, kernel, 1 if number else stride, expansion))
                channels = outside
        self._conv_head, self._bn1 = Same(channels, HEAD), Norm(HEAD, EPS)
        self._fc = nn.Linear(HEAD, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The pooled features of images (N, 3, 224, 224) about in -1..1."""
        x = functional.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        x = functional.relu6(self._bn1(self._conv_head(x)))
        return functional.adaptive_avg_pool2d(x, 1).flatten(1)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Of the thousand classes of ImageNet."""
        scores: torch.Tensor = self._fc(features)
        return scores


class EfficientNet:
    """The pooled features of EfficientNet-Lite0; images are resized as a whole, with an antialiased bilinear filter."""

    name = "efficientnet-lite0"
    dims = HEAD

    def __init__(self, weights: Path, way: Way) -> None:
        self.way = way
        graph = EfficientNetLite()
        fill(graph, read_state(weights), weights, "EfficientNet-Lite0")
        self.graph = way.settled(graph)
        self.identity = f"{self.name}|weights:{brief(weights)}|input:antialiased 224|{way.identity()}"

    def features(self, images: Images) -> Array:
        """A row for each image."""
        given = pictures(images)
        return together(self.way.rows(len(given), lambda which: self._prepared(given[which]), self.graph), self.dims)

    def _prepared(self, images: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat([small(stack.to(self.way.place), SIDE) for stack in stacks(images)])
