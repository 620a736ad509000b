"""Intervals of means against loops that draw as they say; intervals of whole runs, wherever they are shown."""

from __future__ import annotations

import csv
import io
import json
import math
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from clips import called
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon
from twins.draw import FEW, seeds

from karat import RMSE, evaluate
from karat.errors import InputError
from karat.intervals import DRAWS, SEED, bootstrap, clustered, paired
from karat.run import Run

FEW_DRAWS = 40


def percentile(values: list[float], share: float) -> float:
    """Between the two order statistics around share (n - 1), in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def drawn(values, weights, clusters, draws, level=0.95):
    """Whole clusters drawn with replacement, sample by sample; each draw a weighted mean of what came."""
    known = [i for i, value in enumerate(values) if math.isfinite(value) and weights[i] > 0]
    names = sorted({clusters[i] for i in known})
    if len(names) < 2:
        return None
    philox = np.random.Generator(np.random.Philox(np.random.SeedSequence([SEED, len(names)])))
    means = []
    for chosen in philox.integers(0, len(names), (draws, len(names))).tolist():
        came = [i for place in chosen for i in known if clusters[i] == names[place]]
        means.append(math.fsum(values[i] * weights[i] for i in came) / math.fsum(weights[i] for i in came))
    return percentile(means, (1 - level) / 2), percentile(means, (1 + level) / 2)


@FEW
@given(st.integers(0, 12), st.integers(1, 5), st.sampled_from(["ones", "many", "some"]), seeds)
def test_clusters_are_drawn_whole(count, groups, how, seed):
    """NaN, infinite and weightless samples are left out, and clusters of nothing else with them."""
    rng = np.random.default_rng(seed)
    values = rng.normal(5, 2, count)
    values[rng.random(count) < 0.2] = rng.choice([np.nan, np.inf, -np.inf])
    weights = {"ones": np.ones(count), "many": rng.integers(0, 4, count) * 1.0, "some": rng.random(count)}[how]
    clusters = [f"b{rng.integers(groups)}" for _ in range(count)]
    for level in (0.95, 0.5):
        found = clustered(values, weights, clusters, FEW_DRAWS, level=level)
        wanted = drawn(values.tolist(), weights.tolist(), clusters, FEW_DRAWS, level)
        assert found == wanted if wanted is None else found == pytest.approx(wanted, rel=1e-12)


def test_one_cluster_has_no_interval():
    """Nor has none, nor one that is left when the others are undefined."""
    ones = np.ones(3)
    assert clustered(np.arange(3.0), ones, ["a", "a", "a"]) is None
    assert clustered(np.zeros(0), np.zeros(0), []) is None
    assert clustered(np.array([1, 2, np.nan]), ones, ["a", "a", "b"]) is None
    assert clustered(np.arange(3.0), np.array([1.0, 1, 0]), ["a", "a", "b"]) is None
    assert clustered(np.arange(3.0), ones, ["a", "a", "b"]) is not None


def test_clusters_widen_what_they_share():
    """80 samples that agree within 10 buildings say as much as 10; of samples that have nothing in common a cluster
    each is the usual bootstrap, whose width is that of the normal interval.
    """
    rng = np.random.default_rng(2)
    shared = rng.normal(0, 1, 10).repeat(80)
    names = [f"{i:03d}" for i in range(800)]
    wide, narrow = (
        clustered(shared, np.ones(800), of, 4000)
        for of in ([name[:1] + str(i // 80) for i, name in enumerate(names)], names)
    )
    assert wide is not None
    assert narrow is not None
    spread = shared.std()
    assert wide[1] - wide[0] == pytest.approx(2 * 1.96 * spread / math.sqrt(10), rel=0.12)
    assert narrow[1] - narrow[0] == pytest.approx(2 * 1.96 * spread / math.sqrt(800), rel=0.06)


@FEW
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=9), seeds)
def test_bootstrap(values, seed):
    """Draws of RandomState.choice, one after another."""
    found = bootstrap([*values, math.nan], FEW_DRAWS, seed=seed % 1000)
    state = np.random.RandomState(seed % 1000)
    means = [float(np.mean(state.choice(values, len(values)))) for _ in range(FEW_DRAWS)]
    assert (found.low, found.high) == pytest.approx((percentile(means, 0.025), percentile(means, 0.975)), abs=1e-12)
    mean = math.fsum(values) / len(values)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    assert (found.mean, found.std, found.se) == pytest.approx((mean, std, std / math.sqrt(len(values))), abs=1e-9)
    assert found.n == len(values)


@FEW
@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=9))
def test_paired(pairs):
    """A bootstrap of the differences, and SciPy's signed ranks; what either lacks is left out."""
    a, b = map(list, zip(*pairs, strict=True))
    found = paired([*a, math.nan, 1], [*b, 1, math.nan], FEW_DRAWS)
    gaps = np.array(a) - np.array(b)
    wanted = bootstrap(gaps, FEW_DRAWS)
    assert (found.difference, found.low, found.high) == (wanted.mean, wanted.low, wanted.high)
    assert found.p_value == (wilcoxon(gaps).pvalue if gaps.any() else 1)


def test_what_has_no_interval_is_refused():
    for values in ([], [math.nan]):
        with pytest.raises(InputError, match="no defined value"):
            bootstrap(values)
    with pytest.raises(InputError, match="There are 2 and 3 values"):
        paired([1, 2], [1, 2, 3])


# --- runs

IDS = [f"{building}_{sender}" for building in "abc" for sender in range(4)]
TRUTH = np.random.default_rng(0).uniform(-150, -50, (12, 9, 10))
PRED = TRUTH + np.random.default_rng(1).normal(0, 1, TRUTH.shape) * np.repeat([1, 3, 6], 4)[:, None, None]


def sides(order=IDS):
    """The maps by id, in some order."""
    return {name: {key: array[IDS.index(key)] for key in order} for name, array in (("pred", PRED), ("truth", TRUTH))}


def run(**more):
    return evaluate("radiomap", **{"group_by": "building", "cache": False, **sides(), **more})


def intervals(result):
    return {name: value.interval for name, value in result.scores.items()}


def test_the_interval_of_a_run():
    """Of every mean over samples, from their own scores; a count over the dataset has none."""
    result = run()
    for name in ("rmse", "mae", "nmse", "psnr", "ssim"):
        own = [result.sample_scores[key][name] for key in IDS]
        wanted = drawn(own, [1.0] * 12, [key[0] for key in IDS], DRAWS)
        assert result.scores[name].interval == pytest.approx(wanted, rel=1e-12), name
        low, high = result.scores[name].interval
        assert low <= result.scores[name].value <= high
    assert result.scores["n_pixels"].interval is None
    assert all(interval is None for interval in intervals(run(group_by=None)).values())
    assert run(metrics=[RMSE(pool="dataset")]).scores["rmse"].interval is None


def test_undefined_samples_are_no_part_of_an_interval():
    """A region that exists in two buildings has an interval of two clusters, one that exists in one has none."""
    for buildings, known in (("ab", True), ("a", False)):
        observed = {key: np.arange(90).reshape(9, 10) < 30 * (key[0] in buildings) for key in IDS}
        result = run(observed=observed)
        value = result.scores["rmse@observed"]
        assert (value.n, value.undefined) == (4 * len(buildings), 12 - 4 * len(buildings))
        assert (value.interval is not None) is known
        if known:
            own = [result.sample_scores[key]["rmse@observed"] for key in IDS]
            assert value.interval == pytest.approx(drawn(own, [1.0] * 12, [key[0] for key in IDS], DRAWS), rel=1e-12)


def test_failed_samples_are_no_part_of_an_interval():
    given = sides()
    del given["pred"]["c_0"]
    result = run(**given)
    assert result.scores["rmse"].failed == 1
    own = [result.sample_scores[key].get("rmse", math.nan) for key in IDS]
    assert result.scores["rmse"].interval == pytest.approx(
        drawn(own, [1.0] * 12, [key[0] for key in IDS], DRAWS), rel=1e-12
    )


def test_the_same_bits_in_any_order(tmp_path):
    """Of samples and of workers; and read back from the run's folder."""
    wanted = run(out=tmp_path / "run")
    shuffled = random.Random(3).sample(IDS, len(IDS))
    for other in (run(**sides(shuffled), workers=2), run(**sides(IDS[::-1])), Run.load(tmp_path / "run")):
        assert intervals(other) == intervals(wanted)
        assert other.plain() == wanted.plain()
        assert other.groups == wanted.groups


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run's folder, and the run."""
    place = tmp_path_factory.mktemp("runs") / "run"
    observed = {key: np.arange(90).reshape(9, 10) < 30 * (key[0] == "a") for key in IDS}
    return place, run(out=place, observed=observed)


def shown(folder, *args):
    done = called("show", folder[0], *args)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_intervals_in_json(folder):
    """Two numbers; absent where there is none."""
    scores = json.loads(shown(folder, "--format", "json"))["scores"]
    assert scores == json.loads((folder[0] / "scores.json").read_text())["scores"]
    for name, value in folder[1].scores.items():
        assert scores[name].get("interval") == (list(value.interval) if value.interval else None)
    assert "interval" in scores["rmse"]
    assert "interval" not in scores["rmse@observed"]


def test_intervals_in_tables_for_programs(folder):
    """Two columns in CSV and Parquet, to the last bit; empty where there is none."""
    lines = list(csv.DictReader(io.StringIO(shown(folder, "--format", "csv").decode())))
    rows = pq.read_table(io.BytesIO(shown(folder, "--format", "parquet"))).to_pylist()
    assert len(lines) == len(rows) == len(folder[1].scores)
    for line, row, value in zip(lines, rows, folder[1].scores.values(), strict=True):
        low, high = value.interval or (None, None)
        assert (row["low"], row["high"]) == (low, high)
        assert (line["low"], line["high"]) == (("", "") if low is None else (repr(low), repr(high)))


def test_intervals_in_tables_for_people(folder):
    low, high = folder[1].scores["rmse"].interval
    text = shown(folder).decode()
    assert "95 %" in text
    assert f"{low:.4f} .. {high:.4f}" in text
    lines = shown(folder, "--format", "markdown").decode().splitlines()
    assert lines[0].endswith("| low | high |")
    assert "| rmse | all |" in next(line for line in lines if f"{low:.6g} | {high:.6g}" in line)
    assert next(line for line in lines if line.startswith("| rmse | observed |")).endswith("| – | – |")


def test_no_groups_no_columns(tmp_path):
    run(group_by=None, out=tmp_path / "run")
    for kind in ("table", "csv", "markdown"):
        assert not {"95 %", "low"} & set(called("show", tmp_path / "run", "--format", kind).stdout.decode().split())


def test_groups_of_a_folder_that_was_changed(folder, tmp_path):
    """They are of all its samples, or it is not what was written."""
    (tmp_path / "run").mkdir()
    head = json.loads((folder[0] / "run.json").read_text())
    for groups in ({"a_0": "a"}, ["a"], {**head["groups"], "z": "z"}):
        (tmp_path / "run" / "run.json").write_text(json.dumps({**head, "groups": groups}))
        with pytest.raises(InputError, match="other groups than samples"):
            Run.load(tmp_path / "run")
