"""Edge agreement against counting pixel by pixel."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import canny as twin
from twins.draw import FEW, MODEST, Array, key, laid_out, layouts, mask_of, named, region_kinds, seeds

from karat.errors import InputError
from karat.kernels.blur import Gray
from karat.kernels.edges import canny, widen
from karat.metrics.canny_f1 import CannyF1
from karat.region import Regions

SCORES = ("canny_f1_score", "canny_precision", "canny_recall")
shapes = st.tuples(st.integers(1, 2), st.integers(1, 9), st.sampled_from([1, 2, 4, 8, 9]))


def frames(rng: np.random.Generator, shape: tuple[int, ...], flat: bool = False) -> Array:
    """Blocks of strong contrast, so that there are edges; or none at all."""
    if flat:
        return np.full(shape, rng.integers(0, 256), np.uint8)
    coarse = rng.integers(0, 2, (shape[0], shape[1] // 2 + 1, shape[2] // 2 + 1, *shape[3:])) * 200
    blocks = coarse.repeat(2, axis=1).repeat(2, axis=2)[:, : shape[1], : shape[2]]
    return (blocks + rng.integers(0, 40, shape)).astype(np.uint8)


def edge_maps(metric: CannyF1, clip: Array) -> Array:
    """What the metric must take as edges, from a literal grey."""
    if metric.edges_of == "gray" and clip.ndim == 4:
        clip = np.stack([twin.gray(frame) for frame in clip])
    return np.stack([twin.edges(f, metric.low, metric.high, metric.aperture, metric.norm == "l2") for f in clip])


@MODEST
@given(st.integers(1, 40), st.integers(1, 40), seeds)
def test_grey_is_the_fixed_point_rule(height, width, seed):
    """OpenCV's grey of bytes is (9798 R + 19235 G + 3735 B + 2^14) >> 15, every bit of it."""
    frame = np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)
    np.testing.assert_array_equal(Gray().frame(frame), twin.gray(frame))


def test_grey_of_every_corner_colour():
    """Black, white and the primaries; frames of one channel stay as they are."""
    corners = np.array([[[r, g, b] for r in (0, 255) for g in (0, 255) for b in (0, 255)]], np.uint8)
    np.testing.assert_array_equal(Gray().frame(corners), twin.gray(corners))
    assert (Gray().frame(corners[..., :1]) == corners[..., 0]).all()
    assert Gray().frame(corners[..., 0]) is not None


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "bool", "uint16"])
def test_other_than_bytes_is_refused_in_words(dtype):
    """No raw OpenCV error reaches a user."""
    clip = np.zeros((1, 4, 5, 3), dtype)
    with pytest.raises(InputError):
        CannyF1()(clip, clip)
    with pytest.raises(InputError):
        CannyF1(edges_of="rgb")(clip, clip)


@MODEST
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5), st.floats(0, 0.4), seeds)
def test_widening_is_euclidean_distance(height, width, tolerance, density, seed):
    """A pixel is near when some edge lies within the tolerance, also across corners and at the border."""
    edges = np.random.default_rng(seed).random((height, width)) < density
    expected = [[twin.near(edges, i, j, tolerance) for j in range(width)] for i in range(height)]
    np.testing.assert_array_equal(widen(edges, tolerance), expected)


@MODEST
@given(
    shapes,
    st.booleans(),
    st.sampled_from([0, 0, 1, 2, 3]),
    region_kinds,
    st.sampled_from(["gray", "rgb"]),
    st.sampled_from(["both", "either"]),
    st.tuples(st.booleans(), st.booleans()),
    layouts,
    seeds,
)
def test_counts_and_scores_equal_the_literal_ones(
    shape, colour, tolerance, kind, edges_of, edgeless, flat, layout, seed
):
    """tp, fp, fn of every frame, and F1, precision and recall of the clip."""
    rng = np.random.default_rng(seed)
    full = (*shape, 3) if colour else shape
    pred, truth = (laid_out(frames(rng, full, one and seed % 2 == 0), layout) for one in flat)
    mask = mask_of(rng, shape, kind)
    metric = CannyF1(tolerance=tolerance, edges_of=edges_of, edgeless=edgeless)
    p, t = edge_maps(metric, pred), edge_maps(metric, truth)

    given_ = [np.stack([Gray().frame(f) for f in clip]) if edges_of == "gray" else clip for clip in (pred, truth)]
    columns = metric.measure(*given_, Regions({"m": mask}))
    for b in range(shape[0]):
        part = None if mask is None else mask[b : b + 1]
        expected = twin.counts(p[b : b + 1], t[b : b + 1], part, tolerance)
        for name, value in expected.items():
            assert columns[name][b, 0] == pytest.approx(value, rel=1e-12, abs=1e-12)

    found = metric(pred, truth, regions=named(mask))
    expected_scores = twin.scores(twin.counts(p, t, mask, tolerance), edgeless)
    for name, value in zip(SCORES, expected_scores, strict=True):
        assert found[key(name, mask)] == pytest.approx(value, rel=1e-12, nan_ok=True)


@FEW
@given(
    st.sampled_from([(20.0, 50.0), (100.0, 200.0), (0.0, 0.0), (300.0, 400.0)]),
    st.sampled_from([3, 5, 7]),
    st.sampled_from(["l1", "l2"]),
    seeds,
)
def test_thresholds_aperture_and_norm_are_opencvs(thresholds, aperture, norm, seed):
    """The settings reach OpenCV as they are."""
    frame = frames(np.random.default_rng(seed), (1, 16, 17))[0]
    found = canny(frame, *thresholds, aperture, norm == "l2")
    expected = cv2.Canny(frame, *thresholds, apertureSize=aperture, L2gradient=norm == "l2") > 0
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("tolerance", [0, 2])
def test_edgeless_sides(tolerance):
    """Neither side has an edge: undefined. One side has none: 0, or undefined when asked for."""
    flat, rich = np.zeros((1, 12, 12), np.uint8), frames(np.random.default_rng(0), (1, 12, 12))
    assert all(np.isnan(value) for value in CannyF1(tolerance=tolerance)(flat, flat).values())
    for pair in ((flat, rich), (rich, flat)):
        assert set(CannyF1(tolerance=tolerance)(*pair).values()) == {0.0}
        assert all(np.isnan(v) for v in CannyF1(tolerance=tolerance, edgeless="either")(*pair).values())
    assert set(CannyF1(tolerance=tolerance)(rich, rich).values()) == {1.0}
