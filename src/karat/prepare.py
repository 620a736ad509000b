"""From a call to a plan: which metrics, on which samples, read how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from karat.cache import FrameCache
from karat.errors import KaratError, UsageError
from karat.gather import Gathered, flag, gather
from karat.measure import Plan, Sample, needs
from karat.metric import Metric, snake
from karat.run import Identity
from karat.sources.kinds import open_stream
from karat.sources.stream import select
from karat.suite import Suite
from karat.suites import load


@dataclass(frozen=True)
class Prepared:
    """What will be evaluated."""

    suite: Suite
    identity: Identity
    plan: Plan
    gathered: Gathered
    notes: tuple[str, ...]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return self.gathered.samples


def prepare(
    suite: str | Suite,
    fields: Mapping[str, Any],
    *,
    masks: Any = None,
    protocol: str = "spec",
    metrics: Iterable[str | Metric] | None = None,
    settings: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    id_pattern: str | None = None,
    cache: bool = True,
) -> Prepared:
    """Chooses the metrics that the given fields allow, and pairs the samples."""
    chosen = load(suite) if isinstance(suite, str) else suite
    wanted, how = chosen.under(protocol, metrics, settings, reading)
    given = {name for name, value in fields.items() if value is not None}
    absent = [name for name in chosen.required if name not in given]
    if absent:
        raise UsageError(f"{chosen.name} needs {' and '.join(absent)}: pass {_flags(absent)}.")
    for metric in wanted:
        lacking = [name for name in metric.statistic.fields() if name not in given]
        if lacking and (metrics is not None or len(lacking) < len(metric.statistic.fields())):
            raise UsageError(f"{snake(type(metric).__name__)} needs {' and '.join(lacking)}: pass {_flags(lacking)}.")
    active = tuple(metric for metric in wanted if set(metric.statistic.fields()) <= given)
    if not active:
        raise UsageError(f"{chosen.name} has nothing to measure: pass {_flags(chosen.required)}.")
    used = {name for metric in active for name in metric.statistic.fields()} | {chosen.truth, *chosen.required}
    gathered = gather(
        chosen,
        {name: value for name, value in fields.items() if name in used or name not in chosen.fields},
        masks,
        id_pattern,
    )
    identity = Identity(chosen.name, protocol, active, how, gathered.fields)
    plan = Plan(chosen, tuple(identity.statistics.values()), how, FrameCache.default() if cache else None)
    skipped = [
        f"{snake(type(metric).__name__)} was not computed: pass {_flags(metric.statistic.fields())}."
        for metric in wanted
        if metric not in active
    ]
    strays = [
        f"{len(extra)} {name} without a truth left out, the first is {extra[0]!r}."
        for name, extra in gathered.strays.items()
    ]
    return Prepared(chosen, identity, plan, gathered, (*skipped, *strays))


def declared_frames(sample: Sample, plan: Plan) -> int | None:
    """How many frames a sample will take, where its files say so."""
    lengths = []
    for name in {name for statistic in plan.statistics for name in needs(statistic, sample.sources)}:
        source = sample.sources.get(name)
        if source is None:
            continue
        try:
            with open_stream(source, plan.kind(name)) as stream:
                chosen = select(stream, plan.reading.first, plan.reading.stride)
                if not chosen.still:
                    lengths.append(chosen.length)
        except KaratError:
            return None
    known = [length for length in lengths if length is not None]
    return min(known) if known else None


def _flags(names: Iterable[str]) -> str:
    return " and ".join(map(flag, names))
