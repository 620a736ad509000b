"""From a call to a plan: which metrics, on which samples, read how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat.areas import Area
from karat.cache import FrameCache
from karat.errors import InputError, KaratError, UsageError, counted, short
from karat.gather import Gathered, flag, gather
from karat.groups import groups_of
from karat.measure import Plan, Sample
from karat.metric import Metric, snake
from karat.run import Identity
from karat.sources.kinds import RECORDS, open_stream
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
    arguments: Mapping[str, Any]  # as they were given, for the record
    groups: Mapping[str, str] = field(default_factory=dict)  # sample -> what it belongs to

    @property
    def samples(self) -> tuple[Sample, ...]:
        return self.gathered.samples


def prepare(
    suite: str | Suite,
    *,
    protocol: str = "spec",
    metrics: Iterable[str | Metric] | None = None,
    settings: Mapping[str, Any] | None = None,
    masks: Any = None,
    frames: int | None = None,
    stride: int | None = None,
    on_length: str | None = None,
    on_size: str | None = None,
    value_range: tuple[float, float] | None = None,
    scale: tuple[float, float] | None = None,
    stored: tuple[float, float] | None = None,
    units: str | None = None,
    on_stray: str | None = None,
    subset: str | None = None,
    id_pattern: str | None = None,
    group_by: str | None = None,
    groups: str | Path | None = None,
    inputs: Iterable[str] | None = None,
    cache: bool = True,
    **fields: Any,
) -> Prepared:
    """Chooses the metrics that the given fields allow, and pairs the samples.

    Fields (`pred`, `truth`, ...) are folders, files, arrays, or mappings of ids to either; `masks` is one of these (the
    foreground, and its complement the background) or a mapping of region names to them. `metrics` are names,
    spellings ("CannyF1(low=50)") or metrics; `settings` are {"canny_f1.low": 50}. Only the first `frames` of a clip,
    and every `stride` of those; `on_length` is "error" or "truncate", `on_size` "error" or "resize"; `value_range` is
    black and white of floating frames; fields `stored` in one range stand for the `scale` in `units`; predictions
    without a truth, and several for one, are told ("note") or an "error" (`on_stray`); `subset` names some of the
    truths; `id_pattern` finds a sample's id in its relative stem; `group_by` names what samples have in common
    (building) and `groups` how ids tell, see `karat.groups`; `inputs` is what the method was given; `cache` keeps
    blurred truth between runs.
    """
    chosen = load(suite) if isinstance(suite, str) else suite
    if watched := [name for name in chosen.detects if fields.get(name) is not None]:
        raise UsageError(f"Nothing is detected in {_flags(watched)} here: give the boxes that karat detect finds.")
    if chosen.aligns and fields.get("prompts") is not None:
        raise UsageError("No captions are read here: give the embeddings that karat run keeps, with --aligned.")
    options = {name: fields.pop(name) for name in chosen.options if name in fields}
    metrics = _selected(chosen, options) if metrics is None else list(metrics)
    reading = {
        "first": frames,
        "stride": stride,
        "on_length": on_length,
        "on_size": on_size,
        "value_range": value_range,
        "scale": scale,
        "stored": stored,
        "units": units,
        "on_stray": on_stray,
    }
    offered, settings = _option_settings(chosen, options), dict(settings or {})
    if scale is not None:
        offered |= dict.fromkeys(chosen.scaled, scale[1] - scale[0]) | dict.fromkeys(chosen.on_scale, scale)
    regional = {area.key for area in chosen.areas}
    of_areas = {
        key: given.pop(key) for given in (offered, settings) for key in list(given) if key.partition(".")[0] in regional
    }
    wanted, how = chosen.under(protocol, metrics, settings, reading, offered)
    files = {name for name, value in fields.items() if value is not None}
    made = chosen.made_of(files)
    given = files | set(made)
    active = _active(chosen, wanted, given, named=metrics is not None)
    areas = tuple(area for area in chosen.areas_under(protocol, of_areas) if set(area.needs) <= given)
    _check_areas(chosen, areas, masks)
    used = {name for metric in active for name in metric.statistic.fields()} | {chosen.truth, *chosen.required}
    used |= {name for area in areas for name in area.needs}
    made = {name: one for name, one in made.items() if name in used}
    used |= {one.field for one in made.values()}
    gathered = gather(
        chosen,
        {name: value for name, value in fields.items() if name in used or name not in chosen.fields},
        masks,
        id_pattern,
        _asked(chosen, subset),
    )
    if how.on_stray == "error":
        _refuse_strays(gathered)
    records = {
        name: [one.sources[name] for one in gathered.samples if one.sources[name] is not None]
        for name in gathered.fields
        if chosen.fields.get(name) in RECORDS
    }
    origins = {name: RECORDS[chosen.fields[name]].origin(of) for name, of in records.items()}
    how_made = {name: (one.field, repr(one.by)) for name, one in made.items()}
    identity = Identity(
        chosen.name,
        protocol,
        active,
        how,
        gathered.fields,
        areas,
        group_by or chosen.cluster,
        how_made,
        {name: origin for name, origin in origins.items() if origin},
    )
    if groups is not None and not group_by:
        raise UsageError("Which of the --groups counts is not said: pass --group-by building, say.")
    ids = [sample.id for sample in gathered.samples]
    alone = dict(zip(ids, ids, strict=True)) if chosen.cluster else {}
    by_sample = groups_of(ids, group_by, groups) if group_by else alone
    plan = Plan(chosen, tuple(identity.statistics.values()), how, FrameCache.default() if cache else None, areas, made)
    notes = [
        *_idle(wanted, given),
        *(f"{name} is {by} of {of}." for name, (of, by) in how_made.items()),
        *([f"Subset {subset}: {len(ids)} of {len(ids) + gathered.left} records."] if subset else []),
        *(note for name, of in records.items() for note in RECORDS[chosen.fields[name]].remarks(name, of)),
        *_beside(gathered),
        *_seen(chosen, inputs),
    ]
    given_as = {
        **fields,
        **options,
        "masks": masks,
        "protocol": protocol,
        "metrics": metrics,
        "settings": {**settings, **of_areas} or None,
        **reading,
        "subset": subset,
    }
    given_as |= {"id_pattern": id_pattern, "group_by": group_by, "groups": groups, "inputs": list(inputs or ()) or None}
    arguments = {name: _recorded(value) for name, value in given_as.items() if value is not None}
    return Prepared(chosen, identity, plan, gathered, tuple(notes), arguments, by_sample)


def _active(suite: Suite, wanted: Iterable[Metric], given: set[str], named: bool) -> tuple[Metric, ...]:
    """The metrics whose fields are given; those that a user `named`, and those of which a part is given, need all."""
    absent = [name for name in suite.required if name not in given]
    if absent:
        raise UsageError(f"{suite.name} needs {' and '.join(absent)}: pass {_flags(absent)}.")
    active = []
    for metric in wanted:
        needed = set(metric.statistic.fields())
        lacking = [name for name in metric.statistic.fields() if name not in given]
        if lacking and (named or (given & needed) - set(suite.required)):
            raise UsageError(f"{snake(type(metric).__name__)} needs {' and '.join(lacking)}: pass {_flags(lacking)}.")
        _refuse_other_records(suite, metric)
        active += [] if lacking else [metric]
    if not active:
        raise UsageError(f"{suite.name} has nothing to measure: pass {_flags(suite.required)}.")
    return tuple(active)


def _check_areas(suite: Suite, areas: Iterable[Area], masks: Any) -> None:
    """Every area is told what it is made by, and no mask takes the name of one."""
    taken = masks if isinstance(masks, Mapping) else {}
    for area in areas:
        if not area.ready:
            raise UsageError(
                f"Which {area.needs[0]} values are {area.names[0]} is not said: pass --{area.key} 'value>0', say."
            )
        for name in (area.key, *area.names):
            if name in taken:
                raise UsageError(f"{suite.name} makes a region {name!r} itself: give the mask another name.")


def _idle(wanted: Iterable[Metric], given: set[str]) -> list[str]:
    """What is not computed for want of fields."""
    idle: dict[tuple[str, ...], list[str]] = {}
    for metric in wanted:
        if missing := tuple(name for name in metric.statistic.fields() if name not in given):
            idle.setdefault(missing, []).append(snake(type(metric).__name__))
    return [f"Not computed: {', '.join(names)}; pass {_flags(missing)}." for missing, names in idle.items()]


def _beside(gathered: Gathered) -> list[str]:
    """What belongs to no truth, and what came again."""
    strays = [
        f"{len(extra)} {name} without a truth left out, the first is {short(extra[0])}."
        for name, extra in gathered.strays.items()
    ]
    again = [
        f"{len(more)} {name} of what has one before, the first is {short(more[0])}: each counts."
        for name, more in gathered.again.items()
    ]
    return strays + again


def _asked(suite: Suite, subset: str | None) -> Callable[[Any], bool] | None:
    """Whether a truth is in the subset; None where all are."""
    if subset is None:
        return None
    if subset not in suite.subsets:
        known = f"it has {', '.join(suite.subsets)}" if suite.subsets else "it has none"
        raise UsageError(f"{suite.name} has no subset {subset!r}; {known}.")
    return suite.subsets[subset]


def _refuse_other_records(suite: Suite, metric: Metric) -> None:
    """A metric of poses says nothing about boxes, nor one of pixels about either."""
    statistic = metric.statistic
    for name in statistic.fields():
        kind = suite.fields.get(name, "")
        if (statistic.record or kind in RECORDS) and kind and kind != statistic.record:
            asked = statistic.record.replace("_", " ") or "pixels"
            raise UsageError(f"{snake(type(metric).__name__)} is of {asked}, and {name} of {suite.name} is of {kind}.")


def _refuse_strays(gathered: Gathered) -> None:
    for name, extra in gathered.strays.items():
        raise InputError(
            f"{counted(len(extra), name)} without a truth, the first is {short(extra[0])}: name it as the truth is, "
            "remove it, or pass --on-stray note to leave it out."
        )
    for name, again in gathered.again.items():
        raise InputError(f"{short(again[0])} of {name} has an id that came before: keep one prediction an id.")


def _seen(suite: Suite, inputs: Iterable[str] | None) -> list[str]:
    """What a reader must know of what the method was given."""
    if not suite.knows:
        return []
    given = list(inputs or ())
    for name in given:
        if name not in suite.knows:
            raise UsageError(f"{suite.name} knows no input {name!r}; it knows {', '.join(suite.knows)}.")
    if not given:
        return [f"Which inputs the method was given is not said: pass --inputs, of {', '.join(suite.knows)}."]
    lacking = [name for name in suite.knows if name not in given]
    without = f", and not {', '.join(lacking)}" if lacking else ""
    return [f"The method was given {', '.join(given)}{without}."]


def declared_frames(sample: Sample, plan: Plan) -> int | None:
    """How many frames a sample will take, where its files say so."""
    lengths = []
    for name in {name for statistic in plan.statistics for name in plan.needs(statistic, sample.sources)}:
        source = sample.sources.get(name)
        if source is None or plan.kind(name) in RECORDS:
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


def _option_settings(suite: Suite, options: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that the suite's own options set."""
    settings: dict[str, Any] = {}
    for name, value in options.items():
        if value is not None:
            settings |= dict.fromkeys(suite.options[name].sets, suite.options[name].read(value))
    return settings


def _selected(suite: Suite, options: Mapping[str, Any]) -> list[str | Metric] | None:
    """The metrics that the suite's own options choose; None where they choose none."""
    for name, value in options.items():
        choices = suite.options[name].selects
        if choices and value is not None:
            if value not in choices:
                raise UsageError(f"--{name.replace('_', '-')} is one of {', '.join(choices)}, not {value!r}.")
            return list(choices[value])
    return None


def _flags(names: Iterable[str]) -> str:
    return " and ".join(map(flag, names))


def _recorded(value: Any) -> Any:
    """An argument as JSON can hold it: paths and metrics as text, arrays as what they are."""
    if isinstance(value, Mapping):
        return {str(key): _recorded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_recorded(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value) if isinstance(value, Path | Metric) else type(value).__name__
