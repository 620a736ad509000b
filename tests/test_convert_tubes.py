"""`karat convert`: the JSON that it writes scores as what it was made of, and keeps what that said."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from clips import called, karat, refused
from hypothesis import given
from hypothesis import strategies as st
from test_properties_tubes import MANY, as_script, plain, run, sides
from twins.draw_tubes import Kind, dataset

from karat.conversion import convert

pytestmark = pytest.mark.filterwarnings("ignore:__array__")  # of pycocotools


def again(source: Path) -> Path:
    """What is written of a file."""
    target = source.with_name(f"{source.stem}-converted.json")
    convert(source, target)
    return target


def saved(path: Path, records: Any) -> Path:
    path.write_bytes(pickle.dumps(records) if path.suffix == ".pkl" else json.dumps(records).encode())
    return path


@MANY
@given(
    st.integers(0, 2**31),
    st.builds(Kind, st.booleans(), st.just(False), st.just(False), st.just(False), st.booleans()),
    st.sampled_from([".json", ".pkl"]),
)
def test_converted_boxes_are_the_same_boxes(seed: int, kind: Kind, suffix: str) -> None:
    """Every bit, under every protocol; and what was converted is converted to itself."""
    found = dataset(seed, kind)
    truth, pred = sides(found)
    with TemporaryDirectory() as home:
        source = saved(Path(home) / f"p{suffix}", pred)
        target = again(source)
        assert [one["bboxes"] for one in json.loads(target.read_text())] == [one["bboxes"] for one in pred]
        assert again(target).read_bytes() == target.read_bytes()
        for protocol in ("spec", "paper", "reference"):
            if protocol == "reference" and as_script(found).line1 is None:
                continue
            assert plain(run((truth, source), protocol).scores) == plain(run((truth, target), protocol).scores)


@MANY
@given(st.integers(0, 2**31), st.booleans(), st.booleans())
def test_converted_masks_score_as_these(seed: int, exact: bool, counted: bool) -> None:
    """Boxes and other shapes of 0 and 1: to the last bit under reference, and under spec where any stays a mask."""
    found = dataset(seed, Kind(exact=exact, masks=True, counted=counted), missing=False)
    truth, pred = sides(found)
    with TemporaryDirectory() as home:
        source = saved(Path(home) / "p.pkl", pred)
        target = again(source)
        assert json.loads(again(target).read_text()) == json.loads(target.read_text())
        if as_script(found).line1 is not None:
            assert plain(run((truth, source), "reference").scores) == plain(run((truth, target), "reference").scores)
        if all("masks" in one for one in json.loads(target.read_text())):
            assert plain(run((truth, source)).scores) == plain(run((truth, target)).scores)


@pytest.mark.parametrize("own", ["clip (1)", "clip (2)", "clip", "1", "a/b (1)", "(1)", "ü ☃"])
def test_ids_are_kept(tmp_path: Path, own: str) -> None:
    """Whatever they end in."""
    record = {"id": own, "width": 4, "height": 4, "bboxes": [[0, 0, 4, 4]]}
    target = again(saved(tmp_path / "p.json", [record]))
    assert [one["id"] for one in json.loads(target.read_text())] == [own]


def test_repeated_ids_stay_repeated(tmp_path: Path) -> None:
    """Two predictions of one id are two records, under the id that they have."""
    box = {"width": 4, "height": 4, "bboxes": [[0, 0, 4, 4]]}
    target = again(saved(tmp_path / "p.json", [{"id": own, **box} for own in (7, "7", "7 (1)", 7)]))
    assert [one["id"] for one in json.loads(target.read_text())] == ["7", "7", "7 (1)", "7"]


def test_what_a_record_says_is_kept(tmp_path: Path) -> None:
    """Of whom, by what, in how many frames, how large; null stays null."""
    about = {"id": "1", "subject": "a fly", "caption": "A fly on a leaf.", "detector": "owl, 0.1", "num_bb": 7}
    record = {**about, "width": 64, "height": 48, "bboxes": [[-1.5, 1e-7, 20.25, 0.1], None, [0, 0, 64, 48]]}
    assert json.loads(again(saved(tmp_path / "p.json", [record])).read_text()) == [record]
    relative = {"id": "1", "bboxes": [[0.1, 0.2, 1 / 3, 0.9], None]}
    assert json.loads(again(saved(tmp_path / "q.json", [relative])).read_text()) == [relative]


def test_masks_become_what_is_small(tmp_path: Path) -> None:
    """A box where all are boxes, run lengths where one is not, null of nothing; values above 0 are the object."""
    coco = pytest.importorskip("pycocotools.mask")
    boxed, shaped = np.zeros((3, 8, 12)), np.zeros((2, 8, 12))
    boxed[0, 2:5, 3:9] = 0.25
    boxed[2, :, :] = 7
    shaped[0, 2:5, 3:9] = 1
    shaped[0, 3, 4] = -1
    source = saved(tmp_path / "p.pkl", [{"id": 1, "mask": list(boxed)}, {"id": 2, "mask": list(shaped)}])
    first, second = json.loads(again(source).read_text())
    assert first == {
        "id": "1",
        "width": 12,
        "height": 8,
        "bboxes": [[3, 2, 9, 5], None, [0, 0, 12, 8]],
        "painted": True,
    }
    assert second["masks"][1] is None
    lengths = second["masks"][0]
    decoded = coco.decode({**lengths, "counts": lengths["counts"].encode()})
    assert np.array_equal(decoded, shaped[0] > 0)


def test_predictions_that_are_scored_are_converted(tmp_path: Path) -> None:
    """Those that name LaSOT's videos too: theirs are boxes in order."""
    record = {"id": "1", "width": 40, "height": 40, "bboxes": [[10.0, 15, 20, 25]], "metadata": {"lasot_name": "a-1"}}
    source = saved(tmp_path / "p.json", [record])
    truth = [{"id": 1, "bboxes": [[0.25, 0.375, 0.5, 0.625]]}]
    assert run((truth, source)).scores["miou"].value == 1
    assert json.loads(again(source).read_text())[0]["bboxes"] == record["bboxes"]


def test_the_command(tmp_path: Path) -> None:
    """It says what it did; a target is whole or is not there."""
    np.savez(tmp_path / "p.npz", **{"a/masks": np.ones((2, 4, 4), bool), "b/masks": np.eye(4, dtype=bool)[None]})
    done = karat("convert", "p.npz", "p.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert "2 videos in p.json." in done.stderr.decode()
    assert [one["id"] for one in json.loads((tmp_path / "p.json").read_text())] == ["a", "b"]
    saved(tmp_path / "bad.json", [{"id": 1, "bboxes": 3}, {"id": 2, "width": 4, "height": 4, "bboxes": [None]}])
    done = called("convert", tmp_path / "bad.json", tmp_path / "p.json")
    assert done.returncode == 3
    assert "1 of 2 videos failed." in done.stderr.decode()
    first, second = json.loads((tmp_path / "p.json").read_text())
    assert "has int as boxes" in first["failure"]
    assert second["bboxes"] == [None]
    refused(called("convert", tmp_path, tmp_path / "p.json"), "is a folder")
    refused(called("convert", tmp_path / "p.npz", tmp_path / "p.npz"), "does not end in .json")
    assert {path.name for path in tmp_path.iterdir()} == {"p.npz", "p.json", "bad.json"}
