"""Zero-shot detectors of transformers: the best box of a prompt in every frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

from karat.errors import InputError
from karat.sources.guard import guarded, refusal
from karat.sources.stream import Array

from .device import enough_memory, placed, precision
from .weights import Weights, check_loaded, check_vocabulary, quiet, versions

DOTTED = ("grounding-dino", "mm-grounding-dino")  # they read phrases in lower case, each ended by a dot

Advance = Callable[[int], None]  # is told how many more frames are done


class Found(NamedTuple):
    """The best box (x1, y1, x2, y2) of a frame, in its pixels, and its score; None where there is none."""

    box: list[float] | None = None
    score: float | None = None


@dataclass(frozen=True)
class Batch:
    """What the model takes: as many frames as every batch has, of which the first `count` are meant."""

    inputs: Any
    size: tuple[int, int]
    count: int


class Detector:
    """A network that finds in frames what a text names.

    Every batch has `batch` frames, the last one of a video repeats its last frame: so the bits of what is found in a
    frame hang on that frame and its place in the video, not on how long the video is.
    """

    def __init__(self, weights: Weights, device: str | None, threshold: float, batch: int) -> None:
        self.device, self.dtype = placed(device)
        self.threshold, self.batch = threshold, batch
        check_vocabulary(weights)
        with quiet(), guarded(weights.folder, "a zero-shot detector of transformers"):
            # Whether torchvision is installed must not decide how frames are resized.
            self.processor = AutoProcessor.from_pretrained(
                weights.folder, backend="pil", local_files_only=True, trust_remote_code=False
            )
            model, report = AutoModelForZeroShotObjectDetection.from_pretrained(
                weights.folder, dtype=self.dtype, **weights.arguments()
            )
        check_loaded(weights, model, report)
        self.model = model.to(self.device).eval()
        named = type(model).__name__, type(self.processor.image_processor).__name__
        computed = f"threshold:{threshold}", precision(self.dtype), self.device.type, f"batch:{batch}"
        self.identity = "|".join((weights.identity(), *named, *computed, versions()))

    def prepare(self, frames: Iterable[Array], text: str) -> Iterator[Batch]:
        """The frames (H, W, 3) uint8 as the model takes them; this may run in another thread, ahead of it."""
        asked, coming = self._spelled(text), iter(frames)
        while meant := list(islice(coming, self.batch)):
            whole = meant + meant[-1:] * (self.batch - len(meant))
            inputs = self.processor(images=whole, text=[asked] * self.batch, return_tensors="pt")
            height, width = meant[0].shape[:2]
            yield Batch(inputs, (height, width), len(meant))

    def find(self, batches: Iterable[Batch], text: str, advance: Advance) -> list[Found]:  # noqa: ARG002
        """What is found in each of the frames; `text` is in the batches."""
        found = []
        with torch.inference_mode(), enough_memory(self.device, "lower --batch"):
            for batch in batches:
                outputs = self.model(**{name: self._moved(value) for name, value in batch.inputs.items()})
                boxes = self._boxes(outputs, batch.size)[: batch.count]
                found += [best(one["boxes"], one["scores"], batch.size) for one in boxes]
                advance(batch.count)
        return found

    def _boxes(self, outputs: Any, size: tuple[int, int]) -> Any:
        for name, value in list(outputs.items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                outputs[name] = value.float()
        if any(outputs[name].isnan().any() for name in ("logits", "pred_boxes") if name in outputs):
            raise InputError(f"The detector gives NaN in {precision(self.dtype)}: try --device cpu.")
        return self.processor.post_process_grounded_object_detection(
            outputs, threshold=self.threshold, target_sizes=[size] * self.batch
        )

    def _moved(self, value: torch.Tensor) -> torch.Tensor:
        return value.to(self.device, self.dtype if value.is_floating_point() else None)

    def _spelled(self, text: str) -> Any:
        dotted = self.model.config.model_type in DOTTED
        asked = f"{text.lower().strip().rstrip('.')}." if dotted else text
        tokenizer = self.processor.tokenizer
        tokens, most = len(tokenizer(asked, verbose=False)["input_ids"]), tokenizer.model_max_length
        if tokens > most:
            raise refusal(
                f"the prompt {asked!r}", f"has {tokens} tokens", f"the detector reads at most {most}", "shorten it"
            )
        return asked if dotted else [asked]


def best(boxes: torch.Tensor, scores: torch.Tensor, size: tuple[int, int]) -> Found:
    """The box with the highest score, clipped to the frame: what a network sees of the padding is not in it."""
    if not len(scores):
        return Found()
    place = int(scores.argmax())
    sides = (size[1], size[0]) * 2
    box = [min(max(0.0, one), float(side)) for one, side in zip(boxes[place].tolist(), sides, strict=True)]
    return Found(box, float(scores[place]))
