"""Distributions of features as they are evaluated: files of every kind, statistics, protocols, refusals, notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called
from contract.compare import near
from safetensors.numpy import save_file
from twins import distributions as twin

import karat
from karat.errors import KaratError
from karat.run import Run

WIDTH = 8


def sets(seed: int = 0) -> tuple[Any, Any]:
    """Features of 70 predictions and 90 truths, in whole numbers."""
    rng = np.random.default_rng(seed)
    sides = rng.normal(3, 12, (70, WIDTH)), rng.normal(0, 10, (90, WIDTH))
    pred, truth = (np.rint(side).astype(np.float32) for side in sides)
    return pred, truth


def logits(n: int) -> Any:
    return np.random.default_rng(n).normal(0, 3, (n, 5))


def values(run: Run) -> dict[str, float]:
    return {name: one.value for name, one in run.scores.items()}


def test_scores_are_the_literal_ones() -> None:
    pred, truth = sets()
    found = values(karat.evaluate("generation", pred=pred, truth=truth))
    assert near(found["fid"], twin.frechet(pred, truth, 1), 1e-9)
    assert near(found["kid_all"], twin.mmd(pred, truth, twin.polynomial(3, None, 1), True), 1e-9)
    for name, value in twin.manifold(pred, truth, 5, False).items():
        assert near(found[name], value), name
    assert "inception_score" not in found


def test_every_file_says_the_same(tmp_path: Path) -> None:
    pred, truth = sets()
    np.save(tmp_path / "p.npy", pred)
    np.savez(tmp_path / "named.npz", features=pred)
    np.savez_compressed(tmp_path / "alone.npz", whatever=pred)
    np.savez(tmp_path / "pool3.npz", pool3=pred)
    save_file({"features": pred}, tmp_path / "p.safetensors")
    wanted = values(karat.evaluate("generation", pred=pred, truth=truth))
    for path in tmp_path.iterdir():
        assert values(karat.evaluate("generation", pred=path, truth=truth)) == wanted, path


def test_statistics_stand_for_features_of_the_truth(tmp_path: Path) -> None:
    pred, truth = sets()
    np.savez(tmp_path / "s.npz", mu=truth.mean(0, dtype=np.float64), sigma=np.cov(truth.astype(np.float64).T), n=90)
    run = karat.evaluate("generation", pred={"features": pred, "logits": logits(70)}, truth=tmp_path / "s.npz")
    whole = karat.evaluate("generation", pred={"features": pred, "logits": logits(70)}, truth=truth)
    assert near(run.scores["fid"].value, whole.scores["fid"].value, 1e-9)
    assert run.scores["inception_score"] == whole.scores["inception_score"]
    assert (run.scores["kid"].n, run.scores["kid"].undefined) == (0, 1)
    assert any("FID is of 70 and 90 images, of 8 features." in note for note in run.notes)


def test_few_images_are_told() -> None:
    pred, truth = sets()
    notes = karat.evaluate("generation", pred=pred[:5], truth=truth).notes
    assert any("no more images than features (8)" in note for note in notes)


@pytest.mark.parametrize(("protocol", "splits", "ddof"), [("spec", 10, 0), ("torchmetrics", 10, 1), ("adm", 10, 0)])
def test_protocols_of_the_inception_score(protocol: str, splits: int, ddof: int) -> None:
    pred, truth = sets()
    run = karat.evaluate("generation", pred={"features": pred, "logits": logits(70)}, truth=truth, protocol=protocol)
    parts = np.array_split(np.arange(70), splits)  # 70 is cut alike by both rules
    if protocol != "spec":
        each = np.array([twin.inception_score(logits(70)[part]) for part in parts])
        assert near(run.scores["inception_score"].value, each.mean(), 1e-9)
        assert near(run.scores["inception_score_std"].value, each.std(ddof=ddof), 1e-7)
    assert f"seed={'0' if protocol == 'spec' else 'None'}" in run.signature


def test_rows_of_features_come_back(tmp_path: Path) -> None:
    pred, truth = sets()
    kept = karat.evaluate("generation", pred=pred, truth=truth, out=tmp_path / "run", workers=2)
    back = Run.load(tmp_path / "run")
    assert (back.signature, values(back)) == (kept.signature, values(kept))
    assert np.array_equal(back.rows["feature_rows"].columns["features"], np.concatenate([pred, truth]))


def test_the_command_line(tmp_path: Path) -> None:
    pred, truth = sets()
    np.savez(tmp_path / "p.npz", features=pred, logits=logits(70))
    np.savez(tmp_path / "t.npz", features=truth)
    done = called("run", "generation", "--pred", tmp_path / "p.npz", "--truth", tmp_path / "t.npz", "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    scores = json.loads(done.stdout)["scores"]
    assert scores["fid"]["value"] == karat.FID()(pred, truth)["fid"]
    described = called("describe", "generation").stdout.decode()
    assert all(name in described for name in ("spec", "torchmetrics", "adm"))


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "three axes": ({"features": np.ones((2, 3, 4))}, "numbers with 2 axes"),
    "a vector": ({"features": np.ones(9)}, "numbers with 2 axes"),
    "text": ({"features": np.array([["a"]])}, "numbers with 2 axes"),
    "complex": ({"features": np.ones((2, 2), complex)}, "numbers with 2 axes"),
    "NaN": ({"features": np.array([[0, 1], [np.nan, 2]])}, "NaN or infinite in row 1"),
    "infinite": ({"mu": np.array([np.inf]), "sigma": np.ones((1, 1))}, "NaN or infinite"),
    "half": ({"mu": np.ones(3)}, "mu and sigma belong together"),
    "shapes": ({"mu": np.ones(3), "sigma": np.ones((2, 2))}, "(d) and (d, d)"),
    "unknown": ({"features": np.ones((2, 2)), "labels": np.ones(2)}, "has an array 'labels'"),
    "nothing": ({"n": np.array(5)}, "has no features"),
    "other lengths": ({"features": np.ones((2, 2)), "logits": np.ones((3, 2))}, "2 features and 3 logits"),
    "objects": ({"features": np.array([[{}]], object)}, "objects"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_features(name: str, tmp_path: Path) -> None:
    arrays, words = HOSTILE[name]
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(KaratError) as caught:
        karat.evaluate("generation", pred=tmp_path / "p.npz", truth=sets()[1], strict=True)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
