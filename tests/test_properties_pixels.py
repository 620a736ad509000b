"""Pixel errors against exact fractions; bytes of declared ranges and sizes against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from twins import pixels as twin
from twins.draw import FEW, MODEST, Array, key, laid_out, layouts, mask_of, named, region_kinds, seeds

from karat.errors import InputError
from karat.feed import as_bytes, resized
from karat.kernels.pixels import difference
from karat.metrics.mae import MAE
from karat.metrics.mse import MSE, SquaredError
from karat.metrics.psnr import PSNR
from karat.metrics.rmse import RMSE
from karat.region import make_regions

DTYPES: dict[str, tuple[Any, Any]] = {
    "uint8": (0, 256),
    "uint16": (0, 65536),
    "int16": (-32768, 32768),
    "int32": (-(2**31), 2**31),
    "uint32": (0, 2**32),
    "int64": (-(2**40), 2**40),
    "float16": (-8, 8),
    "float32": (-1e6, 1e6),
    "float64": (-1e6, 1e6),
}
sides = st.integers(1, 5)
clips = st.tuples(st.integers(1, 3), sides, st.sampled_from([1, 2, 4, 5]))  # a width of 3 would read as colours


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    low, high = DTYPES[dtype]
    drawn = rng.integers(low, high, shape) if np.dtype(dtype).kind in "iu" else rng.uniform(low, high, shape)
    return drawn.astype(dtype)


@MODEST
@given(clips, st.booleans(), st.sampled_from(sorted(DTYPES)), region_kinds, layouts, seeds)
def test_errors_equal_exact_fractions(shape, colour, dtype, kind, layout, seed):
    """MSE, MAE, RMSE and PSNR of every dtype, layout and region; integers of up to 16 bits exactly."""
    rng = np.random.default_rng(seed)
    full = (*shape, 3) if colour else shape
    pred, truth = (laid_out(values(rng, full, dtype), layout) for _ in range(2))
    mask = mask_of(rng, shape, kind)
    exact = {2: twin.mean_power(pred, truth, mask, 2), 1: twin.mean_power(pred, truth, mask, 1)}
    expected = {"mse": exact[2], "mae": exact[1], "rmse": math.sqrt(exact[2]), "psnr": twin.psnr(exact[2], 255.0)}
    for metric in (MSE(), MAE(), RMSE(), PSNR(pool="sample")):
        (score,) = metric.scores
        found = metric(pred, truth, regions=named(mask))[key(score, mask)]
        assert found == pytest.approx(expected[score], rel=1e-12, nan_ok=True)
        if score in ("mse", "mae") and dtype in ("uint8", "uint16", "int16") and "weights" not in kind:
            assert found == expected[score] or math.isnan(found)


@MODEST
@given(clips, st.booleans(), seeds)
def test_sums_of_bytes_are_integers_and_never_wrap(shape, colour, seed):
    """The extremes of uint8 on either side: the sums are the exact integers."""
    rng = np.random.default_rng(seed)
    full = (*shape, 3) if colour else shape
    pred, truth = (rng.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), full) for _ in range(2))
    regions = make_regions({"m": rng.random(shape) < 0.5}, shape)
    squared, absolute = SquaredError().measure(pred, truth, regions), MAE().measure(pred, truth, regions)
    for name, columns, power in (("squares", squared, 2), ("distance", absolute, 1)):
        assert columns[name].dtype == columns["n"].dtype == np.int64
        for r, mask in enumerate(regions.maps.values()):
            for b in range(shape[0]):
                cut = slice(b, b + 1)
                part = None if mask is None else np.asarray(mask)[cut]
                total, count = twin.powers(pred[cut], truth[cut], part, power)
                assert (columns[name][b, r], columns["n"][b, r]) == (total, count)


@MODEST
@given(clips, st.sampled_from(["half", "empty", "sparse weights", "one pixel"]), seeds)
def test_what_is_outside_a_region_is_never_read(shape, kind, seed):
    """NaN and infinities where the weight is 0 leave every bit of the score as it was."""
    rng = np.random.default_rng(seed)
    pred, truth = values(rng, shape, "float64"), values(rng, shape, "float64")
    mask = mask_of(rng, shape, kind)
    assert mask is not None
    outside = np.asarray(mask) == 0
    for metric in (MSE(), MAE(), RMSE(), PSNR()):
        (score,) = metric.scores
        clean = metric(pred, truth, regions={"m": mask})[f"{score}@m"]
        for side, other in ((pred, truth), (truth, pred)):
            dirty = np.where(outside, rng.choice([np.nan, np.inf, -np.inf], shape), side)
            given_ = (dirty, other) if side is pred else (other, dirty)
            np.testing.assert_equal(metric(*given_, regions={"m": mask})[f"{score}@m"], clean)


@FEW
@given(st.tuples(st.integers(1, 3), sides, sides), seeds)
def test_psnr_is_the_mean_over_frames(shape, seed):
    """One PSNR a frame, then their mean; infinite as soon as one frame is equal."""
    rng = np.random.default_rng(seed)
    pred, truth = values(rng, (*shape, 3), "uint8"), values(rng, (*shape, 3), "uint8")
    each = [twin.psnr(twin.mean_power(pred[b : b + 1], truth[b : b + 1], None, 2), 200.0) for b in range(shape[0])]
    assert PSNR(data_range=200.0)(pred, truth)["psnr"] == pytest.approx(sum(each) / len(each), rel=1e-12)
    truth[0] = pred[0]
    assert PSNR()(pred, truth)["psnr"] == math.inf


@pytest.mark.parametrize("shapes", [((2, 1, 1, 3), (2, 4, 5, 3)), ((3, 3, 3), (3, 3, 3, 3)), ((2, 4, 5), (2, 4, 1))])
def test_shapes_that_would_broadcast_are_refused(shapes):
    """A frame of another size is never stretched over the other side."""
    pred, truth = (np.zeros(shape, np.uint8) for shape in shapes)
    for one, other in ((pred, truth), (truth, pred)):
        with pytest.raises(InputError, match="shape"):
            difference(one, other)


@MODEST
@given(sides, sides, st.floats(-100, 100), st.floats(0.01, 300), st.sampled_from(["float32", "float64"]), seeds)
def test_floats_become_the_nearest_bytes(height, width, low, span, dtype, seed):
    """Every value of a declared range as a literal rounding has it."""
    rng = np.random.default_rng(seed)
    high = low + span
    frame = rng.uniform(low, high, (height, width, 3)).astype(dtype)
    assume(bool((frame >= low).all() and (frame <= high).all()))
    found = as_bytes(frame, (low, high), "x")
    assert found.dtype == np.uint8
    assert found.ravel().tolist() == [twin.level(value, low, high) for value in frame.ravel()]


@MODEST
@given(st.lists(st.integers(0, 509), min_size=1, max_size=30))
def test_halves_go_to_the_even_byte(doubled):
    """0.5 -> 0, 1.5 -> 2, 2.5 -> 2, in the range 0..255 and for integers of twice that range."""
    frame = np.array([doubled])
    expected = [[n // 2 if n % 2 == 0 else (n // 2) + (n // 2) % 2 for n in doubled]]
    assert as_bytes(frame / 2, (0, 255), "x").tolist() == expected
    assert as_bytes(frame.astype(np.uint16), (0, 510), "x").tolist() == expected


@MODEST
@given(sides, sides, st.sampled_from([np.nan, np.inf, -np.inf, -0.01, 1.01, 255.0]), seeds)
def test_values_outside_the_range_are_refused(height, width, bad, seed):
    """One NaN, infinity or value outside is enough; rounding noise of a decoder is not."""
    rng = np.random.default_rng(seed)
    frame = rng.random((height, width))
    assert as_bytes(np.where(frame < 0.5, -1e-6, 1 + 1e-6), (0, 1), "x").dtype == np.uint8
    frame[rng.integers(height), rng.integers(width)] = bad
    with pytest.raises(InputError, match="NaN" if np.isnan(bad) else "range"):
        as_bytes(frame, (0, 1), "x")
    with pytest.raises(InputError, match="--range"):
        as_bytes(frame, None, "x")


def test_bytes_stay_the_same_object():
    """uint8 frames need no range and are not copied."""
    frame = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert as_bytes(frame, None, "x") is as_bytes(frame, (0, 1), "x") is frame


@MODEST
@given(st.tuples(sides, sides), st.tuples(sides, sides), st.sampled_from(["int64", "uint16", "bool", "uint8"]), seeds)
def test_labels_are_resized_to_the_nearest_pixel(old, new, dtype, seed):
    """Labels, stacks of masks and nearest depth: pixel i comes from floor(i old / new), in the same dtype."""
    rng = np.random.default_rng(seed)
    frame = rng.integers(0, 2 if dtype == "bool" else 60000, old).astype(dtype)
    found = resized(frame, "segments", new, False)
    assert found.dtype == frame.dtype
    np.testing.assert_array_equal(found, twin.nearest(frame, new))
    np.testing.assert_array_equal(resized(frame, "depth", new, True), twin.nearest(frame, new))
    stack = rng.random((int(rng.integers(0, 4)), *old)) < 0.5
    expected = np.array([twin.nearest(mask, new) for mask in stack], bool).reshape(-1, *new)
    np.testing.assert_array_equal(resized(stack, "segments", new, False), expected)


@MODEST
@given(st.tuples(sides, sides), st.tuples(sides, sides), st.booleans(), seeds)
def test_frames_and_depth_are_resized_linearly_or_by_area(old, new, colour, seed):
    """Linear where the truth is taller, the mean of what a pixel covers where both sides shrink.

    OpenCV resizes bytes in fixed point, so they may be one level off; depth in float64 with float32 weights is not.
    """
    rng = np.random.default_rng(seed)
    grows = new[0] > old[0]
    assume(grows or (new[1] <= old[1]))
    reference = twin.linear if grows else twin.area
    depth = rng.uniform(0.5, 50, old)
    np.testing.assert_allclose(resized(depth, "depth", new, False), reference(depth, new), rtol=1e-5)
    frame = rng.integers(0, 256, (*old, 3) if colour else old).astype(np.uint8)
    found = resized(frame, "frames", new, False)
    assert found.dtype == np.uint8
    assert np.abs(found - reference(frame, new)).max() <= 1
