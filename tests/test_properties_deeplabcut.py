"""DeepLabCut's metrics against its rules written out."""

from __future__ import annotations

import math
import warnings
from itertools import chain
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import deeplabcut as twin
from twins.draw import FEW, MODEST, Array, laid_out, layouts, seeds

from karat.errors import InputError, UsageError
from karat.meter import Meter
from karat.metrics.deeplabcut import DeepLabCutAP, DeepLabCutMatches, DeepLabCutRMSE
from karat.sources.poses import Poses, make_poses

shapes = st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 4), st.integers(1, 11))


def crowded(rng: np.random.Generator, shape: tuple[int, int, int, int]) -> tuple[Poses, Poses]:
    """Truth and predictions that overlap: copies of a true pose, flat boxes, nodes that are missing or denied."""
    frames, truths, preds, nodes = shape
    points = rng.uniform(0, 30, (frames, truths, nodes, 2)) + rng.uniform(0, 20, (frames, truths, 1, 2))
    points[rng.random((frames, truths)) < 0.15, :, 1] = 3.0
    copied = rng.integers(0, truths, (frames, preds)) if truths else np.zeros((frames, preds), int)
    base = points[np.arange(frames)[:, None], copied] if truths else rng.uniform(0, 30, (frames, preds, nodes, 2))
    moved = base + rng.normal(0, rng.choice([0.0, 0.5, 4.0], (frames, preds, 1, 1)), base.shape)
    for side in (points, moved):
        side[rng.random(side.shape[:3]) < 0.25] = np.nan
    confidence = rng.integers(0, 9, moved.shape[:3]) / 8  # their sums are exact, in any order
    confidence[rng.random(confidence.shape) < 0.1] = -1.0
    confidence[rng.random(confidence.shape) < 0.1] = np.nan
    confidence[np.isnan(np.where(confidence < 0, np.nan, confidence)).all(axis=2)] = 0.5
    labelled, frame = range(frames), np.arange(frames)
    truth = make_poses(points.reshape(-1, nodes, 2), frame.repeat(truths), labelled=labelled)
    pred = make_poses(
        moved.reshape(-1, nodes, 2), frame.repeat(preds), confidence=confidence.reshape(-1, nodes), labelled=labelled
    )
    return truth, pred


def framed(truth: Poses, pred: Poses) -> list[twin.Frame]:
    """Frame by frame, as lists."""
    return [
        twin.Frame(
            [[_point(p) for p in points] for points in truth.points[truth.frame == frame]],
            [
                [twin.Node(_point(p), float(c)) for p, c in zip(points, sure, strict=True)]
                for points, sure in zip(
                    pred.points[pred.frame == frame], pred.confidence[pred.frame == frame], strict=True
                )
            ],
        )
        for frame in truth.labelled
    ]


def _point(point: Array) -> tuple[float, float] | None:
    return None if np.isnan(point).any() else (float(point[0]), float(point[1]))


def _mean(values: list[float]) -> float:
    return fmean(values) if values else math.nan


@MODEST
@given(shapes, st.sampled_from([0.0, 0.5, 0.6]), st.sampled_from([1e-6, 0.3]), seeds)
def test_pixel_errors_equal_the_literal_ones(shape, pcutoff, least_oks, seed):
    """Of all nodes, of sure ones, and node by node."""
    truth, pred = crowded(np.random.default_rng(seed), shape)
    every, sure = twin.errors(framed(truth, pred), pcutoff, least_oks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = DeepLabCutRMSE(pcutoff=pcutoff, least_oks=least_oks)(pred, truth)
    for name, by_node in (("dlc_rmse", every), ("dlc_rmse_pcutoff", sure)):
        assert found[name] == pytest.approx(_mean([*chain.from_iterable(by_node)]), rel=1e-9, nan_ok=True)
        for node, own in enumerate(by_node):
            assert found[f"{name}@node:{node}"] == pytest.approx(_mean(own), rel=1e-9, nan_ok=True)


@MODEST
@given(shapes, st.sampled_from([0.025, 0.1]), seeds)
def test_average_precision_equals_the_literal_one(shape, sigma, seed):
    """With two nodes at least, at all ten thresholds."""
    truth, pred = crowded(np.random.default_rng(seed), shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = DeepLabCutAP(of=DeepLabCutMatches(sigma=sigma, least_nodes=2))(pred, truth)
    expected = twin.precision(framed(truth, pred), sigma)
    assert (found["dlc_map"], found["dlc_mar"]) == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@FEW
@given(shapes, layouts, seeds)
def test_the_cut_of_the_samples_and_the_layout_change_no_bit(shape, layout, seed):
    """Two videos at once and merged, in any memory layout."""
    videos = [crowded(np.random.default_rng((seed, number)), shape) for number in range(2)]
    metrics = DeepLabCutRMSE(), DeepLabCutAP()
    whole, parts = Meter(*metrics), Meter(*metrics)
    whole.update(ids="ab", truth=[t for t, _ in videos], pred=[p for _, p in videos])
    for name, (truth, pred) in reversed(list(zip("ab", videos, strict=True))):
        one = Meter(*metrics)
        points, confidence = laid_out(pred.points, layout), laid_out(pred.confidence, layout)
        spread = make_poses(points, pred.frame, confidence=confidence, labelled=pred.labelled)
        one.update(ids=[name], truth=[truth], pred=[spread])
        parts.merge(one)
    np.testing.assert_equal(parts.compute(), whole.compute())


def test_the_score_stands_for_the_confidences() -> None:
    """Of an instance that has none; without either it cannot be ranked."""
    square = np.array([[[0, 0], [10, 0], [10, 10], [0, 10]]], float)
    truth = make_poses(square, [0])
    for score, kept in ((0.7, 2.0), (0.5, math.nan)):
        found = DeepLabCutRMSE()(make_poses(np.add(square, (2, 0)), [0], score=[score]), truth)
        assert found["dlc_rmse"] == 2
        assert found["dlc_rmse_pcutoff"] == pytest.approx(kept, nan_ok=True)
    with pytest.raises(InputError, match="without a score and without confidences in frame 0"):
        DeepLabCutRMSE()(make_poses(square, [0]), truth)


def test_whoever_comes_late_to_its_best_truth_has_none() -> None:
    """COCO would give it the second best one."""
    square = np.array([[0, 0], [10, 0], [10, 10], [0, 10]], float)
    truth = make_poses([square, square + 4], [0, 0])
    pred = make_poses([square, square + 1], [0, 0], score=[0.9, 0.8])
    found = DeepLabCutRMSE()(pred, truth)
    assert found["dlc_rmse"] == 0
    assert DeepLabCutAP(of=DeepLabCutMatches(least_nodes=2))(pred, truth)["dlc_mar"] == 50


def test_nodes_are_paired_by_name() -> None:
    """The same pose with its nodes in another order is the same pose."""
    points = np.array([[[0, 0], [10, 0], [10, 12]]], float)
    truth = make_poses(points, [0], nodes=("a", "b", "c"))
    pred = make_poses(points[:, ::-1], [0], nodes=("c", "b", "a"), score=[0.9])
    assert DeepLabCutRMSE()(pred, truth)["dlc_rmse"] == 0


def test_hostile_coordinates_are_no_crash() -> None:
    """A box whose area overflows, and distances that do; three coordinates have no box."""
    square = np.array([[[0, 0], [10, 0], [10, 10], [0, 10]]], float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1e200, 1e308):
            large = square * (scale / 10)
            truth, pred = make_poses(large, [0]), make_poses(-large, [0], score=[1.0])
            for metric in (DeepLabCutRMSE(), DeepLabCutAP()):
                assert set(metric.scores) <= set(metric(pred, truth))
    with pytest.raises(InputError, match="three coordinates"):
        DeepLabCutRMSE()(*(make_poses(np.zeros((1, 2, 3)), [0], score=[1.0]) for _ in range(2)))


def test_parameters_out_of_range() -> None:
    """Nothing is divided by a sigma of 0, nobody needs no node, and no OKS is no match."""
    for wrong in ({"sigma": 0.0}, {"least_nodes": 0}):
        with pytest.raises(UsageError, match="above 0"):
            DeepLabCutMatches(**wrong)
    with pytest.raises(UsageError, match="above 0"):
        DeepLabCutRMSE(least_oks=0.0)
