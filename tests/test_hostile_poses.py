"""Files of poses are hostile: each is refused with one InputError of one line, in little memory."""

import json
import zipfile

import numpy as np
import pose_formats as formats
import pytest
import sleap_io as sio
from clips import called
from clips import refused as refused_by_command
from pose_formats import MIB, Bomb, refused

from karat.errors import InputError
from karat.sources.pairing import collect
from karat.sources.pose_files import POSES

# --- any file


@pytest.mark.parametrize("suffix", sorted(POSES.suffixes))
@pytest.mark.parametrize(
    "content", [b"", b"\0", b"garbage" * 50, b"\x80\x04N.", b"\x89HDF\r\n\x1a\n" + bytes(100), b"[" * 100_000]
)
def test_empty_files_and_garbage_of_every_suffix(tmp_path, suffix, content):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    message = refused(path)
    assert content or "empty" in message or "zip" in message


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file of every format."""
    return formats.write_all(tmp_path_factory.mktemp("whole"))


NAMES = ("a.slp", "analysis.h5", "a.nwb", "dlc.h5", "table.h5", "jabs.h5", "coco.json", "tasks.json", "a.npz")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.98])
def test_truncated_files(whole, tmp_path, name, share):
    data = (whole / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * share)])
    refused(tmp_path / name)


@pytest.mark.parametrize("name", [*NAMES, "dlc.csv"])
def test_damaged_files_raise_nothing_else(whole, tmp_path, name):
    rng = np.random.default_rng(5)
    for _ in range(15):
        data = bytearray((whole / name).read_bytes())
        for place in rng.integers(0, len(data), 20):
            data[place] = rng.integers(256)
        (tmp_path / name).write_bytes(data)
        try:
            for source in collect(tmp_path / name, "poses").values():
                source.digest()
        except InputError as error:
            text = str(error)
            assert text.isprintable(), text


@pytest.mark.parametrize("name", ["..slp", "\u202e雪\x1b[31m\n.slp", "a b;$(x).json", "-.csv", "\udc80.npz"])
def test_names_that_would_break_a_line(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"x")
    refused(path)
    refused_by_command(called("run", "pose", "--truth", path, "--pred", path))


def test_names_inside_of_files(tmp_path):
    """Videos and nodes called by paths, controls and other scripts are told as they can be, and lead nowhere."""
    names = ("../../etc/passwd", "..", "/", "C:\\x\\..\\雪\n.mp4", "\x1b[31m.mp4", "http://127.0.0.1:9/a.mp4", "")
    nodes = ("..", "a/b", "雪", "\x1b[31m", "a\nb", "@", "n" * 500)
    own = [
        formats.make_poses(
            np.ones((1, 7, 2)), [0], nodes=nodes, name=name, user=[False], score=[0.5], confidence=np.ones((1, 7))
        )
        for name in names
    ]
    sio.save_slp(formats.labels(*own), str(tmp_path / "a.slp"))
    done = called("run", "pose", "--truth", tmp_path / "a.slp", "--pred", tmp_path / "a.slp", "--out", tmp_path / "run")
    assert done.returncode in (2, 3), done.stderr.decode()
    assert all(line.isprintable() for line in done.stderr.decode().splitlines())
    assert sorted(p.name for p in tmp_path.iterdir()) in (["a.slp"], ["a.slp", "run"])


# --- npz


def savez(path, **arrays):
    given = {"points": np.ones((2, 3, 2)), "frame": np.arange(2), **arrays}
    np.savez(path, **{name: array for name, array in given.items() if array is not None})
    return path


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"points": None}, "no points"),
        ({"frame": None}, "no frame"),
        ({"points": np.ones((2, 3))}, "shape"),
        ({"points": np.ones((2, 3, 4))}, "shape"),
        ({"points": np.ones((3, 3, 2))}, "frame"),
        ({"points": np.full((2, 3, 2), "a")}, "str"),
        ({"points": np.ones((2, 3, 2), complex)}, "complex"),
        ({"points": np.zeros((2, 3, 2), "M8[s]")}, "datetime"),
        ({"points": np.zeros((2, 3, 2), [("x", "f8")])}, "void"),
        ({"frame": [0.5, 1]}, "whole"),
        ({"frame": [np.nan, 1]}, "whole"),
        ({"frame": [-1, 1]}, "frame -1"),
        ({"frame": [1 << 40, 1]}, "whole"),
        ({"frame": np.array([1 << 63, 1], np.uint64)}, "whole"),
        ({"frame": [[0, 1]]}, "shape"),
        ({"labelled": [-4]}, "frame -4"),
        ({"labelled": [0.5]}, "whole"),
        ({"score": [1, 2, 3]}, "score"),
        ({"score": ["a", "b"]}, "numbers"),
        ({"track": [0.5, 1]}, "whole"),
        ({"user": [2, 0]}, "user"),
        ({"box": np.ones((2, 3))}, "box"),
        ({"confidence": np.ones((2, 2))}, "confidence"),
        ({"nodes": ["a", "b"]}, "names"),
        ({"nodes": ["a", "b", "b"]}, "names"),
        ({"nodes": np.arange(3)}, "text"),
        ({"name": 3}, "text"),
        ({"anything": [1]}, "anything"),
        ({"frame_idx": [0, 1]}, "twice"),
        ({"video": [0]}, "video"),
        ({"video": [0, -1]}, "video"),
        ({"video": [0, 1 << 40]}, "video"),
        ({"video": [0.5, 1]}, "fractions"),
        ({"video": [0, 1], "labelled": [0, 1]}, "labelled_video"),
        ({"video": [0, 1], "labelled_video": [0]}, "labelled_video"),
        ({"video": [0, 1], "name": "a"}, "name"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_poses(tmp_path, arrays, word):
    assert word in refused(savez(tmp_path / "a.npz", **arrays))


@pytest.mark.parametrize("name", ["points", "frame", "nodes"])
def test_arrays_of_objects_are_not_unpickled(tmp_path, name):
    savez(tmp_path / "a.npz", **{name: np.array([Bomb(tmp_path / "made")], object)})
    refused(tmp_path / "a.npz", "Python objects")
    assert not (tmp_path / "made").exists()


def test_zip_bombs(tmp_path):
    size = 72 * MIB
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size // 2}, 1, 2), }}".encode().ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("points.npy", b"\x93NUMPY\x01\x00v\x00" + header + bytes(size))
        archive.writestr("frame.npy", b"")
    refused(tmp_path / "a.npz", "expands to", memory=MIB)


@pytest.mark.parametrize(
    "shape", ["(10**9, 10**9, 2)", "(1 << 62, 1, 2)", "(-1, 3, 2)", "(4000000000, 3, 2)", "3", "(True, 3, 2)"]
)
def test_forged_headers(tmp_path, shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("points.npy", b"\x93NUMPY\x01\x00v\x00" + text + bytes(48))
    refused(tmp_path / "a.npz")


# --- JSON


TRUTH = {
    "images": [{"id": 1}, {"id": 2}],
    "categories": [{"id": 1, "name": "mouse", "keypoints": ["nose", "tail"]}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "keypoints": [1, 2, 2, 3, 4, 2]}],
}
FOUND = [{"image_id": 1, "category_id": 1, "keypoints": [1, 2, 1, 3, 4, 1], "score": 0.5}]


def truth(**annotation):
    return json.dumps({**TRUTH, "annotations": [{**TRUTH["annotations"][0], **annotation}]})


def found(**detection):
    return json.dumps([{**FOUND[0], **detection}])


HUGE = 10**400


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{}", "no COCO truth"),
        ("null", "no COCO truth"),
        ("3", "no COCO truth"),
        ('"images annotations"', "no COCO truth"),
        ("[1, 2]", "no COCO truth"),
        ("[[]]", "no COCO truth"),
        ('[{"image_id": 1}, 2]', "list of objects"),
        ('{"images": [], "images": [], "annotations": []}', "repeated"),
        ('{"images": NaN, "annotations": []}', "NaN is not JSON"),
        ('{"images": [], "annotations": [], "x": Infinity}', "Infinity is not JSON"),
        ('{"images": {}, "annotations": []}', "list of objects"),
        ('{"images": [], "annotations": {}}', "list of objects"),
        ('{"images": [], "annotations": [], "categories": [3]}', "list of objects"),
        ('{"images": [{"id": 1}, {"id": 1}], "annotations": []}', "twice"),
        ('{"images": [{}], "annotations": []}', "nothing as id"),
        ('{"images": [{"id": "1"}], "annotations": []}', "id"),
        ('{"images": [{"id": true}], "annotations": []}', "True as id"),
        ('{"images": [{"id": 1.5}], "annotations": []}', "1.5 as id"),
        (json.dumps({**TRUTH, "images": [{"id": HUGE}]}), "beyond 64 bits"),
        ("[" + "1" * 5000 + "]", "ValueError"),
        ("[" * 100_000 + "]" * 100_000, "RecursionError"),
        ('{"a":' * 100_000, "RecursionError"),
        (json.dumps({**TRUTH, "categories": TRUTH["categories"] * 2}), "twice"),
        (json.dumps({**TRUTH, "categories": [{"id": 1, "keypoints": "nose"}]}), "list of names"),
        (json.dumps({**TRUTH, "categories": [{"id": 1, "keypoints": [1, 2]}]}), "list of names"),
        (json.dumps({**TRUTH, "categories": [{"id": 1, "keypoints": ["a", "a"]}]}), "names"),
        (json.dumps({**TRUTH, "annotations": TRUTH["annotations"] * 2}), "two annotations of id 1"),
        (truth(id=[1]), "neither a number nor text"),
        (truth(image_id=3), "has 3 as image_id"),
        (truth(image_id=None), "nothing as image_id"),
        (truth(category_id=7), "has 7 as category_id"),
        (truth(category_id=HUGE), "beyond 64 bits"),
        (truth(keypoints=[1, 2, 2]), "6 numbers"),
        (truth(keypoints=[1, 2, 2, 3, 4, 2, 5]), "6 numbers"),
        (truth(keypoints="123456"), "6 numbers"),
        (truth(keypoints={"x": 1}), "6 numbers"),
        (truth(keypoints=[1, 2, 2, 3, 4, "2"]), "'2' as keypoints"),
        (truth(keypoints=[1, 2, 2, 3, 4, None]), "nothing as keypoints"),
        (truth(keypoints=[1, 2, 2, 3, 4, True]), "True as keypoints"),
        (truth(keypoints=[1, 2, 2, 3, HUGE, 2]), "beyond 64 bits"),
        (truth(keypoints=[1, 2, 2, 3, [4], 2]), "a list of 1 entries"),
        (truth(keypoints=[1, 2, 2, 3, 4, 2]).replace("3,", "1e999,"), "beyond 64 bits"),
        (truth(bbox=[1, 2, 3]), "x, y, width, height"),
        (truth(bbox="abcd"), "x, y, width, height"),
        (truth(bbox=[1, 2, 3, "4"]), "'4' as bbox"),
        (truth(area="1"), "'1' as area"),
        (truth(area=HUGE), "beyond 64 bits"),
        (truth(track_id=1.5), "1.5 as track_id"),
        (truth(iscrowd="0"), "'0' as iscrowd"),
        (truth(score="0"), "'0' as score"),
        (found(image_id=-1), "up to"),
        (found(image_id=1 << 40), "up to"),
        (found(keypoints=[1, 2]), "numbers"),
        (found(keypoints=5), "numbers"),
        (found(score=[1]), "as score"),
        (found(category_id=None), "nothing as category_id"),
        (json.dumps([FOUND[0], {**FOUND[0], "category_id": 2}]), "2 categories"),
        (json.dumps([FOUND[0], {**FOUND[0], "keypoints": [1, 2, 3]}]), "6 numbers"),
    ],
)  # fmt: skip
def test_json_that_is_no_coco(tmp_path, text, word):
    path = tmp_path / "a.json"
    path.write_text(text)
    refused(path, word)


def test_json_that_is_no_text(tmp_path):
    path = tmp_path / "a.json"
    for data in (b"\xff\xfe[\0]\0", b"[\xff]", b"\xef\xbb\xbf[]", b"[]\0", b"[] []"):
        path.write_bytes(data)
        refused(path)


def test_detections_that_their_truth_does_not_know(tmp_path):
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    for text, word in ((found(image_id=9), "9 as image_id"), (found(category_id=4), "4 as category_id")):
        (tmp_path / "pred.json").write_text(text)
        done = called("run", "pose", "--truth", tmp_path / "truth.json", "--pred", tmp_path / "pred.json")
        assert done.returncode == 3, done.stderr.decode()
        assert word in done.stderr.decode()


def task(**changes):
    point = {"id": "a", "type": "keypointlabels", "value": {"x": 1, "y": 2, "keypointlabels": ["nose"]}}
    point |= {"original_width": 10, "original_height": 10}
    video = {"filename": "a.mp4", "frame_idx": 0}
    return {"meta": {"video": video}, "annotations": [{"result": [{**point, **changes.pop("point", {})}]}], **changes}


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ([task(meta=None)], "meta"),
        ([task(meta={"video": 3})], "meta.video"),
        ([task(meta={"video": {"filename": "a"}})], "frame_idx"),
        ([task(meta={"video": {"frame_idx": -1}})], "frame_idx"),
        ([task(meta={"video": {"frame_idx": 1.5}})], "frame_idx"),
        ([task(meta={"video": {"frame_idx": 1 << 40}})], "frame"),
        ([task(annotations=3)], "annotations"),
        ([task(annotations=[3])], "annotations"),
        ([task(annotations=[{}])], "annotations"),
        ([task(annotations=[{"result": {}}])], "annotations"),
        ([task(point={"value": 3})], "value"),
        ([task(point={"value": {"x": "1", "y": 2, "keypointlabels": ["nose"]}})], "as x"),
        ([task(point={"value": {"x": 1e300, "y": 2, "keypointlabels": ["nose"]}})], "as x"),
        ([task(point={"original_width": None})], "original_width"),
        ([task(point={"value": {"x": 1, "y": 2, "keypointlabels": []}})], "one label"),
        ([task(point={"value": {"x": 1, "y": 2, "keypointlabels": "nose"}})], "one label"),
        ([task(annotations=[{"result": task()["annotations"][0]["result"] * 2}])], "one id"),
        ([{"annotations": [], "class": "image", "filename": 3}, {"class": "image"}], "no COCO truth"),
        ([{"annotations": 3, "class": "image"}], "annotations"),
        ([{"annotations": [{"class": "Face"}, {"class": "point", "x": 1}], "class": "image"}], "as y"),
        ([{"annotations": [{"class": "Face"}, {"class": "point", "x": "1", "y": 2}], "class": "image"}], "as x"),
    ],
)
def test_json_of_others(tmp_path, document, word):
    (tmp_path / "a.json").write_text(json.dumps(document))
    refused(tmp_path / "a.json", word)


# --- CSV


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("frame_idx,nose.x\n0,1\n", "columns"),
        ("frame_idx,nose.y\n0,1\n", "column"),
        ("nose.x,nose.y\n0,1\n", "columns"),
        ("frame_idx,nose.x,nose.y,nose.x\n0,1,2,3\n", "columns"),
        ("frame_idx,nose.x,nose.y,other\n0,1,2,3\n", "'other'"),
        ("frame_idx,inst0.track,inst0.nose.x,inst0.nose.y\n0,,1,2\n", "inst0.track"),
        ("frame_idx,node,x,y\n0,nose,1,2\n", "'node'"),
        ("frame_idx,nose.x,nose.y\n0,1\n", "ArrowInvalid"),
        ("frame_idx,nose.x,nose.y\n0,1,a\n", "ArrowInvalid"),
        ("frame_idx,nose.x,nose.y\n,1,2\n", "whole"),
        ("frame_idx,nose.x,nose.y\n0.5,1,2\n", "whole"),
        ("frame_idx,nose.x,nose.y\n-1,1,2\n", "frame -1"),
        ("frame_idx,nose.x,nose.y\n1e30,1,2\n", "whole"),
        ('frame_idx,nose.x,"nose.y\n0,1,2\n', ""),
        ("\0,\0\n\0,\0\n", ""),
        ("scorer,a,a\n", "headers"),
        ("scorer,a,a\nbodyparts,n,n\n", "headers"),
        ("scorer,a,a\nbodyparts,n\ncoords,x,y\n", "unequal"),
        ("scorer,a,a\nbodyparts,n,n\ncoords,x,x\n0,1,2\n", "coordinates"),
        ("scorer,a,a\nbodyparts,n,n\ncoords,x,q\n0,1,2\n", "coordinates"),
        ("scorer,a,a\nbodyparts,n,n\ncoords,x,y\nimg,1,2\n", "number of a frame"),
        ("scorer,a,a\nbodyparts,n,n\ncoords,x,y\nimg99999999999,1,2\n", "number of a frame"),
        ("scorer,a,a\nbodyparts,n,n\ncoords,x,y\n0,1,inf\n", "infinite"),
        ("scorer,a,a\nbodyparts,n,n\ncoords,x,y\n0,1,a\n", "ArrowInvalid"),
        ("LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,FRAME\n", "read"),
        ("LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,T\n,,,,,,\n,,,,,,\n,,,,,,\n1,1,1,1,1,1,1\n", "FRAME"),
    ],
)
def test_csv_that_holds_no_poses(tmp_path, text, word):
    (tmp_path / "a.csv").write_text(text)
    refused(tmp_path / "a.csv", word)


def test_a_table_of_animals_and_parts_that_hardly_meet(tmp_path):
    """A column for each of 3000 animals, which have one body part of 3000."""
    columns = [(f"a{i}", f"n{i}", axis) for i in range(3000) for axis in "xy"]
    header = [
        ",".join([name, *cells])
        for name, cells in (
            ("scorer", ["me"] * len(columns)),
            ("individuals", [one[0] for one in columns]),
            ("bodyparts", [one[1] for one in columns]),
            ("coords", [one[2] for one in columns]),
        )
    ]
    (tmp_path / "a.csv").write_text("\n".join(header) + "\n")
    refused(tmp_path / "a.csv", "3000 animals")


def test_a_broken_file_costs_one_sample(whole, tmp_path):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        for name in ("x.slp", "y.slp"):
            (tmp_path / side / name).write_bytes((whole / "a.slp").read_bytes())
    (tmp_path / "pred" / "y.slp").write_bytes(b"broken")
    done = called(
        "run", "pose", "--truth", tmp_path / "truth", "--pred", tmp_path / "pred", "--set", "matches.default_score=1"
    )
    text = done.stderr.decode()
    assert done.returncode == 3, text
    assert "1 of 2 samples failed" in text
    assert "Traceback" not in text
