"""Poses of other tools: every file holds what sleap-io finds in it, and what was written."""

import warnings

import h5py
import numpy as np
import pose_formats as formats
import pytest
import sleap_io as sio
from clips import moving, write_video
from pose_formats import assert_same, read
from sleap_io.io.dlc import load_dlc

from karat.errors import InputError
from karat.sources.pairing import collect
from karat.sources.pose_files import expand
from karat.sources.poses import make_poses


@pytest.mark.parametrize("preset", ["matlab", "standard"])
@pytest.mark.parametrize("by_hand", [True, False])
def test_analyses_by_sleap(tmp_path, preset, by_hand):
    own = formats.poses() if by_hand else formats.moved(formats.poses())
    sio.save_analysis_h5(formats.labels(own), str(tmp_path / "a.h5"), preset=preset)
    (found,) = read(tmp_path / "a.h5")
    assert_same(found, own)
    assert found.name == "clips/a.mp4"
    theirs = sio.load_analysis_h5(str(tmp_path / "a.h5"), video=sio.Video("x.mp4", open_backend=False))
    np.testing.assert_array_equal(found.points, [one.numpy() for frame in theirs for one in frame])


def test_analyses_that_do_not_say_what_their_axes_are(tmp_path):
    own = formats.moved(formats.poses())
    sio.save_analysis_h5(formats.labels(own), str(tmp_path / "a.h5"))
    with h5py.File(tmp_path / "a.h5", "a") as file:
        for name in file:
            file[name].attrs.pop("dims", None)
    assert_same(read(tmp_path / "a.h5")[0], own)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        for name in ("point_scores", "instance_scores", "tracking_scores"):
            del file[name]
    (found,) = read(tmp_path / "a.h5")
    assert_same(found, own, but=("score", "confidence", "user"))
    assert found.user.all()


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_jabs(tmp_path, version):
    own = formats.moved(formats.poses())
    if version == 2:
        own = own.take(np.flatnonzero(own.track == 0))
    path = tmp_path / f"mouse_pose_est_v{version}.h5"
    formats.write_jabs(path, own, version)
    (found,) = read(path)
    assert_same(found, own, but=("track",))
    assert found.name == "mouse.avi"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sio.load_jabs(str(path))
    np.testing.assert_array_equal(found.points, [one.numpy() for frame in theirs for one in frame])
    np.testing.assert_array_equal(found.score, [one.score for frame in theirs for one in frame])


def test_training_data_in_nwb(tmp_path):
    write_video(tmp_path / "a.mp4", moving(0, 4))
    write_video(tmp_path / "b.mp4", moving(1, 4))
    videos = [sio.load_video(str(tmp_path / name)) for name in ("a.mp4", "b.mp4")]
    own = [formats.poses(seed) for seed in (0, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sio.save_nwb(formats.labels(*own, open_videos=videos), str(tmp_path / "x.nwb"))
        theirs = sio.load_nwb(str(tmp_path / "x.nwb"))
    for one, other, video in zip(read(tmp_path / "x.nwb"), own, theirs.videos, strict=True):
        assert_same(one, other, but=("track",))
        points = {frame.frame_idx: [i.numpy() for i in frame] for frame in theirs if frame.video is video}
        np.testing.assert_array_equal(one.points, [p for number in sorted(points) for p in points[number]])
    assert list(expand(tmp_path / "x.nwb")) == ["a", "b"]
    formats.write_nwb(tmp_path / "y.nwb", *own)
    for one, other in zip(read(tmp_path / "y.nwb"), own, strict=True):
        assert_same(one, other, but=("track",))


def test_ten_instances_come_before_the_eleventh(tmp_path):
    """HDF5 lists names by their letters."""
    points = np.arange(24.0).reshape(12, 1, 2)
    own = make_poses(points, np.zeros(12, int), nodes=("x",), name="a.mp4")
    formats.write_nwb(tmp_path / "a.nwb", own)
    np.testing.assert_array_equal(read(tmp_path / "a.nwb")[0].points, points)


def test_labelstudio_and_alphatracker(tmp_path):
    own = formats.poses()
    formats.write_labelstudio(tmp_path / "a.json", own)
    (found,) = read(tmp_path / "a.json")
    order = [own.nodes.index(node) for node in found.nodes]
    assert found.nodes == tuple(sorted(own.nodes))
    np.testing.assert_allclose(found.points, own.points[:, order], rtol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sio.load_labelstudio(str(tmp_path / "a.json"))
        mine = [theirs.skeletons[0].node_names.index(node) for node in found.nodes]
    np.testing.assert_array_equal(found.points, [one.numpy()[mine] for frame in theirs for one in frame])

    whole = make_poses(np.nan_to_num(own.points), own.frame, nodes=own.nodes)
    formats.write_alphatracker(tmp_path / "b.json", whole)
    (found,) = read(tmp_path / "b.json")
    assert_same(found, whole, but=("nodes",))
    assert found.nodes == tuple(str(i + 1) for i in range(12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sio.load_alphatracker(str(tmp_path / "b.json"))
    np.testing.assert_array_equal(found.points, [one.numpy() for frame in theirs for one in frame])


@pytest.mark.parametrize("name", ["sleap", "instances"])
def test_csv_as_sleap_exports_it(tmp_path, name):
    own = formats.moved(formats.poses())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sio.save_csv(formats.labels(own), str(tmp_path / "a.csv"), format=name)
    (found,) = read(tmp_path / "a.csv")
    order = [found.nodes.index(node) for node in own.nodes]
    np.testing.assert_array_equal(found.points[:, order], own.points)
    assert_same(found, own, but=("points", "confidence", "nodes"))


def test_csv_of_several_videos(tmp_path):
    own = [make_poses(**{**vars(formats.moved(formats.poses(i))), "name": f"{i}.mp4"}) for i in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sio.save_csv(formats.labels(*own), str(tmp_path / "a.csv"), format="instances")
    for one, other in zip(read(tmp_path / "a.csv"), own, strict=True):
        assert_same(one, other, but=("points", "confidence", "nodes"))


SPOTS = """LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,FRAME
Label,Spot ID,Track ID,Quality,X,Y,Z,Frame
Label,Spot ID,Track ID,Quality,X,Y,Z,Frame
,,,(quality),(pixel),(pixel),(pixel),
ID1,1,0,0.5,10.5,20.25,0,0
ID2,2,,0.25,30,40,0,0
ID3,3,0,0.75,11,21,0,1
"""


def test_spots_of_trackmate(tmp_path):
    (tmp_path / "clip_spots.csv").write_text(SPOTS)
    (found,) = read(tmp_path / "clip_spots.csv")
    assert found.points[:, 0].tolist() == [[10.5, 20.25], [30, 40], [11, 21]]
    assert found.frame.tolist() == [0, 0, 1]
    assert found.score.tolist() == [0.5, 0.25, 0.75]
    assert found.track.tolist() == [0, -1, 0]
    assert list(expand(tmp_path / "clip_spots.csv")) == ["clip"]
    (tmp_path / "clip_spots.csv").write_text(SPOTS.replace("(pixel)", "(micron)"))
    with pytest.raises(InputError, match="micron"):
        read(tmp_path / "clip_spots.csv")


@pytest.mark.parametrize("by_hand", [True, False])
def test_deeplabcut(tmp_path, by_hand):
    own = formats.poses() if by_hand else formats.moved(formats.poses())
    formats.write_dlc_csv(tmp_path / "a.csv", own)
    formats.write_dlc_hdf5(tmp_path / "a.h5", own)
    for path in (tmp_path / "a.csv", tmp_path / "a.h5"):
        (found,) = read(path)
        assert_same(found, own)
    if not by_hand:
        formats.write_dlc_hdf5(tmp_path / "b.h5", own, as_table=True)
        assert_same(read(tmp_path / "b.h5")[0], own)


def test_deeplabcut_as_sleap_io_reads_it(tmp_path):
    own = formats.poses()
    formats.write_dlc_csv(tmp_path / "CollectedData.csv", own)
    for number in range(formats.FRAMES):
        picture = tmp_path / "labeled-data" / "a" / f"img{number:03d}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = load_dlc(tmp_path / "CollectedData.csv", config=False)
    (found,) = read(tmp_path / "CollectedData.csv")
    assert set(theirs.skeletons[0].node_names) == set(found.nodes)
    order = [found.nodes.index(node) for node in theirs.skeletons[0].node_names]
    np.testing.assert_array_equal(found.points[:, order], [one.numpy() for frame in theirs for one in frame])
    assert found.name == "labeled-data/a"


ONE_ANIMAL = """scorer,DLC_resnet50,DLC_resnet50,DLC_resnet50,DLC_resnet50,DLC_resnet50,DLC_resnet50
bodyparts,nose,nose,nose,tail,tail,tail
coords,x,y,likelihood,x,y,likelihood
0,1.5,2.5,0.5,3,4,0.25
2,,,,5,6,1.0
"""


def test_one_animal_of_deeplabcut(tmp_path):
    path = tmp_path / "clipDLC_resnet50.csv"
    path.write_text(ONE_ANIMAL)
    (found,) = read(path)
    assert found.nodes == ("nose", "tail")
    np.testing.assert_array_equal(found.points, [[[1.5, 2.5], [3, 4]], [[np.nan] * 2, [5, 6]]])
    assert found.score.tolist() == [0.375, 1]
    assert found.frame.tolist() == found.labelled.tolist() == [0, 2]
    assert found.track.tolist() == [-1, -1]
    assert not found.user.any()
    assert list(expand(path)) == ["clip"]


def test_labelled_pictures_of_several_videos_and_of_three_levels(tmp_path):
    """Newer versions of DeepLabCut split the path of a picture into columns."""
    rows = ["scorer,,,me,me", "bodyparts,,,nose,nose", "coords,,,x,y"]
    rows += ["labeled-data,v1,img05.png,1,2", "labeled-data,v2,img7.png,3,4", "labeled-data,v2,img8.png,,"]
    (tmp_path / "CollectedData_me.csv").write_text("\n".join(rows) + "\n")
    one, two = read(tmp_path / "CollectedData_me.csv")
    assert (one.name, two.name) == ("labeled-data/v1", "labeled-data/v2")
    assert (one.frame.tolist(), two.frame.tolist(), two.labelled.tolist()) == ([5], [7], [7, 8])
    assert one.user.all()


def test_a_folder_of_deeplabcut_has_everything_twice(tmp_path):
    for name in ("v1", "v2"):
        (tmp_path / name).mkdir()
        formats.write_dlc_csv(tmp_path / name / "CollectedData.csv", formats.poses())
        formats.write_dlc_hdf5(tmp_path / name / "CollectedData.h5", formats.poses())
    assert list(collect(tmp_path, "poses")) == ["v1/CollectedData", "v2/CollectedData"]
    formats.write_dlc_hdf5(tmp_path / "v1" / "CollectedData.h5", formats.poses(5))
    with pytest.raises(InputError, match="has it too"):
        collect(tmp_path, "poses")


# --- npz


def test_npz_of_nothing_and_of_one_video(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, points=np.zeros((0, 3, 2)), frame=np.zeros(0, int), name="clip.mp4", labelled=[4, 2])
    (own,) = read(path)
    assert (len(own), own.labelled.tolist(), own.name, own.nodes) == (0, [2, 4], "clip.mp4", ())
    np.savez(path, points=np.zeros((0, 3, 2)), frame=np.zeros(0, int), video=np.zeros(0, int))
    assert [len(one) for one in read(path)] == [0]


def test_npz_of_integers_and_of_fortran_order(tmp_path):
    points = np.arange(12).reshape(2, 3, 2)
    np.savez_compressed(tmp_path / "a.npz", points=np.asfortranarray(points), frame=np.array([1.0, 0.0]), track=[3, 4])
    (own,) = read(tmp_path / "a.npz")
    np.testing.assert_array_equal(own.points, points)
    assert own.frame.tolist() == [1, 0]
    assert own.track.tolist() == [3, 4]


def test_npz_videos_by_number(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        points=np.arange(6.0).reshape(3, 1, 2),
        frame=[0, 0, 1],
        video=[2, 0, 2],
        labelled=[0, 5, 1],
        labelled_video=[0, 1, 2],
    )
    found = {name: source.open() for name, source in expand(tmp_path / "a.npz").items()}
    assert {name: one.labelled.tolist() for name, one in found.items()} == {"0000": [0], "0001": [5], "0002": [0, 1]}
    assert found["0002"].points[:, 0, 0].tolist() == [0, 4]
