"""What there is to know of a metric or a suite, generated from the code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import get_type_hints

from karat.errors import UsageError
from karat.metric import Metric, Score, Statistic, find, metrics, snake
from karat.parameters import spelled_hint
from karat.suite import Suite, overridden
from karat.suites import load, names


@dataclass(frozen=True)
class Parameter:
    """A field of a metric."""

    name: str
    default: str
    choices: str


@dataclass(frozen=True)
class MetricPage:
    """A metric: sentence, formula, shapes, edges and citation as its docstring has them, and its parameters."""

    name: str
    spelling: str
    text: str
    needs: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scores: Mapping[str, Score]
    aliases: tuple[str, ...]
    parts: Mapping[str, str]
    exempt: Mapping[str, str]
    protocols: Mapping[str, Mapping[str, str]]  # suite@protocol -> the fields it sets differently
    statistic: tuple[str, str] | None = None  # name and text of the statistic that it scores, where that is not itself


@dataclass(frozen=True)
class SuitePage:
    """A suite: its metrics, and a table of how its protocols differ."""

    name: str
    title: str
    fields: Mapping[str, str]
    metrics: tuple[str, ...]
    protocols: Mapping[str, str]
    differences: Sequence[tuple[str, Mapping[str, str]]]
    settings: Sequence[tuple[str, Mapping[str, str]]]
    citation: str


def describe(name: str) -> MetricPage | SuitePage:
    """The page of a suite, or of the metric that goes by the name (class, snake case, score or alias)."""
    if name in names():
        return suite_page(load(name))
    try:
        return metric_page(find(name))
    except UsageError as error:
        raise UsageError(f"{str(error).rstrip('.')}; suites are {', '.join(names())}.") from None


def metric_page(kind: type[Metric]) -> MetricPage:
    """A metric's page."""
    return MetricPage(
        snake(kind.__name__),
        kind.__name__,
        inspect.getdoc(kind) or "",
        kind().statistic.fields(),
        tuple(_parameters(kind)),
        kind.scores,
        kind.aliases,
        kind.parts,
        kind.exempt,
        {
            f"{suite}@{protocol}": changes
            for suite in names()
            for protocol, changes in _overrides(load(suite), kind).items()
        },
        _statistic(kind().statistic) if kind().statistic != kind() else None,
    )


def _statistic(statistic: Statistic) -> tuple[str, str]:
    return snake(type(statistic).__name__), inspect.getdoc(statistic) or ""


def suite_page(suite: Suite) -> SuitePage:
    """A suite's page."""
    return SuitePage(
        suite.name,
        suite.title,
        suite.fields,
        tuple(snake(type(metric).__name__) for metric in suite.metrics),
        {name: protocol.about for name, protocol in suite.protocols.items()},
        suite.differences,
        _settings(suite),
        suite.citation,
    )


def catalogue() -> dict[str, tuple[tuple[str, str, str], ...]]:
    """Suites and metrics by name, with a line each."""
    return {
        "suites": tuple((name, load(name).title, ", ".join(load(name).protocols)) for name in names()),
        "metrics": tuple((snake(name), _sentence(kind), ", ".join(kind.scores)) for name, kind in metrics().items()),
    }


def score_names() -> str:
    """The table of all score names, as Markdown."""
    lines = ["| score | metric | better | bounds | what | also called |", "|---|---|---|---|---|---|"]
    for page in map(metric_page, metrics().values()):
        for name, score in page.scores.items():
            low, high = score.bounds
            also = ", ".join((page.name, *page.aliases))
            cells = (f"`{name}`", page.spelling, score.better or "", f"{low:g} .. {high:g}", score.about, also)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _settings(suite: Suite) -> list[tuple[str, dict[str, str]]]:
    """Every parameter in which two protocols differ, and its value in each."""
    under = {name: suite.under(name) for name in suite.protocols}
    rows: dict[str, dict[str, str]] = {}
    for protocol, (chosen, reading) in under.items():
        for metric in chosen:
            for key, value in _values(metric):
                rows.setdefault(key, {})[protocol] = value
        for parameter in fields(reading):
            rows.setdefault(parameter.name, {})[protocol] = repr(getattr(reading, parameter.name))
    return [(key, values) for key, values in rows.items() if len(set(values.values())) > 1]


def _overrides(suite: Suite, kind: type[Metric]) -> dict[str, dict[str, str]]:
    base = next((metric for metric in suite.metrics if type(metric) is kind), None)
    if base is None:
        return {}
    changed = {}
    for name, protocol in suite.protocols.items():
        usual = dict(_values(kind()))
        own = _values(overridden(base, protocol.metrics))
        changed[name] = {key.rpartition(".")[2]: value for key, value in own if usual.get(key) != value}
    return changed


def _values(metric: Metric) -> Iterator[tuple[str, str]]:
    """Every parameter of a metric and of the statistic that it scores, as `name.parameter`, and how it is spelled."""
    name, statistic = snake(type(metric).__name__), metric.statistic
    for parameter in fields(metric):
        value = getattr(metric, parameter.name)
        yield f"{name}.{parameter.name}", type(value).__name__ if value is statistic else repr(value)
    if statistic is not metric:
        own = snake(type(statistic).__name__)
        yield from ((f"{own}.{one.name}", repr(getattr(statistic, one.name))) for one in fields(statistic))


def _parameters(kind: type[Metric]) -> list[Parameter]:
    """Of the metric, and of the statistic that it scores under that one's name."""
    metric = kind()
    statistic = metric.statistic
    own = [one for one in _spelled(metric) if getattr(metric, one.name) is not statistic]
    if statistic is metric:
        return own
    name = snake(type(statistic).__name__)
    return own + [replace(one, name=f"{name}.{one.name}") for one in _spelled(statistic)]


def _spelled(owner: Statistic) -> list[Parameter]:
    hints = get_type_hints(type(owner))
    return [Parameter(one.name, repr(getattr(owner, one.name)), spelled_hint(hints[one.name])) for one in fields(owner)]


def _sentence(kind: type[Metric]) -> str:
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split()).split(":")[0].split(". ")[0].rstrip(".")
