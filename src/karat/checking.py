"""What is wrong with the inputs, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from karat.engines.local import each
from karat.errors import KaratError
from karat.evaluation import cores, estimate
from karat.feed import ON_SCALE, as_bytes, in_units, size_of
from karat.gather import flag
from karat.measure import Plan, Sample, is_mask, partner_of, truth_of
from karat.metric import Array
from karat.prepare import Prepared, prepare
from karat.progress import progress
from karat.region import Labels
from karat.sources.fingerprint import digest
from karat.sources.kinds import RECORDS, open_record, open_stream
from karat.sources.records import Level
from karat.sources.stream import Stream, select
from karat.sources.video import VIDEO_SUFFIXES, count_packets
from karat.suite import Suite

LOOKED_AT = 3  # frames of every source whose values are looked at
AT_FLOOR = 0.9  # the share of a region whose truth may be the lowest of the map without a word


@dataclass(frozen=True)
class Finding:
    """One thing to know: an error would make the sample fail, a warning makes its numbers doubtful."""

    level: Level
    sample: str
    message: str


def check(suite: str | Suite, *, workers: int | None = None, **inputs: Any) -> list[Finding]:
    """Everything found for the inputs that `evaluate` would take."""
    return findings(prepare(suite, **inputs), workers or cores())


def findings(prepared: Prepared, workers: int) -> list[Finding]:
    """Looks at every sample's headers and first frames, then times three frames."""
    found = [Finding("note", "", note) for note in prepared.notes]
    with progress("checking", len(prepared.samples)) as advance:
        for of_sample in each(lambda sample: _counted(sample, prepared, advance), prepared.samples, workers):
            found += of_sample
    seconds = estimate(prepared, prepared.samples, workers)
    if seconds:
        found.append(Finding("note", "", f"The run will take {seconds}."))
    return sorted(_together(found), key=lambda one: (("error", "warning", "note").index(one.level), one.sample))


def _together(found: Iterable[Finding]) -> Iterator[Finding]:
    """What is noted of many samples alike is told once."""
    alike: dict[str, list[Finding]] = {}
    for one in found:
        if one.level == "note" and one.sample:
            alike.setdefault(one.message, []).append(one)
        else:
            yield one
    for message, notes in alike.items():
        of_many = f"{len(notes)} samples, the first is {notes[0].sample}: {message}"
        yield from notes if len(notes) <= LOOKED_AT else [Finding("note", "", of_many)]


def _counted(sample: Sample, prepared: Prepared, advance: Callable[[int], None]) -> list[Finding]:
    found = list(_sample(sample, prepared))
    advance(1)
    return found


def _sample(sample: Sample, prepared: Prepared) -> Iterator[Finding]:
    streams: dict[str, Stream] = {}
    records: dict[str, Any] = {}
    looked: dict[str, list[Array]] = {}
    plan = prepared.plan
    for name, source in sample.sources.items():
        kind = plan.kind(name)
        if source is None:
            has_empty = RECORDS[kind].empty is not None if kind in RECORDS else kind == "segments"
            if has_empty and name != truth_of(name):
                yield Finding("warning", sample.id, f"no {name} was found: it will be scored as empty.")
            else:
                yield Finding("error", sample.id, f"no {name} was found: its scores will fail.")
            continue
        try:
            if kind in RECORDS:
                records[name] = open_record(source, kind).select(plan.reading.first, plan.reading.stride)
                if not records[name].length:
                    yield Finding("error", sample.id, f"{name} has no frames.")
                continue
            with open_stream(source, kind) as stream:
                streams[name] = stream
                looked[name] = list(islice(stream, LOOKED_AT))
                for level, message in _values(name, looked[name], stream, plan):
                    yield Finding(level, sample.id, message)
            _whole(source, stream)
        except KaratError as error:
            yield Finding("error", sample.id, str(error))
    found = [
        *_shapes(streams, plan),
        *_doubts(records, plan),
        *_copies(sample),
        *_units(looked, plan),
        *_regions(looked, plan),
    ]
    for level, message in found:
        yield Finding(level, sample.id, message)


def _whole(source: Any, stream: Stream) -> None:
    """A video that lost its end has fewer packets than it declares."""
    if not isinstance(source, Path) or source.suffix.lower() not in VIDEO_SUFFIXES or stream.length is None:
        return
    packets = count_packets(source)
    if packets < stream.length:
        raise KaratError(
            f"{source} is truncated: {packets} of {stream.length} declared frames are there; copy it again."
        )


def _values(name: str, frames: Sequence[Array], stream: Stream, plan: Plan) -> Iterator[tuple[Level, str]]:
    kind = plan.kind(name)
    if not frames:
        yield "error", f"{name} has no frames."
        return
    values = np.concatenate([frame.ravel() for frame in frames])
    known = values[~np.isnan(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    if kind == "frames":
        yield from _levels(name, frames, low, high, plan)
    if kind == "depth" and not any(((frame > 0) & np.isfinite(frame)).any() for frame in frames):
        yield "warning", f"{name} has no valid depth (finite, above 0) in its first frames."
    if kind == "mask" and (low == high):
        yield "warning", f"{name} is {low:g} everywhere in its first frames: one of its regions is empty."
    if kind in ON_SCALE:
        yield from _numbers(name, values, plan)
    if "" in stream.labels:
        yield "warning", f"{name} has segments without a name, {stream.labels.count('')}: they are left out."
    if kind == "segments" and high == 0:
        yield "warning", f"{name} has no segment in its first frames."


def _levels(name: str, frames: Sequence[Array], low: float, high: float, plan: Plan) -> Iterator[tuple[Level, str]]:
    declared = plan.reading.value_range
    dtype = frames[0].dtype
    if dtype == np.uint8:
        if high <= 1:
            yield (
                "warning",
                f"{name} is nearly black, bytes from {low:g} to {high:g}: were floats in 0..1 cast to bytes?",
            )
        return
    if declared is not None and low >= -1.001 and high <= 1.001 and declared[1] - declared[0] > 2:
        likely = "-1..1" if low < 0 else "0..1"
        yield (
            "error",
            f"{name} holds {dtype} values from {low:.3g} to {high:.3g} but is declared as {_range(declared)}: "
            f"pass --range {likely}.",
        )
        return
    try:
        for frame in frames:
            as_bytes(frame, declared, name)
    except KaratError as error:
        yield "error", str(error)


def _numbers(name: str, values: Array, plan: Plan) -> Iterator[tuple[Level, str]]:
    """What is doubtful about the numbers of a field, and about the scale that they are taken to be on."""
    lost = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
    if lost:
        yield "warning", f"{name} is NaN in {lost} of {values.size} pixels: they are left out."
    known = values[np.isfinite(values)]
    if len(known) + lost < len(values):
        yield "warning", f"{name} is infinite in {len(values) - len(known) - lost} pixels: its errors are infinite too."
    if not len(known):
        return
    low, high = float(known.min()), float(known.max())
    if plan.kind(name) == "spread":
        if low <= 0:
            yield (
                "warning",
                f"{name} is 0 or less in {int((known <= 0).sum())} pixels: what it says is undefined there.",
            )
        return
    if low == high and name == truth_of(name):
        yield "warning", f"{name} is {low:g} everywhere: it has no variance and no structure."
    reading = plan.reading
    spans, units = f"{name} holds {values.dtype} values from {low:.4g} to {high:.4g}", reading.units or "its unit"
    if reading.scale is None:
        if values.dtype.kind in "iu":
            yield "warning", f"{spans} and no scale is declared: pass --scale, such as -186..-47, if they have one."
        return
    if values.dtype.kind == "f" and reading.stored is None and _unit(low, high):
        if not (reading.scale[0] <= low and high <= reading.scale[1]):
            likely = "-1..1" if low < -0.5 else "0..1"
            yield "warning", f"{spans}, taken to be in {units} already: pass --from {likely} if they are stored so."
    else:
        brought = in_units(known, reading, False, name)
        if not _near(float(brought.min()), float(brought.max()), reading.scale):
            yield "warning", f"{spans}, far outside of what {_range(reading.scale)} allows: check --scale and --from."


def _unit(low: float, high: float) -> bool:
    """Whether values look like what models are trained on: -1 to 1, or 0 to 1, and a little beyond."""
    return low >= -1.5 and high <= 1.5


def _units(looked: Mapping[str, list[Array]], plan: Plan) -> Iterator[tuple[Level, str]]:
    """Sides on different scales, where none is declared."""
    if plan.reading.scale is not None:
        return
    spans = {}
    for name, frames in looked.items():
        if plan.kind(name) not in ON_SCALE or plan.kind(name) == "spread" or not frames:
            continue
        values = np.stack(frames)
        known = values[np.isfinite(values)]
        if known.size:
            spans[name] = (float(known.min()), float(known.max()))
    for name, span in spans.items():
        truth = spans.get(plan.suite.truth, span)
        if _unit(*span) != _unit(*truth):
            own, other = (f"from {low:.4g} to {high:.4g}" for low, high in (span, truth))
            said = f"{name} is {own}, {plan.suite.truth} {other}"
            yield "warning", f"{said}: bring them to one unit, with --scale and --from where one is stored in another."


def _near(low: float, high: float, span: tuple[float, float]) -> bool:
    """Whether values lie within a range, or no further outside than it is wide."""
    width = span[1] - span[0]
    return span[0] - width <= low and high <= span[1] + width


def _regions(looked: Mapping[str, list[Array]], plan: Plan) -> Iterator[tuple[Level, str]]:
    """What is doubtful about regions that are made of fields: masks that are none, empty ones, inverted ones."""
    truth = looked.get(plan.suite.truth, [])
    faulty: set[str] = set()
    for area in plan.areas:
        fields = {name: np.stack(looked[name]) for name in area.needs if looked.get(name)}
        if set(fields) != set(area.needs) or set(area.needs) & faulty:
            continue
        if len({array.shape for array in fields.values()}) > 1:
            continue
        try:
            maps = area.maps(fields)
        except KaratError as error:
            faulty |= set(area.needs)
            yield "error", str(error)
            continue
        for name, mask in maps.items():
            if isinstance(mask, Labels) or mask is None or mask.dtype != bool or len(area.needs) > 1:
                continue
            if not mask.any():
                yield "warning", f"no pixel is {name}: what is scored there, or by its distance, is undefined."
            elif name == area.names[0] and len(truth) == len(mask) and truth[0].shape == mask.shape[1:]:
                yield from _at_floor(name, mask, np.stack(truth))


def _at_floor(region: str, mask: Array, truth: Array) -> Iterator[tuple[Level, str]]:
    """A region where the truth is hardly more than its lowest value: what is outside of free space may well be."""
    known = truth[np.isfinite(truth)].astype(np.float64)
    inside = truth[mask & np.isfinite(truth)]
    if not inside.size or known.min() == known.max():
        return
    share = float((inside == known.min()).mean())
    if share >= AT_FLOOR:
        said = f"the truth is at its lowest, {known.min():g}, in {share:.0%} of {region}"
        yield "warning", f"{said}: is the mask the other way round?"


def _shapes(streams: Mapping[str, Stream], plan: Plan) -> Iterator[tuple[Level, str]]:
    for name, stream in streams.items():
        truth = partner_of(name, streams, plan.suite)
        if truth == name:
            continue
        size, wanted = size_of(stream, plan.kind(name)), size_of(streams[truth], plan.kind(truth))
        if size != wanted:
            level, then = ("error", "pass --on-size resize") if plan.reading.on_size == "error" else ("note", "resized")
            said = f"{name} is {size[1]}x{size[0]} and {truth} {wanted[1]}x{wanted[0]}: {then}."
            yield level, said  # type: ignore[misc]
        own, other = (select(one, plan.reading.first, plan.reading.stride).length for one in (stream, streams[truth]))
        if None not in (own, other) and own != other and not stream.still:
            level, then = (
                ("error", "pass --on-length truncate") if plan.reading.on_length == "error" else ("note", "cut")
            )
            yield level, f"{name} has {own} frames and {truth} {other}: {then}."  # type: ignore[misc]
        rates = [one.fps for one in (stream, streams[truth])]
        if None not in rates and abs(rates[0] - rates[1]) > 1e-3 and not is_mask(name):  # type: ignore[operator]
            yield (
                "warning",
                f"{name} has {rates[0]:g} frames a second and {truth} {rates[1]:g}: frames are paired by index.",
            )


def _doubts(records: Mapping[str, Any], plan: Plan) -> Iterator[tuple[Level, str]]:
    for name, record in records.items():
        truth = truth_of(name)
        if truth != name and truth in records:
            yield from RECORDS[plan.kind(name)].find(record, records[truth])
    for statistic in plan.statistics:
        if statistic.unit == "element" and set(statistic.fields()) <= set(records):
            yield from statistic.doubts(**{name: records[name] for name in statistic.fields()})


def _copies(sample: Sample) -> Iterator[tuple[Level, str]]:
    for name, source in sample.sources.items():
        truth = sample.sources.get(truth_of(name))
        if truth_of(name) != name and source is not None and truth is not None and _same(source, truth):
            yield "warning", f"{name} and {truth_of(name)} are the same bytes: is {flag(name)} right?"


def _same(a: Any, b: Any) -> bool:
    if (
        isinstance(a, Path)
        and isinstance(b, Path)
        and a.is_file()
        and b.is_file()
        and a.stat().st_size != b.stat().st_size
    ):
        return False
    try:
        return digest(a) == digest(b)
    except (KaratError, OSError):
        return False


def _range(declared: tuple[float, float]) -> str:
    return f"{declared[0]:g}..{declared[1]:g}"
