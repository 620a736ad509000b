"""The same poses in every format that people have, for the tests of what is read."""

from __future__ import annotations

import json
import os
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import sleap_io as sio

from karat.errors import InputError, told
from karat.sources.pairing import collect
from karat.sources.pose_files import expand
from karat.sources.pose_hdf5 import JABS_NODES
from karat.sources.poses import Poses, make_poses

MIB = 1 << 20
NODES = JABS_NODES
FRAMES = 6


def poses(seed: int = 0, labelled_by_hand: bool = True) -> Poses:
    """Two animals with tracks in six frames, some nodes missing. Coordinates are whole numbers, and the confidences of
    an animal's nodes, and so their mean, are all one multiple of 1/64: every format keeps them exactly."""
    rng = np.random.default_rng(seed)
    count = 2 * FRAMES
    start = rng.integers(50, 300, (count, 1, 2))
    points = (start + rng.integers(0, 60, (count, len(NODES), 2))).astype(float)
    points[rng.random(points.shape[:2]) < 0.2] = np.nan
    score = rng.permutation(64)[:count] / 64 + 1 / 64
    seen = ~np.isnan(points[..., 0])
    return make_poses(
        points,
        np.repeat(np.arange(FRAMES), 2),
        nodes=NODES,
        track=np.tile([0, 1], FRAMES),
        user=np.full(count, labelled_by_hand),
        score=None if labelled_by_hand else score,
        confidence=None if labelled_by_hand else np.where(seen, score[:, None], np.nan),
        name="clips/a.mp4",
    )


def moved(truth: Poses, seed: int = 1) -> Poses:
    """Predictions near a truth."""
    rng = np.random.default_rng(seed)
    score = rng.permutation(64)[: len(truth)] / 64 + 1 / 64
    points = truth.points + rng.integers(-1, 2, truth.points.shape)
    points[rng.random(points.shape[:2]) < 0.1] = np.nan
    seen = ~np.isnan(points[..., 0])
    return make_poses(
        points,
        truth.frame,
        nodes=truth.nodes,
        track=truth.track,
        user=np.zeros(len(points), bool),
        score=score,
        confidence=np.where(seen, score[:, None], np.nan),
        name=truth.name,
    )


def labels(*videos: Poses, open_videos: list[sio.Video] | None = None) -> sio.Labels:
    """As sleap-io has them."""
    skeleton = sio.Skeleton(list(videos[0].nodes), name="animal")
    known = open_videos or [sio.Video(one.name, open_backend=False) for one in videos]
    tracks = [sio.Track(f"track {i}") for i in range(1 + max(int(one.track.max(initial=-1)) for one in videos))]
    frames = []
    for one, video in zip(videos, known, strict=True):
        for number in one.labelled.tolist():
            instances = [_instance(one, i, skeleton, tracks) for i in np.flatnonzero(one.frame == number).tolist()]
            frames.append(sio.LabeledFrame(video, number, instances, is_negative=not instances))
    return sio.Labels(frames, videos=known, skeletons=[skeleton], tracks=tracks)


def _instance(own: Poses, i: int, skeleton: sio.Skeleton, tracks: list[sio.Track]) -> sio.Instance:
    track = tracks[own.track[i]] if own.track[i] >= 0 else None
    if own.user[i]:
        return sio.Instance.from_numpy(own.points[i], skeleton=skeleton, track=track)
    return sio.PredictedInstance.from_numpy(
        own.points[i], skeleton=skeleton, track=track, score=float(own.score[i]), point_scores=own.confidence[i]
    )


def read(path: Path) -> list[Poses]:
    """All videos of a file, in order."""
    return [source.open() for source in expand(path).values()]


def assert_same(own: Poses, other: Poses, but: tuple[str, ...] = ()) -> None:
    """The same instances and frames, in the same order."""
    for name in ("points", "frame", "score", "confidence", "track", "user", "labelled", "repeated"):
        if name not in but:
            np.testing.assert_array_equal(getattr(own, name), getattr(other, name), name)
    assert "nodes" in but or own.nodes == other.nodes


def by_sleap_io(path: Path) -> Any:
    """The labels of a .slp as objects, by sleap-io alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sio.load_slp(str(path), lazy=False)


def write_npz(path: Path, own: Poses) -> None:
    names = ("points", "frame", "score", "confidence", "track", "user", "labelled")
    np.savez(path, nodes=np.array(own.nodes), **{name: getattr(own, name) for name in names})


def write_coco(path: Path, own: Poses) -> None:
    """A truth with its images, or a list of detections, whose missing nodes have v = 0."""
    items = []
    for i, points in enumerate(own.points):
        seen = ~np.isnan(points[:, 0])
        flat = np.column_stack([np.nan_to_num(points), np.where(seen, 2, 0)]).ravel().tolist()
        item = {"image_id": int(own.frame[i]), "category_id": 1, "keypoints": flat, "track_id": int(own.track[i])}
        items.append({**item, "id": i} if own.user[i] else {**item, "score": float(own.score[i])})
    if own.user.all():
        categories = [{"id": 1, "name": "animal", "keypoints": list(own.nodes)}]
        images = [{"id": int(one)} for one in own.labelled]
        items = {"images": images, "annotations": items, "categories": categories}
    path.write_text(json.dumps(items))


def write_labelstudio(path: Path, own: Poses, side: int = 1000) -> None:
    """Tasks as Label Studio exports them; coordinates are percents of a picture of 1000 by 1000."""
    tasks = []
    for number in own.labelled.tolist():
        result: list[dict[str, Any]] = []
        for i in np.flatnonzero(own.frame == number).tolist():
            result.append({"id": f"r{i}", "type": "rectanglelabels", "value": {"rectanglelabels": ["animal"]}})
            for node, (x, y) in zip(own.nodes, own.points[i].tolist(), strict=True):
                if x == x:
                    value = {"x": 100 * x / side, "y": 100 * y / side, "keypointlabels": [node]}
                    size = {"original_width": side, "original_height": side}
                    result.append({"id": f"k{i}{node}", "type": "keypointlabels", "value": value, **size})
                    result.append({"type": "relation", "from_id": f"k{i}{node}", "to_id": f"r{i}"})
        video = {"filename": own.name, "frame_idx": number, "shape": [FRAMES, side, side, 3]}
        tasks.append({"meta": {"video": video}, "annotations": [{"result": result}]})
    path.write_text(json.dumps(tasks))


def write_alphatracker(path: Path, own: Poses) -> None:
    """Pictures with faces and points; such a file has no missing nodes and no names."""
    pictures = []
    for number in own.labelled.tolist():
        annotations: list[dict[str, Any]] = []
        for points in own.points[own.frame == number].tolist():
            annotations.append({"class": "Face", "x": 0, "y": 0, "width": 1, "height": 1})
            annotations += [{"class": "point", "x": x, "y": y} for x, y in points]
        pictures.append({"filename": f"clip/img{number}.png", "class": "image", "annotations": annotations})
    path.write_text(json.dumps(pictures))


def write_jabs(path: Path, own: Poses, version: int = 5) -> None:
    """Points as (y, x), a place for each mouse in each frame."""
    frames, mice = int(own.labelled.max()) + 1, int(own.track.max()) + 1
    points = np.zeros((frames, mice, len(NODES), 2), np.uint16)
    confidence = np.zeros((frames, mice, len(NODES)), np.float32)
    points[own.frame, own.track] = np.nan_to_num(own.points)[..., ::-1]
    confidence[own.frame, own.track] = np.nan_to_num(own.confidence)
    held = np.zeros((frames, mice), np.uint32)
    held[own.frame, own.track] = own.track + 1
    with h5py.File(path, "w") as file:
        group = file.create_group("poseest")
        group.attrs["version"] = np.array([version, 0], np.uint16)
        if version == 2:
            points, confidence = points[:, 0], confidence[:, 0]
        elif version == 3:
            group["instance_count"] = held.astype(bool).sum(axis=1).astype(np.uint8)
            group["instance_track_id"] = held
        else:
            group["instance_embed_id"] = held
            group["id_mask"] = held == 0
        group["points"], group["confidence"] = points, confidence


def dlc_columns(own: Poses) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """(scorer, individual, body part, coordinate) of every column of DeepLabCut's tables, and the cells."""
    coords = ["x", "y"] if own.user.all() else ["x", "y", "likelihood"]
    animals = int(own.track.max()) + 1
    columns = [("me", f"animal{a}", node, c) for a in range(animals) for node in own.nodes for c in coords]
    cells = np.full((int(own.labelled.max()) + 1, animals, len(own.nodes), len(coords)), np.nan)
    whole = own.points if own.user.all() else np.concatenate([own.points, own.confidence[..., None]], axis=2)
    cells[own.frame, own.track] = whole
    return columns, cells.reshape(len(cells), -1)


def write_dlc_csv(path: Path, own: Poses) -> None:
    """Labelled pictures by their paths, or the frames of a video by their numbers."""
    columns, cells = dlc_columns(own)
    lines = [
        ",".join([header, *(one[level] for one in columns)])
        for level, header in enumerate(("scorer", "individuals", "bodyparts", "coords"))
    ]
    for number, row in enumerate(cells):
        image = f"labeled-data/a/img{number:03d}.png" if own.user.all() else str(number)
        lines.append(",".join([image, *("" if cell != cell else repr(float(cell)) for cell in row)]))
    path.write_text("\n".join(lines) + "\n")


def write_dlc_hdf5(path: Path, own: Poses, as_table: bool = False) -> None:
    """As pandas lays out a frame with several levels of columns, in its fixed format or as a table."""
    columns, cells = dlc_columns(own)
    names = ("scorer", "individuals", "bodyparts", "coords")
    with h5py.File(path, "w") as file:
        group = file.create_group("df_with_missing")
        group.attrs["pandas_type"] = np.bytes_(b"frame_table" if as_table else b"frame")
        if as_table:
            import pickle

            group.attrs["non_index_axes"] = np.bytes_(pickle.dumps([(1, columns)], 0))
            group.attrs["info"] = np.bytes_(pickle.dumps({1: {"names": list(names), "type": "MultiIndex"}}, 0))
            table = np.zeros(len(cells), [("index", "<i8"), ("values_block_0", "<f8", (len(columns),))])
            table["index"], table["values_block_0"] = np.arange(len(cells)), cells
            group["table"] = table
            return
        group.attrs["nblocks"] = 1
        group.attrs["block0_items_nlevels"] = len(names)
        for level, name in enumerate(names):
            own_names, codes = np.unique([one[level] for one in columns], return_inverse=True)
            group[f"block0_items_level{level}"] = own_names.astype("S")
            group[f"block0_items_level{level}"].attrs["name"] = np.bytes_(name.encode())
            group[f"block0_items_label{level}"] = codes.astype(np.int8)
        group["axis1"] = np.array([f"labeled-data/a/img{i:03d}.png" for i in range(len(cells))], "S")
        if not own.user.all():
            del group["axis1"]
            group["axis1"] = np.arange(len(cells))
        group["block0_values"] = cells


def write_nwb(path: Path, *videos: Poses) -> None:
    """Training data as ndx-pose lays it out, with what is read of it alone."""
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        skeleton = file.create_group("processing/behavior/Skeletons/animal")
        skeleton.create_dataset("nodes", data=list(videos[0].nodes), dtype=text)
        training = file.create_group("processing/behavior/PoseTraining")
        place = 0
        for v, own in enumerate(videos):
            source = training.create_group(f"source_videos/video_{v}")
            source.create_dataset("external_file", data=[own.name], dtype=text)
            for number in own.labelled.tolist():
                frame = training.create_group(f"training_frames/frame_{place}")
                frame.attrs["source_video_frame_index"] = np.uint32(number)
                frame["source_video"] = h5py.SoftLink(source.name)
                instances = frame.create_group("skeleton_instances")
                for k, points in enumerate(own.points[own.frame == number]):
                    group = instances.create_group(f"instance_{k}")
                    group["node_locations"] = points
                    group["node_visibility"] = ~np.isnan(points).any(axis=1)
                    group["animal"] = h5py.SoftLink(skeleton.name)
                place += 1


def write_all(folder: Path) -> Path:
    """A file of every format."""
    truth = poses()
    pred = moved(truth)
    sio.save_slp(labels(truth), str(folder / "a.slp"))
    sio.save_analysis_h5(labels(pred), str(folder / "analysis.h5"))
    write_nwb(folder / "a.nwb", truth)
    write_dlc_hdf5(folder / "dlc.h5", truth)
    write_dlc_hdf5(folder / "table.h5", pred, as_table=True)
    write_jabs(folder / "jabs.h5", pred)
    write_dlc_csv(folder / "dlc.csv", truth)
    write_coco(folder / "coco.json", truth)
    write_labelstudio(folder / "tasks.json", truth)
    write_npz(folder / "a.npz", truth)
    return folder


def opened(path: Path) -> list[Poses]:
    """All videos of a file."""
    return [source.open() for source in collect(path, "poses").values()]


def refused(path: Path, *words: str, memory: int = 64 * MIB) -> str:
    """The message of the refusal, after checking its form and the memory it took."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            opened(path)
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert caught.type is InputError
    assert message.startswith(told(path)), message
    assert message.isprintable()
    assert len(message) < 1000
    for word in words:
        assert word in message, message
    return message


class Bomb:
    """Unpickling this leaves a folder behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)
