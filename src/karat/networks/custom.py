"""A feature network that a user brings: a function of images."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from karat.errors import UsageError, told
from karat.sources.guard import refusal
from karat.sources.stream import Array

from .features import Images, Way, pictures, together
from .weights import brief

Function = Callable[[torch.Tensor], Any]


class Custom:
    """What a function makes of images, bytes (batch, 3, H, W) on the device of the way: numbers (batch, dims).

    function: it, or where it is imported from, `module:path`. It may have an attribute `identity`, one line that says
    which weights it uses; its source file is part of the identity in any case. Images of a batch must have one size.
    dims: 0 before the first images.
    """

    def __init__(self, function: Function | str, way: Way) -> None:
        self.function = imported(function) if isinstance(function, str) else function
        if not callable(self.function):
            raise UsageError(f"{told(function)} cannot be called: name a function of images.")
        where = inspect.unwrap(self.function) if inspect.isroutine(self.function) else type(self.function)
        self.name = function if isinstance(function, str) else f"{where.__module__}:{where.__qualname__}"
        self.way, self.dims = way, 0
        source = _source(where)
        said = getattr(self.function, "identity", None)
        parts = (f"source:{brief(source)}" if source else "", told(said) if said else "", way.identity())
        self.identity = "|".join((told(self.name), *filter(None, parts)))

    def features(self, images: Images) -> Array:
        """A row for each image."""
        given = pictures(images)
        rows = list(self.way.rows(len(given), lambda which: _stacked(given[which]), self._forward, alone=False))
        return together(iter(rows), self.dims)

    def _forward(self, inputs: torch.Tensor) -> torch.Tensor:
        found = torch.as_tensor(self.function(inputs))
        if found.ndim != 2 or len(found) != len(inputs) or (self.dims and found.shape[1] != self.dims):
            raise refusal(
                self.name,
                f"gave {tuple(found.shape)} for {len(inputs)} images",
                f"({len(inputs)}, {self.dims or 'dims'}) was expected",
                "give a row of numbers for each image",
            )
        self.dims = found.shape[1]
        return found


def imported(path: str) -> Function:
    """What `module:path` names."""
    module, _, inside = path.partition(":")
    try:
        found: Any = import_module(module)
        for name in inside.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{told(path)} cannot be imported ({told(error)}): give module:path of a function.") from None
    return found  # type: ignore[no-any-return]


def _stacked(images: list[torch.Tensor]) -> torch.Tensor:
    if len({image.shape for image in images}) > 1:
        raise refusal(
            "a batch", "has images of several sizes", "one size was expected", "resize them, or set --batch 1"
        )
    return torch.stack(images)


def _source(where: Any) -> Path | None:
    try:
        file = inspect.getsourcefile(where)
    except TypeError:  # of what is built in
        return None
    return Path(file) if file and Path(file).is_file() else None
