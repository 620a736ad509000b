"""A suite is a published evaluation as data; a protocol is a reading of it: a few overridden fields."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from karat.areas import Area
from karat.errors import UsageError
from karat.metric import Derived, Metric, Statistic, find, snake

Changed = TypeVar("Changed", bound=Statistic)


_CHOICES = {"on_length": ("error", "truncate"), "on_size": ("error", "resize"), "on_stray": ("note", "error")}


@dataclass(frozen=True)
class Reading:
    """How samples become frames; every field can change a number and is signed."""

    first: int | None = None  # how many frames of each clip, from its start
    stride: int = 1  # every so many frames of those
    on_length: Literal["error", "truncate"] = "error"
    on_size: Literal["error", "resize"] = "error"
    depth_resize: Literal["smooth", "nearest"] = "smooth"
    value_range: tuple[float, float] | None = None  # of floating frames: what is black, what is white
    scale: tuple[float, float] | None = None  # of fields: what the ends of the stored range stand for
    stored: tuple[float, float] | None = None  # the range in which fields are stored; None: the type's, or as they are
    units: str | None = None  # of fields, on their scale
    on_stray: Literal["note", "error"] = "note"  # predictions without a truth, and several for one

    def __post_init__(self) -> None:
        if not all(1 <= count < 1 << 31 for count in (1 if self.first is None else self.first, self.stride)):
            raise UsageError(f"frames and stride start at 1, not frames={self.first}, stride={self.stride}.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(f"{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}.")
        for span in (self.value_range, self.scale, self.stored):
            if span is not None and not -math.inf < span[0] < span[1] < math.inf:
                raise UsageError(f"A range runs from the smaller to the larger number, not {span}.")
        if self.stored is not None and self.scale is None:
            raise UsageError("What the stored range stands for is missing: pass --scale, such as --scale -186..-47.")

    def identity(self) -> str:
        """The signature's part."""
        parts = [
            f"frames:{self.first or 'all'}",
            f"stride:{self.stride}",
            f"length:{self.on_length}",
            f"size:{self.on_size}",
        ]
        if self.on_size == "resize":
            parts.append(f"depth_resize:{self.depth_resize}")
        if self.on_stray != "note":
            parts.append(f"strays:{self.on_stray}")
        given = {"range": self.value_range, "scale": self.scale, "from": self.stored, "units": self.units}
        return "|".join([*parts, *(f"{name}:{value}" for name, value in given.items() if value is not None)])


def literal(text: str) -> Any:
    """A value as it is typed: a number, a tuple, True, None, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


@dataclass(frozen=True)
class Option:
    """A flag of the suite's own: `sets` are the parameters (metric.field) that it gives, `read` makes their value.

    selects: for each value of a flag that sets nothing, the metrics that are evaluated.
    """

    sets: tuple[str, ...] = ()
    read: Callable[[Any], Any] = lambda value: literal(value) if isinstance(value, str) else value
    selects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Export:
    """Another layout of a run's results, of one protocol where it names one; `write(run, path)` raises OSError."""

    about: str
    write: Callable[[Any, Path], None]
    protocol: str = ""


@dataclass(frozen=True)
class Protocol:
    """Overridden fields: of metrics and statistics (by their snake-case name) and of the reading."""

    about: str
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    areas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by the name of an area's first region
    network: Mapping[str, Any] = field(default_factory=dict)  # of the network that gives pictures their features


def _silent(scores: Mapping[str, float]) -> Iterable[str]:  # noqa: ARG001
    return ()


@dataclass(frozen=True)
class Suite:
    """Which fields are read, which metrics they feed, how protocols differ, what to cite."""

    name: str
    title: str
    fields: Mapping[str, str]  # field -> kind of source
    required: tuple[str, ...]
    truth: str  # the field whose samples are counted
    metrics: tuple[Metric, ...]
    protocols: Mapping[str, Protocol]
    reading: Reading = Reading()
    arrays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # field -> names of its array among others
    shard_samples: int = 1
    detects: Mapping[str, str] = field(default_factory=dict)  # flag of videos -> field of boxes that are found in them
    embeds: tuple[str, ...] = ()  # fields of features, in whose place pictures may be given
    aligns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # field of embeddings -> flags of the pictures
    # with captions that they are made of: those that are scored, and those of before an edit
    cluster: str = ""  # what samples are drawn by for intervals, where nothing else is asked for: each by itself
    subsets: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)  # name -> whether a truth is in it
    options: Mapping[str, Option] = field(default_factory=dict)
    exports: Mapping[str, Export] = field(default_factory=dict)
    headline: tuple[str, ...] = ()  # the scores that a table shows first, where not all
    areas: tuple[Area, ...] = ()  # regions made of fields, where these are given
    made: Mapping[str, Derived] = field(default_factory=dict)  # fields that another one stands for, where not given
    on_scale: tuple[str, ...] = ()  # parameters (metric.field) that are a declared scale
    scaled: tuple[str, ...] = ()  # parameters (metric.field) that are the width of a declared scale
    tables: tuple[str, ...] = ()  # the kinds of parts that have a table of their own below it
    differences: Sequence[tuple[str, Mapping[str, str]]] = ()  # question -> each protocol's answer
    bands: Mapping[str, Sequence[tuple[float, str]]] = field(default_factory=dict)  # score -> bounds and their words
    expected: Mapping[str, str] = field(default_factory=dict)  # score -> what an ideal method has
    comments: Callable[[Mapping[str, float]], Iterable[str]] = _silent  # sentences about {score: value}
    knows: Mapping[str, str] = field(default_factory=dict)  # what a method may have been given -> what that is
    favours: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # such an input -> regions that it favours
    baselines: Mapping[str, Callable[[Mapping[str, Any], Callable[[Any], Any]], Any]] = field(
        default_factory=dict
    )  # a sample's sources, and how the truth is read -> pred
    baseline_inputs: tuple[str, ...] = ()  # what baselines are given
    citation: str = ""

    def made_of(self, given: Collection[str]) -> dict[str, Derived]:
        """The fields that are not given, and what they are made of where that is."""
        return {name: one for name, one in self.made.items() if name not in given and one.field in given}

    def under(
        self,
        protocol: str,
        metrics: Iterable[str | Metric] | None = None,
        settings: Mapping[str, Any] | None = None,
        reading: Mapping[str, Any] | None = None,
        offered: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[Metric, ...], Reading]:
        """The metrics and the reading of a protocol, with a user's own choice of metrics, fields and reading.

        `offered` are settings too, which apply to those that are evaluated.
        """
        if protocol not in self.protocols:
            raise UsageError(f"{self.name} has no protocol {protocol!r}; it has {', '.join(self.protocols)}.")
        chosen = self.protocols[protocol]
        wanted = self.metrics if metrics is None else tuple(self._pick(name) for name in metrics)
        plain = tuple(
            metric.metric if isinstance(metric, _Given) else overridden(metric, chosen.metrics) for metric in wanted
        )
        evaluated = {snake(type(one).__name__) for metric in plain for one in (metric, metric.statistic)}
        fitting = {key: value for key, value in (offered or {}).items() if key.partition(".")[0] in evaluated}
        for key, value in {**fitting, **(settings or {})}.items():
            plain = _set(plain, key, value)
        own = {name: value for name, value in (reading or {}).items() if value is not None}
        return _distinct(plain), replace(self.reading, **{**chosen.reading, **own})

    def areas_under(self, protocol: str, settings: Mapping[str, Any]) -> tuple[Area, ...]:
        """The areas of a protocol, with a user's own settings of them ({"distance.edges": (5, 10)})."""
        own: dict[str, dict[str, Any]] = {key: dict(values) for key, values in self.protocols[protocol].areas.items()}
        for name, value in settings.items():
            key, _, parameter = name.partition(".")
            own.setdefault(key, {})[parameter] = value
        return tuple(area.changed(own) for area in self.areas)

    def _pick(self, name: str | Metric) -> Metric | _Given:
        if isinstance(name, Metric):
            return _Given(name)
        if "(" in name:
            return _Given(spelled(name))
        kind = find(name)
        return next((metric for metric in self.metrics if type(metric) is kind), None) or kind()


@dataclass(frozen=True)
class _Given:
    """A metric that the user spelled out: a protocol does not change it."""

    metric: Metric


def spelled(text: str) -> Metric:
    """A metric as its repr spells it: `CannyF1(low=50)`."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise UsageError(f"{text!r} is no metric; spell it like CannyF1(low=50, high=150).") from None
    return changing(find(call.func.id)(), values)


def changing(changed: Changed, values: Mapping[str, Any]) -> Changed:
    """The metric or statistic with other parameters; an unknown one is an error that lists those there are."""
    known = [one.name for one in fields(changed)]
    for name in values:
        if name not in known:
            raise UsageError(f"{type(changed).__name__} has no parameter {name!r}; it has {', '.join(known)}.")
    try:
        return replace(changed, **values)
    except TypeError as error:
        raise UsageError(f"{type(changed).__name__} does not take {dict(values)!r}: {error}.") from None


def overridden(metric: Metric, values: Mapping[str, Mapping[str, Any]]) -> Metric:
    """The metric with what `values` says of it and of the statistic that it scores, by their snake-case names."""
    own = values.get(snake(type(metric).__name__), {})
    statistic = metric.statistic
    if statistic is not metric and (measured := values.get(snake(type(statistic).__name__), {})):
        own = {"of": changing(statistic, measured), **own}
    return changing(metric, own)


def recorded(metric: Statistic) -> dict[str, Any]:
    """A metric as JSON can hold it."""
    own = {one.name: getattr(metric, one.name) for one in fields(metric)}
    parts = {name: recorded(value) if isinstance(value, Statistic) else value for name, value in own.items()}
    return {"metric": type(metric).__name__, "parameters": parts}


def restored(like: Changed, record: Mapping[str, Any]) -> Changed:
    """The metric that was recorded; `like` is one of its class."""
    if record["metric"] != type(like).__name__:
        raise KeyError(record["metric"])
    given = {}
    for name, value in record["parameters"].items():
        scored = isinstance(getattr(like, name, None), Statistic)
        given[name] = restored(statistics(like, name)[value["metric"]](), value) if scored else tuples(value)
    return changing(like, given)


def statistics(of: Statistic, name: str) -> dict[str, type[Statistic]]:
    """What the field of that name may hold: the kind of statistic that it holds, and those of its type."""
    hint = get_type_hints(type(of))[name]
    return {kind.__name__: kind for kind in (type(getattr(of, name)), *(get_args(hint) or _kinds(hint)))}


def _kinds(of: type[Statistic]) -> list[type[Statistic]]:
    """A kind of statistic and all that are of it."""
    return [of, *(kind for below in of.__subclasses__() for kind in _kinds(below))]


def tuples(value: Any) -> Any:
    """Lists, as JSON has them, as the tuples that they were."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def _set(metrics: tuple[Metric, ...], key: str, value: Any) -> tuple[Metric, ...]:
    """`name.field = value` applied to the metric of that name, or to the statistic of that name in all who score it."""
    name, dot, parameter = key.partition(".")
    if not dot:
        raise UsageError(f"{key!r} sets nothing; write metric.parameter=value, such as canny_f1.low=50.")
    known = {snake(type(one).__name__) for metric in metrics for one in (metric, metric.statistic)}
    wanted = name if name in known else snake(find(name).__name__)
    if wanted not in known:
        raise UsageError(f"{name} is not evaluated here; evaluated are {', '.join(sorted(known))}.")
    return tuple(overridden(metric, {wanted: {parameter: value}}) for metric in metrics)


def _distinct(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    owner: dict[str, Metric] = {}
    for metric in metrics:
        for name in metric.scores:
            if owner.setdefault(name, metric) != metric:
                raise UsageError(
                    f"Two metrics give {name}: {owner[name]!r} and {metric!r}; evaluate them in separate runs."
                )
    return tuple(dict.fromkeys(metrics))
