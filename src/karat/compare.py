"""Runs side by side: whether they may be ranked, which scores are unfair, how much better than a baseline they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import UsageError
from karat.evaluation import evaluate
from karat.feed import in_units
from karat.metric import Array, metrics
from karat.prepare import prepare
from karat.run import Run
from karat.score import of_keys, plain_number
from karat.suite import Reading, Suite
from karat.suites import load, names


@dataclass(frozen=True)
class Comparison:
    """runs: by name.  ranked: whether one can be called better than another.  unfair: keys of scores that favour runs
    whose method was given more.  notes: why.  skill: 1 - error / error of the baseline, by run and key."""

    runs: Mapping[str, Run]
    ranked: bool
    unfair: frozenset[str]
    notes: tuple[str, ...]
    skill: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    against: str = ""

    def plain(self) -> dict[str, Any]:
        """As strict JSON has it."""
        skill = {name: {key: plain_number(one) for key, one in of.items()} for name, of in self.skill.items()}
        return {
            "ranked": self.ranked,
            "unfair": sorted(self.unfair),
            "notes": list(self.notes),
            "against": self.against,
            "skill": skill,
            "runs": {name: run.plain() for name, run in self.runs.items()},
        }


def compare(runs: Mapping[str, Run], against: str | None = None) -> Comparison:
    """Runs of one suite; `against` names the one that the others' skill is measured against."""
    first, *others = runs.values()
    if any(other.suite != first.suite for other in others):
        raise UsageError(f"Runs of one suite are compared, not of {', '.join(run.suite for run in runs.values())}.")
    if against is not None and against not in runs:
        raise UsageError(f"There is no run {against!r}; there are {', '.join(runs)}.")
    notes = []
    if any(str(other.identity) != str(first.identity) for other in others):
        notes.append("Not ranked: these runs were scored by other protocols, parameters, regions or versions.")
    if any(other.data[0] != first.data[0] for other in others):
        notes.append("Not ranked: these runs have not the same truth and the same observations.")
    unfair, why = _unfair(runs, load(first.suite) if first.suite in names() else None)
    skill = _skill(runs, against) if against is not None else {}
    return Comparison(dict(runs), not notes, unfair, (*notes, *why), skill, against or "")


def baselines(
    main: Run, suite: Suite, wanted: str, out: Path | None = None, workers: int | None = None, **inputs: Any
) -> dict[str, Run]:
    """The suite's classical baselines (`wanted`: all, or some of them by name), evaluated as a run was, on predictions
    that are made of the truth where it was observed; `inputs` are what that run was given."""
    chosen = list(suite.baselines) if wanted == "all" else wanted.split(",")
    for name in chosen:
        if name not in suite.baselines:
            raise UsageError(f"{suite.name} has no baseline {name!r}; it has {', '.join(suite.baselines)}.")
    prepared = prepare(suite, **inputs)
    read = partial(_as_stored, prepared.identity.reading)
    made = {name: {one.id: suite.baselines[name](one.sources, read) for one in prepared.samples} for name in chosen}
    areas = {area.key for area in suite.areas}
    settings = {key: one for key, one in (inputs.get("settings") or {}).items() if key.partition(".")[0] in areas}
    shared = {name: value for name, value in inputs.items() if not name.startswith("pred")} | {"settings": settings}
    shared["inputs"] = suite.baseline_inputs
    lacking = {name for name in suite.fields if shared.get(name) is None} - {"pred"}
    shared["metrics"] = [one for one in main.identity.metrics if not lacking & set(one.statistic.fields())]
    return {
        name: evaluate(suite, **shared, pred=pred, out=out / "baselines" / name if out else None, workers=workers)
        for name, pred in made.items()
    }


def _as_stored(reading: Reading, truth: Array) -> Array:
    """The truth in floats that are read as it is: in the range that fields are declared to be stored in, or units."""
    return (truth if reading.stored is not None else in_units(truth, reading, False, "truth")).astype(np.float64)


def _unfair(runs: Mapping[str, Run], suite: Suite | None) -> tuple[frozenset[str], list[str]]:
    if suite is None or not suite.favours:
        return frozenset(), []
    given = {name: set(run.inputs) for name, run in runs.items()}
    keys, notes = set[str](), []
    for known, regions in suite.favours.items():
        having = [name for name, of in given.items() if known in of]
        if having and len(having) < len(runs):
            keys |= {key for run in runs.values() for key, (_, r) in of_keys(run.scores).items() if r in regions}
            notes.append(f"Only {', '.join(having)} was given {known}: scores marked † favour it.")
    silent = [name for name, of in given.items() if not of]
    if silent and len(silent) < len(runs):
        notes.append(f"What {', '.join(silent)} was given is not said: evaluate with --inputs.")
    return frozenset(keys), notes


def _skill(runs: Mapping[str, Run], against: str) -> dict[str, dict[str, float]]:
    """Of errors, that are 0 at best."""
    declared = {name: score for kind in metrics().values() for name, score in kind.scores.items()}
    base = runs[against].scores
    errors = [
        key
        for key, (name, _) in of_keys(base).items()
        if name in declared and declared[name].better == "lower" and declared[name].bounds[0] == 0
    ]
    return {
        name: {
            key: 1 - run.scores[key].value / base[key].value if base[key].value > 0 else math.nan
            for key in errors
            if key in run.scores
        }
        for name, run in runs.items()
    }
