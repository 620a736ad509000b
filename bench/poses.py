"""What poses are measured on: three animals of fifteen nodes, jittered, missed and made up, as arrays and as files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.sources.poses import Poses, make_poses

Array = NDArray[Any]
ANIMALS, NODES = 3, 15
SIGMA = 0.025
NAMES = tuple(f"node_{k:02d}" for k in range(NODES))


def pair(frames: int) -> tuple[Poses, Poses]:
    """Predictions and truth: some nodes are missing on either side, some instances are missed, some made up."""
    rng = np.random.default_rng(0)
    body = rng.uniform(-60, 60, (ANIMALS, NODES, 2))
    centre = rng.uniform(100, 900, (frames, ANIMALS, 1, 2))
    points = (centre + body + rng.normal(0, 4, (frames, ANIMALS, NODES, 2))).reshape(-1, NODES, 2)
    frame = np.repeat(np.arange(frames), ANIMALS)
    near = points + rng.normal(0, 3, points.shape)
    hidden, lost = (rng.random(points.shape[:2]) < share for share in (0.05, 0.08))
    truth = make_poses(np.where(hidden[..., None], np.nan, points), frame, nodes=NAMES, labelled=np.arange(frames))
    kept, false = rng.random(len(points)) > 0.05, rng.random(len(points)) < 0.05
    given = np.where(lost[..., None], np.nan, near)
    pred = make_poses(
        np.concatenate([given[kept], given[false] + 400]),
        np.concatenate([frame[kept], frame[false]]),
        nodes=NAMES,
        score=np.round(rng.uniform(0.05, 1, kept.sum() + false.sum()), 3),
        labelled=np.arange(frames),
    )
    return pred, truth


def coco_pair(pred: Poses, truth: Poses) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same for COCO's tools; missing nodes of predictions lie in the corner."""
    images = [{"id": int(one), "width": 2000, "height": 2000} for one in truth.labelled]
    names = {"id": 1, "name": "animal", "keypoints": list(NAMES), "skeleton": []}
    annotations = [
        {
            "id": i + 1,
            "image_id": int(truth.frame[i]),
            "category_id": 1,
            "keypoints": keypoints.ravel().tolist(),
            "num_keypoints": int((keypoints[:, 2] > 0).sum()),
            "bbox": [*low.tolist(), *size.tolist()],
            "area": float(size.prod()),
            "iscrowd": 0,
        }
        for i, (keypoints, low, size) in enumerate(zip(_keypoints(truth), *_boxes(truth), strict=True))
    ]
    detections = [
        {
            "image_id": int(pred.frame[i]),
            "category_id": 1,
            "keypoints": keypoints.ravel().tolist(),
            "score": float(pred.score[i]),
        }
        for i, keypoints in enumerate(_keypoints(pred))
    ]
    return {"images": images, "annotations": annotations, "categories": [names]}, detections


def oks_ap(module: str, pred: Poses, truth: Poses) -> Callable[[], float]:
    """Average precision by OKS of faster-coco-eval or pycocotools, everything read and indexed beforehand."""
    gt, dt = coco_pair(pred, truth)
    sigmas = np.full(NODES, SIGMA)
    if module == "faster_coco_eval":
        from faster_coco_eval import COCO, COCOeval_faster

        known = COCO(gt)
        found = known.loadRes(dt)
    else:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        known = COCO()
        known.dataset = gt
        with redirect_stdout(None):
            known.createIndex()
            found = known.loadRes(dt)

    def run() -> float:
        with redirect_stdout(None):
            if module == "faster_coco_eval":
                of = COCOeval_faster(known, found, "keypoints", kpt_oks_sigmas=sigmas)
            else:
                of = COCOeval(known, found, "keypoints")
                of.params.kpt_oks_sigmas = sigmas
            of.params.areaRng, of.params.areaRngLbl = [[0, 1e20]], ["all"]
            of.evaluate()
            of.accumulate()
        return float(np.mean(of.eval["precision"][:, :, 0, 0, 0]))

    return run


def write_slp(folder: Path, pred: Poses, truth: Poses) -> tuple[Path, Path]:
    """The same as files of SLEAP."""
    import sleap_io as sio

    skeleton = sio.Skeleton(list(NAMES))
    video = sio.Video(filename="clip.mp4", open_backend=False)
    paths = []
    for name, poses in (("pred", pred), ("truth", truth)):
        by_frame: dict[int, list[Any]] = {int(one): [] for one in poses.labelled}
        for points, frame, score in zip(poses.points, poses.frame.tolist(), poses.score.tolist(), strict=True):
            by_frame[frame].append(
                sio.PredictedInstance.from_numpy(points, skeleton=skeleton, score=score)
                if name == "pred"
                else sio.Instance.from_numpy(points, skeleton=skeleton)
            )
        frames = [sio.LabeledFrame(video=video, frame_idx=one, instances=held) for one, held in by_frame.items()]
        path = folder / f"{name}.slp"
        sio.Labels(labeled_frames=frames, videos=[video], skeletons=[skeleton]).save(str(path), verbose=False)
        paths.append(path)
    return paths[0], paths[1]


def _keypoints(poses: Poses) -> Array:
    seen = ~np.isnan(poses.points[..., :1])
    return np.concatenate([np.nan_to_num(poses.points), 2.0 * seen], axis=2)


def _boxes(poses: Poses) -> tuple[Array, Array]:
    low = np.nanmin(poses.points, axis=1)
    return low, np.nanmax(poses.points, axis=1) - low
