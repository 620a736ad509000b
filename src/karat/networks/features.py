"""What every feature network has, and how all of them compute: in batches of one size, in a named precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import torch
from torch import nn

from karat.errors import InputError, UsageError
from karat.sources.guard import refusal
from karat.sources.stream import Array

from .device import enough_memory, placed
from .weights import stamps

Precision = Literal["float32", "tf32", "half"]
PRECISIONS = ("float32", "tf32", "half")

Images = Any  # bytes (N, 3, H, W), a tensor or an array, or a sequence of such pictures (3, H, W) of any sizes
Network = TypeVar("Network", bound=nn.Module)


class FeatureNetwork(Protocol):
    """A network that turns every image into a row of numbers.

    name: what it is called.  identity: all that its numbers hang on, in one line.  dims: how many numbers.
    """

    name: str
    identity: str
    dims: int

    def features(self, images: Images) -> Array:
        """A row of float32 (or float64) for each image: (N, dims)."""


@dataclass(frozen=True)
class Way:
    """How networks compute; all of it is part of their identity.

    device: the first GPU where none is named and one is there.  precision: "float32" is exact, "tf32" (on GPUs) keeps
    10 bits of every factor, "half" is float16.  batch: how many at once, however many there are.
    """

    device: str | None = None
    precision: Precision = "float32"
    batch: int = 32

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UsageError(f"--precision {self.precision} does not exist: choose {', '.join(PRECISIONS)}.")
        if self.batch < 1:
            raise UsageError(f"--batch starts at 1, not {self.batch}.")
        kind = self.place.type
        if self.precision == "tf32" and kind != "cuda":
            raise UsageError(f"--precision tf32 is one of GPUs, not of {kind}: choose float32.")

    @cached_property
    def place(self) -> torch.device:
        """Where it is computed."""
        return placed(self.device)[0]

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights, and of what flows through them."""
        return torch.float16 if self.precision == "half" else torch.float32

    @property
    def _layout(self) -> torch.memory_format:
        """How pictures lie in memory, which the last bits of their features hang on."""
        return torch.channels_last if self.place.type == "cuda" else torch.contiguous_format

    def identity(self, *libraries: str) -> str:
        """The part of an identity that says how it was computed, and by which versions."""
        return f"{self.precision}|{self.place.type}|batch:{self.batch}|{stamps('torch', *libraries)}"

    def settled(self, network: Network) -> Network:
        """The network where and as it computes."""
        network.to(self.place, self.dtype, memory_format=self._layout).eval().requires_grad_(False)
        return network

    def moved(self, inputs: torch.Tensor) -> torch.Tensor:
        """Inputs where and as the network takes them; whole numbers stay what they are."""
        layout = self._layout if inputs.ndim == 4 else torch.contiguous_format
        dtype = self.dtype if inputs.is_floating_point() else inputs.dtype
        return inputs.to(self.place, dtype).contiguous(memory_format=layout)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """No gradients, no arithmetic that is faster than was named, and always the same algorithms."""
        before, fast = torch.get_float32_matmul_precision(), self.precision == "tf32"
        torch.set_float32_matmul_precision("high" if fast else "highest")
        try:
            with (
                torch.inference_mode(),
                torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=fast),
                enough_memory(self.place, "lower --batch"),
            ):
                yield
        finally:
            torch.set_float32_matmul_precision(before)

    def rows(
        self,
        count: int,
        prepare: Callable[[slice], torch.Tensor],
        forward: Callable[[torch.Tensor], torch.Tensor],
        alone: bool = True,
    ) -> Iterator[Array]:
        """What `forward` gives of `count` things, batch by batch; `prepare` makes the inputs of those in a slice.

        What comes of a thing does not hang on which others there are. On a CPU each goes through by itself, in one
        thread: the last bits of a product hang on where in a batch and in how many threads it is computed. Elsewhere,
        and where it may not be called in threads (not `alone`), every batch has one size, the last thing repeated.
        """
        run = self._singly if alone and self.place.type == "cpu" else self._whole
        for start in range(0, count, self.batch):
            with self.computing():
                found = run(prepare(slice(start, min(start + self.batch, count))), forward)
                rows = found.to("cpu", torch.promote_types(found.dtype, torch.float32)).numpy()
            usable = np.isfinite(rows).reshape(len(rows), -1).all(axis=1)
            if not usable.all():
                raise InputError(
                    f"Number {start + int(usable.argmin())} (the first is 0) has features that are not finite in "
                    f"--precision {self.precision}: choose another, or check the weights."
                )
            yield rows

    def _whole(self, inputs: torch.Tensor, forward: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        filling = inputs[-1:].expand(self.batch - len(inputs), *inputs.shape[1:])
        return forward(self.moved(torch.cat([inputs, filling])))[: len(inputs)]

    def _singly(self, inputs: torch.Tensor, forward: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        def one(own: torch.Tensor) -> torch.Tensor:
            with torch.inference_mode():
                return forward(self.moved(own))

        threads = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                return torch.cat(list(pool.map(one, inputs.split(1))))
        finally:
            torch.set_num_threads(threads)  # those that begin later take over what was set last, anywhere


def together(rows: Iterator[Array], dims: int) -> Array:
    """All rows as one array, (0, dims) where there are none."""
    return np.concatenate([np.zeros((0, dims), np.float32), *rows])


def pictures(images: Images) -> list[torch.Tensor]:
    """The images one by one, once they are known to be bytes (3, H, W)."""
    found = [one if isinstance(one, torch.Tensor) else _tensor(one) for one in images]
    for place, one in enumerate(found):
        if one.dtype != torch.uint8 or one.ndim != 3 or one.shape[0] != 3 or not one.numel():
            kind = f"{str(one.dtype).removeprefix('torch.')} {tuple(one.shape)}"
            raise refusal(
                f"image {place}", f"is {kind}", "uint8 (3, height, width) was expected", "convert it, channels first"
            )
    return found


def stacks(images: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Pictures next to each other of one size, as one tensor (n, 3, H, W)."""
    for _, alike in groupby(images, key=lambda one: one.shape):
        yield torch.stack(list(alike))


def _tensor(image: Any) -> torch.Tensor:
    return torch.from_numpy(np.require(image, requirements="W"))  # torch takes no read-only arrays
