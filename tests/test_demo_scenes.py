"""The demo scenes are what their ground truth says, and each pretend model fails in its own way."""

import os
import subprocess
import sys
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from karat.demo.models import MODELS, Prediction
from karat.demo.scenes import Scene, film, visible_boxes
from karat.demo.write import write, write_video

FRAMES, HEIGHT, WIDTH = 6, 96, 128


def scenes(count: int, frames: int, height: int, width: int, seed: int) -> list[Scene]:
    return [film(i, frames, height, width, seed) for i in range(count)]


@pytest.fixture(scope="module")
def cast() -> list[Scene]:
    return scenes(3, FRAMES, HEIGHT, WIDTH, seed=0)


@pytest.fixture(scope="module")
def predictions(cast: list[Scene]) -> dict[str, list[Prediction]]:
    return {model: [predict(scene, 0) for scene in cast] for model, predict in MODELS.items()}


def psnr(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    return float(10 * np.log10(255**2 / np.mean((a.astype(np.float64) - b) ** 2)))


def decode(path: Path) -> NDArray[np.uint8]:
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def detail(frames: NDArray[np.uint8]) -> float:
    return float(np.mean([cv2.Laplacian(frame.astype(np.float32), cv2.CV_32F).std() for frame in frames]))


def test_same_seed_same_scenes_whatever_their_number(cast: list[Scene]) -> None:
    again = scenes(2, FRAMES, HEIGHT, WIDTH, seed=0)
    for one, two in zip(cast, again, strict=False):
        assert (one.name, one.names) == (two.name, two.names)
        for field in ("frames", "depth", "labels", "boxes"):
            np.testing.assert_array_equal(getattr(one, field), getattr(two, field))


def test_other_seed_other_scenes(cast: list[Scene]) -> None:
    other = scenes(1, FRAMES, HEIGHT, WIDTH, seed=1)[0]
    assert not np.array_equal(other.frames, cast[0].frames)


def test_names_repeat_with_a_number() -> None:
    assert [scene.name for scene in scenes(4, 1, 24, 32, seed=0)] == ["street", "table", "robot", "street-2"]


@pytest.mark.parametrize("seed", range(4))
def test_ground_truth_is_sound(seed: int) -> None:
    for scene in scenes(3, FRAMES, HEIGHT, WIDTH, seed):
        assert scene.frames.shape == (FRAMES, HEIGHT, WIDTH, 3)
        assert scene.depth.shape == scene.labels.shape == (FRAMES, HEIGHT, WIDTH)
        assert scene.frames.dtype == scene.labels.dtype == np.uint8
        assert scene.depth.dtype == np.float32
        assert np.isfinite(scene.depth).all()
        assert (scene.depth > 0).all()
        assert set(np.unique(scene.labels)) == set(range(len(scene.names) + 1))
        assert len(set(scene.names)) == len(scene.names)
        assert 0.03 < scene.foreground.mean() < 0.7
        assert scene.frames.std() > 30


def test_boxes_enclose_exactly_their_labels(cast: list[Scene]) -> None:
    for scene in cast:
        for t, row in enumerate(scene.boxes):
            for i, box in enumerate(row):
                ys, xs = np.nonzero(scene.labels[t] == i + 1)
                expected = [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1] if xs.size else [np.nan] * 4
                np.testing.assert_array_equal(box, expected)


def test_box_of_a_hidden_instance_is_nan() -> None:
    assert np.isnan(visible_boxes(np.zeros((1, 4, 4), np.uint8), 1)).all()


def test_depth_does_not_depend_on_the_resolution() -> None:
    # The centre of every third pixel of the finer image is the centre of a pixel of the coarser one.
    coarse, fine = (scenes(3, 2, 48 * k, 64 * k, seed=0) for k in (1, 3))
    for one, two in zip(coarse, fine, strict=True):
        np.testing.assert_array_equal(one.labels, two.labels[:, 1::3, 1::3])
        np.testing.assert_allclose(one.depth, two.depth[:, 1::3, 1::3], rtol=1e-4)


def test_an_instance_in_front_hides_the_one_behind(cast: list[Scene]) -> None:
    street = cast[0]
    person = street.names.index("person") + 1
    overlaps = 0
    for t, boxes in enumerate(street.boxes):
        x0, y0, x1, y1 = boxes[person - 1].astype(int)
        inside = street.labels[t, y0:y1, x0:x1]
        overlaps += int(((inside > 0) & (inside != person)).any())
    assert overlaps


def test_video_survives_its_codec(tmp_path: Path) -> None:
    for scene in scenes(3, 3, 240, 320, seed=0):
        write_video(tmp_path / "clip.mp4", scene.frames)
        decoded = decode(tmp_path / "clip.mp4")
        assert decoded.shape == scene.frames.shape
        assert psnr(decoded, scene.frames) > 30
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]


def test_write_lays_out_every_file(tmp_path: Path, cast: list[Scene]) -> None:
    places = write(tmp_path, 3, FRAMES, HEIGHT, WIDTH, seed=0)
    assert set(places) == {"truth", "truth_depth", "truth_segments", "masks", *MODELS}
    for scene in cast:
        file = f"{scene.name}.npz"
        assert decode(places["truth"] / f"{scene.name}.mp4").shape == scene.frames.shape
        with np.load(places["truth_depth"] / file) as arrays:
            np.testing.assert_array_equal(arrays["depth"], scene.depth)
        with np.load(places["truth_segments"] / file) as arrays:
            np.testing.assert_array_equal(arrays["labels"], scene.labels)
            assert tuple(arrays["names"]) == scene.names
        with np.load(places["masks"] / file) as arrays:
            np.testing.assert_array_equal(arrays["mask"], scene.foreground)
        for model in MODELS:
            assert decode(places[model] / "videos" / f"{scene.name}.mp4").shape == scene.frames.shape
            with np.load(places[model] / "depth" / file) as arrays:
                assert arrays["depth"].dtype == np.float32
                assert arrays["depth"].shape == scene.depth.shape
            with np.load(places[model] / "segments" / file) as arrays:
                assert arrays["labels"].max() <= len(arrays["names"])


def test_write_is_reproducible_on_any_number_of_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cores in (1, 4):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        write(tmp_path / str(cores), 2, 3, 48, 64, seed=5)
    files = [path for path in sorted((tmp_path / "1").rglob("*")) if path.is_file()]
    assert len(files) == 2 * (4 + 3 * len(MODELS))
    for path in files:
        assert path.read_bytes() == (tmp_path / "4" / path.relative_to(tmp_path / "1")).read_bytes()


def test_video_does_not_depend_on_what_memory_held_before(tmp_path: Path) -> None:
    # glibc fills fresh memory as MALLOC_PERTURB_ says; other systems ignore it.
    np.save(tmp_path / "frames.npy", film(0, 24, 240, 320, 0).frames)
    code = (
        "import sys, numpy; from pathlib import Path; from karat.demo.write import write_video;"
        "write_video(Path(sys.argv[1]), numpy.load(sys.argv[2]))"
    )
    videos = [tmp_path / f"{fill}.mp4" for fill in (1, 85, 170)]
    for video in videos:
        environment = os.environ | {"MALLOC_PERTURB_": video.stem}
        subprocess.run([sys.executable, "-c", code, video, tmp_path / "frames.npy"], env=environment, check=True)
    assert len({video.read_bytes() for video in videos}) == 1


@pytest.mark.parametrize("model", MODELS)
def test_predictions_are_sound(model: str, cast: list[Scene], predictions: dict[str, list[Prediction]]) -> None:
    for scene, guess in zip(cast, predictions[model], strict=True):
        assert guess.frames.shape == scene.frames.shape
        assert guess.frames.dtype == np.uint8
        assert guess.depth.dtype == np.float32
        assert np.isfinite(guess.depth).all()
        assert (guess.depth > 0).all()
        assert guess.names[: len(scene.names)] == scene.names
        np.testing.assert_array_equal(guess.boxes, visible_boxes(guess.labels, len(guess.names)))
        again = MODELS[model](scene, 0)
        np.testing.assert_array_equal(again.frames, guess.frames)
        np.testing.assert_array_equal(again.depth, guess.depth)


def test_sharp_is_the_closest(cast: list[Scene], predictions: dict[str, list[Prediction]]) -> None:
    for i, scene in enumerate(cast):
        quality = {model: psnr(guesses[i].frames, scene.frames) for model, guesses in predictions.items()}
        assert max(quality, key=lambda model: quality[model]) == "sharp"
        assert 30 < quality["sharp"] < 45
        np.testing.assert_array_equal(predictions["sharp"][i].labels, scene.labels)
        np.testing.assert_allclose(predictions["sharp"][i].depth, scene.depth, rtol=0.06)


def test_soft_loses_detail(cast: list[Scene], predictions: dict[str, list[Prediction]]) -> None:
    for scene, guess in zip(cast, predictions["soft"], strict=True):
        assert detail(guess.frames) < 0.7 * detail(scene.frames)
        assert 0 < (guess.labels != scene.labels).mean() < 0.1


def test_drifting_gets_worse_and_loses_an_object(cast: list[Scene], predictions: dict[str, list[Prediction]]) -> None:
    for scene, guess in zip(cast, predictions["drifting"], strict=True):
        assert psnr(guess.frames[-1], scene.frames[-1]) < psnr(guess.frames[0], scene.frames[0]) - 1
        seen, truly = (set(np.unique(labels[FRAMES // 2 :])) for labels in (guess.labels, scene.labels))
        assert len(truly - seen) == 1
        assert truly - seen <= set(np.unique(guess.labels[: FRAMES // 2]))


def test_haze_fades_distorts_and_invents(cast: list[Scene], predictions: dict[str, list[Prediction]]) -> None:
    for scene, guess in zip(cast, predictions["haze"], strict=True):
        assert guess.frames.std() < 0.8 * scene.frames.std()
        assert guess.names == (*scene.names, "pink balloon")
        assert np.isfinite(guess.boxes[:, -1]).all()
        common = guess.labels == scene.labels
        ratio = guess.depth[common] / scene.depth[common]
        assert ratio.max() > 1.2 * ratio.min()
        assert np.corrcoef(guess.depth[common], scene.depth[common])[0, 1] > 0.95
