"""Poses against their twins, pair by pair and score by score; what must not change a number."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from twins import poses as twin
from twins.draw import FEW, MODEST, laid_out, layouts, seeds
from twins.draw_poses import NODES, listed, shapes, some_frames, video

from karat.errors import InputError
from karat.meter import Meter
from karat.metric import Metric
from karat.metrics.coco_matches import CocoMatches
from karat.metrics.distance import Distance
from karat.metrics.keypoint_error import NormalizedError, PckAUC
from karat.metrics.matches import Matches, Role
from karat.metrics.oks import OKS
from karat.metrics.pck import PCK
from karat.metrics.pose_counts import FrameCounts, PoseCounts, PoseFrames
from karat.metrics.visibility import Visibility
from karat.metrics.voc import OksVOC, PckVOC
from karat.sources.poses import Poses, make_poses

ROLES = {int(role): role.name.lower().replace("_", " ") for role in Role}

rules = st.fixed_dictionaries(
    {
        "form": st.sampled_from(["coco", "squared_area"]),
        "scale": st.sampled_from(["box", "given", "median", 40.0]),
        "match_threshold": st.sampled_from([0.0, 0.0, 0.5]),
        "thin": st.sampled_from(["ignore", "exact", "pixels"]),
        "min_area": st.sampled_from([1e-9, 1.0, 2.0]),
        "near": st.sampled_from([0.0, 2.0, 50.0]),
        "unlabelled": st.sampled_from(["ignore", "miss"]),
        "frames": st.sampled_from(["truth", "truth", "common"]),
        "user_labels_only": st.booleans(),
    }
)
vocs = st.fixed_dictionaries(
    {
        "inclusive": st.booleans(),
        "false_positives": st.booleans(),
        "arithmetic": st.sampled_from(["exact", "published"]),
    }
)
denominators = st.sampled_from(["visible", "all"])
NAMED = tuple(zip(NODES[:4], (0.4, 0.1, 0.2, 0.3), strict=True))
sigmas = st.sampled_from([0.025, 0.1, 0.5, (0.02, 0.1, 0.3, 0.5), NAMED])


def fitted(sigma: Any, nodes: int) -> tuple[Any, tuple[float, ...]]:
    """A sigma for the first of the nodes: as Karat takes it, and that of each node."""
    if isinstance(sigma, float):
        return sigma, (sigma,) * nodes
    own = sigma[:nodes]
    return own, tuple(one[1] if isinstance(one, tuple) else one for one in own)


def expected_of(truth: Poses, pred: Poses, each: tuple[float, ...], chosen: dict[str, Any]) -> twin.Matched | None:
    """What the twin finds; None where there is nothing to evaluate."""
    by = twin.Rules(each, **chosen)
    empty = by.frames == "common" and not by.user_labels_only
    if empty and any(frame in pred.labelled and frame not in truth.frame for frame in truth.labelled):
        return None  # where the published code stops
    found = twin.match(listed(truth), listed(pred), by)
    return found if found.frames else None


def measured(metrics: tuple[Metric, ...], *videos: tuple[Poses, Poses]) -> dict[str, float]:
    """The scores of several videos, without a warning."""
    meter = Meter(*metrics)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = [f"{number:03d}" for number in range(len(videos))]
        meter.update(ids=names, truth=[t for t, _ in videos], pred=[p for _, p in videos])
        return meter.compute()


def close(expected: dict[str, float]) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@settings(MODEST, max_examples=200)
@given(shapes, rules, sigmas, st.sampled_from(["box", "torso", ("nose", "tail")]), st.booleans(), seeds)
def test_pairs_equal_the_literal_ones(shape, chosen, sigma, length, unscored, seed):
    """Who is with whom and as what; every rule, areas that are given, thin truths, crowds."""
    truth, pred = video(seed, shape)
    own, each = fitted(sigma, shape.nodes)
    if unscored:
        chosen, pred = (
            chosen | {"default_score": 0.6},
            replace(pred, score=np.where(pred.score == 0.5, np.nan, pred.score)),
        )
    ends = ("left_shoulder", "right_hip") if length == "torso" else length
    if length != "box":
        assume(set(ends) <= set(truth.nodes))
    by = Matches(sigma=own, length=length, **chosen)
    literal = "box" if length == "box" else tuple(NODES.index(end) for end in ends)
    expected = expected_of(truth, pred, each, chosen | {"length": literal})
    if expected is None:
        with pytest.raises(InputError):
            OKS(of=by)(pred, truth)
        return
    assume(not expected.fragile)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = by.measure(pred, truth)
    columns = found.columns
    rows = sorted(
        (
            int(found.frame[i]),
            ROLES[columns["role"][i]],
            int(columns["truth"][i]),
            int(columns["pred"][i]),
            *(float(columns[name][i]) for name in ("oks", "score", "length")),
        )
        for i in range(len(found.frame))
    )
    literal_rows = sorted(
        (
            row.frame,
            row.role,
            row.truth.at if row.truth else -1,
            row.pred.at if row.pred else -1,
            row.oks,
            row.score,
            row.length,
        )
        for row in expected.rows
    )
    assert [row[:4] for row in rows] == [row[:4] for row in literal_rows]
    for row, literal_row in zip(rows, literal_rows, strict=True):
        assert row[4:] == pytest.approx(literal_row[4:], rel=1e-9, abs=1e-300, nan_ok=True)


@MODEST
@given(shapes, rules, sigmas, vocs, vocs, denominators, denominators, st.booleans(), seeds)
def test_scores_equal_the_literal_ones(shape, chosen, sigma, oks_voc, pck_voc, denominator, of_voc, inclusive, seed):
    """All scores and all of their parts, of two videos."""
    videos = [video((seed, number), shape) for number in range(2)]
    own, each = fitted(sigma, shape.nodes)
    found = [expected_of(truth, pred, each, chosen) for truth, pred in videos]
    assume(all(one is not None and not one.fragile for one in found))
    rows, nodes, by = (
        list(twin.rows_of([one for one in found if one])),
        NODES[: shape.nodes],
        Matches(sigma=own, **chosen),
    )
    pixels = tuple(float(px) for px in range(1, 11))

    def of_voc_scores(name: str, pair: Any, given: dict[str, Any]) -> dict[str, float]:
        ap, ar = twin.voc(rows, pair, **given)
        parts = {
            f"{name}.{kind}@threshold:{percent / 100:.2f}": value
            for kind, values in (("AP", ap), ("AR", ar))
            for percent, value in zip(range(50, 100, 5), values, strict=True)
        }
        return {f"{name}.mAP": twin.fmean(ap), f"{name}.mAR": twin.fmean(ar)} | parts

    def pck_of(row: twin.Row) -> float:
        return twin.pck_of_pair(row, pixels, inclusive, of_voc)

    within = "inclusive" if inclusive else "strict"
    sizes = (0.05, 0.1, 0.2, 0.5)
    expected = {
        OKS(of=by): twin.similarity(rows),
        OksVOC(of=by, **oks_voc): of_voc_scores("oks_voc", lambda row: row.oks, oks_voc),
        PckVOC(of=by, within=within, denominator=of_voc, **pck_voc): of_voc_scores("pck_voc", pck_of, pck_voc),
        PCK(of=by, inclusive=inclusive, denominator=denominator): twin.pck(rows, nodes, pixels, inclusive, denominator),
        Distance(of=by): twin.lengths(rows, nodes),
        Visibility(of=by): twin.visibility(rows, nodes),
        NormalizedError(of=by, inclusive=inclusive): twin.relative(rows, nodes, sizes, inclusive),
        PckAUC(of=by, limit=4.0): {"PCK_AUC": twin.auc(rows, 4.0, None)},
        PoseCounts(of=by): twin.counts(rows),
    }
    assert measured(tuple(expected), *videos) == close(
        {k: v for scores in expected.values() for k, v in scores.items()}
    )
    others = PCK(of=by, thresholds=(3.0, 1.0)), PckAUC(of=by, limit=4.0, steps=4)
    read = twin.pck(rows, nodes, (3.0, 1.0), True, "visible") | {"PCK_AUC": twin.auc(rows, 4.0, 4)}
    assert measured(others, *videos) == close(read)
    frames = {name: chosen[name] for name in ("frames", "user_labels_only")}
    each_video = [twin.frame_counts(listed(t), listed(p), twin.Rules(each, **frames)) for t, p in videos]
    total = {name: sum(one[name] for one in each_video) for name in each_video[0]}
    assert measured((FrameCounts(of=PoseFrames(**frames)),), *videos) == total


def every_metric(by: Matches) -> tuple[tuple[Metric, ...], ...]:
    """All that speak of instances, in groups that call no two scores the same."""
    frames = PoseFrames(frames=by.frames, user_labels_only=by.user_labels_only)
    scored = (OKS, OksVOC, PckVOC, PCK, Distance, Visibility, NormalizedError, PckAUC, PoseCounts)
    coco = CocoMatches(sigma=by.sigma, scale=by.scale, user_labels_only=by.user_labels_only)
    return (*(metric(of=by) for metric in scored), FrameCounts(of=frames)), (OksVOC(of=coco),)


def all_scores(by: Matches, *videos: tuple[Poses, Poses]) -> list[dict[str, float]]:
    """By group of metrics."""
    return [measured(metrics, *videos) for metrics in every_metric(by)]


def applies(by: Matches, *videos: tuple[Poses, Poses]) -> bool:
    """Whether every video has a frame to evaluate."""
    common = by.frames == "common"
    return (by.user_labels_only or not common) and all(
        twin.evaluated(listed(t), listed(p), twin.Rules((), frames=by.frames, user_labels_only=by.user_labels_only))
        for t, p in videos
    )


@FEW
@given(shapes, rules, st.booleans(), seeds)
def test_the_order_of_a_file_changes_no_bit(shape, chosen, distinct, seed):
    """Frames in any order; where scores and instances are distinct also the instances of a frame."""
    by, rng = Matches(**chosen), np.random.default_rng(seed)
    truth, pred = video(seed, shape, distinct)
    assume(applies(by, (truth, pred)))

    def shuffled(poses: Poses) -> Poses:
        order = rng.permutation(len(poses))
        if not distinct:
            order[np.argsort(poses.frame[order], kind="stable")] = np.argsort(poses.frame, kind="stable")
        return poses.take(order)

    np.testing.assert_equal(all_scores(by, (shuffled(truth), shuffled(pred))), all_scores(by, (truth, pred)))


@FEW
@given(shapes, rules, seeds)
def test_nodes_are_who_they_are_called(shape, chosen, seed):
    """In any order on either side, with sigmas by name."""
    by, rng = Matches(sigma=fitted(NAMED, shape.nodes)[0], **chosen), np.random.default_rng(seed)
    truth, pred = video(seed, shape, distinct=True)
    assume(applies(by, (truth, pred)))
    turned = []
    for poses in (truth, pred):
        order = rng.permutation(shape.nodes)
        nodes = tuple(poses.nodes[node] for node in order)
        turned.append(replace(poses, nodes=nodes, points=poses.points[:, order], confidence=poses.confidence[:, order]))
    for found, expected in zip(all_scores(by, (turned[0], turned[1])), all_scores(by, (truth, pred)), strict=True):
        assert found == close(expected)


@FEW
@given(shapes, rules, st.tuples(st.integers(-9999, 9999), st.integers(-9999, 9999)), seeds)
def test_where_the_origin_is_changes_no_bit(shape, chosen, shift, seed):
    """Everything moved by whole pixels."""
    by = Matches(**chosen)
    truth, pred = video(seed, shape)
    assume(applies(by, (truth, pred)))
    truth_moved, pred_moved = (
        replace(poses, points=poses.points + shift, box=poses.box + np.array([*shift, 0, 0])) for poses in (truth, pred)
    )
    np.testing.assert_equal(all_scores(by, (truth_moved, pred_moved)), all_scores(by, (truth, pred)))


@FEW
@given(shapes, rules, st.integers(0, 5), seeds)
def test_a_video_cut_in_two_scores_the_same_bits(shape, chosen, cut, seed):
    """Nothing but the median of the boxes looks beyond a frame."""
    by = Matches(**(chosen | {"scale": "given" if chosen["scale"] == "median" else chosen["scale"]}))
    truth, pred = video(seed, shape)
    frames = np.arange(0, 2 * shape.frames + 1)
    halves = [(some_frames(truth, some), some_frames(pred, some)) for some in (frames[: 2 * cut], frames[2 * cut :])]
    assume(applies(by, *halves))
    np.testing.assert_equal(all_scores(by, *halves), all_scores(by, (truth, pred)))


@FEW
@given(shapes, rules, layouts, seeds)
def test_the_order_of_the_videos_and_the_layout_change_no_bit(shape, chosen, layout, seed):
    """Three videos at once; backwards, one by one and merged, in any memory layout. Twelve nodes are summed in blocks
    where they lie in a row, and one by one where they do not."""
    by, shape = Matches(**chosen), replace(shape, nodes=12)
    videos = {name: video((seed, number), shape) for number, name in enumerate("abc")}
    assume(applies(by, *videos.values()))
    for metrics in every_metric(by):
        whole, parts = Meter(*metrics), Meter(*metrics)
        whole.update(ids=list(videos), truth=[t for t, _ in videos.values()], pred=[p for _, p in videos.values()])
        for name in reversed(videos):
            truth, pred = (replace(poses, points=laid_out(poses.points, layout)) for poses in videos[name])
            one = Meter(*metrics)
            one.update(ids=[name], truth=[truth], pred=[pred])
            parts.merge(one)
        np.testing.assert_equal(parts.compute(), whole.compute())


def test_a_thin_truth_that_pixels_score_is_missed_as_others_are() -> None:
    """Nothing is predicted of a line; scored by pixels it is one of the truths that there are to be found."""
    line, nobody = make_poses([[[0, 0], [9, 0]]], [0]), make_poses(np.zeros((0, 2, 2)), np.zeros(0, int))
    for thin, found in (("pixels", 0.0), ("exact", 0.0), ("ignore", math.nan)):
        by = Matches(thin=thin)
        for metric, name in ((OKS(of=by), "mOKS_all_gt"), (OksVOC(of=by), "oks_voc.mAP")):
            assert metric(nobody, line)[name] == pytest.approx(found, nan_ok=True)


def test_a_truth_without_a_node_is_missed_and_not_thin() -> None:
    """However small the median of the other boxes is."""
    truth = make_poses([[[0, 0], [0.5, 0.5]], [[np.nan, 0], [np.nan, 0]]], [0, 0])
    nobody = make_poses(np.zeros((0, 2, 2)), np.zeros(0, int))
    found = PoseCounts(of=Matches(scale="median", unlabelled="miss"))(nobody, truth)
    assert (found["n_gt"], found["n_gt_degenerate"], found["n_fn_unmatched"]) == (2, 1, 2)


@pytest.mark.parametrize("scale", [1e154, 1e200, 1e307])
def test_hostile_coordinates_are_no_crash(scale: float) -> None:
    """Areas and distances that overflow: the other pair stays what it is."""
    body = np.array([[0, 0], [10, 0], [10, 10], [0, 10]], float)
    truth = make_poses([body * scale, body], [0, 1])
    pred = make_poses([-body * scale, body], [0, 1], score=[1.0, 0.5], box=[[scale] * 4, [0, 0, 9, 9]])
    for thin in ("ignore", "pixels", "exact"):
        for metrics in every_metric(Matches(thin=thin)):
            assert measured(metrics, (truth, pred))["oks_voc.mAR"] == 0.5
        assert measured((OKS(of=Matches(thin=thin)),), (truth, pred))["mOKS"] == 1


def test_an_area_at_the_limit_is_not_thin() -> None:
    """A box of one pixel is no thinner than `min_area`; its OKS counts."""
    body = make_poses([[[0, 0], [1, 1]]], [0], score=[1.0])
    assert OKS()(body, body)["mOKS"] == 1
    assert math.isnan(OKS(of=Matches(min_area=1.01))(body, body)["mOKS"])


def test_half_alike_to_an_ignored_truth_is_ignored_with_it() -> None:
    """One of its two nodes is there, exactly: OKS .5; of three .33 is a false positive."""
    for missing, ignored in ((1, 1), (2, 0)):
        points = np.array([[0, 0], [9, 9], [5, 5]], float)[: 1 + missing]
        truth = make_poses([points], [0], ignore=[True])
        pred = make_poses([np.where(np.arange(1 + missing)[:, None] < 1, points, np.nan)], [0], score=[1.0])
        found = PoseCounts()(pred, truth)
        assert (found["n_pred_ignored"], found["n_fp_unmatched"]) == (ignored, 1 - ignored)
