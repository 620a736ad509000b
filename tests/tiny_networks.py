"""Feature networks that are small enough to be drawn at random, saved as published ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_detectors import LETTERS, SMALL
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

SIDE = 32
TOKENS = {"clip": 77, "siglip": 16}
END = "<|endoftext|>"


def save(kind: str, folder: Path, **given: Any) -> Path:
    """The model of that kind, and what prepares its inputs."""
    torch.manual_seed(0)
    folder.mkdir(parents=True)
    {"clip": clip, "siglip": siglip, "dinov2": dinov2}[kind](folder, **given)
    return folder


def clip(folder: Path) -> None:
    """CLIP with a vocabulary of letters and the ends of the published one."""
    pieces = [*LETTERS, *(letter + "</w>" for letter in LETTERS), "<|startoftext|>", END]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), pad_token=END)
    start, end = len(pieces) - 2, len(pieces) - 1
    config = transformers.CLIPConfig(
        text_config=SMALL
        | {"vocab_size": len(pieces), "max_position_embeddings": TOKENS["clip"]}
        | {"bos_token_id": start, "eos_token_id": end, "pad_token_id": end},
        vision_config=SMALL | {"image_size": SIDE, "patch_size": 16},
        projection_dim=24,
    )
    picture = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    transformers.CLIPModel(config).save_pretrained(folder)
    transformers.CLIPProcessor(picture, tokenizer).save_pretrained(folder)


def siglip(folder: Path) -> None:
    """SigLIP with a vocabulary of words."""
    words = ["<pad>", "</s>", "<unk>", "a", "photo", "of", "cat", "dog"]
    whole = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    whole.pre_tokenizer = pre_tokenizers.Whitespace()
    whole.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    config = transformers.SiglipConfig(
        text_config=SMALL
        | {"vocab_size": len(words), "max_position_embeddings": TOKENS["siglip"], "projection_size": 32}
        | {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0},
        vision_config=SMALL | {"image_size": SIDE, "patch_size": 16},
    )
    picture = SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    transformers.SiglipModel(config).save_pretrained(folder)
    transformers.SiglipProcessor(picture, tokenizer).save_pretrained(folder)


def dinov2(folder: Path, side: int = 112) -> None:
    """DINOv2 trained on images of that side."""
    config = transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=side, patch_size=14
    )
    model = transformers.Dinov2Model(config)
    torch.nn.init.normal_(model.embeddings.position_embeddings)  # they begin as zeros
    model.save_pretrained(folder)
