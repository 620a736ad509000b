"""Sums over regions against loops over pixels, and maps of labels against masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import regions as twin
from twins.draw import FEW, MODEST, Array, laid_out, layouts, mask_of, seeds

from karat.errors import InputError
from karat.region import Labels, Regions, complement, intersection, make_regions, union

KINDS = ["everything", "half", "empty", "weights", "sparse weights", "one pixel"]
NAMES = ("near", "mid:dle", "far")
DTYPES = ["bool", "uint8", "int16", "int64", "float16", "float32", "float64"]
shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))


def regions_of(
    rng: np.random.Generator, shape: tuple[int, ...], restricted: bool
) -> tuple[Regions, list[Array | None]]:
    """Regions of every kind with a map of labels among them, and the mask that each column stands for."""
    masks = {kind: mask_of(rng, shape, kind) for kind in KINDS}
    labels = Labels(rng.integers(-1, 3, shape).astype(rng.choice(["int8", "int32", "int64"])), NAMES)
    valid = rng.random(shape) < 0.7 if restricted else None
    columns = [*masks.values(), *(labels.map == i for i in range(3))]
    return Regions({**masks, "depth:bin": labels}, valid), columns


def values_of(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return rng.uniform(0 if dtype in ("bool", "uint8") else -100, 2 if dtype == "bool" else 100, shape).astype(dtype)


@MODEST
@given(shapes, st.sampled_from(DTYPES), st.booleans(), layouts, seeds)
def test_sums_weights_and_means(shape, dtype, restricted, layout, seed):
    """Every column of every frame; integer columns exactly."""
    rng = np.random.default_rng(seed)
    regions, masks = regions_of(rng, shape, restricted)
    values = laid_out(values_of(rng, shape, dtype), layout)
    sums, weights, means = regions.sum(values), regions.weight(shape), regions.mean(values)
    assert sums.shape == weights.shape == means.shape == (shape[0], len(regions)) == (shape[0], len(masks))
    for b in range(shape[0]):
        for r, mask in enumerate(masks):
            total, weight = twin.total(values, mask, regions.valid, b), twin.weight(shape, mask, regions.valid, b)
            assert sums[b, r] == pytest.approx(total, rel=1e-12, abs=1e-10)
            assert weights[b, r] == pytest.approx(weight, rel=1e-12)
            assert means[b, r] == pytest.approx(total / weight if weight else np.nan, rel=1e-9, abs=1e-10, nan_ok=True)
            if mask is None or mask.dtype == bool:
                assert weights[b, r] == weight


@MODEST
@given(shapes, st.sampled_from(DTYPES), st.booleans(), layouts, seeds)
def test_sums_of_products_of_deviations(shape, dtype, restricted, layout, seed):
    """About the means of each frame and region; of a constant exactly 0, also where its sum is rounded."""
    rng = np.random.default_rng(seed)
    regions, masks = regions_of(rng, shape, restricted)
    fields = [laid_out(values_of(rng, shape, dtype), layout), rng.normal(size=shape), np.full(shape, 0.1)]
    found = regions.scatter(*fields)
    assert found.shape == (shape[0], len(masks), 3, 3)
    for b, r in np.ndindex(shape[0], len(masks)):
        for i, j in np.ndindex(2, 2):
            wanted = twin.scatter(fields[i], fields[j], masks[r], regions.valid, b)
            assert found[b, r, i, j] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert (found[:, :, 2] == 0).all()
    assert (found[:, :, :, 2] == 0).all()


@MODEST
@given(shapes, st.booleans(), st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), st.integers(1, 6), seeds)
def test_counts_quantiles_and_histograms(shape, restricted, q, bins, seed):
    """Counts weigh, quantiles and histograms take a pixel in or leave it out."""
    rng = np.random.default_rng(seed)
    regions, masks = regions_of(rng, shape, restricted)
    labels, values = rng.integers(0, bins, shape), values_of(rng, shape, "float64").round(-1)
    edges = np.array([-100.0, -50, 0, 20, 100])
    counts, quantiles = regions.count(labels, bins), regions.quantile(values, q)
    histograms, selected = regions.histogram(values, edges), regions.select(values)
    for b in range(shape[0]):
        for r, mask in enumerate(masks):
            assert counts[b, r] == pytest.approx(twin.count(labels, bins, mask, regions.valid, b), rel=1e-12)
            expected = twin.quantile(values, q, mask, regions.valid, b)
            assert quantiles[b, r] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
            assert histograms[b, r].tolist() == twin.histogram(values, edges.tolist(), mask, regions.valid, b)
            inside = [values[b, i, j] for i, j, _ in twin.held(shape, mask, regions.valid, b)]
            assert selected[b][r].tolist() == inside


@MODEST
@given(shapes, st.booleans(), seeds)
def test_what_has_weight_zero_is_never_read(shape, restricted, seed):
    """NaN and infinities outside a region leave every bit of what is inside."""
    rng = np.random.default_rng(seed)
    regions, masks = regions_of(rng, shape, restricted)
    values = values_of(rng, shape, "float64")
    for (_, one), mask in zip(regions.each(), masks, strict=True):
        outside = np.zeros(shape, bool) if mask is None else np.asarray(mask) == 0
        outside = outside if regions.valid is None else outside | ~regions.valid
        dirty = np.where(outside, rng.choice([np.nan, np.inf, -np.inf], shape), values)
        for measure in (Regions.sum, Regions.mean, lambda r, v: r.quantile(v, 0.5)):
            np.testing.assert_array_equal(measure(one, dirty), measure(one, values))


@MODEST
@given(shapes, st.booleans(), seeds)
def test_each_region_by_itself_is_its_column(shape, restricted, seed):
    """`each` yields the regions in the order of the columns, with names that hold colons too."""
    rng = np.random.default_rng(seed)
    regions, masks = regions_of(rng, shape, restricted)
    values = values_of(rng, shape, "float64")
    whole = regions.sum(values)
    columns = list(regions.each())
    assert [column for column, _ in columns] == list(range(len(masks)))
    assert [one.names[0] for _, one in columns] == list(regions.names)
    for column, one in columns:
        np.testing.assert_allclose(one.sum(values)[:, 0], whole[:, column], rtol=1e-12, atol=1e-10)
        assert one.weight(shape)[:, 0] == pytest.approx(regions.weight(shape)[:, column], rel=1e-12)


@FEW
@given(shapes, st.booleans(), st.integers(0, 3), st.integers(0, 3), seeds)
def test_blocks_of_frames_are_rows_of_the_whole(shape, restricted, start, stop, seed):
    """Cutting frames, then summing, has the bits of summing, then cutting; no frame gives no row."""
    rng = np.random.default_rng(seed)
    regions, _ = regions_of(rng, shape, restricted)
    values = values_of(rng, shape, "float64")
    part = regions.frames(start, stop)
    expected = regions.sum(values)[start:stop]
    assert part.sum(values[start:stop]).shape == expected.shape
    np.testing.assert_array_equal(part.sum(values[start:stop]), expected)


@FEW
@given(shapes, seeds)
def test_restrictions_add_up(shape, seed):
    """`where` twice is where both hold."""
    rng = np.random.default_rng(seed)
    regions, _ = regions_of(rng, shape, False)
    a, b = rng.random(shape) < 0.6, rng.random(shape) < 0.6
    values = values_of(rng, shape, "float32")
    np.testing.assert_array_equal(regions.where(a).where(b).sum(values), regions.where(a & b).sum(values))


@FEW
@given(shapes, seeds)
def test_changed_maps(shape, seed):
    """`change` reaches every map but the one that is everything, and every bin of labels."""
    rng = np.random.default_rng(seed)
    masks = {kind: mask_of(rng, shape, kind) for kind in KINDS}
    changed = Regions(masks).change(lambda weights: weights != 0)
    for name, mask in masks.items():
        found = changed.maps[name]
        assert found is None if mask is None else np.array_equal(found, np.asarray(mask) != 0)
    labels = rng.integers(-1, 2, shape)
    bins = Regions({"l": Labels(labels, ("a", "b"))}).change(complement)
    assert bins.names == ("l:a", "l:b")
    for label, name in enumerate(bins.names):
        np.testing.assert_array_equal(bins.maps[name], labels != label)


@MODEST
@given(shapes, st.sampled_from(["half", "weights"]), st.sampled_from(["half", "weights"]), seeds)
def test_set_algebra(shape, kind_a, kind_b, seed):
    """Pixel by pixel: 1 - a, a b and a + b - a b, which for booleans are not, and, or."""
    rng = np.random.default_rng(seed)
    a, b = mask_of(rng, shape, kind_a), mask_of(rng, shape, kind_b)
    assert a is not None
    assert b is not None
    for i in np.ndindex(*shape):
        x, y = float(a[i]), float(b[i])
        assert float(complement(a)[i]) == pytest.approx(1 - x)
        assert float(intersection(a, b)[i]) == pytest.approx(x * y)
        assert float(union(a, b)[i]) == pytest.approx(x + y - x * y)
    assert (union(a, b).dtype == bool) == (intersection(a, b).dtype == bool) == (kind_a == kind_b == "half")


@FEW
@given(shapes, st.sampled_from(["uint8", "int64", "bool", "float32", "uint16"]), st.sampled_from([1, 255]), seeds)
def test_masks_of_every_dtype(shape, dtype, top, seed):
    """0 and 1 or 0 and 255 of integers are booleans; one mask (H, W) holds for every frame."""
    rng = np.random.default_rng(seed)
    inside = rng.random(shape) < 0.5
    mask = inside if dtype == "bool" else inside.astype(dtype) * np.dtype(dtype).type(top)
    found = make_regions({"m": mask, "still": mask[0]}, shape)
    assert found.names == ("all", "m", "still")
    factor = top if dtype == "float32" else 1
    np.testing.assert_array_equal(found.weight(shape)[:, 1], inside.sum(axis=(1, 2)) * factor)
    np.testing.assert_array_equal(found.weight(shape)[:, 2], [inside[0].sum() * factor] * shape[0])


@pytest.mark.parametrize(
    "masks",
    [
        {"m": np.array([[[0, 2]]])},
        {"m": np.array([[[0, -1]]])},
        {"m": np.array([[[0, 1, 255]]])},
        {"m": np.array([[[0.0, np.nan]]])},
        {"m": np.array([[[0.0, -0.5]]])},
        {"m": np.ones((1, 1, 3), bool)},
        {"m": np.ones((2, 1, 2), bool)},
        {"all": np.ones((1, 1, 2), bool)},
    ],
)
def test_what_is_no_mask_is_refused(masks):
    """Other values, other sizes, weights that are NaN or negative, and the name of the whole frame."""
    with pytest.raises(InputError):
        make_regions(masks, (1, 1, 2))
