"""Rows as sets of keyed records: joining, adding and storing them changes no bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins.draw import FEW, MODEST, Array, seeds

from karat.rows import Rows, concatenate, empty, frame_rows, item_rows, reduce
from karat.table import from_table, to_table

Key = tuple[str, int, int, str]
SAMPLES = ("b", "a/ä", "line\nbreak", "", "日本 \t'\"", "z")
REGIONS = ("all", "front@left", "bäck")
AWKWARD = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e300, 1 / 3]


def drawn(rng: np.random.Generator, count: int, columns: Sequence[str] = ("n", "v", "axes")) -> Rows:
    """Rows with distinct keys in no order, over samples and regions that need not all be used."""
    samples, regions = (tuple(rng.permutation(names).tolist()) for names in (SAMPLES, REGIONS))
    grid = [(s, f, i, r) for s in range(len(samples)) for f in range(3) for i in range(2) for r in range(len(regions))]
    chosen = np.array([grid[k] for k in rng.permutation(len(grid))[:count]], np.int32).reshape(-1, 4)
    values: dict[str, Array] = {
        "n": rng.integers(-(2**62), 2**62, count),
        "v": np.where(rng.random(count) < 0.5, rng.choice(AWKWARD, count), rng.standard_normal(count)),
        "axes": rng.choice(AWKWARD, (count, 3)),
    }
    return Rows(samples, regions, *chosen.T, {name: values[name] for name in columns})


def records(rows: Rows) -> list[tuple[Key, dict[str, bytes]]]:
    """(key, the bytes of every column) of each row, in the order of the rows."""
    names = [(rows.samples[s], int(f), int(i), rows.regions[r]) for s, f, i, r in zip(*rows.keys(), strict=True)]
    return [(key, {c: v[k].tobytes() for c, v in rows.columns.items()}) for k, key in enumerate(names)]


def same(a: Rows, b: Rows) -> None:
    """The same records, dtypes and shapes, whatever their order."""
    assert dict(records(a)) == dict(records(b))
    assert len(a) == len(b)
    assert {name: (c.dtype, c.shape[1:]) for name, c in a.columns.items()} == {
        name: (c.dtype, c.shape[1:]) for name, c in b.columns.items()
    }


counts = st.integers(0, 12)


@MODEST
@given(counts, counts, counts, seeds)
def test_concatenate_keeps_the_first_of_every_key(a, b, c, seed):
    """Joining three parts in any grouping is a dictionary filled with setdefault; rows come out in key order."""
    rng = np.random.default_rng(seed)
    parts = [drawn(rng, n) for n in (a, b, c)]
    expected: dict[Key, dict[str, bytes]] = {}
    for part in parts:
        for key, record in records(part):
            expected.setdefault(key, record)
    for joined in (
        concatenate(parts),
        concatenate([parts[0], concatenate(parts[1:])]),
        concatenate([concatenate(parts[:2]), parts[2]]),
        concatenate(iter([empty(), *parts, parts[0]])),
    ):
        assert dict(records(joined)) == expected
        assert len(joined) == len(expected)
        order = [(s, f, i, joined.regions.index(r)) for (s, f, i, r), _ in records(joined)]
        assert order == sorted(order)


@MODEST
@given(counts, st.lists(st.integers(0, 3), min_size=12, max_size=12), seeds)
def test_concatenate_does_not_depend_on_the_order_of_parts(count, owner, seed):
    """Rows dealt to four workers, joined in two orders; a region's rows have the same order in both."""
    rng = np.random.default_rng(seed)
    rows = drawn(rng, count)
    parts = [rows.take(np.flatnonzero(np.array(owner[:count]) == worker)) for worker in range(4)]
    one, other = concatenate(parts), concatenate([parts[k] for k in rng.permutation(4)])
    same(one, rows)
    assert records(one) == records(other)
    assert one.samples == other.samples == tuple(sorted(SAMPLES))


@MODEST
@given(counts, seeds)
def test_take_of_and_named(count, seed):
    """Rows by place, by sample, and under other names."""
    rng = np.random.default_rng(seed)
    rows = drawn(rng, count)
    index = rng.integers(0, count, 5) if count else np.zeros(0, int)
    assert records(rows.take(index)) == [records(rows)[i] for i in index]
    wanted = [*rng.permutation(SAMPLES)[:3].tolist(), "never seen"]
    part = rows.of(wanted)
    assert part.samples == tuple(wanted)
    assert records(part) == [record for record in records(rows) if record[0][0] in wanted]
    other = [f"#{name}" for name in rows.samples]
    assert records(rows.named(other)) == [((f"#{s}", *rest), values) for (s, *rest), values in records(rows)]


@MODEST
@given(st.integers(0, 60), st.integers(1, 5), st.sampled_from([(), (1,), (3,), (2, 2)]), seeds)
def test_reduce_adds_exactly_enough(count, groups, axes, seed):
    """Every group's sum is math.fsum within 1e-12 of what was added; integers are exact; an empty group is 0."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, count)
    values = rng.standard_normal((count, *axes)) * 10.0 ** rng.integers(-9, 9, (count, *axes))
    whole = rng.integers(-(2**40), 2**40, (count, *axes))
    found, exact = reduce(values, group, groups), reduce(whole, group, groups)
    assert found.shape == exact.shape == (groups, *axes)
    assert (found.dtype, exact.dtype) == (np.float64, np.int64)
    for place in np.ndindex(groups, *axes):
        own = [k for k in range(count) if group[k] == place[0]]
        added = [float(values[(k, *place[1:])]) for k in own]
        assert abs(found[place] - math.fsum(added)) <= 1e-12 * math.fsum(map(abs, added))
        assert int(exact[place]) == sum(int(whole[(k, *place[1:])]) for k in own)


@MODEST
@given(st.integers(1, 400), st.integers(1, 5), st.sampled_from([(), (1,), (3,), (2, 2)]), seeds)
def test_a_sum_has_the_same_bits_whatever_else_is_added(count, groups, axes, seed):
    """A group alone, among others, and among others in another interleaving."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, count)
    values = rng.standard_normal((count, *axes)) * 10.0 ** rng.integers(-9, 9, (count, *axes))
    whole = reduce(values, group, groups)
    interleaved = np.argsort(rng.random(groups)[group], kind="stable")  # each group's own order stays
    np.testing.assert_array_equal(reduce(values[interleaved], group[interleaved], groups), whole)
    for g in range(groups):
        own = values[group == g]
        np.testing.assert_array_equal(reduce(own, np.zeros(len(own), int), 1)[0], whole[g])
        np.testing.assert_array_equal(reduce(np.asfortranarray(own), np.full(len(own), 2), 3)[2], whole[g])


@FEW
@given(st.integers(1, 12), seeds)
def test_sums_of_joined_rows_do_not_depend_on_the_parts(count, seed):
    """The bits of a sample's and region's sum after any dealing of its rows."""
    rng = np.random.default_rng(seed)
    rows = drawn(rng, count)
    rows = Rows(rows.samples, rows.regions, *rows.keys(), {"v": rng.standard_normal(count)})

    def sums(joined: Rows) -> dict[tuple[str, str], bytes]:
        cell = joined.sample.astype(np.int64) * len(joined.regions) + joined.region
        added = reduce(joined.columns["v"], cell, len(joined.samples) * len(joined.regions))
        used = {(joined.samples[c // len(joined.regions)], joined.regions[c % len(joined.regions)]): c for c in cell}
        return {name: added[c].tobytes() for name, c in used.items()}

    parts = [rows.take(np.array([k])) for k in rng.permutation(count)]
    assert sums(concatenate(parts)) == sums(concatenate([rows]))


def through(rows: dict[str, Rows], file: bool) -> dict[str, Rows]:
    table = to_table(rows)
    if file:
        held = BytesIO()
        pq.write_table(table, held)
        table = pq.read_table(pa.BufferReader(held.getvalue()))
    return from_table(table, rows)


@MODEST
@given(counts, st.booleans(), seeds)
def test_a_table_gives_back_every_bit(count, file, seed):
    """int64, NaN, -0.0, infinities and axes, with names of any letters, in memory and through a parquet file."""
    rows = drawn(np.random.default_rng(seed), count)
    found = through({"a": rows}, file)
    assert set(found) == {"a"}
    same(found["a"], rows)


@MODEST
@given(counts, counts, st.booleans(), seeds)
def test_rows_of_two_statistics_share_a_table(a, b, file, seed):
    """Where one of them has no row it gets none back, also if one has none at all."""
    rng = np.random.default_rng(seed)
    rows = {"one": drawn(rng, a, ("n", "axes")), "two": drawn(rng, b, ("v",))}
    found = through(rows, file)
    for name in rows:
        same(found[name], rows[name])


@FEW
@given(counts, seeds)
def test_parts_of_a_table_can_be_read_by_sample(count, seed):
    """What a folder does: the rows of one sample of a shard."""
    rows = drawn(np.random.default_rng(seed), count)
    found = through({"a": rows}, True)["a"]
    for name in SAMPLES:
        same(found.of([name]), rows.of([name]))


def test_a_table_with_many_chunks():
    """Row groups with dictionaries of their own are one table."""
    rows = [
        frame_rows(f"s{k}", np.arange(2), ("all", "m")[: 1 + k % 2], {"v": np.ones((2, 1 + k % 2)) * k})
        for k in range(5)
    ]
    table = pa.concat_tables([to_table({"a": part}) for part in rows])
    same(from_table(table, {"a": None})["a"], concatenate(rows))


@pytest.mark.parametrize("unit", ["frame", "item"])
def test_rows_of_a_grid(unit):
    """Columns (count, regions, *axes) become rows with that frame or item, region by region."""
    columns: dict[str, Any] = {"v": np.arange(12.0).reshape(2, 3, 2), "n": np.arange(6).reshape(2, 3)}
    regions = ("all", "x", "y")
    rows = frame_rows("s", np.array([4, 9]), regions, columns) if unit == "frame" else item_rows("s", regions, columns)
    for k, (key, _) in enumerate(records(rows)):
        place, region = divmod(k, 3)
        expected = ("s", (4, 9)[place], 0, regions[region]) if unit == "frame" else ("s", 0, place, regions[region])
        assert key == expected
        np.testing.assert_array_equal(rows.columns["v"][k], columns["v"][place, region])
        assert rows.columns["n"][k] == columns["n"][place, region]
