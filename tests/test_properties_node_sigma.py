"""Sigmas of repeated labels against every pairing written out, and against the sigmas that labels were made with."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import node_sigma as twin
from twins.draw import FEW, MODEST, Array, laid_out, layouts, seeds

from karat.errors import InputError, UsageError
from karat.meter import Meter
from karat.metrics.node_sigma import LabelPairs, NodeSigma, write_sigmas
from karat.sources.poses import Poses, make_poses

NODES = ("nose", "neck", "hip", "tail")
shapes = st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(1, 4))


def labelled_twice(rng: np.random.Generator, shape: tuple[int, int, int], noise: float) -> tuple[Poses, Poses]:
    """Two people's labels of the same animals, in other orders; each misses some, and some nodes."""
    frames, animals, nodes = shape
    bodies = rng.uniform(0, 60, (frames * animals, 1, 2)) + rng.uniform(0, 20, (frames * animals, nodes, 2))
    where = np.arange(frames).repeat(animals)
    sides = []
    for _ in range(2):
        points = bodies + rng.normal(0, noise, bodies.shape)
        points[rng.random(points.shape[:2]) < 0.2] = np.nan
        kept = rng.permutation(len(points))[: rng.integers(0, len(points) + 1)]
        sides.append(
            make_poses(
                points[kept],
                where[kept],
                nodes=NODES[:nodes],
                area=np.where(rng.random(len(kept)) < 0.5, rng.uniform(20, 400, len(kept)), np.nan),
                labelled=range(frames),
            )
        )
    return sides[0], sides[1]


def listed(poses: Poses) -> dict[int, list[twin.Given]]:
    """By frame, as lists."""
    found: dict[int, list[twin.Given]] = {int(frame): [] for frame in poses.labelled}
    for points, area, frame in zip(poses.points, poses.area, poses.frame, strict=True):
        pose = [None if np.isnan(point).any() else (float(point[0]), float(point[1])) for point in points]
        found[int(frame)].append((pose, None if np.isnan(area) else float(area)))
    return found


@MODEST
@given(
    shapes,
    st.sampled_from(["box", "given"]),
    st.sampled_from([1.0, 60.0]),
    st.sampled_from([0.1, 0.5, 3.0]),
    st.sampled_from([0.5, 6.0]),
    seeds,
)
def test_sigmas_equal_the_literal_ones(shape, scale, min_area, gate, noise, seed):
    """By node and their mean, with every setting."""
    first, second = labelled_twice(np.random.default_rng(seed), shape, noise)
    chosen = {"scale": scale, "min_area": min_area, "gate": gate}
    expected = twin.by_node(listed(first), listed(second), shape[2], **chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = NodeSigma(of=LabelPairs(**chosen))(second, first)
    for name, sigma in zip(NODES, expected, strict=False):
        assert found[f"sigma@node:{name}"] == pytest.approx(sigma, rel=1e-9, nan_ok=True)
    known = [sigma for sigma in expected if not math.isnan(sigma)]
    assert found["sigma"] == pytest.approx(fmean(known) if known else math.nan, rel=1e-9, nan_ok=True)


@FEW
@given(shapes, layouts, seeds)
def test_neither_side_is_the_truth_and_no_cut_changes_a_bit(shape, layout, seed):
    """Sides exchanged; two videos at once and merged, in any memory layout."""
    videos = [labelled_twice(np.random.default_rng((seed, number)), shape, 1.0) for number in range(2)]
    for first, second in videos:
        there, back = NodeSigma()(second, first), NodeSigma()(first, second)
        assert back == pytest.approx(there, rel=1e-12, nan_ok=True)
    whole, parts = Meter(NodeSigma()), Meter(NodeSigma())
    whole.update(ids="ab", truth=[t for t, _ in videos], pred=[p for _, p in videos])
    for name, (truth, pred) in reversed(list(zip("ab", videos, strict=True))):
        one = Meter(NodeSigma())
        spread = make_poses(laid_out(pred.points, layout), pred.frame, nodes=pred.nodes, labelled=pred.labelled)
        one.update(ids=[name], truth=[truth], pred=[spread])
        parts.merge(one)
    np.testing.assert_equal(parts.compute(), whole.compute())


def test_the_sigmas_that_labels_were_made_with_are_found() -> None:
    """20,000 animals of three sizes: each node of each label is off by sigma times the object's scale."""
    rng, made = np.random.default_rng(5), np.array([0.01, 0.03, 0.08, 0.02])
    scale = rng.choice([20.0, 90.0, 300.0], 20_000)
    # The box is spanned by two nodes that are exact, so that its area is known.
    corners = scale[:, None, None] * np.array([[0, 0], [1, 1]])
    inner = scale[:, None, None] * np.full((4, 2), 0.5)

    def label() -> Array:
        error = rng.standard_normal(inner.shape) * (made / np.sqrt(2))[:, None]
        return np.concatenate([corners, inner + scale[:, None, None] * error], axis=1)

    names = ("low", "high", *NODES)
    first, second = (make_poses(label(), np.arange(len(scale)), nodes=names) for _ in range(2))
    found = NodeSigma()(second, first)
    assert [found[f"sigma@node:{name}"] for name in names] == pytest.approx([0, 0, *made], rel=0.02)


def test_labels_of_other_animals_are_no_repeats() -> None:
    """Each saw one that the other did not; far from each other they are no pair."""
    body = np.array([[0, 0], [10, 0], [10, 10], [0, 10]], float)
    first = make_poses([body, body + 200], [0, 0], nodes=NODES)
    second = make_poses([body - 300, body + 1], [0, 0], nodes=NODES)
    found = NodeSigma()(second, first)
    assert found["sigma"] == pytest.approx(0.1)  # sqrt((1 + 1) / 100 / 2)


def test_predictions_are_no_labels() -> None:
    """Of a model's instances nothing is said."""
    body = np.array([[[0, 0], [10, 10]]], float)
    with pytest.raises(InputError, match="no person labelled"):
        NodeSigma()(make_poses(body, [0], user=[False]), make_poses(body, [0]))
    both = make_poses(body, [0], user=[False]), make_poses(body, [0])
    assert NodeSigma(of=LabelPairs(user_labels_only=False))(*both)["sigma"] == 0


def test_hostile_coordinates_are_no_crash() -> None:
    """Areas and distances that overflow are no pair; three coordinates have no box."""
    body = np.array([[[0, 0], [10, 10]]], float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1e199, 1e307):
            assert math.isnan(NodeSigma()(make_poses(-body * scale, [0]), make_poses(body * scale, [0]))["sigma"])
    with pytest.raises(InputError, match="three coordinates"):
        NodeSigma()(*(make_poses(np.zeros((1, 2, 3)), [0]) for _ in range(2)))
    with pytest.raises(UsageError, match="above 0"):
        LabelPairs(min_area=0.0)


def test_written_sigmas_are_a_file_of_nodes(tmp_path: Path) -> None:
    """Only the nodes, only usable ones."""
    write_sigmas({"sigma": 0.2, "sigma@node:Näschen": 0.1, "sigma@node:tail": 0.3, "mOKS": 0.5}, tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == {"Näschen": 0.1, "tail": 0.3}
    for unusable in ({"sigma@node:nose": 0.0}, {"sigma@node:nose": math.nan}, {"sigma": 0.1}):
        with pytest.raises(InputError, match="above 0"):
            write_sigmas(unusable, tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()
