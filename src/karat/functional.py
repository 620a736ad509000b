"""Every metric as a function, derived from its class: `canny_f1(p, t, low=50)` is `CannyF1(low=50)(p, t)`.

Functions that a specification names itself (`compute_all_metrics` of radio maps) are here too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from karat import suites
from karat.metric import Metric, metrics, snake


def __getattr__(name: str) -> Callable[..., Any]:
    for kind in metrics().values():
        if snake(kind.__name__) == name:
            return _function(kind)
    if not name.startswith("_") and (own := suites.function(name)):
        return own
    raise AttributeError(f"module 'karat.functional' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [snake(name) for name in metrics()]


def _function(kind: type[Metric]) -> Callable[..., dict[str, float]]:
    parameters = {field.name for field in fields(kind)}

    def function(*arrays: Any, **named: Any) -> dict[str, float]:
        own = {name: value for name, value in named.items() if name in parameters}
        return kind(**own)(*arrays, **{name: value for name, value in named.items() if name not in own})

    function.__name__ = function.__qualname__ = snake(kind.__name__)
    function.__doc__ = kind.__doc__
    return function
