"""Files are hostile: each is refused with one InputError of one line, in little memory, and nothing else escapes."""

import json
import os
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from test_sources import write_safetensors, write_video

from karat.errors import InputError
from karat.sources import KINDS, collect, count_packets, decode_rle, digest, open_stream

MIB = 1 << 20


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
    assert caught.type is InputError
    assert message.isprintable()
    assert len(message) < 1000
    return message


def refused_stream(source, kind, memory=64 * MIB):
    message = refused(lambda: list(open_stream(source, kind)), memory)
    if isinstance(source, Path):
        assert source.name.encode("unicode_escape").decode().split("\\")[0] in message
    return message


def read_or_refused(source, kind):
    """Damage that may or may not show: frames or one printable InputError, and nothing else."""
    try:
        list(open_stream(source, kind))
    except InputError as error:
        message = str(error)
    else:
        message = "read"
    assert message.isprintable()


class Bomb:
    """Unpickling this leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


# --- videos


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    write_video(folder / "fast.mp4", 60, container={"movflags": "faststart"})
    write_video(folder / "late.mp4", 60)
    write_video(folder / "a.mkv", 60)
    write_video(folder / "a.avi", 60, codec="mpeg4")
    write_video(folder / "a.webm", 60, codec="libvpx-vp9")
    write_video(folder / "a.gif", 60, codec="gif", pix_fmt="rgb8")
    return folder


@pytest.mark.parametrize("name", ["fast.mp4", "late.mp4", "a.mkv", "a.avi", "a.webm", "a.gif"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.995])
def test_truncated_videos(videos, tmp_path, name, share):
    data = (videos / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * share)])
    refused_stream(tmp_path / name, "frames")


def test_a_truncated_video_says_how_much_decodes(videos, tmp_path):
    data = (videos / "fast.mp4").read_bytes()
    path = tmp_path / "fast.mp4"
    path.write_bytes(data[: len(data) // 2])
    stream = open_stream(path, "frames")
    read = []
    with pytest.raises(InputError, match=r"truncated: \d+ of 60 declared frames decode"):
        read.extend(stream)
    assert 0 < count_packets(path) < 60


def test_every_video_truncated_anywhere_raises_nothing_else(videos, tmp_path):
    rng = np.random.default_rng(3)
    for name in ("fast.mp4", "a.mkv", "a.avi"):
        data = bytearray((videos / name).read_bytes())
        for _ in range(8):
            damaged = data.copy()
            for place in rng.integers(0, len(data), 40):
                damaged[place] = rng.integers(256)
            (tmp_path / name).write_bytes(damaged)
            read_or_refused(tmp_path / name, "frames")


@pytest.mark.parametrize("text", ["hello", "#EXTM3U\n#EXTINF:10,\nfast.mp4\n", "ffconcat version 1.0\nfile fast.mp4\n"])
def test_text_named_mp4_is_no_playlist(videos, text):
    path = videos / "text.mp4"
    path.write_text(text)
    refused_stream(path, "frames")
    refused(lambda: count_packets(path))


def test_a_sound_file_has_no_frames(tmp_path):
    import av

    with av.open(str(tmp_path / "a.mp4"), "w") as out:
        stream = out.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        out.mux(stream.encode(frame))
        out.mux(stream.encode())
    assert "no video" in refused_stream(tmp_path / "a.mp4", "frames")


# --- any file


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [b"", b"\0", b"garbage" * 50, b"\x80\x04N."])
def test_empty_files_and_garbage_of_every_suffix(tmp_path, kind, content):
    for suffix in KINDS[kind].suffixes:
        path = tmp_path / f"x{suffix}"
        path.write_bytes(content)
        message = refused_stream(path, kind)
        assert content or "empty" in message or "zip" in message or "header" in message


def test_missing_looping_and_unreadable_paths(tmp_path):
    (tmp_path / "loop.mp4").symlink_to(tmp_path / "loop.mp4")
    (tmp_path / "dir.mp4").mkdir()
    for path in ("missing.mp4", "loop.mp4", "dir.mp4", "x\n\x1b[31m雪.mp4", "..", "a\0b.png", "\udc80.mp4", "x.exe"):
        refused(lambda path=path: list(open_stream(tmp_path / path, "frames")))
    refused(lambda: collect(tmp_path / "loop.mp4", "frames"))
    refused(lambda: digest(tmp_path / "loop.mp4"))
    refused(lambda: digest(tmp_path))
    refused(lambda: collect(tmp_path / "missing", "frames"))
    refused(lambda: collect(tmp_path / "dir.mp4", "frames"))
    (tmp_path / "circle").symlink_to(tmp_path)
    refused(lambda: collect(tmp_path / "circle", "depth"))
    refused(lambda: collect(tmp_path, "depth"))


def test_odd_values_are_no_samples(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"x")
    ragged = np.array([np.zeros(2), np.zeros(3)], dtype=object)
    masked = np.ma.masked_array(np.zeros((2, 3, 3)), True)
    for value in (None, 3, [], ["a.mp4"], {1: "a.mp4"}, {"a": None}, ragged, masked, b"bytes"):
        refused(lambda value=value: collect(value, "depth"))
    refused(lambda: collect(tmp_path, "frames", "(unclosed"))
    refused(lambda: collect(tmp_path, "sound"))


# --- arrays


@pytest.mark.parametrize("dtype", [complex, "U5", "S5", "M8[s]", "f4,f4"])
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_types(tmp_path, kind, dtype):
    array = np.zeros((2, 5, 6), dtype)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", array)
    for source in (array, tmp_path / "a.npy", tmp_path / "a.npz"):
        refused_stream(source, kind)


@pytest.mark.parametrize(
    "kind,array",
    [
        ("frames", np.zeros((2, 5, 6), np.int64)),
        ("frames", np.zeros((5, 6), np.uint8)),
        ("frames", np.zeros((50, 60, 3), np.uint8)),
        ("frames", np.zeros((2, 5, 6, 2), np.uint8)),
        ("frames", np.zeros((0, 5, 6, 3), np.uint8)),
        ("frames", np.zeros((2, 0, 6, 3), np.uint8)),
        ("depth", np.zeros((2, 5, 6), bool)),
        ("depth", np.zeros((2, 5, 6, 1))),
        ("segments", np.zeros((2, 5, 6))),
        ("segments", np.zeros((2, 5, 6), bool)),
        ("segments", np.zeros((2, 2, 5, 6), int)),
        ("mask", np.full((2, 5, 6), np.nan)),
        ("mask", np.full((5, 6), np.inf)),
        ("mask", np.full((5, 6), -1.0)),
        ("mask", np.full((5, 6), 7)),
        ("mask", np.arange(256).reshape(16, 16)),
        ("mask", np.zeros((2, 2, 5, 6), bool)),
        ("mask", np.array(1.0)),
    ],
)
def test_wrong_arrays(tmp_path, kind, array):
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", array)
    for source in (array, tmp_path / "a.npy", tmp_path / "a.npz"):
        refused_stream(source, kind)


def test_nothing_is_unpickled(tmp_path):
    bomb = Bomb(tmp_path / "exploded")
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(bomb))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(bomb))
    np.save(tmp_path / "object.npy", np.array([bomb], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "object.npz", depth=np.array([bomb], dtype=object))
    np.savez(tmp_path / "names.npz", masks=np.zeros((1, 2, 3, 4), bool), names=np.array([bomb], dtype=object))
    for name in ("pickle.npy", "pickle.npz", "object.npy", "object.npz"):
        refused_stream(tmp_path / name, "depth")
    refused_stream(tmp_path / "names.npz", "segments")
    assert not (tmp_path / "exploded").exists()


def npy_bytes(text, data=b""):
    header = text.encode() + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000, 1000000)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1000000, 1000, 1000)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 5)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 24}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (2, 3, 4)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3, 2)}",
        "{'descr': '<f4', 'fortran_order': 7, 'shape': (2, 3, 4)}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2, 3, 4)}",
        "{" * 9000,
        "(" * 200,
        "-" * 5000 + "1",
    ],
)
def test_headers_that_lie(tmp_path, header):
    data = npy_bytes(header, bytes(96))
    (tmp_path / "a.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("depth.npy", data)
    for name in ("a.npy", "a.npz"):
        refused_stream(tmp_path / name, "depth")


def test_zip_bombs(tmp_path):
    path = tmp_path / "bomb.npz"
    start = npy_bytes("{'descr': '|u1', 'fortran_order': False, 'shape': (3000, 1024, 1024)}")
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("depth.npy", "w", force_zip64=True) as member,
    ):
        member.write(start)
        block = bytes(64 * MIB)
        for index in range(3000 * MIB // len(block) + 1):
            member.write(block[: min(len(block), 3000 * MIB - index * len(block))])
    assert "zip bomb" in refused_stream(path, "depth")


def test_zips_that_lie(tmp_path):
    np.savez_compressed(tmp_path / "good.npz", depth=np.random.default_rng(0).random((4, 30, 30)))
    data = (tmp_path / "good.npz").read_bytes()
    rng = np.random.default_rng(1)
    place = data.rfind(b"PK\1\2")
    path = tmp_path / "bad.npz"
    for offset, code, value in [(24, "I", 0xFFFFFFF0), (20, "I", 0x7FFFFFFF), (24, "I", 0), (10, "H", 99), (8, "H", 1)]:
        forged = bytearray(data)
        struct.pack_into("<" + code, forged, place + offset, value)
        path.write_bytes(forged)
        refused_stream(path, "depth")
    for cut in (10, len(data) // 2, len(data) - 5):
        path.write_bytes(data[:cut])
        refused_stream(path, "depth")
    for _ in range(100):
        forged = bytearray(data)
        forged[rng.integers(len(forged))] ^= 1 << rng.integers(8)
        path.write_bytes(forged)
        read_or_refused(path, "depth")


def test_several_arrays_without_a_known_name(tmp_path):
    np.savez(tmp_path / "a.npz", first=np.zeros((1, 2, 2)), second=np.zeros((1, 2, 2)))
    message = refused_stream(tmp_path / "a.npz", "depth")
    assert "'first', 'second'" in message
    assert "'depth' or 'data'" in message
    with zipfile.ZipFile(tmp_path / "none.npz", "w") as archive:
        archive.writestr("../../etc/passwd", "x")
    refused_stream(tmp_path / "none.npz", "depth")


def test_safetensors_headers(tmp_path):
    path = tmp_path / "a.safetensors"

    def entry(dtype="F32", shape=(1, 2, 2), offsets=(0, 16)):
        return {"depth": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}

    for header in (
        entry(offsets=(0, 10**15)),
        entry(offsets=(8, 24)),
        entry(offsets=(16, 0)),
        entry(offsets=(-16, 0)),
        entry(offsets=(0, 16, 32)),
        entry(offsets=("0", "16")),
        entry(shape=(1, 2, 3)),
        entry(shape=(1, -2, -2)),
        entry(shape=(10**6, 10**6, 10**6)),
        entry(dtype="F8_E4M3"),
        entry(dtype=["F32"]),
        {"depth": None},
        {"depth": {}},
        {},
        [],
        {"__metadata__": {"a": "b"}},
        {"a": entry()["depth"], "b": entry()["depth"]},
    ):
        write_safetensors(path, header, bytes(16))
        refused_stream(path, "depth")
    for length in (17 * MIB, 2**63, 2**64 - 1, 10**6):
        path.write_bytes(length.to_bytes(8, "little") + b"{}")
        assert "header" in refused_stream(path, "depth")
    for text in (b'{"a":1,"a":2}', b"[" * 10**6, b'{"depth": NaN}', b"\xff\xfe", b'{"depth": ' + b"9" * 10**5 + b"}"):
        path.write_bytes(len(text).to_bytes(8, "little") + text)
        refused_stream(path, "depth")


# --- pictures


def png(width, height, depth=8, colour=2, idat=b""):
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)),
        (b"IDAT", idat),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks
    )


def test_picture_bombs(tmp_path):
    cases = {
        "a.png": png(50000, 50000),
        "wide.png": png(16384, 16384, 16, 6),
        "palette.png": png(50000, 50000, 8, 3, zlib.compress(bytes(10**6))),
        "zero.png": png(0, 5),
        "a.bmp": b"BM" + struct.pack("<IHHIIiiHH", 100, 0, 0, 54, 40, 50000, -50000, 1, 24) + bytes(40),
        "a.webp": b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8X" + struct.pack("<II", 10, 0) + b"\xff" * 6 + bytes(8),
        "a.jpg": b"\xff\xd8\xff\xc0\0\x11\x08" + struct.pack(">HHB", 50000, 50000, 3) + bytes(9) + b"\xff\xd9",
        "a.tif": b"II*\0" + struct.pack("<IHHHIIHHIII", 8, 2, 256, 4, 1, 50000, 257, 4, 1, 50000, 0),
        "circle.tif": b"II*\0" + struct.pack("<IHHHIIHHIII", 8, 2, 256, 4, 1, 5, 257, 4, 1, 5, 8),
        "long.tif": b"II*\0" + struct.pack("<IHHHIII", 8, 1, 256, 4, 2**31, 50000, 0),
        "past.tif": b"II*\0" + struct.pack("<I", 10**9),
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        refused_stream(tmp_path / name, "frames")
        refused_stream(tmp_path / name, "mask")


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp", "tif"])
def test_truncated_and_damaged_pictures(tmp_path, suffix):
    import cv2

    picture = np.random.default_rng(0).integers(0, 256, (60, 70, 3), dtype=np.uint8)
    data = cv2.imencode("." + suffix, picture)[1].tobytes()
    path = tmp_path / f"a.{suffix}"
    for share in (0.001, 0.01, 0.1, 0.5, 0.9, 0.99):
        path.write_bytes(data[: int(len(data) * share)])
        refused_stream(path, "frames")
    rng = np.random.default_rng(2)
    for _ in range(40):
        damaged = bytearray(data)
        damaged[rng.integers(200)] = rng.integers(256)
        path.write_bytes(damaged)
        read_or_refused(path, "frames")


def test_a_tiff_whose_strips_are_cut_off(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    path = tmp_path / "a.tif"
    for big in (False, True):
        tifffile.imwrite(path, np.random.default_rng(0).random((60, 70)).astype(np.float32), bigtiff=big)
        assert open_stream(path, "depth").shape == (60, 70)
        path.write_bytes(path.read_bytes()[:-500])
        assert "cut off" in refused_stream(path, "depth")


def test_a_folder_of_unlike_pictures_names_the_odd_one(tmp_path):
    import cv2

    cv2.imwrite(str(tmp_path / "frame_2.png"), np.zeros((4, 5, 3), np.uint8))
    cv2.imwrite(str(tmp_path / "frame_10.png"), np.zeros((5, 4, 3), np.uint8))
    message = refused(lambda: list(open_stream(tmp_path, "frames")))
    assert "frame_10.png is 4x5" in message
    assert "frame_2.png is 5x4" in message


def test_pictures_that_a_kind_does_not_take(tmp_path):
    import cv2

    colour = np.random.default_rng(0).integers(0, 256, (8, 9, 3), dtype=np.uint8)
    cv2.imwrite(str(tmp_path / "colour.png"), colour)
    cv2.imwrite(str(tmp_path / "deep.png"), colour.astype(np.uint16) * 257)
    cv2.imwrite(str(tmp_path / "labels.jpg"), colour[..., 0])
    for kind in ("depth", "segments", "mask"):
        refused_stream(tmp_path / "colour.png", kind)
    refused_stream(tmp_path / "deep.png", "frames")
    assert "JPEG" in refused_stream(tmp_path / "labels.jpg", "segments")


# --- run lengths


@pytest.mark.parametrize(
    "rle",
    [
        {"size": [4, 5], "counts": [21]},
        {"size": [4, 5], "counts": [19]},
        {"size": [4, 5], "counts": []},
        {"size": [4, 5], "counts": ""},
        {"size": [4, 5], "counts": [30, -10]},
        {"size": [4, 5], "counts": [10**30, -(10**30), 20]},
        {"size": [4, 5], "counts": [10.0, 10.0]},
        {"size": [4, 5], "counts": [True] * 20},
        {"size": [4, 5], "counts": "P"},
        {"size": [4, 5], "counts": "~"},
        {"size": [4, 5], "counts": "d"},
        {"size": [4, 5], "counts": "é"},
        {"size": [4, 5], "counts": "PPPPPPPPPPPPPPPPP0"},
        {"size": [4, 5], "counts": "o" * 8 + "?"},
        {"size": [4, 5], "counts": None},
        {"size": [10**6, 10**6], "counts": [10**12]},
        {"size": [-4, -5], "counts": [20]},
        {"size": [0, 5], "counts": [0]},
        {"size": [4, 5, 6], "counts": [120]},
        {"size": ["4", "5"], "counts": [20]},
        {"counts": [20]},
        [[1, 2, 3, 4, 5, 6]],
        None,
    ],
)
def test_forged_run_lengths(tmp_path, rle):
    refused(lambda: decode_rle(rle))
    if rle is not None:
        (tmp_path / "a.json").write_text(json.dumps([{"phrase": "x", "segmentations": [rle]}]))
        refused(lambda: list(open_stream(tmp_path / "a.json", "segments")))


def sam2(size, shape, counts="d0"):
    return [{"phrase": "x", "segmentation_mask_rle": {"data": {"size": size, "counts": counts}, "mask_shape": shape}}]


@pytest.mark.parametrize(
    "document",
    [
        sam2([19, 1], [1, 4, 5]),
        sam2([20, 1], [1, 4, 6]),
        sam2([1, 20], [1, 4, 5]),
        sam2([20, 1], [-1, -4, 5]),
        sam2([10**12, 1], [10**4, 10**4, 10**4]),
        sam2([20, 1], None),
        sam2(None, [1, 4, 5]),
        {},
        {"annotations": 3},
        {"annotations": [{"segmentations": [None]}]},
        {"annotations": [{"segmentations": [None], "category_id": 1}]},
        {"annotations": [], "videos": [{"length": 2, "height": 10**9, "width": 10**9}]},
        {"annotations": [], "videos": [{"length": -2, "height": 4, "width": 4}]},
        {"annotations": [{"video_id": 1}, {"video_id": 2}]},
        [3],
        ["x"],
        [{"phrase": 3, "segmentations": [{"size": [1, 1], "counts": [1]}]}],
        [{"phrase": "x", "segmentations": []}],
        [{"phrase": "x", "segmentations": {}}],
        [{"phrase": "x", "segmentations": [{"size": [1, 1], "counts": [1]}, {"size": [1, 2], "counts": [2]}]}],
        [{"segmentations": [{"size": [1, 1], "counts": [1]}]}, {"segmentations": [{"size": [1, 2], "counts": [2]}]}],
        "text",
        3,
        None,
    ],
)
def test_forged_segment_files(tmp_path, document):
    (tmp_path / "a.json").write_text(json.dumps(document))
    refused_stream(tmp_path / "a.json", "segments")


@pytest.mark.parametrize(
    "text",
    ["[" * 10**6, '{"a":' * 10**5, "[NaN]", '{"a": 1, "a": 2}', "[1,", "[] []", "\ufeff[]", "[" + "9" * 10**5 + "]"],
)
def test_json_is_strict_and_bounded(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    refused_stream(tmp_path / "a.json", "segments")
    with (tmp_path / "b.json").open("wb") as file:
        file.truncate(600 * MIB)
    assert "at most" in refused_stream(tmp_path / "b.json", "segments")
