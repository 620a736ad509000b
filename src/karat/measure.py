"""One sample: its files are opened, decoded once in bounded blocks, and measured by every statistic."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from karat.areas import Area
from karat.block import Block, Collected, Context, block_frames, measure_records
from karat.cache import FrameCache
from karat.errors import Inapplicable, InputError, KaratError, told
from karat.feed import ON_SCALE, Feed, size_of
from karat.metric import Array, Derived, Statistic
from karat.progress import unwatched
from karat.region import Map, complement
from karat.rows import Rows
from karat.sources.kinds import KINDS, RECORDS, open_record, open_stream
from karat.sources.stream import Stream, select
from karat.suite import Reading, Suite

BESIDE = ("plain", "spread", "ensemble")  # kinds of fields that lie on the truth, whatever they are called
MASK = "mask"  # the field of a plain foreground mask; named masks are mask:NAME
ALL_FRAMES = 1 << 31
AHEAD = 3  # blocks that may be measured at the same time


@dataclass(frozen=True)
class Sample:
    """One truth and what belongs to it: field -> file, folder or array; None where it is missing."""

    id: str
    sources: Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """Why the scores that need `field` cannot be computed for a sample."""

    sample: str
    field: str
    reason: str


@dataclass
class Measured:
    """A sample's rows by statistic (those that failed are absent), its failures, and facts for the notes."""

    rows: dict[Statistic, Rows] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Stopped(Exception):
    """The run was asked to stop."""


@dataclass(frozen=True)
class Plan:
    """What is measured of every sample, and how."""

    suite: Suite
    statistics: tuple[Statistic, ...]
    reading: Reading
    cache: FrameCache | None = None
    areas: tuple[Area, ...] = ()
    made: Mapping[str, Derived] = field(default_factory=dict)

    def needs(self, statistic: Statistic, sources: Mapping[str, Any]) -> tuple[str, ...]:
        """The fields without which the statistic is not measured."""
        return needs(statistic, sources, self.areas, {name: one.field for name, one in self.made.items()})

    def kind(self, name: str) -> str:
        """The kind of source behind a field."""
        return MASK if is_mask(name) else self.suite.fields[name]


@dataclass(frozen=True)
class Crew:
    """Who does the work: threads for blocks (none: the caller's own), who hears of progress, who may stop it."""

    threads: Executor | None = None
    advance: Callable[[int], None] = unwatched
    stop: threading.Event = field(default_factory=threading.Event)
    strict: bool = False


def is_mask(name: str) -> bool:
    """Whether a field is a mask, plain or named."""
    return name.partition(":")[0] == MASK


def truth_of(name: str) -> str:
    """The true side of a predicted field; other fields are their own."""
    return "truth" + name.removeprefix("pred") if name.startswith("pred") else name


def partner_of(name: str, present: Collection[str], suite: Suite) -> str:
    """What a field must agree with in size and length: its true side, for a mask the suite's truth, else itself."""
    partner = suite.truth if is_mask(name) or suite.fields.get(name) in BESIDE else truth_of(name)
    return partner if partner in present else name


def needs(
    statistic: Statistic,
    sources: Mapping[str, Any],
    areas: Iterable[Area] = (),
    made: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """The fields without which the statistic is not measured: of pixels also those that regions are made of. For a
    field that is `made` of another one it is that one."""
    if statistic.unit == "element":
        return statistic.fields()
    named = (*statistic.fields(), *filter(is_mask, sources), *(name for area in areas for name in area.needs))
    return tuple(dict.fromkeys(made.get(name, name) for name in named))


def measure_sample(sample: Sample, plan: Plan, crew: Crew, frames: int | None = None) -> Measured:
    """All statistics of one sample; `frames` stops early (to time a few)."""
    return _Measuring(sample, plan, crew).run(frames)


class _Measuring:
    """The state of one sample while it is decoded."""

    def __init__(self, sample: Sample, plan: Plan, crew: Crew) -> None:
        self.sample, self.plan, self.crew = sample, plan, crew
        self.failed: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self.feeds: dict[str, Feed] = {}
        self.records: dict[str, Any] = {}
        self.collected = {statistic: Collected(statistic) for statistic in plan.statistics}

    def run(self, frames: int | None) -> Measured:
        self._open_records()
        with ExitStack() as opened:
            self._open(opened)
            self._compare_declared_lengths()
            self._read(frames)
        if frames is None:
            self._compare_lengths()
        measured = Measured(facts=self.facts)
        for statistic in self.collected:
            if self._alive(statistic):
                try:
                    measured.rows[statistic] = self._rows(statistic)
                except Inapplicable as why:
                    self.facts.setdefault("inapplicable", {})[statistic.identity()] = str(why)
                except Exception as error:  # one bad sample costs one sample
                    self._fail(statistic.identity(), error)
        self.crew.advance(max((record.length for record in self.records.values()), default=0))
        measured.failures = [Failure(self.sample.id, name, reason) for name, reason in sorted(self.failed.items())]
        return measured

    def _rows(self, statistic: Statistic) -> Rows:
        if statistic.unit == "element":
            return measure_records(statistic, self.records, self.context)
        return self.collected[statistic].rows(self.context)

    def _open_records(self) -> None:
        reading = self.plan.reading
        for name, source in self._sources(RECORDS):
            kind = self.plan.kind(name)
            try:
                record = self._no_record(name) if source is None else open_record(source, kind)
                self.records[name] = record.select(reading.first, reading.stride)
            except Exception as error:
                self._fail(name, error)

    def _no_record(self, name: str) -> Any:
        """What a missing prediction is, where its kind has an empty value: no poses, no boxes."""
        empty, truth = RECORDS[self.plan.kind(name)].empty, self.records.get(truth_of(name))
        if empty is None or truth is None:
            raise InputError(f"no {name.replace('_', ' ')} was found for this sample: add a file of its name.")
        self.facts.setdefault("absent", []).append(name)
        return empty(truth)

    def _sources(self, kinds: Collection[str]) -> list[tuple[str, Any]]:
        """The sample's sources of these kinds, those that are missing last."""
        own = [(name, source) for name, source in self.sample.sources.items() if self.plan.kind(name) in kinds]
        return sorted(own, key=lambda item: item[1] is None)

    def _open(self, opened: ExitStack) -> None:
        streams: dict[str, Stream] = {}
        for name, source in self._sources(KINDS):
            try:
                stream = self._nothing(name, streams) if source is None else open_stream(source, self.plan.kind(name))
                streams[name] = opened.enter_context(stream)
            except Exception as error:
                self._fail(name, error)
        reading = self.plan.reading
        sizes = {name: size_of(stream, self.plan.kind(name)) for name, stream in streams.items()}
        for name, stream in streams.items():
            partner = partner_of(name, sizes, self.plan.suite)
            nothing = 0 in stream.shape[:1]  # no segment at all has no size of its own
            differs = sizes[name] != sizes[partner]
            if differs and not nothing and reading.on_size == "error":
                found, wanted = ("x".join(map(str, reversed(sizes[one]))) for one in (name, partner))
                self._fail(
                    name, InputError(f"{name} is {found} and {partner} {wanted}: pass --on-size resize to resize it.")
                )
                continue
            if differs and not nothing:
                self.facts.setdefault("resized", []).append(name)
            chosen = opened.enter_context(select(stream, reading.first, reading.stride))
            size = sizes[partner] if differs and not is_mask(name) else None  # masks are laid on more than one field
            self.feeds[name] = Feed(chosen, self.plan.kind(name), reading, size)
        self.context = Context(self.sample.id, {name: stream.labels for name, stream in streams.items()})
        scaled = {name: stream for name, stream in streams.items() if self.plan.kind(name) in ON_SCALE}
        whole = [name for name, stream in scaled.items() if stream.dtype.kind in "iu"]
        if whole and reading.scale is None:
            self.facts["whole"] = whole
        nameless = {name: labels.count("") for name, labels in self.context.labels.items() if "" in labels}
        if nameless:
            self.facts["nameless"] = nameless
        rates = {name: stream.fps for name, stream in streams.items() if stream.fps}
        self.facts["fps"] = {name: round(fps, 3) for name, fps in rates.items() if fps}

    def _nothing(self, name: str, streams: Mapping[str, Stream]) -> Stream:
        """What a missing prediction is, where its kind has an empty value: no segments."""
        partner = streams.get(truth_of(name))
        if self.plan.kind(name) != "segments" or name == truth_of(name) or partner is None:
            raise InputError(f"no {name.replace('_', ' ')} was found for this sample: add a file of its name.")
        self.facts.setdefault("absent", []).append(name)
        empty = np.zeros((0, *size_of(partner, "segments")), bool)
        frames = (frame for frame in (empty,))
        return Stream(frames, name=name, shape=empty.shape, dtype=empty.dtype, length=None, still=True)

    def _compare_declared_lengths(self) -> None:
        """Unequal lengths are known before an hour of blurring where both sides declare them."""
        for statistic in self.plan.statistics:
            lengths: dict[str, int | None] = {
                name: self.feeds[name].stream.length
                for name in self._needs(statistic)
                if name in self.feeds and not self.feeds[name].stream.still
            }
            if None not in lengths.values():
                self._judge_lengths({name: length for name, length in lengths.items() if length is not None})

    def _compare_lengths(self) -> None:
        for statistic in self.plan.statistics:
            if self._alive(statistic):
                feeds = {name: self.feeds[name] for name in self._needs(statistic) if name in self.feeds}
                self._judge_lengths({name: feed.read for name, feed in feeds.items() if not feed.stream.still})
        read = [feed.read for feed in self.feeds.values() if not feed.stream.still]
        self.facts["frames"] = min([*read, *(record.length for record in self.records.values())], default=0)

    def _judge_lengths(self, lengths: Mapping[str, int]) -> None:
        for name, length in lengths.items():
            truth = partner_of(name, lengths, self.plan.suite)
            if length == lengths[truth] or name in self.failed:
                continue
            if self.plan.reading.on_length == "error":
                said = f"{name} has {length} frames and {truth} {lengths[truth]}"
                self._fail(
                    name,
                    InputError(f"{said}: pass --on-length truncate to score the first {min(length, lengths[truth])}."),
                )
            else:
                self.facts.setdefault("truncated", {})[name] = [length, lengths[truth]]

    def _read(self, frames: int | None) -> None:
        """Decodes in the caller's thread, measures blocks in the crew's, keeps the order of the frames."""
        largest = max(
            (feed.stream.dtype.itemsize * int(np.prod(feed.stream.shape)) for feed in self.feeds.values()), default=1
        )
        step = block_frames(largest) if frames is None else 1
        if any(area.of_all_frames for area in self.plan.areas):
            step = ALL_FRAMES
        waiting: deque[tuple[Block, Future[dict[Statistic, Any]]]] = deque()
        first = 0
        while frames is None or first < frames:
            if self.crew.stop.is_set():
                raise Stopped
            block = self._block(first, step)
            if block is None:
                break
            alive = [one for one in self.plan.statistics if one.unit != "element" and self._alive(one)]
            waiting.append((block, self._submit(block, alive)))
            if len(waiting) > AHEAD:
                self._gather(*waiting.popleft())
            first += step
        while waiting:
            self._gather(*waiting.popleft())

    def _block(self, first: int, step: int) -> Block | None:
        used = {name for statistic in self.plan.statistics if self._alive(statistic) for name in self._needs(statistic)}
        fields: dict[str, Array] = {}
        for name in (name for name in self.feeds if name in used):
            try:
                fields[name] = self.feeds[name].take(step)
            except Exception as error:
                self._fail(name, error)
        if not any(len(frames) for name, frames in fields.items() if not self.feeds[name].stream.still):
            return None
        masks: dict[str, Map] = {}
        try:
            masks |= _named({name: fields.pop(name) for name in list(fields) if is_mask(name)})
        except InputError as error:
            self._fail(MASK, error)
        for area in self.plan.areas:
            if set(area.needs) <= set(fields) - set(self.failed):
                try:
                    masks |= area.maps(fields)
                except InputError as error:
                    self._fail(area.needs[0], error)
        resize = self.plan.reading.on_size == "resize"
        return Block(fields, masks, first, self.context, self.plan.cache, resize, self.plan.made)

    def _submit(self, block: Block, alive: list[Statistic]) -> Future[dict[Statistic, Any]]:
        def work() -> dict[Statistic, Any]:
            return {statistic: _attempt(block, statistic) for statistic in alive}

        if self.crew.threads is not None:
            return self.crew.threads.submit(work)
        done: Future[dict[Statistic, Any]] = Future()
        done.set_result(work())
        return done

    def _gather(self, block: Block, future: Future[dict[Statistic, Any]]) -> None:
        for statistic, part in future.result().items():
            if isinstance(part, Exception):
                self._fail(statistic.identity(), part)
            else:
                self.collected[statistic].add(block, part)
        self.crew.advance(max((len(frames) for frames in block.fields.values()), default=0))

    def _needs(self, statistic: Statistic) -> tuple[str, ...]:
        return self.plan.needs(statistic, self.sample.sources)

    def _alive(self, statistic: Statistic) -> bool:
        return not any(name in self.failed for name in (statistic.identity(), *self._needs(statistic)))

    def _fail(self, name: str, error: Exception) -> None:
        reason = str(error) if isinstance(error, KaratError) else f"{type(error).__name__}: {error}"
        for source in self.sample.sources.values():
            path = getattr(source, "path", source)
            if isinstance(path, Path):  # what went wrong is the same wherever the files lie
                reason = reason.replace(told(path), told(path.name))
        if self.crew.strict:
            raise InputError(f"{self.sample.id}: {reason}") from error
        self.failed.setdefault(name, " ".join(reason.split()))


def _attempt(block: Block, statistic: Statistic) -> Any:
    try:
        return block.measure(statistic)
    except Exception as error:  # told as the sample's failure by the thread that collects
        return error


def _named(masks: Mapping[str, Array]) -> dict[str, Array]:
    """Region names of mask fields: a plain mask is the foreground, and what it leaves the background."""
    regions: dict[str, Array] = {}
    for name, mask in masks.items():
        _, colon, label = name.partition(":")
        if colon:
            regions[label] = mask
        elif mask.dtype != bool and mask.max(initial=0) > 1:
            raise InputError("weights above 1 have no background: name their region, as in --masks NAME=PATH.")
        else:
            regions |= {"foreground": mask, "background": complement(mask)}
    return regions
