"""`karat run instances` as its users call it: files, protocols, flags, tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called, refused

import karat
from karat.errors import KaratError
from karat.sources.instance_masks import make_instances


def save(path: Path, columns: list[slice], frame: list[int], width: int = 20, **given: Any) -> Path:
    """Masks of one row of pixels, packed."""
    masks = np.zeros((len(columns), 1, width), bool)
    for mask, own in zip(masks, columns, strict=True):
        mask[:, own] = True
    np.savez(path, masks=np.packbits(masks, axis=-1), shape=[1, width], frame_idx=frame, **given)
    return path


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """IoUs of 3/4 and 1/2, one missed in frame 2 that is not predicted, one false, one without a pixel."""
    truth = [slice(0, 4), slice(10, 20), slice(0, 5)]
    pred = [slice(0, 3), slice(15, 20), slice(5, 8), slice(0, 0)]
    return (
        save(tmp_path / "truth.npz", truth, [0, 0, 2]),
        save(tmp_path / "pred.npz", pred, [0, 0, 0, 0], score=[0.9, 0.8, 0.7, 0.6]),
    )


def plain(*args: Any) -> dict[str, Any]:
    """The JSON of a run that goes well."""
    done = called("run", "instances", *args, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def scores(*args: Any) -> dict[str, Any]:
    """{score: value} of a run that goes well."""
    return {name: one["value"] for name, one in plain(*args)["scores"].items()}


def test_two_files(sides: tuple[Path, Path]) -> None:
    truth, pred = sides
    said = plain("--truth", truth, "--pred", pred)
    found = {name: one["value"] for name, one in said["scores"].items()}
    assert (found["mask_n_tp"], found["mask_n_fp"], found["mask_n_fn"]) == (2, 1, 1)
    assert found["mask_mean_iou"] == 5 / 8
    assert found["mask_pq"] == pytest.approx(5 / 12)
    assert found["mask_voc.AP50"] == pytest.approx(67 / 101)  # recalls up to 2/3
    assert found["semantic_n_frames"] == 2
    assert (found["mask_n_pred_blank"], found["mask_n_frames_without_prediction"]) == (1, 1)
    assert any("predicted masks without a pixel, 1" in note for note in said["notes"])
    assert said["signature"].startswith(f"karat:{karat.__version__}|instances@spec|MaskDetection(")


def test_the_reference_leaves_out_what_is_not_predicted(sides: tuple[Path, Path]) -> None:
    """And counts what has no pixel."""
    truth, pred = sides
    said = plain("--truth", truth, "--pred", pred, "--protocol", "reference")
    found = {name: one["value"] for name, one in said["scores"].items()}
    assert (found["mask_n_tp"], found["mask_n_fp"], found["mask_n_fn"]) == (2, 2, 0)
    assert found["mask_n_frames_skipped"] == 1
    assert any("do not list, 1" in note for note in said["notes"])


def test_one_kind_of_comparison(sides: tuple[Path, Path]) -> None:
    truth, pred = sides
    masks, semantic = (scores("--truth", truth, "--pred", pred, "--match", which) for which in ("mask", "semantic"))
    assert not any(name.startswith("semantic") for name in masks)
    assert {name for name in semantic if name.startswith("mask")} == {
        f"mask_n_frames{rest}" for rest in ("", "_skipped", "_without_prediction", "_empty")
    }


def test_tables(sides: tuple[Path, Path]) -> None:
    """What comes first, and a table for each way to part sizes."""
    done = called("run", "instances", "--truth", sides[0], "--pred", sides[1])
    for word in ("mask_pq", "semantic_mean_iou", "size", "third", "small", "--all"):
        assert word in done.stdout.decode()
    assert "mask_iou_p25" not in done.stdout.decode()


def test_parameters(sides: tuple[Path, Path]) -> None:
    """Both from the command line and from Python."""
    truth, pred = sides
    setting = "mask_matches.match_threshold=0.6"
    assert scores("--truth", truth, "--pred", pred, "--set", setting)["mask_n_tp"] == 1
    run = karat.evaluate("instances", truth=truth, pred=pred, settings={"mask_matches.match_threshold": 0.6})
    assert run.scores["mask_n_tp"].value == 1


def test_several_videos(tmp_path: Path) -> None:
    """Folders, paired by name; a video that was not predicted is missed, and one's own arrays say the same."""
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
    columns = {"a": [slice(0, 4)], "b": [slice(3, 9), slice(10, 12)]}
    for name, own in columns.items():
        save(tmp_path / "truth" / f"{name}.npz", own, [0] * len(own))
    save(tmp_path / "pred" / "a.npz", [slice(0, 2)], [0], score=[0.5])
    found = scores("--truth", tmp_path / "truth", "--pred", tmp_path / "pred")
    assert (found["mask_n_tp"], found["mask_n_fn"], found["mask_recall"]) == (1, 2, 1 / 3)
    rows = np.zeros((3, 1, 20), bool)
    for row, own in zip(rows, (*columns["a"], *columns["b"]), strict=True):
        row[:, own] = True
    truth = {"a": make_instances(rows[:1], [0]), "b": {"masks": rows[1:], "frame": [0, 0]}}
    pred = {"a": {"masks": rows[:1] & (np.arange(20) < 2), "frame": [0], "score": [0.5]}}
    again = karat.evaluate("instances", truth=truth, pred=pred).scores
    assert {name: value.plain()["value"] for name, value in again.items()} == found
    alone = karat.evaluate("instances", truth=truth["b"], pred=truth["b"]).scores
    assert alone["mask_mean_iou"].value == 1


def test_no_scores_are_no_average_precision(tmp_path: Path) -> None:
    truth = save(tmp_path / "truth.npz", [slice(0, 4)], [0])
    said = plain("--truth", truth, "--pred", truth)
    assert said["scores"]["mask_mean_iou"]["value"] == 1
    assert said["scores"].get("mask_voc.mAP", {"value": None})["value"] is None
    assert any("no predicted mask has a score" in note for note in said["notes"])
    found = scores("--truth", truth, "--pred", truth, "--default-score", 1)
    assert found["mask_voc.mAP"] == 1


def test_refusals(tmp_path: Path, sides: tuple[Path, Path]) -> None:
    truth, pred = sides
    wider = save(tmp_path / "wider.npz", [slice(0, 4)], [0], 24, score=[1.0])
    done = called("run", "instances", "--truth", truth, "--pred", wider)
    assert done.returncode == 3
    assert "24x1 and the true ones 20x1: scale one side" in done.stderr.decode()
    assert scores("--truth", truth, "--pred", wider, "--protocol", "reference")["mask_n_tp"] == 1
    np.savez(tmp_path / "wrong.npz", masks=np.ones((1, 4, 4)), frame=[0])
    done = called("run", "instances", "--truth", truth, "--pred", tmp_path / "wrong.npz")
    assert (done.returncode, "is float64 of shape (1, 4, 4)" in done.stderr.decode()) == (3, True)
    refused(called("run", "instances", "--truth", truth, "--pred", pred, "--match", "oks"), "mask", "semantic")
    refused(called("run", "instances", "--truth", truth, "--pred", tmp_path / "none.npz"), "none.npz", "does not exist")
    with pytest.raises(KaratError, match="no field"):
        karat.evaluate("instances", truth=truth, pred=pred, poses=pred)


def test_pages() -> None:
    """The suite's page, and the metrics by the reference's names."""
    page = called("describe", "instances").stdout.decode()
    assert "Where the protocols differ" in page
    assert "laid on each other at the top left" in page
    for name, metric in {"mask_voc.AR": "MaskVOC", "mask_metrics.pq": "MaskPQ", "semantic_metrics": "Semantic"}.items():
        assert metric in called("describe", name).stdout.decode()
