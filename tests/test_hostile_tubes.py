"""Files of boxes and masks are hostile: each is refused in one sentence, in little memory, and one bad record costs one
sample."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import called
from clips import karat as command
from tube_refusals import ASKED, FOUND, FRAMES, HEIGHT, TRUTH, WIDTH, at, costs_itself, good, one_sentence, refused, run

import karat
from karat.conversion import convert

# --- records


def boxes(wrong: Any) -> dict[str, Any]:
    """The third frame is wrong."""
    return {"bboxes": [*FOUND[:2], wrong, *FOUND[3:]]}


HUGE = 10**400
RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "boxes are a number": ({"bboxes": 3}, "has int as boxes"),
    "boxes are text": ({"bboxes": "[[0,0,1,1]]"}, "has str as boxes"),
    "boxes are a mapping": ({"bboxes": {"0": [0, 0, 1, 1]}}, "has dict as boxes"),
    "boxes are true": ({"bboxes": True}, "has bool as boxes"),
    "no boxes": ({"bboxes": None}, "has id, width, height, but bboxes or masks were expected"),
    "a flat list": ({"bboxes": [10, 5, 30, 15]}, "has the box 10 in frame 0"),
    "an empty list": ({"bboxes": []}, "has no frame"),
    "a box of three": (boxes([1, 2, 3]), "has the box [1, 2, 3] in frame 2"),
    "a box of five": (boxes([1, 2, 3, 4, 5]), "in frame 2"),
    "a box of text": (boxes(["1", "2", "3", "4"]), "in frame 2"),
    "text for a box": (boxes("1234"), "in frame 2"),
    "truth values": (boxes([True, True, False, True]), "in frame 2"),
    "null in a box": (boxes([1, None, 3, 4]), "in frame 2"),
    "lists in a box": (boxes([[1], [2], [3], [4]]), "in frame 2"),
    "a mapping for a box": (boxes({"x1": 1}), "in frame 2"),
    "an empty box": (boxes([]), "in frame 2"),
    "a long box": (boxes([[0] * 100] * 100), "in frame 2"),
    "far away": (boxes([0, 0, 1e6, 2]), "in frame 2"),
    "farther": (boxes([-1e300, 0, 1e300, 2]), "in frame 2"),
    "a huge number": (boxes([HUGE, 0, 1, 2]), "in frame 2"),
    "a huge negative number": (boxes([0, 0, 1, -HUGE]), "in frame 2"),
    "pixels without a size": ({"width": None, "height": None}, "are relative to the frame"),
    "inverted": (boxes([30, 5, 10, 15]), "in frame 2, which ends before it begins"),
    "width alone": ({"height": None}, "has the size"),
    "a width of text": ({"width": "40"}, "has the size"),
    "a width of 0": ({"width": 0}, "0x20 pixels"),
    "a negative width": ({"width": -40}, "-40x20 pixels"),
    "a huge width": ({"width": 1 << 40}, "1099511627776x20 pixels"),
    "a width beyond numbers": ({"width": HUGE}, "has the size"),
    "a width of a googol": ({"width": 1e100}, "x20 pixels"),
    "half a pixel": ({"width": 40.5}, "has the size"),
    "true wide": ({"width": True, "height": True}, "has the size"),
    "a list wide": ({"width": [40], "height": [20]}, "has the size"),
    "lists of unequal length wide": ({"width": [40, 1], "height": [20]}, "has the size"),
    "a mapping wide": ({"width": {}}, "has the size"),
    "num_bb of text": ({"num_bb": "4"}, "as num_bb"),
    "num_bb of a half": ({"num_bb": 4.5}, "as num_bb"),
    "num_bb below 0": ({"num_bb": -1}, "as num_bb"),
    "num_bb true": ({"num_bb": True}, "as num_bb"),
    "num_bb huge": ({"num_bb": HUGE}, "as num_bb"),
    "a subject of numbers": ({"subject": [1, 2]}, "as subject"),
    "a caption that is a mapping": ({"caption": {"a": 1}}, "as caption"),
    "a detector of 3": ({"detector": 3}, "as detector"),
    "masks of numbers": ({"masks": 5}, "no arrays of numbers"),
    "masks of text": ({"mask": "110"}, "no arrays of numbers"),
    "masks of lists": ({"masks": [[[0, 1], [1, 1]]]}, "no arrays of numbers"),
    "no masks": ({"masks": []}, "has no frame"),
    "only nulls of masks, and then a number": ({"masks": [None, None, 5]}, "no arrays of numbers"),
}
LENGTHS: dict[str, tuple[Any, str]] = {
    "no size": ({"counts": [800]}, "run lengths without a size"),
    "a size of text": ({"size": "20x40", "counts": [800]}, "run lengths without a size"),
    "a size of three": ({"size": [20, 40, 1], "counts": [800]}, "run lengths without a size"),
    "a size of halves": ({"size": [20.0, 40.0], "counts": [800]}, "run lengths without a size"),
    "a size of truths": ({"size": [True, True], "counts": [1]}, "run lengths without a size"),
    "2^40 pixels": ({"size": [1 << 20, 1 << 20], "counts": [1 << 40]}, "1048576x1048576 pixels"),
    "no pixel": ({"size": [0, 0], "counts": []}, "0x0 pixels"),
    "below 0": ({"size": [-20, -40], "counts": [800]}, "-40x-20 pixels"),
    "too few": ({"size": [20, 40], "counts": [799]}, "add up to 799"),
    "too many": ({"size": [20, 40], "counts": [400, 401]}, "add up to 801"),
    "a negative run": ({"size": [20, 40], "counts": [801, -1]}, "in frame"),
    "a huge run": ({"size": [20, 40], "counts": [HUGE]}, "a run longer than"),
    "no counts": ({"size": [20, 40]}, "NoneType"),
    "counts of 3": ({"size": [20, 40], "counts": 3}, "int"),
    "counts of halves": ({"size": [20, 40], "counts": [800.0]}, "list of integers"),
    "another alphabet": ({"size": [20, 40], "counts": "\x00~~"}, "alphabet"),
    "text that is no ASCII": ({"size": [20, 40], "counts": "Ä"}, "ascii"),
    "text that is cut off": ({"size": [20, 40], "counts": "`"}, "cut off"),
    "an empty text": ({"size": [20, 40], "counts": ""}, "cut off"),
    "endless digits": ({"size": [20, 40], "counts": "o" * 10_000 + "0"}, "in frame"),
}


@pytest.mark.parametrize("form", ["json", "pkl", "memory"])
@pytest.mark.parametrize("name", RECORDS)
def test_one_bad_record_costs_one_sample(tmp_path: Path, name: str, form: str) -> None:
    changed, said = RECORDS[name]
    records = [good(1, **changed), good(2)]
    given: Any = records if form == "memory" else tmp_path / f"p.{form}"
    if form == "json":
        at(given, records)
    elif form == "pkl":
        at(given, pickle.dumps(records))
    assert said in costs_itself(given)


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("name", LENGTHS)
def test_bad_run_lengths_cost_one_sample(tmp_path: Path, name: str, place: int) -> None:
    wrong, said = LENGTHS[name]
    right = {"size": [HEIGHT, WIDTH], "counts": [0, HEIGHT * WIDTH]}
    masks = [wrong if frame == place else right for frame in range(FRAMES)]
    assert said in costs_itself(at(tmp_path / "p.json", [{"id": 1, "masks": masks}, good(2)]))


@pytest.mark.parametrize(
    "own", ["a\nb", "\x1b[2J", "../../etc", "\ud800", "ü", "x" * 300, "nul\0", "a (2)", "-1", "a,b"]
)
def test_strange_ids(tmp_path: Path, own: str) -> None:
    """They are ids like others, on their way into a run folder and out of it."""
    truth = at(tmp_path / "t.json", [{"id": own, "bboxes": ASKED}, {"id": 2, "bboxes": ASKED}])
    pred = at(tmp_path / "p.json", [{**good(), "id": own, "bboxes": 3}, good(2)])
    args = ("--truth", truth, "--pred", pred, "--out", tmp_path / "run", "--workers", 1)
    done = called("run", "control", *args, "--format", "json")
    assert done.returncode == 3, done.stderr.decode()
    assert json.loads(done.stdout)["scores"]["ap50"]["n"] == 1
    assert all(line.isprintable() for line in done.stderr.decode().splitlines())
    assert called("show", tmp_path / "run", "--by", "sample", "--format", "csv").returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"t.json", "p.json", "run"}


@pytest.mark.parametrize("own", [None, [], [1], {}, "", "  ", True, 1.0, 1.5])
def test_what_is_no_id(tmp_path: Path, own: Any) -> None:
    """Nobody knows whose record it is."""
    records = [{**good(), "id": own}, good(2)]
    assert "has the id" in refused(lambda: run(at(tmp_path / "p.json", records)))
    assert "has the id" in refused(lambda: run(at(tmp_path / "p.pkl", pickle.dumps(records))))


def test_ids_without_end(tmp_path: Path) -> None:
    """Are not repeated in full in what a user reads."""
    for own in ("x" * 100_000, 10**4000):
        truth = [{"id": own, "bboxes": ASKED}, {"id": 2, "bboxes": ASKED}]
        result = run(at(tmp_path / "p.json", [{**good(), "id": own, "bboxes": 3}, good(2)]), truth)
        assert len(result.failures[0].reason) < 1000
        refused(lambda own=own: run([{**good(), "id": own}, good(2)]))


# --- whole files

DOCUMENTS: dict[str, bytes] = {
    "nothing": b"",
    "a space": b" ",
    "not closed": b'[{"id": 1',
    "an empty list": b"[]",
    "an empty mapping": b"{}",
    "a number": b"3",
    "null": b"null",
    "text": b'"boxes"',
    "a list of numbers": b"[1, 2]",
    "a list of lists": b'[[{"id": 1}]]',
    "a record among others": b'[{"id": 1, "bboxes": [[0, 0, 1, 1]]}, null]',
    "records by id": b'{"1": {"bboxes": [[0, 0, 1, 1]]}}',
    "NaN": b'[{"id": 1, "bboxes": [[NaN, 0, 1, 1]]}]',
    "Infinity": b'[{"id": 1, "bboxes": [[0, 0, Infinity, 1]]}]',
    "-Infinity": b'[{"id": 1, "bboxes": [[0, 0, -Infinity, 1]]}]',
    "a repeated key": b'[{"id": 1, "bboxes": [], "bboxes": []}]',
    "a repeated key inside": b'[{"id": 1, "bboxes": [], "metadata": {"a": 1, "a": 2}}]',
    "deep lists": b"[" * 200_000 + b"]" * 200_000,
    "deep mappings": b'{"a":' * 100_000,
    "deep in a record": b'[{"id": 1, "bboxes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
    "more digits than are read": b'[{"id": 1, "bboxes": [[' + b"9" * 10_000 + b", 0, 1, 1]]}]",
    "not UTF-8": b'[{"id": "\xff\xfe", "bboxes": []}]',
    "UTF-16": '[{"id": 1}]'.encode("utf-16"),
    "with a mark": b'\xef\xbb\xbf[{"id": 1, "bboxes": []}]',
    "a NUL": b"\0" * 100,
    "two documents": b"[] []",
    "a pickle": pickle.dumps([good()]),
}


@pytest.mark.parametrize("side", ["pred", "truth"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_no_document(tmp_path: Path, name: str, side: str) -> None:
    path = at(tmp_path / "wrong.json", DOCUMENTS[name])
    sides = {"truth": TRUTH, "pred": [good()]} | {side: path}
    assert "wrong.json" in refused(lambda: karat.evaluate("control", **sides, workers=1))
    if name != "an empty list":  # which is one of no videos
        refused(lambda: convert(path, tmp_path / "out.json"))
        assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("suffix", [".json", ".pkl", ".npz", ".safetensors"])
def test_what_is_no_file(tmp_path: Path, suffix: str) -> None:
    """A folder, nothing, an empty file, a suffix that says nothing."""
    path = tmp_path / f"p{suffix}"
    refused(lambda: run(path))
    path.mkdir()
    refused(lambda: run(path))
    path.rmdir()
    for data in (b"", b"\0", b"hello\n", b"PK\3\4" + bytes(60), bytes(4096)):
        refused(lambda data=data: run(at(path, data)))
        refused(lambda: convert(path, tmp_path / "out.json"))
    refused(lambda: run(at(tmp_path / "p.txt", b"[]")))


def test_a_target_that_cannot_be_written(tmp_path: Path) -> None:
    source = at(tmp_path / "p.json", [good()])
    for target, code in ((tmp_path / "none" / "x.json", 2), (tmp_path / "x.txt", 2), (source, 2)):
        done = command("convert", source, target)
        (line,) = done.stderr.decode().splitlines()
        assert (done.returncode, done.stdout, line[:7]) == (code, b"", "karat: ")
        assert "internal error" not in one_sentence(line)
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_a_truth_of_masks_is_refused_and_found() -> None:
    """Boxes are what an object is asked to follow."""
    truth = [TRUTH[0], {"id": 2, "masks": np.ones((FRAMES, HEIGHT, WIDTH), bool)}]
    result = run([good(1), good(2)], truth)
    assert [one.sample for one in result.failures] == ["2"]
    assert "boxes are what an object is asked to follow" in one_sentence(result.failures[0].reason)
    found = karat.check("control", truth=truth, pred=[good(1), good(2)], workers=1)
    assert [one.sample for one in found if one.level == "error"] == ["2"]
