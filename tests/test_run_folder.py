"""The run folder: its layout; stopping, repeating, moving or damaging a run never changes or mixes numbers."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from clips import FAST, command, cut, karat, moving, noisy, pair, rectangle, save, write_video

import karat as package
from karat import KaratError, Run, evaluate

NAMES = tuple("abcdef")
SETTINGS = {"blur_ssim.blur": "gaussian"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


def write_inputs(home: Path) -> Path:
    """Everything that the suite reads, for six samples."""
    pair(home, NAMES)
    mask = rectangle()
    save(home / "fg", {name: {"mask": mask} for name in NAMES})
    for side, shift in (("pred", 2), ("truth", 0)):
        moved = np.roll(mask, shift, axis=2)
        save(home / f"{side}_segments", {name: {"labels": moved.astype(np.uint8)} for name in NAMES})
        save(home / f"{side}_depth", {name: {"depth": 1 + moved.astype(np.float32)} for name in NAMES})
    return home


def arguments(home: Path) -> dict[str, object]:
    """As evaluate takes them."""
    names = ("pred", "truth", "pred_depth", "truth_depth", "pred_segments", "truth_segments")
    return {**{name: home / name for name in names}, "masks": home / "fg", "settings": SETTINGS}


def flags(home: Path) -> list[object]:
    """As the command line takes them."""
    given = arguments(home)
    del given["settings"]
    return [*(word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)), *FAST]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    """A run that nothing happened to; tests copy it."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    evaluate("transfer", **arguments(inputs), out=out, workers=2, cache=False)
    return out


@pytest.fixture
def copied(undisturbed, tmp_path):
    return shutil.copytree(undisturbed, tmp_path / "run")


def results(out: Path) -> dict[str, bytes]:
    """What must be the same bytes however a run came about."""
    files = [out / "scores.json", out / "failures.jsonl", *out.glob("rows/*/*"), *out.glob("done/*")]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def identities(out: Path) -> dict[str, tuple[int, int]]:
    """Which files these are and when they were written."""
    files = [*out.glob("rows/*/*"), *out.glob("done/*")]
    return {str(file.relative_to(out)): (file.stat().st_ino, file.stat().st_mtime_ns) for file in files}


def again(inputs: Path, out: Path, **more: object) -> Run:
    return evaluate("transfer", **{**arguments(inputs), "workers": 2, "cache": False, **more}, out=out)


def refusal(action, *words: str) -> str:
    """The one sentence that the action ends in."""
    with pytest.raises(KaratError) as caught:
        action()
    message = str(caught.value)
    assert message.isprintable()
    for word in words:
        assert word in message
    return message


# --- layout


def test_layout(undisturbed):
    assert {path.name for path in undisturbed.iterdir()} == {
        "run.json",
        "rows",
        "done",
        "failures.jsonl",
        "scores.json",
    }
    units = {path.name for path in (undisturbed / "rows").iterdir()}
    assert units == {"frame", "item"}
    shards = {path.stem for path in (undisturbed / "done").iterdir()}
    assert len(shards) == len(NAMES)
    for unit in units:
        assert {path.name for path in (undisturbed / "rows" / unit).iterdir()} == {f"{one}.parquet" for one in shards}
    for file in (undisturbed / "done").iterdir():
        done = json.loads(file.read_bytes())
        assert set(done["files"]) == {f"rows/{unit}/{file.stem}.parquet" for unit in units}
        for place, digest in done["files"].items():
            assert hashlib.sha256((undisturbed / place).read_bytes()).hexdigest() == digest
    assert (undisturbed / "failures.jsonl").read_bytes() == b""


def test_run_json_says_how_the_numbers_came_about(inputs, tmp_path):
    out = tmp_path / "run"
    done = karat("run", "transfer", *flags(inputs), "--workers", 2, "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    run = json.loads((out / "run.json").read_bytes())
    scores = json.loads((out / "scores.json").read_bytes())
    assert (run["suite"], run["protocol"], run["state"]) == ("transfer", "spec", "finished")
    assert run["signature"] == scores["signature"]
    assert run["samples"] == list(NAMES)
    assert {"numpy", "scipy", "av", "python"} <= set(run["versions"])
    assert run["versions"].get("karat") == package.__version__
    assert run["arguments"]["pred"] == str(inputs / "pred")
    assert run["arguments"]["settings"] == SETTINGS
    assert all(value in scores["signature"] for value in (run["data"]["truth"][:16], run["data"]["pred"][:16]))
    assert run["timing"]["seconds"] > 0
    assert run["timing"]["workers"] == 2
    assert {"system", "machine", "cores"} <= set(run["host"])
    again_timing = json.loads((out / "run.json").read_bytes())["timing"]
    assert again_timing == run["timing"]


def test_python_arguments_are_kept_too(undisturbed, inputs):
    kept = json.loads((undisturbed / "run.json").read_bytes())["arguments"]
    assert kept["pred"] == str(inputs / "pred")
    assert kept["settings"] == SETTINGS


def test_rows_are_keyed(undisturbed):
    table = pq.read_table(undisturbed / "rows" / "frame" / "00000000.parquet")
    assert table.column_names[:5] == ["sample", "side", "frame", "item", "region"]
    keys = list(zip(*(table[name].to_pylist() for name in table.column_names[:5]), strict=True))
    assert len(set(keys)) == len(keys) == 4 * 3
    assert {key[0] for key in keys} == {"a"}
    assert {key[4] for key in keys} == {"all", "foreground", "background"}


def test_load_gives_the_same_run(undisturbed):
    run = Run.load(undisturbed)
    assert json.dumps(run.plain(), indent=2, ensure_ascii=False) + "\n" == (undisturbed / "scores.json").read_text()
    assert set(run.sample_scores) == set(NAMES)
    assert set(run.frame_scores["a"]) == {0, 1, 2, 3}


# --- the same bits


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers_gives_the_same_bytes(inputs, undisturbed, tmp_path, workers):
    again(inputs, tmp_path / "run", workers=workers)
    assert results(tmp_path / "run") == results(undisturbed)


def test_a_rerun_computes_nothing(inputs, undisturbed, copied):
    before = identities(copied)
    run = again(inputs, copied)
    assert run.record["timing"]["computed"] == 0
    assert identities(copied) == before
    assert results(copied) == results(undisturbed)


def test_inputs_that_were_moved_are_the_same(inputs, undisturbed, tmp_path):
    moved = shutil.copytree(inputs, tmp_path / "elsewhere" / "entirely")
    again(moved, tmp_path / "run")
    assert results(tmp_path / "run") == results(undisturbed)
    before = identities(tmp_path / "run")
    again(inputs, tmp_path / "run")
    assert identities(tmp_path / "run") == before


def test_failures_are_the_same_wherever_the_files_lie(inputs, tmp_path):
    runs = []
    for place in ("here", "over/there"):
        home = shutil.copytree(inputs, tmp_path / place / "in")
        cut(home / "pred" / "b.mp4")
        again(home, tmp_path / place / "run")
        runs.append((tmp_path / place / "run" / "scores.json").read_bytes())
    assert runs[0] == runs[1]


# --- killed


def kill_when(process: subprocess.Popen[bytes], ready) -> None:
    """SIGKILL as soon as `ready()` holds; a process that ended before stays ended."""
    deadline = time.monotonic() + 60
    while process.poll() is None and not ready():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.kill()
    process.communicate()


def start(inputs: Path, out: Path) -> subprocess.Popen[bytes]:
    line = command("run", "transfer", *flags(inputs), "--no-cache", "--workers", 2, "--out", out)
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_a_run_killed_between_samples_goes_on(inputs, undisturbed, tmp_path, after):
    out = tmp_path / "run"
    process = start(inputs, out)
    wanted = (lambda: len(list(out.glob("done/*.json"))) >= after) if after else (out / "run.json").exists
    kill_when(process, wanted)
    kept = identities(out)
    run = again(inputs, out)
    assert results(out) == results(undisturbed)
    assert run.record["timing"]["computed"] <= len(NAMES) - after
    assert {name: one for name, one in identities(out).items() if name in kept and name.startswith("done")} == {
        name: one for name, one in kept.items() if name.startswith("done") and not Path(name).name.startswith(".")
    }
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]


def test_a_run_killed_again_and_again_at_any_moment_comes_to_its_end(inputs, undisturbed, tmp_path):
    out, moments = tmp_path / "run", random.Random(5)
    for _ in range(4):
        process = start(inputs, out)
        known = len(list(out.rglob("*")))
        while process.poll() is None and len(list(out.rglob("*"))) == known:
            time.sleep(0.001)
        until = time.monotonic() + moments.uniform(0, 0.3)
        kill_when(process, lambda until=until: time.monotonic() >= until)
    again(inputs, out)
    assert results(out) == results(undisturbed)


@pytest.mark.parametrize("place", ["run.json", "done/00000001.json", "rows/frame/00000001.parquet", "scores.json"])
def test_what_a_kill_leaves_half_written_is_in_nobodys_way(inputs, undisturbed, tmp_path, place):
    from karat.folder import PART

    out = tmp_path / "run"
    if place != "run.json":
        shutil.copytree(undisturbed, out)
        (out / place).unlink()
    target = out / place
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_name(PART.format(target.name, "0" * 32)).write_bytes(b'{"half')
    again(inputs, out)
    assert results(out) == results(undisturbed)


def test_an_unfinished_run_can_be_shown(inputs, undisturbed, copied):
    (copied / "scores.json").unlink()
    for shard in ("00000004", "00000005"):
        (copied / "done" / f"{shard}.json").unlink()
    run = Run.load(copied)
    assert run.scores["blur_ssim"].n == 4
    assert run.scores["blur_ssim"].failed == 2
    assert any("2 samples not yet evaluated" in note for note in run.notes)
    assert karat("show", copied).returncode == 0
    again(inputs, copied)
    assert results(copied) == results(undisturbed)


# --- damaged

DAMAGE = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "half": lambda file: cut(file),
    "flipped": lambda file: file.write_bytes(bytes([file.read_bytes()[0] ^ 255]) + file.read_bytes()[1:]),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "{}": lambda file: file.write_text("{}"),
    "[]": lambda file: file.write_text("[]"),
    "null": lambda file: file.write_text("null"),
    "strange": lambda file: file.write_text('{"files": [], "samples": 7, "identity": 3, "suite": []}'),
    "foreign": lambda file: file.write_text(
        '{"files": {}, "samples": {"zz": {"hash": {"truth": "", "pred": ""}, "failures": [], "facts": {}, '
        '"measured": []}}}'
    ),
    "no rows": lambda file: file.write_text(
        '{"files": {}, "samples": {"b": {"hash": "x", "failures": [], "facts": {}, "measured": ["blur_ssim"]}}}'
    ),
}


@pytest.mark.parametrize("place", ["rows/frame/00000001.parquet", "done/00000001.json", "run.json"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_repaired_or_refused(inputs, undisturbed, copied, place, damage):
    DAMAGE[damage](copied / place)
    try:
        again(inputs, copied)
    except KaratError as error:
        message = str(error)
    else:
        message = "run"
        assert results(copied) == results(undisturbed)
    assert message.isprintable()
    assert "run" in message


def test_damaged_rows_alone_are_computed_again(inputs, undisturbed, copied):
    before = identities(copied)
    cut(copied / "rows" / "item" / "00000002.parquet")
    run = again(inputs, copied)
    assert run.record["timing"]["computed"] == 1
    assert results(copied) == results(undisturbed)
    after = identities(copied)
    assert {name for name in before if before[name] != after[name]} == {
        "rows/item/00000002.parquet",
        "rows/frame/00000002.parquet",
        "done/00000002.json",
    }


def test_paths_in_a_forged_done_file_stay_inside(inputs, copied):
    outside = copied.parent / "outside.parquet"
    shutil.copy(copied / "rows" / "frame" / "00000001.parquet", outside)
    file = copied / "done" / "00000001.json"
    done = json.loads(file.read_bytes())
    done["files"] = {"../outside.parquet": hashlib.sha256(outside.read_bytes()).hexdigest()}
    file.write_text(json.dumps(done))
    try:
        run = again(inputs, copied)
    except KaratError:
        return
    assert run.record["timing"]["computed"] == 1


# --- something else


def test_what_is_another_run_is_not_mixed(inputs, copied):
    before = results(copied), (copied / "run.json").read_bytes()
    other = [
        {"protocol": "reference"},
        {"settings": {**SETTINGS, "canny_f1.low": 50}},
        {"settings": {}},
        {"metrics": ["canny_f1"], "settings": {}},
        {"frames": 2},
        {"stride": 2},
        {"on_length": "truncate"},
        {"on_size": "resize"},
        {"value_range": (0, 1)},
        {"masks": None},
        {"masks": {"named": inputs / "fg"}},
        {"pred_depth": None, "truth_depth": None},
    ]
    for change in other:
        refusal(lambda change=change: again(inputs, copied, **change), "another run", "choose another --out")
    assert (results(copied), (copied / "run.json").read_bytes()) == before


@pytest.mark.parametrize("field", ["pred", "truth", "pred_depth", "truth_segments", "fg"])
def test_changed_files_are_not_mixed(inputs, copied, tmp_path, field):
    home = shutil.copytree(inputs, tmp_path / "in")
    if field in ("pred", "truth"):
        write_video(home / field / "c.mp4", noisy(moving(7)))
    else:
        name = {"fg": "mask", "pred_depth": "depth", "truth_segments": "labels"}[field]
        content = {"fg": ~rectangle(), "pred_depth": 2.0 + rectangle(), "truth_segments": 2 * rectangle().astype(int)}
        save(home / field, {"c": {name: content[field]}})
    before = results(copied)
    refusal(lambda: again(home, copied), "c", "changed", "choose another --out")
    assert results(copied) == before


def test_other_samples_are_not_mixed(inputs, copied, tmp_path):
    home = shutil.copytree(inputs, tmp_path / "in")
    shutil.copy(home / "truth" / "a.mp4", home / "truth" / "z.mp4")
    refusal(lambda: again(home, copied), "other samples", "choose another --out")
    (home / "truth" / "z.mp4").unlink()
    (home / "truth" / "b.mp4").unlink()
    refusal(lambda: again(home, copied), "other samples", "choose another --out")


def test_a_missing_prediction_that_appears_is_a_change(inputs, tmp_path):
    home = shutil.copytree(inputs, tmp_path / "in")
    (home / "pred_segments" / "c.npz").unlink()
    run = again(home, tmp_path / "run")
    assert run.scores["seg_m_iou"].n == len(NAMES)
    shutil.copy(inputs / "pred_segments" / "c.npz", home / "pred_segments")
    refusal(lambda: again(home, tmp_path / "run"), "c", "changed")


def test_only_what_failed_is_tried_again(inputs, undisturbed, tmp_path):
    home, out = shutil.copytree(inputs, tmp_path / "in"), tmp_path / "run"
    cut(home / "pred" / "b.mp4")
    (home / "truth" / "d.mp4").write_bytes(b"")
    run = again(home, out)
    assert [(one.sample, one.field) for one in run.failures] == [("b", "pred"), ("d", "truth")]
    assert run.scores["blur_ssim"].failed == 2
    before = identities(out)
    assert again(home, out).record["timing"]["computed"] == 2
    shutil.copy(inputs / "pred" / "b.mp4", home / "pred")
    run = again(home, out)
    assert [one.sample for one in run.failures] == ["d"]
    assert len((out / "failures.jsonl").read_text().splitlines()) == 1
    shutil.copy(inputs / "truth" / "d.mp4", home / "truth")
    assert again(home, out).record["timing"]["computed"] == 1
    assert results(out) == results(undisturbed)
    after = identities(out)
    changed = {Path(name).stem for name in after if before.get(name) != after[name]}
    assert changed == {"00000001", "00000003"}


def test_two_processes_in_one_folder_do_no_harm(inputs, undisturbed, tmp_path):
    out = tmp_path / "run"
    both = [start(inputs, out) for _ in range(2)]
    for process in both:
        said = process.communicate(timeout=120)[1].decode()
        assert process.returncode == 0 or (process.returncode == 2 and said.startswith("karat: ")), said
    again(inputs, out)
    assert results(out) == results(undisturbed)
