"""Karat measures generated images, videos, spatial fields and poses against the truth.

Everything is loaded when it is first used: metrics by their class name (`karat.CannyF1`), their functions under
`karat.functional`, metrics that put images through a network (`karat.ClipScore`), and `evaluate`, `check`, `detect`,
`embed`, `Meter`, `Run`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "evaluate": "karat.evaluation",
    "check": "karat.checking",
    "detect": "karat.detection",
    "embed": "karat.embedding",
    "FrechetInceptionDistance": "karat.image_sets",
    "ImageInceptionScore": "karat.image_sets",
    "ClipScore": "karat.image_sets",
    "ClipDirectionalSimilarity": "karat.image_sets",
    "Run": "karat.run",
    "Meter": "karat.meter",
    "Metric": "karat.metric",
    "Statistic": "karat.metric",
    "Score": "karat.metric",
    "KaratError": "karat.errors",
    "InputError": "karat.errors",
    "UsageError": "karat.errors",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "functional":
        return import_module("karat.functional")
    if name[:1].isupper():
        from karat.metric import metrics

        if name in metrics():
            return metrics()[name]
    raise AttributeError(f"module 'karat' has no attribute {name!r}")


def __dir__() -> list[str]:
    from karat.metric import metrics

    return sorted([*_HOME, *metrics(), "functional", "__version__"])
