"""Metrics fed by hand: inside a training loop, over batches that are already in memory, over processes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from karat.block import Block, Collected, Context, block_frames, measure_records
from karat.errors import Inapplicable, InputError, UsageError
from karat.metric import Array, Metric, Statistic
from karat.region import ALL
from karat.rows import Rows, concatenate
from karat.score import Value, over_dataset, score_key
from karat.sources.kinds import RECORDS
from karat.sources.pairing import as_array


class Meter:
    """Collects rows of several metrics; `compute` scores them. Meters that saw different samples can be merged.

    meter = Meter(CannyF1(), SSIM()); meter.update(pred=batch, truth=batch); meter.compute()
    """

    def __init__(self, *metrics: Metric, regions: Sequence[str] = ()) -> None:
        if not metrics:
            raise UsageError("A Meter needs metrics: Meter(CannyF1(), SSIM()).")
        self.metrics = metrics
        self.regions = tuple(regions)
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._ids: list[str] = []
        self._numbered = 0
        self._parts: dict[Statistic, list[Rows]] = {metric.statistic: [] for metric in self.metrics}
        self._inapplicable: dict[Statistic, dict[str, str]] = {statistic: {} for statistic in self._parts}

    def update(
        self, *, ids: Iterable[str] | None = None, masks: Mapping[str, Any] | None = None, **fields: Any
    ) -> None:
        """Add a batch. Axis 0 is samples; an axis more than one frame has holds the frames of clips.

        pred, truth: (B, H, W, 3) images or (B, T, H, W, 3) clips; of what is not pixels a list of B records. `masks`
        gives every region of the Meter its weights, (B, H, W) or (B, T, H, W). Of samples with one id the first
        counts; without ids every row is a sample.
        """
        arrays = {name: value if self._record(name) else as_array(value) for name, value in fields.items()}
        weights = {name: as_array(value) for name, value in (masks or {}).items()}
        if set(weights) != set(self.regions):
            raise UsageError(f"This Meter's regions are {list(self.regions)}, the masks given are {list(weights)}.")
        sizes = {name: len(array) for name, array in {**arrays, **weights}.items()}
        if len(set(sizes.values())) > 1:
            raise UsageError(f"The fields have different numbers of samples: {sizes}.")
        count = next(iter(sizes.values()), 0)
        names = self._named(count) if ids is None else list(map(str, ids))
        if len(names) != count:
            raise UsageError(f"There are {len(names)} ids for {count} samples.")
        seen = set(self._ids)
        for i, name in enumerate(names):
            if name not in seen:
                clip = {field: self._one(field, array[i]) for field, array in arrays.items()}
                pixels = self._pixels(clip)
                regions = {
                    region: _mask(region, mask[i], _frames(pixels)) for region, mask in weights.items() if pixels
                }
                self._add(name, clip, regions)
                seen.add(name)

    def merge(self, other: Meter) -> None:
        """Add the samples of another Meter of the same metrics; its unnamed samples follow the own ones."""
        if other.metrics != self.metrics or other.regions != self.regions:
            raise UsageError("Only Meters of the same metrics and regions can be merged.")
        names = {name: name for name in other._ids}
        shift = self._numbered
        names |= {_number(i): _number(i + shift) for i in range(other._numbered)}
        self._numbered += other._numbered
        own = set(self._ids)
        self._ids += [names[name] for name in other._ids if names[name] not in own]
        for statistic, parts in other._parts.items():
            self._parts[statistic] += [part.named([names[name] for name in part.samples]) for part in parts]
            reasons = {names[name]: why for name, why in other._inapplicable[statistic].items()}
            self._inapplicable[statistic] = reasons | self._inapplicable[statistic]

    def gather(self) -> Meter:
        """One Meter with the samples of all processes of torch.distributed, by rank; the same in every process."""
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is None or not distributed.is_initialized():
            return self
        others: list[Any] = [None] * distributed.get_world_size()
        own = (self._ids, self._numbered, list(self._parts.values()), list(self._inapplicable.values()))
        distributed.all_gather_object(others, own)
        everything = Meter(*self.metrics, regions=self.regions)
        for ids, numbered, parts, reasons in others:
            one = Meter(*self.metrics, regions=self.regions)
            one._ids, one._numbered, one._parts = ids, numbered, dict(zip(self._parts, parts, strict=True))
            one._inapplicable = dict(zip(self._parts, reasons, strict=True))
            everything.merge(one)
        return everything

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers must know."""
        if not self._numbered:
            return []
        return [f"{self._numbered} samples came without ids: what a sampler repeats to fill a batch is counted twice."]

    def values(self) -> dict[str, Value]:
        """Every score with its counts."""
        samples = sorted(self._ids)
        if not samples:
            return {}
        found: dict[str, Value] = {}
        for metric in self.metrics:
            rows, left_out = concatenate(self._parts[metric.statistic]), self._inapplicable[metric.statistic]
            if len(left_out) == len(samples):
                found |= dict.fromkeys(metric.scores, Value(math.nan, 0, 0, len(samples), 0))
                continue
            for name, regions in over_dataset(metric, rows, samples, inapplicable=left_out).items():
                found |= {score_key(name, region): value for region, value in regions.items()}
        return found

    def compute(self) -> dict[str, float]:
        """{score: value} of everything that was added; NaN where undefined."""
        if not self._ids:
            return {
                score_key(name, region): float("nan")
                for metric in self.metrics
                for name in metric.scores
                for region in (ALL, *self.regions)
            }
        return {name: value.value for name, value in self.values().items()}

    def _add(self, name: str, clip: Mapping[str, Any], masks: Mapping[str, Array]) -> None:
        context = Context(name)
        for statistic in self._parts:
            lacking = [field for field in statistic.fields() if field not in clip]
            if lacking:
                raise UsageError(
                    f"{type(statistic).__name__} needs {' and '.join(lacking)}; given were {', '.join(clip)}."
                )
        rows = {}
        elements = [statistic for statistic in self._parts if statistic.unit == "element"]
        for statistic in elements:
            try:
                rows[statistic] = measure_records(statistic, clip, context)
            except Inapplicable as why:
                self._inapplicable[statistic][name] = str(why)
        if len(elements) < len(self._parts):
            rows |= self._measure_pixels(context, self._pixels(clip), masks)
        for statistic, part in rows.items():
            self._parts[statistic].append(part)
        self._ids.append(name)

    def _measure_pixels(
        self, context: Context, clip: Mapping[str, Array], masks: Mapping[str, Array]
    ) -> dict[Statistic, Rows]:
        collected = {statistic: Collected(statistic) for statistic in self._parts if statistic.unit != "element"}
        count = _frames(clip)
        if count == 0:
            raise UsageError(f"Sample {context.id!r} has no frames.")
        step = block_frames(max(array[:1].nbytes for array in clip.values()))
        for first in range(0, count, step):
            fields = {field: array[first : first + step] for field, array in clip.items()}
            block = Block(
                fields, {region: mask[first : first + step] for region, mask in masks.items()}, first, context
            )
            for statistic, parts in collected.items():
                parts.add(block, block.measure(statistic))
        return {statistic: parts.rows(context) for statistic, parts in collected.items() if parts.parts}

    def _pixels(self, clip: Mapping[str, Any]) -> dict[str, Array]:
        return {field: array for field, array in clip.items() if not self._record(field)}

    def _record(self, field: str) -> str:
        """The kind of the records that a field holds; nothing for pixels."""
        return next((one.record for one in self._parts if one.unit == "element" and field in one.fields()), "")

    def _one(self, field: str, value: Any) -> Any:
        """One sample's field: a record, or a clip with its frames first."""
        kind = self._record(field)
        colors = not any(one.of_fields and field in one.fields() for one in self._parts)
        return RECORDS[kind].convert(value) if kind else _clip(field, as_array(value), colors)

    def _named(self, count: int) -> list[str]:
        self._numbered += count
        return [_number(i) for i in range(self._numbered - count, self._numbered)]


def score_arrays(metric: Metric, fields: Mapping[str, Any], masks: Mapping[str, Any]) -> dict[str, float]:
    """A metric called on arrays: one sample, axis 0 is frames (a single frame gets that axis)."""
    meter = Meter(metric, regions=tuple(masks))
    clip = {name: meter._one(name, value) for name, value in fields.items()}
    if metric.statistic.unit == "element":
        meter._add("0", clip, {})
        for why in meter._inapplicable[metric.statistic].values():
            raise InputError(why)
        return meter.compute()
    weights = {name: _mask(name, as_array(mask), _frames(clip)) for name, mask in masks.items()}
    if _frames(clip) == 0:
        return meter.compute()
    meter._add("0", clip, weights)
    return meter.compute()


def _clip(name: str, array: Array, colors: bool) -> Array:
    """One sample with its frames first: (H, W), (H, W, 3), samples (N, H, W) of a map and (N, T, H, W) masks of objects
    are brought to that."""
    if array.dtype == bool and array.ndim == 4 and name.endswith("segments"):
        return np.moveaxis(array, 1, 0)
    if name.endswith("samples"):
        return array[None] if array.ndim == 3 else array
    colored = colors and array.shape[-1:] == (3,) and not name.endswith(("_depth", "_segments"))
    single = array.ndim == 2 or (array.ndim == 3 and colored)
    return array[None] if single else array


def _frames(clip: Mapping[str, Array]) -> int:
    lengths = {name: len(array) for name, array in clip.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"The fields have different numbers of frames: {lengths}.")
    return next(iter(lengths.values()), 0)


def _mask(name: str, mask: Array, frames: int) -> Array:
    """One sample's mask with its frames first; (H, W) holds for every frame."""
    weights = np.broadcast_to(mask, (frames, *mask.shape)) if mask.ndim == 2 else mask
    if weights.ndim != 3 or len(weights) != frames:
        raise UsageError(f"The mask {name!r} has shape {mask.shape}: give (H, W), or ({frames}, H, W), one a frame.")
    return weights


def _number(i: int) -> str:
    return f"#{i:012d}"
