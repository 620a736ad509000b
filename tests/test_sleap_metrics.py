"""metrics.npz: what Karat writes is what SLEAP-NN reads; what that and SLEAP write is read, and nothing in it runs."""

import json
import pickle
import sys
import types
import zipfile

import numpy as np
import pose_formats as formats
import pyarrow.parquet as pq
import pytest
from clips import called
from clips import refused as refused_by_command
from pose_formats import Bomb

import karat
from karat.errors import InputError
from karat.sources.sleap_metrics import read_metrics
from karat.suites._sleap_nn import LARGE, results, write


@pytest.fixture(scope="module")
def run():
    truth = formats.poses()
    return karat.evaluate("pose", truth=truth, pred=formats.moved(truth), protocol="reference", workers=1)


@pytest.fixture
def written(run, tmp_path):
    write(run, tmp_path / "metrics.test.0.npz")
    return tmp_path / "metrics.test.0.npz"


def as_plain(value):
    """Arrays as lists and NaN as None, as JSON has them."""
    if isinstance(value, dict):
        return {name: as_plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_plain(value.tolist())
    if isinstance(value, list):
        return [as_plain(one) for one in value]
    return None if isinstance(value, float) and value != value else value


def test_what_is_written_is_what_they_load_and_what_is_read(run, written):
    theirs = np.load(written, allow_pickle=True)["metrics"].item()  # the way in which SLEAP-NN loads it
    expected = as_plain(results(run))
    assert set(theirs) == {
        "voc_metrics", "mOKS", "distance_metrics", "pck_metrics", "visibility_metrics", "detection_metrics"
    }  # fmt: skip
    assert as_plain(theirs) == expected
    small = {s: {n: v for n, v in of.items() if n not in LARGE.get(s, ())} for s, of in expected.items()}
    assert read_metrics(written) == small
    written.with_suffix(".json").unlink()
    found = read_metrics(written)
    assert as_plain(found) == expected
    assert found["mOKS"]["mOKS"] == run.scores["mOKS"].value
    assert found["distance_metrics"]["dists"].shape == (run.scores["n_pairs"].value, len(formats.NODES))


def test_the_layouts_of_before(tmp_path):
    """A section an array of an object; and, before that, a number an array, as SLEAP called them."""
    sections = {"mOKS": {"mOKS": 0.5}, "pck_metrics": {"mPCK": np.float64(0.25), "thresholds": np.arange(3)}}
    np.savez(tmp_path / "val_0_pred_metrics.npz", **{name: np.array(one, object) for name, one in sections.items()})
    assert as_plain(read_metrics(tmp_path / "val_0_pred_metrics.npz")) == as_plain(sections)
    flat = {"oks.mOKS": 0.5, "dist.avg": np.float32(2), "vis.tp": 7, "pck.thresholds": np.arange(2)}
    np.savez(tmp_path / "flat.npz", **flat)
    np.savez_compressed(tmp_path / "metrics.val.npz", metrics=flat)
    for name in ("flat.npz", "metrics.val.npz"):
        assert as_plain(read_metrics(tmp_path / name)) == as_plain(flat)


def test_points_that_sleap_pickled_by_its_own_class(tmp_path, monkeypatch):
    class PointArray(np.ndarray):
        pass

    for name in ("sleap", "sleap.instance"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    PointArray.__module__, PointArray.__qualname__ = "sleap.instance", "PointArray"
    sys.modules["sleap.instance"].PointArray = PointArray
    given = {"dist.dists": np.arange(4.0).view(PointArray), "dist.avg": 1.5}
    np.savez_compressed(tmp_path / "metrics.val.npz", metrics=given)
    for name in ("sleap", "sleap.instance"):
        monkeypatch.delitem(sys.modules, name)
    found = read_metrics(tmp_path / "metrics.val.npz")
    assert type(found["dist.dists"]) is np.ndarray
    assert as_plain(found) == {"dist.dists": [0, 1, 2, 3], "dist.avg": 1.5}


def test_show(run, written):
    shown = called("show", written).stdout.decode()
    assert "voc_metrics.oks_voc.mAP" in shown
    assert "AP[0]" not in shown
    assert "lists are not shown" in shown
    assert "voc_metrics.oks_voc.AP[0]" in called("show", written, "--all").stdout.decode()
    content = json.loads(called("show", written, "--format", "json").stdout)
    values = {row["metric"]: row["value"] for row in content["rows"]}
    assert values["mOKS.mOKS"] == run.scores["mOKS"].value
    assert values["pck_metrics.mPCK_parts[1]"] == run.scores["mPCK@node:LEFT_EAR"].value
    lines = called("show", written, "--format", "csv").stdout.decode().splitlines()
    assert lines[0] == "metric,value"
    assert f"mOKS.mOKS,{run.scores['mOKS'].value!r}" in lines
    assert "| mOKS.mOKS |" in called("show", written, "--format", "markdown").stdout.decode()
    table = written.with_suffix(".parquet")
    table.write_bytes(called("show", written, "--format", "parquet").stdout)
    assert pq.read_table(table).to_pylist() == content["rows"]
    assert called("show", written.with_suffix(".json")).stdout.decode().splitlines()[:-1] == shown.splitlines()[:-1]


def save(path, value, protocol=4):
    """An npz with a pickle of any protocol."""
    header = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (), }".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metrics.npy", header + pickle.dumps(np.array(value, object), protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_executed(tmp_path, protocol):
    path = tmp_path / "metrics.npz"
    for value in (
        Bomb(tmp_path / "made"),
        {"mOKS": {"mOKS": Bomb(tmp_path / "made")}},
        {"a": [Bomb(tmp_path / "made")]},
    ):
        save(path, value, protocol)
        with pytest.raises(InputError, match=r"asks for posix\.mkdir"):
            read_metrics(path)
        refused_by_command(called("show", path), "posix.mkdir")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("value", [3, [1, 2], "text", None, {1: 2}, {"a": {2: 3}}, {"a": "text"}, {}])
def test_pickles_that_hold_no_numbers_by_name(tmp_path, value):
    refused_by_command(called("show", save(tmp_path / "metrics.npz", value)), "numbers")


@pytest.mark.parametrize("data", [b"", b"x", b"PK\5\6" + bytes(18), b"\x80\x04N."])
def test_files_that_are_none(tmp_path, data):
    (tmp_path / "metrics.npz").write_bytes(data)
    refused_by_command(called("show", tmp_path / "metrics.npz"))


@pytest.mark.parametrize(
    "text", ["", "[]", "3", '{"a": NaN}', '{"a": 1, "a": 2}', '{"a":' * 10_000, '{"a": {"b": "c"}}']
)
def test_json_that_is_none(written, text):
    written.with_suffix(".json").write_text(text)
    refused_by_command(called("show", written))


def test_undefined_and_infinite_numbers(tmp_path):
    path = save(tmp_path / "metrics.npz", {"a": np.nan, "b": np.inf, "c": None, "d": [1.0, None], "e": True})
    content = json.loads(called("show", path, "--format", "json").stdout)
    values = {row["metric"]: row["value"] for row in content["rows"]}
    assert values == {"a": None, "b": "inf", "c": None, "d[0]": 1, "d[1]": None, "e": 1}


def test_a_zip_bomb(tmp_path):
    with zipfile.ZipFile(tmp_path / "metrics.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metrics.npy", bytes(72 << 20))
    refused_by_command(called("show", tmp_path / "metrics.npz"), "expands to")
