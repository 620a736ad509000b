"""The cases of the metrics: one JSON file each, read strictly."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.inputs import build

from karat.metric import Metric, Statistic, metrics, snake
from karat.suite import Changed, changing, statistics

FOLDER = Path(__file__).parents[1] / "cases"


@dataclass(frozen=True)
class Case:
    """Inputs and what a metric must say of them; `raises` is a part of the refusal instead."""

    name: str
    inputs: Mapping[str, Any]
    why: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    regions: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)
    raises: str = ""
    rtol: float = 1e-12
    atol: float = 0.0

    def metric(self, kind: type[Metric]) -> Metric:
        """The metric with the case's parameters."""
        return _with(kind(), self.params)

    def score(self, kind: type[Metric]) -> dict[str, float]:
        """What the metric says."""
        fields: dict[str, Any] = {}
        for name, given in sorted(self.inputs.items(), key=lambda item: "same" in item[1]):
            fields[name] = build(given, fields)
        regions = {name: build(given, fields) for name, given in self.regions.items()}
        return self.metric(kind)(**fields, regions=regions)

    def wanted(self) -> dict[str, float]:
        """The expected numbers; null is NaN, infinities are spelled as text."""
        return {name: math.nan if value is None else float(value) for name, value in self.expected.items()}


@dataclass(frozen=True)
class Cases:
    """A metric's file."""

    metric: str
    cases: tuple[Case, ...]
    perturb: Mapping[str, Any] = field(default_factory=dict)


def kinds() -> dict[str, type[Metric]]:
    """Karat's own metrics, those of other modules left out."""
    return {name: kind for name, kind in metrics().items() if kind.__module__.startswith("karat.metrics.")}


def path(kind: type[Metric]) -> Path:
    """Where a metric's cases are."""
    return FOLDER / f"{snake(kind.__name__)}.json"


def read(file: Path) -> Cases:
    """A cases file; an unknown key is an error."""
    given = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_constant)
    cases = tuple(Case(**case) for case in given.pop("cases"))
    return Cases(cases=cases, **{name: _value(value) if name == "perturb" else value for name, value in given.items()})


def perturbed(kind: type[Metric]) -> Mapping[str, Any]:
    """Other values of fields for which none can be derived."""
    own = path(kind)
    return read(own).perturb if kind.__module__.startswith("karat.metrics.") and own.exists() else {}


def _with(changed: Changed, params: Mapping[str, Any]) -> Changed:
    """The metric or statistic with other parameters; a mapping in the place of a statistic holds that one's."""
    values = {}
    for name, value in params.items():
        of = getattr(changed, name, None)
        if isinstance(of, Statistic) and isinstance(value, Mapping):
            own = dict(value)
            if "statistic" in own:
                of = statistics(changed, name)[own.pop("statistic")]()
            values[name] = _with(of, own)
        else:
            values[name] = _value(value)
    return changing(changed, values)


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(one) for name, one in value.items()}
    return tuple(map(_value, value)) if isinstance(value, list) else value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON: write null or text")
