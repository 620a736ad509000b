"""Poses: every file holds what sleap-io finds in it, and the same poses give the same scores from every format."""

import json
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pose_formats as formats
import pytest
import sleap_io as sio
from clips import moving, write_video
from pose_formats import assert_same, read

import karat
from karat.errors import InputError
from karat.sources.pairing import collect
from karat.sources.pose_files import POSES, expand
from karat.sources.poses import make_poses

SHARED = Path(__file__).parents[2] / "shared"
SLP = sorted([*(SHARED / "data" / "pose").glob("*.slp"), *(SHARED / "golden" / "pose").glob("*/*.slp")])
GOLDEN = sorted(path.parent for path in (SHARED / "golden" / "pose").glob("*/gt.slp"))


def by_objects(labels):
    """What sleap-io's own objects say, of each video."""
    found = []
    for video in labels.videos:
        frames = [frame for frame in labels if frame.video is video]
        every = [(frame.frame_idx, one) for frame in frames for one in frame.instances]
        predicted = [isinstance(one, sio.PredictedInstance) for _, one in every]
        shape = (len(every), len(labels.skeletons[0].nodes))
        unsure = np.full(shape, np.nan)
        for i, (_, one) in enumerate(every):
            if predicted[i]:
                unsure[i] = one.points["score"]
        found.append(
            make_poses(
                np.array([one.numpy() for _, one in every]).reshape(*shape, 2),
                np.array([number for number, _ in every], int),
                nodes=labels.skeletons[0].node_names,
                score=np.array(
                    [one.score if is_it else np.nan for (_, one), is_it in zip(every, predicted, strict=True)]
                ),
                confidence=unsure,
                track=np.array([-1 if one.track is None else labels.tracks.index(one.track) for _, one in every], int),
                user=~np.array(predicted, bool),
                labelled=[frame.frame_idx for frame in frames],
                name=str(video.filename),
            )
        )
    return found


def assert_as_objects(path):
    labels = formats.by_sleap_io(path)
    own, theirs = read(path), by_objects(labels)
    assert len(own) == len(theirs)
    for one, other in zip(own, theirs, strict=True):
        assert_same(one, other)
    return own


# --- SLEAP's own files


@pytest.mark.parametrize("path", SLP, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_shared_slp_files_as_objects(path):
    assert sum(map(len, assert_as_objects(path)))


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
@pytest.mark.parametrize("side", ["gt", "pr"])
def test_golden_slp_files_hold_the_golden_arrays(folder, side):
    with np.load(folder / "inputs.npz") as file:
        given = {name.removeprefix(f"{side}_"): file[name] for name in file.files if name.startswith(side)}
    frame, listed = given.get("frame_idx", given.get("frame")), given["labeled_frame_idx"]
    video, its_video = given.get("video_idx", 0 * frame), given.get("labeled_video_idx", 0 * listed)
    for number, own in enumerate(read(folder / {"gt": "gt.slp", "pr": "pred.slp"}[side])):
        here = video == number
        np.testing.assert_array_equal(own.points, given["points"][here])
        np.testing.assert_array_equal(own.frame, frame[here])
        np.testing.assert_array_equal(own.labelled, listed[its_video == number])
        if side == "pr":
            np.testing.assert_array_equal(own.score, given["score"][here].astype(np.float32))


def test_the_arrays_of_golden_cases_under_their_own_names(tmp_path):
    """frame_idx, video_idx, labeled_frame_idx, ...: as the reference's tools call them."""
    folder = SHARED / "golden" / "pose" / "synth2videos_2x40"
    given = np.load(folder / "inputs.npz")
    for side in ("gt", "pr"):
        arrays = {name[3:]: given[name] for name in given.files if name.startswith(side)}
        np.savez(tmp_path / f"{side}.npz", **arrays)
    files = {side: folder / name for side, name in (("gt", "gt.slp"), ("pr", "pred.slp"))}
    for side, path in files.items():
        for one, other in zip(read(tmp_path / f"{side}.npz"), read(path), strict=True):
            assert_same(one, other, but=("nodes", "track", "user", "score", "confidence"))
    scores = [
        karat.evaluate("pose", truth=truth, pred=pred, workers=1).plain()["scores"]["oks_voc.mAP"]["value"]
        for truth, pred in ((tmp_path / "gt.npz", tmp_path / "pr.npz"), (files["gt"], files["pr"]))
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)  # .slp keeps scores in single precision


def mixed():
    """Two videos of people's and models' instances, some of no track; frames without any; points that are hidden."""
    skeleton = sio.Skeleton(["nose", "tail", "ear"])
    tracks = [sio.Track("one"), sio.Track("two")]
    videos = [sio.Video(name, open_backend=False) for name in ("a/clip.mp4", "b/clip.mp4", "empty.mp4")]
    rng = np.random.default_rng(3)
    frames = []
    for video in videos[:2]:
        for number in (7, 0, 3):
            points = rng.uniform(0, 100, (3, 3, 2))
            points[0, 1] = np.nan
            hidden = sio.Instance.from_numpy(points[1], skeleton=skeleton)
            hidden.points["visible"][2] = False
            guess = sio.PredictedInstance.from_numpy(
                points[2], skeleton=skeleton, score=0.25, point_scores=rng.random(3), track=tracks[0]
            )
            known = sio.Instance.from_numpy(points[0], skeleton=skeleton, track=tracks[1], from_predicted=guess)
            frames.append(sio.LabeledFrame(video, number, [known, guess, hidden]))
        frames.append(sio.LabeledFrame(video, 5, [], is_negative=True))
        frames.append(sio.LabeledFrame(video, 9, []))
        lost = sio.PredictedInstance.from_numpy(np.full((3, 2), np.nan), skeleton=skeleton, score=0.5)
        frames.append(sio.LabeledFrame(video, 11, [lost]))
    return sio.Labels(frames, videos=videos, skeletons=[skeleton], tracks=tracks)


def test_videos_tracks_people_models_empty_frames_and_hidden_points(tmp_path):
    path = tmp_path / "mixed.slp"
    sio.save_slp(mixed(), str(path))
    first, second, empty = assert_as_objects(path)
    assert list(expand(path)) == ["0_clip", "1_clip", "empty"]
    assert first.labelled.tolist() == [0, 3, 5, 7, 9, 11]
    assert first.user.sum() == 6
    assert np.isnan(first.points[2, 2]).all()
    assert np.isnan(first.score[first.user]).all()
    assert (len(empty), empty.length) == (0, 0)
    assert second.name == "b/clip.mp4"


def test_labels_in_memory_are_what_their_file_is(tmp_path):
    path = tmp_path / "mixed.slp"
    labels = mixed()
    sio.save_slp(labels, str(path))
    for given in (labels, sio.load_slp(str(path), lazy=True, open_videos=False)):
        held = collect(given, "poses")
        assert list(held) == ["0_clip", "1_clip", "empty"]
        for name, source in expand(path).items():
            assert_same(held[name].open(), source.open())
            assert held[name].digest() == source.digest()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_labels_in_memory_are_paired_by_their_videos(order):
    truth = [formats.poses(seed) for seed in (0, 1)]
    pred = [formats.moved(one) for one in truth]
    named = [
        [make_poses(**{**vars(one), "name": name}) for one, name in zip(some, ("x/a.mp4", "y/a.mp4"), strict=True)]
        for some in (truth, pred)
    ]
    run = karat.evaluate(
        "pose", truth=formats.labels(*named[0]), pred=formats.labels(*[named[1][i] for i in order]), workers=1
    )
    assert [len(run.samples), run.scores["n_pairs"].value] == [2, 24]


def test_embedded_pictures_are_not_read(tmp_path):
    write_video(tmp_path / "a.mp4", moving(0, 8))
    video = sio.load_video(str(tmp_path / "a.mp4"))
    own = formats.poses()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = formats.labels(own, open_videos=[video])
        labels.save(str(tmp_path / "a.pkg.slp"), embed="all", verbose=False)
    (tmp_path / "a.mp4").unlink()
    (found,) = read(tmp_path / "a.pkg.slp")
    assert_same(found, own, but=("score",))
    assert Path(found.name).name == "a.mp4"
    assert list(expand(tmp_path / "a.pkg.slp")) == ["a"]
    assert_as_objects(tmp_path / "a.pkg.slp")


def test_packages_number_their_videos_with_gaps(tmp_path):
    """Old ones refer to video 15 by the name of its group."""
    sio.save_slp(formats.labels(formats.poses(0), formats.moved(formats.poses(1))), str(tmp_path / "a.slp"))
    with h5py.File(tmp_path / "a.slp", "a") as file:
        entries = [json.loads(one) for one in file["videos_json"][()]]
        for entry, number in zip(entries, (3, 15), strict=True):
            entry["backend"] |= {"filename": ".", "dataset": f"video{number}/video"}
            entry.pop("filename", None)
            file.create_group(f"video{number}/source_video").attrs["json"] = json.dumps(
                {"backend": {"filename": f"original{number}.mp4"}}
            )
        del file["videos_json"]
        file["videos_json"] = [json.dumps(one) for one in entries]
        frames = file["frames"][()]
        frames["video"] = np.array([3, 15])[frames["video"]]
        file["frames"][...] = frames
    first, second = read(tmp_path / "a.slp")
    assert_same(first, formats.poses(0), but=("score",))
    assert_same(second, formats.moved(formats.poses(1)), but=("score", "confidence"))
    assert (first.name, second.name) == ("original3.mp4", "original15.mp4")


def test_files_of_before_pixels_had_centres(tmp_path):
    sio.save_slp(formats.labels(formats.poses()), str(tmp_path / "a.slp"))
    with h5py.File(tmp_path / "a.slp", "a") as file:
        file["metadata"].attrs["format_id"] = 1.0
        instances = file["instances"][()]
        del file["instances"]
        file["instances"] = instances[[name for name in instances.dtype.names if name != "tracking_score"]].copy()
    (own,) = assert_as_objects(tmp_path / "a.slp")
    np.testing.assert_array_equal(own.points, formats.poses().points - 0.5)


def test_tables_of_a_browser(tmp_path):
    """They are plain arrays of floats, with the names of their columns beside them."""
    sio.save_slp(formats.labels(formats.moved(formats.poses())), str(tmp_path / "a.slp"))
    with h5py.File(tmp_path / "a.slp", "a") as file:
        for name in ("frames", "instances", "points", "pred_points"):
            table = file[name][()]
            del file[name]
            columns = [table[key].astype(float) for key in table.dtype.names]
            file[name] = np.array(columns).T
            file[name].attrs["field_names"] = json.dumps(table.dtype.names)
    assert_same(read(tmp_path / "a.slp")[0], formats.moved(formats.poses()))


def test_nodes_are_paired_by_name(tmp_path):
    truth = formats.poses()
    pred = formats.moved(truth)
    order = np.random.default_rng(0).permutation(len(truth.nodes))
    turned = make_poses(
        pred.points[:, order],
        pred.frame,
        nodes=[truth.nodes[i] for i in order],
        score=pred.score,
        user=pred.user,
        confidence=pred.confidence[:, order],
        track=pred.track,
        name="a.mp4",
    )
    sio.save_slp(formats.labels(turned), str(tmp_path / "pred.slp"))
    assert scores(truth, tmp_path / "pred.slp") == scores(truth, pred)


def test_skeletons(tmp_path):
    """Equal ones are one; those that no instance is of say nothing; different ones are refused."""
    labels = formats.labels(formats.poses())
    twin, other = sio.Skeleton(list(formats.NODES)), sio.Skeleton(["x", "y"])
    labels.skeletons += [other, twin]
    labels[0].instances[0].skeleton = twin
    sio.save_slp(labels, str(tmp_path / "a.slp"))
    (own,) = read(tmp_path / "a.slp")
    assert_same(own, formats.poses())
    assert_same(collect(labels, "poses")["a"].open(), own)
    points = np.ones((2, 2))
    labels[0].instances.append(sio.Instance.from_numpy(points, skeleton=other))
    sio.save_slp(labels, str(tmp_path / "b.slp"))
    for value in (tmp_path / "b.slp", labels):
        with pytest.raises(InputError, match="2 skeletons"):
            collect(value, "poses")


# --- the same poses from every format

METRICS = [
    "oks",
    "oks_voc",
    "pck_voc",
    "pck",
    "distance",
    "visibility",
    "normalized_error",
    "pck_auc",
    "pose_counts",
    "frame_counts",
    "centroid",
]


def scores(truth, pred):
    """Every score of the suite but those of tracks, which not every format has."""
    found = karat.evaluate("pose", truth=truth, pred=pred, metrics=METRICS, workers=1).plain()["scores"]
    return {name: one["value"] for name, one in found.items()}


def write_slp(path, own):
    sio.save_slp(formats.labels(own), str(path))


def write_analysis(path, own):
    sio.save_analysis_h5(formats.labels(own), str(path))


def write_sleap_csv(path, own):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sio.save_csv(formats.labels(own), str(path))


TRUTHS = {
    "a.slp": write_slp,
    "a.h5": write_analysis,
    "dlc.h5": formats.write_dlc_hdf5,
    "a.nwb": formats.write_nwb,
    "a.csv": write_sleap_csv,
    "dlc.csv": formats.write_dlc_csv,
    "coco.json": formats.write_coco,
    "a.npz": formats.write_npz,
}
PREDICTIONS = {
    **{name: write for name, write in TRUTHS.items() if name != "a.nwb"},
    "table.h5": partial(formats.write_dlc_hdf5, as_table=True),
    "jabs.h5": formats.write_jabs,
}


def assert_equal(found, expected, name):
    """To the last bit, but where a format has nodes in an order of its own, in which their similarities are added."""
    assert found == (pytest.approx(expected, rel=1e-13) if name == "a.csv" else expected)


@pytest.fixture(scope="module")
def pair():
    truth = formats.poses()
    pred = formats.moved(truth)
    return truth, pred, scores(truth, pred)


@pytest.mark.parametrize("name", TRUTHS)
def test_a_truth_scores_the_same_from_every_format(tmp_path, pair, name):
    truth, pred, expected = pair
    TRUTHS[name](tmp_path / name, truth)
    assert expected["n_gt"] == 12
    assert_equal(scores(tmp_path / name, pred), expected, name)


@pytest.mark.parametrize("name", PREDICTIONS)
def test_predictions_score_the_same_from_every_format(tmp_path, pair, name):
    truth, pred, expected = pair
    PREDICTIONS[name](tmp_path / name, pred)
    given = truth
    if name == "coco.json":
        formats.write_coco(tmp_path / "truth.json", truth)
        given = tmp_path / "truth.json"
    assert expected["n_pred"] == 12
    assert_equal(scores(given, tmp_path / name), expected, name)


def test_labels_of_percents_score_almost_the_same(tmp_path, pair):
    truth, pred, expected = pair
    formats.write_labelstudio(tmp_path / "a.json", truth)
    found = scores(tmp_path / "a.json", pred)
    assert found == pytest.approx(expected, rel=1e-9)


def test_in_memory_as_a_mapping_and_as_labels(pair):
    truth, pred, expected = pair
    columns = [
        {name: getattr(one, name) for name in ("points", "frame", "nodes", *more)}
        for one, more in ((truth, ()), (pred, ("score",)))
    ]
    assert scores(*columns) == expected
    columns[0]["frame_idx"] = columns[0].pop("frame")
    assert scores(*columns) == expected
    assert scores({"a": columns[0]}, {"a": columns[1]}) == expected
    assert scores(formats.labels(truth), formats.labels(pred)) == expected


# --- without what is optional


BLOCKED = "import sys; sys.modules['h5py'] = sys.modules['sleap_io'] = None;"


def test_without_h5py_a_sentence_says_what_to_install(tmp_path):
    path = tmp_path / "a.slp"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    command = [sys.executable, "-c", BLOCKED + "from karat.cli import main; main()", "run", "pose"]
    done = subprocess.run([*command, "--truth", path, "--pred", path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'karat[pose]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_rest_needs_neither_h5py_nor_sleap_io(tmp_path):
    writers = {"csv": formats.write_dlc_csv, "json": formats.write_labelstudio, "npz": formats.write_npz}
    for suffix, write in writers.items():
        write(tmp_path / f"a.{suffix}", formats.poses())
    code = f"""{BLOCKED}
from karat.errors import InputError
from karat.sources import collect
for suffix in ("csv", "json", "npz", "slp", "h5", "nwb"):
    try:
        print(len(next(iter(collect({str(tmp_path)!r} + "/a." + suffix, "poses").values())).open()))
    except InputError as error:
        print("karat[pose]" in str(error))
"""
    for suffix in ("slp", "h5", "nwb"):
        (tmp_path / f"a.{suffix}").write_bytes(b"x")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12", "12", "12", "True", "True", "True"]


@pytest.mark.parametrize("suffix", [".mat", ".yaml", ".geojson", ".txt"])
def test_other_formats_are_refused_with_a_way_to_convert_them(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text("x")
    with pytest.raises(InputError, match=r"sleap_io\.load_file") as caught:
        collect(path, "poses")
    assert all(known in str(caught.value) for known in POSES.suffixes)
