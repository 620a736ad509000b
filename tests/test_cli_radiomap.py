"""`karat ... radiomap` as its users call it: files, regions, scales, groups, protocols, tables, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from clips import called, refused

RNG = np.random.default_rng(0)
IDS = [f"b{building}_{sender}" for building in (1, 2, 3) for sender in (0, 1)]
SHAPE = (len(IDS), 24, 26)
GREY = RNG.integers(20, 256, SHAPE).astype(np.uint8)
TRUTH = GREY / 255 * 139 - 186
PRED = TRUTH + RNG.normal(0, 3, SHAPE)
SEEN = RNG.random(SHAPE) < 0.05
FREE = np.arange(26) < 14


@pytest.fixture(scope="module")
def maps(tmp_path_factory) -> Path:
    """Folders of maps, one file each."""
    home = tmp_path_factory.mktemp("maps")
    sides = {"pred": PRED, "truth": TRUTH, "unit": (PRED + 186) / 69.5 - 1, "std": np.full(SHAPE, 3.0)}
    sides |= {"seen": SEEN, "ens": PRED[:, None] + RNG.normal(0, 3, (len(IDS), 5, *SHAPE[1:]))}
    for side, arrays in sides.items():
        (home / side).mkdir()
        for name, array in zip(IDS, arrays, strict=True):
            np.save(home / side / f"{name}.npy", array)
    for side, pictures in {"png": GREY, "building": np.broadcast_to(FREE * np.uint8(255), SHAPE)}.items():
        (home / side).mkdir()
        for name, picture in zip(IDS, pictures, strict=True):
            cv2.imwrite(str(home / side / f"{name}.png"), np.ascontiguousarray(picture))
    return home


def sides(maps: Path, *names: str, **flags: str) -> list[Any]:
    """Flags of folders: --pred pred --truth truth, and those that are named."""
    given = {"pred": "pred", "truth": "truth", **dict(zip(names, names, strict=True)), **flags}
    return [part for flag, folder in given.items() for part in (f"--{flag}", maps / folder)]


def plain(*args: Any) -> dict[str, Any]:
    done = called("run", "radiomap", *args, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def scores(*args: Any) -> dict[str, Any]:
    return {name: one["value"] for name, one in plain(*args)["scores"].items()}


def everything(maps: Path) -> list[Any]:
    return [*sides(maps, "building", "std", observed="seen"), "--free", "value>0", "--units", "dBm"]


def test_the_whole_call(maps):
    """By region, by distance, with uncertainty."""
    found = scores(*everything(maps))
    gap = PRED - TRUTH
    regions = {"": True, "@free": FREE, "@building": ~FREE, "@observed": SEEN, "@unobserved": ~SEEN}
    regions |= {"@free_observed": FREE & SEEN, "@free_unobserved": FREE & ~SEEN}
    for name, where in regions.items():
        inside = np.broadcast_to(where, SHAPE)
        own = [np.sqrt((one[mask] ** 2).mean()) for one, mask in zip(gap, inside, strict=True)]
        assert found[f"rmse{name}"] == pytest.approx(np.mean(own))
    within = np.abs(gap) <= 3
    assert found["fraction_within_1std"] == pytest.approx(within.mean())
    assert found["coverage_ratio"] == pytest.approx(SEEN.mean())
    assert {"crps", "nll", "calibration_error", "uncertainty_correlation", "rmse@distance:50+"} <= set(found)


def test_an_ensemble(maps):
    """Stands for the predictions, and for their standard deviations."""
    found = scores("--truth", maps / "truth", "--samples", maps / "ens")
    assert found["rmse"] > 0
    assert {"crps_fair", "fraction_within_1std", "spread_skill"} <= set(found)


def test_scales(maps):
    """What is stored from -1 to 1, beside a truth in bytes, scores as it does in dBm."""
    wanted = scores(*sides(maps))
    scale = ("--scale", "-186..-47", "--from", "-1..1", "--units", "dBm")
    found = scores(*sides(maps, pred="unit", truth="png"), *scale)
    assert found == pytest.approx(wanted, rel=1e-9, nan_ok=True)
    said = plain(*sides(maps, pred="png", truth="png"))["notes"]
    assert any("whole numbers as they are; pass --scale" in note for note in said)


def test_parameters(maps):
    given = (*sides(maps, observed="seen"), "--set", "distance.edges=(2, 4)", "--set", "nmse.normalizer=energy")
    found = scores(*given)
    assert "rmse@distance:2-4" in found
    own = ((PRED - TRUTH) ** 2).sum(axis=(1, 2)) / (TRUTH**2).sum(axis=(1, 2))
    assert found["nmse"] == pytest.approx(own.mean())
    only = scores(*sides(maps), "--metric", "nmse", "--set", "nmse.normalizer=energy")
    assert only == {"nmse": found["nmse"]}


@pytest.mark.parametrize("protocol", ["spec", "reference", "reference-eval"])
def test_protocols(maps, protocol):
    """Each says what it is; without NaN or wraps errors are the same."""
    said = plain(*sides(maps, observed="seen"), "--protocol", protocol)
    assert f"|radiomap@{protocol}|" in said["signature"]
    assert said["scores"]["rmse"]["value"] == pytest.approx(scores(*sides(maps))["rmse"])


def test_tables(maps, tmp_path):
    """What comes first, a table by region, every score with --all; shown again from the folder."""
    out = tmp_path / "run"
    few = [part for name in ("rmse", "calibration", "pixel_counts") for part in ("--metric", name)]
    done = called("run", "radiomap", *everything(maps), *few, "--group-by", "building", "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    for word in ("rmse", "free_unobserved", "95 %", "expected", "0.6827", "distance:0-5", "karat:"):
        assert word in text
    assert called("show", out).stdout == done.stdout
    by = called("show", out, "--by", "region", "--format", "csv").stdout.decode().splitlines()
    assert by[0].startswith("region,rmse,")
    assert {line.partition(",")[0] for line in by[1:]} >= {"all", "free", "observed", "uncovered", "distance:50+"}
    assert len(called("show", out, "--by", "sample", "--format", "csv").stdout.splitlines()) == 1 + len(IDS)
    assert b"n_nan_pixels" in called("show", out, "--all").stdout


def test_what_the_method_was_given(maps):
    """Is told, and so is that it was not said."""
    assert any("not said: pass --inputs" in note for note in plain(*sides(maps))["notes"])
    said = plain(*sides(maps), "--inputs", "building_map,sparse_rss")["notes"]
    assert any(note.startswith("The method was given building_map, sparse_rss, and not ") for note in said)


def test_notes_of_what_is_not_known(maps):
    notes = plain(*sides(maps))["notes"]
    assert any("pass --observed" in note for note in notes)
    assert any("--std" in note or "--pred-std" in note for note in notes)


def test_a_map_that_fails(maps, tmp_path):
    """Costs itself alone; the exit code and the last lines say so."""
    short = tmp_path / "pred"
    short.mkdir()
    for name, array in list(zip(IDS, PRED, strict=True))[1:]:
        np.save(short / f"{name}.npy", array)
    done = called("run", "radiomap", "--pred", short, "--truth", maps / "truth", "--format", "json")
    assert done.returncode == 3
    rmse = json.loads(done.stdout)["scores"]["rmse"]
    assert (rmse["n"], rmse["failed"]) == (len(IDS) - 1, 1)
    assert "1 of 6 samples failed" in done.stderr.decode()


def test_check(maps):
    done = called("check", "radiomap", *everything(maps))
    assert (done.returncode, b"0 errors, 0 warnings" in done.stdout) == (0, True), done.stdout.decode()
    done = called("check", "radiomap", *sides(maps, pred="unit"), "--scale", "-186..-47", "--units", "dBm")
    assert done.returncode == 0
    assert b"pass --from -1..1" in done.stdout
    done = called("check", "radiomap", *sides(maps, observed="png"))
    assert done.returncode == 3
    assert b"where a mask has one: threshold it" in done.stdout


def test_refusals(maps):
    run = ("run", "radiomap")
    refused(called(*run, *sides(maps, "building")), "is not said", "--free 'value>0'")
    refused(called(*run, *sides(maps, "building"), "--free", "white"), "'white' is no rule")
    refused(called(*run, "--truth", maps / "truth"), "--pred")
    refused(called(*run, *sides(maps), "--from", "-1..1"), "--scale")
    refused(called(*run, *sides(maps), "--scale", "dBm"), "--scale dBm is no range")
    refused(called(*run, *sides(maps), "--inputs", "crystal_ball"), "crystal_ball", "building_map")
    refused(called(*run, *sides(maps), "--protocol", "papers"), "papers", "reference-eval")
    refused(called(*run, *sides(maps), "--set", "distance.zero=both"), "distance.zero")
    refused(called(*run, *sides(maps), "--set", "uncovered.sigma=0"), "sigma above 0")
    refused(called(*run, *sides(maps), "--group-by", "floor"), "floor", "building, transmitter")
    refused(called(*run, *sides(maps, pred="none")), "none", "does not exist")


def test_pages():
    """Of the suite, with what its protocols differ in, and of its metrics."""
    page = called("describe", "radiomap").stdout.decode()
    for word in ("reference-eval", "Where the protocols differ", "observed", "TrajectoryDiff"):
        assert word in page
    assert "normalizer" in called("describe", "nmse").stdout.decode()
    assert "ObservedShare" in called("describe", "coverage_ratio").stdout.decode()
