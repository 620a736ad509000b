"""The demo's radio maps are what their floors make of them, and each pretend model fails in its own way."""

import subprocess
import sys
from math import erf, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from karat.demo.floors import FLOORS, SIZE, floor
from karat.demo.radio import RANGE, TRANSMITTERS, RadioMap, crossed, grain, radio_maps
from karat.demo.radiomap import GIVEN, MODELS, SAMPLES, Forecast, predict, run
from karat.demo.walks import Ways, anywhere, away, connected
from karat.run import Run
from karat.sources.pairing import collect

SEEDS = range(4)
Doubles = NDArray[np.float64]


@pytest.fixture(scope="module")
def maps() -> list[RadioMap]:
    return [one for seed in range(2) for name in FLOORS for one in radio_maps(floor(name, seed), seed)]


@pytest.fixture(scope="module")
def guesses(maps: list[RadioMap]) -> dict[str, list[Forecast]]:
    return {model: [predict(model, one, 0) for one in maps] for model in MODELS}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return run(tmp_path_factory.mktemp("demo"), workers=2)


# Floors


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FLOORS)
def test_floors_can_be_walked(name: str, seed: int) -> None:
    one = floor(name, seed)
    low, high = {"office": (0.08, 0.16), "town": (0.5, 0.7), "campus": (0.12, 0.3)}[name]
    assert low < one.building.mean() < high
    np.testing.assert_array_equal(one.loss > 0, one.building)
    np.testing.assert_array_equal(one.depth > 0, one.building)
    open_ground = ~one.building
    reached = connected(open_ground).sum() / open_ground.sum()
    assert reached > (0.6 if name == "town" else 0.99)  # courtyards are closed, rooms have doors
    assert name != "town" or reached < 0.99
    assert (floor(name, seed + 1).building != one.building).any()


def test_ways_stay_in_the_open_and_keep_away_from_walls() -> None:
    one = floor("office", 0)
    ground, rng = connected(~one.building), np.random.default_rng(0)
    ways = Ways(ground)
    for _ in range(5):
        start, goal = anywhere(ground, rng), anywhere(ground, rng)
        path = ways.between(start, goal)
        assert (tuple(path[0]), tuple(path[-1])) == (start, goal)
        assert ground[tuple(path.T)].all()
        assert (np.abs(np.diff(path, axis=0)).max(1) == 1).all()
        assert len(path) >= np.abs(np.subtract(start, goal)).max() + 1
    wide = np.zeros((SIZE, SIZE), bool)
    wide[10:31, 10:150] = True
    assert Ways(wide).between((12, 12), (12, 140))[:, 0].max() == 20  # by the middle, not along the wall


# What is received


def test_walls_take_what_they_are_thick() -> None:
    loss = np.zeros((SIZE, SIZE))
    loss[:, 60:65] = 2.0
    taken = crossed(loss, (80, 40))
    assert (taken[:, :59] == 0).all()
    assert taken[80, 100] == pytest.approx(10, abs=0.5)
    diagonal = taken[20, 100]
    assert diagonal == pytest.approx(10 * sqrt(2), abs=0.8)
    assert taken[80, 62] == pytest.approx(5, abs=1.5)


def test_grain_is_normal_everywhere_and_smooth() -> None:
    rng = np.random.default_rng(0)
    draws = np.stack([grain(rng, 2.0) for _ in range(400)])
    assert draws.shape == (400, SIZE, SIZE)
    variance = (draws**2).mean(0)
    assert variance.mean() == pytest.approx(1, abs=0.01)
    for border in (variance[:3], variance[-3:], variance[:, :3], variance[:, -3:]):
        assert border.mean() == pytest.approx(1, abs=0.05)
    assert variance.min() > 0.65
    assert variance.max() < 1.4
    beside = (draws[:, :, 1:] * draws[:, :, :-1]).mean()
    assert beside == pytest.approx(np.exp(-1 / (4 * 2.0**2)), abs=0.01)
    assert (np.abs(draws) <= 1).mean() == pytest.approx(erf(1 / sqrt(2)), abs=0.003)


def test_maps_are_strongest_at_their_transmitter_and_weak_behind_walls(maps: list[RadioMap]) -> None:
    assert len({one.name for one in maps}) == TRANSMITTERS * len(FLOORS)
    for one in maps:
        assert one.received.min() >= RANGE[0]
        assert one.received.max() <= RANGE[1]
        np.testing.assert_array_equal(64 * one.received, np.rint(64 * one.received))
        far, in_open = away(one.transmitter), ~one.floor.building
        assert in_open[one.transmitter]
        assert away(np.unravel_index(one.received.argmax(), far.shape)).item(one.transmitter) < 12
        rings = [one.received[(far >= a) & (far < b) & in_open].mean() for a, b in ((0, 8), (8, 30), (30, 80))]
        assert rings[0] > rings[1] + 8 > rings[2] + 8
        behind = crossed(one.floor.loss, one.transmitter) > 10
        ring = in_open & (far > 30) & (far < 70)
        assert one.received[ring & ~behind].mean() > one.received[ring & behind].mean() + 5
        assert one.received[~in_open].mean() < one.received[in_open].mean() - 5


def test_transmitters_share_a_floor(maps: list[RadioMap]) -> None:
    for i, name in enumerate(FLOORS):
        own = maps[i * TRANSMITTERS : (i + 1) * TRANSMITTERS]
        assert [one.name for one in own] == [f"{name}_{number}" for number in range(TRANSMITTERS)]
        for one in own:
            assert one.floor is own[0].floor
            assert sorted(away(one.transmitter)[other.transmitter] > 40 for other in own) == [False, True, True]


def test_somebody_walked_in_one_part_of_the_floor(maps: list[RadioMap]) -> None:
    for one in maps:
        assert not (one.observed & one.floor.building).any()
        assert 0.001 < one.observed.mean() < 0.02
        bins = np.histogram(one.distance, [0, 5, 10, 20, 50, np.inf])[0]
        assert (bins > 0).all(), one.name


# What the models make of it


def test_same_seed_same_bits_other_seed_other_maps(maps: list[RadioMap]) -> None:
    half = len(maps) // 2
    again = [one for name in FLOORS for one in radio_maps(floor(name, 0), 0)]
    for one, other, changed in zip(maps[:half], again, maps[half:], strict=True):
        for field in ("received", "observed"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
        assert one.name == changed.name
        assert (one.received != changed.received).any()
    first, second, third = (predict("smooth", maps[0], seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.samples, second.samples)
    assert (first.mean != third.mean).any()


def pooled(maps: list[RadioMap], guesses: list[Forecast]) -> Doubles:
    """All errors in the standard deviations that were named."""
    z = [(guess.mean - one.received) / guess.std for one, guess in zip(maps, guesses, strict=True)]
    return np.abs(np.stack(z))


def test_calibrated_errors_are_those_of_its_normal_distribution(maps, guesses) -> None:
    z = pooled(maps, guesses["calibrated"])  # about 18 000 errors that are independent of each other
    for limit in (0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0):
        assert (z <= limit).mean() == pytest.approx(erf(limit / sqrt(2)), abs=0.01), limit
    assert (z**2).mean() == pytest.approx(1, abs=0.04)
    for one, guess in zip(maps, guesses["calibrated"], strict=True):
        order = np.argsort(one.distance, axis=None)
        assert (np.diff(guess.std.ravel()[order]) >= 0).all()
        assert guess.std.max() > 4 * guess.std.min() > 0


def test_overconfident_makes_the_same_errors(guesses) -> None:
    for mine, other in zip(guesses["overconfident"], guesses["calibrated"], strict=True):
        np.testing.assert_array_equal(mine.mean, other.mean)
        np.testing.assert_allclose(mine.std, other.std / 2, atol=1 / 64)


@pytest.mark.parametrize("model", MODELS)
def test_samples_are_drawn_from_what_is_named(model: str, guesses) -> None:
    z = np.stack([(guess.samples - guess.mean) / guess.std for guess in guesses[model]])
    assert z.shape[1:] == (SAMPLES, SIZE, SIZE)
    assert z.mean() == pytest.approx(0, abs=0.02)
    assert z.var() == pytest.approx(1, abs=0.02)
    assert (np.abs(z) <= 1).mean() == pytest.approx(erf(1 / sqrt(2)), abs=0.005)


def test_smooth_is_wrong_at_walls(maps, guesses) -> None:
    building = np.stack([one.floor.building for one in maps])
    error = np.stack([np.abs(guess.mean - one.received) for one, guess in zip(maps, guesses["smooth"], strict=True)])
    assert error[building].mean() > 1.3 * error[~building].mean()
    for one, guess in zip(maps, guesses["smooth"], strict=True):
        assert (guess.std == guess.std[0, 0]).all()
        steps = [np.abs(np.diff(field)).max() for field in (guess.mean, one.received)]
        assert steps[0] < steps[1] / 3


def test_hopeful_promises_more_the_farther_away(maps, guesses) -> None:
    for one, guess in zip(maps, guesses["hopeful"], strict=True):
        error, bins = guess.mean - one.received, np.digitize(one.distance, [5, 10, 20, 50])
        grown = [error[bins == i].mean() for i in range(5)]
        assert grown == sorted(grown)
        assert grown[0] < 3
        assert grown[-1] > 11


def test_copycat_knows_buildings_and_nothing_else(maps, guesses) -> None:
    for one, guess in zip(maps, guesses["copycat"], strict=True):
        building = one.floor.building
        error = np.abs(guess.mean - one.received)
        assert error[building].mean() < 1
        assert guess.mean[~building].std() < 1.3
        assert error[~building].mean() > 5


# Files and scores


@pytest.fixture(scope="module")
def places(runs: dict[str, Run]) -> dict[str, Path]:
    """The folders of what was evaluated."""
    assert runs["smooth"].folder is not None
    folder = runs["smooth"].folder.parents[1]
    return {name: folder / name for name in ("truth", "observed", "building")} | {
        model: folder / "models" / model for model in MODELS
    }


def test_files_hold_the_maps(places: dict[str, Path]) -> None:
    names = {f"{name}_{i}" for name in FLOORS for i in range(TRANSMITTERS)}
    kinds = {"truth": "field", "observed": "plain", "building": "plain"}
    for name, kind in kinds.items():
        assert set(collect(places[name], kind)) == names
    one = radio_maps(floor("town", 0), 0)[1]
    np.testing.assert_array_equal(np.load(places["truth"] / "town_1.npy"), one.received)  # float32 holds sixty-fourths
    np.testing.assert_array_equal(np.load(places["observed"] / "town_1.npy"), one.observed)
    for model in MODELS:
        guess = predict(model, one, 0)
        for within, kind, expected in (
            ("pred", "field", guess.mean),
            ("std", "spread", guess.std),
            ("samples", "ensemble", guess.samples),
        ):
            assert set(collect(places[model] / within, kind)) == names
            np.testing.assert_array_equal(np.load(places[model] / within / "town_1.npy"), expected)


def test_files_are_the_same_bytes_in_another_process(places: dict[str, Path], tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from karat.demo.radiomap import write; write(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert len(files) == TRANSMITTERS * len(FLOORS) * (3 + 3 * len(MODELS))
    for path in files:
        assert path.read_bytes() == (places["truth"].parent / path.relative_to(tmp_path)).read_bytes()


def test_known_calibration_comes_out(runs: dict[str, Run]) -> None:
    """Shares of |error| <= z std are P(|Z| <= z) where std is right, P(|Z| <= z / 2) where it is half of that.

    The nine maps hold as many independent errors as 230 400 pixels over 8 pi (the squared correlation of grain of
    2 px, summed): 9 000. The shares of 0.68 and 0.95 are then known to 0.005 and 0.002, and stray by thrice that.
    """
    for model, width in (("calibrated", 1.0), ("overconfident", 0.5)):
        scores = {name: score.value for name, score in runs[model].scores.items()}
        for region in ("", "@free", "@unobserved", "@free_unobserved"):
            assert scores["fraction_within_1std" + region] == pytest.approx(erf(width / sqrt(2)), abs=0.02)
            assert scores["fraction_within_2std" + region] == pytest.approx(erf(2 * width / sqrt(2)), abs=0.02)
            assert scores["spread_skill" + region] == pytest.approx(width, rel=0.04)
    calibrated, overconfident = (
        {name: score.value for name, score in runs[model].scores.items()} for model in ("calibrated", "overconfident")
    )
    assert calibrated["fraction_within_2std"] == pytest.approx(0.9545, abs=0.007)
    assert calibrated["calibration_error"] < 0.015
    grid = np.arange(0.3, 3.01, 0.3)
    off = [erf(z / sqrt(2)) - erf(z / 2 / sqrt(2)) for z in grid.tolist()]
    assert overconfident["calibration_error"] == pytest.approx(np.mean(off), abs=0.015)
    assert calibrated["uncertainty_correlation"] > 0.4
    assert calibrated["spread_skill_ensemble"] == pytest.approx(1, rel=0.04)


def test_proper_scores_are_those_of_normal_distributions(runs: dict[str, Run], guesses) -> None:
    """Mean CRPS of N(m, s^2) for errors N(0, S^2) is sqrt(2 / pi) sqrt(S^2 + s^2) - s / sqrt(pi); of samples too."""
    spread = np.mean([guess.std.mean() for guess in guesses["calibrated"][: TRANSMITTERS * len(FLOORS)]])
    for model, width in (("calibrated", 1.0), ("overconfident", 0.5)):
        expected = spread * (sqrt(2 / pi) * sqrt(1 + width**2) - width / sqrt(pi))
        for name in ("crps", "crps_fair"):
            assert runs[model].scores[name].value == pytest.approx(expected, rel=0.03), (model, name)


def test_scores_tell_the_flaws_apart(runs: dict[str, Run]) -> None:
    assert list(runs) == list(MODELS) == list(GIVEN)

    def of(name: str) -> dict[str, float]:
        return {model: one.scores[name].value for model, one in runs.items()}

    for best in ("rmse", "rmse@free", "rmse@free_unobserved", "mae", "crps", "crps_fair", "nll", "winkler", "mace"):
        assert min(of(best), key=of(best).__getitem__) == "calibrated", best
    for same in ("rmse", "mae", "ssim", "psnr"):
        assert of(same)["overconfident"] == of(same)["calibrated"]
    assert min(of("rmse@building"), key=of("rmse@building").__getitem__) == "copycat"
    assert max(of("rmse@free_unobserved"), key=of("rmse@free_unobserved").__getitem__) == "copycat"
    assert of("rmse")["copycat"] < 0.85 * of("rmse@free")["copycat"]  # the building map flatters
    assert of("rmse@building")["smooth"] > 1.5 * of("rmse@free")["smooth"]
    hopeful = [of(f"rmse@distance:{bin}")["hopeful"] for bin in ("0-5", "5-10", "10-20", "20-50", "50+")]
    assert hopeful == sorted(hopeful)
    assert of("pit_mean")["hopeful"] < 0.2  # the truth lies low in what it promised
    assert min(of("fraction_within_1std"), key=of("fraction_within_1std").__getitem__) == "hopeful"
    assert max(of("fraction_within_1std"), key=of("fraction_within_1std").__getitem__) == "copycat"
    assert np.isnan(of("uncertainty_correlation")["smooth"])
    for one in runs.values():
        assert one.folder is not None
        assert (one.folder / "scores.json").exists()
        assert not one.failures
