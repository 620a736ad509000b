"""The command line as people and programs use it, and as somebody who wishes it ill."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from clips import (
    COUNTS,
    FAST,
    called,
    command,
    cut,
    karat,
    moving,
    noisy,
    pair,
    rectangle,
    refused,
    save,
    scored,
    values,
    write_video,
)

import karat as package

ODD_NAMES = (
    "with space",
    "ünï côdé 雪",
    "dots...",
    "a..b",
    "-dash",
    "new\nline",
    "[red]bracket[bold]",
    "esc\x1b[31m",
    "a=b|c`d",
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Three pairs, masks and label maps; tests do not write here."""
    home = tmp_path_factory.mktemp("clips")
    pred, truth = pair(home)
    mask, label = rectangle(), rectangle().astype(np.uint8)
    save(home / "fg", {name: {"mask": mask} for name in "abc"})
    save(home / "pred_segments", {name: {"labels": np.roll(label, 2, axis=2)} for name in "abc"})
    save(home / "truth_segments", {name: {"labels": label} for name in "abc"})
    return pred, truth, home


@pytest.fixture(scope="module")
def finished(clips, tmp_path_factory):
    """A run on disk and what its command printed as JSON."""
    pred, truth, home = clips
    out = tmp_path_factory.mktemp("runs") / "run"
    done = karat(
        "run", "transfer", "--pred", pred, "--truth", truth, "--masks", home / "fg", *FAST, "--out", out, *FORMAT_JSON
    )
    assert done.returncode == 0, done.stderr
    return out, done


FORMAT_JSON = ("--format", "json")


def both(clips, *more):
    return "--pred", clips[0], "--truth", clips[1], *FAST, *more


# --- what is printed


def test_version_help_and_no_arguments():
    assert karat("--version").stdout.decode() == f"karat {package.__version__}\n"
    for args in (["--help"], ["-h"], ["run", "--help"], ["check", "-h"], ["show", "-h"], ["demo", "-h"]):
        done = karat(*args)
        assert done.returncode == 0
        assert b"Usage" in done.stdout
        assert done.stderr == b""
    words = karat("run", "-h", env={"COLUMNS": "200"}).stdout.decode()
    for option in ("--pred", "--truth-depth", "--masks", "--set", "--on-length", "--workers", "--strict", "--out"):
        assert option in words


def test_list_and_describe_name_everything():
    listed = karat("list").stdout.decode()
    for name in ("transfer", "blur_ssim", "canny_f1", "depth_rmse", "segment_iou", "psnr"):
        assert name in listed
    page = called("describe", "canny_f1").stdout.decode()
    for word in ("Canny 1986", "tolerance", "canny_recall", "transfer@reference-upstream: edges_of='rgb'"):
        assert word in page
    assert page.count("tolerance   0") == 1, "a parameter is listed once"
    assert called("describe", "CannyF1").stdout.decode() == page
    assert called("describe", "canny_precision").stdout.decode() == page
    suite = called("describe", "transfer").stdout.decode()
    for word in ("spec", "reference", "reference-upstream", "paper", "SSIM dynamic range", "segment_iou.overlap"):
        assert word in suite
    refused(called("describe", "nope"), "nope", "canny_f1", "transfer")


def test_scores_json_has_the_agreed_layout(finished):
    out, done = finished
    content = json.loads(done.stdout)
    assert list(content) == ["suite", "protocol", "signature", "scores", "notes"]
    assert (content["suite"], content["protocol"]) == ("transfer", "spec")
    names = {"blur_ssim", "canny_f1_score", "canny_precision", "canny_recall"}
    regions = ("", "@foreground", "@background")
    assert set(content["scores"]) == {name + region for name in names for region in regions}
    for one in content["scores"].values():
        assert list(one) == ["value", *COUNTS]
        assert sum(one[count] for count in COUNTS) == 3
        assert isinstance(one["value"], float)
    assert content["signature"].startswith(f"karat:{package.__version__}|transfer@spec|")
    assert "|n:3|data:" in content["signature"]
    assert "\n" not in content["signature"]
    assert all("pass --" in note for note in content["notes"])
    assert (out / "scores.json").read_bytes() == done.stdout


def test_formats_agree(finished):
    out, done = finished
    content = json.loads(done.stdout)
    assert karat("show", out, *FORMAT_JSON).stdout == done.stdout
    records = [
        {"score": key.partition("@")[0], "region": key.partition("@")[2] or "all", **one}
        for key, one in content["scores"].items()
    ]
    lines = list(csv.DictReader(io.StringIO(called("show", out, "--format", "csv").stdout.decode())))
    assert lines == [{name: str(value) for name, value in one.items()} for one in records]
    table = pq.read_table(io.BytesIO(called("show", out, "--format", "parquet").stdout))
    assert table.to_pylist() == records
    assert table.schema.metadata[b"signature"].decode() == content["signature"]
    markdown = called("show", out, "--format", "markdown").stdout.decode()
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert [cell.strip() for cell in rows[1].strip("|").split("|")][:2] == [records[0]["score"], "all"]
    assert len(rows) == 1 + len(records)
    assert content["signature"] in markdown
    shown = karat("show", out).stdout.decode()
    assert content["signature"] in shown
    assert f"{content['scores']['canny_f1_score@foreground']['value']:.4f}" in shown
    assert karat("show", out, env={"COLUMNS": "40", "TERM": "dumb", "NO_COLOR": "1"}).stdout.decode() == shown
    assert "\x1b" not in shown


def test_undefined_is_null_empty_and_a_dash(tmp_path):
    flat = save(tmp_path / "flat", {"a": {"frames": np.zeros((2, 48, 64, 3), np.uint8)}})
    out = tmp_path / "run"
    args = ("run", "transfer", "--pred", flat, "--truth", flat, "--metric", "canny_f1", "--metric", "psnr")
    done = karat(*args, "--out", out, *FORMAT_JSON)
    assert done.returncode == 0
    scores = json.loads(done.stdout)["scores"]
    assert scores["canny_f1_score"] == {"value": None, "n": 0, "undefined": 1, "excluded": 0, "failed": 0}
    assert scores["psnr"]["value"] == "inf"
    lines = called("show", out, "--format", "csv").stdout.decode().splitlines()
    assert "canny_f1_score,all,,0,1,0,0" in lines
    table = pq.read_table(io.BytesIO(called("show", out, "--format", "parquet").stdout)).to_pylist()
    assert table[0]["value"] is None
    assert table[-1]["value"] == np.inf
    assert "–" in karat("show", out).stdout.decode()


def test_an_ascii_terminal_gets_a_table_too(finished):
    for args in (["show", finished[0]], ["list"], ["describe", "transfer"], ["describe", "canny_f1"]):
        done = karat(*args, env={"PYTHONIOENCODING": "ascii"})
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout.isascii()
    assert karat("show", finished[0], env={"LC_ALL": "C"}).returncode == 0


def test_a_closed_pipe_is_no_error(finished):
    for args in (["show", finished[0]], ["show", finished[0], *FORMAT_JSON], ["list"]):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb") as closed:
            done = subprocess.run(command(*args), stdout=closed, stderr=subprocess.PIPE, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_under_stdout_is_one_line(finished):
    for args in (["show", finished[0]], ["show", finished[0], *FORMAT_JSON], ["list"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(command(*args), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        lines = done.stderr.decode().splitlines()
        assert done.returncode != 0
        assert len(lines) == 1
        assert lines[0].startswith("karat: ")


# --- what is asked for


def test_parameters_reach_the_numbers_and_the_signature(clips):
    plain = scored(*both(clips)[:4], "--metric", "canny_f1")
    low = scored(*both(clips)[:4], "--metric", "canny_f1", "--set", "canny_f1.low=50")
    named = scored(*both(clips)[:4], "--metric", "CannyF1(low=50)")
    assert low["signature"] == named["signature"] != plain["signature"]
    assert values(low) == values(named) != values(plain)
    assert "low=50.0" in low["signature"]


def test_a_metric_of_its_own_needs_no_setting_of_another(clips):
    content = scored(*both(clips)[:4], "--metric", "CannyF1(low=50)", "--metric", "psnr", "--metric", "mae")
    assert set(values(content)) == {"canny_f1_score", "canny_precision", "canny_recall", "psnr", "mae"}


def test_frames_and_stride_choose_frames(tmp_path):
    pred, truth = tmp_path / "p", tmp_path / "t"
    frames = moving(0, 7)
    save(pred, {"a": {"frames": noisy(frames)[:5:2]}})
    save(truth, {"a": {"frames": frames[:5:2]}})
    chosen = scored("--pred", pred, "--truth", truth, *FAST)
    save(pred, {"a": {"frames": noisy(frames)}})
    save(truth, {"a": {"frames": frames}})
    content = scored("--pred", pred, "--truth", truth, *FAST, "--frames", 5, "--stride", 2)
    assert values(content) == values(chosen)
    assert "|frames:5|stride:2|" in content["signature"]


def test_length_policy(tmp_path):
    write_video(tmp_path / "pred" / "a.mp4", noisy(moving(0, 6)))
    write_video(tmp_path / "truth" / "a.mp4", moving(0, 4))
    args = ("--pred", tmp_path / "pred", "--truth", tmp_path / "truth", *FAST)
    done = karat("run", "transfer", *args)
    assert done.returncode == 3
    assert b"--on-length truncate" in done.stderr
    content = scored(*args, "--on-length", "truncate")
    assert content["scores"]["blur_ssim"]["n"] == 1
    assert "1 sample cut to the shorter side." in content["notes"]
    assert "|length:truncate|" in content["signature"]


def test_size_policy(tmp_path):
    write_video(tmp_path / "pred" / "a.mp4", noisy(moving(0, 4, 24, 32)))
    write_video(tmp_path / "truth" / "a.mp4", moving(0, 4))
    args = ("--pred", tmp_path / "pred", "--truth", tmp_path / "truth", *FAST)
    done = karat("run", "transfer", *args)
    assert done.returncode == 3
    assert b"32x24" in done.stderr
    assert b"64x48" in done.stderr
    assert b"--on-size resize" in done.stderr
    content = scored(*args, "--on-size", "resize")
    assert content["scores"]["blur_ssim"]["n"] == 1
    assert "pred of 1 sample resized to the truth." in content["notes"]


def test_frame_rates_that_differ_are_noted(tmp_path):
    write_video(tmp_path / "pred" / "a.mp4", noisy(moving()), 24)
    write_video(tmp_path / "truth" / "a.mp4", moving(), 12)
    done = karat("run", "transfer", "--pred", tmp_path / "pred", "--truth", tmp_path / "truth", *FAST, *FORMAT_JSON)
    assert done.returncode == 0
    assert any("Frame rates differ" in note and "24" in note for note in json.loads(done.stdout)["notes"])


def test_float_frames_need_a_range(tmp_path):
    frames = moving()
    whole = scored(
        *("--pred", save(tmp_path / "p8", {"a": {"frames": noisy(frames)}})),
        *("--truth", save(tmp_path / "t8", {"a": {"frames": frames}})),
        *FAST,
    )
    pred = save(tmp_path / "p", {"a": {"frames": (noisy(frames) / 127.5 - 1).astype(np.float32)}})
    truth = save(tmp_path / "t", {"a": {"frames": (frames / 127.5 - 1).astype(np.float32)}})
    done = karat("run", "transfer", "--pred", pred, "--truth", truth, *FAST)
    assert done.returncode == 3
    assert b"--range" in done.stderr
    done = karat("run", "transfer", "--pred", pred, "--truth", truth, *FAST, "--range", "0..1")
    assert done.returncode == 3
    assert b"outside the declared range" in done.stderr
    content = scored("--pred", pred, "--truth", truth, *FAST, "--range", "-1..1")
    assert values(content) == values(whole)
    assert "|range:(-1.0, 1.0)|" in content["signature"]


def test_ids_by_pattern(clips, tmp_path):
    pred = tmp_path / "pred"
    pred.mkdir()
    for name in "abc":
        shutil.copy(clips[0] / f"{name}.mp4", pred / f"{name}__model7.mp4")
    args = ("--pred", pred, "--truth", clips[1], *FAST)
    refused(karat("run", "transfer", *args), "a__model7", "--id")
    content = scored(*args, "--id", "^(.*?)(?:__.*)?$")
    assert values(content) == values(scored(*both(clips)))


def test_named_masks(clips, tmp_path):
    plain = values(scored(*both(clips, "--masks", clips[2] / "fg")))
    outside = save(tmp_path / "outside", {name: {"mask": ~rectangle()} for name in "abc"})
    named = values(scored(*both(clips, "--masks", f"car={clips[2] / 'fg'}", "--masks", f"rest={outside}")))
    assert named["blur_ssim@car"] == plain["blur_ssim@foreground"]
    assert named["canny_f1_score@rest"] == plain["canny_f1_score@background"]
    assert named["blur_ssim"] == plain["blur_ssim"]
    whole = values(scored(*both(clips)))
    assert {name: plain[name] for name in whole} == pytest.approx(whole, abs=1e-12)


def test_a_mask_folder_with_an_equals_sign(clips, tmp_path):
    folder = shutil.copytree(clips[2] / "fg", tmp_path / "x=1" / "fg")
    assert "blur_ssim@foreground" in values(scored(*both(clips, "--masks", folder)))


@pytest.mark.parametrize("name", ["", "all", "car@left"])
def test_names_that_no_region_can_have(clips, name):
    refused(called("run", "transfer", *both(clips, "--masks", f"{name}={clips[2] / 'fg'}")), "--masks")


def test_one_name_for_two_masks(clips):
    fg = clips[2] / "fg"
    refused(called("run", "transfer", *both(clips, "--masks", f"a={fg}", "--masks", f"a={fg}")), "--masks", "'a'")


def test_a_region_named_like_markup_is_shown_as_it_is(clips, tmp_path):
    for name in ("[red]x[/red]", "[/]"):
        out = tmp_path / str(len(name))
        done = karat("run", "transfer", *both(clips, "--masks", f"{name}={clips[2] / 'fg'}", "--out", out))
        assert done.returncode == 0, done.stderr.decode()
        assert name in done.stdout.decode().partition("karat:")[0]
        assert name in called("show", out).stdout.decode().partition("karat:")[0]


def test_protocols(clips):
    spec, reference = (scored(*both(clips, "--protocol", name)) for name in ("spec", "reference"))
    assert reference["protocol"] == "reference"
    assert "transfer@reference|" in reference["signature"]
    assert "|frames:121|" in reference["signature"]
    assert values(reference)["blur_ssim"] != values(spec)["blur_ssim"]


def test_another_working_directory(clips, finished, tmp_path):
    home = clips[2]
    args = ("--pred", "pred", "--truth", "truth", "--masks", "fg", *FAST)
    done = karat("run", "transfer", *args, "--out", os.path.relpath(tmp_path / "run", home), *FORMAT_JSON, cwd=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout == finished[1].stdout
    shown = karat("show", "run", *FORMAT_JSON, cwd=tmp_path)
    assert shown.stdout == done.stdout


def test_demo_from_an_empty_folder(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    done = karat("demo", cwd=home)
    assert done.returncode == 0, done.stderr.decode()
    table = done.stdout.decode()
    for word in ("transfer@spec", "blur_ssim", "foreground", "seg_m_iou", "depth_si_rmse", "karat:"):
        assert word in table
    assert list(home.iterdir()) == [home / "karat-demo"]
    runs = sorted((home / "karat-demo" / "transfer" / "runs").iterdir())
    assert len(runs) >= 3
    assert all((run / "scores.json").exists() for run in runs)


# --- what goes wrong: usage


@pytest.mark.parametrize(
    "args",
    [
        ["nope"],
        ["show"],
        ["describe"],
        ["run"],
        ["--nope"],
        ["run", "transfer", "--bogus"],
        ["run", "transfer", "--frames", "many"],
        ["run", "transfer", "--format", "xml"],
        ["run", "transfer", "--pred"],
        ["run", "transfer", "extra"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_does_not_parse_is_one_line(args):
    refused(called(*args))


def test_refusals_are_the_same_in_a_process_of_their_own():
    refused(karat("run", "transfer", "--frames", "many"), "--frames")
    refused(karat("nope"), "nope")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--protocol", "nope"], "reference-upstream"),
        (["--metric", "nope"], "canny_f1"),
        (["--metric", "CannyF1(low=__import__('os'))"], "CannyF1(low=50"),
        (["--metric", "CannyF1(low=50"], "CannyF1(low=50"),
        (["--metric", "PSNR(of=3)"], "of"),
        (["--metric", "depth_rmse"], "--pred-depth"),
        (["--set", "canny_f1.low"], "METRIC.PARAMETER=VALUE"),
        (["--set", "canny_f1=3"], "canny_f1.low=50"),
        (["--set", "canny_f1.nope=3"], "tolerance"),
        (["--set", "canny_f1.low=high"], "low"),
        (["--set", "canny_f1.low={[]:1}"], "low"),
        (["--set", "canny_f1.low=" + 3000 * "("], "low"),
        (["--set", "canny_f1.tolerance=1.5"], "tolerance"),
        (["--set", "blur_ssim.size=7.0"], "size"),
        (["--set", "blur_ssim.sigma=wide"], "sigma"),
        (["--set", "blur_ssim.sample_covariance=3"], "sample_covariance"),
        (["--set", "blur_ssim.blur_sigmas=[1,2]"], "blur_sigmas"),
        (["--set", "psnr.data_range=1"], "not evaluated"),
        (["--range", "0-1"], "LOW..HIGH"),
        (["--range", "1..0"], "range"),
        (["--range", "0..inf"], "range"),
        (["--range", "nan..1"], "range"),
        (["--frames", "0"], "frames"),
        (["--frames", "99999999999999999999999"], "frames"),
        (["--stride", "0"], "stride"),
        (["--on-length", "maybe"], "truncate"),
        (["--on-size", "maybe"], "resize"),
        (["--workers", "0"], "--workers"),
        (["--id", "("], "pattern"),
        (["--pred-depth", "/"], "--truth-depth"),
        (["--pred", "nowhere"], "nowhere"),
        (["--masks", "nowhere"], "nowhere"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_what_cannot_be_evaluated_is_one_line(clips, args, word):
    given = both(clips) if "blur" in str(args) else both(clips)[:4]
    refused(called("run", "transfer", *given, *args), word)


def test_a_suite_that_does_not_exist_and_fields_that_are_missing(clips):
    refused(called("run", "nope"), "transfer")
    refused(called("run", "transfer"), "--pred", "--truth")
    refused(called("check", "transfer", "--pred", clips[0]), "--truth")


def test_an_environment_that_makes_no_sense(clips):
    refused(karat("run", "transfer", *both(clips), env={"KARAT_CACHE_GB": "much"}), "KARAT_CACHE_GB")
    done = karat("run", "transfer", *both(clips)[:4], "--metric", "blur_ssim", env={"KARAT_CACHE": "/proc/nowhere"})
    assert done.returncode == 0  # a cache that cannot be written costs the shortcut


# --- what goes wrong: folders


def test_out_that_cannot_be_written(clips, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    for out in (file, file / "below", tmp_path / "full", clips[0]):
        refused(called("run", "transfer", *both(clips, "--out", out)), str(out))
    if Path("/proc/self").exists():
        refused(called("run", "transfer", *both(clips, "--out", "/proc/nowhere")), "/proc/nowhere")
    assert file.read_text() == "mine"
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]


def test_out_that_holds_another_run(clips, finished):
    out, _ = finished
    before = (out / "scores.json").read_bytes(), (out / "run.json").read_bytes()
    for more in (["--protocol", "reference"], ["--set", "canny_f1.low=50"], ["--frames", "2"], []):
        line = refused(called("run", "transfer", *both(clips, *more, "--out", out)), "another run")
        assert "choose another --out" in line
    assert ((out / "scores.json").read_bytes(), (out / "run.json").read_bytes()) == before


def test_folders_without_anything_to_read(clips, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(called("run", "transfer", "--pred", tmp_path / "empty", "--truth", clips[1]), "empty")
    refused(called("run", "transfer", "--pred", clips[0], "--truth", tmp_path / "empty"), "empty")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("no video")
    refused(called("run", "transfer", "--pred", tmp_path / "text", "--truth", clips[1]), "text")


@pytest.mark.parametrize("field", ["--masks", "--pred-segments"])
def test_a_field_that_belongs_to_no_sample_is_a_mistake(clips, tmp_path, field):
    content = {"mask": rectangle()} if field == "--masks" else {"labels": rectangle().astype(np.uint8)}
    other = save(tmp_path / "other", {"unrelated": content})
    more = () if field == "--masks" else ("--truth-segments", clips[2] / "truth_segments")
    refused(called("run", "transfer", *both(clips, field, other, *more)), "unrelated", "--id")


def test_a_run_folder_that_is_none(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    refused(called("show", tmp_path / "nowhere"), "nowhere")
    refused(called("show", file), "file")
    refused(called("show", tmp_path), "run.json")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"scores": 1}',
        '{"suite": 1, "protocol": 2, "signature": 3, "scores": {"a": {"value": "x"}}, "notes": []}',
        '{"suite": "s", "protocol": "p", "signature": "s", "scores": {"a": {"value": [1]}}, "notes": 7}',
    ],
)
@pytest.mark.parametrize("format", ["table", "csv"])
def test_forged_scores_are_refused(tmp_path, content, format):
    (tmp_path / "scores.json").write_text(content)
    refused(called("show", tmp_path, "--format", format), "scores.json")


def test_markup_in_a_foreign_run_is_text(tmp_path):
    value = {"value": 1.0, "n": 1, "undefined": 0, "excluded": 0, "failed": 0}
    content = {"suite": "[/]", "protocol": "[red]", "scores": {"a[/]": value, "[b]@[/c]": value}, "notes": ["[/]"]}
    (tmp_path / "scores.json").write_text(json.dumps({**content, "signature": "[/]\x1b[2J"}))
    done = karat("show", tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    for word in ("[/]@[red]", "a[/]", "[b]", "[/c]"):
        assert word in done.stdout.decode()
    assert b"\x1b" not in done.stdout


# --- what goes wrong: samples


def test_failed_samples_cost_themselves_only(clips, tmp_path):
    pred = shutil.copytree(clips[0], tmp_path / "pred")
    cut(pred / "a.mp4")
    (pred / "b.mp4").unlink()
    out = tmp_path / "run"
    done = karat("run", "transfer", "--pred", pred, "--truth", clips[1], *FAST, "--out", out, *FORMAT_JSON)
    assert done.returncode == 3
    content = json.loads(done.stdout)
    for one in content["scores"].values():
        assert {name: one[name] for name in COUNTS} == {"n": 1, "undefined": 0, "excluded": 0, "failed": 2}
    alone = scored("--pred", clips[0] / "c.mp4", "--truth", clips[1] / "c.mp4", *FAST)
    assert values(content) == values(alone)
    lines = [json.loads(line) for line in (out / "failures.jsonl").read_text().splitlines()]
    assert [(one["sample"], one["field"]) for one in lines] == [("a", "pred"), ("b", "pred")]
    assert "a.mp4" in lines[0]["reason"]
    assert "no pred was found" in lines[1]["reason"]
    assert any("2 samples failed" in note for note in content["notes"])
    told = done.stderr.decode().splitlines()
    assert all(line.startswith("karat: ") for line in told)
    assert any("2 of 3 samples failed" in line and "failures.jsonl" in line for line in told)
    assert b"Traceback" not in done.stderr
    assert karat("run", "transfer", "--pred", pred, "--truth", clips[1], *FAST, "--out", out).returncode == 3


def test_a_corrupt_truth_is_one_failure_too(clips, tmp_path):
    truth = shutil.copytree(clips[1], tmp_path / "truth")
    (truth / "b.mp4").write_bytes(b"")
    content = scored("--pred", clips[0], "--truth", truth, *FAST)
    assert content["scores"]["blur_ssim"]["n"] == 2
    assert content["scores"]["blur_ssim"]["failed"] == 1


def test_all_samples_failed(clips, tmp_path):
    pred = shutil.copytree(clips[0], tmp_path / "pred")
    for file in pred.iterdir():
        file.write_bytes(b"no video")
    done = karat("run", "transfer", "--pred", pred, "--truth", clips[1], *FAST, *FORMAT_JSON)
    assert done.returncode == 3
    for one in json.loads(done.stdout)["scores"].values():
        assert one == {"value": None, "n": 0, "undefined": 0, "excluded": 0, "failed": 3}


@pytest.mark.parametrize("workers", [1, 2])
def test_strict_stops_at_the_first_failure(clips, tmp_path, workers):
    pred = shutil.copytree(clips[0], tmp_path / "pred")
    write_video(pred / "b.mp4", moving(1, 6))
    out = tmp_path / "run"
    args = ("--pred", pred, "--truth", clips[1], *FAST, "--strict", "--workers", workers, "--out", out)
    done = karat("run", "transfer", *args)
    assert done.returncode in (2, 3)
    refused(done, "b: ", "--on-length truncate", code=done.returncode)
    assert not (out / "scores.json").exists()
    assert karat("show", out).returncode == 0
    write_video(pred / "b.mp4", noisy(moving(1)))
    assert karat("run", "transfer", *args).returncode == 0


def test_missing_segments_are_empty_and_not_failed(clips, tmp_path):
    segments = shutil.copytree(clips[2] / "pred_segments", tmp_path / "segments")
    (segments / "b.npz").unlink()
    args = both(clips, "--truth-segments", clips[2] / "truth_segments", "--metric", "segment_iou")[:4]
    args = (*args, "--metric", "segment_iou", "--truth-segments", clips[2] / "truth_segments")
    content = scored(*args, "--pred-segments", segments)
    for name in ("seg_m_iou", "seg_recall"):
        one = content["scores"][name]
        assert [one[count] for count in COUNTS] == [3, 0, 0, 0]
    assert content["scores"]["seg_recall"]["value"] == pytest.approx(2 / 3)
    assert any("pred_segments of 1 sample missing: scored as empty" in note for note in content["notes"])


def test_a_sample_that_lacks_one_field_keeps_the_scores_of_the_others(clips, tmp_path):
    truth_depth = save(tmp_path / "td", {name: {"depth": 1 + rectangle().astype(np.float32)} for name in "abc"})
    pred_depth = save(tmp_path / "pd", {name: {"depth": 1 + rectangle().astype(np.float32)} for name in "ab"})
    content = scored(*both(clips, "--pred-depth", pred_depth, "--truth-depth", truth_depth))
    assert [content["scores"]["depth_si_rmse"][count] for count in COUNTS] == [2, 0, 0, 1]
    assert [content["scores"]["blur_ssim"][count] for count in COUNTS] == [3, 0, 0, 0]


def test_swapped_sides_and_one_folder_twice(clips, tmp_path):
    right, swapped = scored(*both(clips)), scored("--pred", clips[1], "--truth", clips[0], *FAST)
    assert values(swapped)["canny_precision"] == pytest.approx(values(right)["canny_recall"])
    assert swapped["signature"] != right["signature"]
    same = values(scored("--pred", clips[1], "--truth", clips[1], *FAST))
    assert same == dict.fromkeys(same, 1.0)
    pred = shutil.copytree(clips[0], tmp_path / "pred")
    (pred / "c.mp4").unlink()
    content = scored("--pred", clips[1], "--truth", pred, *FAST)
    assert content["scores"]["blur_ssim"]["n"] == 2
    assert any("1 pred without a truth left out, the first is 'c'" in note for note in content["notes"])


def test_odd_names_are_samples_like_others(tmp_path):
    names = [*ODD_NAMES, "sub/folder/x"]
    pred, truth = pair(tmp_path, names[:1])
    for name in names[1:]:
        for folder in (pred, truth):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / f"{names[0]}.mp4", folder / f"{name}.mp4")
    args = ("run", "transfer", "--pred", pred, "--truth", truth, *FAST, "--out", tmp_path / "run")
    done = karat(*args, *FORMAT_JSON)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["scores"]["blur_ssim"]["n"] == len(names)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["samples"] == sorted(names)
    for name in names:
        (pred / f"{name}.mp4").write_bytes(b"")
    shutil.rmtree(tmp_path / "run")
    done = karat(*args)
    assert done.returncode == 3
    for text in (done.stdout, done.stderr):
        assert b"\x1b" not in text
        assert b"Traceback" not in text
    assert all(line.startswith("karat: ") for line in done.stderr.decode().splitlines())
    lines = [json.loads(line) for line in (tmp_path / "run" / "failures.jsonl").read_text().splitlines()]
    assert [one["sample"] for one in lines] == sorted(names)
    checked = karat("check", "transfer", "--pred", pred, "--truth", truth)
    assert checked.returncode == 3
    assert b"\x1b" not in checked.stdout
    assert len([line for line in checked.stdout.decode().splitlines() if line.startswith("error")]) == len(names)


def test_a_name_that_is_no_unicode(tmp_path):
    pred, truth = pair(tmp_path, ["plain"])
    for folder in (pred, truth):
        os.link(folder / "plain.mp4", os.fsencode(folder) + b"/b\xff.mp4")
    args = ("run", "transfer", "--pred", pred, "--truth", truth, *FAST)
    for more in (["--out", tmp_path / "run"], FORMAT_JSON, ["--format", "csv"], []):
        done = karat(*args, *more)
        assert done.returncode == 0, done.stderr.decode()
    (pred / os.fsdecode(b"b\xff.mp4")).unlink()
    for more in (["--out", tmp_path / "other"], FORMAT_JSON, []):
        done = karat(*args, *more)
        assert done.returncode == 3, done.stderr.decode()
    assert karat("show", tmp_path / "other").returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_at_once_and_says_how_to_go_on(tmp_path, workers):
    for side in ("pred", "truth"):
        for name in "abcd":
            save(tmp_path / side, {name: {"frames": moving(0, 2).repeat(100, axis=0)}})
    out = tmp_path / "run"
    args = ("--pred", tmp_path / "pred", "--truth", tmp_path / "truth", "--no-cache", "--workers", workers)
    process = subprocess.Popen(
        command("run", "transfer", *args, "--out", out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    deadline = time.monotonic() + 60
    while not (out / "run.json").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().splitlines()[-1] == "karat: stopped; with --out the same command goes on where it was."
    assert b"Traceback" not in said
    assert shown == b""
    assert not list((out / "done").glob("*.json")), "a sample under way is left, not finished"
