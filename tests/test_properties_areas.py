"""Regions made of fields against their definitions, SciPy, and NumPy on the pixels that the whole program scores."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import distance_transform_edt, gaussian_filter
from twins import areas as twin
from twins.draw import FEW, MODEST, Array, seeds
from twins.ssim import ssim_map

from karat import evaluate
from karat.areas import Both, Far, Uncovered, Where, recorded, restored
from karat.errors import InputError, UsageError
from karat.kernels.distance import FLOAT32_REACH, FLOAT32_SIDE, blurred, to_nearest
from karat.region import Labels

SEEN = Where("observed", "observed", "unobserved")
FREE = Where("building", "free", "building", rule="value>0")
SHARE = st.sampled_from([0.03, 0.2, 0.6])
shapes = st.tuples(st.integers(1, 3), st.integers(1, 8), st.integers(1, 9))
sides = st.sampled_from([1, 2, 3, 5, 9, 16, 23])
edges = st.lists(
    st.sampled_from([0.5, 1, math.sqrt(2), 1.5, 2, math.sqrt(5), 3, 4.25, 5]), min_size=1, unique=True
).map(lambda values: tuple(sorted(float(value) for value in values)))


def mask_of(seed: int, shape: tuple[int, ...], share: float) -> Array:
    return np.random.default_rng(seed).random(shape) < share


def labels(area: Far, observed: Array) -> Array:
    found = area.maps({"observed": observed})["distance"]
    assert isinstance(found, Labels)
    assert found.names == tuple(name.removeprefix("distance:") for name in area.names)
    assert len(found.names) == len(area.edges) + 1
    assert found.map.shape == observed.shape
    return found.map


# --- distances


@MODEST
@given(shapes, SHARE, edges, st.sampled_from(["in", "out"]), seeds)
def test_bins_of_distance(shape, share, edges, zero, seed):
    """Each map by itself, an edge in the bin below it; nowhere is no distance."""
    observed = mask_of(seed, shape, share)
    found = labels(Far(SEEN, edges=edges, zero=zero), observed)
    for frame, own in zip(observed, found, strict=True):
        np.testing.assert_array_equal(own, twin.bins(frame, edges, zero))


def test_the_usual_bins():
    """At 0, 5, just beyond 5, ... 50 and beyond."""
    observed = np.zeros((1, 6, 60), bool)
    observed[0, 0, 0] = True
    found = labels(Far(SEEN), observed)[0]
    assert [found[i, j] for i, j in ((0, 0), (3, 4), (1, 5), (0, 10), (1, 10), (0, 20), (1, 20), (0, 50), (1, 50))] == [
        *(0, 0, 1, 1, 2, 2, 3, 3, 4)
    ]
    assert Far(SEEN).names == tuple(f"distance:{name}" for name in ("0-5", "5-10", "10-20", "20-50", "50+"))
    assert labels(Far(SEEN, zero="out"), observed)[0, 0, 0] == -1


@MODEST
@given(shapes, SHARE, edges, seeds)
def test_maps_as_a_volume(shape, share, edges, seed):
    """Given together they are slices, of which one alone is a picture; SciPy and the definition agree."""
    observed = mask_of(seed, shape, share)
    found = labels(Far(SEEN, edges=edges, frames="volume"), observed)
    np.testing.assert_array_equal(found, twin.bins(observed, edges, "in"))
    if observed.any():
        far = distance_transform_edt(~observed)
        np.testing.assert_array_equal(found, np.digitize(far, edges, right=True))


@FEW
@given(shapes, edges)
def test_nothing_observed_as_published(shape, edges):
    """Where there is no zero SciPy's transform measures to a point above the first pixel."""
    nothing = np.zeros(shape, bool)
    for frames in ("single", "volume"):
        found = labels(Far(SEEN, edges=edges, nowhere="corner", frames=frames), nothing)
        far = distance_transform_edt(~nothing if frames == "volume" and len(nothing) > 1 else ~nothing[0])
        np.testing.assert_array_equal(found, np.broadcast_to(np.digitize(far, edges, right=True), shape))


@pytest.mark.parametrize(
    "shape",
    [(1, FLOAT32_REACH - 1), (1, 1200), (1100, 2), (598, 40), (420, 421), (7, FLOAT32_SIDE), (3000, 2)],
)
def test_distances_are_exact_on_large_maps(shape):
    """To the last bit of the root of an integer, whatever carries it out."""
    rng = np.random.default_rng(1)
    places = np.stack([rng.integers(0, side, 3) // 9 for side in shape], 1)
    here = np.zeros(shape, bool)
    here[tuple(places.T)] = True
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    squares = np.min([(rows - i) ** 2 + (columns - j) ** 2 for i, j in places], axis=0)
    np.testing.assert_array_equal(to_nearest(here), np.sqrt(squares))
    for top in (60, 500, 1000, math.inf):
        edges = np.unique(
            np.sqrt(np.quantile(squares[(squares > 0) & (squares < top**2)], (0.2, 0.9), method="nearest"))
        )
        found = labels(Far(SEEN, edges=tuple(edges)), here[None])[0]
        np.testing.assert_array_equal(found, np.digitize(np.sqrt(squares), edges, right=True))


# --- coverage


@MODEST
@given(sides, sides, st.sampled_from([0.05, 0.13, 0.5, 1.0, 2.3, 5.0, 7.0]), seeds)
def test_coverage_is_scipys(height, width, sigma, seed):
    """Also of maps that are smaller than the Gaussian, which are reflected more than once."""
    values = np.random.default_rng(seed).random((height, width))
    np.testing.assert_allclose(blurred(values, sigma), gaussian_filter(values, sigma, mode="reflect"), rtol=1e-12)


@FEW
@given(st.integers(1, 4), st.integers(1, 6), SHARE, st.sampled_from([0.1, 0.5, 1.2]), seeds)
def test_weights(height, width, share, sigma, seed):
    """Each map by itself, from the definition of the Gaussian on."""
    observed = mask_of(seed, (2, height, width), share)
    for weighting in ("inverse", "smooth", "coverage"):
        found = Uncovered(SEEN, sigma=sigma, weighting=weighting).maps({"observed": observed})["uncovered"]
        for frame, own in zip(observed, np.asarray(found), strict=True):
            covered = twin.coverage(frame, sigma)
            wanted = [twin.weight(one, covered.max(), weighting) for one in covered.ravel()]
            np.testing.assert_allclose(own.ravel(), wanted, rtol=1e-10, atol=1e-10)


@FEW
@given(shapes, SHARE, seeds)
def test_weights_of_a_volume(shape, share, seed):
    observed = mask_of(seed, shape, share)
    found = Uncovered(SEEN, sigma=1.5, frames="volume").maps({"observed": observed})["uncovered"]
    smooth = gaussian_filter((observed if len(observed) > 1 else observed[0]).astype(float), 1.5, mode="reflect")
    np.testing.assert_allclose(found, (1 / (smooth + 1e-6)).reshape(shape), rtol=1e-6)


def test_no_maps():
    """Nothing in, nothing out."""
    nothing = {"observed": np.zeros((0, 4, 5), bool), "building": np.zeros((0, 4, 5), np.uint8)}
    for area in (SEEN, FREE, Both(FREE, SEEN), Far(SEEN), Uncovered(SEEN)):
        for found in area.maps(nothing).values():
            assert (found.map if isinstance(found, Labels) else np.asarray(found)).shape == (0, 4, 5)


# --- masks and rules


@MODEST
@given(shapes, SHARE, st.sampled_from(["bool", "uint8", "int16", "uint16", "float32", "float64"]), seeds)
def test_masks_of_one_value(shape, share, dtype, seed):
    """Whatever the one value is, and whatever holds it; observed and unobserved leave nothing out and share nothing."""
    rng = np.random.default_rng(seed)
    inside = mask_of(seed, shape, share)
    one = True if dtype == "bool" else rng.choice([1, 255, 7] if dtype != "float64" else [1, 0.25])
    maps = SEEN.maps({"observed": np.where(inside, one, 0).astype(dtype)})
    np.testing.assert_array_equal(maps["observed"], inside)
    np.testing.assert_array_equal(maps["unobserved"], ~inside)


@MODEST
@given(
    st.sampled_from([">", ">=", "<", "<=", "==", "!="]),
    st.sampled_from(
        [("0", 0), ("-3", -3), ("2.5", 2.5), ("-0.25", -0.25), ("1e2", 100), ("-5E-1", -0.5), ("25e-2", 0.25)]
    ),
    st.sampled_from(["", " ", "  "]),
    st.sampled_from(["int16", "float32", "float64", "uint8", "bool"]),
    seeds,
)
def test_rules(sign, number, space, dtype, seed):
    """Every sign, negative numbers, exponents, spaces."""
    spelled, meant = number
    drawn = np.random.default_rng(seed).choice([-3, -0.5, -0.25, 0, 0.25, 1, 2.5, 99, 100, 101], (1, 4, 5))
    values = (np.abs(drawn) if dtype in ("uint8", "bool") else drawn).astype(dtype)
    area = Where("building", "free", "building", rule=f"{space}value{space}{sign}{space}{spelled}{space}")
    maps = area.maps({"building": values})
    for place in np.ndindex(*values.shape):
        assert maps["free"][place] == twin.holds(float(values[place]), sign, meant)
        assert maps["building"][place] != maps["free"][place]


@MODEST
@given(shapes, SHARE, SHARE, seeds)
def test_free_space_by_what_was_observed(shape, seen, free, seed):
    """Intersections, that part free space."""
    observed, building = mask_of(seed, shape, seen), mask_of(seed + 1, shape, free).astype(np.uint8) * 255
    maps = Both(FREE, SEEN).maps({"observed": observed, "building": building})
    assert list(maps) == ["free_observed", "free_unobserved"]
    for place in np.ndindex(*shape):
        assert maps["free_observed"][place] == (observed[place] and building[place] > 0)
        assert maps["free_unobserved"][place] == (not observed[place] and building[place] > 0)


@MODEST
@given(shapes, st.sampled_from([("bool", (0, 1)), ("uint8", (0, 1, 255, 128)), ("float64", (0, 1, 0.5))]), seeds)
def test_the_complement_as_published(shape, how, seed):
    """Soft masks are on both sides, masks of 0 and 255 unobserved everywhere; covered is the mask itself."""
    dtype, choices = how
    values = np.random.default_rng(seed).choice(choices, shape).astype(dtype)
    area = Where("observed", "observed", "unobserved", complement="published")
    maps = area.maps({"observed": values})
    for place in np.ndindex(*shape):
        assert maps["observed"][place] == (values[place] != 0)
        assert maps["unobserved"][place] == twin.lacks_as_published(float(values[place]), dtype)
    np.testing.assert_array_equal(area.amount({"observed": values}), values.astype(float))
    np.testing.assert_array_equal(
        labels(Far(area, edges=(1.0,)), values), labels(Far(SEEN, edges=(1.0,)), ~maps["unobserved"])
    )


@pytest.mark.parametrize(
    "values, said",
    [
        ([0, 1, 2], "1, 2 besides 0"),
        ([0, 0.5, 1], "0.5, 1 besides 0"),
        ([0, 128, 255], "128, 255"),
        ([0, -1, -1], "-1 besides 0"),
        ([0, 1, np.nan], "NaN somewhere, neither observed nor unobserved"),
        ([np.nan, np.nan, np.nan], "NaN"),
    ],
)
def test_what_is_no_mask_is_refused(values, said):
    observed = {"observed": np.array([[values]])}
    for area in (SEEN, Far(SEEN), Uncovered(SEEN), Both(SEEN, SEEN)):
        with pytest.raises(InputError, match=said):
            area.maps(observed)


def test_a_rule_leaves_nan_on_neither_side():
    with pytest.raises(InputError, match="building is NaN somewhere, neither free nor building"):
        FREE.maps({"building": np.array([[[1.0, np.nan]]])})


@pytest.mark.parametrize(
    "make, said",
    [
        *((lambda rule=rule: Where("b", "free", "building", rule=rule), "no rule") for rule in (
            *("0", "value", "value>", ">0", "value>x", "value>0 and value<9", "VALUE>0", "value=>0", "value>nan"),
            *("value>--1", "value>0;value", "__import__('os')", "value>\u0665"),
        )),
        (lambda: Where("b", "free", "building", rule=3), "free.rule is str | None, not 3"),
        (lambda: Where("b", "free", "building", complement="soft"), "free.complement is 'exact' | 'published'"),
        *((lambda edges=edges: Far(SEEN, edges=edges), "rising edges above 0") for edges in (
            *((), (5.0, 5.0), (10.0, 5.0), (0.0,), (-1.0, 5.0)),
        )),
        (lambda: Far(SEEN, edges=5), "distance.edges is tuple of float, not 5.0"),
        (lambda: Far(SEEN, edges=(5.0, math.inf)), "distance.edges"),
        (lambda: Far(SEEN, edges=("5",)), "distance.edges"),
        (lambda: Far(SEEN, zero="both"), "distance.zero is 'in' | 'out', not 'both'"),
        (lambda: Uncovered(SEEN, sigma=0), "sigma above 0"),
        (lambda: Uncovered(SEEN, sigma=-5.0), "sigma above 0"),
        (lambda: Uncovered(SEEN, sigma=math.nan), "uncovered.sigma is float"),
        (lambda: Uncovered(SEEN, weighting="linear"), "uncovered.weighting"),
    ],
)  # fmt: skip
def test_parameters_that_are_refused(make, said):
    with pytest.raises(UsageError, match=said.replace("|", r"\|")):
        make()


def test_parameters_reach_the_areas_inside_and_come_back_from_json():
    """One spelling: 5 and 5.0 are the same edge."""
    settings = {"observed": {"rule": "value>0.5"}, "distance": {"edges": (5, 9)}, "free": {"rule": "value<1"}}
    given = (SEEN, Where("building", "free", "building", rule=""), Both(FREE, SEEN), Far(SEEN), Uncovered(SEEN))
    assert [area.ready for area in given] == [True, False, True, True, True]
    seen, free, both, far, weights = (area.changed(settings) for area in given)
    assert seen.rule == far.of.rule == both.second.rule == weights.of.rule == "value>0.5"
    assert free.rule == both.first.rule == "value<1"
    assert free.ready
    assert far.edges == (5.0, 9.0)
    assert far == Far(seen, edges=(5.0, 9.0))
    for area in (seen, free, both, far, weights):
        assert restored(json.loads(json.dumps(recorded(area)))) == area
    with pytest.raises(UsageError, match="The region distance has no parameter 'bins'; it has of, edges, zero"):
        Far(SEEN).changed({"distance": {"bins": 3}})


# --- the whole program


def scored(pred: Array, truth: Array, weights: Array) -> dict[str, float]:
    """What a map scores in a region, from the pixels that both sides know."""
    lost = np.isnan(pred) | np.isnan(truth)
    inside = (weights > 0) & ~lost
    found = {"n_pixels": inside.sum(), "n_nan_pixels": ((weights > 0) & lost).sum()}
    if not inside.any():
        return found | dict.fromkeys(("rmse", "mae", "mse", "nmse", "psnr", "mae@normalized"), math.nan)
    gap, true, share = pred[inside] - truth[inside], truth[inside], weights[inside] / weights[inside].sum()
    mse, mae = (share * gap**2).sum(), (share * np.abs(gap)).sum()
    variance = (share * (true - (share * true).sum()) ** 2).sum()
    with np.errstate(divide="ignore"):
        psnr = 10 * np.log10(139**2 / mse)
    nmse = mse / variance if inside.sum() > 1 else math.nan
    errors = {"rmse": np.sqrt(mse), "mae": mae, "mse": mse, "mae@normalized": mae / 69.5}
    return found | errors | {"nmse": nmse, "psnr": psnr}


def regions_of(observed: Array, building: Array) -> dict[str, Array]:
    """The weights of every region of one map."""
    free = building > 100
    regions = {"all": np.ones(observed.shape), "observed": observed, "unobserved": ~observed}
    regions |= {"free": free, "building": ~free, "free_observed": free & observed, "free_unobserved": free & ~observed}
    far = twin.distances(observed) if observed.any() else np.full(observed.shape, np.nan)
    for low, high in pairwise((0, 2, 4, math.inf)):
        name = f"distance:{low}-{high}" if high < math.inf else f"distance:{low}+"
        regions[name] = (far <= high) & ((far > low) | (low == 0))
    regions["uncovered"] = 1 / (gaussian_filter(observed.astype(float), 5, mode="reflect") + 1e-6)
    return {name: weights.astype(float) for name, weights in regions.items()}


@FEW
@given(st.integers(7, 12), st.integers(8, 13), SHARE, st.sampled_from([0.0, 0.1]), seeds)
def test_every_region_of_every_map(height, width, share, holes, seed):
    """karat.evaluate says of each region what NumPy says of its pixels, NaN left out and counted."""
    rng = np.random.default_rng(seed)
    shape = (2, height, width)
    truth = np.round(rng.uniform(-150, -50, shape), 1)
    pred = truth + rng.normal(0, 4, shape)
    for side in (pred, truth):
        side[rng.random(shape) < holes] = np.nan
    observed, building = rng.random(shape) < share, rng.integers(0, 256, shape, np.uint8)
    observed[1] &= rng.random() < 0.7
    settings = {"distance.edges": (2, 4)}
    given = {"pred": pred, "truth": truth, "observed": observed, "building": building}
    run = evaluate("radiomap", **given, free="value>100", settings=settings, workers=1, cache=False)
    assert not run.failures
    means: dict[str, list[float]] = {}
    for index, sample in enumerate(run.samples):
        for region, weights in regions_of(observed[index], building[index]).items():
            for score, wanted in scored(pred[index], truth[index], weights).items():
                key = score if region == "all" else f"{score}@{region}"
                found = run.sample_scores[sample][key]
                assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True), key
                means.setdefault(key, []).append(wanted)
    for key, values in means.items():
        value, known = run.scores[key], [one for one in values if not math.isnan(one)]
        whole = sum if key.startswith("n_") else np.mean
        assert value.value == pytest.approx(whole(known) if known else math.nan, rel=1e-9, nan_ok=True), key
        assert (value.n, value.undefined, value.failed) == (len(known), len(values) - len(known), 0)


def test_structure_by_region():
    """SSIM is the mean over the region of the whole map's SSIM, where a window fits into the map."""
    rng = np.random.default_rng(3)
    truth = rng.uniform(-150, -50, (1, 14, 17))
    pred = truth + rng.normal(0, 9, truth.shape)
    observed = np.zeros(truth.shape, bool)
    observed[:, 2:12, 3:9] = True
    run = evaluate("radiomap", pred=pred, truth=truth, observed=observed, settings={"ssim.least": 1}, cache=False)
    values = ssim_map(pred[0], truth[0], window="uniform", size=7, data_range=139.0)
    inside = np.zeros(values.shape, bool)
    inside[3:-3, 3:-3] = True
    for region, mask in {"": True, "@observed": observed[0], "@unobserved": ~observed[0]}.items():
        assert run.scores[f"ssim{region}"].value == pytest.approx(values[inside & mask].mean(), rel=1e-10)


def test_sizes_that_differ_are_refused():
    """Of every field; or, when asked for, brought to the truth's."""
    truth = np.random.default_rng(0).uniform(-150, -50, (2, 12, 16))
    for name in ("pred", "observed", "building"):
        fields = {"pred": truth, "observed": truth > -60, "building": truth > -120}
        fields[name] = fields[name][:, ::2, ::2]
        run = evaluate("radiomap", truth=truth, free="value>0", cache=False, **fields)
        assert {failure.field for failure in run.failures} == {name}
        assert f"{name} is 8x6 and truth 16x12: pass --on-size resize" in run.failures[0].reason
        assert run.scores["rmse"].failed == 2
        resized = evaluate("radiomap", truth=truth, free="value>0", on_size="resize", cache=False, **fields)
        assert not resized.failures
        assert resized.scores["n_pixels"].value == truth.size


def test_a_mask_that_is_none_fails_its_map_alone():
    """With its reason, in every region."""
    truth = np.random.default_rng(0).uniform(-150, -50, (3, 12, 16))
    observed = (truth > -70).astype(np.uint8)
    observed[1, 3, 3] = 7
    run = evaluate("radiomap", pred=truth + 1, truth=truth, observed=observed, cache=False)
    (failure,) = run.failures
    assert (failure.sample, failure.field) == ("0001", "observed")
    assert "observed has the values 1, 7 besides 0" in failure.reason
    assert all((value.n + value.undefined, value.failed) == (2, 1) for value in run.scores.values())


def test_nothing_observed_in_one_map():
    """Distances are undefined there, and there alone; whatever was not observed is everything."""
    truth = np.random.default_rng(0).uniform(-150, -50, (2, 12, 16))
    observed = truth > -70
    observed[1] = False
    run = evaluate("radiomap", pred=truth + np.array([1.0, 3.0])[:, None, None], truth=truth, observed=observed)
    assert [run.scores[f"rmse@{name}"].undefined for name in ("observed", "unobserved", "distance:0-5")] == [1, 0, 1]
    assert run.scores["rmse@distance:0-5"].value == pytest.approx(1)
    assert run.sample_scores["0001"]["rmse@unobserved"] == pytest.approx(3)
    assert run.sample_scores["0001"]["rmse@uncovered"] == pytest.approx(3)
