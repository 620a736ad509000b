"""HDF5 files are hostile: they lead nowhere, take no more memory than they may, and execute nothing."""

import pickle
import zlib
from contextlib import suppress

import h5py
import numpy as np
import pose_formats as formats
import pytest
from pose_formats import MIB, Bomb, refused

from karat.errors import InputError
from karat.sources.pairing import collect


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file of every format."""
    return formats.write_all(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def slp(whole, tmp_path):
    """A .slp that a test may spoil."""
    (tmp_path / "a.slp").write_bytes((whole / "a.slp").read_bytes())
    return tmp_path / "a.slp"


@pytest.mark.parametrize("kind", ["external", "through a soft link", "storage", "virtual"])
def test_other_files_are_not_read(slp, tmp_path, kind):
    other = tmp_path / "other.h5"
    with h5py.File(slp, "a") as file, h5py.File(other, "w") as there:
        points = file["points"][()]
        there["points"] = points
        del file["points"]
        if kind == "external":
            file["points"] = h5py.ExternalLink("other.h5", "points")
        elif kind == "through a soft link":
            file["there"] = h5py.ExternalLink("other.h5", "/")
            file["points"] = h5py.SoftLink("/there/points")
        elif kind == "storage":
            file.create_dataset("points", points.shape, points.dtype, external=[(str(other), 0, points.nbytes)])
        else:
            layout = h5py.VirtualLayout(points.shape, points.dtype)
            layout[...] = h5py.VirtualSource(str(other), "points", points.shape, points.dtype)
            file.create_virtual_dataset("points", layout)
    refused(slp, "another file")


def replaced(path, name, **changes):
    """Changes columns of a table, or puts something else in its place."""
    with h5py.File(path, "a") as file:
        table = file[name][()]
        for key, value in changes.items():
            table[key] = value
        file[name][...] = table


@pytest.mark.parametrize(
    ("name", "changes", "word"),
    [
        ("frames", {"instance_id_end": 1 << 40}, "does not hold"),
        ("frames", {"instance_id_start": 1 << 63}, "whole"),
        ("frames", {"instance_id_end": 12, "instance_id_start": 0}, "refers to entries"),
        ("frames", {"video": 7}, "video 7"),
        ("frames", {"frame_idx": 1 << 62}, "whole"),
        ("instances", {"point_id_end": 1 << 60}, "nodes"),
        ("instances", {"point_id_start": 1 << 40, "point_id_end": (1 << 40) + 12}, "refers to entries"),
        ("instances", {"point_id_end": 5}, "nodes"),
        ("instances", {"skeleton": 4}, "skeleton"),
        ("instances", {"instance_type": 1}, "refers to entries"),
    ],
)
def test_tables_that_refer_to_nothing(slp, name, changes, word):
    replaced(slp, name, **changes)
    refused(slp, word)


@pytest.mark.parametrize("name", ["frames", "instances", "points", "pred_points", "videos_json", "metadata"])
def test_tables_that_are_missing_or_something_else(slp, name):
    data = slp.read_bytes()
    for make in (
        lambda file: file.flush(),
        lambda file: file.create_group(name),
        lambda file: file.create_dataset(name, data=np.zeros(3)),
        lambda file: file.create_dataset(name, data=[b"a", b"b"]),
        lambda file: file.create_dataset(name, data=h5py.Empty("f8")),
        lambda file: file.create_dataset(name, (2,), h5py.vlen_dtype("f8")),
        lambda file: file.create_dataset(name, (2,), h5py.ref_dtype),
        lambda file: file.__setitem__(name, h5py.SoftLink("/nowhere")),
        lambda file: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
    ):
        slp.write_bytes(data)
        with h5py.File(slp, "a") as file:
            del file[name]
            make(file)
        refused(slp)


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 31, 1 << 31)])
@pytest.mark.parametrize("name", ["points", "frames"])
def test_huge_declared_sizes(slp, name, shape):
    with h5py.File(slp, "a") as file:
        kind = file[name].dtype
        del file[name]
        file.create_dataset(name, shape, kind, chunks=(1,) * len(shape))
    refused(slp, "declares")


def test_chunks_larger_than_all_that_they_hold(slp):
    with h5py.File(slp, "a") as file:
        kind = file["points"].dtype
        del file["points"]
        file.create_dataset("points", (10,), kind, chunks=(1 << 27,), maxshape=(None,))
    refused(slp, "chunks")


def test_a_chunk_that_expands_to_more_than_it_declares(slp):
    packed = zlib.compress(bytes(72 * MIB), 1)  # as large as makes the reader look into it
    with h5py.File(slp, "a") as file:
        kind = file["points"].dtype
        del file["points"]
        points = file.create_dataset("points", (144,), kind, chunks=(144,), compression="gzip")
        points.id.write_direct_chunk((0,), packed)
    refused(slp, "expands to more")


def test_filters_of_others_and_many_at_once(slp):
    with h5py.File(slp, "a") as file:
        table = file["points"][()]
        del file["points"]
        file.create_dataset("points", data=table["x"], chunks=(4,), compression="lzf")
    refused(slp, "filters")


def test_one_long_text_many_times(slp):
    with h5py.File(slp, "a") as file:
        del file["videos_json"]
        texts = file.create_dataset("videos_json", (1000,), h5py.string_dtype())
        texts[0] = "a" * (4 * MIB)
        start = texts.id.get_offset()
    with slp.open("r+b") as file:  # an entry is a length, the place of a heap and a number in it
        file.seek(start)
        entry = file.read(16)
        file.seek(start)
        file.write(entry * 1000)
    refused(slp, "MB of text", memory=256 * MIB)


@pytest.mark.parametrize("chunks", [None, (1,)])
@pytest.mark.parametrize("user", [0, 512])
def test_a_text_that_declares_gigabytes(tmp_path, chunks, user):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=user) as file:
        for name, shape in (("tracks", (1, 2, 1, 1)), ("track_occupancy", (1, 1))):
            file[name] = np.zeros(shape)
        file["track_names"] = [b"one"]
        file.create_dataset("node_names", data=["nose"], dtype=h5py.string_dtype(), chunks=chunks)
        names = file["node_names"]
        start = names.id.get_offset() if chunks is None else names.id.get_chunk_info(0).byte_offset
    assert len(collect(path, "poses"))
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff\xff\xff\xf0")
    refused(path, "MB of text")


def test_a_heap_in_which_the_library_would_never_end(slp):
    data = bytearray(slp.read_bytes())
    heap = data.index(b"GCOL\x01\0\0\0")
    place = heap + 16
    while int.from_bytes(data[place : place + 2], "little"):
        place += 16 + -(-int.from_bytes(data[place + 8 : place + 16], "little") // 8) * 8
    data[place + 8 : place + 16] = bytes(8)
    slp.write_bytes(data)
    refused(slp, "texts")


@pytest.mark.parametrize(
    ("metadata", "word"),
    [
        ("{}", "KeyError"),
        ("[]", ""),
        ("{", "JSONDecodeError"),
        ("[" * 10_000, "RecursionError"),
        ('{"nodes": [{"name": "a"}], "skeletons": [{"nodes": [{"id": -1}]}]}', "number of no node"),
        ('{"nodes": [{"name": "a"}], "skeletons": [{"nodes": [{"id": 5}]}]}', "IndexError"),
        (
            '{"nodes": [{"name": "a"}], "skeletons": [{"nodes": [{"id": {"py/object": "os.system"}}]}]}',
            "number of no node",
        ),
        ('{"nodes": [{"name": "a"}], "skeletons": [{"nodes": [{"id": 0}, {"id": 0}]}]}', "nodes"),
        ('{"nodes": [], "skeletons": []}', "skeleton"),
    ],
)
def test_skeletons_that_are_none(slp, metadata, word):
    with h5py.File(slp, "a") as file:
        file["metadata"].attrs["json"] = metadata
    refused(slp, word)


@pytest.mark.parametrize("version", [0.5, 3.0, 99.0, np.nan, "1.3", None])
def test_versions_that_are_not_known(slp, version):
    with h5py.File(slp, "a") as file:
        del file["metadata"].attrs["format_id"]
        if version is not None:
            file["metadata"].attrs["format_id"] = version
    refused(slp, "version")


@pytest.mark.parametrize(
    "video",
    [
        "{}",
        "3",
        "[]",
        '{"backend": 3}',
        '{"backend": {"filename": ".", "dataset": "video0/video"}}',
        "[" * 9999,
        '{"backend": {}}',
    ],
)
def test_videos_that_are_none(slp, video):
    """One that is made from itself, for example."""
    with h5py.File(slp, "a") as file:
        del file["videos_json"]
        file["videos_json"] = [video]
        file.create_group("video0/source_video").attrs["json"] = (
            '{"backend": {"filename": ".", "dataset": "video0/video"}}'
        )
    if video != '{"backend": {}}':
        refused(slp)
    else:
        assert list(collect(slp, "poses")) == ["a"]


def test_attributes_that_are_huge_or_no_plain_values(slp):
    data = slp.read_bytes()
    for value in (h5py.Empty("f8"), np.zeros(5000), np.array([b"{}", b"{}"], h5py.string_dtype())):
        slp.write_bytes(data)
        with h5py.File(slp, "a") as file:
            file["metadata"].attrs["json"] = value
        refused(slp)


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("key", ["non_index_axes", "info"])
def test_what_pandas_pickles_is_not_executed(tmp_path, key, protocol):
    path = tmp_path / "a.h5"
    formats.write_dlc_hdf5(path, formats.moved(formats.poses()), as_table=True)
    for bomb in (Bomb(tmp_path / "made"), [(1, [Bomb(tmp_path / "made")])], {1: {"names": Bomb(tmp_path / "made")}}):
        with h5py.File(path, "a") as file:
            file["df_with_missing"].attrs[key] = np.void(pickle.dumps(bomb, protocol))
        refused(path)
        with h5py.File(path, "a") as file:
            file["df_with_missing"].attrs[key] = np.bytes_(pickle.dumps(bomb, 0))
        refused(path, "asks for posix.mkdir")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("non_index_axes", [(1, [("a", "b")])]),
        ("non_index_axes", [(1, 5)]),
        ("non_index_axes", 3),
        ("info", {1: {"names": ["scorer"]}}),
        ("info", {}),
        ("info", {1: {"names": ["a", "b", "c", "d"]}}),
    ],
)
def test_tables_of_pandas_that_are_not_deeplabcuts(tmp_path, key, value):
    path = tmp_path / "a.h5"
    formats.write_dlc_hdf5(path, formats.moved(formats.poses()), as_table=True)
    with h5py.File(path, "a") as file:
        file["df_with_missing"].attrs[key] = np.bytes_(pickle.dumps(value, 0))
    refused(path)


@pytest.mark.parametrize("codes", [-1, 100])
def test_levels_that_point_outside(tmp_path, codes):
    path = tmp_path / "a.h5"
    formats.write_dlc_hdf5(path, formats.poses())
    with h5py.File(path, "a") as file:
        file["df_with_missing/block0_items_label2"][...] = codes
    refused(path, "another layout")


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("tracks", np.zeros((2, 2, 12)), "shape"),
        ("tracks", np.zeros((2, 3, 12, 6)), "shape"),
        ("tracks", np.full((2, 2, 12, 6), b"a"), "numbers"),
        ("track_occupancy", np.zeros((5, 2)), "occupancy"),
        ("track_occupancy", np.zeros(5), "shape"),
        ("point_scores", np.zeros((2, 12, 5)), "shape"),
        ("instance_scores", np.zeros((2, 5)), "shape"),
        ("node_names", np.array([b"a"]), "1 nodes"),
        ("node_names", np.zeros(12), "text"),
        ("video_path", np.zeros(2), "text"),
    ],
)
def test_analyses_whose_arrays_do_not_fit(whole, tmp_path, name, data, word):
    path = tmp_path / "a.h5"
    path.write_bytes((whole / "analysis.h5").read_bytes())
    with h5py.File(path, "a") as file:
        said = dict(file[name].attrs)
        del file[name]
        file[name] = data
        for key, value in said.items():
            file[name].attrs[key] = value
    refused(path, word)


@pytest.mark.parametrize(
    "dims", ['["frame"]', '["a", "b", "c", "d"]', '{"frame": 1}', "3", "[", '["frame", "frame", "node", "xy"]']
)
def test_analyses_of_unknown_axes(whole, tmp_path, dims):
    path = tmp_path / "a.h5"
    path.write_bytes((whole / "analysis.h5").read_bytes())
    with h5py.File(path, "a") as file:
        file["tracks"].attrs["dims"] = dims
    refused(path)


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("points", np.zeros((6, 2, 11, 2)), "12 points"),
        ("points", np.zeros((6, 2, 12)), "12 points"),
        ("confidence", np.zeros((6, 2)), "confidence"),
        ("instance_embed_id", np.zeros((6, 3), int), "ids"),
        ("instance_embed_id", np.full((6, 2), 0.5), "whole"),
        ("instance_embed_id", None, "no poseest/instance_embed_id"),
    ],
)
def test_jabs_whose_arrays_do_not_fit(whole, tmp_path, name, data, word):
    path = tmp_path / "a.h5"
    path.write_bytes((whole / "jabs.h5").read_bytes())
    with h5py.File(path, "a") as file:
        del file[f"poseest/{name}"]
        if data is not None:
            file[f"poseest/{name}"] = data
    refused(path, word)


FRAME = "processing/behavior/PoseTraining/training_frames/frame_0"


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda file: file.__delitem__("processing/behavior/PoseTraining"), "PoseTraining"),
        (lambda file: file.__delitem__("processing/behavior/Skeletons"), "skeleton"),
        (lambda file: file.__delitem__(f"{FRAME}/source_video"), "frame of a video"),
        (lambda file: file[FRAME].attrs.__delitem__("source_video_frame_index"), "frame of a video"),
        (lambda file: file.__delitem__(f"{FRAME}/skeleton_instances/instance_0/node_locations"), "node_locations"),
        (lambda file: file.__delitem__(f"{FRAME}/skeleton_instances/instance_0/animal"), "skeleton"),
        (lambda file: file[f"{FRAME}/skeleton_instances/instance_0"].move("node_visibility", "node_locations2"), ""),
    ],
)
def test_nwb_of_another_layout(whole, tmp_path, spoil, word):
    path = tmp_path / "a.nwb"
    path.write_bytes((whole / "a.nwb").read_bytes())
    with h5py.File(path, "a") as file:
        spoil(file)
    if word:
        refused(path, word)
    else:
        with suppress(InputError):
            collect(path, "poses")


def test_hdf5_that_holds_no_poses(tmp_path):
    for suffix in (".h5", ".slp", ".nwb"):
        path = tmp_path / f"a{suffix}"
        h5py.File(path, "w").close()
        refused(path)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in "ab":
            file.create_group(name).attrs["pandas_type"] = "frame"
    refused(tmp_path / "a.h5", "2 tables")
