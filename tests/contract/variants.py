"""A metric with one field changed, for every field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from contract.cases import perturbed

from karat.errors import UsageError
from karat.metric import Metric, Statistic


@dataclass(frozen=True)
class Variant:
    """The metric with another value of one field; `value` is what it was changed to."""

    field: str
    value: Any
    metric: Any  # a metric, or the statistic of one


def changed(metric: Metric) -> list[Variant]:
    """One or more variants for every field; none for a field that has one value only."""
    given = perturbed(type(metric))
    hints = get_type_hints(type(metric))
    found = []
    for field in fields(metric):
        value = getattr(metric, field.name)
        groups = [[given[field.name]]] if field.name in given else list(_others(hints[field.name], value, given))
        variants = [one for group in groups if (one := _first(metric, field.name, group))]
        only = not groups and (isinstance(value, Statistic) or _choices(hints[field.name]) == [value])
        assert variants or only, (
            f"{type(metric).__name__}.{field.name} = {value!r}: no other valid value is known; "
            f'name one under "perturb" in its cases'
        )
        found += variants
    return found


def _first(metric: Statistic, name: str, values: list[Any]) -> Variant | None:
    for value in values:
        try:
            other = replace(metric, **{name: value})
            getattr(other, "statistic", other).inputs()
        except UsageError:
            continue
        return Variant(name, value, other)
    return None


def _others(hint: Any, value: Any, given: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Groups of other values: of each group one is taken, the first that the metric allows."""
    if isinstance(value, Statistic):
        yield from ([one] for one in _nested(value, given))
        return
    yield from ([choice] for choice in _choices(hint) if choice != value)
    if value is None:
        yield from ([example] for part, example in ((float, 0.5), (int, 1)) if part in get_args(hint))
    elif isinstance(value, bool):
        yield [not value]
    elif isinstance(value, int | float) and value not in _choices(hint):
        yield [value + 1, value + 2, value * 1.5, value - 1, value / 2]
    elif isinstance(value, tuple) and value:
        for i, one in enumerate(value):
            yield [(*value[:i], other, *value[i + 1 :]) for group in _others(type(one), one, {}) for other in group]


def _nested(statistic: Statistic, given: Mapping[str, Any]) -> Iterator[Statistic]:
    """The statistic with one field changed, for every field and group."""
    hints = get_type_hints(type(statistic))
    for field in fields(statistic) if is_dataclass(statistic) else ():
        own = [[given[field.name]]] if field.name in given else None
        for group in own or _others(hints[field.name], getattr(statistic, field.name), given):
            other = _first(statistic, field.name, group)
            if other is not None:
                yield other.metric


def _choices(hint: Any) -> list[Any]:
    """The values that Literals within a type name."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for part in get_args(hint) for choice in _choices(part)]
