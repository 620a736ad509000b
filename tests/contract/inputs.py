"""Inputs of the contract: as cases spell them, and example samples for any metric, by the kind of its fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.metric import Metric
from karat.sources.aligned_sets import AlignedSet, make_aligned
from karat.sources.feature_sets import FeatureSet, make_features
from karat.sources.instance_masks import InstanceMasks, make_instances
from karat.sources.kinds import RECORDS
from karat.sources.poses import Poses, make_poses
from karat.sources.tubes import Tube, make_tube

Array = NDArray[Any]
FRAMES, HEIGHT, WIDTH = 3, 24, 32
LEVELS = (0.0, 0.2, 0.6)  # how bad a prediction is: not at all, somewhat, very
SPELLED = {None: math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Sample:
    """Fields with frames on axis 0, or records, and a foreground mask of the same frames."""

    id: str
    fields: Mapping[str, Any]
    mask: NDArray[np.bool_]

    def cut(self, frames: int) -> Sample:
        """The first frames."""
        cut = {name: _first(field, frames) for name, field in self.fields.items()}
        return Sample(self.id, cut, self.mask[:frames])


def _first(field: Any, frames: int) -> Any:
    return field[:frames] if isinstance(field, np.ndarray) else field.select(frames, 1)


def stacked(values: list[Any]) -> Any:
    """A batch: one array with an axis of samples, or a list of records."""
    return np.stack(values) if isinstance(values[0], np.ndarray) else values


@dataclass(frozen=True)
class Kind:
    """A kind of field: the suite's name of it, its truth, and a prediction that is `level` away from that truth."""

    source: str
    truth: Callable[[np.random.Generator], Any]
    worse: Callable[[Any, float, np.random.Generator], Any]


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


def _spread(rng: np.random.Generator) -> Array:
    """Standard deviations (T, H, W) above 0."""
    return rng.uniform(1, 4, (FRAMES, HEIGHT, WIDTH))


def _wider(spread: Array, level: float, _: np.random.Generator) -> Array:
    return spread * (1 + level)


def _copies(rng: np.random.Generator) -> Array:
    """Samples (T, N, H, W) of a map that are the map itself."""
    return np.repeat(_signal(rng)[:, None], 5, axis=1)


NODES = ("nose", "left_shoulder", "right_hip", "tail")
ANIMALS = 3


def _animals(rng: np.random.Generator) -> Poses:
    """Animals that walk apart from each other, with tracks; one node of each is not labelled in some frame."""
    start = np.array([[100.0, 120], [300, 150], [220, 400]]) + rng.uniform(-9, 9, (ANIMALS, 2))
    body = np.array([[0.0, -30], [-15, -5], [15, 15], [4, 40]])
    steps = np.arange(FRAMES)[:, None, None, None] * rng.uniform(-4, 4, (ANIMALS, 1, 2))
    points = start[:, None] + body + steps + rng.uniform(-3, 3, (FRAMES, ANIMALS, len(NODES), 2))
    for animal in range(ANIMALS):
        points[animal % FRAMES, animal, animal] = np.nan
    frame, track = np.repeat(np.arange(FRAMES), ANIMALS), np.tile(np.arange(ANIMALS), FRAMES)
    area = rng.uniform(2000, 4000, FRAMES * ANIMALS)
    return make_poses(points.reshape(-1, len(NODES), 2), frame, nodes=NODES, track=track, area=area)


def _lost(truth: Poses, level: float, rng: np.random.Generator) -> Poses:
    """Jitter, missed nodes and instances, false ones, exchanged tracks."""
    unseen = np.isnan(truth.points).any(axis=2, keepdims=True) & (rng.random((*truth.points.shape[:2], 1)) < 2 * level)
    placed = np.where(unseen, np.nanmean(truth.points, axis=1, keepdims=True), truth.points)
    points = placed + 12 * level * rng.standard_normal(truth.points.shape)
    points[rng.random(points.shape[:2]) < level / 2] = np.nan
    far = np.flatnonzero(rng.random(len(points)) < level)
    points = np.concatenate([points, 500 + truth.points[far]])
    frame = np.concatenate([truth.frame, truth.frame[far]])
    track = np.concatenate([truth.track, truth.track[far] + ANIMALS])
    swap = (frame == FRAMES - 1) & (level > 0) & (track < 2)
    track = np.where(swap, 1 - track, track)
    score = np.concatenate([rng.uniform(0.5, 1, len(truth)) - level * 0.2, rng.uniform(0.3, 0.9, len(far))])
    kept = np.flatnonzero(rng.random(len(points)) >= level / 3)
    confidence = rng.uniform(0.4, 1, points.shape[:2])
    return make_poses(
        points[kept],
        frame[kept],
        nodes=NODES,
        track=track[kept],
        score=score[kept],
        confidence=confidence[kept],
        labelled=truth.labelled,
    )


def _silhouettes(rng: np.random.Generator) -> InstanceMasks:
    """Three boxes of different sizes in every frame, apart from each other."""
    masks = np.zeros((FRAMES, ANIMALS, HEIGHT, WIDTH), bool)
    for animal, (left, height) in enumerate(((1, 8), (12, 12), (23, 16))):
        for frame, top in enumerate(rng.integers(0, 5, FRAMES)):
            masks[frame, animal, top : top + height, left : left + 8] = True
    return make_instances(masks.reshape(-1, HEIGHT, WIDTH), np.repeat(np.arange(FRAMES), ANIMALS))


def _smeared(truth: InstanceMasks, level: float, rng: np.random.Generator) -> InstanceMasks:
    """Masks that are moved, joined with their neighbour, missed, and false ones."""
    masks = np.roll(np.unpackbits(truth.masks, axis=2), round(level * 6), axis=1)
    joined = np.flatnonzero((truth.frame < level * 4) & (np.arange(len(truth)) % ANIMALS == 0))
    masks[joined] |= masks[joined + 1]
    kept, false = (np.flatnonzero(rng.random(len(truth)) < share) for share in (1 - level / 3, level))
    return make_instances(
        np.concatenate([masks[kept], np.roll(masks[false], WIDTH // 2, axis=2)]),
        truth.frame[np.append(kept, false)],
        score=rng.uniform(0.5, 1, len(kept) + len(false)) - level * 0.3,
        labelled=truth.labelled,
    )


FRAME = (320, 240)


def _moving(rng: np.random.Generator) -> Tube:
    """A box that moves through frames of 320x240, and is one in whichever order; it is gone in the last of them."""
    start, step = rng.uniform((20, 80), (40, 100)), rng.uniform(5, 15, 2)
    corner = start + np.arange(FRAMES)[:, None] * step
    boxes = np.concatenate([corner, corner + rng.uniform(60, 80, 2)], axis=1)
    boxes[-1] = np.nan
    return make_tube("a tube", boxes, FRAME)


def _astray(truth: Tube, level: float, rng: np.random.Generator) -> Tube:
    """A detection that slides off, and one where nothing was asked for; if very bad, none in a frame, or in two."""
    if not level:
        return truth
    boxes = truth.boxes + level * 50 * rng.uniform(0.9, 1.1) * np.array([1, -0.5, 1, -0.5])
    boxes[-1] = 30, 40, 50, 60
    if level == LEVELS[-1]:
        boxes[1 - (rng.random() < 0.5) : 2] = np.nan
    return make_tube("a tube", boxes, FRAME)


IMAGES, WIDTH_OF_FEATURES = 40, 6


def _embedded(rng: np.random.Generator) -> FeatureSet:
    """Features and logits of images of some classes."""
    middles, of = rng.normal(0, 3, (4, WIDTH_OF_FEATURES)), rng.integers(0, 4, IMAGES)
    features = middles[of] + rng.normal(0, 1, (IMAGES, WIDTH_OF_FEATURES))
    return make_features(
        "features", {"features": features, "logits": 4 * np.eye(5)[of] + rng.normal(0, 1, (IMAGES, 5))}
    )


def _elsewhere(truth: FeatureSet, level: float, rng: np.random.Generator) -> FeatureSet:
    """Images that drift away together, and are less and less of any class."""
    features = truth.features + 12 * level + level * rng.normal(0, 1, truth.features.shape)
    return replace(truth, features=features, logits=truth.logits * (1 - level))


PICTURES = 120  # more than RPrecision has candidates


def _captioned(rng: np.random.Generator) -> AlignedSet:
    """Embeddings of edited pictures that are near those of their captions; some captions are too long, or empty."""
    texts, before = rng.normal(0, 1, (2, PICTURES, WIDTH_OF_FEATURES))
    images, original = (side + rng.normal(0, 0.4, side.shape) for side in (texts, before))
    return make_aligned(
        "embeddings",
        {"images": images, "texts": texts, "original_images": original, "original_texts": before}
        | {"truncated": rng.integers(0, 3, PICTURES), "empty": rng.integers(0, 3, PICTURES)},
    )


def _strayed(truth: AlignedSet, level: float, rng: np.random.Generator) -> AlignedSet:
    """Pictures that show less and less of their captions."""
    return replace(truth, images=truth.images + 4 * level * rng.normal(0, 1, truth.images.shape))


def _signal(rng: np.random.Generator) -> Array:
    """Received power (T, H, W) in dBm: it falls with the distance, and walls take some of it."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    senders = rng.uniform(0, (HEIGHT, WIDTH), (FRAMES, 2))
    loss = np.stack([30 * np.log10(1 + np.hypot(y - top, x - left)) for top, left in senders])
    return -50 - loss - 12 * (x > rng.integers(10, 22)) + rng.normal(0, 2, loss.shape)


def _off(field: Array, level: float, rng: np.random.Generator) -> Array:
    return field + 20 * level * rng.standard_normal(field.shape)


def _path(rng: np.random.Generator) -> Array:
    """Where something was observed (T, H, W): along a walk."""
    steps = rng.integers(-1, 2, (FRAMES, 60, 2)).cumsum(axis=1) + rng.integers(4, 20, (FRAMES, 1, 2))
    observed = np.zeros((FRAMES, HEIGHT, WIDTH), bool)
    for frame, walk in zip(observed, steps, strict=True):
        frame[walk[:, 0] % HEIGHT, walk[:, 1] % WIDTH] = True
    return observed


KINDS = {
    "frames": Kind("frames", _scene, _noisy),
    "field": Kind("field", _signal, _off),
    "observed": Kind("plain", _path, _off),
    "_std": Kind("spread", _spread, _wider),
    "_samples": Kind("ensemble", _copies, _off),
    "_depth": Kind("depth", _relief, _warped),
    "_segments": Kind("segments", _patches, _moved),
    "poses": Kind("poses", _animals, _lost),
    "instance_masks": Kind("instance_masks", _silhouettes, _smeared),
    "tubes": Kind("tubes", _moving, _astray),
    "features": Kind("features", _embedded, _elsewhere),
    "aligned": Kind("aligned", _captioned, _strayed),
}


def kind(field: str, metric: Metric) -> Kind:
    """The kind of a metric's field: its record, or what follows `pred` or `truth` in its name."""
    ending = field.removeprefix("pred").removeprefix("truth")
    name = metric.statistic.record or ending or ("field" if metric.statistic.of_fields else "frames")
    assert name in KINDS, f"the contract has no example of {field!r}: add its kind to KINDS in {__file__}"
    return KINDS[name]


def example(metric: Metric, seed: int = 0, samples: int = 3, level: float = LEVELS[1]) -> list[Sample]:
    """Samples that the metric can be called on; the same seed gives the same truth at every level."""
    return [_sample(metric, seed, number, level) for number in range(samples)]


def _sample(metric: Metric, seed: int, number: int, level: float) -> Sample:
    fields = {}
    for name in metric.statistic.fields():
        ending = name.removeprefix("pred").removeprefix("truth").removeprefix("ceiling").removesuffix("_samples")
        key = (seed, number, *ending.encode())
        own = kind(name, metric)
        truth = own.truth(np.random.default_rng(key))
        fields[name] = own.worse(truth, level, np.random.default_rng((1, *key))) if _predicted(name) else truth
    mask = np.zeros((FRAMES, HEIGHT, WIDTH), bool)
    mask[:, 2:18, 3 + number : 21] = True
    return Sample("abcdefgh"[number], fields, mask)


def _predicted(field: str) -> bool:
    return field.startswith(("pred", "ceiling"))


def constant(metric: Metric) -> Iterator[Mapping[str, Any]]:
    """Fields without any structure: everything the least, and everything something else."""
    shapes = _sample(metric, 0, 0, 0.0).fields
    for value in (0, 7):
        yield {name: _filled(field, value) for name, field in shapes.items()}


def with_nan(fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For every floating field: the fields with NaN in some of its pixels, and in all of its last frame."""
    found = {}
    for name, field in fields.items():
        array = field if isinstance(field, np.ndarray) else getattr(field, _main(field))
        if np.issubdtype(array.dtype, np.floating):
            holes = array.copy()
            holes[0, :3] = holes[-1] = np.nan
            found[name] = {**fields, name: holes if array is field else replace(field, **{_main(field): holes})}
    return found


def _filled(field: Any, value: float) -> Any:
    """The same field without structure; of a record its main array."""
    if isinstance(field, np.ndarray):
        return np.full_like(field, value)
    return replace(field, **{_main(field): np.full_like(getattr(field, _main(field)), value)})


def _main(record: Any) -> str:
    """The name of a record's main array."""
    return next(name for name in ("points", "boxes", "masks", "features", "images") if hasattr(record, name))


def build(given: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
    """An INPUT of a cases file as an array or a record; tests/cases/README.md says how they are spelled."""
    (how,) = set(given) - {"dtype", "rgb"}
    if how in RECORDS:
        return RECORDS[how].convert({name: _column(value) for name, value in given[how].items()})
    if how == "same" and not isinstance(fields[given[how]], np.ndarray):
        return fields[given[how]]
    values = _BUILDERS[how](given[how], fields)
    array = values.astype(given.get("dtype", values.dtype))
    return np.repeat(array[..., None], 3, axis=-1) if given.get("rgb") else array


def _column(value: Any) -> Any:
    """What a record has of its things: nested lists, an INPUT, or text as it is."""
    if isinstance(value, Mapping):
        return build(value, {})
    return np.array(_numbers(value)) if isinstance(value, list) else value


def _numbers(value: Any) -> Any:
    """Nested lists; null is NaN, and infinities are spelled as text. Other text, a node's name say, is left alone."""
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return SPELLED.get(value, value) if value is None or isinstance(value, str) else value


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
