"""A run: what was evaluated, its rows, and the scores, notes and signature that follow from them."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from karat import __version__
from karat.areas import Area
from karat.errors import counted
from karat.measure import Failure, Measured, needs
from karat.metric import Metric, Statistic, snake
from karat.region import ALL
from karat.rows import Rows, concatenate, empty
from karat.score import Value, by_frame, by_sample, of_keys, over_dataset, plain_number, score_key
from karat.suite import Reading
from karat.suites import comments

COMPUTED_BY = ("numpy", "opencv-python-headless", "scipy", "av")


@dataclass(frozen=True)
class Identity:
    """Everything but the data that can change a number."""

    suite: str
    protocol: str
    metrics: tuple[Metric, ...]
    reading: Reading
    fields: tuple[str, ...]
    areas: tuple[Area, ...] = ()
    grouped_by: str = ""
    made: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # field -> which one it is made of, and how
    origins: Mapping[str, str] = field(default_factory=dict)  # field -> what made its content, as its files say

    @cached_property
    def regions(self) -> tuple[str, ...]:
        """The regions that are scored: everything, and what the masks name."""
        named = [name.partition(":")[2] for name in self.fields if name.startswith("mask:")]
        plain = ["foreground", "background"] if "mask" in self.fields else []
        return (ALL, *plain, *named, *(name for area in self.areas for name in area.names))

    def regions_of(self, statistic: Statistic) -> tuple[str, ...]:
        """The regions of a statistic's rows: masks do not apply to what is not pixels."""
        return (ALL,) if statistic.unit == "element" else self.regions

    @cached_property
    def statistics(self) -> dict[str, Statistic]:
        """What is measured, once each, by the name that its columns carry in the tables."""
        names: dict[str, Statistic] = {}
        for statistic in dict.fromkeys(metric.statistic for metric in self.metrics):
            base = snake(type(statistic).__name__)
            names[base if base not in names else f"{base}_{len(names)}"] = statistic
        return names

    def __str__(self) -> str:
        metrics = "+".join(_spelling(metric) for metric in self.metrics)
        parts = [f"karat:{__version__}", f"{self.suite}@{self.protocol}", metrics, self.reading.identity()]
        parts.append(f"regions:{'+'.join(self.regions)}")
        if self.grouped_by:
            parts.append(f"clusters:{self.grouped_by}")
        if self.made:
            parts.append(f"made:{'+'.join(f'{name}={how} of {of}' for name, (of, how) in self.made.items())}")
        parts += [f"{name} by:{origin}" for name, origin in self.origins.items()]
        if self.areas:
            parts.append(f"areas:{'+'.join(map(repr, self.areas))}")
        return "|".join([*parts, *(f"{name}:{installed}" for name, installed in versions().items())])


def digest_of(groups: Mapping[str, str]) -> str:
    """sha256 in hex of which sample is in which group."""
    return hashlib.sha256(json.dumps(sorted(groups.items())).encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """The versions of what computes."""
    found = {}
    for name in COMPUTED_BY:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # OpenCV comes under several names
            found[name] = _opencv() if name.startswith("opencv") else "unknown"
    return found


def _opencv() -> str:
    import cv2

    return str(cv2.__version__)


def _spelling(metric: Metric) -> str:
    return metric.identity() if metric.statistic is metric else f"{metric!r} of {metric.statistic.identity()}"


@dataclass
class Run:
    """An evaluation and its results; `Run.load(folder)` reads one back."""

    identity: Identity
    data: tuple[str, str]  # fingerprints of the truth and of the predictions
    samples: tuple[str, ...]
    measured: Mapping[str, Measured]
    notes_before: Sequence[str] = ()
    folder: Path | None = None
    groups: Mapping[str, str] = field(default_factory=dict)  # sample -> what it belongs to
    record: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str | Path) -> Run:
        """The run that a folder holds, complete or not."""
        from karat.folder import load

        return load(Path(folder))

    @property
    def suite(self) -> str:
        return self.identity.suite

    @property
    def protocol(self) -> str:
        return self.identity.protocol

    @property
    def signature(self) -> str:
        """One line that says what these numbers are: equal lines mean comparable numbers on the same data."""
        truth, pred = self.data
        line = f"{self.identity}|n:{len(self.samples)}|data:{truth[:16]}|pred:{pred[:16]}"
        return f"{line}|groups:{digest_of(self.groups)[:16]}" if self.groups else line

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the method was given, where that was said."""
        return tuple(self.record.get("arguments", {}).get("inputs") or ())

    @property
    def failures(self) -> list[Failure]:
        """Why scores of samples are missing."""
        return [failure for name in self.samples if name in self.measured for failure in self.measured[name].failures]

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """Everything that was measured, in key order, by the statistic's name."""
        done = [self.measured[name] for name in self.samples if name in self.measured]  # in order nothing is copied
        return {
            name: concatenate([one.rows[statistic] for one in done if statistic in one.rows]) if done else empty()
            for name, statistic in self.identity.statistics.items()
        }

    @cached_property
    def scores(self) -> dict[str, Value]:
        """Every score of every region (`score@region`, the whole frame plain) over the dataset."""
        found: dict[str, Value] = {}
        for metric, rows, failed in self._each():
            inapplicable = self._inapplicable(metric)
            if inapplicable and len(inapplicable) + len(failed) == len(self.samples):
                continue  # a note says why
            if len(failed) == len(self.samples):
                regions = self.identity.regions_of(metric.statistic)
                values = {name: dict.fromkeys(regions, _nothing(len(failed))) for name in metric.scores}
            else:
                values = over_dataset(metric, rows, self.samples, failed, inapplicable=inapplicable, groups=self.groups)
            for name, by_region in values.items():
                found |= {score_key(name, region): value for region, value in by_region.items()}
        return found

    @cached_property
    def sample_scores(self) -> dict[str, dict[str, float]]:
        """{sample: {score: value}}; NaN is undefined, a score whose sample failed is absent."""
        found: dict[str, dict[str, float]] = {name: {} for name in self.samples}
        for metric, rows, failed in self._each():
            alive = self._alive(metric, failed)
            for name, scored in (by_sample(metric, rows, alive) if alive else {}).items():
                for sample, values in zip(alive, scored.value.tolist(), strict=True):
                    found[sample] |= {score_key(name, r): value for r, value in zip(rows.regions, values, strict=True)}
        return found

    @cached_property
    def frame_scores(self) -> dict[str, dict[int, dict[str, float]]]:
        """{sample: {frame: {score: value}}} of what is measured by frame, each frame scored by itself."""
        found: dict[str, dict[int, dict[str, float]]] = {name: {} for name in self.samples}
        for metric, rows, _ in self._each():
            if metric.statistic.unit == "item" or metric.combine == "rows" or not len(rows):
                continue
            keys, frames = by_frame(metric, rows)
            for name, score in frames.items():
                for s, f, r, value in zip(keys.sample, keys.frame, keys.region, score.value.tolist(), strict=True):
                    of_frame = found[rows.samples[s]].setdefault(int(f), {})
                    of_frame[score_key(name, rows.regions[r])] = value
        return found

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers must know."""
        return [
            *self.notes_before,
            *self._facts(),
            *comments(self.suite, {name: one.value for name, one in self.scores.items()}),
            *self._remarks(),
            *self.excluded(),
            *self._undefined(),
            *self._failed(),
        ]

    def excluded(self) -> Iterator[str]:
        """What metrics say nothing about, and why."""
        for statistic in self.identity.statistics.values():
            scorers = [metric for metric in self.identity.metrics if metric.statistic == statistic]
            names = ", ".join(snake(type(metric).__name__) for metric in scorers)
            by_reason: dict[str, list[str]] = {}
            for sample, reason in self._inapplicable(scorers[0]).items():
                by_reason.setdefault(reason, []).append(sample)
            for reason, samples in by_reason.items():
                yield f"{names}: {counted(len(samples), 'sample')} left out, the first is {samples[0]}: {reason}"

    def plain(self) -> dict[str, Any]:
        """The scores as strict JSON: the same bytes for the same inputs."""
        return {
            "suite": self.suite,
            "protocol": self.protocol,
            "signature": self.signature,
            "scores": {name: value.plain() for name, value in self.scores.items()},
            "notes": self.notes,
        }

    def table(self) -> list[dict[str, Any]]:
        """One record a score and region."""
        return [
            {"score": score, "region": region, **self.scores[key].__dict__}
            for key, (score, region) in of_keys(self.scores).items()
        ]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={plain_number(value.value)}" for name, value in self.scores.items())
        return f"Run({self.suite}@{self.protocol}, n={len(self.samples)}: {values})"

    def _each(self) -> Iterator[tuple[Metric, Rows, set[str]]]:
        name_of = {statistic: name for name, statistic in self.identity.statistics.items()}
        for metric in self.identity.metrics:
            statistic = metric.statistic
            identity = self.identity
            made = {name: of for name, (of, _) in identity.made.items()}
            named = needs(statistic, dict.fromkeys(identity.fields), identity.areas, made)
            blamed = {statistic.identity(), *named}
            failed = {failure.sample for failure in self.failures if failure.field in blamed}
            yield metric, self.rows[name_of[statistic]], failed | (set(self.samples) - set(self.measured))

    def _inapplicable(self, metric: Metric) -> dict[str, str]:
        """The samples that the metric says nothing about, and why."""
        identity = metric.statistic.identity()
        why = {
            name: self.measured[name].facts.get("inapplicable", {}) for name in self.samples if name in self.measured
        }
        return {name: reasons[identity] for name, reasons in why.items() if identity in reasons}

    def _alive(self, metric: Metric, failed: Collection[str]) -> list[str]:
        """The samples whose rows are scored."""
        inapplicable = self._inapplicable(metric)
        return [name for name in self.samples if name not in failed and name not in inapplicable]

    def _facts(self) -> Iterator[str]:
        facts = [self.measured[name].facts for name in self.samples if name in self.measured]
        cut = sum("truncated" in one for one in facts)
        if cut:
            yield f"{counted(cut, 'sample')} cut to the shorter side."
        for name, count in Counter(name for one in facts for name in one.get("resized", ())).items():
            yield f"{name} of {counted(count, 'sample')} resized to the truth."
        scored = [one for one in facts if len(one.get("inapplicable", ())) < len(self.identity.statistics)]
        for name, count in Counter(name for one in scored for name in one.get("absent", ())).items():
            yield f"{name} of {counted(count, 'sample')} missing: scored as empty."
        for name, count in Counter(name for one in facts for name in one.get("whole", ())).items():
            yield f"{name} of {counted(count, 'sample')}: whole numbers as they are; pass --scale if they have one."
        nameless: Counter[str] = sum((Counter(one.get("nameless", {})) for one in facts), Counter())
        for name, count in nameless.items():
            yield f"{counted(count, 'segment')} without a name in {name}: left out."
        rates = [one["fps"] for one in facts if len(set(one.get("fps", {}).values())) > 1]
        if rates:
            example = ", ".join(f"{name} {fps:g}" for name, fps in rates[0].items())
            said = f"Frame rates differ in {counted(len(rates), 'sample')} ({example} in the first)"
            yield f"{said}: frames are paired by index."

    def _remarks(self) -> Iterator[str]:
        for metric, rows, _ in self._each():
            if len(rows):
                yield from metric.remarks(rows)

    def _undefined(self) -> Iterator[str]:
        for metric, rows, failed in self._each():
            alive = self._alive(metric, failed)
            if metric.pool != "frame" or not alive:
                continue
            for name, scored in by_sample(metric, rows, alive).items():
                for column, region in enumerate(rows.regions):
                    frames = int(scored.undefined_frames[:, column].sum())
                    if frames:
                        samples = int((scored.undefined_frames[:, column] > 0).sum())
                        of = f"{counted(frames, 'frame')} of {counted(samples, 'sample')}"
                        yield f"{score_key(name, region)}: {of} undefined and left out."

    def _failed(self) -> Iterator[str]:
        missing = len(self.samples) - len(self.measured)
        if missing:
            yield f"{counted(missing, 'sample')} not yet evaluated: run the same command again to go on."
        failed = {failure.sample for failure in self.failures}
        if failed:
            first = self.failures[0]
            yield f"{counted(len(failed), 'sample')} failed, the first is {first.sample}: {first.reason}"


def _nothing(failed: int) -> Value:
    return Value(math.nan, 0, 0, 0, failed)
