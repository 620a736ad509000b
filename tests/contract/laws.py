"""The laws that every metric obeys, each a function that fails on a metric that breaks it.

A metric that cannot obey by nature says so itself: `exempt = {"direction": "reason"}`, or
`{"direction:score": "reason"}` for one of its scores.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from contract.compare import (
    MASK,
    NEAR,
    all_rows,
    bits,
    dataset,
    evaluated,
    measured,
    metered,
    near,
    run_bits,
    same_rows,
    value_bits,
)
from contract.inputs import LEVELS, Array, Sample, constant, example, stacked, with_nan
from contract.variants import changed
from rich.console import Console

import karat.functional
from karat.describe import MetricPage, describe
from karat.meter import Meter
from karat.metric import Metric, Statistic, snake
from karat.report import terminal
from karat.rows import concatenate
from karat.run import Run
from karat.suite import spelled

Law = Callable[[Metric], None]
LAWS: dict[str, Law] = {}
OF_PIXELS: set[str] = set()  # laws of what masks do: records have no pixels
UNDEFINED = "undefined"  # of the cases: every score is undefined in one of them
GRADED = "graded"  # of the cases: every score is another number than 0 and 1 in one of them


def law(check: Law) -> Law:
    """Puts a law into `LAWS` under its name."""
    LAWS[check.__name__] = check
    return check


def of_pixels(check: Law) -> Law:
    """Marks a law that holds for what is measured on pixels."""
    OF_PIXELS.add(check.__name__)
    return check


def _held_by(name: str, metric: Metric) -> Iterator[str]:
    """The scores that a law holds for."""
    return (score for score in metric.scores if f"{name}:{score}" not in metric.exempt)


def _every(metric: Metric) -> Iterator[Metric]:
    """The metric, and with every field changed."""
    yield metric
    yield from (variant.metric for variant in changed(metric))


def _declared(metric: Metric, found: Iterable[str]) -> None:
    """Fails unless these are the scores that the metric declares, and parts of the kinds that it declares."""
    parts = {name for name in found if ":" in name and name not in metric.scores}
    assert set(found) - parts == set(metric.scores)
    kinds = {name.partition("@")[2].partition(":")[0] for name in parts}
    assert kinds <= set(metric.parts), f"parts of kinds {kinds} are not declared"


def _call(metric: Metric, sample: Sample, mask: Array | None = None) -> dict[str, float]:
    return metric(**sample.fields, regions={} if mask is None else {MASK: mask})


# How rows come together.


@law
def merge(metric: Metric) -> None:
    """Meters that saw parts of the samples, merged in any order, say what one Meter says, to the bit."""
    samples = [sample.cut(frames) for sample, frames in zip(example(metric), (3, 1, 2), strict=True)]
    for one in _every(metric):
        alone = [metered(one, [sample]) for sample in samples]
        wanted = value_bits(metered(one, samples).values())
        for order in itertools.permutations(alone):
            first, *others = map(copy.deepcopy, order)
            for other in (*others, alone[0]):  # a sample that came before counts once
                first.merge(other)
            assert value_bits(first.values()) == wanted
        pair = copy.deepcopy(alone[0])
        pair.merge(metered(one, samples[1:]))
        assert value_bits(pair.values()) == wanted


@law
def batch(metric: Metric) -> None:
    """A batch at once gives the same bits as its samples one by one."""
    samples = example(metric)
    for one in _every(metric):
        meter = Meter(one, regions=(MASK,))
        together = {name: stacked([s.fields[name] for s in samples]) for name in samples[0].fields}
        meter.update(ids=[s.id for s in samples], masks={MASK: np.stack([s.mask for s in samples])}, **together)
        assert value_bits(meter.values()) == value_bits(metered(one, samples).values())


@law
@of_pixels
def blocks(metric: Metric) -> None:
    """The rows of a clip have the same bits in blocks of one, two or all frames."""
    sample = example(metric, samples=1)[0]
    for one in _every(metric):
        whole = measured(one, sample, len(sample.mask))
        for step in (1, 2):
            same_rows(measured(one, sample, step), whole)


@law
def workers(metric: Metric) -> None:
    """One, two or three workers, shards of one or two samples and a Meter give the same bits."""
    samples = [sample.cut(frames) for sample, frames in zip(example(metric), (3, 1, 2), strict=True)]
    wanted = run_bits(evaluated(metric, samples))
    for count, shard in ((2, 1), (3, 1), (2, 2)):
        assert run_bits(evaluated(metric, samples, workers=count, shard=shard)) == wanted
    assert value_bits(metered(metric, samples).values()) == wanted["scores"]


@law
def resume(metric: Metric) -> None:
    """A run's folder says the same, to the bit, when it is read back and when its first shards were written last."""
    samples = example(metric)
    wanted = run_bits(evaluated(metric, samples))
    with TemporaryDirectory() as place:
        out = Path(place) / "run"
        assert run_bits(evaluated(metric, samples, workers=2, out=out)) == wanted
        assert run_bits(Run.load(out)) == wanted
        for shard in sorted((out / "done").iterdir())[:2]:
            shard.unlink()
        for left in (out / "rows").rglob("00000000.parquet"):
            left.unlink()
        assert run_bits(evaluated(metric, samples[::-1], workers=1, out=out)) == wanted
        moved = shutil.copytree(out, Path(place) / "moved")
        assert run_bits(Run.load(moved)) == wanted


@law
def weights(metric: Metric) -> None:
    """A sample of weight 2 counts as if it were there twice, one of weight 0 as if it were not."""
    for one in _every(metric):
        samples = example(metric)
        rows = all_rows(one, samples)
        twin = concatenate([rows, measured(one, samples[1], len(samples[1].mask)).named(["twin"])])
        _same_values(dataset(one, rows, "abc", {"b": 2}), dataset(one, twin, ["a", "b", "c", "twin"]))
        _same_values(dataset(one, rows, "abc", {"b": 0}), dataset(one, all_rows(one, [samples[0], samples[2]]), "ac"))


def _same_values(a: Mapping[str, object], b: Mapping[str, object]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        one, other = dict(vars(a[name])), dict(vars(b[name]))
        assert near(one.pop("value"), other.pop("value")), f"{name}: {a[name]} and {b[name]}"
        assert one == other, f"{name} is counted differently: {one} and {other}"


# What a region does.


@law
@of_pixels
def whole_mask(metric: Metric) -> None:
    """A mask of all pixels is no mask: boolean or of weight 1; integer columns are exactly equal."""
    sample = example(metric, samples=1)[0]
    for one in _every(metric):
        plain = _call(one, sample)
        for everything in (np.ones_like(sample.mask), np.ones(sample.mask.shape)):
            masked = _call(one, sample, everything)
            for score, value in plain.items():
                for found in (masked[score], masked[f"{score}@{MASK}"]):
                    assert near(found, value), f"{one!r}: {score} is {value}, and {found} in a mask of all pixels"
        for dtype in (bool, np.float64):
            rows = measured(one, sample, 2, {MASK: np.ones(sample.mask.shape, dtype)})
            for name, column in rows.columns.items():
                whole, region = (column[rows.region == r] for r in (0, 1))
                exact = measured(one, sample, 2, {}).columns[name].dtype.kind in "iub"
                assert np.allclose(whole, region, 0 if exact else NEAR, 0 if exact else NEAR, equal_nan=True), name


@law
@of_pixels
def empty_region(metric: Metric) -> None:
    """In a region without pixels nothing is defined, and outside of it nothing changes."""
    sample = example(metric, samples=1)[0]
    plain = _call(metric, sample)
    for nothing in (np.zeros_like(sample.mask), np.zeros(sample.mask.shape)):
        found = _call(metric, sample, nothing)
        for score in plain:
            assert near(found[score], plain[score])
        for score in _held_by("empty_region", metric):
            value = found[f"{score}@{MASK}"]
            assert math.isnan(value), f"{score} of nothing is {value}, not NaN"


@law
@of_pixels
def region_counts(metric: Metric) -> None:
    """A part of the picture is not scored as the whole: some score differs."""
    sample = example(metric, samples=1)[0]
    found = _call(metric, sample, sample.mask)
    assert any(found[score] != found[f"{score}@{MASK}"] for score in metric.scores), f"{found}: regions are ignored"


# What scores mean.


@law
def identity(metric: Metric) -> None:
    """Where prediction and truth are the same, a score is what it declares for that."""
    for sample in example(metric, level=LEVELS[0]):
        found = _call(metric, sample)
        for score in metric.scores:
            declared, value = metric.scores[score].identity, found[score]
            if declared is not None and score in _held_by("identity", metric):
                assert near(value, declared), f"{score} of equal sides is {value}, declared is {declared}"


@law
def bounds(metric: Metric) -> None:
    """No score leaves its bounds."""
    for level, seed in itertools.product(LEVELS, (0, 1)):
        for sample in example(metric, seed, level=level):
            found = _call(metric, sample, sample.mask)
            for score in _held_by("bounds", metric):
                low, high = metric.scores[score].bounds
                for value in (found[score], found.get(f"{score}@{MASK}", math.nan)):
                    inside = math.isnan(value) or low - NEAR <= value <= high + NEAR
                    assert inside, f"{score} is {value}, declared are {low} to {high}"


@law
def direction(metric: Metric) -> None:
    """What is further from the truth is not scored better, and the worst is scored worse than the truth itself."""
    by_level = [metered(metric, example(metric, level=level)).compute() for level in LEVELS]
    for score in _held_by("direction", metric):
        better = metric.scores[score].better
        values = [found[score] for found in by_level]
        if better is None:
            continue
        improved = [b > a if better == "higher" else b < a for a, b in itertools.pairwise(values)]
        assert not any(improved), f"{score} improves while the prediction gets worse: {values}"
        assert values[0] != values[-1], f"{score} is {values[0]} of the truth itself and of noise"


# The edges of what can be measured.


@law
def no_frames(metric: Metric) -> None:
    """Nothing was measured in no frames: every score is there and undefined."""
    sample = example(metric, samples=1)[0].cut(0)
    if metric.statistic.unit == "element":
        found = metered(metric, [sample]).compute()
        _declared(metric, found)
    else:
        found = _call(metric, sample, sample.mask)
        assert set(found) == {name for score in metric.scores for name in (score, f"{score}@{MASK}")}
    assert all(map(math.isnan, found.values())), found


@law
def one_frame(metric: Metric) -> None:
    """One frame is scored, with or without an axis of frames."""
    sample = example(metric, samples=1)[0].cut(1)
    found = _call(metric, sample)
    assert not all(map(math.isnan, found.values())), found
    if metric.statistic.unit != "element":
        assert bits(metric(**{name: array[0] for name, array in sample.fields.items()})) == bits(found)


@law
def constant_input(metric: Metric) -> None:
    """Inputs without structure are scored or undefined, never an error."""
    for given in constant(metric):
        _declared(metric, metric(**given))


@law
def nan_input(metric: Metric) -> None:
    """NaN in a floating field gives a number or NaN, no error and no infinity."""
    sample = example(metric, samples=1)[0]
    for name, holed in with_nan(sample.fields).items():
        found = metric(**holed, regions={MASK: sample.mask})
        assert not any(map(math.isinf, found.values())), f"NaN in {name}: {found}"


# What is known of a metric besides its numbers.


@law
def signature(metric: Metric) -> None:
    """Every field is signed: another value of it is another identity and another line under the results."""
    sample = example(metric, samples=1)[0].cut(1)
    line = evaluated(metric, [sample]).signature
    for variant in changed(metric):
        what = f"{type(metric).__name__}.{variant.field} = {variant.value!r}"
        assert variant.metric != metric, f"{what} is equal to the default"
        assert variant.metric.identity() != metric.identity(), f"{what} is not in the identity"
        assert evaluated(variant.metric, [sample]).signature != line, f"{what} is not in the signature"


@law
def spelling(metric: Metric) -> None:
    """The repr, typed in, is the metric again."""
    for one in _every(metric):
        if not any(isinstance(getattr(one, field.name), Statistic) for field in fields(one)):
            assert spelled(repr(one)) == one


@law
def pickling(metric: Metric) -> None:
    """A metric and its statistic can be sent to another process, where they are equal and say the same."""
    for one in _every(metric):
        there = pickle.loads(pickle.dumps(one))
        assert (there, hash(there), repr(there)) == (one, hash(one), repr(one))
        assert there.statistic == one.statistic


@law
def functional(metric: Metric) -> None:
    """karat.functional has it as a function, that says the same as the class."""
    function = getattr(karat.functional, snake(type(metric).__name__))
    sample = example(metric, samples=1)[0]
    arrays = [sample.fields[name] for name in metric.statistic.fields()]
    assert bits(function(*arrays)) == bits(metric(*arrays)) == bits(function(**sample.fields))
    for variant in changed(metric):
        wanted = variant.metric(*arrays, regions={MASK: sample.mask})
        found = function(*arrays, regions={MASK: sample.mask}, **{variant.field: variant.value})
        assert bits(found) == bits(wanted)


@law
def described(metric: Metric) -> None:
    """`karat describe` knows it by its names and its scores, and prints its text and that of the statistic which it
    scores, parameters, scores, parts and exemptions."""
    name = type(metric).__name__
    for known in (name, snake(name), *metric.scores, *metric.aliases):
        page = describe(known)
        assert isinstance(page, MetricPage)
        assert page.spelling == name or known in page.scores, f"{known} is {page.spelling}"
    page = describe(name)
    assert isinstance(page, MetricPage)
    assert not page.text.startswith(f"{name}("), f"{name} has no docstring"
    written = StringIO()
    terminal.metric(page, Console(file=written, width=400))
    assert (page.statistic is None) == (metric.statistic is metric)
    texts = (page.text, *(page.statistic or ()), *metric.parts.values(), *metric.exempt.values())
    for word in (*metric.scores, *_parameters(metric), *texts):
        assert word in written.getvalue(), f"{word!r} is not on the page"


def _parameters(metric: Metric) -> list[str]:
    """What can be set: in the place of the field that holds a statistic the parameters of that one, under its name."""
    statistic = metric.statistic
    own = [field.name for field in fields(metric) if getattr(metric, field.name) is not statistic]
    if statistic is metric:
        return own
    return own + [f"{snake(type(statistic).__name__)}.{field.name}" for field in fields(statistic)]
