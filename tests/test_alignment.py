"""Pictures beside their captions: made of folders by small networks, read from files, refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from clips import called, refused, values
from contract.compare import near

import karat
from karat.errors import KaratError
from karat.sources.aligned_sets import make_aligned
from karat.sources.captions import CAPTION, EDIT, LONGEST, captions

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_networks import save  # noqa: E402  (it needs both)

from karat.kernels import alignment  # noqa: E402
from karat.networks.clip import Clip  # noqa: E402
from karat.networks.load import feature_network  # noqa: E402

LONG = "a dog and " * 40
SAID = {"0000.png": "a cat", "0001": LONG, "0002": "  ", "0003": "a cat", "0005": "six", "0009": "no picture"}
ASKED = ["0000", "0001", "0002", "0003", "0005"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP, a SigLIP and a network without texts, and pictures: generated, real, before and after an edit."""
    place = tmp_path_factory.mktemp("alignment")
    for kind in ("clip", "siglip", "dinov2"):
        save(kind, place / kind)
    for seed, (name, count) in enumerate((("pred", 6), ("truth", 7), ("originals", 6))):
        folder(place / name, pictures(count, seed))
    edited = pictures(6, 9)
    edited[2] = pictures(6, 2)[2]  # nothing was edited
    folder(place / "edited", edited)
    (place / "captions.json").write_text(json.dumps(SAID))
    (place / "edits.json").write_text(json.dumps(list(edits())))
    return place


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No cache and no threads shared with other tests."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pictures(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (count, 40, 48, 3), np.uint8)


def folder(path: Path, images: Any) -> Path:
    path.mkdir(parents=True)
    for number, image in enumerate(images):
        cv2.imwrite(str(path / f"{number:04d}.png"), image[..., ::-1])
    return path


def edits() -> Iterator[dict[str, str]]:
    """Of the fourth picture the caption stays as it is."""
    for number in range(6):
        modified = "a cat" if number == 3 else f"a dog {'abcdef'[number]}"
        yield {"id": f"{number:04d}", "original_caption": "a cat", "modified_caption": modified}


def clip(home: Path, kind: str = "clip") -> Clip:
    found = feature_network(str(home / kind))
    assert isinstance(found, Clip)
    return found


def seen(net: Clip, images: Any) -> Any:
    return net.features(np.ascontiguousarray(np.moveaxis(images, -1, 1)))


def run(suite: str, home: Path, *more: Any, prompts: str = "captions.json", network: str = "clip") -> dict[str, Any]:
    sides = ("pred", "truth") if suite == "generation" else ("edited", "originals")
    given = ("--pred", home / sides[0], "--truth", home / sides[1], "--prompts", home / prompts)
    done = called("run", suite, *given, "--network", home / network, *more, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def wanted(home: Path, kind: str = "clip", prefix: str = "") -> Any:
    """The cosines of the pictures that have captions, taken from the network itself."""
    net = clip(home, kind)
    texts = [prefix + text for name, text in SAID.items() if name != "0009"]
    return alignment.cosines(seen(net, pictures(6, 0)[[int(name) for name in ASKED]]), net.texts(texts).features)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_clip_scores_are_the_literal_ones(kind: str, home: Path, tmp_path: Path) -> None:
    found = run("generation", home, "--out", tmp_path / "run", network=kind)
    scores = values(found)
    assert near(scores["clip_score"], 100 * np.maximum(wanted(home, kind), 0).mean(), 1e-9)
    assert (scores["n_pictures"], scores["n_captions_truncated"], scores["n_captions_empty"]) == (5, 1, 1)
    assert scores["r_precision"] is None
    assert scores["fid"] > 0
    said = " ".join(found["notes"])
    for words in (
        "1 picture without a caption left out, the first is '0004'",
        "1 caption without a picture left out, the first is '0009'",
        "1 caption longer than the network reads",
        "1 caption without a word",
        "r_precision is of 100 captions: undefined for 5 pictures",
    ):
        assert words in said
    assert f"pred_aligned by:{kind};weights:" in found["signature"]


def test_protocols(home: Path, tmp_path: Path) -> None:
    cosines = wanted(home)
    reference = values(run("generation", home, "--protocol", "reference", "--out", tmp_path / "reference"))
    assert near(reference["clip_score"], max(100 * cosines.mean(), 0), 1e-9)
    paper = run("generation", home, "--protocol", "paper", "--out", tmp_path / "paper")
    depicted = wanted(home, prefix="A photo depicts ")
    assert near(values(paper)["clip_score"], 2.5 * np.maximum(depicted, 0).mean(), 1e-9)
    assert "prefix:'A photo depicts '" in paper["signature"]


def test_captions_are_read_by_another_network_than_the_features(home: Path, tmp_path: Path) -> None:
    found = run("generation", home, "--clip", home / "clip", "--out", tmp_path / "run", network="dinov2")
    assert near(values(found)["clip_score"], 100 * np.maximum(wanted(home), 0).mean(), 1e-9)
    assert "|pred by:dinov2;" in found["signature"]
    assert "|pred_aligned by:clip;" in found["signature"]


def test_r_precision_of_captions(home: Path, tmp_path: Path) -> None:
    found = run("generation", home, "--set", "r_precision.candidates=4", "--out", tmp_path / "run")
    net = clip(home)
    texts = net.texts([text for name, text in SAID.items() if name != "0009"]).features
    images = seen(net, pictures(6, 0)[[int(name) for name in ASKED]])
    assert near(values(found)["r_precision"], alignment.r_precision(images, texts, 4).mean(), 1e-12)


@pytest.mark.parametrize("protocol", ["spec", "reference"])
def test_directions_are_the_literal_ones(protocol: str, home: Path, tmp_path: Path) -> None:
    scores = values(run("edits", home, "--protocol", protocol, "--out", tmp_path / "run", prompts="edits.json"))
    net, after = clip(home), pictures(6, 9)
    after[2] = pictures(6, 2)[2]
    before, images = seen(net, pictures(6, 2)), seen(net, after)
    said = [net.texts([one[name] for one in edits()]).features for name in ("original_caption", "modified_caption")]
    steps = alignment.directional_similarity(before, images, *said, 1e-8 if protocol == "reference" else 0.0)
    assert np.isnan(steps).sum() == (2 if protocol == "spec" else 0)
    assert near(scores["clip_directional_similarity"], np.nanmean(steps), 1e-9)
    assert scores["n_edits_without_step"] == np.isnan(steps).sum()
    assert near(scores["sim_0"], alignment.cosines(before, said[0]).mean(), 1e-9)
    assert near(scores["sim_1"], alignment.cosines(images, said[1]).mean(), 1e-9)
    assert near(scores["sim_image"], alignment.cosines(before, images).mean(), 1e-9)


def test_embeddings_stand_for_pictures_and_captions(home: Path, tmp_path: Path) -> None:
    whole = run("edits", home, "--out", tmp_path / "run", prompts="edits.json")
    kept = tmp_path / "run" / "made" / "pred_aligned.npz"
    again = karat.evaluate("edits", pred_aligned=kept)
    assert (again.plain()["scores"], again.signature) == (whole["scores"], whole["signature"])
    with np.load(kept) as arrays:
        plain = {name: arrays[name] for name in ("images", "texts", "original_images", "original_texts")}
    of_arrays = karat.evaluate("edits", pred_aligned=plain)
    assert of_arrays.scores["sim_image"] == again.scores["sim_image"]
    assert karat.functional.clip_score(make_aligned("it", plain)).keys() == {"clip_score"}


def test_arrays_and_lists_of_captions(home: Path) -> None:
    texts = ["a cat", "two", "a dog", "b", "c", "d"]
    sides = {"pred": pictures(6, 0), "truth": pictures(7, 1)}
    found = karat.evaluate("generation", **sides, prompts=texts, network=str(home / "clip"))
    net = clip(home)
    cosines = alignment.cosines(seen(net, pictures(6, 0)), net.texts(texts).features)
    assert near(found.scores["clip_score"].value, 100 * np.maximum(cosines, 0).mean(), 1e-9)


def test_other_captions_are_another_comparison(home: Path, tmp_path: Path) -> None:
    first = karat.evaluate("edits", **sides(home), prompts=home / "edits.json")
    other = [{**one, "modified_caption": "a fish"} for one in edits()]
    second = karat.evaluate("edits", **sides(home), prompts=other)
    assert str(first.identity) != str(second.identity)
    again = folder(tmp_path / "again", pictures(6, 5))
    third = karat.evaluate("edits", **{**sides(home), "pred": again}, prompts=home / "edits.json")
    assert str(first.identity) == str(third.identity)


def sides(home: Path) -> dict[str, Any]:
    return {"pred": home / "edited", "truth": home / "originals", "network": str(home / "clip")}


def test_what_is_there_is_not_computed_again(home: Path, tmp_path: Path) -> None:
    first = run("generation", home, "--out", tmp_path / "run")
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "made").rglob("*.parts/*.npz")}
    assert any(path.name.startswith("texts-") for path in parts)
    lost = next(path for path in parts if path.name.startswith("texts-"))
    lost.unlink()
    (tmp_path / "run" / "made" / "pred_aligned.npz").unlink()
    again = run("generation", home, "--out", tmp_path / "run")
    assert (again["scores"], again["signature"]) == (first["scores"], first["signature"])
    now = {path: path.stat().st_mtime_ns for path in parts}
    assert {path for path in parts if parts[path] != now[path]} == {lost}


def test_a_picture_that_cannot_be_read_is_told(home: Path, tmp_path: Path) -> None:
    given = folder(tmp_path / "in", pictures(6, 9))
    (given / "0001.png").write_bytes(b"no picture")
    heard: list[str] = []
    found = karat.evaluate("edits", **{**sides(home), "pred": given}, prompts=home / "edits.json", tell=heard.append)
    assert found.scores["n_pictures"].value == 5
    assert any("1 picture that cannot be read left out, the first is '0001'" in note for note in found.notes)
    assert any("0001" in sentence and "cannot be read" in sentence for sentence in heard)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is empty (0 bytes)"),
    "no JSON": (b"{", "cannot be read"),
    "bytes": (b"\xff\xfe", "cannot be read"),
    "NaN": (b'{"0000": NaN}', "NaN is not JSON"),
    "twice": (b'{"0000": "a", "0000": "b"}', "is repeated"),
    "twice as a file": (b'{"0000": "a", "0000.png": "b"}', "has '0000' twice"),
    "a number": (b"7", "is a int"),
    "no captions": (b"[]", "has no captions"),
    "no id": (b'[{"caption": "a"}]', "record 0 of"),
    "an id of another kind": (b'[{"id": true, "caption": "a"}]', "has no id"),
    "no caption": (b'[{"id": "0000"}]', "has no caption"),
    "two captions": (b'[{"id": "0000", "caption": "a", "text": "b"}]', "has more than one caption"),
    "a caption of another kind": (b'{"0000": {"caption": 3}}', "has a int as caption"),
    "a list": (b'{"0000": ["a"]}', "is a list"),
    "null": (b'{"0000": null}', "is a NoneType"),
    "half a letter": (b'{"0000": "\\ud800"}', "half of a letter"),
    "too long": (json.dumps({"0000": "a" * (LONGEST + 1)}).encode(), f"has {LONGEST + 1} letters"),
    "too deep": (b"[" * 100_000, "cannot be read"),
    "other pictures": (b'{"\\u0007\\n": "a"}', "No picture has a caption"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_captions(name: str, home: Path, tmp_path: Path) -> None:
    content, words = HOSTILE[name]
    (tmp_path / "captions.json").write_bytes(content)
    given = ("--pred", home / "edited", "--truth", home / "originals", "--network", home / "clip")
    of_one = {"pred": home / "pred", "truth": home / "truth", "metrics": ["clip_score"]}
    with pytest.raises(KaratError) as caught:
        karat.evaluate("generation", **of_one, prompts=tmp_path / "captions.json", network=str(home / "clip"))
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    refused(called("run", "edits", *given, "--prompts", tmp_path / "captions.json"))


def test_captions_of_every_spelling() -> None:
    one = {"a/b": ("x",), "7": ("",)}
    for given in (
        {"a/b": "x", "7": ""},
        {"a/b.JPG": {"text": "x", "seed": 3}, "7": {"prompt": ""}},
        [{"id": "a/b", "caption": "x"}, {"id": 7, "caption": ""}],
    ):
        assert captions(given, CAPTION) == one
    two = {"a": ("x", "y")}
    for edit in ({"a": {"original": "x", "modified": "y"}}, [{"id": "a", "original_caption": "x", "modified": "y"}]):
        assert captions(edit, EDIT) == two


def usual(home: Path, **other: Any) -> dict[str, Any]:
    return {"pred": home / "pred", "truth": home / "truth", "network": str(home / "clip"), **other}


REFUSED: dict[str, tuple[Mapping[str, Any], str]] = {
    "no captions": ({"clip": "clip_vit_l_14"}, "leave --clip out, or pass --prompts"),
    "no pictures": ({"prompts": {"0000": "a"}, "pred": np.ones((4, 3))}, "pass --pred with a folder of pictures"),
    "both": ({"prompts": {"0000": "a"}, "pred_aligned": {"images": np.ones((2, 2))}}, "leave --prompts or --aligned"),
    "no such network": ({"prompts": {"0000": "a"}, "clip": "inceptoin"}, "There is no network 'inceptoin'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, home: Path) -> None:
    given, words = REFUSED[name]
    with pytest.raises(KaratError, match=words):
        karat.evaluate("generation", **usual(home, **given))


def test_refusals_of_edits(home: Path) -> None:
    with pytest.raises(KaratError, match="pass --prompts too"):
        karat.evaluate("edits", **sides(home))
    with pytest.raises(KaratError, match="reads no texts"):
        karat.evaluate("edits", **{**sides(home), "network": str(home / "dinov2")}, prompts=home / "edits.json")
    with pytest.raises(KaratError, match="pass --truth with a folder"):
        karat.evaluate("edits", pred=home / "edited", network=str(home / "clip"), prompts=home / "edits.json")
    with pytest.raises(KaratError, match="edits needs pred_aligned"):
        karat.evaluate("edits")
    done = called("check", "edits", "--prompts", home / "edits.json")
    refused(done, "No captions are read here")


FILES: dict[str, tuple[dict[str, Any], str]] = {
    "no texts": ({"images": np.ones((2, 2))}, "has no texts"),
    "other widths": ({"images": np.ones((2, 2)), "texts": np.ones((2, 3))}, "texts of shape (2, 3)"),
    "other lengths": ({"images": np.ones((2, 2)), "texts": np.ones((1, 2))}, "texts of shape (1, 2)"),
    "NaN": ({"images": np.full((1, 2), np.nan), "texts": np.ones((1, 2))}, "NaN or infinite in row 0"),
    "objects": ({"images": np.array([[{}]], object), "texts": np.ones((1, 1))}, "objects"),
    "unknown": ({"images": np.ones((1, 1)), "texts": np.ones((1, 1)), "labels": np.ones(1)}, "an array 'labels'"),
    "half": ({"images": np.ones((1, 1)), "texts": np.ones((1, 1)), "original_images": np.ones((1, 1))}, "has half of"),
    "counts": ({"images": np.ones((1, 1)), "texts": np.ones((1, 1)), "empty": np.ones(1)}, "empty of"),
    "none": ({"images": np.ones((0, 2)), "texts": np.ones((0, 2))}, "no pictures with captions"),
}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04garbage", b"no archive"])
@pytest.mark.parametrize("suite", ["edits", "generation"])
def test_files_that_are_no_archives(suite: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    fields = ("--aligned",) if suite == "edits" else ("--pred", "--truth")
    done = called("run", suite, *(one for name in fields for one in (name, tmp_path / "a.npz")), "--strict")
    refused(done, "cannot be read")


@pytest.mark.parametrize("name", FILES)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    arrays, words = FILES[name]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(KaratError) as caught:
        karat.evaluate("edits", pred_aligned=tmp_path / "a.npz", strict=True)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
