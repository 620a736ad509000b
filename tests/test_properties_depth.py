"""Depth error up to scale against lists of valid pixels."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import depth as twin
from twins.draw import FEW, MODEST, Array, key, laid_out, layouts, mask_of, named, region_kinds, seeds

from karat.metrics.depth_rmse import DepthRMSE

INVALID = [0.0, -0.0, -1.5, np.nan, np.inf, -np.inf]
shapes = st.tuples(st.integers(1, 4), st.integers(1, 6), st.sampled_from([1, 2, 4, 5, 6]))


def depths(rng: np.random.Generator, shape: tuple[int, ...], spoilt: float) -> Array:
    """Positive depths, a share of them made invalid, one frame in three altogether."""
    share = np.where(rng.random((shape[0], 1, 1)) < 1 / 3, 1.0, spoilt) if spoilt else np.zeros((shape[0], 1, 1))
    return np.where(rng.random(shape) < share, rng.choice(INVALID, shape), rng.uniform(0.05, 40, shape))


@MODEST
@given(
    shapes,
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([None, 10.0, 0.5]),
    st.sampled_from(["undefined", "zero"]),
    region_kinds,
    layouts,
    seeds,
)
def test_scores_equal_the_literal_ones(shape, spoilt, cap, invalid_frame, kind, layout, seed):
    """All three scores with median scale, cap, regions, invalid pixels and frames; and no warning on the way."""
    rng = np.random.default_rng(seed)
    pred, truth = (laid_out(depths(rng, shape, spoilt), layout) for _ in range(2))
    mask = mask_of(rng, shape, kind)
    expected = twin.of_clip(pred, truth, mask, cap, invalid_frame == "zero")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = DepthRMSE(cap=cap, invalid_frame=invalid_frame)(pred, truth, regions=named(mask))
    for name in twin.NAMES:
        # log(p) - log(t) of equal ratios leaves rounding noise of some 1e-16 where the twin may have exactly 0
        assert found[key(name, mask)] == pytest.approx(expected[name], rel=1e-9, abs=1e-13, nan_ok=True)


@MODEST
@given(shapes, st.sampled_from(["half", "sparse weights", "one pixel"]), seeds)
def test_what_is_outside_a_region_is_never_read(shape, kind, seed):
    """Anything where the weight is 0 leaves every bit of the scores as it was."""
    rng = np.random.default_rng(seed)
    pred, truth = depths(rng, shape, 0.0), depths(rng, shape, 0.0)
    mask = mask_of(rng, shape, kind)
    assert mask is not None
    dirty = np.where(np.asarray(mask) == 0, rng.choice([*INVALID, 1e300], shape), pred)
    clean, same = (DepthRMSE()(side, truth, regions={"m": mask}) for side in (pred, dirty))
    for name in twin.NAMES:
        np.testing.assert_equal(same[f"{name}@m"], clean[f"{name}@m"])


@MODEST
@given(shapes, st.integers(-20, 20), seeds)
def test_the_scale_of_the_prediction_does_not_count(shape, exponent, seed):
    """A prediction scaled by a power of two has the same bits; a scaled copy of the truth has error 0."""
    rng = np.random.default_rng(seed)
    pred, truth = depths(rng, shape, 0.2), depths(rng, shape, 0.2)
    factor = 2.0**exponent
    one, other = DepthRMSE()(pred, truth), DepthRMSE()(pred * factor, truth)
    for name in twin.NAMES[:2]:
        np.testing.assert_equal(one[name], other[name])
    assert one[twin.NAMES[2]] == pytest.approx(other[twin.NAMES[2]], rel=1e-6, abs=1e-12, nan_ok=True)
    positive = rng.uniform(0.1, 9, shape)
    for name, value in DepthRMSE()(positive * factor, positive).items():
        assert value == pytest.approx(0, abs=1e-12), name


@FEW
@given(shapes, st.sampled_from(["uint8", "uint16", "int64", "float16", "float32"]), seeds)
def test_every_dtype_is_widened_first(shape, dtype, seed):
    """Millimetres in uint16 and half floats score as the same numbers in float64."""
    rng = np.random.default_rng(seed)
    pred, truth = (rng.uniform(0, 200, shape).astype(dtype) for _ in range(2))
    wide = DepthRMSE()(pred.astype(np.float64), truth.astype(np.float64))
    np.testing.assert_equal(DepthRMSE()(pred, truth), wide)


def test_a_frame_without_a_valid_pixel():
    """Undefined and left out, or 0 as published code has it."""
    truth = np.ones((2, 2, 2))
    pred = np.array([[[1.0, 2], [4, 8]], [[0, -1], [np.nan, np.inf]]])
    alone = DepthRMSE()(pred[:1], truth[:1])["depth_si_rmse"]
    assert DepthRMSE()(pred, truth)["depth_si_rmse"] == alone
    assert DepthRMSE(invalid_frame="zero")(pred, truth)["depth_si_rmse"] == alone / 2
    assert math.isnan(DepthRMSE()(pred[1:], truth[1:])["depth_si_rmse"])
    assert DepthRMSE(invalid_frame="zero")(pred[1:], truth[1:])["depth_si_rmse"] == 0
