"""From measured rows to a dataset's number, with dictionaries and loops: one toy metric, value = total / n."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Measured = dict[tuple[str, int, str], tuple[float, float, float]]  # (sample, frame, region) -> total, n, weight
Scored = tuple[float, float]  # value, weight


@dataclass(frozen=True)
class Value:
    """A dataset's number and how many samples are behind it."""

    value: float
    n: float
    undefined: float
    excluded: float
    failed: int


def score(rows: Sequence[tuple[float, float, float]], weighted: bool) -> Scored:
    """total / n of the summed rows, NaN for 0 / 0; the summed weight where the score has one."""
    total, n, weight = (math.fsum(row[k] for row in rows) for k in range(3))
    return (total / n if n else math.nan), (weight if weighted else 1.0)


def of_sample(measured: Measured, sample: str, region: str, pool: str, weighted: bool) -> Scored:
    """One sample's score: of its summed rows, or the weighted mean of its frames that are defined and not left out."""
    own = {frame: row for (name, frame, where), row in measured.items() if name == sample and where == region}
    if pool != "frame":
        return score(list(own.values()), weighted)
    frames = [score([row], weighted) for row in own.values()]
    kept = [(value, weight) for value, weight in frames if weight != 0 and not math.isnan(value)]
    share = math.fsum(weight for _, weight in kept)
    return (math.fsum(value * weight for value, weight in kept) / share if kept else math.nan), 1.0


def of_dataset(
    measured: Measured,
    samples: Sequence[str],
    region: str,
    pool: str,
    weighted: bool,
    failed: Collection[str],
    times: Mapping[str, float],
) -> Value:
    """The mean over samples, or the score of all rows together; and the counts."""
    alive = [name for name in samples if name not in failed]
    total = share = n = undefined = excluded = 0.0
    for name in alive:
        value, weight = of_sample(measured, name, region, pool, weighted)
        often = times.get(name, 1)
        if often == 0:
            continue
        if weight == 0:
            excluded += often
        elif math.isnan(value):
            undefined += often
        else:
            total, share, n = total + value * weight * often, share + weight * often, n + often
    mean = total / share if n else math.nan
    if pool == "dataset":
        rows = []
        for (name, _, where), row in measured.items():
            if name in alive and where == region:
                rows.append(tuple(part * times.get(name, 1) for part in row))
        mean = score(rows, weighted)[0]
    return Value(mean, n, undefined, excluded, len(failed))
