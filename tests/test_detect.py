"""`karat detect`: boxes by tiny detectors drawn at random, beside a literal call of the same network frame by frame."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called, command, cut, karat, moving, refused, write_video
from test_startup import command as started
from test_startup import loaded

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_detectors import save  # noqa: E402  (it needs both)

from karat import InputError, UsageError, detect, evaluate  # noqa: E402

KINDS = ("owlvit", "owlv2", "grounding-dino")
SIZES = {"1": (48, 80), "2": (64, 48), "3": (48, 64)}  # wide, tall, and in between


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are faster so, beside other tests."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("models")
    return {kind: save(kind, home / kind) for kind in KINDS}


def write_truth(path: Path, ids: Any = SIZES, subject: str = "Red Cat") -> Path:
    records = [{"id": one, "caption": "it walks", "subject": subject, "bboxes": [[0.1, 0.1, 0.5, 0.5]]} for one in ids]
    path.write_text(json.dumps(records))
    return path


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return write_truth(tmp_path / "truth.json")


def clips(frames: int = 5) -> dict[str, np.ndarray]:
    return {name: moving(seed, frames, *size) for seed, (name, size) in enumerate(SIZES.items())}


def films(folder: Path, count: int = 3, frames: int = 3, size: tuple[int, int] = (48, 64)) -> Path:
    """Videos as the specification lays them out: <id>/<one name for all>.mp4."""
    for seed in range(count):
        write_video(folder / str(seed + 1) / "2_of_40_2.mp4", moving(seed, frames, *size))
    return folder


def read(path: Path) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in json.loads(path.read_text())}


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has come to its end, soon."""
    try:
        process.wait(0.005)
    except subprocess.TimeoutExpired:
        return False
    return True


def literal(kind: str, folder: Path, frames: Iterable[np.ndarray], text: str) -> Iterator[tuple[list[float], float]]:
    """The best box of each frame, as the model and its own post-processing give it, one frame a call, not clipped."""
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(folder)
    for frame in frames:
        inputs = processor(images=frame, text=text if kind == "grounding-dino" else [[text]], return_tensors="pt")
        with torch.no_grad():
            outputs = model(**inputs)
        (found,) = processor.post_process_grounded_object_detection(
            outputs, threshold=0.1, target_sizes=[(frame.shape[0], frame.shape[1])]
        )
        yield found["boxes"][found["scores"].argmax()].tolist(), float(found["scores"].max())


# --- numbers


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_are_those_of_a_literal_call(kind, models, truth, tmp_path):
    detect(clips(3), truth, tmp_path / "boxes.json", model=models[kind], batch=2)
    found = read(tmp_path / "boxes.json").values()
    text = "red cat." if kind == "grounding-dino" else "Red Cat"
    expected = literal(kind, models[kind], itertools.chain.from_iterable(clips(3).values()), text)
    outside = 0
    for record, size in zip(found, SIZES.values(), strict=True):
        assert (record["height"], record["width"]) == size
        for box, score in zip(record["bboxes"], record["scores"], strict=True):
            whole, sure = next(expected)
            inside = np.clip(whole, 0, size[::-1] * 2)
            np.testing.assert_allclose(box, inside, atol=0.02)
            np.testing.assert_allclose(score, sure, atol=1e-4)
            outside += not np.allclose(inside, whole)
    assert outside or kind != "owlvit"  # some had to be clipped


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_has_the_same_bits_in_a_video_of_any_length(kind, models, truth, tmp_path):
    clip = moving(4, 17)
    videos = {"1": clip[:1], "2": clip[:5], "3": clip}
    detect(videos, truth, tmp_path / "boxes.json", model=models[kind], batch=4)
    found = read(tmp_path / "boxes.json")
    for name in "12":
        for column in ("bboxes", "scores"):
            assert found[name][column] == found["3"][column][: len(videos[name])]


def test_boxes_under_the_threshold_are_null(models, truth, tmp_path):
    low, high = tmp_path / "low.json", tmp_path / "high.json"
    detect(clips(), truth, low, model=models["owlv2"])
    scores = sorted(score for record in read(low).values() for score in record["scores"])
    middle = scores[len(scores) // 2]
    detect(clips(), truth, high, model=models["owlv2"], threshold=middle)
    for name, record in read(high).items():
        for score, box, before in zip(record["scores"], record["bboxes"], read(low)[name]["scores"], strict=True):
            assert (score, box is None) == ((before, False) if before > middle else (None, True))


def test_the_identity_holds_all_that_can_change_a_number(models, truth, tmp_path):
    def identity(**given: Any) -> str:
        (tmp_path / "boxes.json.journal").unlink(missing_ok=True)
        detect({"1": moving(0, 1)}, truth, tmp_path / "boxes.json", **{"model": models["owlvit"], **given})
        return str(read(tmp_path / "boxes.json")["1"]["detector"])

    other = shutil.copytree(models["owlvit"], tmp_path / "owlvit")
    first = identity()
    assert identity(model=other) == first  # wherever it lies
    for word in (
        "OwlViTForObjectDetection",
        "OwlViTImageProcessorPil",
        "float32|cpu|batch:8",
        "threshold:0.1",
        "torch:",
    ):
        assert word in first
    settings = json.loads((other / "processor_config.json").read_text())
    settings["image_processor"]["resample"] = 0
    (other / "processor_config.json").write_text(json.dumps(settings))
    changed = [
        {"model": other},
        {"model": models["owlv2"]},
        {"threshold": 0.2},
        {"prompt": "a {subject}"},
        {"batch": 2},
    ]
    assert len({first, *(identity(**one) for one in changed)}) == 1 + len(changed)
    assert first.isprintable()


def test_floating_frames_are_read_in_their_declared_range(models, truth, tmp_path):
    clip = moving(0, 3)
    for name, videos, value_range in (("bytes", clip, None), ("floats", clip / np.float32(255), (0.0, 1.0))):
        detect({"1": videos}, truth, tmp_path / f"{name}.json", model=models["owlvit"], value_range=value_range)
    both = [read(tmp_path / f"{name}.json")["1"] for name in ("bytes", "floats")]
    assert both[0]["bboxes"] == both[1]["bboxes"]
    assert both[1]["detector"] == both[0]["detector"] + "|range:0..1"
    (failure,) = detect({"1": clip / 255}, truth, tmp_path / "undeclared.json", model=models["owlvit"]).failures
    assert "--range 0..1" in failure.reason


@pytest.mark.skipif(not torch.cuda.is_available(), reason="half precision is for GPUs")
@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_on_a_gpu_finds_about_the_same(kind, models, truth, tmp_path):
    for device in ("cpu", "cuda"):
        detect(clips(), truth, tmp_path / device, model=models[kind], device=device)
    for name, record in read(tmp_path / "cuda.json").items():
        assert "float16|cuda" in record["detector"]
        np.testing.assert_allclose(record["scores"], read(tmp_path / "cpu.json")[name]["scores"], atol=0.02)


# --- which video is whose


def test_videos_find_their_ids_by_stem_by_folder_or_by_pattern(models, tmp_path):
    clip = moving(0, 1)
    names = ("1.mp4", "2/any name.mp4", "3/a.mp4", "3/b.mp4", "deep/4/x.mp4", "5/c.mp4", "5.mp4", "run_6_seed0.mp4")
    for name in names:
        write_video(tmp_path / "videos" / name, clip)
    truth, out, heard = write_truth(tmp_path / "truth.json", range(1, 8)), tmp_path / "boxes.json", []
    result = detect(tmp_path / "videos", truth, out, model=models["owlvit"], tell=heard.append)
    assert list(read(out)) == ["1", "2", "5"]
    assert (result.videos, result.failures, result.without_video, result.without_truth) == (3, (), 4, 5)
    assert heard == ["left out: 4 ids of the truth, without a video.", "left out: 5 videos, of no id of the truth."]
    with pytest.raises(InputError, match=r"No video belongs to an id.*run_6_seed0.*--id"):
        detect({"run_6_seed0": clip}, truth, out, model=models["owlvit"])
    shutil.rmtree(tmp_path / "videos")
    write_video(tmp_path / "videos" / "run_6_seed0.mp4", clip)
    detect(tmp_path / "videos", truth, out, model=models["owlvit"], id_pattern=r"run_(\d+)")
    assert list(read(out)) == ["6"]


def test_what_cannot_be_asked_for_is_a_failure_of_its_video(models, tmp_path):
    for subject, reason in ((" ", "names no subject"), ("a very long subject of words", "at most 16")):
        truth = write_truth(tmp_path / "truth.json", "12", subject)
        records = json.loads(truth.read_text())
        records[1]["subject"] = "cat"
        truth.write_text(json.dumps(records))
        result = detect({"1": moving(0, 1), "2": moving(0, 1)}, truth, tmp_path / "boxes.json", model=models["owlvit"])
        assert [failure.sample for failure in result.failures] == ["1"]
        assert reason in result.failures[0].reason
        found = read(tmp_path / "boxes.json")
        assert found["1"] == {"id": "1", "failure": result.failures[0].reason}
        assert "bboxes" in found["2"]


# --- stopped, damaged, changed


def test_a_damaged_video_is_one_failure_and_tried_again(models, truth, tmp_path):
    videos, out = films(tmp_path / "videos"), tmp_path / "new" / "boxes.json"
    whole = (videos / "2" / "2_of_40_2.mp4").read_bytes()
    cut(videos / "2" / "2_of_40_2.mp4")
    line = (
        "detect",
        "--videos",
        videos,
        "--truth",
        truth,
        "--out",
        out,
        "--model",
        models["owlvit"],
        "--device",
        "cpu",
    )
    done = called(*line)
    said = done.stderr.decode().splitlines()
    assert done.returncode == 3
    assert [one.partition("(")[0] for one in said[1:]] == [
        "karat: 1 of 3 videos failed; the same command tries only them again.",
        f"karat: 2: {videos}/2/2_of_40_2.mp4 cannot be read ",
    ]
    assert [name for name, one in read(out).items() if "failure" in one] == ["2"]
    (videos / "2" / "2_of_40_2.mp4").write_bytes(whole)
    done = called(*line)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode().splitlines() == [
        "karat: 2 videos done before.",
        f"karat: the boxes of 3 videos are in {out}.",
    ]
    assert list(read(out)) == ["1", "2", "3"]
    assert [path.name for path in out.parent.iterdir()] == ["boxes.json"]


@pytest.mark.parametrize("sign, code", [(signal.SIGKILL, -9), (signal.SIGINT, 130)], ids=["killed", "interrupted"])
def test_a_stopped_command_goes_on_and_ends_in_the_same_bytes(sign, code, models, tmp_path):
    count = 8
    videos, truth = (
        films(tmp_path / "videos", count, 12, (240, 320)),
        write_truth(tmp_path / "t.json", range(1, count + 1)),
    )
    undisturbed, out, again = (tmp_path / name for name in ("undisturbed.json", "boxes.json", "again.json"))
    detect(videos, truth, undisturbed, model=models["owlvit"], device="cpu", batch=1)
    line = ["detect", "--videos", videos, "--truth", truth, "--model", models["owlvit"], "--device", "cpu"]
    line += ["--batch", 1, "--out", out]
    journal = out.with_name("boxes.json.journal")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command(*line), env=env) as process:
        while not lines(journal) and not ended(process):
            pass
        process.send_signal(sign)
    assert process.returncode == code
    assert 0 < lines(journal) < count
    assert not out.exists()
    shutil.copy(journal, again.with_name("again.json.journal"))
    with journal.open("a") as file:
        file.write('{"id": "8", "key": {"de')  # as a kill may leave it
    done = called(*line)
    assert done.returncode == 0
    assert b" done before.\n" in done.stderr
    assert out.read_bytes() == undisturbed.read_bytes()
    assert not journal.exists()

    # what is in the journal is not detected again: a mark in it comes through
    marked = again.with_name("again.json.journal").read_text().replace('"width": 320', '"width": 321', 1)
    again.with_name("again.json.journal").write_text(marked)
    detect(videos, truth, again, model=models["owlvit"], device="cpu", batch=1)
    assert again.read_text() == undisturbed.read_text().replace('"width": 320', '"width": 321', 1)


def test_what_is_kept_is_not_detected_again(models, truth, tmp_path):
    heard: list[str] = []
    for videos, said in ((clips(), []), (clips() | {"2": moving(7)}, ["2 videos done before."])):
        heard.clear()
        detect(videos, truth, tmp_path / "kept.json", model=models["owlvit"], keep=True, tell=heard.append)
        assert heard[-1:] == said
        detect(videos, truth, tmp_path / "whole.json", model=models["owlvit"])
        assert (tmp_path / "kept.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


def test_a_journal_of_anything_else_is_told_and_done_again(models, truth, tmp_path):
    videos, out, heard = films(tmp_path / "videos"), tmp_path / "boxes.json", []
    broken = videos / "3" / "2_of_40_2.mp4"
    broken.write_bytes(b"no video")

    def sentences(**given: Any) -> list[str]:
        heard.clear()
        detect(videos, truth, out, **{"model": models["owlvit"], "tell": heard.append, **given})
        return list(heard)

    assert sentences() == []
    assert sentences() == ["2 videos done before."]
    begun = f"{out}.journal was begun with"
    for given in ({"threshold": 0.5}, {"prompt": "a {subject}"}, {"model": models["owlv2"]}, {}):
        assert sentences(**given) == [f"{begun} another detector, threshold or prompt: 2 videos done again."]
    write_video(videos / "2" / "2_of_40_2.mp4", moving(9, 3))
    assert sentences() == [f"{begun} other videos: 1 video done again.", "1 video done before."]
    write_truth(truth, subject="dog")
    assert sentences() == [f"{begun} other subjects: 2 videos done again."]
    (tmp_path / "boxes.json.journal").write_bytes(b'[1]\n{"id": [], "key": 1, "record": 2}\n\xff\n')
    assert sentences() == []


# --- weights


def test_missing_weights_say_what_to_put_where(truth, tmp_path):
    home = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "KARAT_WEIGHTS": str(tmp_path / "weights")}
    videos = films(tmp_path / "videos", 1, 1)
    done = karat("detect", "--videos", videos, "--truth", truth, "--out", tmp_path / "boxes.json", env=home)
    text = done.stderr.decode().splitlines()[-1]
    assert done.returncode == 2
    for words in (
        "The weights of google/owlvit-large-patch14 are not here",
        "put config.json, the other *.json and *.txt, and model*.safetensors or pytorch_model*.bin of the repository",
        f"revision main, into {tmp_path}/weights/google/owlvit-large-patch14, or pass --model FOLDER.",
    ):
        assert words in text
    assert not (tmp_path / "boxes.json").exists()


def test_a_name_is_found_among_the_weights_that_a_user_keeps(models, truth, tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_WEIGHTS", str(tmp_path))
    shutil.copytree(models["owlvit"], tmp_path / "google" / "tiny")
    detect({"1": moving(0, 1)}, truth, tmp_path / "boxes.json", model="google/tiny")
    assert read(tmp_path / "boxes.json")["1"]["detector"].startswith("google/tiny|weights:")


class Evil:
    """A pickle that leaves a file where it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def test_weights_that_are_not_safetensors_are_read_without_running_them(models, truth, tmp_path):
    folder = shutil.copytree(models["owlvit"], tmp_path / "owlvit")
    (folder / "model.safetensors").unlink()
    model = transformers.OwlViTForObjectDetection.from_pretrained(models["owlvit"])
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    for name, place in (("safetensors", models["owlvit"]), ("bin", folder)):
        detect(clips(1), truth, tmp_path / f"{name}.json", model=place)
    assert [one["bboxes"] for one in read(tmp_path / "bin.json").values()] == [
        one["bboxes"] for one in read(tmp_path / "safetensors.json").values()
    ]
    for write in (torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))):
        write({"layer": Evil(tmp_path / "mark")}, folder / "pytorch_model.bin")
        with pytest.raises(InputError, match="cannot be read"):
            detect(clips(1), truth, tmp_path / "evil.json", model=folder)
    assert not (tmp_path / "mark").exists()


def lacking(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    del tensors["class_head.dense0.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def other_kind(folder: Path) -> None:
    transformers.CLIPConfig().save_pretrained(folder)


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lacking, "lacks 1 parameters of OwlViTForObjectDetection, such as class_head.dense0.weight"),
        (other_kind, "a zero-shot detector of transformers was expected"),
        (lambda folder: (folder / "config.json").write_text("[]"), "the settings of a network was expected"),
        (lambda folder: (folder / "config.json").unlink(), "lacks config.json or weights"),
        (lambda folder: (folder / "model.safetensors").unlink(), "lacks config.json or weights"),
        (lambda folder: cut(folder / "model.safetensors"), "cannot be read"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no vocabulary"),
        (lambda folder: (folder / "processor_config.json").unlink(), "cannot be read"),
    ],
    ids=itertools.count(),
)
def test_a_folder_that_holds_no_whole_detector_is_refused(spoil, words, models, truth, tmp_path):
    folder = shutil.copytree(models["owlvit"], tmp_path / "owlvit")
    spoil(folder)
    with pytest.raises(InputError) as refusal:
        detect(clips(1), truth, tmp_path / "boxes.json", model=folder)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


# --- the command


@pytest.mark.parametrize(
    "given, words",
    [
        (("--threshold", "1"), "--threshold is at least 0 and below 1, not 1."),
        (("--threshold", "nan"), "--threshold is at least 0 and below 1, not nan."),
        (("--batch", "0"), "--batch starts at 1, not 0."),
        (("--prompt", "a cat"), "write {subject}"),
        (("--range", "1"), "--range 1 is no range"),
        (("--out", "."), "is a folder"),
        (("--device", "abacus"), "--device abacus cannot be used here"),
        (("--device", "meta"), "--device meta cannot be used here"),
        (("--model", "/no/such/folder"), "/no/such/folder does not exist"),
        (("--videos", "nothing"), "nothing does not exist"),
        (("--truth", "nothing.json"), "nothing.json does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_refused_in_one_sentence(given, words, models, truth, tmp_path):
    videos = films(tmp_path / "videos", 3, 1)
    usual = {"--videos": videos, "--truth": truth, "--out": tmp_path / "boxes.json", "--model": models["owlvit"]}
    options = {**usual, **dict([given])}
    refused(called("detect", *itertools.chain.from_iterable(options.items())), words)
    assert not (tmp_path / "boxes.json").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_gpu_that_is_not_here_is_refused(models, truth, tmp_path):
    with pytest.raises(UsageError, match="--device cuda cannot be used here"):
        detect(clips(1), truth, tmp_path / "boxes.json", model=models["owlvit"], device="cuda")


def test_sam_3_needs_what_transformers_needs_for_it(models, truth, tmp_path):
    if "torchvision" in sys.modules or transformers.utils.is_torchvision_available():
        pytest.skip("torchvision is here")
    folder = shutil.copytree(models["owlvit"], tmp_path / "sam3")
    (folder / "config.json").write_text('{"model_type": "sam3_video"}')
    with pytest.raises(UsageError, match="pip install torchvision"):
        detect(clips(1), truth, tmp_path / "boxes.json", model=folder)


def test_help_waits_for_no_library():
    assert not loaded(started("detect", "--help")) & {"torch", "transformers", "numpy", "av", "cv2", "PIL"}


def test_a_missing_extra_is_named(truth, tmp_path):
    code = (
        "import sys\nsys.modules['transformers'] = None\nimport karat\n"
        f"try:\n    karat.detect({str(tmp_path)!r}, {str(truth)!r}, 'boxes.json')\n"
        "except karat.UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Detection needs transformers, which is not installed: pip install 'karat[networks]'.\n"


# --- evaluated at once


def test_videos_are_detected_in_and_evaluated(models, truth, tmp_path):
    """What a run of videos says is what a run of their boxes says; done again, nothing is detected again."""
    videos, out, boxes = films(tmp_path / "videos"), tmp_path / "run", tmp_path / "boxes.json"
    line = ("run", "control", "--videos", videos, "--truth-videos", videos, "--truth", truth, "--out", out)
    network = ("--model", models["owlvit"], "--device", "cpu")
    done = called(*line, *network, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    detect(videos, truth, boxes, model=models["owlvit"], device="cpu")
    alone = evaluate("control", pred=boxes, ceiling=boxes, truth=truth)
    found = json.loads(done.stdout)
    assert found["scores"] == json.loads(json.dumps(alone.plain()["scores"]))
    assert found["signature"] == alone.signature
    detector = read(boxes)["1"]["detector"]
    signed = detector.replace("|", ";")
    assert f"|pred by:{signed}|ceiling by:{signed}|" in found["signature"]
    assert any(f"Boxes of pred were detected by {detector}." in note for note in found["notes"])
    again = called(*line, *network, "--format", "json")
    assert again.stdout == done.stdout
    assert again.stderr.decode().splitlines().count("karat: 3 videos done before.") == 2


def test_a_video_in_which_nothing_can_be_detected_is_a_sample_that_fails(models, truth, tmp_path, monkeypatch):
    videos = films(tmp_path / "videos")
    cut(videos / "2" / "2_of_40_2.mp4")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    line = ("run", "control", "--videos", videos, "--truth", truth, "--model", models["owlvit"], "--device", "cpu")
    done = called(*line, "--format", "json")
    assert done.returncode == 3
    assert b"1 of 3 samples failed" in done.stderr
    assert b"nothing could be detected: " in done.stderr
    assert json.loads(done.stdout)["scores"]["coverage"]["failed"] == 1


@pytest.mark.parametrize(
    "given, words",
    [
        (["--videos", ".", "--pred", "boxes.json"], "Either pred is given, or the videos"),
        (["--pred", "boxes.json", "--model", "tiny"], "No network is needed here"),
    ],
)
def test_videos_and_boxes_are_not_mixed(given, words, truth):
    done = called("run", "control", "--truth", truth, *given)
    assert done.returncode == 2
    assert words in done.stderr.decode()
