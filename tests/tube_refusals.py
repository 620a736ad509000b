"""What the tests of hostile boxes and masks share: records, files, and the form that a refusal must have."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.errors import KaratError
from karat.run import Run

MIB = 1 << 20
WIDTH, HEIGHT, FRAMES = 40, 20, 4
ASKED = [[0.25, 0.25, 0.75, 0.75]] * FRAMES
FOUND = [[10, 5, 30, 15]] * FRAMES
TRUTH = [{"id": 1, "bboxes": ASKED}, {"id": 2, "bboxes": ASKED}]


def good(own: int = 2, **changed: Any) -> dict[str, Any]:
    """A record that can be read, some of it changed; None leaves it out, and masks are in the place of boxes."""
    boxes = {} if {"mask", "masks"} & set(changed) else {"bboxes": FOUND}
    record = {"id": own, "width": WIDTH, "height": HEIGHT, **boxes, **changed}
    return {name: value for name, value in record.items() if value is not None}


def masked(**changed: Any) -> dict[str, Any]:
    return good(bboxes=None, width=None, height=None, **changed)


def one_sentence(message: str) -> str:
    assert message.isprintable()
    assert len(message) < 1000
    assert message.endswith(".")
    assert "Traceback" not in message
    return message


def bounded(action: Callable[[], Any], memory: int = 64 * MIB) -> Any:
    """What the action returns, after checking the memory that it took."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = action()
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()
    return result


def refused(action: Callable[[], Any], memory: int = 64 * MIB) -> str:
    """The sentence that the action ends in."""

    def ended() -> str:
        with pytest.raises(KaratError) as caught:
            action()
        return one_sentence(str(caught.value))

    said: str = bounded(ended, memory)
    return said


def run(pred: Any, truth: Any = TRUTH, protocol: str = "spec") -> Run:
    return karat.evaluate("control", truth=truth, pred=pred, protocol=protocol, workers=1)


def strictly(pred: Any, truth: Any = TRUTH[:1]) -> Run:
    """An evaluation of one record that ends where that cannot be read."""
    return karat.evaluate("control", truth=truth, pred=pred, workers=1, strict=True)


def costs_itself(pred: Any, memory: int = 64 * MIB) -> str:
    """Why the first of two records fails, after checking that the second is scored."""
    result = bounded(lambda: run(pred), memory)
    (failure,) = result.failures
    assert failure.sample == "1"
    value = result.scores["ap50"]
    assert (value.value, value.n, value.failed) == (1, 1, 1)
    return one_sentence(failure.reason)


def at(path: Path, data: bytes | str | list[Any]) -> Path:
    """A file of these bytes, or of these records."""
    content = json.dumps(data) if isinstance(data, list) else data
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
