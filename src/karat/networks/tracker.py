"""SAM 3 for videos: a text's objects, found and followed through the frames; the best one's box in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from transformers import Sam3VideoModel, Sam3VideoProcessor
from transformers.models.sam3_video import modeling_sam3_video

from karat.errors import UsageError
from karat.sources.guard import MAX_WHOLE_BYTES, guarded, refusal
from karat.sources.stream import Array

from .detector import Advance, Found, best
from .device import enough_memory, placed, precision
from .weights import Weights, check_loaded, check_vocabulary, quiet, versions


class Frame(NamedTuple):
    """A frame as the model takes it, and its own height and width."""

    pixels: torch.Tensor
    size: tuple[int, int]


class Tracker:
    """A network that follows what a text names through a whole video, whose frames it keeps in memory."""

    def __init__(self, weights: Weights, device: str | None, threshold: float) -> None:
        if find_spec("torchvision") is None:
            raise UsageError("SAM 3 needs torchvision, which is not installed: pip install torchvision.")
        self.device, self.dtype = placed(device)
        self.threshold = threshold
        # Else code fetched from the hub would run, and the numbers would hang on whether it could be fetched.
        modeling_sam3_video.cv_utils_kernel = False
        check_vocabulary(weights)
        with quiet(), guarded(weights.folder, "SAM 3 for videos"):
            self.processor = Sam3VideoProcessor.from_pretrained(weights.folder, local_files_only=True)
            model, report = Sam3VideoModel.from_pretrained(weights.folder, dtype=self.dtype, **weights.arguments())
        check_loaded(weights, model, report)
        self.model = model.to(self.device).eval()
        named = type(model).__name__, type(self.processor.video_processor).__name__
        computed = f"threshold:{threshold}", precision(self.dtype), self.device.type
        self.identity = "|".join((weights.identity(), *named, *computed, versions("torchvision")))

    def prepare(self, frames: Iterable[Array], text: str) -> Iterator[Frame]:  # noqa: ARG002  (the session has it)
        """The frames (H, W, 3) uint8 as the model takes them; this may run in another thread, ahead of it."""
        for frame in frames:
            (pixels,) = self.processor.video_processor(videos=[frame[None]], return_tensors="pt").pixel_values_videos[0]
            height, width = frame.shape[:2]
            yield Frame(pixels.to(self.dtype), (height, width))

    def find(self, frames: Iterable[Frame], text: str, advance: Advance) -> list[Found]:
        """The box of the object with the highest score in each of the frames."""
        with (
            torch.inference_mode(),
            enough_memory(self.device, "cut the videos, or choose a detector of single frames"),
        ):
            session = self._session(frames, text)
            size = session.video_height, session.video_width
            found = []
            for output in self.model.propagate_in_video_iterator(session):
                found.append(self._best(self.processor.postprocess_outputs(session, output), size))
                advance(1)
        return found

    def _session(self, frames: Iterable[Frame], text: str) -> Any:
        session = self.processor.init_video_session(
            inference_device=self.device, video_storage_device="cpu", dtype=self.dtype
        )
        self.processor.add_text_prompt(session, text)
        kept = 0
        for number, (pixels, size) in enumerate(frames):
            kept += pixels.nbytes
            if kept > MAX_WHOLE_BYTES:
                raise refusal(
                    "the video", f"has over {number} frames", f"at most {MAX_WHOLE_BYTES} bytes are kept", "cut it"
                )
            session.video_height, session.video_width = size
            session.add_new_frame(pixels)
        return session

    def _best(self, one: Any, size: tuple[int, int]) -> Found:
        scores, boxes = one["scores"].float(), one["boxes"].float().cpu()
        above = scores > self.threshold
        # They reach from the first to the last pixel of a mask, whose far edges are one further.
        return best(boxes[above] + torch.tensor([0.0, 0.0, 1.0, 1.0]), scores[above], size)
