"""Pretend pose models, each wrong in one recognisable way; their files; their scores side by side."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from karat.demo.animals import BEHIND, EDGES, FRAMES, HEIGHT, MIRRORED, NODES, WIDTH, Bools, Doubles, Film, Ints, film
from karat.evaluation import evaluate
from karat.run import Run
from karat.sources.poses import Poses, make_poses

Rng = np.random.Generator


def sharp(mice: Film, rng: Rng) -> Poses:
    """Every animal and every node that can be seen, each within a pixel or two."""
    points = mice.seen + _noise(rng, mice.points, 0.8)
    return _poses(mice, points, _trust(rng, points))


def misses(mice: Film, rng: Rng) -> Poses:
    """Animals are lost for a while, nodes now and then and most at the tail.

    A frame in 12 is left out altogether and one in 24 is answered with no animal.
    """
    points = mice.seen + _noise(rng, mice.points, 1.0)
    count, animals, nodes, _ = points.shape
    points[rng.random((count, animals, nodes)) < 0.06 + 0.2 * BEHIND / BEHIND.max()] = np.nan
    found = ~_spells(rng, count, animals, 0.2, 9)
    order, absent = rng.permutation(count), count // 12
    found[order[: absent + count // 24]] = False
    return _poses(mice, points, _trust(rng, points), found=found, labelled=order[absent:])


def swaps(mice: Film, rng: Rng) -> Poses:
    """Left is taken for right for a while, and two animals that touched part under each other's names."""
    points = mice.seen + _noise(rng, mice.points, 1.0)
    count, animals, _, _ = points.shape
    mistaken = _spells(rng, count, animals, 0.3, 16)
    points = np.where(mistaken[..., None, None], points[:, :, MIRRORED], points)
    track = np.tile(np.arange(animals), (count, 1))
    touching = np.triu(mice.touching)
    for last, one, other in np.argwhere(touching[:-1] & ~touching[1:]):
        track[last + 1 :, [one, other]] = track[last + 1 :, [other, one]]
    return _poses(mice, points, _trust(rng, points), track=track)


def jitter(mice: Film, rng: Rng) -> Poses:
    """Nodes are off by a pixel at the nose and by more and more towards the tip of the tail, and scores tell."""
    error = _noise(rng, mice.points, 1.0 + 5.5 * BEHIND[:, None] / BEHIND.max())
    far = np.sqrt((error * error).sum(-1)).mean(-1)
    return _poses(mice, mice.seen + error, _trust(rng, mice.seen) - 0.05 * far)


def eager(mice: Film, rng: Rng) -> Poses:
    """Every node is named, hidden or not; animals are found twice, and where they were or will be half a film away."""
    count, animals, _, _ = mice.points.shape
    own = mice.points + _noise(rng, mice.points, 1.0)
    twin = own + _noise(rng, own[:, :, :1], 5.0) + _noise(rng, own, 1.0)
    ghost = np.roll(own, count // 2, axis=0)
    there = (
        np.ones((count, animals), bool),
        _spells(rng, count, animals, 0.45, 8),
        _spells(rng, count, animals, 0.3, 12),
    )
    points, found = np.concatenate([own, twin, ghost], axis=1), np.concatenate(there, axis=1)
    doubt = np.repeat([0.0, 0.08, 0.12], animals) * rng.random((count, 3 * animals))
    return _poses(mice, points, _trust(rng, points) - doubt, found=found)


MODELS: dict[str, Callable[[Film, Rng], Poses]] = {
    "sharp": sharp,
    "misses": misses,
    "swaps": swaps,
    "jitter": jitter,
    "eager": eager,
}


def predict(model: str, mice: Film, seed: int) -> Poses:
    """What a model makes of a film; the draws of one film and model are independent of all others."""
    key = [seed, 1 + list(FRAMES).index(mice.name), list(MODELS).index(model)]
    return MODELS[model](mice, np.random.Generator(np.random.Philox(np.random.SeedSequence(key))))


def write(folder: Path, seed: int = 0) -> dict[str, Path]:
    """Write the truth and every model's predictions, a file a video: their folders by name.

    `truth` and the models are plain arrays (npz); `truth_coco` is the truth once more, as COCO keypoints (JSON).
    """
    places = {name: folder / name for name in ("truth", "truth_coco", *MODELS)}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    for name in FRAMES:
        mice = film(name, seed)
        truth = mice.truth
        (places["truth_coco"] / f"{name}.json").write_text(json.dumps(coco(truth)), encoding="utf-8")
        np.savez_compressed(places["truth"] / f"{name}.npz", **arrays(truth))
        for model in MODELS:
            np.savez_compressed(places[model] / f"{name}.npz", **arrays(predict(model, mice, seed)))
    return places


def run(folder: Path, workers: int | None = None) -> dict[str, Run]:
    """Writes the files under `folder`, evaluates every model against the truth, keeps the runs under `folder`/runs."""
    places = write(folder)
    return {
        model: evaluate("pose", pred=places[model], truth=places["truth"], out=folder / "runs" / model, workers=workers)
        for model in MODELS
    }


def arrays(poses: Poses) -> dict[str, Any]:
    """The arrays of a plain file of one video."""
    given = {"points": poses.points, "frame": poses.frame, "track": poses.track, "labelled": poses.labelled}
    scored = {} if np.isnan(poses.score).any() else {"score": poses.score}
    return given | scored | {"nodes": np.array(poses.nodes)}


def coco(truth: Poses) -> dict[str, Any]:
    """The truth of one video as COCO keypoints: an image a frame, a node that is not seen is 0, 0, 0."""
    images = [
        {"id": t, "file_name": f"{truth.name}/{t:05}.png", "width": WIDTH, "height": HEIGHT}
        for t in truth.labelled.tolist()
    ]
    seen = np.asarray(np.isfinite(truth.points).all(2))
    low, high = np.nanmin(truth.points, axis=1), np.nanmax(truth.points, axis=1)
    keypoints = np.concatenate([np.nan_to_num(truth.points), 2.0 * seen[..., None]], axis=2)
    annotations = [
        {
            "id": i + 1,
            "image_id": int(truth.frame[i]),
            "category_id": 1,
            "track_id": int(truth.track[i]),
            "keypoints": keypoints[i].ravel().tolist(),
            "num_keypoints": int(seen[i].sum()),
            "bbox": [*low[i].tolist(), *(high[i] - low[i]).tolist()],
            "area": float(np.prod(high[i] - low[i])),
            "iscrowd": 0,
        }
        for i in range(len(truth))
    ]
    skeleton = [[a + 1, b + 1] for a, b in EDGES]
    mouse = {"id": 1, "name": "mouse", "keypoints": list(NODES), "skeleton": skeleton}
    return {"images": images, "annotations": annotations, "categories": [mouse]}


def _poses(
    mice: Film,
    points: Doubles,
    score: Doubles,
    found: Bools | None = None,
    track: Ints | None = None,
    labelled: Ints | None = None,
) -> Poses:
    """Poses of what is found in frames x instances (T, M, ...); without a `track` each instance keeps its own."""
    kept = np.asarray(np.isfinite(points).any((2, 3)))
    if found is not None:
        kept &= found
    frame, instance = np.nonzero(kept)
    return make_poses(
        np.rint(points[kept] * 64) / 64,
        frame,
        score=np.clip(score[kept], 0.01, 1).round(4),
        track=instance if track is None else track[kept],
        nodes=NODES,
        labelled=np.arange(len(points)) if labelled is None else labelled,
        name=mice.name,
    )


def _noise(rng: Rng, like: Doubles, size: float | Doubles) -> Doubles:
    return np.asarray(rng.normal(0.0, 1.0, like.shape) * size)


def _trust(rng: Rng, points: Doubles) -> Doubles:
    """Scores (T, M), lower where fewer nodes are given."""
    given = np.isfinite(points).all(3).mean(2)
    return np.asarray(0.6 + 0.35 * given - rng.uniform(0, 0.1, given.shape))


def _spells(rng: Rng, frames: int, animals: int, share: float, length: int) -> Bools:
    """(T, A) which animal something befalls when: a share of all spans of `length` frames."""
    spans = rng.random((-(-frames // length), animals)) < share
    return np.repeat(spans, length, axis=0)[:frames]
