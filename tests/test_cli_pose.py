"""`karat run pose` as its users call it: files, protocols, flags, tables, other tools' layouts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called, karat, refused

import karat as package
from karat.metrics.tracks import identity_switches

SHARED = Path(__file__).parents[2] / "shared"
POSE = SHARED / "golden" / "pose"
COCO_MAP = 0.13762561824301153  # of pycocotools and faster-coco-eval
BODY = np.array([[0.0, 0], [40, 0], [40, 30], [0, 30]])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `karat demo pose`; tests do not write there."""
    home = tmp_path_factory.mktemp("demo")
    done = karat("demo", "pose", cwd=home)
    assert done.returncode == 0, done.stderr.decode()
    for word in ("pose@spec", "oks_voc.mAP", "HOTA", "n_fp_unmatched", "eager", "karat:"):
        assert word in done.stdout.decode()
    return home / "karat-demo" / "pose"


def scores(*args: Any) -> dict[str, Any]:
    """{score: value} of a run that goes well."""
    done = called("run", "pose", *args, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    return {name: one["value"] for name, one in json.loads(done.stdout)["scores"].items()}


def save(path: Path, points: Any, frame: Any, **given: Any) -> Path:
    """Poses as a plain file."""
    np.savez(path, points=np.asarray(points, float), frame=np.asarray(frame), **given)
    return path


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two instances that are found a pixel off, one that is missed, one that is made up."""
    nodes = np.array(["a", "b", "c", "d"])
    truth = save(tmp_path / "truth.npz", [BODY, BODY + 200, BODY], [0, 0, 1], nodes=nodes)
    points = [BODY + 1, BODY + 201, BODY + 500]
    pred = save(tmp_path / "pred.npz", points, [0, 0, 0], nodes=nodes, score=[0.9, 0.8, 0.7], labelled=[0])
    return truth, pred


def test_coco_files_give_the_numbers_of_pycocotools() -> None:
    case = POSE / "synth3x200"
    found = scores("--truth", case / "coco_gt.json", "--pred", case / "coco_dt.json", "--protocol", "coco")
    assert found["oks_voc.mAP"] == pytest.approx(COCO_MAP, rel=1e-12)


def test_slp_files_give_the_numbers_of_sleap_nn() -> None:
    pytest.importorskip("sleap_io")
    case = POSE / "synth3x200"
    wanted = json.loads((case / "metrics.json").read_text())["metrics"]
    found = scores("--truth", case / "gt.slp", "--pred", case / "pred.slp", "--protocol", "reference", "--sigma", 0.025)
    assert found["mOKS"] == pytest.approx(wanted["mOKS"]["mOKS"], rel=1e-9)
    assert found["oks_voc.mAP"] == pytest.approx(wanted["voc_metrics"]["oks_voc.mAP"], rel=1e-9)
    assert found["mPCK"] == pytest.approx(wanted["pck_metrics"]["mPCK"], rel=1e-9)
    assert found["Dist@p99"] == pytest.approx(wanted["distance_metrics"]["p99"], rel=1e-9)
    assert (found["n_frames_skipped"], found["n_gt_ignored"], found["n_fp_unmatched"]) == (3, 0, 40)


def test_from_one_convention_to_another() -> None:
    """The table of docs/pose.md."""
    pytest.importorskip("sleap_io")
    case = POSE / "synth3x200"
    args = ["--truth", case / "gt.slp", "--pred", case / "pred.slp", "--metric", "oks_voc", "--protocol"]
    steps = [
        ["reference"],
        ["reference", "--set", "oks_voc.false_positives=True"],
        ["reference", "--set", "oks_voc.false_positives=True", "--set", "matches.unlabelled=ignore"],
        ["spec"],
        ["coco"],
    ]
    found = [scores(*args, *step)["oks_voc.mAP"] for step in steps]
    text = (Path(__file__).parents[1] / "docs" / "pose.md").read_text(encoding="utf-8")
    assert len({f"{value:.4f}" for value in found}) == len(steps)
    for value in found:
        assert f"| {value:.4f} |".replace("0.", ".") in text


def test_what_is_missed_invented_and_left_out_is_always_told(sides: tuple[Path, Path]) -> None:
    truth, pred = sides
    for args, counted in (
        ([], {"n_frames_skipped": 0, "n_gt_ignored": 0, "n_fp_unmatched": 1, "n_fn_unmatched": 1}),
        (["--protocol", "reference"], {"n_frames_skipped": 1, "n_gt_ignored": 0, "n_fp_unmatched": 1}),
        (["--match", "oks"], {"n_frames_skipped": 0, "n_fp_unmatched": 1}),
        (["--match", "centroid"], {"n_frames_skipped": 0, "centroid_n_gt_undefined": 0, "centroid_n_fp": 1}),
    ):
        done = called("run", "pose", "--truth", truth, "--pred", pred, *args)
        assert done.returncode == 0, done.stderr.decode()
        rows = [line.split() for line in done.stdout.decode().splitlines()]
        shown = {row[0]: row[[len(row) - 5, -5][row[-5] != "all"]] for row in rows if len(row) >= 6}
        for name, value in counted.items():
            assert shown[name] == str(value), (args, name)


def test_a_sigma_for_all_nodes_and_one_for_each(sides: tuple[Path, Path], tmp_path: Path) -> None:
    truth, pred = sides
    args = ("--truth", truth, "--pred", pred)
    loose, strict = (scores(*args, "--sigma", sigma)["mOKS"] for sigma in (0.1, 0.01))
    assert loose > scores(*args)["mOKS"] > strict
    by_name = tmp_path / "sigmas.json"
    by_name.write_text(json.dumps({"d": 0.1, "c": 0.1, "b": 0.1, "a": 0.1}))
    assert scores(*args, "--sigmas", by_name)["mOKS"] == loose
    by_name.write_text(json.dumps({"d": 0.01, "c": 0.1, "b": 0.1, "a": 0.1}))
    assert strict < scores(*args, "--sigmas", by_name)["mOKS"] < loose
    by_name.write_text(json.dumps({"wing": 0.1}))
    done = called("run", "pose", *args, "--sigmas", by_name)
    assert done.returncode == 3
    assert "wing" in done.stderr.decode()
    by_name.write_text("{}")
    refused(called("run", "pose", *args, "--sigmas", by_name), "holds no sigmas")


def test_one_predicted_node_leaves_centroids(tmp_path: Path) -> None:
    truth = save(tmp_path / "truth.npz", [BODY, BODY + 200], [0, 0], nodes=np.array(list("abcd")))
    pred = save(tmp_path / "pred.npz", [[[20, 15]], [[221, 215]]], [0, 0], nodes=np.array(["c"]), score=[0.9, 0.8])
    done = called("run", "pose", "--truth", truth, "--pred", pred, "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["scores"]["centroid_f1"]["value"] == 1
    assert found["scores"]["centroid_dist_max"]["value"] == 1
    assert "mOKS" not in found["scores"]
    assert any("one node" in note for note in found["notes"])


def test_skeletons_that_differ_are_listed(tmp_path: Path, sides: tuple[Path, Path]) -> None:
    truth, _ = sides
    pred = save(tmp_path / "other.npz", [BODY], [0], nodes=np.array(["a", "b", "c", "wing"]), score=[0.9])
    done = called("run", "pose", "--truth", truth, "--pred", pred)
    assert done.returncode == 3
    assert "4 nodes: a, b, c, wing" in done.stderr.decode()
    assert "4 nodes: a, b, c, d" in done.stderr.decode()
    told = called("check", "pose", "--truth", truth, "--pred", pred)
    assert told.returncode == 3
    assert "a, b, c, wing" in told.stdout.decode()


def test_check_doubts_what_is_doubtful(tmp_path: Path, sides: tuple[Path, Path]) -> None:
    truth, pred = sides
    fine = called("check", "pose", "--truth", truth, "--pred", pred)
    assert fine.returncode == 0
    assert "1 of 2 labelled frames are not in the predictions" in fine.stdout.decode()
    nodes = np.array(["a", "b", "c", "d"])
    for word, given in {
        "have no score": {"frame": [0, 0]},
        "no prediction is in a labelled frame": {"frame": [7, 8], "score": [0.5, 0.6]},
        "lists frame 0 twice": {"frame": [0, 0], "score": [0.5, 0.6], "labelled": [0, 0]},
        "all predictions have one score": {"frame": [0, 0], "score": [0.5, 0.5]},
    }.items():
        odd = save(tmp_path / "odd.npz", [BODY, BODY + 9], **given, nodes=nodes)
        assert word in called("check", "pose", "--truth", truth, "--pred", odd).stdout.decode(), word


def test_tables_by_node_by_sample_and_of_everything(demo: Path) -> None:
    run = demo / "runs" / "jitter"
    table = called("show", run).stdout.decode()
    assert "tail_tip" in table
    assert "alpha:" not in table
    assert "alpha:0.50" in called("show", run, "--all").stdout.decode()
    by_node = list(csv.DictReader(io.StringIO(called("show", run, "--by", "node", "--format", "csv").stdout.decode())))
    known = package.Run.load(run)
    assert len(by_node) == 15
    for row in by_node:
        assert float(row["mPCK"]) == known.scores[f"mPCK@node:{row['node']}"].value
    by_video = json.loads(called("show", run, "--by", "sample", "--format", "json").stdout)["rows"]
    assert [row["sample"] for row in by_video] == ["arena", "corridor"]
    assert by_video[0]["mOKS"] == known.sample_scores["arena"]["mOKS"]
    assert "PCK@5" in by_video[0]
    refused(called("show", run, "--by", "moon"), "no table by 'moon'", "node")


def test_scores_with_an_at_in_their_names_are_scores(demo: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(called("show", demo / "runs" / "sharp", "--format", "csv").stdout.decode())))
    named = {(row["score"], row["region"]) for row in rows}
    assert {("PCK@5", "all"), ("Dist@p99", "all"), ("PCK", "px:5"), ("mPCK", "node:nose")} <= named


def test_identity_switches_are_told_with_their_frames(demo: Path) -> None:
    run = package.Run.load(demo / "runs" / "swaps")
    switches = identity_switches(run.rows["tracks"])
    assert len(switches) == run.scores["IDSW"].value > 10
    (note,) = [note for note in run.notes if "Identity switches" in note]
    first = switches[0]
    assert f"{first.video}:{first.frame} ({first.truth}: {first.before} to {first.after})" in note


def test_sigmas_from_two_labellings_can_be_used(tmp_path: Path, sides: tuple[Path, Path]) -> None:
    rng = np.random.default_rng(0)
    true = BODY + np.arange(40)[:, None, None]
    spread = np.array([1.0, 1, 1, 4])[:, None]
    labels = [true + spread * rng.standard_normal(true.shape) for _ in range(2)]
    nodes = np.array(["a", "b", "c", "d"])
    first, second = (save(tmp_path / f"{i}.npz", one, np.arange(40), nodes=nodes) for i, one in enumerate(labels))
    out = tmp_path / "sigmas.json"
    scores("--truth", first, "--pred", second, "--metric", "node_sigma", "--sigmas-out", out)
    sigmas = json.loads(out.read_text())
    assert 2.5 < sigmas["d"] / sigmas["a"] < 6
    truth, pred = sides
    assert scores("--truth", truth, "--pred", pred, "--sigmas", out)["mOKS"] > 0


def test_other_layouts_are_refused_where_there_are_none(tmp_path: Path) -> None:
    for name in ("truth", "pred"):
        np.savez(tmp_path / f"{name}.npz", frames=np.zeros((1, 16, 16, 3), np.uint8))
    args = ("--truth", tmp_path / "truth.npz", "--pred", tmp_path / "pred.npz", "--legacy-npz", tmp_path / "m.npz")
    refused(called("run", "transfer", *args), "transfer has no --legacy-npz")


def test_several_videos_are_pooled_and_counted(demo: Path) -> None:
    run = package.Run.load(demo / "runs" / "misses")
    assert run.scores["n_gt"].value == sum(of["n_gt"] for of in run.sample_scores.values())
    assert run.scores["mOKS"].n == len(run.samples) == 2


def test_predictions_without_a_score_are_given_one(tmp_path: Path, sides: tuple[Path, Path]) -> None:
    truth, _ = sides
    pred = save(tmp_path / "unscored.npz", [BODY], [0], nodes=np.array(list("abcd")))
    args = ("--truth", truth, "--pred", pred)
    refusal = called("run", "pose", *args)
    assert refusal.returncode == 3
    assert "score" in refusal.stderr.decode()
    for protocol in ("spec", "coco"):
        found = scores(*args, "--protocol", protocol, "--default-score", 1)
        assert found["mOKS"] == 1
        assert 0 < found["oks_voc.mAP"] < 1
