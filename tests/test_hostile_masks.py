"""Files of masks are hostile: each is refused with one InputError of one line, in little memory."""

import io
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from karat.errors import InputError
from karat.sources.instance_masks import make_instances
from karat.sources.kinds import RECORDS, open_record

MIB = 1 << 20
KIND = "instance_masks"


class Bomb:
    """Unpickling this leaves a folder behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def good(**changed):
    """The arrays of a file that can be read, some of them changed; None leaves one out."""
    arrays = {
        "masks": np.ones((3, 4, 10), bool),
        "frame": np.array([0, 0, 2]),
        "score": np.array([0.1, 0.2, np.nan]),
        "labelled": np.array([0, 1, 2]),
        **changed,
    }
    return {name: array for name, array in arrays.items() if array is not None}


def refused(action, memory=64 * MIB):
    """The message of the InputError that the action ends in, after checking its form and the memory it took."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            action()
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 1000
    return message


def refused_file(path):
    message = refused(lambda: open_record(path, KIND))
    assert path.name in message
    return message


def read_or_refused(path):
    """Damage that may or may not show: a record or one printable InputError, and nothing else."""
    message = "read"
    try:
        open_record(path, KIND)
    except InputError as error:
        message = str(error)
    assert message.isprintable()


WRONG = [
    (good(masks=None), "no masks"),
    (good(frame=None), "no frame"),
    (good(mask=np.ones(1)), "'mask'"),
    (good(frame_idx=np.array([0, 0, 2])), "at most once"),
    (good(masks=np.ones((4, 10), bool)), r"shape \(4, 10\)"),
    (good(masks=np.ones((3, 1, 4, 10), bool)), r"shape \(3, 1, 4, 10\)"),
    (good(masks=np.ones((3, 4, 10))), "float64"),
    (good(masks=np.ones((3, 4, 10), complex)), "complex128"),
    (good(masks=np.full((3, 4, 10), "x")), "str32"),
    (good(masks=np.full((3, 4, 10), 2, np.uint8)), "in mask 0"),
    (good(masks=np.where(np.arange(10) < 1, -1, np.zeros((3, 4, 10), np.int8))), "in mask 0"),
    (good(masks=np.stack([np.full((4, 10), value, np.uint8) for value in (1, 0, 7)])), "in mask 2"),
    (good(masks=np.zeros((0, 4, 1 << 20), bool), frame=None), "frame"),
    (good(masks=np.zeros((0, 4, 1 << 20), bool), frame=np.zeros(0, int), score=None), "1048576x4"),
    (good(masks=np.zeros((1, 0, 5), bool), frame=np.zeros(1, int), score=None), "5x0"),
    (good(masks=np.ones((3, 4, 2), np.uint8), shape=np.array([4, 17])), "ceil"),
    (good(masks=np.ones((3, 4, 2), np.uint8), shape=np.array([5, 16])), "ceil"),
    (good(masks=np.ones((3, 4, 2), np.uint8), shape=np.array([4, 16, 1])), "height, width"),
    (good(masks=np.ones((3, 4, 2), np.uint8), shape=np.array([4.0, 16.0])), "height, width"),
    (good(masks=np.ones((3, 4, 2), np.uint8), shape=np.array([4, -16])), "height, width"),
    (good(masks=np.ones((3, 4, 2), np.uint8), shape=np.array([4, 2**62])), "ceil"),
    (good(shape=np.array([4, 11])), r"\(3, 4, 10\)"),
    (good(frame=np.array([0, 2])), "2 entries for 3 masks"),
    (good(frame=np.zeros((3, 1), int)), "frame of"),
    (good(frame=np.array([0, 0.5, 1])), "whole numbers"),
    (good(frame=np.array([0, -1, 1])), "whole numbers"),
    (good(frame=np.array([0, 2**40, 1])), "whole numbers"),
    (good(frame=np.array([0, np.nan, 1])), "whole numbers"),
    (good(frame=np.array(["a", "b", "c"])), "whole numbers"),
    (good(frame=np.zeros(3, "datetime64[s]")), "whole numbers"),
    (good(score=np.array([0.5])), "1 entries for 3 masks"),
    (good(score=np.array(["high"] * 3)), "score of"),
    (good(score=np.ones(3, complex)), "score of"),
    (good(labelled=np.array([-3])), "labelled of"),
    (good(labelled=np.array([[0, 1]])), "labelled of"),
]


@pytest.mark.parametrize("arrays, said", WRONG, ids=[said for _, said in WRONG])
def test_wrong_arrays(tmp_path, arrays, said):
    """In a file and in memory."""
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=said):
        open_record(tmp_path / "a.npz", KIND)
    refused_file(tmp_path / "a.npz")
    if "frame_idx" not in arrays:  # a name that files have
        refused(lambda: RECORDS[KIND].convert(arrays))


def test_what_is_right_is_read(tmp_path):
    """Booleans, bytes of 0 and 255, packed bits with dirt beyond the width: the same masks."""
    masks = np.random.default_rng(0).random((3, 4, 10)) < 0.5
    dirty = np.packbits(masks, axis=-1) | np.array([0, 0x3F], np.uint8)
    spelled = (
        {"masks": masks},
        {"masks": 255 * masks.astype(np.uint8)},
        {"masks": masks.astype(np.int64)},
        {"masks": np.asfortranarray(masks)},
        {"masks": dirty, "shape": np.array([4, 10])},
    )
    digests = set()
    for arrays in spelled:
        np.savez_compressed(tmp_path / "a.npz", **good(**arrays))
        record = open_record(tmp_path / "a.npz", KIND)
        digests |= {record.digest(), make_instances(**good(**arrays)).digest()}
        assert np.array_equal(np.unpackbits(record.masks, axis=-1, count=10), masks)
        assert record.frame.tolist() == [0, 0, 2]
        assert record.labelled.tolist() == [0, 1, 2]
    assert len(digests) == 1


@pytest.mark.parametrize("name", ["masks", "frame", "score", "shape", "labelled"])
def test_nothing_is_unpickled(tmp_path, name):
    bomb = np.array([Bomb(tmp_path / "exploded")], dtype=object)
    np.savez(tmp_path / "a.npz", **good(**{name: bomb}))
    assert "Python objects" in refused_file(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(pickle.dumps(bomb))
    refused_file(tmp_path / "b.npz")
    refused(lambda: RECORDS[KIND].convert(good(**{name: bomb})))
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("given", [3, "a", None, [1, 2], {}, {"masks": []}, {"frame": []}, good(what=1)])
def test_what_is_no_record(given):
    refused(lambda: RECORDS[KIND].convert(given))


def test_lists_of_unequal_length():
    refused(lambda: RECORDS[KIND].convert({"masks": [[[1, 0], [1]]], "frame": [0]}))
    refused(lambda: RECORDS[KIND].convert({"masks": [[[1, 0]]], "frame": [[0], [1, 2]]}))


def member(header, data=b""):
    """A .npy of that header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    "shape, order",
    [
        ("(1000000, 1000000, 1000000)", False),
        ("(2, 3, 5)", False),
        ("(2, 3, 3)", False),
        ("(-2, -3, 4)", False),
        ("(2, 9223372036854775807, 4)", False),
        ("(1000000, 1000, 1000)", True),
        ("24", False),
    ],
)
def test_headers_that_lie(tmp_path, shape, order):
    lie = member(f"{{'descr': '|b1', 'fortran_order': {order}, 'shape': {shape}}}", bytes(24))
    for name in ("masks", "frame"):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            for own, array in good(**{name: None}).items():
                file = io.BytesIO()
                np.save(file, array)
                archive.writestr(f"{own}.npy", file.getvalue())
            archive.writestr(f"{name}.npy", lie)
        refused_file(tmp_path / "a.npz")


def test_members_that_are_no_arrays(tmp_path):
    for name in ("../../etc/passwd", "masks", "masks.npy", "frame.txt"):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr(name, "x")
        refused_file(tmp_path / "a.npz")


def test_zips_that_lie(tmp_path):
    """A size of 4 GiB where there is next to nothing is a zip bomb; other lies, cuts and flipped bits are refused."""
    np.savez_compressed(
        tmp_path / "good.npz",
        **good(masks=np.random.default_rng(0).random((30, 40, 50)) < 0.5, frame=np.arange(30), score=None),
    )
    data = (tmp_path / "good.npz").read_bytes()
    place, path = data.find(b"PK\1\2"), tmp_path / "bad.npz"
    for offset, code, value in [(24, "I", 0xFFFFFFF0), (20, "I", 0x7FFFFFFF), (24, "I", 0), (10, "H", 99), (8, "H", 1)]:
        forged = bytearray(data)
        struct.pack_into("<" + code, forged, place + offset, value)
        path.write_bytes(forged)
        said = refused_file(path)
        assert value != 0xFFFFFFF0 or "zip bomb" in said
    for cut in (10, len(data) // 2, len(data) - 5):
        path.write_bytes(data[:cut])
        refused_file(path)
    rng = np.random.default_rng(1)
    for _ in range(100):
        forged = bytearray(data)
        forged[rng.integers(len(forged))] ^= 1 << rng.integers(8)
        path.write_bytes(forged)
        read_or_refused(path)


def test_columns_that_are_too_long(tmp_path):
    """64 MiB are read of what is not masks."""
    np.savez_compressed(tmp_path / "a.npz", **good(labelled=np.zeros(9 * MIB, np.int64)))
    assert "64 MiB" in refused_file(tmp_path / "a.npz")
