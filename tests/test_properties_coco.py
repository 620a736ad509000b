"""COCO's average precision of keypoints against its twin, and against pycocotools itself on its own files."""

from __future__ import annotations

import contextlib
import io
import json
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from twins import coco as twin
from twins.draw import MODEST, seeds
from twins.draw_poses import listed, shapes, video

import karat
from karat.meter import Meter
from karat.metrics.coco_matches import CocoMatches
from karat.metrics.voc import OksVOC

NODES = ("nose", "neck", "tail")
SIGMAS = (0.05, 0.1, 0.2)


@MODEST
@given(
    shapes,
    st.sampled_from([0.025, 0.1, 0.5]),
    st.sampled_from(["box", "given", 2000.0]),
    st.sampled_from([1, 2, 20]),
    st.booleans(),
    seeds,
)
def test_scores_equal_the_literal_ones(shape, sigma, scale, most, user_labels_only, seed):
    """Two videos; crowds, truths that are to be ignored, all ranges of areas."""
    videos = [video((seed, number), shape) for number in range(2)]
    chosen = {"scale": scale, "max_detections": most, "user_labels_only": user_labels_only}
    expected, fragile = twin.scores(
        [(listed(truth), listed(pred)) for truth, pred in videos], twin.Rules((sigma,) * shape.nodes, **chosen)
    )
    assume(not fragile)
    meter = Meter(OksVOC(of=CocoMatches(sigma=sigma, **chosen), inclusive=True, arithmetic="published"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meter.update(ids="ab", truth=[t for t, _ in videos], pred=[p for _, p in videos])
        found = meter.compute()
    if math.isnan(found["oks_voc.mAP"]) and "oks_voc.AP@threshold:0.50" not in found:
        expected = {name: expected[name] for name in OksVOC.scores}  # neither video has a frame to evaluate
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def annotated(rng: np.random.Generator) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A truth and detections as COCO has them, in no order."""
    images = [{"id": int(i)} for i in rng.permutation(50)[: rng.integers(1, 6)]]
    truths = [one for image in images for one in _truths(rng, image["id"])]
    for number, one in enumerate(rng.permutation(truths)):  # type: ignore[arg-type]
        one["id"] = number + 1
    found = [one for image in images for one in _found(rng, image["id"], truths)]
    category = {"id": 1, "name": "mouse", "keypoints": list(NODES), "skeleton": []}
    if rng.random() < 0.3:
        for one in found:
            one["bbox"] = [0.0, 0.0, *rng.choice([10.0, 32.0, 96.0, 300.0], 2).tolist()]
    if rng.random() < 0.3:
        for one in found:
            one["area"] = float(rng.choice([10.0, 2000.0, 20000.0]))  # which pycocotools overwrites
    document = {"images": images, "annotations": sorted(truths, key=lambda one: one["id"]), "categories": [category]}
    return document, [found[i] for i in rng.permutation(len(found))]


def _truths(rng: np.random.Generator, image: int) -> Iterator[dict[str, Any]]:
    """Some with no visible node, some whose nodes nobody counted, crowds, areas at the ends of the ranges, doubles."""
    for _ in range(rng.integers(0, 4)):
        points = np.round(rng.uniform(0, rng.choice([10, 60, 200]), (len(NODES), 2)), 3)
        seen = rng.choice([0, 1, 2, 2, 2], len(NODES)) * (rng.random() < 0.85)
        low, size = points.min(axis=0), np.ptp(points, axis=0)
        one = {
            "image_id": image,
            "category_id": 1,
            "keypoints": np.where(seen[:, None] > 0, np.column_stack([points, seen]), 0.0).ravel().tolist(),
            "num_keypoints": int((seen > 0).sum() * (rng.random() < 0.9)),
            "iscrowd": int(rng.random() < 0.15),
            "area": float(rng.choice([float(size.prod()), 0.0, 500.0, 1024.0, 9216.0, 2e4])),
            "bbox": [*low.tolist(), *size.tolist()],
        }
        yield one
        if rng.random() < 0.2:
            yield dict(one)


def _found(rng: np.random.Generator, image: int, truths: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Copies, near misses and inventions, many of equal scores."""
    beside = [one for one in truths if one["image_id"] == image]
    for _ in range(rng.integers(0, 6)):
        points = rng.uniform(0, 100, (len(NODES), 2))
        if beside and rng.random() < 0.8:
            points = np.reshape(beside[rng.integers(len(beside))]["keypoints"], (-1, 3))[:, :2]
            points = points + rng.normal(0, rng.choice([0.0, 1.0, 4.0]), points.shape)
        keypoints = np.column_stack([points, np.ones(len(NODES))]).ravel().tolist()
        score = float(rng.choice([0.25, 0.5, 0.75, 1.0]))
        yield {"image_id": image, "category_id": 1, "keypoints": keypoints, "score": score}


def by_pycocotools(truth: dict[str, Any], found: list[dict[str, Any]], most: int) -> dict[str, float]:
    """What COCOeval says, by Karat's names; -1, nothing to be found, as NaN."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO()
        gt.dataset = json.loads(json.dumps(truth))
        gt.createIndex()
        evaluation = COCOeval(gt, gt.loadRes(json.loads(json.dumps(found))), "keypoints")
        evaluation.params.kpt_oks_sigmas = np.array(SIGMAS)
        evaluation.params.maxDets = [most]
        evaluation.evaluate()
        evaluation.accumulate()
    precision, recall = (
        np.where(one > -1, one, np.nan)[..., 0] for one in map(evaluation.eval.get, ("precision", "recall"))
    )
    scores = {}
    for place, suffix in enumerate(("", "@area:medium", "@area:large")):
        scores[f"oks_voc.mAP{suffix}"] = precision[..., 0, place].mean()
        scores[f"oks_voc.mAR{suffix}"] = recall[..., 0, place].mean()
    for place, threshold in enumerate(range(50, 100, 5)):
        scores[f"oks_voc.AP@threshold:{threshold / 100:.2f}"] = precision[place, :, 0, 0].mean()
        scores[f"oks_voc.AR@threshold:{threshold / 100:.2f}"] = recall[place, 0, 0]
    return scores


@MODEST
@given(seed=seeds)
def test_files_score_as_pycocotools_has_it(tmp_path_factory, seed):
    """From JSON to numbers: what is ignored, crowds, ranges of areas, more detections than count."""
    pytest.importorskip("pycocotools")
    rng = np.random.default_rng(seed)
    truth, found = annotated(rng)
    most = int(rng.choice([2, 20]))
    assume(found)
    files = {name: tmp_path_factory.getbasetemp() / f"coco_{name}.json" for name in ("truth", "pred")}
    for file, document in zip(files.values(), (truth, found), strict=True):
        file.write_text(json.dumps(document), encoding="utf-8")
    run = karat.evaluate(
        "pose",
        protocol="coco",
        metrics=["oks_voc"],
        settings={"coco_matches.sigma": SIGMAS, "coco_matches.max_detections": most},
        workers=1,
        strict=True,
        **files,
    )
    scores = {name: value.value for name, value in run.scores.items()}
    assert scores == pytest.approx(by_pycocotools(truth, found, most), rel=1e-12, abs=1e-12, nan_ok=True)
