"""Baselines against their definitions pixel by pixel, against SciPy, and what must hold of any interpolation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.interpolate import RBFInterpolator, griddata
from twins import interpolate as twin
from twins.draw import FEW, MODEST, Array, laid_out, layouts, seeds

from karat.errors import InputError
from karat.kernels.interpolate import BASELINES, MOST, _distinct, kriging, multiquadric, thin_plate
from karat.kernels.variogram import LAGS, REACHES, Variogram, empirical, fitted

NAMES = ("nearest", "idw2", "idw3", "thin_plate", "multiquadric", "kriging")
EXACT = {"thin_plate": thin_plate, "multiquadric": multiquadric, "kriging": kriging}
methods = pytest.mark.parametrize("name", NAMES)
shapes = st.tuples(st.integers(2, 9), st.integers(2, 9))
counts = st.integers(2, 12)


def observed(rng: np.random.Generator, shape: tuple[int, int], count: int) -> tuple[Array, Array]:
    """Different pixels of a map, and values in dBm."""
    places = rng.permutation(shape[0] * shape[1])[:count]
    return np.stack(np.divmod(places, shape[1]), axis=1), rng.uniform(-186, -47, len(places))


def everywhere(shape: tuple[int, int]) -> Array:
    return np.argwhere(np.ones(shape, bool))


def on_a_line(points: Array) -> bool:
    return bool(np.linalg.matrix_rank(points - points[0]) < 2)


def test_what_there_is() -> None:
    assert tuple(BASELINES) == NAMES


@methods
@MODEST
@given(shapes, counts, seeds)
def test_observations_are_kept_whatever_their_order(name, shape, count, seed):
    """Every observed pixel has its value, and not a bit depends on the order of the observations."""
    rng = np.random.default_rng(seed)
    points, values = observed(rng, shape, count)
    field = BASELINES[name](points, values, shape)
    assert field.dtype == np.float64
    assert field.shape == shape
    assert np.isfinite(field).all()
    np.testing.assert_array_equal(field[tuple(points.T)], values)
    points, values = np.concatenate([points] * 4), rng.uniform(-186, -47, 4 * len(points))  # pixels given four times
    order = rng.permutation(len(points))
    field = BASELINES[name](points, values, shape)
    np.testing.assert_array_equal(BASELINES[name](points[order], values[order], shape), field)


@pytest.mark.parametrize("name", EXACT)
@MODEST
@given(shapes, counts, seeds)
def test_the_equations_themselves_pass_through_the_observations(name, shape, count, seed):
    rng = np.random.default_rng(seed)
    points, values = _distinct(*observed(rng, shape, count), shape)
    field = EXACT[name](points, values, shape)
    np.testing.assert_allclose(field[tuple(points.T)], values, rtol=1e-9)


@methods
@MODEST
@given(shapes, counts, seeds, st.floats(-500, 500), st.floats(0.01, 100))
def test_another_scale_of_the_values(name, shape, count, seed, shift, stretch):
    """What is interpolated from a v + b is a times what is interpolated from v, plus b."""
    points, values = observed(np.random.default_rng(seed), shape, count)
    field = BASELINES[name](points, values, shape)
    other = BASELINES[name](points, stretch * values + shift, shape)
    np.testing.assert_allclose(other, stretch * field + shift, rtol=1e-6, atol=1e-6 * stretch * 139)


@methods
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_values_of_any_size(name: str, size: float) -> None:
    """Their squares are no numbers any more, their map is."""
    points, values = observed(np.random.default_rng(0), (9, 9), 12)
    field = BASELINES[name](points, values, (9, 9))
    np.testing.assert_allclose(BASELINES[name](points, size * values, (9, 9)) / size, field, rtol=1e-8)


@methods
@FEW
@given(shapes, counts, seeds, st.floats(-1e6, 1e6))
def test_constant_fields_stay_constant(name, shape, count, seed, value):
    points, _ = observed(np.random.default_rng(seed), shape, count)
    for some in (points, points[:1]):
        field = BASELINES[name](some, np.full(len(some), value), shape)
        np.testing.assert_array_equal(field, np.full(shape, value))


@methods
@FEW
@given(shapes, counts, seeds)
def test_a_turned_or_moved_map(name, shape, count, seed):
    """Nothing but distances counts: the map of turned observations is turned; more map around does not change it."""
    points, values = observed(np.random.default_rng(seed), shape, count)
    field = BASELINES[name](points, values, shape)
    turned = BASELINES[name](points[:, ::-1], values, shape[::-1]).T
    larger = BASELINES[name](points + np.array([2, 3]), values, (shape[0] + 5, shape[1] + 4))[2:-3, 3:-1]
    if name == "nearest":  # ties may fall to the other side
        ambiguous = [len(twin.candidates(points, values, i, j)) > 1 for i, j in everywhere(shape)]
        keep = ~np.reshape(ambiguous, shape)
        field, turned, larger = field[keep], turned[keep], larger[keep]
    np.testing.assert_allclose(turned, field, rtol=1e-8)
    np.testing.assert_allclose(larger, field, rtol=1e-8)


@methods
@FEW
@given(shapes, counts, seeds)
def test_a_pixel_given_twice_has_the_mean_of_its_values(name, shape, count, seed):
    rng = np.random.default_rng(seed)
    points, values = observed(rng, shape, count)
    twice = rng.integers(0, len(points), 5)
    again, more = np.concatenate([points, points[twice]]), np.concatenate([values, rng.uniform(-186, -47, 5)])
    once, means = twin.merged(again.tolist(), more.tolist())
    found = BASELINES[name](again, more, shape)
    np.testing.assert_allclose(found, BASELINES[name](np.array(once), np.array(means), shape), rtol=1e-8)


@MODEST
@given(shapes, counts, seeds)
def test_nearest_is_one_of_the_nearest(shape, count, seed):
    points, values = observed(np.random.default_rng(seed), shape, count)
    field = BASELINES["nearest"](points, values, shape)
    for i, j in everywhere(shape):
        assert field[i, j] in twin.candidates(points.tolist(), values.tolist(), i, j)


@MODEST
@given(shapes, counts, seeds, st.sampled_from([2, 3]))
def test_inverse_distance_is_the_weighted_mean(shape, count, seed, power):
    points, values = observed(np.random.default_rng(seed), shape, count)
    field = BASELINES[f"idw{power}"](points, values, shape)
    expected = [
        twin.inverse_distance(points.tolist(), values.tolist(), i, j, power) for i, j in everywhere(shape).tolist()
    ]
    np.testing.assert_allclose(field.ravel(), expected, rtol=1e-12)
    assert values.min() - 1e-9 <= field.min()
    assert field.max() <= values.max() + 1e-9


@MODEST
@given(shapes, counts, seeds)
def test_splines_are_their_equations_solved(shape, count, seed):
    points, values = observed(np.random.default_rng(seed), shape, count)
    given_ = (points.tolist(), values.tolist(), shape)
    expected = twin.radial(*given_, twin.multiquadric, lambda *_: [1.0])
    np.testing.assert_allclose(BASELINES["multiquadric"](points, values, shape), expected, rtol=1e-8)
    assume(not on_a_line(points))
    expected = twin.radial(*given_, twin.thin_plate, lambda i, j: [1.0, float(i), float(j)])
    np.testing.assert_allclose(BASELINES["thin_plate"](points, values, shape), expected, rtol=1e-8)


@FEW
@given(shapes, counts, seeds)
def test_kriging_is_the_best_unbiased_mean_at_every_pixel(shape, count, seed):
    """By the variogram that was fitted, the primal equations give the map that the dual ones give."""
    points, values = observed(np.random.default_rng(seed), shape, count)
    model = fitted(*_distinct(points, values, shape))

    def gamma(h: float) -> float:
        return model.nugget + model.sill * (1 - np.exp(-h / model.reach)) if h else 0.0

    expected = twin.ordinary_kriging(points.tolist(), values.tolist(), shape, gamma)
    np.testing.assert_allclose(BASELINES["kriging"](points, values, shape), expected, rtol=1e-7)


@MODEST
@given(shapes, counts, seeds, st.sampled_from([0.0, 0.7]))
def test_the_empirical_variogram_is_that_of_all_pairs(shape, count, seed, alike):
    """Also where all that is close is alike."""
    rng = np.random.default_rng(seed)
    points, values = observed(rng, shape, count)
    values = np.where(rng.random(len(values)) < alike, -90.0, values)
    assume(np.ptp(values) > 0)
    expected = twin.empirical(points.tolist(), values.tolist(), LAGS)
    np.testing.assert_allclose(np.array(empirical(points, values)).T, expected, rtol=1e-12)


@FEW
@given(counts, seeds)
def test_no_variogram_fits_better(count, seed):
    """Of nuggets and sills that are not negative, and of the reaches that are tried."""
    rng = np.random.default_rng(seed)
    points, values = observed(rng, (9, 9), count)
    h, gamma, pairs = empirical(points, values)

    def error(model: Variogram) -> float:
        gap = model.nugget + model.sill * (1 - np.exp(-h / model.reach)) - gamma
        return float((pairs / h**2 * gap**2).sum())

    best = fitted(points, values)
    assert min(best.nugget, best.sill) >= 0
    tried = np.geomspace(1, 10 * h.max(), REACHES)
    assert np.isclose(tried, best.reach).any()
    total = float((pairs / h**2 * gamma**2).sum())
    for reach in rng.choice(tried, 20):
        for nugget, sill in rng.uniform(0, 2 * gamma.max(), (20, 2)):
            assert error(best) <= error(Variogram(nugget, sill, reach)) + 1e-9 * total
    for nugget, sill, reach in rng.uniform(0.9, 1.1, (20, 3)):
        near = Variogram(best.nugget * nugget, best.sill * sill, tried[np.abs(tried - best.reach * reach).argmin()])
        assert error(best) <= error(near) + 1e-9 * total


def test_of_variograms_that_fit_alike_the_longest() -> None:
    """Two classes of distance, 1 and 2 pixels, are met exactly by many reaches; ten times 2 pixels is the longest."""
    points = np.array([[0, 0], [0, 1], [0, 10], [0, 12]])
    model = fitted(points, np.array([0.0, 1.0, 5.0, 6.2]))
    assert model.reach == pytest.approx(20)
    zero, at_1, at_2 = model.covariance(np.array([0.0, 1, 2]))
    assert zero - at_1 == pytest.approx(1 / 2)
    assert zero - at_2 == pytest.approx(1.2**2 / 2)


def test_the_variogram_of_a_field_with_a_known_one() -> None:
    """A field of independent values has no reach; one of a given covariance comes back with about it."""
    rng = np.random.default_rng(0)
    points = everywhere((24, 24))
    apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    found = []
    for _ in range(8):
        values = np.linalg.cholesky(Variogram(1.0, 4.0, 3.0).covariance(apart)) @ rng.normal(size=len(points))
        found.append(fitted(points, values))
    assert 0.3 < np.median([model.nugget for model in found]) < 1.7
    assert 2.8 < np.median([model.sill for model in found]) < 5.2
    assert 2.0 < np.median([model.reach for model in found]) < 4.5
    alone = fitted(points, rng.normal(size=len(points)))
    h = np.array([1.0, 2.0, 8.0])
    assert (alone.covariance(h) < 0.5).all()
    assert alone.covariance(np.zeros(1))[0] == pytest.approx(1.0, abs=0.2)


@FEW
@given(st.integers(3, 60), seeds, layouts)
def test_as_scipy(count, seed, layout):
    """RBFInterpolator and griddata on maps of a real size, from arrays of any memory layout."""
    shape = (24, 40)
    points, values = observed(np.random.default_rng(seed), shape, count)
    assume(not on_a_line(points))
    every = everywhere(shape)
    laid = laid_out(points, layout), laid_out(values, layout)
    for name, kernel, epsilon in (("thin_plate", "thin_plate_spline", None), ("multiquadric", "multiquadric", 1.0)):
        expected = RBFInterpolator(points, values, kernel=kernel, epsilon=epsilon)(every).reshape(shape)
        np.testing.assert_allclose(BASELINES[name](*laid, shape), expected, rtol=1e-7, atol=1e-6)
    ambiguous = [len(twin.candidates(points.tolist(), values.tolist(), i, j)) > 1 for i, j in every.tolist()]
    expected, found = griddata(points, values, every, "nearest"), BASELINES["nearest"](*laid, shape).ravel()
    np.testing.assert_array_equal(found[np.invert(ambiguous)], expected[np.invert(ambiguous)])


@FEW
@given(st.integers(2, 9), seeds, st.sampled_from(["row", "column", "diagonal"]))
def test_thin_plates_through_observations_on_a_line(count, seed, line):
    """A walk down one street: the map is the same to both sides of it, and straight values make a straight map."""
    rng = np.random.default_rng(seed)
    along = np.sort(rng.permutation(11)[:count])
    points = np.stack({"row": (0 * along + 5, along), "column": (along, 0 * along + 5)}.get(line, (along, along)), 1)
    values = rng.uniform(-186, -47, count)
    field = BASELINES["thin_plate"](points, values, (11, 11))
    mirrored = {"row": field[::-1], "column": field[:, ::-1], "diagonal": field.T}[line]
    np.testing.assert_allclose(field, mirrored, rtol=1e-9, atol=1e-9)
    straight = BASELINES["thin_plate"](points, 3.0 * along - 90, (11, 11))
    i, j = np.indices((11, 11))
    expected = {"row": 3.0 * j, "column": 3.0 * i, "diagonal": 1.5 * (i + j)}[line] - 90
    np.testing.assert_allclose(straight, expected, rtol=1e-9)


def test_a_plane_is_a_thin_plate() -> None:
    rng = np.random.default_rng(0)
    points, _ = observed(rng, (20, 30), 25)
    i, j = np.indices((20, 30))
    plane = 0.5 * i - 2 * j - 80
    np.testing.assert_allclose(BASELINES["thin_plate"](points, plane[tuple(points.T)], (20, 30)), plane, rtol=1e-10)


@methods
def test_half_a_map_of_observations(name: str) -> None:
    """Neighbours all over, as smooth as they are, leave little to guess."""
    rng = np.random.default_rng(3)
    i, j = np.indices((40, 40))
    truth = -90 + 20 * np.sin(i / 9) * np.cos(j / 7)
    points = np.argwhere(rng.random(truth.shape) < 0.5)
    field = BASELINES[name](points, truth[tuple(points.T)], truth.shape)
    assert np.abs(field - truth).max() < {"nearest": 16, "idw2": 12, "idw3": 9}.get(name, 1.5)


@pytest.mark.parametrize(
    ("points", "values", "said"),
    [
        (np.zeros((0, 2), int), [], "Nothing is observed in this map"),
        ([[0, 4]], [1.0], "outside of the map of 3 x 4 pixels"),
        ([[-1, 0]], [1.0], "outside of the map"),
        ([[0.5, 1.0]], [1.0], "whole numbers"),
        ([[0, 1]], [1.0, 2.0], "a row and a column for each value"),
        ([[0, 1, 2]], [1.0], "a row and a column for each value"),
        ([[0, 1]], 1.0, "a row and a column for each value"),
        ([[0, 1]], [np.nan], "NaN or infinite"),
        ([[0, 1], [1, 1]], [1.0, np.inf], "NaN or infinite"),
    ],
)
@methods
def test_what_is_refused(name, points, values, said):
    with pytest.raises(InputError, match=said):
        BASELINES[name](np.array(points), values, (3, 4))


@methods
def test_a_system_of_too_many_equations_is_refused(name: str) -> None:
    shape = (MOST // 50 + 1, 50)
    points = everywhere(shape)
    values = np.arange(len(points), dtype=float)
    if name in EXACT:
        with pytest.raises(InputError, match=f"at most {MOST} equations"):
            BASELINES[name](points, values, shape)
    else:
        np.testing.assert_array_equal(BASELINES[name](points, values, shape).ravel(), values)
