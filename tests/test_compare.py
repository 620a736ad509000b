"""Runs side by side, and classical baselines beside a run, as users call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called, refused

import karat
from karat.compare import compare

RNG = np.random.default_rng(3)
SHAPE = (4, 20, 22)
TRUTH = -100 + RNG.normal(0, 1, SHAPE).cumsum(axis=1).cumsum(axis=2)
SEEN = RNG.random(SHAPE) < 0.08
FREE = np.broadcast_to(np.arange(22) < 12, SHAPE).astype(np.uint8)


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stacks of maps, and the runs of two methods."""
    home = tmp_path_factory.mktemp("maps")
    sides = {"truth": TRUTH, "seen": SEEN, "building": FREE, "other": np.roll(SEEN, 1, axis=2)}
    sides |= {"near": TRUTH + 1, "far": TRUTH + RNG.normal(0, 4, SHAPE)}
    for name, array in sides.items():
        np.save(home / f"{name}.npy", array)
    for name, inputs in (("near", "building_map,sparse_rss"), ("far", "sparse_rss")):
        done = called("run", *arguments(home, name), "--inputs", inputs, "--out", home / "runs" / name)
        assert done.returncode == 0, done.stderr.decode()
    return home


def arguments(home: Path, pred: str, observed: str = "seen") -> list[Any]:
    sides = ["radiomap", "--pred", home / f"{pred}.npy", "--truth", home / "truth.npy", "--free", "value>0"]
    return [*sides, "--observed", home / f"{observed}.npy", "--building", home / "building.npy"]


def compared(*args: Any) -> dict[str, Any]:
    done = called("compare", *args, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_runs_of_the_same_data_are_ranked_and_what_is_unfair_is_marked(maps: Path) -> None:
    found = compared(maps / "runs" / "near", maps / "runs" / "far", "--against", "far")
    assert found["ranked"]
    assert {"rmse", "rmse@building", "psnr"} <= set(found["unfair"])
    assert not {"rmse@free", "rmse@free_unobserved", "ssim@observed"} & set(found["unfair"])
    assert any("Only near was given building_map" in note for note in found["notes"])
    near, far = (found["runs"][name]["scores"]["rmse"]["value"] for name in ("near", "far"))
    assert found["skill"]["near"]["rmse"] == pytest.approx(1 - near / far, rel=1e-12)
    assert found["skill"]["far"]["rmse"] == 0
    assert "psnr" not in found["skill"]["near"]
    table = called("compare", maps / "runs" / "near", maps / "runs" / "far", "--against", "far").stdout.decode()
    assert "all †" in table
    assert "Skill: 1 - error / error of far" in table


def test_other_observations_and_other_protocols_are_not_ranked(maps: Path, tmp_path: Path) -> None:
    others = {"seen elsewhere": ["--out", tmp_path / "a"], "by its code": ["--protocol", "reference-eval"]}
    for name, more in others.items():
        observed = "other" if name == "seen elsewhere" else "seen"
        args = [*arguments(maps, "near", observed), *more]
        out = [] if "--out" in more else ["--out", tmp_path / "b"]
        assert called("run", *args, *out).returncode == 0
    for folder, why in (("a", "not the same truth"), ("b", "by other protocols")):
        found = compared(maps / "runs" / "near", tmp_path / folder)
        assert not found["ranked"]
        assert any("Not ranked" in note and why in note for note in found["notes"]), found["notes"]


def test_baselines_are_made_of_what_was_observed_and_scored_beside(maps: Path, tmp_path: Path) -> None:
    args = [*arguments(maps, "far"), "--inputs", "sparse_rss", "--baselines"]
    done = called("run", *args, "nearest,idw2,kriging", "--out", tmp_path / "run", "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert list(found["runs"]) == ["method", "nearest", "idw2", "kriging"]
    assert found["ranked"]
    assert found["against"] == "nearest"
    for name in ("nearest", "idw2", "kriging"):
        scores = found["runs"][name]["scores"]
        assert scores["rmse@observed"]["value"] == 0
        assert scores["rmse@unobserved"]["value"] > 0
        kept = karat.Run.load(tmp_path / "run" / "baselines" / name)
        assert kept.scores["rmse"].value == scores["rmse"]["value"]
    points = np.argwhere(SEEN[0])
    apart = ((np.indices(SHAPE[1:])[:, None] - points.T[:, :, None, None]) ** 2).sum(axis=0)
    nearest = TRUTH[0][tuple(points[apart.argmin(axis=0)].transpose(2, 0, 1))]
    ties = (apart == apart.min(axis=0)).sum(axis=0) > 1
    error = np.abs(nearest - TRUTH[0])[~ties]
    run = karat.Run.load(tmp_path / "run" / "baselines" / "nearest")
    assert run.sample_scores["0000"]["mae"] == pytest.approx(error.mean(), rel=0.2)


def test_refusals(maps: Path) -> None:
    refused(called("run", *arguments(maps, "near"), "--baselines", "magic"), "no baseline 'magic'", "kriging")
    refused(called("compare", maps / "runs" / "near", maps / "runs" / "far", "--against", "x"), "no run 'x'")
    refused(called("compare", maps / "runs" / "near", maps / "runs" / "near"), "Two runs have one name")
    refused(called("run", *arguments(maps, "near"), "--inputs", "luck"), "knows no input 'luck'")
    refused(called("run", *arguments(maps, "near"), "--masks", f"free={maps / 'seen.npy'}"), "a region 'free' itself")
    poses = {"points": np.zeros((1, 2, 2)), "frame": np.zeros(1, int), "score": np.ones(1)}
    other = karat.evaluate("pose", pred=poses, truth={name: poses[name] for name in ("points", "frame")})
    with pytest.raises(karat.UsageError, match="Runs of one suite"):
        compare({"near": karat.Run.load(maps / "runs" / "near"), "poses": other})
