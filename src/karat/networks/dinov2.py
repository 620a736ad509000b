"""DINOv2 of transformers: the class token of an image, as the Frechet distance on DINOv2 takes it.

Stein et al. 2023, arXiv:2306.04675.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn import functional
from transformers import AutoModel

from karat.sources.guard import guarded, refusal
from karat.sources.stream import Array

from .features import Images, Way, pictures, together
from .weights import Weights, check_loaded, quiet

SIDE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OFFSET = 0.1  # of the grid, as in the published network


class Dinov2:
    """The class token of DINOv2, after its last normalisation.

    Input "fd-dinov2": the whole image is resized to 224 x 224 by pillow's bicubic filter, rounded to bytes, divided by
    255 and brought to the mean and deviation of ImageNet. Positions are interpolated once, with the offset of the
    published network, which transformers leaves out.
    """

    def __init__(self, weights: Weights, way: Way) -> None:
        self.name, self.way = weights.name, way
        if weights.model_type != "dinov2":
            raise refusal(
                weights.folder, f"holds a network of type {weights.model_type}", "dinov2 was expected", "choose another"
            )
        with quiet(), guarded(weights.folder, "a DINOv2 of transformers"):
            network, report = AutoModel.from_pretrained(
                weights.folder, dtype=way.dtype, attn_implementation="eager", **weights.arguments()
            )
        check_loaded(weights, network, report)
        _place(network)
        self.network = way.settled(network)
        self.dims = int(network.config.hidden_size)
        named = type(network).__name__, "input:fd-dinov2"
        self.identity = "|".join((weights.identity(), *named, way.identity("transformers", "pillow")))

    def features(self, images: Images) -> Array:
        """A row for each image."""
        given = pictures(images)
        return together(self.way.rows(len(given), lambda which: prepared(given[which]), self._forward), self.dims)

    def _forward(self, inputs: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.network(pixel_values=inputs).last_hidden_state[:, 0]
        return found


def prepared(images: list[torch.Tensor]) -> torch.Tensor:
    """The images as input "fd-dinov2"."""
    frames = [Image.fromarray(image.permute(1, 2, 0).cpu().contiguous().numpy()) for image in images]
    resized = np.stack([np.asarray(frame.resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for frame in frames])
    x = torch.from_numpy(resized).permute(0, 3, 1, 2) / 255
    return (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]


def _place(network: Any) -> None:
    """Gives every patch of the input its position."""
    embeddings = network.embeddings
    whole = embeddings.position_embeddings.data.float()
    first, grid = whole[:, :1], whole[:, 1:]
    before, after = round(grid.shape[1] ** 0.5), SIDE // network.config.patch_size
    if before != after:
        square = grid.reshape(1, before, before, -1).permute(0, 3, 1, 2)
        share = (after + OFFSET) / before
        grid = (
            functional.interpolate(square, scale_factor=(share, share), mode="bicubic")
            .permute(0, 2, 3, 1)
            .flatten(1, 2)
        )
        placed = torch.cat([first, grid], 1).to(embeddings.position_embeddings.dtype)
        embeddings.position_embeddings = torch.nn.Parameter(placed)
