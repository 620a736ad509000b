"""Karat gives the published reference outputs, and the walker that says so notices when it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.__main__ import adapters, main, walk
from golden.case import Answer, read_case
from golden.compare import Tolerance, compare

import karat

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT.parent / "shared" / "golden"
FAMILIES = ("transfer", "pose", "radiomap", "control", "generation")
Write = Callable[..., Path]


@pytest.mark.parametrize("family", FAMILIES)
def test_reference_outputs(family: str) -> None:
    if not (GOLDEN / "index.json").is_file():
        pytest.fail(f"THE REFERENCE OUTPUTS ARE MISSING: {GOLDEN} holds no index.json, so nothing was verified.")
    said: list[str] = []
    tally = walk(GOLDEN, [family], said.append)[family]
    assert tally.clean, "\n".join([*said, f"{family}: {tally}"])
    assert tally.passed > 0
    assert tally.compared > tally.passed


def test_reference_outputs_of_networks() -> None:
    """Those of the networks that exist: DOVER and I3D do not yet."""
    said: list[str] = []
    tally = walk(GOLDEN, ["networks"], said.append)["networks"]
    assert not tally.failed, "\n".join(said)
    assert set(tally.not_run) == {"network-dover", "network-i3d", "network-i3d-end-to-end"}
    assert tally.passed >= 14


def nocap(expected: Any) -> Any:
    """The part of the expected values that the tests change."""
    return expected["straight"]["nocap"]


@pytest.fixture
def depths() -> dict[str, Any]:
    """Two frames of depth and their error by Karat itself, frame by frame and as a mean."""
    draw = np.random.default_rng(5)
    truth = draw.uniform(1, 9, (2, 12, 16)).astype(np.float32)
    pred = (truth * draw.uniform(0.8, 1.2, truth.shape) + 0.1).astype(np.float32)
    frames = [karat.DepthRMSE()(p, t)["depth_si_rmse"] for p, t in zip(pred, truth, strict=True)]
    return {
        "arrays": {"gt": truth, "pred": pred},
        "expected": {
            "gt_shape": [2, 12, 16],
            "straight": {
                "nocap": {"per_frame": frames, "valid_frame": [True, True], "mean_all_frames": np.mean(frames)}
            },
        },
    }


@pytest.fixture
def write(tmp_path: Path, depths: dict[str, Any]) -> Write:
    """Writes a folder of one case, with some of what it expects or of its entry replaced."""

    def written(change: Callable[[Any], Any] | None = None, **entry: Any) -> Path:
        np.savez(tmp_path / "depth.npz", **depths["arrays"])
        if change is not None:
            change(depths["expected"])
        (tmp_path / "expected.json").write_text(json.dumps({"a/b": [depths["expected"]]}))
        case = {
            "family": "transfer",
            "case": "two frames",
            "inputs": {"arrays": "depth.npz", "gt": "gt", "pred": "pred"},
            "expected": "expected.json#/a~1b/0",
            "protocol": {"name": "transfer-depth", "rtol": 0, "atol": 1e-9},
        }
        more = (
            [case | {"family": "other", "protocol": {"name": "no-such-protocol"}}] if entry.pop("other", False) else []
        )
        (tmp_path / "index.json").write_text(json.dumps([case | entry, *more]))
        return tmp_path

    return written


def test_a_case_that_agrees_passes(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write()), "-v"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "transfer: 1 passed, 0 failed, 0 not run"
    assert "transfer: 5 values compared" in said
    assert any("largest difference" in line for line in said)
    assert any("left out 1: describes the input" in line for line in said)


def test_a_wrong_number_fails_and_is_named(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(lambda expected: nocap(expected)["per_frame"].__setitem__(1, 123.0))
    assert main([str(folder)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("transfer two frames straight.nocap.per_frame.1: expected 123.0 got 0.")
    assert said[1:] == ["transfer: 0 passed, 1 failed, 0 not run"]


@pytest.mark.parametrize("place", ["mean_all_frames", "valid_frame"])
def test_null_is_no_number(write: Write, place: str) -> None:
    assert main([str(write(lambda expected: nocap(expected).update({place: None})))]) == 1


def test_a_number_is_no_null(write: Write, depths: dict[str, Any]) -> None:
    depths["arrays"]["gt"][1] = 0  # no valid pixel: Karat's value of this frame alone is undefined
    nocap(depths["expected"]).update(
        per_frame=[nocap(depths["expected"])["per_frame"][0], 0.0], valid_frame=[True, False]
    )
    nocap(depths["expected"]).update(mean_all_frames=nocap(depths["expected"])["per_frame"][0] / 2)
    assert main([str(write())]) == 0
    depths["arrays"]["gt"][0] = 0
    nocap(depths["expected"]).update(per_frame=[0.0, 0.0], valid_frame=[False, False], mean_all_frames=0.0)
    assert main([str(write(lambda expected: nocap(expected).update(mean_valid_frames=None)))]) == 0
    assert main([str(write(lambda expected: nocap(expected).update(mean_valid_frames=0.0)))]) == 1


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        ({"atol": 1e-9}, 1),
        ({"atol": 2e-3}, 0),
        ({"rtol": 1e-9, "atol": 0}, 1),
        ({"rtol": 0.1, "atol": 0}, 0),
        ({"atol": 1e-9, "atol_by_prefix": {"mean": 2e-3}}, 0),
        ({"atol": 1e-9, "atol_by_prefix": {"straight/nocap": 2e-3}}, 0),
        ({"atol": 1e-9, "atol_by_prefix": {"nocap/per": 2e-3}}, 1),
        ({"atol": 2e-3, "atol_by_prefix": {"nocap": 2e-3, "nocap/mean": 1e-9}}, 1),
    ],
)
def test_tolerances(write: Write, protocol: dict[str, Any], code: int) -> None:
    def shift(expected: Any) -> None:
        nocap(expected)["mean_all_frames"] += 1e-3

    assert main([str(write(shift, protocol={"name": "transfer-depth", **protocol}))]) == code


def test_a_protocol_without_adapter_is_not_run(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write(other=True))]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "other no-such-protocol: no adapter, 1 not run",
        "transfer: 1 passed, 0 failed, 0 not run",
        "other: 0 passed, 0 failed, 1 not run",
    ]


def test_only_the_named_families(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write(other=True))
    assert main([folder, "--family", "transfer"]) == 0
    assert capsys.readouterr().out.splitlines() == ["transfer: 1 passed, 0 failed, 0 not run"]
    assert main([folder, "--family", "other"]) == 1
    assert main([folder, "--family", "transfer", "other"]) == 1
    assert main([folder, "--family", "transfer", "--family", "other"]) == 1
    assert main([folder, "--family", "nobody"]) == 2


def test_what_an_adapter_does_not_answer_fails(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write(lambda expected: expected.update(new={"number": 1.0})))]) == 1
    assert "new.number: expected 1.0 got nothing" in capsys.readouterr().out


def test_a_case_that_stops_fails_alone(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(inputs={"arrays": "nothing.npz", "gt": "gt", "pred": "pred"})
    assert main([str(folder)]) == 1
    assert "transfer two frames stopped: FileNotFoundError" in capsys.readouterr().out


def test_a_case_that_compares_nothing_fails(write: Write) -> None:
    assert main([str(write(lambda expected: expected.pop("straight")))]) == 1


def test_a_folder_without_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "holds no index.json" in capsys.readouterr().err


def test_as_a_module(write: Write) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", "tests.golden", str(write())]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "transfer: 1 passed, 0 failed, 0 not run\n"), done.stderr


def test_expected_parts_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "scalars.json").write_text('{"x": 1}')
    np.savez(tmp_path / "arrays.npz", y=np.array([1.0, np.nan]))
    entry = {"family": "f", "case": "c", "inputs": {}, "protocol": {}}
    case = read_case(tmp_path, entry | {"expected": {"scalars": "scalars.json", "arrays": "arrays.npz"}})
    answer = Answer({"scalars": {"x": 1}, "arrays": {"y": np.array([1.0, np.nan])}})
    assert not compare(case.expected, answer, Tolerance()).differences


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1, 1.0, True),
        (1, 2, False),
        (1.0, float("nan"), False),
        (None, float("nan"), True),
        (None, None, True),
        (None, 0.0, False),
        ("inf", float("inf"), True),
        ("inf", 1e300, False),
        ("-inf", float("inf"), False),
        (float("inf"), float("inf"), True),
        (True, True, True),
        (True, 1, False),
        (1, True, False),
        (0.0, False, False),
        ("ab", "ab", True),
        ("ab", "ac", False),
        ("ab", None, False),
        ("raises ValueError: no", float("nan"), True),
        ("raises ValueError: no", {"f1": float("nan"), "recall": None}, True),
        ("raises ValueError: no", {"f1": float("nan"), "recall": 0.0}, False),
        ("raises ValueError: no", "raises ValueError: no", False),
        ({"f1": 1.0}, "raises ValueError: no", False),
        ([1.0, 2.0], (1.0, 2.0), True),
        ([1.0, 2.0], np.array([1.0, 2.0]), True),
        ([1.0, 2.0], [1.0], False),
        ([1.0], [1.0, 2.0], False),
        ([], [], True),
        ([], [1.0], False),
        ({}, {}, True),
        ({"a": 1.0}, {"a": 1.0, "more": 2.0}, True),
        ({"a": 1.0}, {}, False),
        ({"a": {"b": 1.0}}, {"a": 1.0}, False),
        (1.0, [1.0], False),
    ],
)
def test_leaves(expected: Any, got: Any, same: bool) -> None:
    outcome = compare({"leaf": expected}, Answer({"leaf": got}), Tolerance(atol=1e-9))
    assert (not outcome.differences) == same
    assert outcome.compared > 0


def test_whole_numbers_are_exact_whatever_the_tolerance() -> None:
    assert compare([100], Answer([101]), Tolerance(atol=5)).differences
    assert not compare([100], Answer([101.0]), Tolerance(atol=5)).differences


def test_an_answer_that_is_no_structure_fails_leaf_by_leaf() -> None:
    outcome = compare({"a": {"b": 1.0, "c": [2.0]}}, Answer(None), Tolerance())
    assert [str(difference) for difference in outcome.differences] == [
        "a.b: expected 1.0 got nothing",
        "a.c: expected [2.0] got nothing",
    ]


def test_only_what_is_declared_is_left_out() -> None:
    outcome = compare({"a": {"x": 1.0, "y": 2.0}, "b": 3.0}, Answer({"b": 3.0}, {"a/x": "why"}), Tolerance())
    assert outcome.skipped == {("a", "x"): "why"}
    assert [difference.path for difference in outcome.differences] == [("a", "y")]


def test_the_largest_difference_of_a_quantity() -> None:
    outcome = compare({"a": [1.0, 2.0], "b": None}, Answer({"a": [1.25, 2.5], "b": float("nan")}), Tolerance(atol=1))
    assert outcome.largest == {"a": 0.5}


def test_every_adapter_is_found_by_its_file() -> None:
    assert {"transfer-clips", "transfer-depth", "transfer-segments"} <= set(adapters())
