"""The calls of the specification: metrics of generated images that put them through a network, batch by batch."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden._networks import image, weight
from test_startup import loaded

import karat
from karat import InputError, UsageError
from karat.functional import clip_directional_similarity, clip_score, fid, inception_score
from karat.kernels import alignment, frechet
from karat.kernels.draws import shuffled
from karat.kernels.inception_score import inception_score as score_of_logits

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from PIL import Image  # noqa: E402  (they need both)
from tiny_networks import save  # noqa: E402

from karat.networks.inception import InceptionGraph  # noqa: E402
from karat.networks.load import feature_network  # noqa: E402

NAME = "weights-inception-2015-12-05-6726825d.pth"
CAPTIONS = ["a cat", "two dogs", "", "an old tree by the sea", "snow"]


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of weights: Inception by the recipe, and a tiny CLIP under a published name."""
    folder = tmp_path_factory.mktemp("weights")
    state = InceptionGraph().state_dict()
    torch.save({key: torch.from_numpy(weight(key, one.shape, 2**0.5, "")) for key, one in state.items()}, folder / NAME)
    save("clip", folder / "openai" / "clip-vit-base-patch16")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_WEIGHTS", str(folder))
        yield folder


@pytest.fixture(scope="module")
def tap64() -> Any:
    return feature_network(taps=("64",))


def corners(batch: Any) -> Any:
    """A network that takes no time: the mean colours of four corners."""
    return torch.nn.functional.adaptive_avg_pool2d(batch.float(), 2).flatten(1)


@pytest.fixture(scope="module")
def quick() -> Any:
    return feature_network(corners)


@pytest.fixture(scope="module")
def logits() -> Any:
    return feature_network(taps=("logits_unbiased",))


@pytest.fixture(scope="module")
def clip() -> Any:
    return feature_network("clip_vit_b_16")


@pytest.fixture(autouse=True)
def few() -> Iterator[None]:
    """That there are few images is said by nearly every call here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FID of .* is far too large")
        yield


def images(seed: int, count: int, side: int = 32) -> np.ndarray:
    """(N, 3, H, W)"""
    many = [image(seed + i, side, side, 8) for i in range(count)]
    return np.stack(many).transpose(0, 3, 1, 2) if many else np.zeros((0, 3, side, side), np.uint8)


def batches(count: int, *edges: int) -> list[slice]:
    return [slice(*both) for both in pairwise((0, *edges, count))]


# --- values


def test_fid_is_that_of_the_features_of_the_network(tap64: Any) -> None:
    a, b = images(0, 5), images(50, 4)
    wanted = frechet.distance(tap64.features(a), tap64.features(b)).value
    assert wanted > 0
    assert fid(a, b, feature=64) == wanted
    assert fid(torch.from_numpy(a), torch.from_numpy(b), network=tap64) == wanted
    assert fid(imgs_dist1=a, imgs_dist2=b, network=tap64) == wanted
    assert fid(a, a, network=tap64) == pytest.approx(0, abs=1e-9)
    pictures = [[Image.fromarray(one.transpose(1, 2, 0)) for one in side] for side in (a, b)]
    assert fid(*pictures, network=tap64) == wanted


def test_fid_of_features_stays_the_metric_of_features(tap64: Any) -> None:
    a, b = tap64.features(images(0, 5)), tap64.features(images(50, 4))
    assert fid(a, b) == fid(pred=a, truth=b) == fid(a.tolist(), b.tolist()) == karat.FID()(a, b)
    assert fid({"features": a}, b) == karat.FID()(a, b)
    assert fid(a, b)["fid"] == fid(images(0, 5), images(50, 4), network=tap64)
    assert inception_score({"logits": a}, splits=2) == karat.InceptionScore(splits=2)({"logits": a})


def test_the_tap_and_the_resize_are_chosen(home: Path) -> None:
    a, b = images(0, 3), images(9, 3)
    taps = [fid(a, b, feature=tap, weights=home / NAME) for tap in (64, 192)]
    assert len({*taps, fid(a, b, feature=64, resize="torchmetrics", weights=home)}) == 3
    assert karat.FrechetInceptionDistance().network.dims == 2048
    with pytest.raises(UsageError, match="65"):
        fid(a, b, feature=65)


def test_the_inception_score_is_that_of_the_logits(logits: Any) -> None:
    a = images(0, 5)
    rows = logits.features(a)
    found = score_of_logits(rows, 2, order=shuffled(5, 0))
    assert inception_score(a, splits=2) == (found.mean, found.std())
    in_order = score_of_logits(rows, 2)
    assert inception_score(a, splits=2, network=logits, seed=None) == (in_order.mean, in_order.std())


def test_the_inception_score_of_one_part_has_no_deviation(quick: Any) -> None:
    metric = karat.ImageInceptionScore(splits=1, network=quick)
    metric.update(images(0, 5))
    mean, std = metric.compute()
    assert mean > 1
    assert std == 0
    with pytest.raises(InputError, match="5 samples cannot be cut into 10 parts"):
        inception_score(images(0, 5), network=quick)


def test_the_clip_score_is_that_of_the_embeddings(clip: Any, home: Path) -> None:
    a = images(0, 5)
    each = alignment.clip_score(clip.features(a), clip.texts(CAPTIONS).features)
    assert len(set(each)) > 1
    wanted = math.fsum(each) / 5
    folder = home / "openai" / "clip-vit-base-patch16"
    for name in ("clip_vit_b_16", "openai/clip-vit-base-patch16", folder, str(folder), clip):
        assert clip_score(a, CAPTIONS, model_name_or_path=name) == wanted
    assert clip_score(a[0], CAPTIONS[0], model_name_or_path=clip) == each[0]
    assert clip_score(Image.fromarray(a[0].transpose(1, 2, 0)), CAPTIONS[0], clip) == each[0]


def test_the_directional_similarity_is_that_of_the_embeddings(clip: Any) -> None:
    a, b, new = images(0, 5), images(50, 5), CAPTIONS[::-1]
    new[2] = "another"
    sides = (clip.features(a), clip.features(b), clip.texts(CAPTIONS).features, clip.texts(new).features)
    each = alignment.directional_similarity(*sides)
    assert clip_directional_similarity(a, b, CAPTIONS, new, model_name_or_path="clip_vit_b_16") == math.fsum(each) / 5
    assert clip_directional_similarity(a[0], b[0], CAPTIONS[0], new[0], model_name_or_path=clip) == each[0]


def test_what_has_no_direction_is_left_out_and_told(clip: Any) -> None:
    a, b, new = images(0, 2), images(50, 2), ["a", "b"]
    with pytest.warns(UserWarning, match="1 sample of 2"):
        found = clip_directional_similarity(a, [a[0], b[1]], ["c", "d"], new, model_name_or_path=clip)
    assert found == clip_directional_similarity(a[1], b[1], "d", "b", model_name_or_path=clip)
    with pytest.warns(UserWarning, match="1 sample of 1"):
        assert math.isnan(clip_directional_similarity(a[0], b[0], "a", "a", model_name_or_path=clip))


def test_captions_that_are_too_long_are_told(clip: Any) -> None:
    with pytest.warns(UserWarning, match="1 caption longer"):
        clip_score(images(0, 2), ["cat " * 100, "cat"], model_name_or_path=clip)


def test_a_function_is_a_network() -> None:
    a, b = images(0, 5), images(50, 4)
    means = [side.reshape(-1, 3, 2, 16, 2, 16).mean((3, 5)).reshape(-1, 12) for side in (a, b)]
    assert fid(a, b, network=corners) == pytest.approx(frechet.distance(*means).value, rel=1e-4)


def test_numbers_are_rounded_to_bytes_half_to_even(tap64: Any) -> None:
    seen = []

    def function(batch: Any) -> Any:
        seen.append(batch.numpy().copy())
        return batch.float().mean((2, 3))

    levels = np.array([0, 0.5, 1.5, 2.5, 127.4999, 254.5, 255, -2e-4, 255.0002]) / 255
    metric = karat.FrechetInceptionDistance(normalize=True, network=function)
    metric.update(np.broadcast_to(levels, (1, 3, 1, 9)), real=True)
    assert seen[0][0, 0].ravel().tolist() == [0, 0, 2, 2, 127, 254, 255, 0, 255]
    a, b = images(0, 4), images(9, 4)
    for dtype in (torch.float32, torch.float64):
        given = [torch.from_numpy(side).to(dtype) / 255 for side in (a, b)]
        assert fid(*given, normalize=True, network=tap64) == fid(a, b, network=tap64)


# --- state


@pytest.mark.parametrize("edges", [(), (1,), (2, 3), (1, 2, 3, 4), (0, 5)])
def test_any_batches_give_the_same_bits(tap64: Any, quick: Any, clip: Any, edges: tuple[int, ...]) -> None:
    a, b = images(0, 5), images(50, 5)
    distance, score = karat.FrechetInceptionDistance(network=tap64), karat.ClipScore(clip)
    edits = karat.ClipDirectionalSimilarity(clip)
    inception = karat.ImageInceptionScore(2, network=quick)
    for part in batches(5, *edges):
        distance.update(a[part], real=False)
        distance.update(b[part], real=True)
        inception.update(a[part])
        score.update(a[part], CAPTIONS[part])
        edits.update(a[part], b[part], CAPTIONS[part], ["x"] * len(a[part]))
    assert distance.compute() == fid(a, b, network=tap64)
    assert score.compute() == clip_score(a, CAPTIONS, clip)
    assert edits.compute() == clip_directional_similarity(a, b, CAPTIONS, ["x"] * 5, clip)
    assert inception.compute() == inception_score(a, splits=2, network=quick)
    assert distance.counts == {"generated": 5, "real": 5}


def test_samples_of_one_id_count_once(quick: Any) -> None:
    a, b = images(0, 5), images(50, 4)
    metric = karat.FrechetInceptionDistance(network=quick)
    metric.update(a, real=False, ids=range(5))
    metric.update(np.concatenate([b, b[:2]]), real=True, ids=torch.tensor([0, 1, 2, 3, 0, 1]))
    metric.update(a[3:], real=False, ids=["3", "4"])
    assert metric.counts == {"generated": 5, "real": 4}
    assert metric.compute() == fid(a, b, network=quick)


def test_merged_in_any_order_of_ids_the_bits_are_the_same(quick: Any) -> None:
    a, b = images(0, 6), images(50, 6)
    whole, score = karat.FrechetInceptionDistance(network=quick), karat.ImageInceptionScore(3, network=quick)
    score.update(a, ids=range(6))
    for real, side in ((False, a), (True, b)):
        whole.update(side, real, ids=range(6))
    for order in ([[0, 3], [1, 2, 4], [5]], [[5, 4], [], [3, 2, 1, 0]], [[2, 1], [2, 3, 0], [5, 0, 4]]):
        parts, scores = [], []
        for which in order:
            parts.append(karat.FrechetInceptionDistance(network=quick))
            scores.append(karat.ImageInceptionScore(3, network=quick))
            scores[-1].update(a[which], ids=which)
            parts[-1].update(b[which], real=True, ids=which)
            parts[-1].update(a[which], real=False, ids=which)
        for other, another in zip(parts[1:], scores[1:], strict=True):
            parts[0].merge(other)
            scores[0].merge(another)
        assert parts[0].compute() == whole.compute()
        assert scores[0].compute() == score.compute()


def test_merged_without_ids_the_others_follow(quick: Any) -> None:
    a, b = images(0, 6), images(50, 6)
    one, other = (karat.FrechetInceptionDistance(network=quick) for _ in range(2))
    one.update(a[:2], real=False)
    one.update(b, real=True)
    other.update(a[2:], real=False)
    one.merge(other)
    assert one.compute() == fid(a, b, network=quick)
    assert other.counts == {"generated": 4, "real": 0}
    one.merge(one)
    assert one.counts == {"generated": 12, "real": 12}


def test_what_is_of_another_kind_or_network_is_not_merged(quick: Any) -> None:
    metric = karat.FrechetInceptionDistance(network=quick)
    for other in (karat.FrechetInceptionDistance(192), karat.ImageInceptionScore(network=quick)):
        with pytest.raises(UsageError, match="cannot be merged"):
            metric.merge(other)


def test_reset_forgets_and_may_keep_the_real_images(quick: Any) -> None:
    a, b, c = images(0, 3), images(50, 4), images(80, 3)
    for keeps in (False, True):
        metric = karat.FrechetInceptionDistance(reset_real_features=not keeps, network=quick)
        metric.update(a, real=False)
        metric.update(b, real=True)
        assert metric.compute() == fid(a, b, network=quick)
        metric.reset()
        assert metric.counts == {"generated": 0, "real": 4 * keeps}
        metric.update(c, real=False)
        if not keeps:
            metric.update(b, real=True)
        assert metric.compute() == fid(c, b, network=quick)


# --- what is refused


def both(change: Callable[[np.ndarray], Any], **given: Any) -> Callable[[Any], Any]:
    return lambda network: fid(change(images(0, 3)), images(9, 3), network=network, **given)


REFUSED = {
    "one image": (both(lambda a: a[:1]), "1 generated image, but at least 2"),
    "no image": (both(lambda a: a[:0]), "0 generated images, but at least 2"),
    "grey": (both(lambda a: a[:, :1]), r"\(3, 1, 32, 32\), but \(N, 3, height, width\)"),
    "alpha": (both(lambda a: np.concatenate([a, a[:, :1]], 1)), r"\(3, 4, 32, 32\)"),
    "channels last": (both(lambda a: a.transpose(0, 2, 3, 1)[:, :5]), "in front of the height"),
    "video": (both(lambda a: a[None]), r"\(1, 3, 3, 32, 32\)"),
    "no height": (both(lambda a: a[:, :, :0]), r"\(3, 3, 0, 32\)"),
    "floats": (both(lambda a: a / 255), "set normalize=True"),
    "signed": (both(lambda a: a.astype(np.int64)), "int64"),
    "bytes": (both(lambda a: a, normalize=True), "leave normalize=True out"),
    "above": (both(lambda a: a / 254, normalize=True), "images, number 0 has numbers from 0 to 1.00394"),
    "below": (both(lambda a: a / 255 - 1e-5, normalize=True), "has numbers from -1e-05"),
    "nan": (
        both(lambda a: np.where(np.arange(3)[:, None, None, None] == 1, np.nan, a / 255), normalize=True),
        "number 1",
    ),
    "sizes": (both(lambda a: [a[0], a[1, :, :9]]), "one size and type was expected"),
    "objects": (both(lambda a: [a[0], None]), "is no array"),
    "mode": (both(lambda a: [Image.fromarray(a[0, 0])] * 3), "the mode L, but RGB"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_images_that_cannot_be_meant_are_refused(name: str, tap64: Any) -> None:
    call, why = REFUSED[name]
    with pytest.raises(InputError, match=why) as told:
        call(tap64)
    assert str(told.value).endswith(".")
    assert "\n" not in str(told.value)


def test_captions_and_images_are_as_many(clip: Any) -> None:
    a = images(0, 3)
    for given, text in ((a, ["x"] * 2), (a, "x"), (a[0], ["x", "y"]), (a[:0], "x")):
        with pytest.raises(UsageError, match="give one for each image"):
            clip_score(given, text, clip)
    for text in ([1, 2, 3], None, b"x"):
        with pytest.raises(UsageError, match="a string or a list of strings"):
            clip_score(a, text, clip)
    with pytest.raises(UsageError, match="3 and 2 images"):
        clip_directional_similarity(a, a[:2], ["x"] * 3, ["y"] * 3, clip)
    with pytest.raises(UsageError, match="the modified captions 2"):
        clip_directional_similarity(a, a, ["x"] * 3, ["y"] * 2, clip)


def test_a_refused_update_leaves_nothing_behind(clip: Any) -> None:
    metric = karat.ClipScore(clip)
    with pytest.raises(InputError, match="no images yet"):
        metric.compute()
    for text, ids in ((["x"], None), (["x", "y"], [1])):
        with pytest.raises(UsageError):
            metric.update(images(0, 2), text, ids=ids)
    assert metric.counts == {"images": 0}


def test_networks_that_do_not_fit_are_refused(tmp_path: Path, tap64: Any) -> None:
    with pytest.raises(UsageError, match="reads no captions"):
        karat.ClipScore(tap64)
    with pytest.raises(InputError, match="does not exist"):
        karat.FrechetInceptionDistance(weights=tmp_path / "none.pth")
    with pytest.raises(UsageError, match="at least 1 split"):
        karat.ImageInceptionScore(splits=0)


def test_few_images_are_told(tap64: Any) -> None:
    with pytest.warns(UserWarning, match="FID of 3 generated and 4 real images by 64 features"):
        fid(images(0, 3), images(9, 4), network=tap64)


def test_torch_waits_for_a_network() -> None:
    code = "import karat\nfrom karat.functional import fid, clip_score\nkarat.FrechetInceptionDistance\nkarat.ClipScore"
    assert "torch" not in loaded(code)
    code += "\nimport numpy as np\nfid(np.eye(4), np.eye(4) + 1)"
    assert "torch" not in loaded(code)


def test_a_training_loop_logs_fid(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "examples" / "train_gan.py"
    told = subprocess.run(
        [sys.executable, script, "--steps", "2", "--every", "1", "--images", "3", "--logs", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.findall(r"^step (\d): fid (\S+)$", told.stdout, re.MULTILINE)
    assert [step for step, _ in found] == ["1", "2"]
    assert all(float(value) > 0 for _, value in found)


# --- processes

WORKER = """
import datetime, sys, warnings
import numpy as np, torch, torch.distributed as dist
sys.path.insert(0, {tests!r})
from golden._networks import image
import karat
warnings.simplefilter("ignore")
rank, world = int(sys.argv[1]), 2
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=world,
                        timeout=datetime.timedelta(seconds=60))
a, b = (np.stack([image(i, 32, 32, 8) for i in side]).transpose(0, 3, 1, 2) for side in (range(5), range(50, 54)))
uneven = karat.FrechetInceptionDistance(64)
uneven.update(a[[slice(0, 4), slice(4, 5)][rank]], real=False)
uneven.update(b[[slice(0, 4), slice(4, 4)][rank]], real=True)
padded = karat.FrechetInceptionDistance(network=uneven.network)
places = [[0, 2, 4], [1, 3, 0]][rank]
padded.update(a[places], real=False, ids=places)
padded.update(b[places[:2]], real=True, ids=places[:2]) if rank else padded.update(b[[0, 2]], real=True, ids=[0, 2])
score = karat.ImageInceptionScore(2, network=uneven.network)
if rank == 1:
    score.update(a)
wholes = [one.gather() for one in (uneven, padded, score)]
print([whole.compute() for whole in wholes], [whole.counts for whole in wholes])
dist.destroy_process_group()
"""


def test_gathered_processes_have_the_bits_of_one(tap64: Any, tmp_path: Path) -> None:
    code = WORKER.format(tests=str(Path(__file__).parent))
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    told = [process.communicate(timeout=120)[0].strip() for process in ranks]
    a, b = images(0, 5), images(50, 4)
    distance = fid(a, b, network=tap64)
    score = inception_score(a, splits=2, network=tap64)
    sides = {"generated": 5, "real": 4}
    assert told == [str([distance, distance, score]) + " " + str([sides, sides, {"images": 5}])] * 2
    metric = karat.FrechetInceptionDistance(network=tap64)
    assert metric.gather() is metric
