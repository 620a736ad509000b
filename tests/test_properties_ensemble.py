"""Scores of samples against all of their pairs, pixel by pixel."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import ensemble as twin
from twins.draw import FEW, MODEST, Array, key, laid_out, layouts, mask_of, named, region_kinds, seeds

import karat
from karat.kernels import ensemble
from karat.metrics.ensemble_forecast import EnsembleCounts, EnsembleCRPS, EnsembleSpread
from karat.metrics.rank_histogram import RankHistogram
from karat.metrics.sample_diversity import SampleDiversity

shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))
counts = st.integers(1, 9)
near = partial(pytest.approx, rel=1e-9, abs=1e-12, nan_ok=True)


def fields(rng: np.random.Generator, shape: tuple[int, ...], count: int, spoilt: float) -> tuple[Array, Array]:
    """Samples and truths of few values, so that there are ties; some of them NaN."""
    samples, truth = (rng.integers(-4, 5, (shape[0], n, *shape[1:])) / 2 for n in (count, 1))
    for field in (samples, truth):
        field[rng.random(field.shape) < spoilt] = np.nan
    return samples, truth[:, 0]


def scored(metric, given, mask) -> dict[str, float]:
    """The scores of the region; nothing on the way warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metric(*given, regions=named(mask))
    return {name: found[key(name, mask)] for name in found if "@m" not in name}


@MODEST
@given(shapes, counts, st.sampled_from([0.0, 0.1]), region_kinds, layouts, seeds)
def test_scores_equal_the_literal_ones(shape, count, spoilt, kind, layout, seed):
    """Every score of samples, in regions of every kind, of every layout; ranks laid on any number of bins."""
    rng = np.random.default_rng(seed)
    given = tuple(laid_out(field, layout) for field in fields(rng, shape, count, spoilt))
    mask = mask_of(rng, shape, kind)
    frames = [twin.pixels(*given, mask, b) for b in range(shape[0])]
    every = [one for frame in frames for one in frame]
    found = scored(EnsembleCRPS(), given, mask) | scored(EnsembleSpread(), given, mask)
    wanted = twin.forecast(every)
    for name, value in wanted.items():
        assert found[name] == near(value), name
    bins = int(rng.integers(2, 13))
    ranks, shares = scored(RankHistogram(bins=bins), given, mask), twin.ranks(every, bins)
    assert [ranks[f"rank_hist@rank:{k}"] for k in range(bins)] == near(shares)
    assert ranks["rank_hist"] == near(sum(abs(one - 1 / bins) for one in shares) / 2)


@MODEST
@given(shapes, counts, st.sampled_from([0.0, 0.1]), region_kinds, seeds)
def test_diversity_is_of_each_map(shape, count, spoilt, kind, seed):
    """The mean over the maps that have one."""
    rng = np.random.default_rng(seed)
    samples, _ = fields(rng, shape, count, spoilt)
    mask = mask_of(rng, shape, kind)
    each = [twin.diversity(twin.pixels(samples, np.zeros((shape[0], *shape[1:])), mask, b)) for b in range(shape[0])]
    found = scored(SampleDiversity(), (samples,), mask)
    for name in SampleDiversity.scores:
        known = [one[name] for one in each if not math.isnan(one[name])]
        assert found[name] == near(math.fsum(known) / len(known) if known else math.nan), name


@MODEST
@given(st.integers(1, 40), st.sampled_from(["int8", "float32", "float64"]), seeds)
def test_exchanges_of_maps_sort(count, dtype, seed):
    """Every pixel's samples, ties and infinities among them."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(-5, 6, (count, 3, 4)).astype(dtype)
    if dtype != "int8":
        samples[rng.random(samples.shape) < 0.1] = np.inf
    np.testing.assert_array_equal(np.stack(ensemble.rising(list(samples))), np.sort(samples, axis=0))


@FEW
@given(st.integers(1, 12), st.integers(1, 60), seeds)
def test_tiles_of_a_map_change_no_bit(count, pixels, seed):
    """However many pixels are sorted at once."""
    rng = np.random.default_rng(seed)
    samples, truth = rng.normal(size=(2, count, 7, 9)), rng.normal(size=(2, 7, 9))
    wanted = ensemble.crps(samples, truth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "TILE_PIXELS", pixels)
        np.testing.assert_array_equal(ensemble.crps(samples, truth), wanted)


@FEW
@given(shapes, counts, st.sampled_from(["half", "sparse weights", "one pixel"]), seeds)
def test_what_is_outside_a_region_is_never_read(shape, count, kind, seed):
    """Anything where the weight is 0 leaves every bit as it was."""
    rng = np.random.default_rng(seed)
    samples, truth = fields(rng, shape, count, 0.0)
    mask = mask_of(rng, shape, kind)
    assert mask is not None
    dirt = rng.choice([np.nan, np.inf, -np.inf, 1e300], samples.shape)
    dirty = np.where(mask[:, None] == 0, dirt, samples), np.where(mask == 0, dirt[:, 0], truth)
    for metric in (EnsembleCRPS(), EnsembleSpread(), RankHistogram()):
        np.testing.assert_equal(scored(metric, dirty, mask), scored(metric, (samples, truth), mask))
    np.testing.assert_equal(scored(SampleDiversity(), dirty[:1], mask), scored(SampleDiversity(), (samples,), mask))


@FEW
@given(shapes, counts, seeds)
def test_the_order_of_samples_does_not_count(shape, count, seed):
    """Sorted samples have the same ranks and the same CRPS, to the bit; their mean may be rounded elsewhere."""
    rng = np.random.default_rng(seed)
    samples, truth = rng.normal(size=(shape[0], count, *shape[1:])), rng.normal(size=shape)
    shuffled = samples[:, rng.permutation(count)]
    for metric in (EnsembleCRPS(), RankHistogram()):
        np.testing.assert_equal(metric(shuffled, truth), metric(samples, truth))


@FEW
@given(shapes, counts, seeds)
def test_every_pixel_is_counted_once(shape, count, seed):
    """Judged or NaN."""
    samples, truth = fields(np.random.default_rng(seed), shape, count, 0.1)
    found = EnsembleCounts()(samples, truth)
    assert found["n_sampled_pixels"] + found["n_sampled_nan_pixels"] == np.prod(shape)
    assert found["n_members"] == count or found["n_sampled_pixels"] == 0


def test_the_fair_score_does_not_depend_on_how_many_samples_there_are():
    """The mean of many draws is that of the normal distribution they come from; the plain one is larger of few."""
    rng = np.random.default_rng(4)
    truth = rng.normal(size=(1, 200, 300))
    normal = karat.CRPS()(np.zeros_like(truth), truth, np.ones_like(truth))["crps"]
    for count in (2, 5, 12):
        found = EnsembleCRPS()(rng.normal(size=(1, count, 200, 300)), truth)
        assert found["crps_fair"] == pytest.approx(normal, abs=0.008)
        assert found["crps_ensemble"] - found["crps_fair"] == pytest.approx(1 / math.sqrt(math.pi) / count, abs=0.008)


def test_a_truth_that_could_be_a_sample_has_flat_ranks_and_as_much_spread_as_error():
    """Of 60,000 pixels, up to chance."""
    rng = np.random.default_rng(9)
    drawn = rng.normal(2, 3, (1, 8, 200, 300))
    samples, truth = drawn[:, 1:], drawn[:, 0]
    assert RankHistogram(bins=8)(samples, truth)["rank_hist"] < 0.01
    assert EnsembleSpread()(samples, truth)["spread_skill_ensemble"] == pytest.approx(1, abs=0.01)


def test_samples_stand_for_the_prediction_and_its_deviation():
    """The run says what is made of them; what is given is taken as it is."""
    rng = np.random.default_rng(2)
    samples, truth, pred = rng.normal(size=(2, 5, 8, 9)), rng.normal(size=(2, 8, 9)), rng.normal(size=(2, 8, 9))
    given = {name: dict(zip("ab", field, strict=True)) for name, field in (("pred_samples", samples), ("truth", truth))}
    run = karat.evaluate("radiomap", metrics=["rmse", "crps", "crps_fair"], **given)
    mean, deviation = samples.mean(axis=1), samples.std(axis=1, ddof=1)
    for b, name in enumerate("ab"):
        assert run.sample_scores[name]["rmse"] == near(karat.RMSE()(mean[b], truth[b])["rmse"])
        assert run.sample_scores[name]["crps"] == near(karat.CRPS()(mean[b], truth[b], deviation[b])["crps"])
    assert "made:pred=SampleMean() of pred_samples+pred_std=SampleDeviation(ddof=1) of pred_samples" in run.signature
    assert "pred_std is SampleDeviation(ddof=1) of pred_samples." in run.notes
    own = karat.evaluate("radiomap", metrics=["rmse", "crps"], pred=dict(zip("ab", pred, strict=True)), **given)
    assert own.sample_scores["a"]["rmse"] == near(karat.RMSE()(pred[0], truth[0])["rmse"])
    assert own.sample_scores["a"]["crps"] == near(karat.CRPS()(pred[0], truth[0], deviation[0])["crps"])
    assert "made:pred_std=SampleDeviation(ddof=1) of pred_samples|" in own.signature


def test_a_run_of_samples_is_read_back(tmp_path):
    """What was made of what is kept with the run; samples that are missing fail all that is made of them."""
    rng = np.random.default_rng(2)
    samples, truth = rng.normal(size=(5, 8, 9)), rng.normal(size=(8, 9))
    given = {"pred_samples": {"a": samples}, "truth": {"a": truth, "b": truth}}
    run = karat.evaluate("radiomap", metrics=["rmse", "crps"], out=tmp_path / "run", **given)
    again = karat.Run.load(tmp_path / "run")
    assert again.signature == run.signature
    for one in (run, again):
        assert [(one.scores[name].n, one.scores[name].failed) for name in ("rmse", "crps")] == [(1, 1), (1, 1)]
