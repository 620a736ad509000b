"""Arrays of boxes and masks are hostile, in memory, in pickles and in archives: one bad video costs itself, a bad file
is refused, in little memory."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tube_refusals import (
    ASKED,
    FRAMES,
    HEIGHT,
    MIB,
    TRUTH,
    WIDTH,
    at,
    bounded,
    costs_itself,
    good,
    one_sentence,
    refused,
    run,
    strictly,
)

import karat
from karat.errors import KaratError
from karat.sources.tube_files import read_tubes

LINE = "([{" * 20_000
NAN_MASK = np.where(np.arange(WIDTH) > 3, np.nan, np.zeros((FRAMES, HEIGHT, WIDTH)))
ARRAYS: dict[str, tuple[Any, str]] = {
    "another size": ([np.ones((20, 40))] * 3 + [np.ones((20, 41))], "has a mask 3 of shape (20, 41)"),
    "colours": ([np.ones((20, 40, 3))] * 4, "has a mask of shape (20, 40, 3)"),
    "rows": ([np.ones(40)] * 4, "has a mask of shape (40,)"),
    "scalars": ([np.float64(1)] * 4, "has a mask of shape ()"),
    "one picture": (np.ones((20, 40)), "has masks of shape (20, 40)"),
    "two objects": (np.ones((4, 2, 20, 40)), "has masks of shape (4, 2, 20, 40)"),
    "no pixel": (np.ones((4, 0, 40)), "40x0 pixels"),
    "NaN": (NAN_MASK, "has NaN in its masks"),
    "NaN in a list": ([*NAN_MASK], "has NaN in its masks"),
    "complex": (np.ones((4, 20, 40), complex), "no arrays of numbers"),
    "text": (np.full((4, 2, 2), "x"), "no arrays of numbers"),
    "a wide one": (np.ones((1, 1, 20_000), bool), "20000x1 pixels"),
}


@pytest.mark.parametrize("form", ["pkl", "memory"])
@pytest.mark.parametrize("name", ARRAYS)
def test_bad_masks_cost_one_sample(tmp_path: Path, name: str, form: str) -> None:
    masks, said = ARRAYS[name]
    records = [{"id": 1, "mask": masks}, good(2)]
    given = records if form == "memory" else at(tmp_path / "p.pkl", pickle.dumps(records))
    assert said in costs_itself(given)


@pytest.mark.parametrize("protocol", ["spec", "reference"])
def test_a_run_with_nan_in_a_mask_comes_to_its_end(tmp_path: Path, protocol: str) -> None:
    """Whatever a protocol makes of it, it is kept and told."""
    for value in (np.nan, 0):
        masks = np.zeros((FRAMES, HEIGHT, WIDTH))
        masks[:, 5:15, 10:30] = 1
        masks[0, 0, 0] = value
        np.savez(tmp_path / "p.npz", **{"1/masks": masks})
        kept, fresh = (
            karat.evaluate("control", pred=tmp_path / "p.npz", truth=TRUTH[:1], protocol=protocol, workers=1, out=out)
            for out in (tmp_path / f"run-{value}", None)
        )
        assert all(one_sentence(one.reason) for one in kept.failures)
        assert repr(kept.scores) == repr(fresh.scores)
    assert kept.scores["miou_all"].value > 0.99


BOXES: dict[str, Any] = {
    "three edges": np.ones((4, 3)),
    "one box": np.ones(4),
    "text": np.full((4, 4), "a"),
    "numbers as text": np.full((4, 4), "10"),
    "complex": np.ones((4, 4), complex),
    "truth values": np.ones((4, 4), bool),
    "complex scalars": [[np.complex128(1)] * 4] * 4,
    "NaN in one edge": np.where(np.arange(4) == 1, np.nan, np.ones((4, 4))),
    "infinite": np.full((4, 4), np.inf),
    "far": np.full((4, 4), 2e6),
}


@pytest.mark.parametrize("form", ["pkl", "memory"])
@pytest.mark.parametrize("name", BOXES)
def test_bad_arrays_of_boxes_cost_one_sample(tmp_path: Path, name: str, form: str) -> None:
    records = [good(1, bboxes=BOXES[name]), good(2)]
    given = records if form == "memory" else at(tmp_path / "p.pkl", pickle.dumps(records))
    assert "id 1" in costs_itself(given)


@pytest.mark.parametrize("width", [float("nan"), float("inf"), -float("inf"), np.float64("inf"), 1e308])
def test_sizes_that_are_no_numbers_cost_one_sample(tmp_path: Path, width: float) -> None:
    records = [good(1, width=width), good(2)]
    costs_itself(records)
    costs_itself(at(tmp_path / "p.pkl", pickle.dumps(records)))


# --- archives


def member(header: str, data: bytes = b"") -> bytes:
    """A .npy of that header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + data


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in members.items():
            opened.writestr(f"{name}.npy", data)
    return path


@pytest.mark.parametrize(
    "shape", ["(1000000, 1000000, 1000000)", "(4, 20, 41)", "(-4, -20, 40)", "(4, 9223372036854775807, 4)", "3200"]
)
@pytest.mark.parametrize("order", [False, True])
def test_headers_that_lie(tmp_path: Path, shape: str, order: bool) -> None:
    lie = member(f"{{'descr': '|b1', 'fortran_order': {order}, 'shape': {shape}}}", bytes(3200))
    for name in ("1", "masks", "boxes"):
        refused(lambda name=name: strictly(archive(tmp_path / "p.npz", **{name: lie})))


def test_archives_that_expand(tmp_path: Path) -> None:
    """200 kB of masks that are 200 MB are read frame by frame; what declares far more than it may is refused."""
    frames = 200
    with zipfile.ZipFile(tmp_path / "p.npz", "w", zipfile.ZIP_DEFLATED) as opened, opened.open("1.npy", "w") as file:
        file.write(member(f"{{'descr': '|b1', 'fortran_order': False, 'shape': ({frames}, 1024, 1024)}}"))
        for _ in range(frames):
            file.write(bytes(1024 * 1024))
    truth = [{"id": 1, "bboxes": ASKED[:1]}]
    result = bounded(lambda: run(tmp_path / "p.npz", truth), 24 * MIB)
    assert result.scores["n_frames_surplus"].value == frames - 1
    data = bytearray((tmp_path / "p.npz").read_bytes())
    struct.pack_into("<I", data, data.find(b"PK\1\2") + 24, 0xFFFFFFF0)
    assert "zip bomb" in refused(lambda: strictly(at(tmp_path / "p.npz", bytes(data)), truth))


def test_arrays_that_are_no_boxes_and_no_masks(tmp_path: Path) -> None:
    def npz(**arrays: Any) -> Path:
        np.savez(tmp_path / "p.npz", **arrays)
        return tmp_path / "p.npz"

    ones = np.ones((4, 4))
    for arrays in (
        {"1/boxes": ones, "1/masks": np.ones((4, 20, 40), bool)},
        {"1/size": np.array([40, 20])},
        {"1/boxes": np.ones((4, 3))},
        {"1/boxes": ones, "1/size": np.array([40])},
        {"1/boxes": ones, "1/size": np.array([40.5, 20])},
        {"1/boxes": ones, "1/size": np.array([40, 1 << 40])},
        {"1/boxes": ones, "1/size": np.array(["40", "20"])},
        {"1/boxes": np.full((4, 4), "a")},
        {"1/boxes": np.full((4, 4), np.inf)},
        {"1/masks": np.full((4, 20, 40), "a")},
        {"1/masks": np.ones((4, 20, 40), complex)},
        {"1/masks": np.ones((20, 40))},
        {"1": np.array([{"a": 1}], object)},
        {"1/boxes": np.zeros((9 * MIB // 4, 4))},
    ):
        bounded(lambda arrays=arrays: refused(lambda: strictly(npz(**arrays))), 700 * MIB)
    np.savez(tmp_path / "p.npz")
    refused(lambda: run(tmp_path / "p.npz"))


@pytest.mark.parametrize("protocol", ["spec", "reference"])
def test_damaged_masks_cost_one_sample(tmp_path: Path, protocol: str) -> None:
    """Flipped bits, cut ends: whatever cannot be read of one video leaves the others alone."""
    rng = np.random.default_rng(0)
    whole = np.zeros((FRAMES, HEIGHT, WIDTH), bool)
    whole[:, 5:15, 10:30] = True
    np.savez_compressed(tmp_path / "p.npz", **{"1/masks": rng.random((FRAMES, 80, 160)) < 0.5, "2/masks": whole})
    data = (tmp_path / "p.npz").read_bytes()
    start = data.find(b"PK\1\2") // 2
    for place in (start, start + 99, start + 500):
        forged = bytearray(data)
        forged[place] ^= 0x55
        result = run(at(tmp_path / "q.npz", bytes(forged)), protocol=protocol)
        assert [one.sample for one in result.failures] == ["1"]
        one_sentence(result.failures[0].reason)
        assert result.scores["miou_all"].n == 1
    for _ in range(60):
        forged = bytearray(data)
        forged[rng.integers(len(forged))] ^= 1 << rng.integers(8)
        try:
            found = run(at(tmp_path / "q.npz", bytes(forged)), protocol=protocol)
            assert all(one_sentence(one.reason) for one in found.failures)
        except KaratError as error:
            one_sentence(str(error))


def test_many_videos_in_one_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lists an archive must not read all of its directory again for every array: that takes the square of it."""
    opened = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *args: Any, **named: Any) -> None:
            opened.append(args)
            super().__init__(*args, **named)

    np.savez(tmp_path / "p.npz", **{f"{own}/masks": np.ones((1, 4, 4), bool) for own in range(50)})
    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    assert len(read_tubes(tmp_path / "p.npz")) == 50
    assert len(opened) < 10


def tensors(path: Path, header: Any, data: bytes = bytes(64)) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return at(path, struct.pack("<Q", len(text)) + text + data)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [2, 4], "data_offsets": [8, 72]},
        {"dtype": "F64", "shape": [2, 4], "data_offsets": [-8, 56]},
        {"dtype": "F64", "shape": [2, 4], "data_offsets": [64, 0]},
        {"dtype": "F64", "shape": [1 << 62, 4], "data_offsets": [0, 64]},
        {"dtype": "F64", "shape": [-2, -4], "data_offsets": [0, 64]},
        {"dtype": "F64", "shape": "24", "data_offsets": [0, 64]},
        {"dtype": "OBJ", "shape": [2, 4], "data_offsets": [0, 64]},
        {"dtype": "F64", "shape": [2, 4]},
        {"dtype": 3, "shape": [2, 4], "data_offsets": [0, 64]},
        [],
        None,
    ],
)
def test_tensors_that_lie(tmp_path: Path, entry: Any) -> None:
    for name in ("1/boxes", "1", "masks"):
        refused(lambda name=name: run(tensors(tmp_path / "p.safetensors", {name: entry})))


def test_headers_of_tensors_that_lie(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    for data in (struct.pack("<Q", 1 << 60), struct.pack("<Q", 17 * MIB) + bytes(1000), bytes(7), bytes(8)):
        refused(lambda data=data: run(at(path, data)))
    for header in (b"{", b"[]", b"{}", b'{"a": NaN}', b'{"1": {}, "1": {}}', b"\xff\xff", LINE.encode()):
        refused(lambda header=header: run(tensors(path, header)))


def test_members_that_are_no_arrays(tmp_path: Path) -> None:
    for name in ("../../etc/passwd", "1", "1.npy", "frame.txt", "boxes.npy", "/boxes.npy"):
        with zipfile.ZipFile(tmp_path / "p.npz", "w") as opened:
            opened.writestr(name, "x")
        refused(lambda: strictly(tmp_path / "p.npz"))
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], object), allow_pickle=True)
    assert "Python objects" in refused(lambda: strictly(archive(tmp_path / "p.npz", **{"1": file.getvalue()})))
