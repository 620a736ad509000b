"""A baseline as a source: what it reads, what it answers, what it refuses."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

import karat
from karat.compare import baselines
from karat.errors import InputError
from karat.kernels.interpolate import BASELINES
from karat.sources.baselines import Interpolated
from karat.sources.fingerprint import digest
from karat.sources.kinds import open_stream
from karat.sources.pairing import collect
from karat.suites import load

TRUTH = np.array([[-60.0, -70, -80], [-90, -100, -110]], np.float32)
SEEN = np.array([[1, 0, 0], [0, 0, 1]], bool)
POINTS, VALUES = np.array([[0, 0], [1, 2]]), np.array([-60.0, -110.0])


def baseline(truth: object = TRUTH, observed: object = SEEN, name: str = "idw2") -> Interpolated:
    return Interpolated(truth, observed, name, BASELINES[name])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BASELINES)
def test_the_map_is_interpolated_from_what_was_observed(name: str) -> None:
    with open_stream(baseline(name=name), "field") as stream:
        (found,) = stream
    np.testing.assert_array_equal(found, BASELINES[name](POINTS, VALUES, (2, 3)))
    assert found.dtype == np.float64


@pytest.mark.parametrize("mask", [SEEN, np.uint8(SEEN), np.uint8(255 * SEEN), 0.5 * SEEN], ids=str)
def test_masks_of_any_type(mask: np.ndarray) -> None:
    np.testing.assert_array_equal(baseline(observed=mask).open(), baseline().open())


def test_files_and_items_of_stacks(tmp_path: Path) -> None:
    np.save(tmp_path / "truth.npy", np.stack([0 * TRUTH, TRUTH]))
    cv2.imwrite(str(tmp_path / "seen.png"), np.uint8(255 * SEEN))
    item = collect(tmp_path / "truth.npy", "field")["0001"]
    found = baseline(item, tmp_path / "seen.png")
    np.testing.assert_array_equal(found.open(), baseline().open())
    other = baseline(collect(tmp_path / "truth.npy", "field")["0000"], tmp_path / "seen.png")
    assert digest(found) != digest(other)


def test_values_in_their_unit_and_masks_by_a_rule() -> None:
    grey, distance = np.array([[0, 128, 255]], np.uint8), np.array([[0.0, 7, 3]])
    source = baseline(grey, distance, "nearest")
    declared = replace(source, values=lambda x: x / 255 * 139 - 186, seen=lambda x: x < 4)
    np.testing.assert_allclose(declared.open()[0, [0, 2]], [-186, -47])


def test_what_is_nan_was_not_observed() -> None:
    truth = TRUTH.copy()
    truth[1, 2] = np.nan
    np.testing.assert_array_equal(baseline(truth).open(), np.full((2, 3), -60.0))
    with pytest.raises(InputError, match="Nothing is observed"):
        baseline(np.full((2, 3), np.nan)).open()


def test_no_observation_is_no_map() -> None:
    with (
        pytest.raises(InputError, match="Nothing is observed in this map"),
        open_stream(baseline(observed=~SEEN & SEEN), "field"),
    ):
        pass


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="observed is 2x3, but the truth is 3x2"):
        baseline(observed=SEEN.T).open()


def test_the_digest_is_of_everything_that_it_is_made_from() -> None:
    """Not of the map: its last bit depends on the machine."""
    same = baseline(TRUTH.copy(), SEEN.copy())
    others = [baseline(TRUTH + 1), baseline(observed=~SEEN), baseline(name="idw3")]
    assert digest(same) == digest(baseline())
    assert len({digest(one) for one in (same, *others)}) == 4
    parts = ("baseline", "idw2", digest(TRUTH), digest(SEEN))
    assert digest(same) == hashlib.sha256("\0".join(parts).encode()).hexdigest()


def test_baselines_of_a_run_are_on_its_scale() -> None:
    """The same maps in dBm, in grey and in -1..1 have the same baselines: exact where they were observed."""
    rng = np.random.default_rng(0)
    grey, seen = rng.integers(0, 256, (2, 12, 16)).astype(np.uint8), rng.random((2, 12, 16)) < 0.2
    dbm, scale = grey / 255 * 139 - 186, (-186.0, -47.0)
    found = []
    for truth, how in (
        (dbm, {}),
        (grey, {"scale": scale}),
        (grey / 255 * 2 - 1, {"scale": scale, "stored": (-1.0, 1.0)}),
    ):
        given = {"truth": truth, "pred": truth, "observed": seen, "metrics": ["rmse"], **how}
        suite = load("radiomap")
        runs = baselines(karat.evaluate(suite, workers=1, **given), suite, "all", workers=1, **given)
        assert list(runs) == list(BASELINES)
        for run in runs.values():
            assert run.scores["rmse@observed"].value == pytest.approx(0, abs=1e-9)
        found.append([run.scores["rmse@unobserved"].value for run in runs.values()])
    np.testing.assert_allclose(found, found[:1] * 3, rtol=1e-9)
    assert min(found[0]) > 10
