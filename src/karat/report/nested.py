"""Numbers by name and section, as other tools write them, as a table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError, told
from karat.score import plain_number
from karat.sources.stream import Array

MAX_LISTED = 32


def table(path: Path, found: Mapping[str, Any], every: bool) -> dict[str, Any]:
    """A row a number, named by its sections; with `every` also those of short lists, by their places."""
    rows: list[dict[str, Any]] = []
    left: list[str] = []
    for name, value in _leaves("", found):
        array = _numbers(value)
        if array is None or array.ndim > every or array.size > MAX_LISTED:
            left.append(name if array is None else f"{name} ({' x '.join(map(str, array.shape))})")
        elif array.ndim:
            rows += [_row(f"{name}[{place}]", one) for place, one in enumerate(array.tolist())]
        else:
            rows.append(_row(name, array.item()))
    if not rows:
        raise InputError(f"{told(path)} holds no numbers: choose a file of metrics.")
    if every:
        notes = [f"not shown: {told(', '.join(left))}."] if left else []
    else:
        notes = [f"{len(left)} lists are not shown; --all shows those of up to {MAX_LISTED} numbers."] if left else []
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"by": "metric", "rows": rows, "notes": notes, "signature": f"{told(path.name)} sha256:{content}"}


def _leaves(above: str, found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{above}{name}.", value)
        else:
            yield above + name, value


def _numbers(value: Any) -> Array | None:
    """Numbers, or lists of them, None being undefined; nothing of texts and ragged lists."""
    if isinstance(value, str | bytes) or (isinstance(value, np.ndarray) and value.dtype.kind not in "biuf"):
        return None
    try:
        return np.asarray(np.nan if value is None else value, np.float64)
    except (TypeError, ValueError):
        return None


def _row(name: str, value: float) -> dict[str, Any]:
    return {"metric": name, "value": plain_number(value)}
