"""What `karat check radiomap` finds in maps, before anything is computed; what is sound is not doubted."""

from __future__ import annotations

import numpy as np
import pytest

from karat import check

RNG = np.random.default_rng(0)
TRUTH = RNG.uniform(-150, -50, (2, 16, 18))
PRED = TRUTH + RNG.normal(0, 3, TRUTH.shape)
SEEN = RNG.random(TRUTH.shape) < 0.2
BYTES = RNG.integers(0, 256, TRUTH.shape).astype(np.uint8)


def found(level="warning", **more):
    """The messages of a level."""
    given = {"pred": PRED, "truth": TRUTH, "workers": 1, **more}
    messages = [one for one in check("radiomap", **given) if one.level == level]
    assert all(one.message.isprintable() for one in messages)
    return [(one.sample, one.message) for one in messages]


def assert_one(messages, *words):
    assert any(all(word in message for word in words) for _, message in messages), messages


def holed(array, value, count=5):
    changed = array.copy()
    changed[0].flat[:count] = value
    return changed


def test_sound_maps_are_not_doubted():
    """In dBm, from pictures, from -1 to 1; a mask and a building map of both sorts."""
    building = RNG.random(TRUTH.shape) < 0.6
    for more in (
        {"observed": SEEN, "building": building, "free": "value>0"},
        {"pred": PRED, "scale": (-186, -47)},
        {"pred": BYTES, "truth": BYTES[::-1], "scale": (-186, -47)},
        {"pred": PRED / 150, "truth": BYTES, "scale": (-186, -47), "stored": (-1, 1)},
        {"pred_std": np.ones(TRUTH.shape)},
    ):
        assert not found(**more)
        assert not found("error", **more)


@pytest.mark.parametrize("low, flag", [(-1, "--from -1..1"), (0, "--from 0..1")])
def test_values_that_models_are_trained_on(low, flag):
    """Where a scale in dBm is declared, and not what they are stored in."""
    for beyond in (0, 0.1):  # as networks without a last tanh give them
        unit = RNG.uniform(low - beyond, 1 + beyond, TRUTH.shape)
        assert_one(found(pred=unit, scale=(-186, -47), units="dBm"), "pred", "taken to be in dBm already", flag)


def test_sides_on_different_scales():
    unit = RNG.uniform(-1, 1, TRUTH.shape)
    assert_one(found(pred=unit), "pred is from -", "truth from -1", "--scale and --from")
    assert not found(pred=unit, truth=unit[::-1])


def test_values_far_from_the_scale():
    """In dBm although they are said to be stored from -1 to 1."""
    messages = found(scale=(-186, -47), stored=(-1, 1))
    assert_one(messages, "pred", "far outside of what -186..-47 allows")
    assert_one(messages, "truth", "far outside")


def test_whole_numbers_without_a_scale():
    for dtype in (np.uint8, np.uint16, np.int16):
        assert_one(found(pred=BYTES.astype(dtype), truth=BYTES[::-1]), "pred", np.dtype(dtype).name, "pass --scale")


def test_pixels_that_are_no_numbers():
    assert_one(found(pred=holed(PRED, np.nan)), "pred is NaN in 5 of 288 pixels")
    assert_one(found(truth=holed(TRUTH, -np.inf, 2)), "truth is infinite in 2 pixels")
    assert_one(found(truth=np.full(TRUTH.shape, np.nan)), "truth is NaN in 288 of 288 pixels")


def test_a_constant_truth():
    assert_one(found(truth=np.full(TRUTH.shape, -100.0)), "truth is -100 everywhere")


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_standard_deviations_that_are_none(value):
    assert_one(found(pred_std=holed(np.ones(TRUTH.shape), value)), "pred_std is 0 or less in 5 pixels")


def test_masks():
    assert_one(found(observed=np.zeros_like(SEEN)), "no pixel is observed")
    assert_one(found(observed=np.ones_like(SEEN)), "no pixel is unobserved")
    assert_one(found("error", observed=holed(SEEN.astype(np.uint8), 7)), "observed has the values 1, 7 besides 0")
    assert_one(found(building=np.zeros_like(BYTES), free="value>0"), "no pixel is free")
    assert_one(found("error", observed=SEEN[:, ::2]), "observed", "--on-size resize")


@pytest.mark.parametrize("dtype", ["float64", "int16", "float32"])
def test_a_region_at_the_floor(dtype):
    """The truth is hardly more than its lowest where the building map says that space is free: it is inverted."""
    walls = np.zeros(TRUTH.shape, bool)
    walls[:, :, :8] = True
    truth = np.where(walls, -186, TRUTH).astype(dtype)
    building = np.where(walls, 255, 0).astype(np.uint8)
    messages = found(truth=truth, building=building, free="value>0")
    assert_one(messages, "the truth is at its lowest, -186, in 100% of free", "the other way round?")
    pred = truth.astype(np.float64) + 1
    assert not [one for one in found(pred=pred, truth=truth, building=building, free="value==0") if "lowest" in one[1]]
