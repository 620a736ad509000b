"""Centroids against every assignment written out; the solver's batches against the solver itself."""

from __future__ import annotations

import math
import warnings
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from twins import centroid as twin
from twins.draw import FEW, MODEST, Array, laid_out, layouts, seeds

from karat.errors import InputError, KaratError, UsageError
from karat.kernels.assignment import least_total, most_pairs
from karat.kernels.centroids import first_seen, mean_seen, node_or_mean
from karat.meter import Meter
from karat.metrics.centroid import Centroid, CentroidMatches
from karat.sources.poses import Poses, make_poses

NODES = ("a", "b", "c", "d")
matching = st.fixed_dictionaries(
    {
        "match_threshold": st.sampled_from([0.0, 2.0, 10.0, 50.0]),
        "assignment": st.sampled_from(["then_gate", "gated"]),
        "pred_centroid": st.sampled_from(["mean", "first"]),
        "frames": st.sampled_from(["truth", "common"]),
        "user_labels_only": st.booleans(),
    }
)
scoring = st.fixed_dictionaries(
    {"undefined_truth": st.sampled_from(["ignore", "miss"]), "empty": st.sampled_from(["undefined", "zero"])}
)
shapes = st.tuples(st.integers(1, 12), st.integers(0, 4), st.integers(0, 4), st.integers(0, 5))


def scattered(rng: np.random.Generator, count: int, nodes: int, missing: float) -> Array:
    """Points (count, nodes, 2) some of whose nodes are not seen, some of all nodes."""
    points = rng.uniform(0, 40, (count, 1, 2)) + rng.normal(0, 4, (count, nodes, 2))
    points[rng.random((count, nodes)) < missing] = np.nan
    points[rng.random(count) < missing / 3] = np.nan
    return points


def video(rng: np.random.Generator, frames: int, most: int, nodes: int, missing: float) -> Poses:
    """Instances in frames that are in no order; some frames are labelled as empty."""
    count = int(rng.integers(0, most + 1, frames).sum())
    return make_poses(
        scattered(rng, count, nodes, missing),
        2 * rng.integers(0, frames, count),
        nodes=NODES[:nodes],
        user=rng.random(count) < 0.8,
        ignore=rng.random(count) < 0.1,
        crowd=rng.random(count) < 0.05,
        labelled=2 * np.flatnonzero(rng.random(frames) < 0.5),
    )


def labels(truth: Poses) -> dict[int, list[twin.Label]]:
    """By labelled frame."""
    found: dict[int, list[twin.Label]] = {int(frame): [] for frame in truth.labelled}
    for i in range(len(truth)):
        ignored = bool(truth.ignore[i] or truth.crowd[i])
        found[int(truth.frame[i])].append(twin.Label(twin.as_pose(truth.points[i]), bool(truth.user[i]), ignored))
    return found


def poses(pred: Poses) -> dict[int, list[twin.Pose]]:
    """By labelled frame."""
    found: dict[int, list[twin.Pose]] = {int(frame): [] for frame in pred.labelled}
    for i in range(len(pred)):
        found[int(pred.frame[i])].append(twin.as_pose(pred.points[i]))
    return found


@MODEST
@given(shapes, st.sampled_from([None, "a", "c"]), matching, scoring, st.sampled_from([0.0, 0.3]), seeds)
def test_scores_equal_the_literal_ones(shape, anchor, chosen, scored, missing, seed):
    """Every parameter, skeletons of three and of one or four nodes, missing nodes, ignored and unlabelled truths."""
    frames, most_true, most_pred, _ = shape
    rng = np.random.default_rng(seed)
    truth = video(rng, frames, most_true, 3, missing)
    pred = video(rng, frames, most_pred, int(rng.choice([1, 4])), missing)
    by = CentroidMatches(anchor=anchor, **chosen)
    place = None if anchor is None else NODES.index(anchor)
    of_pred = None if pred.points.shape[1] == 1 else place
    expected = twin.count(labels(truth), poses(pred), anchor=(place, of_pred), **chosen)
    if not expected.frames:
        with pytest.raises(InputError, match="no frame"):
            Centroid(of=by, **scored)(pred, truth)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Centroid(of=by, **scored)(pred, truth)
    assert expected.unique
    assert found == pytest.approx(twin.scores(expected, **scored), rel=1e-9, abs=1e-12, nan_ok=True)


@MODEST
@given(shapes, st.booleans(), seeds)
def test_the_solver_in_batches_is_the_solver(shape, whole, seed):
    """Pair by pair, ties included: costs of few values make many of them."""
    frames, rows, columns, values = shape
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, values + 1, (frames, rows, columns)).astype(float)
    cost = cost if whole else cost + rng.random(cost.shape)
    for one, pairs in zip(cost, least_total(cost), strict=True):
        expected = np.full(rows, -1)
        expected.put(*linear_sum_assignment(one))
        assert pairs.tolist() == expected.tolist()
        assert least_total(one[None])[0].tolist() == expected.tolist()


@MODEST
@given(shapes, seeds)
def test_most_pairs_are_the_most_and_then_the_nearest(shape, seed):
    """Against all assignments, with pairs that are not allowed."""
    _, rows, columns, values = shape
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, values + 1, (rows, columns)) + np.round(rng.random((rows, columns)), 3)
    allowed = rng.random(cost.shape) < 0.5
    cost = np.where(allowed | (rng.random(cost.shape) < 0.5), cost, np.nan)
    (pairs,) = most_pairs(cost[None], allowed[None])
    own = [(p, t) for p, t in enumerate(pairs.tolist()) if t >= 0]
    assert all(allowed[p, t] for p, t in own)
    assert len({t for _, t in own}) == len(own)
    padded = [*range(columns), *[-1] * rows]
    ways = [[(p, t) for p, t in enumerate(way) if t >= 0 and allowed[p, t]] for way in permutations(padded, rows)]
    best = min((-len(way), math.fsum(cost[p, t] for p, t in way)) for way in ways)
    assert (-len(own), math.fsum(cost[p, t] for p, t in own)) == pytest.approx(best)


@FEW
@given(shapes, matching, layouts, seeds)
def test_the_cut_of_the_samples_and_the_layout_change_no_bit(shape, chosen, layout, seed):
    """Three videos at once, one by one and merged, in any memory layout."""
    frames, most_true, most_pred, _ = shape
    metric = Centroid(of=CentroidMatches(**chosen))
    videos = []
    for number in range(3):
        rng = np.random.default_rng((seed, number))
        # Twelve nodes are summed in blocks where they lie in a row, and one by one where they do not.
        truth, pred = (
            make_poses(scattered(rng, most * frames, 12, 0.2), rng.integers(0, frames, most * frames), labelled=[0])
            for most in (most_true, most_pred)
        )
        videos.append((truth, pred))
    whole = Meter(metric)
    whole.update(ids="abc", truth=[t for t, _ in videos], pred=[p for _, p in videos])
    parts = Meter(metric)
    for name, (truth, pred) in reversed(list(zip("abc", videos, strict=True))):
        one = Meter(metric)
        spread = make_poses(laid_out(pred.points, layout), pred.frame, labelled=[0])
        one.update(ids=[name], truth=[truth], pred=[spread])
        parts.merge(one)
    np.testing.assert_equal(parts.compute(), whole.compute())


@FEW
@given(shapes, st.sampled_from(["then_gate", "gated"]), seeds)
def test_every_instance_is_in_one_row(shape, assignment, seed):
    """Each truth and each prediction once, a frame with neither once, and distances only of pairs, within the gate."""
    frames, most_true, most_pred, _ = shape
    rng = np.random.default_rng(seed)
    truth, pred = (video(rng, frames, most, 2, 0.2) for most in (most_true, most_pred))
    clean = make_poses(truth.points, truth.frame, nodes=truth.nodes, labelled=range(0, 2 * frames, 2))
    found = CentroidMatches(match_threshold=20, assignment=assignment).measure(pred, clean)
    of_truth, of_pred, distance, undefined = (
        found.columns[name] for name in ("truth", "pred", "distance", "undefined")
    )
    assert sorted(of_truth[of_truth >= 0]) == list(range(len(clean)))
    shown = ~np.isnan(pred.points).all(axis=(1, 2))
    assert sorted(of_pred[of_pred >= 0]) == np.flatnonzero(shown & np.isin(pred.frame, clean.labelled)).tolist()
    assert set(found.frame) == set(clean.labelled)
    alone = found.frame[(of_truth < 0) & (of_pred < 0)]
    assert set(alone).isdisjoint(clean.frame)
    assert len(set(alone)) == len(alone)
    pairs = (of_truth >= 0) & (of_pred >= 0)
    assert np.array_equal(pairs, ~np.isnan(distance))
    assert (distance[pairs] <= 20).all()
    assert np.isnan(clean.points[of_truth[undefined]]).all()
    assert np.array_equal(clean.frame[of_truth[of_truth >= 0]], found.frame[of_truth >= 0])
    assert np.array_equal(pred.frame[of_pred[of_pred >= 0]], found.frame[of_pred >= 0])


def test_gating_first_finds_at_least_as_many() -> None:
    """10 + 60 px is less than 45 + 45 px; the pair of 60 px is beyond the gate."""
    truth = make_poses([[[0, 0]], [[52.25, 15.5]]], [0, 0])
    pred = make_poses([[[10, 0]], [[0, 45]]], [0, 0])
    after, before = (Centroid(of=CentroidMatches(assignment=how))(pred, truth) for how in ("then_gate", "gated"))
    assert (after["centroid_n_tp"], after["centroid_n_fp"], after["centroid_n_fn"]) == (1, 1, 1)
    assert (before["centroid_n_tp"], before["centroid_n_fp"], before["centroid_n_fn"]) == (2, 0, 0)


def test_a_tie_goes_as_with_predictions_in_the_rows() -> None:
    """45 + 40 px both ways; the other orientation of the matrix finds 85 + 0 px, of which one pair is let go."""
    truth, pred = make_poses([[[0, 0]], [[40, 0]]], [0, 0]), make_poses([[[-45, 0]], [[0, 0]]], [0, 0])
    assert Centroid()(pred, truth)["centroid_n_tp"] == 2


def test_one_point_of_an_instance() -> None:
    """The mean, the first and a named node of what is seen; nothing is seen of the last."""
    points = np.array([[[1, 2], [np.nan, np.nan], [3, 6]], [[np.nan] * 2, [5, 6], [7, 8]], [[np.nan] * 2] * 3])
    np.testing.assert_array_equal(mean_seen(points), [[2, 4], [6, 7], [np.nan] * 2])
    np.testing.assert_array_equal(first_seen(points), [[1, 2], [5, 6], [np.nan] * 2])
    np.testing.assert_array_equal(node_or_mean(points, 1), [[2, 4], [5, 6], [np.nan] * 2])


def test_points_in_space_are_as_good() -> None:
    """A distance has no dimension; poses of different ones have none."""
    truth, pred = make_poses([[[0, 0, 0]]], [0]), make_poses([[[2, 3, 6]]], [0])
    assert Centroid()(pred, truth)["centroid_dist_avg"] == 7
    with pytest.raises(InputError, match="3 coordinates"):
        Centroid()(pred, make_poses([[[0, 0]]], [0]))


def test_frames_listed_twice() -> None:
    """Have no one answer; the reference leaves them out."""
    truth = make_poses([[[0, 0]], [[0, 0]]], [0, 1])
    twice = make_poses([[[0, 0]], [[0, 0]], [[0, 0]]], [0, 0, 1], repeated=[0])
    with pytest.raises(InputError, match="frame 0"):
        Centroid()(twice, truth)
    assert Centroid(of=CentroidMatches(repeated="skip"))(twice, truth)["centroid_n_tp"] == 1


@pytest.mark.parametrize("side", ["truth", "prediction"])
def test_an_anchor_that_is_no_node(side: str) -> None:
    """Is named together with those there are, on the side that lacks it."""
    both = [make_poses(np.zeros((1, 2, 2)), [0], nodes=nodes) for nodes in (("nose", "tail"), ("nose", "thorax"))]
    truth, pred = both if side == "truth" else reversed(both)
    with pytest.raises(InputError, match=rf"{side} has the nodes nose, tail.*'thorax'"):
        Centroid(of=CentroidMatches(anchor="thorax"))(pred, truth)


def test_hostile_coordinates_cost_one_answer() -> None:
    """Coordinates whose distance overflows are far, and no crash; infinities are no coordinates."""
    truth = make_poses([[[0, 0]], [[1e300, 1e300]], [[5, 5]]], [0, 0, 0])
    pred = make_poses([[[-1e300, 0]], [[1e308, -1e308]], [[np.inf, 0]], [[5, 6]]], [0, 0, 0, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for how in ("then_gate", "gated"):
            found = Centroid(of=CentroidMatches(assignment=how))(pred, truth)
            assert (found["centroid_n_tp"], found["centroid_n_fp"], found["centroid_n_fn"]) == (1, 2, 2)
            assert found["centroid_dist_avg"] == 1


def test_parameters_out_of_range() -> None:
    """A distance is not negative."""
    with pytest.raises(UsageError, match="at least 0"):
        CentroidMatches(match_threshold=-1)
    with pytest.raises(KaratError):
        CentroidMatches(assignment="greedy")  # type: ignore[arg-type]
