"""The SSIM kernel against its literal twin and against scikit-image."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from twins import ssim as twin

from karat.errors import InputError
from karat.kernels.ssim import ssim_map, ssim_sum

UNIFORM: dict[str, Any] = {"window": "uniform", "size": 7}
GAUSSIAN: dict[str, Any] = {"window": "gaussian", "size": 11, "sigma": 1.5}
WINDOWS = pytest.mark.parametrize("window", [UNIFORM, GAUSSIAN], ids=["uniform", "gaussian"])
PRECISIONS = pytest.mark.parametrize("precision", ["float64", "float32"])


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def natural_pair(height: int = 150, width: int = 201, channels: int = 3, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Smooth random waves with edges, and a brighter noisy copy."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:height, 0:width, 0:channels][:2]
    waves = sum(
        a * np.sin(rows * f + columns * g + p)
        for a, f, g, p in rng.uniform((5, -0.4, -0.4, 0), (25, 0.4, 0.4, 6), (6, 4))
    )
    image = 120 + waves + 50 * ((rows // 40 + columns // 50) % 2)
    noisy = image + 4 + rng.normal(0, 6, image.shape)
    x, y = (np.clip(frame, 0, 255).round().astype(np.uint8) for frame in (image, noisy))
    return (x, y) if channels > 1 else (x[..., 0], y[..., 0])


def reference_map(x: NDArray, y: NDArray, window: dict[str, Any], **options: Any) -> NDArray:
    metrics = pytest.importorskip("skimage.metrics")
    gaussian = {"gaussian_weights": True, "sigma": window["sigma"]} if window["window"] == "gaussian" else {}
    size = {} if gaussian else {"win_size": window["size"]}
    axis = 2 if x.ndim == 3 else None
    full = metrics.structural_similarity(x, y, full=True, channel_axis=axis, **gaussian, **size, **options)[1]
    return full.mean(axis=2) if x.ndim == 3 else full


@st.composite
def jobs(draw: st.DrawFn) -> tuple[NDArray, NDArray, dict[str, Any]]:
    shape = (draw(st.integers(1, 14)), draw(st.integers(1, 14)))
    shape += draw(st.sampled_from([(), (1,), (3,), (5,)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.integers(0, 256, shape, dtype=np.uint8)
    y = np.clip(x + rng.integers(-20, 21, shape), 0, 255).astype(np.uint8)
    if draw(st.booleans()):
        x, y = x / 255 + 3, y / 255 + 3
    options = {
        "window": draw(st.sampled_from(["uniform", "gaussian"])),
        "size": draw(st.sampled_from([3, 7, 11, 15])),
        "sigma": draw(st.sampled_from([0.7, 1.5, 3.0])),
        "data_range": draw(st.sampled_from([1.0, 200.0, 255.0])),
        "sample_covariance": draw(st.booleans()),
    }
    return x, y, options


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_equals_the_literal_formula(job: tuple[NDArray, NDArray, dict[str, Any]]) -> None:
    x, y, options = job
    expected = twin.ssim_map(x, y, **options)
    np.testing.assert_allclose(ssim_map(x, y, **options), expected, rtol=0, atol=1e-9)
    assert ssim_sum(x, y, **options) == pytest.approx(expected.sum(), rel=1e-9, abs=1e-9)


@WINDOWS
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sample_covariance", [True, False])
def test_equals_scikit_image(window: dict[str, Any], channels: int, sample_covariance: bool) -> None:
    for seed in range(3):
        x, y = natural_pair(channels=channels, seed=seed)
        expected = reference_map(x, y, window, data_range=255, use_sample_covariance=sample_covariance)
        found = ssim_map(x, y, **window, data_range=255, sample_covariance=sample_covariance)
        assert np.abs(found - expected).max() < 1e-8
        assert abs(found.mean() - expected.mean()) < 1e-9
        single = ssim_sum(x, y, **window, data_range=255, sample_covariance=sample_covariance, precision="float32")
        assert abs(single / expected.size - expected.mean()) < 1e-6


@WINDOWS
@pytest.mark.parametrize("levels", [(255, 254), (254, 255), (1, 0), (0, 0), (128, 127)])
def test_flat_frames(window: dict[str, Any], levels: tuple[int, int]) -> None:
    x, y = (np.full((64, 70), level, np.uint8) for level in levels)
    expected = reference_map(x, y, window, data_range=255)
    assert np.abs(ssim_map(x, y, **window, data_range=255) - expected).max() < 1e-8
    assert np.abs(ssim_map(x, y, **window, data_range=255, precision="float32") - expected).max() < 1e-6


@WINDOWS
def test_bright_frames_with_little_noise(window: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    x, y = (rng.integers(250, 256, (300, 310), dtype=np.uint8) for _ in range(2))
    expected = reference_map(x, y, window, data_range=255)
    assert np.abs(ssim_map(x, y, **window, data_range=255) - expected).max() < 1e-8
    assert np.abs(ssim_map(x, y, **window, data_range=255, precision="float32") - expected).max() < 2e-6


@WINDOWS
@PRECISIONS
@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_identical_frames_give_exactly_one(window: dict[str, Any], precision: Any, kind: type) -> None:
    x = natural_pair()[0].astype(kind)
    options = {**window, "data_range": 255, "precision": precision}
    assert (ssim_map(x, x, **options) == 1.0).all()
    assert ssim_sum(x, x, **options) == x.shape[0] * x.shape[1]


@WINDOWS
@PRECISIONS
def test_symmetric_and_independent_of_an_offset_of_the_buffer(window: dict[str, Any], precision: Any) -> None:
    x, y = natural_pair()
    options = {**window, "data_range": 255, "precision": precision}
    expected = ssim_map(x, y, **options)
    np.testing.assert_array_equal(ssim_map(y, x, **options), expected)
    padded = np.zeros((x.shape[0] + 3, x.shape[1] + 5, 3), np.uint8)
    padded[2:-1, 3:-2] = x
    np.testing.assert_array_equal(ssim_map(padded[2:-1, 3:-2], np.asfortranarray(y), **options), expected)


@WINDOWS
@PRECISIONS
def test_no_range_and_no_contrast_is_not_a_number(window: dict[str, Any], precision: Any) -> None:
    flat = np.full((30, 40), 77, np.uint8)
    options = {**window, "data_range": 0, "precision": precision}
    assert np.isnan(ssim_map(flat, flat, **options)).all()
    assert np.isnan(ssim_sum(flat, flat, **options))


def test_no_range_is_defined_where_there_is_contrast() -> None:
    x, y = (np.random.default_rng(seed).integers(0, 256, (20, 20), dtype=np.uint8) for seed in (0, 1))
    expected = twin.ssim_map(x, y, **UNIFORM, data_range=0)
    np.testing.assert_allclose(ssim_map(x, y, **UNIFORM, data_range=0), expected, rtol=0, atol=1e-10)


@WINDOWS
@PRECISIONS
def test_a_missing_pixel_spoils_its_windows_only(window: dict[str, Any], precision: Any) -> None:
    x, y = (frame / 255.0 for frame in natural_pair(60, 60, 1))
    x[30, 20] = np.nan
    options = {**window, "data_range": 1.0}
    found = ssim_map(x, y, **options, precision=precision)
    radius = window["size"] // 2
    near = np.zeros(x.shape, bool)
    near[30 - radius : 31 + radius, 20 - radius : 21 + radius] = True
    np.testing.assert_array_equal(np.isnan(found), near)
    filled = np.where(np.isnan(x), 0.0, x)
    tolerance = 1e-9 if precision == "float64" else 1e-4
    np.testing.assert_allclose(found[~near], ssim_map(filled, y, **options)[~near], rtol=0, atol=tolerance)


@WINDOWS
@PRECISIONS
@pytest.mark.parametrize("shape", [(203, 310, 3), (150, 2000), (9, 5), (400, 900, 3)])
@pytest.mark.parametrize("border", [0, 2])
def test_sum_equals_the_sum_of_the_map(window: dict[str, Any], precision: Any, shape: Any, border: int) -> None:
    x, y = natural_pair(shape[0], shape[1], shape[2] if len(shape) == 3 else 1)
    options = {**window, "data_range": 255, "precision": precision}
    whole = ssim_map(x, y, **options)
    inner = whole[border : shape[0] - border, border : shape[1] - border]
    tolerance = 1e-12
    assert whole.dtype == "float64"
    assert ssim_sum(x, y, **options, border=border) == pytest.approx(inner.sum(dtype=np.float64), rel=tolerance)


@WINDOWS
@PRECISIONS
def test_the_same_bits_from_every_thread(window: dict[str, Any], precision: Any) -> None:
    pairs = [natural_pair(180, 300 + 7 * (seed % 3), seed=seed) for seed in range(12)]
    options = {**window, "data_range": 255, "precision": precision}
    alone = [ssim_sum(x, y, **options) for x, y in pairs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda pair: ssim_sum(*pair, **options), pairs)) == alone


@pytest.mark.parametrize("size", [9, 11, 31])
def test_byte_sums_are_exact_for_wide_windows(size: int) -> None:
    x, y = natural_pair(70, 80, 1)
    x[:35], y[:35] = 255, 254
    options = {"window": "uniform", "size": size, "data_range": 255}
    expected = reference_map(x, y, options)
    np.testing.assert_allclose(ssim_map(x, y, **options), expected, rtol=0, atol=1e-8)
    floats = ssim_map(x.astype(np.float64), y, **options)
    np.testing.assert_allclose(floats, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floating_frames_equal_bytes(kind: type) -> None:
    x, y = natural_pair()
    expected = ssim_map(x, y, **GAUSSIAN, data_range=255)
    found = ssim_map(x.astype(kind), y.astype(kind), **GAUSSIAN, data_range=255)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_many_channels() -> None:
    x, y = natural_pair(30, 31, 128)
    expected = np.mean([ssim_map(x[..., c], y[..., c], **UNIFORM, data_range=255) for c in range(128)], axis=0)
    np.testing.assert_allclose(ssim_map(x, y, **UNIFORM, data_range=255), expected, rtol=0, atol=1e-12)
    floats = ssim_map(x / 1.0, y / 1.0, **UNIFORM, data_range=255)
    np.testing.assert_allclose(floats, expected, rtol=0, atol=1e-9)


def test_a_large_offset_costs_no_digits() -> None:
    x, y = (frame / 255.0 for frame in natural_pair(60, 60, 1))
    options = {**GAUSSIAN, "k1": 0.0, "data_range": 1.0}
    expected = twin.ssim_map(x + 1e5, y + 1e5, **options)
    np.testing.assert_allclose(ssim_map(x + 1e5, y + 1e5, **options), expected, rtol=0, atol=1e-6)


def test_refusals() -> None:
    x = np.zeros((20, 20), np.uint8)
    good = {**UNIFORM, "data_range": 255}
    for frame in (np.zeros((20, 21), np.uint8), np.zeros((20, 20), np.int32), np.zeros((2, 2, 2, 2), np.uint8)):
        with pytest.raises(InputError):
            ssim_map(x, frame, **good)
    for wrong in (
        {"size": 6},
        {"size": 1},
        {"window": "box"},
        {"window": "gaussian", "sigma": 0.0},
        {"size": 0},
        {"precision": "int8"},
    ):
        with pytest.raises(InputError):
            ssim_map(x, x, **{**good, **wrong})
    with pytest.raises(InputError):
        ssim_map(np.zeros((20, 20, 129), np.uint8), np.zeros((20, 20, 129), np.uint8), **good)
    for border in (-1, 10):
        with pytest.raises(InputError):
            ssim_sum(x, x, **good, border=border)
    with pytest.raises(InputError):
        ssim_sum(np.zeros((0, 5), np.uint8), np.zeros((0, 5), np.uint8), **good)
