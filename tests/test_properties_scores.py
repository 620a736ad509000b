"""From rows to a dataset's number against dictionaries: pools, undefined values, exclusion, weights and counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import scores as twin
from twins.draw import FEW, MODEST, Array, seeds

from karat import score
from karat.metric import Metric, Pool, Sums, Weighted, ratio
from karat.rows import Rows, concatenate
from karat.score import by_sample, over_dataset

SAMPLES = ("s1", "s2", "s3", "s4", "s5")
REGIONS = ("all", "m")


@dataclass(frozen=True, kw_only=True)
class Toy(Metric):
    """total / n, undefined for n = 0, once plain and once with a weight of which 0 leaves it out."""

    pool: Pool = "sample"

    def score(self, s: Sums) -> dict[str, Array | Weighted]:
        return {"plain": ratio(s.total, s.n), "weighted": Weighted(ratio(s.total, s.n), s.weight)}


def to_rows(measured: twin.Measured, order: list[int] | None = None) -> Rows:
    """The records as rows, in their own order or another one."""
    keys = list(measured)
    keys = keys if order is None else [keys[k] for k in order]
    samples = tuple(sorted({sample for sample, _, _ in keys}))
    values = np.array([measured[key] for key in keys], np.float64).reshape(-1, 3)
    return Rows(
        samples,
        REGIONS,
        np.array([samples.index(s) for s, _, _ in keys], np.int32),
        np.array([f for _, f, _ in keys], np.int32),
        np.zeros(len(keys), np.int32),
        np.array([REGIONS.index(r) for _, _, r in keys], np.int32),
        {"total": values[:, 0], "n": values[:, 1].astype(np.int64), "weight": values[:, 2].astype(np.int64)},
    )


@st.composite
def datasets(draw: st.DrawFn) -> twin.Measured:
    """A few frames of a few samples; some samples have no row, some frames are undefined or left out."""
    rng = np.random.default_rng(draw(seeds))
    measured = {}
    for sample in SAMPLES:
        for frame in range(int(rng.integers(0, 4))):
            for region in REGIONS:
                n = int(rng.integers(0, 4))
                total = float(rng.normal()) if n else 0.0
                measured[sample, frame, region] = (total, n, int(rng.integers(0, 3)))
    measured["s0", 0, "all"] = (1.0, 1, 1)  # a sample that no one asks for
    return measured


pools = st.sampled_from(["frame", "sample", "dataset"])
failures = st.sets(st.sampled_from(SAMPLES), max_size=3)
weightings = st.dictionaries(st.sampled_from(SAMPLES), st.integers(0, 3))


@FEW
@given(datasets(), st.sampled_from(["frame", "sample"]), st.integers(1, 4))
def test_how_many_samples_are_scored_at_once_changes_no_bit(measured, pool, at_once):
    """Samples without rows among them."""
    rows = concatenate([to_rows(measured)])
    wanted = by_sample(Toy(pool=pool), rows, SAMPLES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score, "SAMPLES_AT_ONCE", at_once)
        found = by_sample(Toy(pool=pool), rows, SAMPLES)
    for name in wanted:
        for column in ("value", "weight", "undefined_frames"):
            np.testing.assert_array_equal(getattr(found[name], column), getattr(wanted[name], column))


@MODEST
@given(datasets(), pools, failures, weightings, seeds)
def test_values_and_counts_equal_the_literal_ones(measured, pool, failed, times, seed):
    """Every score and region; n + undefined + excluded is how often the living samples count."""
    order = np.random.default_rng(seed).permutation(len(measured)).tolist()
    found = over_dataset(Toy(pool=pool), to_rows(measured, order), SAMPLES, failed, times)
    for name in ("plain", "weighted"):
        for region in REGIONS:
            value = found[name][region]
            expected = twin.of_dataset(measured, SAMPLES, region, pool, name == "weighted", failed, times)
            assert value.value == pytest.approx(expected.value, rel=1e-9, abs=1e-12, nan_ok=True)
            counts = (value.n, value.undefined, value.excluded, value.failed)
            assert counts == (expected.n, expected.undefined, expected.excluded, expected.failed)
            often = sum(times.get(sample, 1) for sample in SAMPLES if sample not in failed)
            assert value.n + value.undefined + value.excluded == often
            if not times:
                assert sum(counts) == len(SAMPLES)


@MODEST
@given(datasets(), pools, st.fixed_dictionaries({sample: st.integers(0, 3) for sample in SAMPLES}))
def test_integer_weights_are_repetitions(measured, pool, times):
    """Counting a sample k times is having k samples with its rows."""
    repeated, samples = {}, []
    for sample in SAMPLES:
        for k in range(times[sample]):
            samples.append(f"{sample}#{k}")
            repeated |= {(f"{sample}#{k}", f, r): v for (s, f, r), v in measured.items() if s == sample}
    weighted = over_dataset(Toy(pool=pool), to_rows(measured), SAMPLES, (), times)
    literal = over_dataset(Toy(pool=pool), to_rows(repeated), samples)
    for name, regions in weighted.items():
        for region, value in regions.items():
            other = literal[name][region]
            assert value.value == pytest.approx(other.value, rel=1e-9, abs=1e-12, nan_ok=True)
            assert (value.n, value.undefined, value.excluded) == (other.n, other.undefined, other.excluded)


@FEW
@given(datasets(), pools, seeds)
def test_the_bits_do_not_depend_on_how_rows_were_collected(measured, pool, seed):
    """Joined from single rows in any order, a score has the same bits."""
    rng = np.random.default_rng(seed)

    def bits() -> dict[tuple[str, str], float]:
        rows = to_rows(measured)
        joined = concatenate([rows.take(np.array([k])) for k in rng.permutation(len(rows))])
        found = over_dataset(Toy(pool=pool), joined, SAMPLES)
        return {(name, region): value.value for name, regions in found.items() for region, value in regions.items()}

    np.testing.assert_equal(bits(), bits())


@FEW
@given(datasets(), pools)
def test_a_dataset_of_failures_and_of_nothing(measured, pool):
    """All samples failed: undefined with that count. No rows: all of them are undefined."""
    rows = to_rows(measured)
    for value in over_dataset(Toy(pool=pool), rows, SAMPLES, SAMPLES)["plain"].values():
        assert math.isnan(value.value)
        assert (value.n, value.undefined, value.excluded, value.failed) == (0, 0, 0, 5)
    for value in over_dataset(Toy(pool=pool), rows.take(np.zeros(0, int)), SAMPLES)["plain"].values():
        assert math.isnan(value.value)
        assert (value.n, value.undefined, value.failed) == (0, 5, 0)


@pytest.mark.parametrize("values", [[1.0, math.inf], [-math.inf, 2.0], [math.inf, -math.inf]])
def test_infinities_are_values(values):
    """They are counted, and the mean is what arithmetic says."""
    measured = {(f"s{k}", 0, "all"): (value, 1.0, 1.0) for k, value in enumerate(values)}
    value = over_dataset(Toy(), to_rows(measured), ["s0", "s1"])["plain"]["all"]
    np.testing.assert_equal(value.value, sum(values) / 2)
