"""Maps in zarr stores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.errors import InputError
from karat.sources.kinds import open_stream
from karat.sources.pairing import collect

zarr = pytest.importorskip("zarr")
MAPS = np.random.default_rng(0).normal(-100, 9, (5, 12, 10)).astype(np.float32)


def stored(path: Path, array: np.ndarray, chunks: tuple[int, ...]) -> Path:
    one = zarr.create_array(str(path), shape=array.shape, dtype=array.dtype, chunks=chunks)
    one[...] = array
    return path


def test_a_store_is_a_stack_and_says_what_npy_says(tmp_path: Path) -> None:
    store = stored(tmp_path / "truth.zarr", MAPS, (2, 12, 10))
    np.save(tmp_path / "truth.npy", MAPS)
    found = [collect(path, "field") for path in (store, tmp_path / "truth.npy")]
    assert list(found[0]) == list(found[1]) == ["0000", "0001", "0002", "0003", "0004"]
    for ours, theirs in zip(found[0].values(), found[1].values(), strict=True):
        np.testing.assert_array_equal(ours.open(), theirs.open())
        assert ours.digest() == theirs.digest()
    runs = [karat.evaluate("radiomap", pred=MAPS + 1, truth=path) for path in (store, tmp_path / "truth.npy")]
    assert runs[0].plain() == runs[1].plain()


def test_stores_among_other_files_and_single_maps(tmp_path: Path) -> None:
    stored(tmp_path / "a.zarr", MAPS[0], (12, 10))
    np.save(tmp_path / "b.npy", MAPS[1])
    found = collect(tmp_path, "field")
    assert sorted(found) == ["a", "b"]
    with open_stream(found["a"], "field") as stream:
        np.testing.assert_array_equal(next(iter(stream)), MAPS[0])
    assert karat.evaluate("radiomap", pred=tmp_path, truth=tmp_path).scores["rmse"].value == 0


def test_a_group_is_read_by_name(tmp_path: Path) -> None:
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    for name, shift in (("map", 0), ("other", 1)):
        one = group.create_array(name, shape=MAPS.shape, dtype=MAPS.dtype)
        one[...] = MAPS + shift
    np.testing.assert_array_equal(collect(tmp_path / "g.zarr", "field")["0003"].open(), MAPS[3])


def test_what_leads_out_or_is_no_number_is_refused(tmp_path: Path) -> None:
    store = stored(tmp_path / "out.zarr", MAPS, (5, 12, 10))
    (tmp_path / "secret").write_text("secret")
    (store / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="leads out of the store"):
        collect(store, "field")
    with pytest.raises(InputError, match="numbers were expected"):
        collect(stored(tmp_path / "c.zarr", np.zeros((2, 3), np.complex64), (2, 3)), "field")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(InputError, match=r"empty\.zarr"):
        collect(tmp_path / "empty.zarr", "field")


def test_without_zarr_it_says_how_to_get_it(tmp_path: Path) -> None:
    store = stored(tmp_path / "t.zarr", MAPS, (5, 12, 10))
    code = "import sys; sys.modules['zarr'] = None; from karat.cli import main; sys.argv[1:] = sys.argv[1:]; main()"
    args = ["run", "radiomap", "--pred", str(store), "--truth", str(store)]
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, check=False)
    assert done.returncode == 2
    assert "pip install 'karat[zarr]'" in done.stderr.decode()
