"""JSON without the liberties that parsers take: no NaN, no repeated keys."""

from __future__ import annotations

import json
from typing import Any


def loads(data: bytes) -> Any:
    """The value of a strict UTF-8 JSON document; ValueError says what is wrong with it."""
    return json.loads(data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key[:40]!r} is repeated")
        result[key] = value
    return result
