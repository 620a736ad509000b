"""`karat ... control` as its users call it: files, protocols, published lines, subsets, resuming, tables, refusals."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called, command, karat, refused
from golden.peekaboo import boxes

import karat as package

SHARED = Path(__file__).parents[1].parent / "shared"
GOLDEN, DATA = SHARED / "golden" / "control", SHARED / "data" / "control"
PRINTED = ("davis_16f_80x144", "syn_varlen_64x64", "edge_dup_pred", "edge_all_none", "edge_short_gt", "edge_soft_mask")
ASKED = [[0.25, 0.25, 0.75, 0.75]] * 4
FOUND = [[10, 5, 30, 15]] * 4


def case(name: str, place: Path) -> tuple[Path, Path]:
    """The truth and the predictions of a reference output, whose pickle is unpacked."""
    if not (GOLDEN / name).is_dir():
        pytest.fail(f"THE REFERENCE OUTPUTS ARE MISSING: {GOLDEN / name} is not there, so nothing was verified.")
    pred = place / f"{name}.pkl"
    pred.write_bytes(gzip.decompress((GOLDEN / name / "pred.pkl.gz").read_bytes()))
    return GOLDEN / name / "gt.json", pred


def sides(truth: Path, pred: Path) -> list[Any]:
    return ["--truth", truth, "--pred", pred]


def plain(*args: Any, code: int = 0) -> dict[str, Any]:
    """What a run says as JSON."""
    done = called("run", "control", *args, "--format", "json")
    assert done.returncode == code, done.stderr.decode()
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def scores(*args: Any) -> dict[str, Any]:
    return {name: one["value"] for name, one in plain(*args)["scores"].items()}


def saved(path: Path, records: Any) -> Path:
    path.write_text(json.dumps(records))
    return path


@pytest.fixture(scope="module")
def davis(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of the reference outputs in every format; tests do not write there."""
    home = tmp_path_factory.mktemp("davis")
    truth, pred = case("davis_16f_80x144", home)
    file = json.loads((truth.parent / "pred_boxes.json").read_text())
    listed = boxes(file)
    height, width = file["shape"]
    arrays: dict[str, Any] = {}
    masks: dict[str, Any] = {}
    for one in listed:
        arrays[f"{one['id']}/boxes"] = np.array([box or [np.nan] * 4 for box in one["bboxes"]], float)
        arrays[f"{one['id']}/size"] = np.array([width, height])
        masks[f"{one['id']}/masks"] = stack = np.zeros((len(one["bboxes"]), height, width), bool)
        for mask, box in zip(stack, one["bboxes"], strict=True):
            if box is not None:
                mask[box[1] : box[3], box[0] : box[2]] = True
    np.savez(home / "boxes.npz", **arrays)
    np.savez_compressed(home / "masks.npz", **masks)
    places = {"truth": truth, "pkl": pred, "json": saved(home / "boxes.json", listed)}
    return places | {"npz of boxes": home / "boxes.npz", "npz of masks": home / "masks.npz"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `karat demo control`; tests do not write there."""
    home = tmp_path_factory.mktemp("demo")
    done = karat("demo", "control", cwd=home)
    assert done.returncode == 0, done.stderr.decode()
    for word in ("control@spec", "coverage", "ceiling_miou", "still_miou", "fading", "outlined", "karat:"):
        assert word in done.stdout.decode()
    return home / "karat-demo" / "control"


# --- protocols


@pytest.mark.parametrize("name", PRINTED)
def test_the_lines_of_the_published_script(tmp_path: Path, name: str) -> None:
    """As its words, from its files."""
    truth, pred = case(name, tmp_path)
    golden = json.loads((truth.parent / "golden.json").read_text())
    plain(*sides(truth, pred), "--protocol", "reference", "--printed", tmp_path / "lines.txt")
    assert (tmp_path / "lines.txt").read_text().splitlines() == golden["printed"]


def test_the_command_in_a_process_of_its_own(davis: dict[str, Path], tmp_path: Path) -> None:
    """A table, the lines, a run folder that shows the same again."""
    args = (*sides(davis["truth"], davis["pkl"]), "--protocol", "reference", "--printed", "lines.txt", "--out", "run")
    done = karat("run", "control", *args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    for word in (
        "control@reference",
        "coverage",
        "miou_all",
        "centroid_distance",
        "n_frames_undetected",
        "karat convert",
    ):
        assert word in text
    assert "As the paper prints them: mIoU 48.6, AP50 68.9, Coverage % 80.0, CD 0.05." in text
    assert {path.name for path in tmp_path.iterdir()} == {"lines.txt", "run"}
    assert karat("show", "run", cwd=tmp_path).stdout == done.stdout


@pytest.mark.parametrize(
    "protocol, form",
    [
        ("reference", "json"),
        *((protocol, form) for protocol in ("spec", "reference", "paper") for form in ("npz of boxes", "npz of masks")),
    ],
)
def test_every_format_scores_the_same(davis: dict[str, Path], protocol: str, form: str) -> None:
    """Masks as masks do, boxes as boxes; under reference all of them, since it paints boxes."""
    of_boxes = protocol != "reference" and form == "npz of boxes"
    wanted, found = (
        scores(*sides(davis["truth"], davis[of]), "--protocol", protocol)
        for of in ("json" if of_boxes else "pkl", form)
    )
    assert set(found) == set(wanted)
    if form == "npz of boxes" and protocol == "reference":  # arrays do not say in how many frames it was found
        names = ("miou_all", "centroid_distance", "miou_frame_all")
        wanted, found = ({name: of[name] for name in names} for of in (wanted, found))
    for name, value in wanted.items():
        assert found[name] == (None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)), name


def test_what_protocols_differ_in(davis: dict[str, Path]) -> None:
    """In the numbers, the signature and the notes."""
    said = {
        name: plain(*sides(davis["truth"], davis["pkl"]), "--protocol", name) for name in ("spec", "reference", "paper")
    }
    ap50 = {name: one["scores"]["ap50"]["value"] for name, one in said.items()}
    assert ap50["spec"] == pytest.approx(0.4734, abs=5e-5)
    assert ap50["reference"] == pytest.approx(0.6886363636363636, rel=1e-12)
    assert ap50["paper"] == said["spec"]["scores"]["ap50_detected"]["value"]
    assert said["spec"]["scores"]["centroid_distance"]["value"] == pytest.approx(0.0502, abs=5e-4)
    for name, one in said.items():
        assert f"|control@{name}|" in one["signature"]
        assert one["scores"]["coverage"]["interval"]


def test_the_page_of_the_suite() -> None:
    page = called("describe", "control").stdout.decode()
    for word in ("spec", "reference", "paper", "Where the protocols differ", "detector_ceiling", "half", "majority"):
        assert word in page
    for name, words in {
        "coverage": ("share", "Peekaboo"),
        "ap50": ("detections", "no"),
        "cd": ("ObjMC", "diagonal"),
        "static_video": ("never moves",),
        "success": ("20/21",),
    }.items():
        text = called("describe", name).stdout.decode()
        assert all(word in text for word in words), name


# --- what is asked for


def test_the_prompts_of_the_paper(tmp_path: Path) -> None:
    truth, pred = case("imc_16f_64x64", tmp_path)
    said = plain(*sides(truth, pred), "--subset", "paper")
    assert said["scores"]["n_records"]["value"] == 102
    assert "Subset paper: 102 of 126 records." in said["notes"]
    assert plain(*sides(truth, pred))["scores"]["n_records"]["value"] == 126
    refused(called("run", "control", *sides(truth, pred), "--subset", "papers"), "no subset 'papers'", "paper")
    assert b"paper" in called("run", "control", "--help").stdout


def test_the_order_of_boxes(tmp_path: Path) -> None:
    """As the file tells, as it is said, and as the script reads it."""
    truth, pred = case("lasot_16f_72x128_fixed", tmp_path)
    records = json.loads(truth.read_text())
    for one in records:
        one["bboxes"] = [[box[0], box[2], box[1], box[3]] for box in one["bboxes"]]
        one["metadata"] = {}
    raw = saved(tmp_path / "raw.json", records)
    wanted = scores(*sides(truth, pred))
    assert scores(*sides(raw, pred), "--box-order", "x1x2y1y2") == wanted
    doubted = called("run", "control", *sides(raw, pred))
    assert doubted.returncode == 3
    assert "pass --box-order x1x2y1y2, in which none does" in doubted.stderr.decode()
    assert "pass --box-order" in called("check", "control", *sides(raw, pred)).stdout.decode()
    fixed = scores(*sides(raw, pred), "--box-order", "x1x2y1y2", "--protocol", "reference")
    golden = json.loads((truth.parent / "golden.json").read_text())["line1_exact"]
    assert fixed["miou"] == pytest.approx(golden["mIoU"] / 100, rel=1e-9)
    assert scores(*sides(raw, pred), "--protocol", "reference")["miou"] < fixed["miou"]
    refused(called("run", "control", *sides(raw, pred), "--box-order", "y1x1"), "box_order")


def test_check_takes_the_order_that_is_said(tmp_path: Path) -> None:
    """What a run refuses is an error of the check, and what it takes is none."""
    swapped = [[0.1, 0.2, 0.6, 0.7]] * 4  # a box as x1, x2, y1, y2, and another one as x1, y1, x2, y2
    inverted = [[0.4, 0.5, 0.1, 0.2]] * 4
    pred = saved(tmp_path / "p.json", [{"id": 1, "width": 40, "height": 20, "bboxes": FOUND}])
    for asked in (swapped, inverted):
        truth = saved(tmp_path / "t.json", [{"id": 1, "bboxes": asked}])
        for order in ("auto", "x1y1x2y2", "x1x2y1y2"):
            flags = (*sides(truth, pred), "--box-order", order, "--workers", 1)
            codes = [called(verb, "control", *flags).returncode for verb in ("check", "run")]
            assert codes[0] == codes[1], (asked[0], order)


def test_predictions_without_a_truth(tmp_path: Path) -> None:
    truth, pred = case("edge_unknown_id", tmp_path)
    refused(
        called("run", "control", *sides(truth, pred)), "1 pred without a truth, the first is '99'", "--on-stray note"
    )
    said = plain(*sides(truth, pred), "--on-stray", "note")
    assert any("1 pred without a truth left out, the first is '99'." in note for note in said["notes"])
    twice = case("edge_dup_pred", tmp_path)
    refused(called("run", "control", *sides(*twice)), "has an id that came before")


def test_the_first_frames_only(davis: dict[str, Path]) -> None:
    """Which are also the frames that detections are counted in."""
    args = sides(davis["truth"], davis["pkl"])
    assert scores(*args, "--frames", 8)["n_frames_scored"] == 8 * 40
    assert scores(*args, "--frames", 8, "--stride", 2)["n_frames_scored"] == 4 * 40
    found = scores(*args, "--frames", 8, "--protocol", "reference")
    assert found["coverage"] == 0  # 8 detections at most are not more than 8
    assert scores(*args, "--stride", 2)["n_frames_scored"] == 8 * 40


def test_lengths_that_must_agree(davis: dict[str, Path]) -> None:
    """16 frames, 24 boxes."""
    args = sides(davis["truth"], davis["pkl"])
    assert scores(*args)["n_frames_unmet"] == 8 * 40
    done = called("run", "control", *args, "--set", "following.align=error")
    assert done.returncode == 3
    assert "has 16 frames and 24 boxes were asked for: pass --set following.align=prefix" in done.stderr.decode()
    assert plain(*args, "--set", "following.align=error", "--frames", 16)["scores"]["n_frames_unmet"]["value"] == 0
    refused(called("run", "control", *args, "--set", "following.align=later"), "align")


# --- runs


def results(out: Path) -> dict[str, bytes]:
    """What must be the same bytes however a run came about."""
    files = [out / "scores.json", out / "failures.jsonl", *out.glob("rows/*/*"), *out.glob("done/*")]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def test_a_killed_run_goes_on_and_workers_change_no_byte(tmp_path: Path) -> None:
    """322 videos in six parts; killed when the first is done."""
    truth, pred = case("ssv2_16f_64x64", tmp_path)
    args = [*sides(truth, pred), "--protocol", "reference"]
    for workers in (1, 2):
        assert called("run", "control", *args, "--out", tmp_path / f"{workers}", "--workers", workers).returncode == 0
    assert results(tmp_path / "1") == results(tmp_path / "2")
    out = tmp_path / "killed"
    line = command("run", "control", *args, "--out", out, "--workers", 1)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not list(out.glob("done/*.json")):
        pass
    process.kill()
    process.communicate()
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("done/*.json")}
    assert kept
    assert called("run", "control", *args, "--out", out, "--workers", 2).returncode == 0
    assert results(out) == results(tmp_path / "1")
    assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in out.glob("done/*.json")}.items()


@pytest.mark.parametrize("protocol", ["spec", "reference"])
def test_masks_that_changed_are_no_part_of_the_same_run(tmp_path: Path, protocol: str) -> None:
    """Of soft masks the published centroid depends on the values, not only on where they are above 0."""
    truth = saved(tmp_path / "t.json", [{"id": 1, "bboxes": ASKED}])
    left, right = np.ones((4, 20, 40)), np.ones((4, 20, 40))
    left[:, :, :5], right[:, :, 30:] = 9, 9
    found = []
    for masks in (left, right):
        np.savez(tmp_path / "p.npz", **{"1/masks": masks})
        args = (*sides(truth, tmp_path / "p.npz"), "--protocol", protocol)
        found.append(scores(*args)["centroid_distance"])
        kept = called("run", "control", *args, "--out", tmp_path / "run")
        assert (b"have changed" in kept.stderr, kept.returncode) == ((masks is right), 2 * (masks is right))
    assert (found[0] == found[1]) == (protocol == "spec")


def test_records_that_fail_cost_themselves(tmp_path: Path) -> None:
    truth = saved(tmp_path / "t.json", [{"id": own, "bboxes": ASKED} for own in (1, 2, 3)])
    good = {"width": 40, "height": 20, "bboxes": FOUND}
    pred = saved(tmp_path / "p.json", [{"id": 1, **good}, {"id": 2, **good, "bboxes": [[30, 5, 10, 15]] * 4}])
    done = called("run", "control", *sides(truth, pred), "--out", tmp_path / "run", "--format", "json")
    assert done.returncode == 3
    ap50 = json.loads(done.stdout)["scores"]["ap50"]
    assert (ap50["value"], ap50["n"], ap50["failed"]) == (0.5, 2, 1)
    text = done.stderr.decode()
    assert "1 of 3 samples failed" in text
    assert "id 2 has the box (30, 5, 10, 15) in frame 0, which ends before it begins" in text
    assert len((tmp_path / "run" / "failures.jsonl").read_text().splitlines()) == 1
    assert called("run", "control", *sides(truth, pred), "--strict").returncode == 2


def test_check(davis: dict[str, Path], tmp_path: Path) -> None:
    done = called("check", "control", *sides(davis["truth"], davis["json"]))
    assert (done.returncode, "0 errors" in done.stdout.decode()) == (0, True)
    assert "there are 16 frames and 24 boxes were asked for: the first 16 are compared." in done.stdout.decode()
    nothing = {"id": 1, "bboxes": [[0.5] * 4] * 4}
    truth = saved(tmp_path / "t.json", [nothing, {"id": 2, "bboxes": ASKED}, {"id": 3, "bboxes": ASKED}])
    none = {"id": 2, "width": 40, "height": 20, "bboxes": [None] * 4}
    pred = saved(tmp_path / "p.json", [{**none, "id": 1, "bboxes": FOUND}, none])
    text = re.sub(r"\s+", " ", called("check", "control", *sides(truth, pred)).stdout.decode())
    assert "no frame of the truth has a box: its scores are undefined." in text
    assert "nothing was detected in any frame." in text
    assert "no pred was found: it will be scored as empty." in text


# --- tables and other verbs


def test_tables(demo: Path) -> None:
    run = demo / "runs" / "fading"
    table = called("show", run).stdout.decode()
    assert "coverage" in table
    assert "share:0.3" not in table
    assert "0.3" in called("show", run, "--all").stdout.decode()
    known = package.Run.load(run)
    by_iou = list(csv.DictReader(io.StringIO(called("show", run, "--by", "iou", "--format", "csv").stdout.decode())))
    assert len(by_iou) == 21
    for row in by_iou:
        assert float(row["success_auc"]) == known.scores[f"success_auc@iou:{row['iou']}"].value
    by_sample = json.loads(called("show", run, "--by", "sample", "--format", "json").stdout)["rows"]
    assert [row["sample"] for row in by_sample] == list(known.samples)
    assert by_sample[0]["ap50"] == known.sample_scores[known.samples[0]]["ap50"]
    assert (
        len(list(csv.DictReader(io.StringIO(called("show", run, "--by", "share", "--format", "csv").stdout.decode()))))
        == 10
    )
    refused(called("show", run, "--by", "moon"), "no table by 'moon'", "iou")


def test_models_fail_as_they_are_made_to(demo: Path) -> None:
    runs = {path.name: package.Run.load(path) for path in (demo / "runs").iterdir()}
    of = {name: {key: one.value for key, one in run.scores.items()} for name, run in runs.items()}
    assert of["steady"]["miou"] > 0.8 > of["outlined"]["miou"] > of["late"]["miou"] > of["still"]["miou"]
    assert of["fading"]["coverage"] < 0.5 < of["drifting"]["coverage"]
    assert of["fading"]["ap50_detected"] == 1 > of["fading"]["ap50"]
    assert of["drifting"]["centroid_distance"] == max(one["centroid_distance"] for one in of.values())
    assert len({one["ceiling_miou"] for one in of.values()}) == 1
    assert any("A box that never moves" in note for note in runs["still"].notes)
    assert not any("A box that never moves" in note for note in runs["steady"].notes)


def test_compare(demo: Path) -> None:
    done = called("compare", f"a={demo / 'runs' / 'steady'}", f"b={demo / 'runs' / 'late'}", "--format", "json")
    if done.returncode:
        done = called("compare", demo / "runs" / "steady", demo / "runs" / "late", "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    assert "miou" in text
    assert "centroid_distance" in text


def test_metrics_of_other_things_are_refused(davis: dict[str, Path]) -> None:
    """A metric of poses does not read boxes."""
    args = ("run", "control", *sides(davis["truth"], davis["json"]))
    refused(called(*args, "--metric", "oks"), "oks")


def test_refusals(davis: dict[str, Path], tmp_path: Path) -> None:
    args = ("run", "control", *sides(davis["truth"], davis["json"]))
    refused(called("run", "control", "--truth", davis["truth"]), "--pred")
    refused(called("run", "control", *sides(davis["truth"], tmp_path / "none.json")), "does not exist")
    refused(called(*args, "--protocol", "publish"), "publish", "reference")
    refused(called(*args, "--metric", "moon"), "moon")
    refused(called(*args, "--printed", tmp_path / "lines.txt"), "--protocol reference", "--printed")
    refused(called(*args, "--metric", "detector_ceiling"), "--ceiling")
    assert not (tmp_path / "lines.txt").exists()
    transfer = ("run", "transfer", "--truth", tmp_path, "--pred", tmp_path)
    refused(called(*transfer, "--box-order", "auto"), "box")
    refused(called(*transfer, "--subset", "paper"), "no subset")
    empty = saved(tmp_path / "e.json", [])
    refused(called("run", "control", *sides(empty, davis["json"])), "holds no record")
    refused(called("run", "control", *sides(davis["truth"], empty)), "holds no record")
