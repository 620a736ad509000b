"""The demo's mice are where their truth says, and each pretend model fails in its own way."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import karat
from karat.demo.animals import ANIMALS, BEHIND, EDGES, FRAMES, GIRTH, MIRRORED, NODES, TRUNK, WALLS, Film, film
from karat.demo.pose import MODELS, predict, run, write
from karat.kernels.keypoints import box_area, box_of
from karat.sources.pose_coco import read_coco
from karat.sources.pose_npz import read_npz
from karat.sources.poses import Poses

SEEDS = range(6)


@pytest.fixture(scope="module")
def films() -> dict[str, Film]:
    return {name: film(name, 0) for name in FRAMES}


def errors(film: Film, poses: Poses) -> NDArray[np.float64]:
    """Distances (n, K) of predictions to the true nodes of the animals of their tracks, hidden or not."""
    gap = poses.points - film.points[poses.frame, poses.track]
    return np.hypot(gap[..., 0], gap[..., 1])


def instances(poses: Poses) -> set[tuple[int, int]]:
    return set(zip(poses.frame.tolist(), poses.track.tolist(), strict=True))


def test_skeleton_is_sound() -> None:
    assert len(set(NODES)) == len(NODES) == 15
    reached = {0}
    for a, b in EDGES:
        assert a in reached  # a tree that grows from the nose
        assert b not in reached
        reached.add(b)
    assert reached == set(range(len(NODES)))
    assert [MIRRORED[i] for i in MIRRORED] == list(range(len(NODES)))
    assert {NODES[i] for i in range(len(NODES)) if MIRRORED[i] != i} == {
        n for n in NODES if "left" in n or "right" in n
    }


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FRAMES)
def test_mice_stay_inside_the_walls_in_one_piece(name: str, seed: int) -> None:
    mice = film(name, seed)
    assert mice.points.shape == (FRAMES[name], ANIMALS, len(NODES), 2)
    x0, y0, x1, y1 = WALLS[name]
    assert (mice.points > (x0, y0)).all()
    assert (mice.points < (x1, y1)).all()
    starts, ends = np.array(EDGES).T
    length = np.ptp(BEHIND) * mice.size
    bones = np.linalg.norm(mice.points[:, :, starts] - mice.points[:, :, ends], axis=3)
    assert (bones > 3).all()
    assert (bones < 0.45 * length[:, None]).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FRAMES)
def test_mice_move_smoothly_and_bend(name: str, seed: int) -> None:
    mice = film(name, seed)
    steps = np.diff(mice.points, axis=0)
    speeds = np.linalg.norm(steps, axis=3)
    assert speeds[:, :, TRUNK].max() < 18
    assert speeds.max() < 32  # feet swing
    jolts = np.linalg.norm(np.diff(steps, axis=0), axis=3)
    assert jolts[:, :, TRUNK].max() < 4
    assert jolts.max() < 15
    body = np.array([NODES.index(n) for n in ("neck", "spine_2", "tail_base")])
    front, back = (np.diff(mice.points[:, :, body[i : i + 2]], axis=2)[:, :, 0] for i in (0, 1))
    cosine = (front * back).sum(2) / np.linalg.norm(front, axis=2) / np.linalg.norm(back, axis=2)
    assert cosine.min() < np.cos(np.deg2rad(20))
    assert cosine.max() > np.cos(np.deg2rad(3))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FRAMES)
def test_mice_meet_and_hide_each_other(name: str, seed: int) -> None:
    mice = film(name, seed)
    touching = mice.touching
    np.testing.assert_array_equal(touching, touching.transpose(0, 2, 1))
    assert touching[:, 0, 1:].any(0).all()  # the first meets each of the others
    assert 0.01 < mice.hidden.mean() < 0.25
    assert not mice.hidden[:, mice.rank.argmax()].any()


def test_hidden_is_what_a_higher_body_covers(films: dict[str, Film]) -> None:
    for mice in films.values():
        for t in range(0, len(mice.points), 7):
            for i in range(ANIMALS):
                covered = np.zeros(len(NODES), bool)
                for j in np.flatnonzero(mice.rank > mice.rank[i]):
                    trunk, girth = mice.points[t, j, TRUNK], mice.size[j] * GIRTH
                    for k, point in enumerate(mice.points[t, i]):
                        for a, b, wide, narrow in zip(trunk, trunk[1:], girth, girth[1:], strict=False):
                            s = np.clip((point - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
                            covered[k] |= np.linalg.norm(point - a - s * (b - a)) <= wide + s * (narrow - wide)
                np.testing.assert_array_equal(mice.hidden[t, i], covered)


def test_truth_is_what_is_seen(films: dict[str, Film]) -> None:
    for name, mice in films.items():
        truth = mice.truth
        assert (truth.name, truth.nodes) == (name, NODES)
        np.testing.assert_array_equal(truth.labelled, np.arange(FRAMES[name]))
        assert len(instances(truth)) == len(truth)
        assert set(truth.track.tolist()) == set(range(ANIMALS))
        assert truth.user.all()
        missing = np.isnan(truth.points).any(2)
        assert missing.any()
        assert not missing.all(1).any()
        np.testing.assert_array_equal(missing, mice.hidden[truth.frame, truth.track])
        np.testing.assert_array_equal(truth.points[~missing], mice.points[truth.frame, truth.track][~missing])


def test_same_seed_same_bits_other_seed_other_mice(films: dict[str, Film]) -> None:
    for name, mice in films.items():
        again, other = film(name, 0), film(name, 1)
        assert again.truth.digest() == mice.truth.digest() != other.truth.digest()
        for model in MODELS:
            digests = [
                predict(model, mice, 0).digest(),
                predict(model, again, 0).digest(),
                predict(model, mice, 1).digest(),
            ]
            assert digests[0] == digests[1] != digests[2]


def test_coordinates_are_sixty_fourths(films: dict[str, Film]) -> None:
    for mice in films.values():
        for poses in (mice.truth, *(predict(model, mice, 0) for model in MODELS)):
            points = 64 * poses.points[np.isfinite(poses.points)]
            np.testing.assert_array_equal(points, np.rint(points))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", SEEDS)
def test_predictions_are_sound(model: str, seed: int) -> None:
    for name in FRAMES:
        poses = predict(model, film(name, seed), seed)
        assert (poses.name, poses.nodes) == (name, NODES)
        assert len(instances(poses)) == len(poses) > 0
        assert ((poses.score > 0) & (poses.score <= 1)).all()
        assert len(np.unique(poses.score)) > 0.5 * len(poses)
        assert set(poses.labelled.tolist()) <= set(range(FRAMES[name]))


@pytest.mark.parametrize("seed", SEEDS)
def test_sharp_misses_nothing(seed: int) -> None:
    for name in FRAMES:
        mice = film(name, seed)
        poses, truth = predict("sharp", mice, seed), mice.truth
        assert instances(poses) == instances(truth)
        np.testing.assert_array_equal(np.isnan(poses.points), np.isnan(truth.points))
        assert np.nanmax(errors(mice, poses)) < 5
        assert np.nanmean(errors(mice, poses)) < 1.2


@pytest.mark.parametrize("seed", SEEDS)
def test_misses_loses_frames_animals_and_nodes(seed: int) -> None:
    for name, count in FRAMES.items():
        mice = film(name, seed)
        poses, truth = predict("misses", mice, seed), mice.truth
        assert len(poses.labelled) == count - count // 12
        assert len(set(poses.labelled.tolist()) - set(poses.frame.tolist())) >= count // 24
        assert instances(poses) < instances(truth)
        assert 0.4 < len(poses) / len(truth) < 0.9
        lost = np.isnan(poses.points).any(2) & ~mice.hidden[poses.frame, poses.track]
        share = lost.mean(0)
        assert 0.5 * share[NODES.index("tail_tip")] > share[NODES.index("nose")] > 0
        assert np.nanmean(errors(mice, poses)) < 1.5


@pytest.mark.parametrize("seed", SEEDS)
def test_swaps_exchanges_sides_and_names(seed: int) -> None:
    for name in FRAMES:
        mice = film(name, seed)
        poses, truth = predict("swaps", mice, seed), mice.truth
        assert {*zip(poses.frame, poses.track, strict=True)} == instances(truth)
        turned = np.stack([mice.points, mice.points[:, :, MIRRORED]], axis=2)[poses.frame]
        off = np.linalg.norm(poses.points[:, None, None] - turned, axis=4)  # (n, animals, right way round or not, K)
        owner, mistaken = np.divmod(np.nanmean(off, axis=3).reshape(len(poses), -1).argmin(1), 2)
        assert np.nanmax(off[np.arange(len(poses)), owner, mistaken]) < 6
        assert 0.05 < mistaken.mean() < 0.6
        renamed = owner != poses.track
        first = poses.frame[renamed].min()
        assert set(owner[poses.frame == first].tolist()) == set(range(ANIMALS))
        assert mice.touching[first - 1].any()  # names change only after a touch
        assert 0.1 < renamed.mean() < 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_jitter_grows_towards_the_tail_and_scores_tell(seed: int) -> None:
    for name in FRAMES:
        mice = film(name, seed)
        poses = predict("jitter", mice, seed)
        assert instances(poses) == instances(mice.truth)
        off = errors(mice, poses)
        along = np.nanmean(off, axis=0)[np.argsort(BEHIND)]
        assert along[-1] > 4 * along[0] > 4
        assert np.corrcoef(np.arange(len(NODES)), along)[0, 1] > 0.9
        assert np.corrcoef(np.nanmean(off, axis=1), poses.score)[0, 1] < -0.4


@pytest.mark.parametrize("seed", SEEDS)
def test_eager_finds_too_much_and_is_sure_of_it(seed: int) -> None:
    for name in FRAMES:
        mice = film(name, seed)
        poses, truth = predict("eager", mice, seed), mice.truth
        assert 1.3 * len(truth) < len(poses) < 2.5 * len(truth)
        assert np.isfinite(poses.points).all()
        kind = poses.track // ANIMALS
        own, twin, ghost = (poses.take(np.flatnonzero(kind == i)) for i in range(3))
        assert len(own) == FRAMES[name] * ANIMALS
        assert errors(mice, own).mean() < 1.5
        off = np.linalg.norm(twin.points - mice.points[twin.frame, twin.track - ANIMALS], axis=2).mean(1)
        assert 3 < off.mean() < 12
        apart = np.linalg.norm(ghost.points[:, None] - mice.points[ghost.frame], axis=3).mean(2).min(1)
        assert np.median(apart) > 100
        assert ghost.score.min() > 0.7
        assert ghost.score.max() > np.median(own.score)


def test_files_hold_the_arrays(tmp_path: Path, films: dict[str, Film]) -> None:
    places = write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"truth", "truth_coco", *MODELS} == set(places)
    for name, mice in films.items():
        for of, poses in {"truth": mice.truth, **{model: predict(model, mice, 0) for model in MODELS}}.items():
            with np.load(places[of] / f"{name}.npz") as file:
                known = {"points", "frame", "track", "nodes", "labelled"}
                assert set(file) == (known if of == "truth" else known | {"score"})
            assert read_npz(places[of] / f"{name}.npz")[""].digest() == poses.digest()


def test_coco_files_hold_the_same_truth(tmp_path: Path, films: dict[str, Film]) -> None:
    places = write(tmp_path)
    for name, mice in films.items():
        document = json.loads((places["truth_coco"] / f"{name}.json").read_text(encoding="utf-8"))
        found, truth = read_coco(name, document).poses(), mice.truth
        assert found.nodes == truth.nodes
        for field in ("points", "frame", "track", "user", "labelled", "ignore", "crowd"):
            np.testing.assert_array_equal(getattr(found, field), getattr(truth, field), field)
        low, size = box_of(truth.points)
        np.testing.assert_array_equal(found.box, np.concatenate([low, size], axis=1))
        np.testing.assert_array_equal(found.area, box_area(truth.points))


def test_files_are_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    write(tmp_path / "here")
    code = "import sys; from pathlib import Path; from karat.demo.pose import write; write(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path / "there"], check=True)
    files = [path for path in sorted((tmp_path / "here").rglob("*")) if path.is_file()]
    assert len(files) == len(FRAMES) * (2 + len(MODELS))
    for path in files:
        assert path.read_bytes() == (tmp_path / "there" / path.relative_to(tmp_path / "here")).read_bytes()


def test_scores_tell_the_flaws_apart(tmp_path: Path) -> None:
    runs = run(tmp_path, workers=2)
    assert list(runs) == list(MODELS)

    def of(name: str) -> dict[str, float]:
        return {model: result.scores[name].value for model, result in runs.items()}

    pairs, found = of("n_pairs"), of("n_pred")
    precision = {model: pairs[model] / found[model] for model in runs}
    for best in ("mOKS", "oks_voc.mAP", "pck_voc.mAP", "mPCK", "PCK@5", "IDF1", "HOTA"):
        assert max(of(best), key=of(best).__getitem__) == "sharp", best
    for model, name in (("misses", "oks_voc.mAR"), ("jitter", "mPCK"), ("swaps", "IDF1"), ("eager", "MOTA")):
        assert min(of(name), key=of(name).__getitem__) == model, name
    assert min(precision, key=precision.__getitem__) == "eager"
    assert max(of("n_fn_unmatched"), key=of("n_fn_unmatched").__getitem__) == "misses"
    assert of("IDSW")["swaps"] > 10
    assert of("n_frames_without_prediction") == dict.fromkeys(MODELS, 0) | {
        "misses": sum(count // 12 for count in FRAMES.values())
    }
    assert (tmp_path / "runs" / "sharp" / "scores.json").exists()


def test_the_truth_may_be_either_file(tmp_path: Path) -> None:
    places = write(tmp_path)
    scores = [
        karat.evaluate("pose", pred=places["swaps"], truth=places[truth], workers=1).plain()["scores"]
        for truth in ("truth", "truth_coco")
    ]
    assert scores[0] == scores[1]
