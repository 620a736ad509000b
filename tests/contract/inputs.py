"""Inputs of the contract: arrays as cases spell them, and example samples for any metric, by the kind of its fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.metric import Metric

Array = NDArray[Any]
FRAMES, HEIGHT, WIDTH = 3, 24, 32
LEVELS = (0.0, 0.2, 0.6)  # how bad a prediction is: not at all, somewhat, very


@dataclass(frozen=True)
class Sample:
    """Fields with frames on axis 0, and a foreground mask of the same frames."""

    id: str
    fields: Mapping[str, Array]
    mask: NDArray[np.bool_]

    def cut(self, frames: int) -> Sample:
        """The first frames."""
        return Sample(self.id, {name: array[:frames] for name, array in self.fields.items()}, self.mask[:frames])


@dataclass(frozen=True)
class Kind:
    """A kind of field: the suite's name of it, its truth, and a prediction that is `level` away from that truth."""

    source: str
    truth: Callable[[np.random.Generator], Array]
    worse: Callable[[Array, float, np.random.Generator], Array]


def _scene(rng: np.random.Generator) -> Array:
    """Bytes (T, H, W, 3): a gradient, and boxes that move."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    frames = np.stack([np.stack([3 * x + y, x + 4 * y, 90 + x - y], -1)] * FRAMES)
    for color in rng.integers(120, 256, (3, 3)):
        top, left = rng.integers(0, 14), rng.integers(0, 20)
        for t in range(FRAMES):
            frames[t, top : top + 8, left + t : left + t + 9] = color
    return frames.clip(0, 255).astype(np.uint8)


def _noisy(frames: Array, level: float, rng: np.random.Generator) -> Array:
    noise = rng.integers(0, 256, frames.shape)
    return np.rint(frames * (1 - level) + level * noise).astype(np.uint8)


def _relief(rng: np.random.Generator) -> Array:
    """Positive depth (T, H, W) with some holes of zero."""
    depth = np.repeat(rng.uniform(1, 9, (FRAMES, HEIGHT // 4, WIDTH // 4)), 4, axis=1).repeat(4, axis=2)
    return np.where(rng.random(depth.shape) < 0.05, 0.0, depth)


def _warped(depth: Array, level: float, rng: np.random.Generator) -> Array:
    return depth * np.exp(2 * level * rng.standard_normal(depth.shape))


def _patches(rng: np.random.Generator) -> Array:
    """Labels (T, H, W); the fourth is there in the last frame only, and is not the largest number."""
    labels = np.zeros((FRAMES, HEIGHT, WIDTH), np.int32)
    for label, left in ((1, 0), (5, 11), (9, 22)):
        top = int(rng.integers(0, 8))
        labels[:, top : top + 14, left : left + 9] = label
    labels[-1, -2:, 20:30] = 4
    return labels


def _moved(labels: Array, level: float, rng: np.random.Generator) -> Array:
    moved = np.roll(labels, round(level * 5), axis=1)
    return np.where(rng.random(labels.shape) < (1 - level) ** 3, moved, 0)


KINDS = {
    "": Kind("frames", _scene, _noisy),
    "_depth": Kind("depth", _relief, _warped),
    "_segments": Kind("segments", _patches, _moved),
}


def kind(field: str) -> Kind:
    """The kind of a field, by what follows `pred` or `truth` in its name."""
    ending = field.removeprefix("pred").removeprefix("truth")
    assert ending in KINDS, f"the contract has no example of {field!r}: add its kind to KINDS in {__file__}"
    return KINDS[ending]


def example(metric: Metric, seed: int = 0, samples: int = 3, level: float = LEVELS[1]) -> list[Sample]:
    """Samples that the metric can be called on; the same seed gives the same truth at every level."""
    return [_sample(metric, seed, number, level) for number in range(samples)]


def _sample(metric: Metric, seed: int, number: int, level: float) -> Sample:
    fields = {}
    for name in metric.statistic.fields():
        ending = name.removeprefix("pred").removeprefix("truth")
        key = (seed, number, *ending.encode())
        truth = kind(name).truth(np.random.default_rng(key))
        fields[name] = kind(name).worse(truth, level, np.random.default_rng((1, *key))) if _predicted(name) else truth
    mask = np.zeros((FRAMES, HEIGHT, WIDTH), bool)
    mask[:, 2:18, 3 + number : 21] = True
    return Sample("abcdefgh"[number], fields, mask)


def _predicted(field: str) -> bool:
    return field.startswith("pred")


def constant(metric: Metric) -> Iterator[Mapping[str, Array]]:
    """Fields without any structure: everything the least, and everything something else."""
    shapes = _sample(metric, 0, 0, 0.0).fields
    for value in (0, 7):
        yield {name: np.full_like(array, value) for name, array in shapes.items()}


def with_nan(fields: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """For every floating field: the fields with NaN in some of its pixels, and in all of its last frame."""
    found = {}
    for name, array in fields.items():
        if np.issubdtype(array.dtype, np.floating):
            holes = array.copy()
            holes[0, :3] = holes[-1] = np.nan
            found[name] = {**fields, name: holes}
    return found


def build(given: Mapping[str, Any], fields: Mapping[str, Array]) -> Array:
    """An INPUT of a cases file as an array; tests/cases/README.md says how they are spelled."""
    (how,) = set(given) - {"dtype", "rgb"}
    values = _BUILDERS[how](given[how], fields)
    array = values.astype(given.get("dtype", values.dtype))
    return np.repeat(array[..., None], 3, axis=-1) if given.get("rgb") else array


def _numbers(value: Any) -> Any:
    """Nested lists; null is NaN, and infinities are spelled as text."""
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return math.nan if value is None else float(value) if isinstance(value, str) else value


def _array(value: Any, _: Mapping[str, Array]) -> Array:
    return np.array(_numbers(value))


def _full(value: Mapping[str, Any], _: Mapping[str, Array]) -> Array:
    return np.full(value["shape"], _numbers(value["value"]))


def _noise(value: Mapping[str, Any], _: Mapping[str, Array]) -> Array:
    rng = np.random.default_rng(value["seed"])
    return rng.integers(value.get("low", 0), value.get("high", 255) + 1, value["shape"])


def _boxes(value: Mapping[str, Any], _: Mapping[str, Array]) -> Array:
    frames = np.full(value["shape"], value.get("around", 0))
    for frame, top, left, bottom, right, inside in value["boxes"]:
        frames[frame, top:bottom, left:right] = inside
    return frames


def _same(value: str, fields: Mapping[str, Array]) -> Array:
    return fields[value]


_BUILDERS: dict[str, Callable[[Any, Mapping[str, Array]], Array]] = {
    "array": _array,
    "full": _full,
    "noise": _noise,
    "boxes": _boxes,
    "same": _same,
}
