"""What is written in a format is read back: frames, depth, segments, masks, and the ids of samples."""

import json
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from karat.errors import InputError
from karat.sources import KINDS, collect, count_packets, decode_rle, digest, open_stream, select

RNG = np.random.default_rng(7)
T, H, W = 5, 12, 10
RGB = RNG.integers(0, 256, (T, H, W, 3), dtype=np.uint8)
DEPTH = RNG.random((T, H, W)).astype(np.float32)
LABELS = RNG.integers(0, 5, (T, H, W), dtype=np.int32)
MASKS = RNG.random((3, T, H, W)) > 0.5
BINARY = RNG.random((T, H, W)) > 0.5


def read(source, kind):
    """All frames, after checking that each is what the stream declared."""
    with open_stream(source, kind) as stream:
        frames = list(stream)
        for frame in frames:
            assert frame.shape == stream.shape
            assert frame.dtype == stream.dtype
        if stream.length is not None:
            assert len(frames) == stream.length
    return np.stack(frames)


def write_safetensors(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_video(path, frames=24, size=(64, 48), codec="libx264", pix_fmt="yuv420p", container=None):
    import av

    with av.open(str(path), "w", options=container or {}) as out:
        stream = out.add_stream(codec, rate=12)
        stream.width, stream.height = size
        stream.pix_fmt = pix_fmt
        for index in range(frames):
            picture = np.random.default_rng(index).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
            picture[: size[1] // 2] = index * 10 % 256
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode())


def write_png(path, rows, depth, colour, filters):
    """A PNG written by hand: `rows` (H, bytes) of packed samples, one filter number a row."""
    previous, lines = np.zeros_like(rows[0]), []
    for row, kind in zip(rows, filters, strict=True):
        left = np.concatenate(([0], row[:-1])).astype(int)
        up, corner = previous.astype(int), np.concatenate(([0], previous[:-1])).astype(int)
        p = left + up - corner
        near = np.where(
            (abs(p - left) <= abs(p - up)) & (abs(p - left) <= abs(p - corner)),
            left,
            np.where(abs(p - up) <= abs(p - corner), up, corner),
        )
        guess = [0 * left, left, up, (left + up) // 2, near][kind]
        lines.append(bytes([kind]) + ((row.astype(int) - guess) % 256).astype(np.uint8).tobytes())
        previous = row
    width = rows.shape[1] * 8 // depth
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0))]
    if colour == 3:
        parts.append((b"PLTE", np.random.default_rng(1).integers(0, 256, 3 << depth, dtype=np.uint8).tobytes()))
    parts += [(b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def compress_counts(counts):
    """pycocotools' rleToString, literally."""
    text = []
    for index, count in enumerate(counts):
        value = count - counts[index - 2] if index > 2 else count
        more = True
        while more:
            code = value & 31
            value >>= 5
            more = value != -1 if code & 16 else value != 0
            text.append(chr((code | 32 if more else code) + 48))
    return "".join(text)


def run_lengths(flat):
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flat.astype(int), [2]))))
    return np.diff(edges, prepend=0).tolist()


def rle(mask, compressed=True):
    counts = run_lengths(mask.ravel(order="F"))
    return {"size": list(mask.shape), "counts": compress_counts(counts) if compressed else counts}


# --- arrays


@pytest.mark.parametrize("save", ["npy", "npz", "compressed", "safetensors", "fortran", "swapped", "memory"])
@pytest.mark.parametrize(
    "kind,array", [("frames", RGB), ("depth", DEPTH), ("segments", LABELS), ("segments", MASKS), ("mask", BINARY)]
)
def test_arrays_round_trip(tmp_path, kind, array, save):
    path = tmp_path / (
        "a.safetensors" if save == "safetensors" else "a.npz" if save in ("npz", "compressed") else "a.npy"
    )
    names = {"i": "I32", "b": "BOOL", "u": "U8", "f": "F32"}
    if save == "npz":
        np.savez(path, array)
    elif save == "compressed":
        np.savez_compressed(path, array)
    elif save == "safetensors":
        entry = {"dtype": names[array.dtype.kind], "shape": array.shape, "data_offsets": [0, array.nbytes]}
        write_safetensors(path, {"__metadata__": {"format": "np"}, "any": entry}, array.tobytes())
    elif save == "fortran":
        np.save(path, np.asfortranarray(array))
    elif save == "swapped":
        np.save(path, array.astype(array.dtype.newbyteorder(">")))
    else:
        np.save(path, array)
    got = read(array if save == "memory" else path, kind)
    expected = array.swapaxes(0, 1) if array is MASKS else array
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype


def test_known_names_win_over_others_and_name_segments(tmp_path):
    path = tmp_path / "s.npz"
    np.savez(path, masks=MASKS, names=np.array(["a cat", "鳥", "dog"]), score=np.ones(3))
    stream = open_stream(path, "segments")
    assert stream.labels == ("a cat", "鳥", "dog")
    assert stream.shape == (3, H, W)
    np.savez(path, whatever=DEPTH, data=DEPTH + 1)
    np.testing.assert_array_equal(read(path, "depth"), DEPTH + 1)


def test_bfloat16_becomes_float32(tmp_path):
    wide = DEPTH.view(np.uint32) & 0xFFFF0000
    raw = (wide >> 16).astype("<u2").tobytes()
    path = tmp_path / "b.safetensors"
    write_safetensors(path, {"depth": {"dtype": "BF16", "shape": DEPTH.shape, "data_offsets": [0, len(raw)]}}, raw)
    np.testing.assert_array_equal(read(path, "depth"), wide.view(np.float32))


def test_a_tensor_ends_where_its_entry_says(tmp_path):
    raw = DEPTH.tobytes()
    header = {
        "other": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
        "depth": {"dtype": "F32", "shape": DEPTH.shape, "data_offsets": [4, 4 + len(raw)]},
        "last": {"dtype": "U8", "shape": [4], "data_offsets": [4 + len(raw), 8 + len(raw)]},
    }
    write_safetensors(tmp_path / "c.safetensors", header, b"abcd" + raw + b"efgh")
    np.testing.assert_array_equal(read(tmp_path / "c.safetensors", "depth"), DEPTH)


def test_frames_become_rgb():
    grey = RGB[..., 0]
    np.testing.assert_array_equal(read(grey, "frames"), np.repeat(grey[..., None], 3, 3))
    np.testing.assert_array_equal(read(grey[..., None], "frames"), np.repeat(grey[..., None], 3, 3))
    np.testing.assert_array_equal(read(np.concatenate([RGB, RGB[..., :1]], 3), "frames"), RGB)
    floats = (RGB / 255).astype(np.float64)
    assert read(floats, "frames").dtype == np.float64


def test_masks_become_boolean_or_stay_weights():
    for top in (1, 255):
        np.testing.assert_array_equal(read((BINARY * top).astype(np.uint8), "mask"), BINARY)
    assert read(DEPTH, "mask").dtype == np.float32
    still = open_stream(BINARY[0], "mask")
    assert still.still
    assert still.length == 1
    assert not open_stream(BINARY, "mask").still


def test_nan_depth_is_data():
    holes = np.where(BINARY, np.nan, DEPTH)
    np.testing.assert_array_equal(read(holes, "depth"), holes)


def test_no_segments_is_a_prediction(tmp_path):
    assert read(np.zeros((0, T, H, W), bool), "segments").shape == (T, 0, H, W)
    (tmp_path / "none.json").write_text("[]")
    stream = open_stream(tmp_path / "none.json", "segments")
    assert stream.still
    assert [frame.shape for frame in stream] == [(0, 0, 0)]


# --- streams


def test_select_counts_before_striding():
    assert [f[0, 0] for f in select(open_stream(LABELS, "segments"), 4, 2)] == [LABELS[0, 0, 0], LABELS[2, 0, 0]]
    for first, stride, length in [(None, 1, 5), (None, 2, 3), (4, 2, 2), (99, 4, 2), (1, 3, 1)]:
        chosen = select(open_stream(LABELS, "segments"), first, stride)
        assert chosen.length == length == len(list(chosen))
    still = open_stream(BINARY[0], "mask")
    assert select(still, 1, 3) is still
    with pytest.raises(InputError):
        select(open_stream(LABELS, "segments"), 0, 1)


def test_a_stream_is_read_once():
    stream = open_stream(LABELS, "segments")
    list(stream)
    with pytest.raises(InputError, match="once"):
        iter(stream)


def test_closing_early_frees_the_file(tmp_path):
    write_video(tmp_path / "a.mp4")
    with open_stream(tmp_path / "a.mp4", "frames") as stream:
        next(iter(stream))
    assert list(stream._frames) == []


# --- video


@pytest.mark.parametrize(
    "name,codec,pix_fmt",
    [
        ("a.mp4", "libx264", "yuv420p"),
        ("a.mov", "libx264", "yuv444p"),
        ("a.m4v", "libx264", "yuv420p"),
        ("a.mkv", "libx264", "yuv420p"),
        ("a.avi", "mpeg4", "yuv420p"),
        ("a.webm", "libvpx-vp9", "yuv420p"),
    ],
)
def test_videos_decode_as_opencv_decodes_them(tmp_path, name, codec, pix_fmt):
    import cv2

    path = tmp_path / name
    write_video(path, codec=codec, pix_fmt=pix_fmt)
    stream = open_stream(path, "frames")
    assert (stream.shape, stream.dtype, stream.fps) == ((48, 64, 3), np.uint8, 12.0)
    assert stream.length in (None, 24)
    frames = list(stream)
    assert len(frames) == 24 == count_packets(path)
    capture = cv2.VideoCapture(str(path))
    for frame in frames:
        np.testing.assert_array_equal(frame, capture.read()[1][..., ::-1])


def test_gif_and_mask_videos(tmp_path):
    write_video(tmp_path / "a.gif", codec="gif", pix_fmt="rgb8")
    assert read(tmp_path / "a.gif", "frames").shape == (24, 48, 64, 3)
    write_video(tmp_path / "a.mp4")
    mask = read(tmp_path / "a.mp4", "mask")
    assert mask.dtype == bool
    assert mask.shape == (24, 48, 64)
    assert [bool(frame[10, 30]) for frame in mask] == [index * 10 >= 128 for index in range(24)]


def test_hidden_frames_of_an_edit_list_are_no_damage(tmp_path):
    import av

    write_video(tmp_path / "whole.mp4")
    with av.open(str(tmp_path / "whole.mp4")) as source, av.open(str(tmp_path / "cut.mp4"), "w") as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        offset = 5 * 1024
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.pts, packet.dts, packet.stream = packet.pts - offset, packet.dts - offset, stream
                out.mux(packet)
    shown = open_stream(tmp_path / "cut.mp4", "frames")
    frames = len(list(shown))
    assert frames == count_packets(tmp_path / "cut.mp4")
    assert frames <= shown.length == 24


# --- pictures


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "tiff", "webp"])
def test_a_folder_is_read_in_natural_order(tmp_path, suffix):
    import cv2

    for index in range(T):
        settings = [cv2.IMWRITE_WEBP_QUALITY, 101] if suffix == "webp" else []
        cv2.imwrite(str(tmp_path / f"frame_{index * 6}.{suffix}"), RGB[index][..., ::-1], settings)
    (tmp_path / ".hidden.png").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("no picture")
    np.testing.assert_array_equal(read(tmp_path, "frames"), RGB)


def test_jpeg_unicode_and_odd_names(tmp_path):
    import cv2

    data = cv2.imencode(".jpg", RGB[0])[1].tobytes()
    for name in ("snö\n雪..jpg", "a:b.jpeg"):
        (tmp_path / name).write_bytes(data)
        assert read(tmp_path / name, "frames").shape == (1, H, W, 3)
    write_video(tmp_path / "a:b\n雪.mp4")
    assert len(read(tmp_path / "a:b\n雪.mp4", "frames")) == 24


def test_tags_that_are_no_text(tmp_path):
    write_video(tmp_path / "a.mp4")
    written = (tmp_path / "a.mp4").read_bytes()
    assert b"Lavf" in written, "the name of the writer is a tag"
    (tmp_path / "a.mp4").write_bytes(written.replace(b"Lavf", b"\xff\xfe\xe9\xe8"))
    assert len(read(tmp_path / "a.mp4", "frames")) == 24


@pytest.mark.parametrize(
    "dtype,suffix", [(np.uint16, "png"), (np.float32, "tif"), (np.float64, "tif"), (np.uint8, "png")]
)
def test_depth_pictures_keep_their_type(tmp_path, dtype, suffix):
    import cv2

    depth = (DEPTH * 200).astype(dtype)
    for index in range(T):
        cv2.imwrite(str(tmp_path / f"{index}.{suffix}"), depth[index])
    got = read(tmp_path, "depth")
    np.testing.assert_array_equal(got, depth)
    assert got.dtype == dtype


def test_pages_of_a_tiff_are_frames(tmp_path):
    import cv2

    cv2.imwritemulti(str(tmp_path / "d.tiff"), list(DEPTH))
    np.testing.assert_array_equal(read(tmp_path / "d.tiff", "depth"), DEPTH)


@pytest.mark.parametrize("colour", [0, 3])
@pytest.mark.parametrize("depth", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, "mixed"])
def test_label_pngs_give_the_stored_numbers(tmp_path, depth, colour, kind):
    packed = RNG.integers(0, 256, (15, 6), dtype=np.uint8)
    shifts = range(8 - depth, -1, -depth)
    ids = np.stack([packed >> shift & (1 << depth) - 1 for shift in shifts], -1).reshape(15, -1)
    filters = [index % 5 for index in range(15)] if kind == "mixed" else [kind] * 15
    write_png(tmp_path / "l.png", packed, depth, colour, filters)
    np.testing.assert_array_equal(read(tmp_path / "l.png", "segments")[0], ids)


def test_palette_pngs_of_pillow(tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture = image.fromarray(LABELS[0].astype(np.uint8), "P")
    picture.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0, 0, 0, 128])
    picture.save(tmp_path / "p.png")
    np.testing.assert_array_equal(read(tmp_path / "p.png", "segments")[0], LABELS[0])
    np.testing.assert_array_equal(read(tmp_path / "p.png", "frames")[0], np.asarray(picture.convert("RGB")))


def test_mask_pictures(tmp_path):
    import cv2

    grey = (BINARY[0] * 255).astype(np.uint8)
    cv2.imwrite(str(tmp_path / "grey.png"), grey)
    cv2.imwrite(str(tmp_path / "rgb.png"), np.dstack([grey] * 3))
    for name in ("grey.png", "rgb.png"):
        assert open_stream(tmp_path / name, "mask").still
        np.testing.assert_array_equal(read(tmp_path / name, "mask")[0], BINARY[0])
    assert not open_stream(tmp_path / "grey.png", "frames").still


# --- run lengths


def test_a_known_run_length_string():
    # Worked by hand from pycocotools' C code: counts 6, 1, 40, 4, 5, 4, 5, 4, 21 of a 9 x 10 mask.
    mask = decode_rle({"size": [9, 10], "counts": "61X13mN000`0"})
    assert run_lengths(mask.ravel(order="F")) == [6, 1, 40, 4, 5, 4, 5, 4, 21]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("compressed", [True, False])
def test_run_lengths_round_trip(share, compressed):
    mask = RNG.random((37, 53)) < share
    np.testing.assert_array_equal(decode_rle(rle(mask, compressed)), mask)


def test_json_layouts(tmp_path):
    masks = MASKS.copy()
    masks[1, 2] = False
    frames = [[None if (o, t) == (1, 2) else rle(masks[o, t], t % 2 == 0) for t in range(T)] for o in range(3)]
    keys = ("phrase", "label", "name")
    objects = [{keys[i]: f"o{i}", "segmentations": f} for i, f in enumerate(frames)]
    sam2 = [
        {
            "phrase": f"o{i}",
            "segmentation_mask_rle": {
                "data": {"size": [T * H * W, 1], "counts": compress_counts(run_lengths(volume.ravel()))},
                "mask_shape": [T, H, W],
            },
        }
        for i, volume in enumerate(masks)
    ]
    vis = {
        "annotations": [{"segmentations": f, "category_id": i, "video_id": 4} for i, f in enumerate(frames)],
        "categories": [{"id": i, "name": f"o{i}"} for i in range(3)],
        "videos": [{"length": T, "height": H, "width": W}],
    }
    for layout in (objects, sam2, vis):
        path = tmp_path / "s.json"
        path.write_text(json.dumps(layout))
        assert open_stream(path, "segments").labels == ("o0", "o1", "o2")
        np.testing.assert_array_equal(read(path, "segments"), masks.swapaxes(0, 1))


# --- samples


def test_a_folder_becomes_samples(tmp_path):
    for name in ("b/c_10.mp4", "b/c_2.MP4", "notes.txt", ".hidden.mp4", "ünï..x.npz", "seq/0001.png", "seq/0002.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert list(collect(tmp_path, "frames")) == ["b/c_2", "b/c_10", "seq", "ünï..x"]
    assert list(collect(str(tmp_path), "depth")) == ["seq", "ünï..x"]
    assert collect(tmp_path / "seq", "frames") == {".": tmp_path / "seq"}
    assert collect(tmp_path / "b/c_10.mp4", "frames") == {"c_10": tmp_path / "b/c_10.mp4"}
    assert list(collect(tmp_path, "frames", r"^(?:.*/)?c_(\d+)")) == ["2", "10", "seq", "ünï..x"]
    assert list(collect(tmp_path, "depth", r"^[a-z]+")) == ["seq", "ünï..x"]


def test_equal_ids_name_both_files(tmp_path):
    for name in ("task_1__1.mp4", "task_1__2.mp4", "a.mp4", "a.mkv"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=r"a\.m.*a\.m"):
        collect(tmp_path, "frames")
    (tmp_path / "a.mkv").unlink()
    assert len(collect(tmp_path, "frames")) == 3
    with pytest.raises(InputError, match=r"task_1__2.*task_1__1"):
        collect(tmp_path, "frames", r"^(.*?)__")


def test_links_are_followed_and_loops_are_not(tmp_path):
    data = tmp_path / "data"
    (tmp_path / "elsewhere").mkdir()
    data.mkdir()
    (tmp_path / "elsewhere" / "v.mp4").write_bytes(b"x")
    (data / "there").symlink_to(tmp_path / "elsewhere")
    (data / "round").symlink_to(data)
    (data / "dead.mp4").symlink_to(tmp_path / "nothing")
    (data / "self.mp4").symlink_to(data / "self.mp4")
    assert list(collect(data, "frames")) == ["there/v"]


@pytest.mark.parametrize(
    "kind,one", [("frames", RGB), ("depth", DEPTH), ("mask", BINARY), ("segments", LABELS), ("segments", MASKS)]
)
def test_arrays_become_samples(kind, one):
    assert list(collect(one, kind)) == ["0000"]
    many = np.stack([one, one])
    assert list(collect(many, kind)) == ["0000", "0001"]
    np.testing.assert_array_equal(collect(many, kind)["0001"], one)
    assert list(collect([one] * 3, kind)) == ["0000", "0001", "0002"]
    assert list(collect({"../b": one, "a\n": "x.mp4"}, kind)) == ["../b", "a\n"]
    with pytest.raises(InputError):
        collect(many[None], kind)


def test_ids_of_many_arrays_are_wide_enough():
    assert list(collect([BINARY[0]] * 10001, "mask"))[-1] == "10000"


class Dlpack:
    """An array of another library that speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **settings):
        return self.array.__dlpack__(**settings)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_other_libraries_arrays():
    np.testing.assert_array_equal(collect(Dlpack(DEPTH), "depth")["0000"], DEPTH)
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(DEPTH, requires_grad=True)
    np.testing.assert_array_equal(collect(tensor, "depth")["0000"], DEPTH)
    assert collect(tensor.to(torch.bfloat16), "depth")["0000"].dtype == np.float32


# --- fingerprints


def test_digest_changes_with_content_and_nothing_else(tmp_path):
    import hashlib

    import cv2

    (tmp_path / "a.bin").write_bytes(b"abc")
    assert digest(tmp_path / "a.bin") == hashlib.sha256(b"abc").hexdigest()
    folder = tmp_path / "f"
    folder.mkdir()
    for name in ("a_2.png", "a_10.png"):
        cv2.imwrite(str(folder / name), RGB[0])
    before = digest(folder)
    (folder / "notes.txt").write_text("not read")
    assert digest(folder) == before
    (folder / "a_10.png").rename(folder / "a_11.png")
    assert digest(folder) != before
    assert digest(DEPTH) == digest(np.asfortranarray(DEPTH))
    assert len({digest(DEPTH), digest(DEPTH[:, :, ::-1]), digest(DEPTH.reshape(T, W, H)), digest(LABELS)}) == 4


# --- the package


def test_import_is_light_and_damage_is_silent(tmp_path):
    """Neither cv2, av nor torch is loaded by the import, and no decoder writes to stderr."""
    write_video(tmp_path / "a.mp4", container={"movflags": "faststart"})
    (tmp_path / "b.mp4").write_bytes((tmp_path / "a.mp4").read_bytes()[:-3000])
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    code = f"""
import sys, pathlib
import karat.sources as s
assert not {{"cv2", "av", "torch"}} & set(sys.modules)
for name in ("b.mp4", "b.png"):
    try:
        list(s.open_stream(pathlib.Path({str(tmp_path)!r}, name), "frames"))
    except Exception as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["InputError", "InputError"]
    assert done.stderr == ""


def test_every_kind_says_what_it_expects():
    known = {"frames", "picture", "depth", "segments", "mask", "field", "spread", "plain", "ensemble"}
    assert set(KINDS) == known
    with pytest.raises(InputError, match="frames, picture, depth, segments, mask"):
        open_stream(DEPTH, "sound")


def test_the_png_writer_of_these_tests_agrees_with_pillow(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rows = RNG.integers(0, 256, (4, 6), dtype=np.uint8)
    write_png(tmp_path / "a.png", rows, 8, 0, [0, 1, 3, 4])
    np.testing.assert_array_equal(np.asarray(image.open(tmp_path / "a.png")), rows)
