"""A block: the fields of consecutive frames of one sample, and what is derived from them, each once for all metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from karat.cache import FrameCache
from karat.errors import InputError
from karat.kernels.blur import Filter
from karat.kernels.pixels import nearest
from karat.metric import Array, Columns, Derived, Statistic
from karat.region import ALL, Labels, Map, Regions, make_regions, region_names
from karat.rows import Rows, element_rows, frame_rows, item_rows

BLOCK_BYTES = 1 << 20  # a constant, not a setting: blocks are cut by the data alone


@dataclass(frozen=True)
class Context:
    """What is known of a sample besides its frames."""

    id: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Block:
    """Fields (frames, ...) of one block; `first` is the slot of its first frame, `masks` are named weights."""

    fields: Mapping[str, Array]
    masks: Mapping[str, Map]
    first: int
    context: Context
    cache: FrameCache | None = None
    resize_masks: bool = False
    made: Mapping[str, Derived] = field(default_factory=dict)  # what stands for fields that are not there
    derived: dict[Derived, Array] = field(default_factory=dict)
    regions: dict[tuple[int, int, int], Regions] = field(default_factory=dict)

    def get(self, wanted: str | Derived) -> Array:
        """A field, or one derived from it (computed at the first call)."""
        if isinstance(wanted, str):
            return self.get(self.made[wanted]) if wanted in self.made else self.fields[wanted]
        if wanted not in self.derived:
            self.derived[wanted] = self._derive(wanted)
        return self.derived[wanted]

    def _derive(self, wanted: Derived) -> Array:
        frames = self.get(wanted.of)
        # The truth stays the same from run to run, predictions seldom do.
        kept = self.cache is not None and wanted.field.startswith("truth")
        if kept and self.cache and isinstance(wanted.by, Filter) and wanted.by.slow:
            return self.cache.apply(wanted.by, frames)
        return wanted.by(frames)

    def measure(self, statistic: Statistic) -> Any:
        """The statistic's columns of these frames, or what its `prepare` makes of them; None without frames."""
        inputs = statistic.inputs()
        arrays = {name: self.get(inputs.get(name, name)) for name in statistic.arguments()}
        plain = [mask for mask in self.masks.values() if isinstance(mask, np.ndarray)]
        count = min(len(array) for array in (*arrays.values(), *plain))
        if count == 0:
            return None
        given = {name: array[:count] for name, array in arrays.items()}
        sizes = {name: pixels(name, array) for name, array in given.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"The frames have different sizes (height, width): {sizes}; resize them first.")
        shape = (count, *next(iter(sizes.values())))
        if shape not in self.regions:
            self.regions[shape] = self._regions(count, shape[1:])
        regions = self.regions[shape]
        if statistic.unit == "frame":
            return statistic.measure(**given, regions=regions)
        return statistic.prepare(**given, regions=regions, sample=self.context)

    def _regions(self, count: int, size: tuple[int, int]) -> Regions:
        masks: dict[str, Array | Labels] = {}
        for name, mask in self.masks.items():
            if isinstance(mask, Labels):
                masks[name] = Labels(mask.map[:count], mask.names)
                continue
            assert mask is not None
            mask = mask[:count]
            if mask.shape[1:] != size and not self.resize_masks:
                height, width = mask.shape[1:]
                raise InputError(
                    f"mask {name} is {width}x{height}, the frames {size[1]}x{size[0]}: pass --on-size resize."
                )
            masks[name] = mask if mask.shape[1:] == size else np.stack([nearest(frame, size) for frame in mask])
        return make_regions(masks, (count, *size))


def pixels(name: str, frames: Array) -> tuple[int, int]:
    """Height and width of a field's frames (B, H, W), (B, H, W, C) or, of segments, stacks of masks (B, N, H, W)."""
    stacked = frames.ndim == 4 and name.endswith(("segments", "samples"))
    height, width = frames.shape[-2:] if stacked else frames.shape[1:3]
    return height, width


def block_frames(frame_bytes: int) -> int:
    """How many frames of that size make a block."""
    return max(1, BLOCK_BYTES // max(frame_bytes, 1))


def measure_records(statistic: Statistic, records: Mapping[str, Any], context: Context) -> Rows:
    """The rows of a statistic of unit "element"."""
    given = {name: records[name] for name in statistic.fields()}
    about = {"sample": context} if statistic.asks_for_sample() else {}
    return element_rows(context.id, ALL, statistic.measure(**given, **about))


@dataclass
class Collected:
    """What one statistic measured of one sample, block by block."""

    statistic: Statistic
    regions: tuple[str, ...] = ()
    slots: list[Array] = field(default_factory=list)
    parts: list[Any] = field(default_factory=list)

    def add(self, block: Block, part: Any) -> None:
        """One block's part, in the order of the frames."""
        if part is None:
            return
        self.regions = region_names(block.masks)
        self.parts.append(part)
        if self.statistic.unit == "frame":
            self.slots.append(block.first + np.arange(len(next(iter(part.values()))), dtype=np.int32))

    def rows(self, context: Context) -> Rows:
        """The sample's rows."""
        if not self.parts:
            raise InputError("there are no frames to measure.")
        if self.statistic.unit == "item":
            return item_rows(context.id, self.regions, self.statistic.measure(self.parts, sample=context))
        columns: Columns = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        return frame_rows(context.id, np.concatenate(self.slots), self.regions, columns)
