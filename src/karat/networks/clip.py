"""CLIP and SigLIP of transformers: embeddings of images and of texts, as projected and not normalised."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import torch
from transformers import AutoModel, AutoProcessor

from karat.errors import UsageError, told
from karat.sources.guard import guarded, refusal
from karat.sources.stream import Array

from .features import Images, Way, pictures, together
from .weights import PIECES, Weights, check_loaded, check_vocabulary, quiet

KINDS = ("clip", "siglip")


class Texts(NamedTuple):
    """Embeddings of texts (N, dims), and which of them were longer than the network reads (N,)."""

    features: Array
    truncated: Array


class Clip:
    """A network that puts images and texts into one space.

    Texts are padded to the most tokens that the network reads (77 for CLIP); what is longer loses its last words, never
    the token that ends it, from which the embedding is taken.
    """

    def __init__(self, weights: Weights, way: Way) -> None:
        self.name, self.way = weights.name, way
        if weights.model_type not in KINDS:
            raise refusal(
                weights.folder,
                f"holds a network of type {weights.model_type}",
                f"one of {', '.join(KINDS)} was expected",
                "choose another",
            )
        check_vocabulary(weights)
        if (weights.folder / PIECES).is_file() and not (find_spec("sentencepiece") and find_spec("google")):
            raise UsageError(
                f"{told(weights.name)} needs sentencepiece and protobuf, which are not both installed: "
                "pip install sentencepiece protobuf."
            )
        with quiet(), guarded(weights.folder, "a CLIP or SigLIP of transformers"):
            # Whether torchvision is installed must not decide how images are resized.
            processor = AutoProcessor.from_pretrained(
                weights.folder, backend="pil", local_files_only=True, trust_remote_code=False
            )
            network, report = AutoModel.from_pretrained(
                weights.folder, dtype=way.dtype, attn_implementation="eager", **weights.arguments()
            )
        check_loaded(weights, network, report)
        self.network = way.settled(network)
        self.picture, self.tokenizer = processor.image_processor, processor.tokenizer
        self.most = int(network.config.text_config.max_position_embeddings)
        joint = network.config.model_type == "clip"
        self.dims = int(network.config.projection_dim if joint else network.config.vision_config.hidden_size)
        named = type(network).__name__, f"input:{type(self.picture).__name__}"
        self.identity = "|".join((weights.identity(), *named, way.identity("transformers", "pillow")))

    def features(self, images: Images) -> Array:
        """A row for each image."""
        given = pictures(images)
        return together(self.way.rows(len(given), lambda which: self._seen(given[which]), self._of_images), self.dims)

    def texts(self, texts: Sequence[str]) -> Texts:
        """A row for each text."""
        tokens = [self.tokenizer(text, verbose=False)["input_ids"] for text in texts]
        rows = self.way.rows(len(texts), lambda which: self._read(texts[which]), self._of_texts)
        return Texts(together(rows, self.dims), np.array([len(one) > self.most for one in tokens], bool))

    def _seen(self, images: list[torch.Tensor]) -> torch.Tensor:
        frames = [image.permute(1, 2, 0).cpu().numpy() for image in images]
        seen: torch.Tensor = self.picture(frames, input_data_format="channels_last", return_tensors="pt")[
            "pixel_values"
        ]
        return seen

    def _read(self, texts: Sequence[str]) -> torch.Tensor:
        """Numbers of tokens and the mask of those that are not padding, side by side: (N, 2, tokens)."""
        read = self.tokenizer(
            list(texts),
            padding="max_length",
            truncation=True,
            max_length=self.most,
            return_attention_mask=True,
            return_tensors="pt",
        )
        return torch.stack([read["input_ids"], read["attention_mask"]], 1)

    def _of_images(self, inputs: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.network.get_image_features(pixel_values=inputs).pooler_output
        return found

    def _of_texts(self, inputs: torch.Tensor) -> torch.Tensor:
        tokens, mask = inputs.unbind(1)
        # SigLIP was trained to read its padding.
        given = {"attention_mask": mask} if self.network.config.model_type == "clip" else {}
        found: torch.Tensor = self.network.get_text_features(input_ids=tokens, **given).pooler_output
        return found
