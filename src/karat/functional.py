"""Every metric as a function, derived from its class: `canny_f1(p, t, low=50)` is `CannyF1(low=50)(p, t)`.

Functions that a specification names itself (`compute_all_metrics` of radio maps) are here too. Where it names one of
images as a metric of features is called (`fid`, `inception_score`), what is given decides: images, arrays of more than
two axes or those of PIL, go through the network first and give a number, features give the scores of the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

from karat import image_sets, suites
from karat.given import pictured
from karat.metric import Metric, metrics, snake


def __getattr__(name: str) -> Callable[..., Any]:
    of_images = image_sets.FUNCTIONS.get(name)
    for kind in metrics().values():
        if snake(kind.__name__) == name:
            return _either(of_images, _function(kind)) if of_images else _function(kind)
    if of_images:
        return of_images
    if not name.startswith("_") and (own := suites.function(name)):
        return own
    raise AttributeError(f"module 'karat.functional' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*(snake(name) for name in metrics()), *image_sets.FUNCTIONS})


def _either(of_images: Callable[..., Any], of_features: Callable[..., Any]) -> Callable[..., Any]:
    """A function of images or of features, whichever it is given."""

    @wraps(of_images)
    def function(*given: Any, **named: Any) -> Any:
        images = any(map(pictured, (*given, *named.values())))
        return (of_images if images else of_features)(*given, **named)

    function.__doc__ = f"{of_images.__doc__}\n\nOf features: {of_features.__doc__}"
    return function


def _function(kind: type[Metric]) -> Callable[..., dict[str, float]]:
    parameters = {field.name for field in fields(kind)}

    def function(*arrays: Any, **named: Any) -> dict[str, float]:
        own = {name: value for name, value in named.items() if name in parameters}
        return kind(**own)(*arrays, **{name: value for name, value in named.items() if name not in own})

    function.__name__ = function.__qualname__ = snake(kind.__name__)
    function.__doc__ = kind.__doc__
    return function
