"""Scores of predicted standard deviations against lists of pixels."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import uncertainty as twin
from twins.draw import FEW, MODEST, Array, key, laid_out, layouts, mask_of, named, region_kinds, seeds

import karat
from karat.metrics.calibration import GRID, Calibration, DeviationCounts, StandardizedError
from karat.metrics.interval_score import IntervalScore
from karat.metrics.normal_forecast import CRPS, NLL, NormalForecast, SpreadSkill
from karat.metrics.pit import MACE, PIT
from karat.metrics.uncertainty_correlation import UncertaintyCorrelation

shapes = st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))
near = partial(pytest.approx, rel=1e-9, abs=1e-12, nan_ok=True)


def fields(rng: np.random.Generator, shape: tuple[int, ...], spoilt: float) -> tuple[Array, Array, Array]:
    """Predictions, truths and deviations, some of them undefined; multiples of 1/4, so that z is met exactly."""
    pred, truth = (rng.integers(-12, 13, shape) / 4 for _ in range(2))
    std = rng.integers(1, 9, shape) / 4
    for field, holes in ((pred, [np.nan]), (truth, [np.nan]), (std, [np.nan, 0.0, -1.0, np.inf])):
        field[rng.random(shape) < spoilt] = rng.choice(holes)
    return pred, truth, std


def scored(metric, given, mask) -> dict[str, float]:
    """The scores of the region; nothing on the way warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metric(*given, regions=named(mask))
    return {name: found[key(name, mask)] for name in found if "@m" not in name}


def together(frames, score) -> dict[str, float]:
    """Scores of the pixels of all frames at once."""
    return score([one for frame in frames for one in frame])


@MODEST
@given(shapes, st.sampled_from([0.0, 0.2]), region_kinds, layouts, seeds)
def test_scores_equal_the_literal_ones(shape, spoilt, kind, layout, seed):
    """Every score of standard deviations, in regions of every kind, of every layout."""
    rng = np.random.default_rng(seed)
    given = tuple(laid_out(field, layout) for field in fields(rng, shape, spoilt))
    mask = mask_of(rng, shape, kind)
    frames = [twin.defined(twin.pixels(*given, mask, b)) for b in range(shape[0])]
    bins, levels, level = int(rng.integers(2, 12)), int(rng.integers(2, 30)), float(rng.uniform(0.05, 0.99))
    of = NormalForecast(bins=bins, levels=levels)
    cases = [
        (Calibration(), partial(twin.calibration, grid=GRID, offset=0.0)),
        (CRPS(), twin.forecast),
        (NLL(), twin.forecast),
        (SpreadSkill(), twin.forecast),
        (PIT(of=of), partial(twin.transform, bins=bins)),
        (MACE(of=of), partial(twin.levels, count=levels)),
        (IntervalScore(level=level), partial(twin.interval, level=level)),
    ]
    for metric, score in cases:
        found, wanted = scored(metric, given, mask), together(frames, score)
        for name, value in found.items():
            if not name.startswith("fraction_within@"):
                assert value == near(wanted[name]), (metric, name)


@MODEST
@given(shapes, region_kinds, seeds)
def test_published_calibration_leaves_nothing_out(shape, kind, seed):
    """An epsilon beside the deviation, and NaN counts as not within."""
    rng = np.random.default_rng(seed)
    given = fields(rng, shape, 0.2)
    mask = mask_of(rng, shape, kind)
    frames = [twin.pixels(*given, mask, b) for b in range(shape[0])]
    metric = Calibration(of=StandardizedError(grid=(0.5, 1.0, 1.25), offset=1e-8, undefined="miss"))
    found, wanted = (
        scored(metric, given, mask),
        together(frames, partial(twin.calibration, grid=(0.5, 1, 1.25), offset=1e-8)),
    )
    for name, value in wanted.items():
        assert found[name] == near(value)


@MODEST
@given(shapes, st.sampled_from(["leave", "keep"]), st.sampled_from([0.0, 0.2]), region_kinds, seeds)
def test_correlation_is_of_each_map_about_its_own_means(shape, flat, spoilt, kind, seed):
    """The mean over the maps that have one; constants have none, exactly."""
    rng = np.random.default_rng(seed)
    given = fields(rng, shape, spoilt)
    mask = mask_of(rng, shape, kind)
    frames = [twin.pixels(*given, mask, b) for b in range(shape[0])]
    each = [twin.correlation(twin.defined(of) if flat == "leave" else of) for of in frames]
    known = [one for one in each if not math.isnan(one)]
    found = scored(UncertaintyCorrelation(flat=flat), given, mask)["uncertainty_correlation"]
    assert found == near(math.fsum(known) / len(known) if known else math.nan)


@FEW
@given(shapes, st.sampled_from(["half", "sparse weights", "one pixel"]), seeds)
def test_what_is_outside_a_region_is_never_read(shape, kind, seed):
    """Anything where the weight is 0 leaves every bit as it was."""
    rng = np.random.default_rng(seed)
    given, mask = fields(rng, shape, 0.0), mask_of(rng, shape, kind)
    dirty = [np.where(mask == 0, rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e300], shape), field) for field in given]
    for metric in (
        Calibration(),
        UncertaintyCorrelation(),
        CRPS(),
        NLL(),
        PIT(),
        MACE(),
        SpreadSkill(),
        IntervalScore(),
    ):
        np.testing.assert_equal(scored(metric, dirty, mask), scored(metric, given, mask))


@FEW
@given(shapes, seeds)
def test_every_pixel_is_counted_once(shape, seed):
    """Judged, NaN, without a deviation."""
    rng = np.random.default_rng(seed)
    given = fields(rng, shape, 0.3)
    found = DeviationCounts()(*given)
    assert sum(found.values()) == np.prod(shape)
    assert found["n_std_pixels"] == sum(len(twin.defined(twin.pixels(*given, None, b))) for b in range(shape[0]))


@FEW
@given(st.integers(-30, 30), seeds)
def test_a_linear_scale_changes_units_alone(exponent, seed):
    """Everything times a power of two: scores in the unit of the field are so many times as large, others the same."""
    rng = np.random.default_rng(seed)
    given, factor = fields(rng, (2, 5, 6), 0.1), 2.0**exponent
    times = [field * factor for field in given]
    for metric in (Calibration(), UncertaintyCorrelation(), PIT(), MACE()):
        np.testing.assert_equal(metric(*times), metric(*given))
    for metric, unit in (
        (CRPS(), ["crps"]),
        (IntervalScore(), ["interval_width", "winkler"]),
        (SpreadSkill(), ["sharpness"]),
    ):
        before, after = metric(*given), metric(*times)
        for name, value in before.items():
            assert after[name] == near(value * (factor if name in unit else 1))
    assert NLL()(*times)["nll"] == near(NLL()(*given)["nll"] + exponent * math.log(2))


def test_a_normal_error_is_calibrated():
    """Of 200,000 draws from what is predicted every score is what it should be, up to chance."""
    rng = np.random.default_rng(11)
    std = rng.uniform(0.5, 4, (1, 400, 500))
    truth = rng.normal(3, std)
    given = (np.full_like(truth, 3), truth, std)
    found = {}
    for metric in (
        Calibration(),
        UncertaintyCorrelation(),
        CRPS(),
        PIT(),
        MACE(),
        SpreadSkill(),
        IntervalScore(level=0.8),
    ):
        found |= metric(*given)
    ideal = {
        "calibration_error": 0,
        "fraction_within_1std": 0.6827,
        "fraction_within_2std": 0.9545,
        "pit_hist": 0,
        "pit_mean": 0.5,
        "pit_var": 1 / 12,
        "mace": 0,
        "mace_quantile": 0,
        "spread_skill": 1,
        "interval_coverage": 0.8,
        "crps": std.mean() / math.sqrt(math.pi),
    }
    for name, value in ideal.items():
        assert found[name] == pytest.approx(value, abs=0.01), name
    assert found["uncertainty_correlation"] > 0.3


def test_crps_is_the_integral_of_squared_differences():
    """The definition: the squared distance of the predicted distribution from the step at the truth, summed up."""
    step = 1e-4
    at = np.arange(-40, 40, step) + step / 2
    for pred, truth, std in ((0.0, 0.0, 1.0), (1.0, 3.0, 0.5), (-2.0, 1.0, 4.0)):
        below = np.array([0.5 * math.erfc((pred - x) / std / math.sqrt(2)) for x in at[::20]])
        integral = ((below - (at[::20] >= truth)) ** 2).sum() * step * 20
        assert karat.CRPS()(*(np.full((1, 1, 1), v) for v in (pred, truth, std)))["crps"] == pytest.approx(
            integral, abs=2e-3
        )
