"""From rows to numbers: pool statistics, score them, average the scores level by level, count what is undefined."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from karat.intervals import clustered
from karat.metric import Array, Metric, Sums, Weighted, metrics, ratio
from karat.region import ALL
from karat.rows import Rows, reduce

SAMPLES_AT_ONCE = 500  # that are scored together, which bounds what is held besides the rows


@dataclass(frozen=True)
class Value:
    """A dataset's score; n + undefined + excluded + failed is the number of truth samples. `interval` of 95 %, where
    samples are grouped."""

    value: float
    n: int
    undefined: int
    excluded: int
    failed: int
    interval: tuple[float, float] | None = None

    def plain(self) -> dict[str, Any]:
        """Strict JSON: null is undefined, infinities are strings."""
        plain = {**self.__dict__, "value": plain_number(self.value)}
        return plain if self.interval else {name: value for name, value in plain.items() if name != "interval"}


def plain_number(value: float) -> float | str | None:
    """A number as strict JSON has it: NaN as null, infinities as strings."""
    if math.isnan(value):
        return None
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else float(value)


def score_key(name: str, region: str) -> str:
    """score, or score@region."""
    return name if region == ALL else f"{name}@{region}"


def of_keys(keys: Iterable[str]) -> dict[str, tuple[str, str]]:
    """For each key its score and its region; a score's own name may have an @, as PCK@5."""
    known = {score for kind in metrics().values() for score in kind.scores}

    def parted(key: str) -> tuple[str, str]:
        if key in known:
            return key, ALL
        ends = (place for place in range(len(key) - 1, 0, -1) if key[place] == "@")
        end = next((place for place in ends if key[:place] in known), key.find("@"))
        return (key, ALL) if end < 0 else (key[:end], key[end + 1 :])

    return {key: parted(key) for key in keys}


@dataclass(frozen=True)
class Scored:
    """Values of one score and their weights in the next mean, (samples, regions)."""

    value: Array
    weight: Array
    undefined_frames: Array


def by_frame(metric: Metric, rows: Rows) -> tuple[Rows, dict[str, Weighted]]:
    """Each frame's scores by themselves: the rows' keys (one row a frame and region), and a column a score."""
    group = (rows.sample.astype(np.int64) * (1 + rows.frame.max(initial=0)) + rows.frame) * len(
        rows.regions
    ) + rows.region
    _, first, index = np.unique(group, return_index=True, return_inverse=True)
    sums = Sums(rows.columns, rows.labels, lambda column: reduce(column, index, len(first)))
    return rows.take(first), _scored(metric, sums)


def by_sample(metric: Metric, rows: Rows, samples: Sequence[str]) -> dict[str, Scored]:
    """Each sample's scores, pooled as the metric says (a metric pooled over the dataset: of that sample alone)."""
    rows = rows.of(samples)
    if metric.combine == "rows" or (rows.sample[1:] < rows.sample[:-1]).any():
        return _by_sample(metric, rows, len(samples))
    parts = []
    for start in range(0, max(len(samples), 1), SAMPLES_AT_ONCE):
        stop = min(start + SAMPLES_AT_ONCE, len(samples))
        part = rows.take(slice(*np.searchsorted(rows.sample, (start, stop))))
        parts.append(_by_sample(metric, replace(part, sample=part.sample - np.int32(start)), stop - start))
    return {
        name: Scored(*(np.concatenate([getattr(one[name], of.name) for one in parts]) for of in fields(Scored)))
        for name in parts[0]
    }


def _by_sample(metric: Metric, rows: Rows, count: int) -> dict[str, Scored]:
    shape = (count, len(rows.regions))
    cell = rows.sample.astype(np.int64) * shape[1] + rows.region
    if metric.pool != "frame":
        scored = (
            _each_by_itself(metric, rows, cell, math.prod(shape))
            if metric.combine == "rows"
            else _scored(metric, Sums(rows.columns, rows.labels, lambda column: reduce(column, cell, math.prod(shape))))
        )
        return {
            name: Scored(score.value.reshape(shape), score.weight.reshape(shape), np.zeros(shape, np.int64))
            for name, score in scored.items()
        }
    keys, frames = by_frame(metric, rows)
    cell = keys.sample.astype(np.int64) * shape[1] + keys.region
    by_name = {}
    for name, score in frames.items():
        undefined = np.isnan(score.value) & (score.weight != 0)
        defined = ~undefined & (score.weight != 0)
        with np.errstate(invalid="ignore"):
            total = reduce(np.where(defined, score.value * score.weight, 0.0), cell, shape[0] * shape[1])
        mean = ratio(total, reduce(np.where(defined, score.weight, 0.0), cell, len(total)))
        missed = reduce(undefined, cell, len(total)).reshape(shape)
        by_name[name] = Scored(mean.reshape(shape), np.ones(shape), missed)
    return by_name


def over_dataset(
    metric: Metric,
    rows: Rows,
    samples: Sequence[str],
    failed: Collection[str] = (),
    weights: Mapping[str, float] | None = None,
    inapplicable: Collection[str] = (),
    groups: Mapping[str, str] | None = None,
) -> dict[str, dict[str, Value]]:
    """{score: {region: value}} over `samples`; `weights` says how often each sample counts (default: once), `groups`
    which of them belong together: then means of samples have an interval.

    Samples that failed are counted as that, those that the metric says nothing about as excluded.
    """
    alive = [name for name in samples if name not in failed and name not in inapplicable]
    times = np.array([(weights or {}).get(name, 1) for name in alive]).reshape(-1, 1)
    each = by_sample(metric, rows, alive)
    pooled: Mapping[str, Array] = {}
    if metric.pool == "dataset":
        alone = len(alive) == 1 and times[0, 0] == 1  # the dataset's rows are the sample's
        pooled = {name: s.value[0] for name, s in each.items()} if alone else _pooled(metric, rows.of(alive), times)
    clusters = np.unique([groups[name] for name in alive], return_inverse=True)[1] if groups and not pooled else None

    def value(name: str, scored: Scored, column: int) -> Value:
        out = (len(inapplicable), len(failed))
        found = _value(scored, column, times, out, pooled[name][column] if pooled else None)
        if clusters is None:
            return found
        weight = scored.weight[:, column] * times[:, 0]
        return replace(found, interval=clustered(scored.value[:, column], weight, clusters))

    return {
        name: {region: value(name, scored, column) for column, region in enumerate(rows.regions)}
        for name, scored in each.items()
    }


def _pooled(metric: Metric, rows: Rows, times: Array) -> dict[str, Array]:
    times = times.reshape(-1)[rows.sample] if len(rows) else np.zeros(0, np.int64)
    if metric.combine == "rows":
        again = rows if (times == 1).all() else rows.take(np.repeat(np.arange(len(rows)), times))
        return {name: s.value for name, s in _each_by_itself(metric, again, again.region, len(rows.regions)).items()}

    def weighed(column: Array) -> Array:
        return reduce(column * times.reshape(-1, *[1] * (column.ndim - 1)), rows.region, len(rows.regions))

    return {name: score.value for name, score in _scored(metric, Sums(rows.columns, rows.labels, weighed)).items()}


def _each_by_itself(metric: Metric, rows: Rows, group: Array, count: int) -> dict[str, Weighted]:
    """The scores of every group's rows, in key order; a part that a group lacks is undefined there."""
    one_by_one = [metric.score(Sums(part.columns, rows.labels)) for part in _split(rows, group, count)]
    names = dict.fromkeys(name for scores in one_by_one for name in scores)
    each = {name: [_weighted(scores.get(name, math.nan)) for scores in one_by_one] for name in names}
    return {
        name: Weighted(np.array([float(s.value) for s in of]), np.array([float(s.weight) for s in of]))
        for name, of in each.items()
    }


def _split(rows: Rows, group: Array, count: int) -> Iterator[Rows]:
    """The rows of each of `count` groups, in key order."""
    if count == 1:
        yield rows
        return
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(count + 1))
    yield from (rows.take(order[start:stop]) for start, stop in pairwise(cuts))


def _value(scored: Scored, column: int, times: Array, out: tuple[int, int], pooled: float | None) -> Value:
    """One score of one region; `out` says how many samples were inapplicable, and how many failed."""
    value, weight = scored.value[:, [column]], scored.weight[:, [column]]
    present, kept = times > 0, weight != 0
    defined = present & kept & ~np.isnan(value)
    nothing = np.zeros(len(value), np.int64)
    with np.errstate(invalid="ignore"):
        total = reduce(np.where(defined, value * weight * times, 0.0), nothing, 1)
        share = reduce(np.where(defined, weight * times, 0.0), nothing, 1)
        mean = float(total[0, 0] / share[0, 0]) if defined.any() else math.nan
    undefined, excluded = present & kept & ~defined, present & ~kept
    n, n_undefined, n_excluded = (int(np.sum(times[which])) for which in (defined, undefined, excluded))
    return Value(mean if pooled is None else float(pooled), n, n_undefined, n_excluded + out[0], out[1])


def _scored(metric: Metric, sums: Sums) -> dict[str, Weighted]:
    return {name: _weighted(score) for name, score in metric.score(sums).items()}


def _weighted(score: Any) -> Weighted:
    given = score if isinstance(score, Weighted) else Weighted(score, np.ones(np.shape(score)))
    return Weighted(np.asarray(given.value, np.float64), np.asarray(given.weight, np.float64))
