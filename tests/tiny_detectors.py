"""Detectors of every kind that are small enough to be drawn at random, saved as published ones are."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.grounding_dino.image_processing_pil_grounding_dino import GroundingDinoImageProcessorPil
from transformers.models.owlv2.image_processing_pil_owlv2 import Owlv2ImageProcessorPil
from transformers.models.owlvit.image_processing_pil_owlvit import OwlViTImageProcessorPil

LETTERS = string.ascii_lowercase
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


def save(kind: str, folder: Path) -> Path:
    """The model of that kind, its tokenizer and its image processor."""
    torch.manual_seed(0)
    words = folder.with_name(f"{kind}-words")
    words.mkdir(parents=True)
    model, processor = grounding_dino(words) if kind == "grounding-dino" else owl(kind, words)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def owl(kind: str, words: Path) -> tuple[Any, Any]:
    """OWL-ViT or OWLv2, which pads frames to squares."""
    name, picture = {"owlvit": ("OwlViT", OwlViTImageProcessorPil), "owlv2": ("Owlv2", Owlv2ImageProcessorPil)}[kind]
    pieces = [*LETTERS, *(letter + "</w>" for letter in LETTERS), "<|startoftext|>", "<|endoftext|>", "!"]
    (words / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    (words / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = transformers.CLIPTokenizer(
        str(words / "vocab.json"), str(words / "merges.txt"), model_max_length=16, pad_token="!"
    )
    ends = {"bos_token_id": len(pieces) - 3, "eos_token_id": len(pieces) - 2, "pad_token_id": len(pieces) - 1}
    config = getattr(transformers, f"{name}Config")(
        text_config=SMALL | ends | {"vocab_size": len(pieces), "max_position_embeddings": 16},
        vision_config=SMALL | {"image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    model = getattr(transformers, f"{name}ForObjectDetection")(config)
    with torch.no_grad():  # scores and boxes of all sizes, none of them at the end of its range
        for part in (model.box_head, model.class_head):
            for parameter in part.parameters():
                parameter.mul_(0.2)
    return model, getattr(transformers, f"{name}Processor")(picture(size={"height": 64, "width": 64}), tokenizer)


def grounding_dino(words: Path) -> tuple[Any, Any]:
    """Grounding DINO on a Swin of four layers and a BERT of two."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *LETTERS, *("##" + letter for letter in LETTERS)]
    (words / "vocab.txt").write_text("\n".join(pieces))
    tokenizer = transformers.BertTokenizer(str(words / "vocab.txt"), model_max_length=32)
    backbone = transformers.SwinConfig(
        image_size=64, embed_dim=16, depths=[1] * 4, num_heads=[1, 1, 2, 2], window_size=4, out_indices=[2, 3, 4]
    )
    sides = {f"{side}_{what}": 2 for side in ("encoder", "decoder") for what in ("layers", "attention_heads")}
    config = transformers.GroundingDinoConfig(
        backbone_config=backbone,
        text_config=SMALL | {"model_type": "bert", "vocab_size": len(pieces), "max_position_embeddings": 64},
        **sides,
        d_model=32,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=20,
        max_text_len=32,
    )
    picture = GroundingDinoImageProcessorPil(size={"shortest_edge": 64, "longest_edge": 96})
    model = transformers.GroundingDinoForObjectDetection(config)
    with torch.no_grad():
        model.model.text_projection.weight.mul_(0.2)
        for head in model.bbox_embed:
            torch.nn.init.normal_(head.layers[-1].weight, std=0.2)
    return model, transformers.GroundingDinoProcessor(picture, tokenizer)
