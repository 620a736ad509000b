"""`karat check` finds what would spoil a run, before anything is computed."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
from clips import FAST, cut, karat, moving, noisy, pair, rectangle, save, write_video

from karat import check

SETTINGS = {"blur_ssim.blur": "gaussian"}
TRUTH, PRED, MASK = moving(), noisy(moving()), rectangle()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return pair(tmp_path_factory.mktemp("clean"), "ab")


def found(level=None, pred=PRED, truth=TRUTH, **more):
    """The messages of a level, all of them one printable line."""
    given = {"settings": SETTINGS, "workers": 1, **more}
    messages = [(one.level, one.sample, one.message) for one in check("transfer", pred=pred, truth=truth, **given)]
    assert all(message.isprintable() for _, _, message in messages)
    return [(sample, message) for which, sample, message in messages if level in (None, which)]


def assert_one(messages, *words):
    assert any(all(word in message for word in words) for _, message in messages), messages


def test_clean_inputs_have_no_errors_and_a_time(clean):
    done = karat("check", "transfer", "--pred", clean[0], "--truth", clean[1], *FAST)
    text = done.stdout.decode()
    assert done.returncode == 0
    assert done.stderr == b""
    assert "2 samples checked: 0 errors, 0 warnings." in text
    assert re.search(r"The run will take about .* 8 frames", text)
    assert "pass --pred-depth and --truth-depth" in text


def test_errors_come_first_and_the_exit_code_says_so(clean, tmp_path):
    pred = shutil.copytree(clean[0], tmp_path / "pred")
    cut(pred / "b.mp4")
    write_video(pred / "a.mp4", PRED, 24)
    done = karat("check", "transfer", "--pred", pred, "--truth", clean[1], *FAST)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 3
    assert lines[0].startswith("error    b: ")
    assert "b.mp4" in lines[0]
    assert lines[1].startswith("warning  a: ")
    assert lines[-1] == "2 samples checked: 1 error, 1 warning."


def test_nothing_is_computed(clean, tmp_path):
    before = sorted(clean[0].parent.rglob("*"))
    karat("check", "transfer", "--pred", clean[0], "--truth", clean[1], cwd=tmp_path)
    assert sorted(clean[0].parent.rglob("*")) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_truncated_videos(tmp_path, share, suffix):
    pred, truth = tmp_path / "p", tmp_path / "t"
    long = np.random.default_rng(0).integers(0, 255, (30, 48, 64, 3), np.uint8)
    for side in (pred, truth):
        write_video(side / f"a.{suffix}", long)
    cut(pred / f"a.{suffix}", share)
    assert_one(found("error", pred, truth), f"a.{suffix}")


def test_a_video_whose_index_is_whole_and_whose_end_is_missing(tmp_path):
    import av

    pred, truth = tmp_path / "p", tmp_path / "t"
    for side in (pred, truth):
        side.mkdir()
        with av.open(str(side / "a.mp4"), "w", options={"movflags": "faststart"}) as container:
            stream = container.add_stream("libx264", rate=12)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for picture in np.random.default_rng(0).integers(0, 255, (30, 48, 64, 3), np.uint8):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
    cut(pred / "a.mp4", 0.7)
    assert_one(found("error", pred, truth), "a.mp4", "truncated")


def test_a_range_that_was_declared_wrong():
    unit = {"pred": PRED / 255, "truth": TRUTH / 255}
    assert_one(found("error", **unit, value_range=(0, 255)), "--range 0..1")
    signed = {"pred": PRED / 127.5 - 1, "truth": TRUTH / 127.5 - 1}
    assert_one(found("error", **signed, value_range=(-255, 255)), "--range -1..1")
    assert_one(found("error", **signed, value_range=(0, 1)), "outside the declared range")
    assert_one(found("error", **unit), "--range")
    assert not found("error", **unit, value_range=(0, 1))
    assert not found("error", **signed, value_range=(-1, 1))
    assert_one(found("warning", pred=(PRED / 255).astype(np.uint8)), "nearly black")


def test_a_signed_clip_declared_as_unit_range_from_the_command_line(tmp_path):
    pred = save(tmp_path / "p", {"a": {"frames": (PRED / 255).astype(np.float32)}})
    truth = save(tmp_path / "t", {"a": {"frames": (TRUTH / 255).astype(np.float32)}})
    done = karat("check", "transfer", "--pred", pred, "--truth", truth, "--range", "0..255")
    assert done.returncode == 3
    assert b"--range 0..1" in done.stdout


def test_unequal_lengths():
    assert_one(found("error", PRED[:2]), "2 frames", "--on-length truncate")
    assert not found("error", PRED[:2], on_length="truncate")
    assert_one(found("note", PRED[:2], on_length="truncate"), "2 frames")


def test_unequal_sizes():
    assert_one(found("error", PRED[:, :24, :32]), "32x24", "64x48", "--on-size resize")
    assert_one(found("note", PRED[:, :24, :32], on_size="resize"), "resized")


def test_unequal_rates(tmp_path):
    write_video(tmp_path / "p" / "a.mp4", PRED, 24)
    write_video(tmp_path / "t" / "a.mp4", TRUTH, 12)
    assert_one(found("warning", tmp_path / "p", tmp_path / "t"), "24 frames a second", "12")


def test_missing_and_stray_samples(clean, tmp_path):
    pred = shutil.copytree(clean[0], tmp_path / "pred")
    (pred / "b.mp4").rename(pred / "z.mp4")
    messages = found(None, pred, clean[1])
    assert_one([one for one in messages if one[0] == "b"], "no pred was found")
    assert_one(messages, "1 pred without a truth", "'z'")


def test_missing_segments_are_a_warning_as_they_fail_nothing():
    segments = {"a": MASK.astype(np.uint8)}
    both = {"pred": {"a": PRED, "b": PRED}, "truth": {"a": TRUTH, "b": TRUTH}}
    given = {**both, "pred_segments": segments, "truth_segments": {**segments, "b": segments["a"]}}
    assert not found("error", **given)
    assert_one(found("warning", **given), "pred_segments", "scored as empty")


def test_one_folder_twice(clean):
    messages = found("warning", clean[1], clean[1])
    assert len(messages) == 2
    assert_one(messages, "same bytes", "--pred")


def test_masks():
    assert_one(found("warning", masks=np.zeros_like(MASK)), "mask", "empty")
    assert_one(found("warning", masks=np.ones_like(MASK)), "mask", "empty")
    assert_one(found("error", masks=MASK[:2]), "mask", "2 frames")
    assert_one(found("error", masks=MASK[:, ::2, ::2]), "mask", "32x24", "--on-size resize")
    assert_one(found("error", masks=MASK.astype(np.uint8) * 7), "mask")
    assert_one(found("error", masks=-1.0 * MASK), "weights")
    assert not found("error", masks=MASK)
    assert not found("error", masks=MASK[0])


def test_depth(recwarn):
    depth = 1.0 + MASK
    for nothing in (0 * depth, np.nan * depth, -depth):
        assert_one(found("warning", pred_depth=nothing, truth_depth=depth), "pred_depth", "no valid depth")
    assert_one(found("error", pred_depth=depth[:2], truth_depth=depth), "pred_depth", "2 frames")
    assert_one(found("error", pred_depth=depth[:, ::2], truth_depth=depth), "pred_depth", "--on-size resize")
    assert not found("error", pred_depth=depth, truth_depth=depth / 2)
    assert not recwarn.list


def test_segments_without_any():
    labels = MASK.astype(np.uint8)
    given = {"pred_segments": labels, "truth_segments": 0 * labels}
    assert_one(found("warning", **given), "truth_segments", "no segment")


def test_segments_without_a_name(tmp_path):
    np.savez(tmp_path / "a.npz", masks=MASK[None], names=np.array([""]))
    given = {"pred_segments": MASK[None], "truth_segments": tmp_path / "a.npz"}
    assert_one(found("warning", **given), "truth_segments", "without a name, 1")


def test_the_forecast_agrees_with_the_run(clean, tmp_path):
    """What check finds to be an error fails in the run, and what it does not find does not."""
    pred = shutil.copytree(clean[0], tmp_path / "pred")
    assert not found("error", pred, clean[1])
    assert karat("run", "transfer", "--pred", pred, "--truth", clean[1], *FAST).returncode == 0
    write_video(pred / "a.mp4", moving(0, 6))
    assert {sample for sample, _ in found("error", pred, clean[1])} == {"a"}
    done = karat("run", "transfer", "--pred", pred, "--truth", clean[1], *FAST)
    assert done.returncode == 3
    assert b"1 of 2 samples failed" in done.stderr


def test_check_takes_what_evaluate_takes():
    names = {"frames": 2, "stride": 1, "on_length": "truncate", "on_size": "resize", "value_range": (0, 1)}
    messages = [one.message for one in check("transfer", pred=PRED[:2], truth=TRUTH, settings=SETTINGS, **names)]
    assert messages
