"""Where a network computes, and in which precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from karat.errors import UsageError


def placed(device: str | None) -> tuple[torch.device, torch.dtype]:
    """The device, the first GPU where none is named and one is there; float32 on a CPU, half precision elsewhere."""
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        wanted = torch.device(name)
        torch.zeros(1, device=wanted).item()
    except Exception as error:  # RuntimeError, AssertionError, NotImplementedError: one for each kind of device
        why = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise UsageError(f"--device {name} cannot be used here ({why}): choose cpu, or cuda where a GPU is.") from None
    return wanted, torch.float32 if wanted.type == "cpu" else torch.float16


def precision(dtype: torch.dtype) -> str:
    """float32, float16."""
    return str(dtype).removeprefix("torch.")


@contextmanager
def enough_memory(device: torch.device, remedy: str) -> Iterator[None]:
    """Ends the whole command where the device is too small for a batch: every video would fail alike."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise UsageError(f"The network does not fit into the memory of {device}: {remedy}.") from None
