"""Ways to compute the same thing, and comparisons to the bit or to a tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from contract.inputs import Array, Sample, kind, stacked

from karat.block import Block, Collected, Context, measure_records
from karat.evaluation import evaluate
from karat.meter import Meter
from karat.metric import Metric
from karat.rows import Rows, concatenate
from karat.run import Run
from karat.score import Value, over_dataset
from karat.suite import Protocol, Suite

NEAR = 1e-12
MASK = "foreground"


def bits(numbers: Mapping[str, float]) -> dict[str, str]:
    """Floats as hexadecimal text: equal text is equal bits, and NaN equals NaN."""
    return {name: float(number).hex() for name, number in numbers.items()}


def value_bits(values: Mapping[str, Value]) -> dict[str, tuple[Any, ...]]:
    """Values with their counts, likewise."""
    return {name: (v.value.hex(), v.n, v.undefined, v.excluded, v.failed) for name, v in values.items()}


def near(a: float, b: float, tolerance: float = NEAR) -> bool:
    """Equal up to rounding; NaN equals NaN, an infinity itself."""
    return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def same_rows(a: Rows, b: Rows) -> None:
    """Fails unless both have the same keys, types and bits."""
    assert (a.samples, a.regions, list(a.columns)) == (b.samples, b.regions, list(b.columns))
    for name, one, other in zip(("sample", "frame", "item", "region"), a.keys(), b.keys(), strict=True):
        assert np.array_equal(one, other), f"the {name} keys differ"
    for name in a.columns:
        _same_column(name, a.columns[name], b.columns[name])


def _same_column(name: str, a: Array, b: Array) -> None:
    assert a.dtype == b.dtype, f"{name} is {a.dtype} once and {b.dtype} once"
    assert a.shape == b.shape, f"{name} has the shapes {a.shape} and {b.shape}"
    assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{name} differs: {a.tolist()} and {b.tolist()}"


def measured(metric: Metric, sample: Sample, step: int, masks: Mapping[str, Array] | None = None) -> Rows:
    """The rows of one sample, cut into blocks of `step` frames."""
    regions = {MASK: sample.mask} if masks is None else masks
    context = Context(sample.id)
    if metric.statistic.unit == "element":  # records are given whole
        return measure_records(metric.statistic, sample.fields, context)
    collected = Collected(metric.statistic)
    for first in range(0, len(sample.mask), step):
        fields = {name: array[first : first + step] for name, array in sample.fields.items()}
        block = Block(fields, {name: mask[first : first + step] for name, mask in regions.items()}, first, context)
        collected.add(block, block.measure(metric.statistic))
    return collected.rows(context)


def all_rows(metric: Metric, samples: Sequence[Sample]) -> Rows:
    """The rows of all samples."""
    return concatenate(measured(metric, sample, len(sample.mask)) for sample in samples)


def dataset(metric: Metric, rows: Rows, samples: Iterable[str], weights: Mapping[str, float] | None = None) -> Any:
    """{score@region: value} of rows."""
    found = over_dataset(metric, rows, list(samples), weights=weights)
    return {f"{name}@{region}": value for name, regions in found.items() for region, value in regions.items()}


def metered(metric: Metric, samples: Iterable[Sample]) -> Meter:
    """A Meter that was given the samples one by one."""
    meter = Meter(metric, regions=(MASK,))
    for sample in samples:
        fields = {name: stacked([field]) for name, field in sample.fields.items()}
        meter.update(ids=[sample.id], masks={MASK: sample.mask[None]}, **fields)
    return meter


def evaluated(
    metric: Metric, samples: Sequence[Sample], workers: int = 1, out: Path | None = None, shard: int = 1
) -> Run:
    """The samples evaluated by a suite that is made for this metric."""
    names = metric.statistic.fields()
    suite = Suite(
        name="contract",
        title="One metric",
        fields={name: kind(name, metric).source for name in names},
        required=names,
        truth=names[-1],
        metrics=(metric,),
        protocols={"spec": Protocol("")},
        shard_samples=shard,
    )
    given = {name: {sample.id: sample.fields[name] for sample in samples} for name in names}
    masks = {MASK: {sample.id: sample.mask for sample in samples}}
    return evaluate(suite, masks=masks, workers=workers, out=out, cache=False, **given)


def run_bits(run: Run) -> dict[str, Any]:
    """Everything that a run says, to the bit."""
    assert not run.failures, run.failures[0].reason
    return {
        "scores": value_bits(run.scores),
        "samples": {name: bits(scores) for name, scores in run.sample_scores.items()},
        "frames": {
            name: {frame: bits(scores) for frame, scores in of.items()} for name, of in run.frame_scores.items()
        },
        "signature": run.signature,
    }
