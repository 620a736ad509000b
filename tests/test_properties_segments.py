"""Overlap of segments against sets of pixels and all permutations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import segments as twin
from twins.draw import FEW, MODEST, Array, key, laid_out, layouts, mask_of, named, region_kinds, seeds

from karat.block import Context
from karat.errors import InputError, UsageError
from karat.kernels.matching import best_of_each_row, one_to_one
from karat.kernels.partition import of_labels, of_masks, shared
from karat.metric import Sums
from karat.metrics.segment_iou import SegmentIoU
from karat.region import Regions, make_regions

shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.sampled_from([1, 2, 4, 5]))
settings_ = st.fixed_dictionaries(
    {
        "matching": st.sampled_from(["hungarian", "max"]),
        "threshold": st.sampled_from([0.0, 0.1, 0.3]),
        "require_label": st.booleans(),
        "empty": st.sampled_from(["drop", "keep"]),
        "inside": st.sampled_from([0.0, 0.0, 0.4]),
        "recall_over": st.sampled_from(["truth", "pairs"]),
        "nothing": st.sampled_from(["undefined", "zero"]),
    }
)
NAMES = ["car", "", "tree", "car", "person", "sky"]


def related(rng: np.random.Generator, truth: Array) -> Array:
    """The same volume with a third of it shuffled, so that there is something to match."""
    other = rng.permutation(truth.ravel()).reshape(truth.shape)
    return np.where(rng.random(truth.shape) < 0.3, other, truth)


def compare(
    found: Mapping[str, float], expected: Mapping[str, float], matched: twin.Matched, mask: Array | None
) -> None:
    """All scores where the matching is the only best one; else those that every best matching shares."""
    for name, value in expected.items():
        if matched.unique:
            assert found[key(name, mask)] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), name
    if not math.isnan(expected["seg_m_iou"]):
        assert 0 <= found[key("seg_m_iou", mask)] <= 1


def direct(metric: SegmentIoU, pred: Array, truth: Array, regions: Regions, names: Mapping[str, Any], cut: int):
    """The scores of a clip measured in two blocks, with names for its objects."""
    context = Context("x", names)
    length = len(truth)
    parts = [
        metric.prepare(pred[a:b], truth[a:b], regions.frames(a, b), context)
        for a, b in ((0, cut), (cut, length))
        if a < b
    ]
    columns = metric.measure(parts, context)
    sums = {name: column.sum(axis=0) for name, column in columns.items()}
    return columns, {name: value[-1] for name, value in metric.score(Sums(sums)).items()}


@MODEST
@given(shapes, st.integers(0, 4), st.integers(0, 4), settings_, region_kinds, layouts, seeds)
def test_label_maps_equal_sets_of_pixels(shape, n_truth, n_pred, chosen, kind, layout, seed):
    """Label maps with absent, negative and empty labels, with every setting, in every region."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(-1, n_truth + 1, shape)
    pred = np.minimum(related(rng, truth), n_pred)
    mask = mask_of(rng, shape, kind)
    expected, matched = twin.scores(twin.from_labels(truth), twin.from_labels(pred), mask, **chosen)
    found = SegmentIoU(**chosen)(laid_out(pred, layout), laid_out(truth, layout), regions=named(mask))
    compare(found, expected, matched, mask)


@MODEST
@given(shapes, st.integers(0, 4), st.integers(0, 4), settings_, region_kinds, st.sampled_from(["keep", "last"]), seeds)
def test_overlapping_masks_equal_sets_of_pixels(shape, n_truth, n_pred, chosen, kind, overlap, seed):
    """Boolean masks that overlap, some of them empty, kept whole or painted over by the last."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_truth, *shape)) < rng.choice([0.0, 0.3, 0.8], (n_truth, 1, 1, 1))
    base = np.resize(truth, (n_pred, *shape)) if n_truth else np.zeros((n_pred, *shape), bool)
    pred = base ^ (rng.random((n_pred, *shape)) < 0.2)
    mask = mask_of(rng, shape, kind)
    sides = [twin.from_masks(side, last_wins=overlap == "last") for side in (truth, pred)]
    expected, matched = twin.scores(*sides, mask, **chosen)
    found = SegmentIoU(**chosen, overlap=overlap)(pred, truth, regions=named(mask))
    compare(found, expected, matched, mask)


@MODEST
@given(shapes, st.booleans(), settings_, region_kinds, st.integers(0, 3), seeds)
def test_named_segments_are_united_and_the_nameless_left_out(shape, stacks, chosen, kind, cut, seed):
    """Objects of one name count as one, "" as none; blocks of any length give the same columns."""
    rng = np.random.default_rng(seed)
    mask = mask_of(rng, shape, kind)
    names = {side: tuple(rng.permutation(NAMES)[:4]) for side in ("truth_segments", "pred_segments")}
    if stacks:
        truth, pred = (np.moveaxis(rng.random((4, *shape)) < 0.4, 0, 1) for _ in range(2))
        sides = [
            twin.from_masks(np.moveaxis(side, 1, 0), names[name])
            for side, name in ((truth, "truth_segments"), (pred, "pred_segments"))
        ]
    else:
        truth = rng.integers(0, 7, shape)  # labels 5 and 6 have no name
        pred = related(rng, truth)
        sides = [twin.from_labels(truth, names["truth_segments"]), twin.from_labels(pred, names["pred_segments"])]
    if chosen["empty"] == "keep":
        chosen = {**chosen, "empty": "drop"}  # an object without pixels has no label in a map
    expected, matched = twin.scores(*sides, mask, **chosen)
    metric, regions = SegmentIoU(**chosen), make_regions(named(mask), shape)
    columns, found = direct(metric, pred, truth, regions, names, min(cut, shape[0]))
    compare({key(name, mask): value for name, value in found.items()}, expected, matched, mask)
    whole, _ = direct(metric, pred, truth, regions, names, 0)
    for name in whole:
        np.testing.assert_array_equal(columns[name], whole[name])


@MODEST
@given(st.integers(0, 4), st.integers(0, 4), st.booleans(), seeds)
def test_matchings(rows, columns, ties, seed):
    """Hungarian reaches the largest total of all permutations; max takes each row's largest, the first of equals."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 3, (rows, columns)) / 2 if ties else rng.random((rows, columns))
    chosen = one_to_one(table)
    assert len(chosen[0]) == len(set(chosen[0])) == len(set(chosen[1])) == min(rows, columns)
    few = table if rows <= columns else table.T
    totals = [sum(few[i, j] for i, j in enumerate(way)) for way in twin.permutations(range(max(few.shape)), len(few))]
    assert table[chosen].sum() == pytest.approx(max(totals, default=0.0), abs=1e-12)
    best = best_of_each_row(table)
    assert list(best[1]) == ([list(row).index(max(row)) for row in table] if columns else [])


@MODEST
@given(st.sampled_from(["uint8", "int8", "uint16", "int16", "uint32", "int64", "uint64"]), layouts, seeds)
def test_every_label_of_every_dtype(dtype, layout, seed):
    """The largest and the smallest value of each integer dtype are labels like any other."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    ids = np.array([info.min, 0, 1, info.max // 2, info.max - 1, info.max], dtype)
    labels = laid_out(rng.choice(ids, (2, 4, 5)), layout)
    part = of_labels(labels, ())
    present = sorted({int(value) for value in labels.ravel() if value > 0})
    assert part.names == tuple(map(str, present))
    for n, value in enumerate(present):
        np.testing.assert_array_equal(part.member[part.cell, n], labels == value)
    found = SegmentIoU()(labels, labels)
    assert found["seg_m_iou"] == found["seg_recall"] == 1 or not present


@MODEST
@given(st.tuples(st.integers(1, 2), st.integers(0, 5), st.integers(1, 4), st.integers(1, 4)), st.booleans(), seeds)
def test_a_partition_of_masks_gives_back_the_masks(shape, last_wins, seed):
    """Every mask is the union of its cells, and intersections are counted exactly."""
    rng = np.random.default_rng(seed)
    masks = rng.random(shape) < 0.5
    part = of_masks(masks, (), last_wins)
    for n in range(shape[1]):
        kept = masks[:, n] & ~masks[:, n + 1 :].any(axis=1) if last_wins else masks[:, n]
        np.testing.assert_array_equal(part.member[part.cell, n], kept)
    size = len(part.member)
    counts = np.array([np.bincount((cell * size + cell).ravel(), minlength=size**2) for cell in part.cell])
    held = np.moveaxis(part.member[part.cell], -1, 1)
    expected = [[[np.sum(a & b) for b in frame] for a in frame] for frame in held]
    np.testing.assert_array_equal(shared(part, part, counts), np.array(expected).reshape(shape[0], shape[1], shape[1]))


@FEW
@given(shapes, st.sampled_from(["half", "sparse weights", "one pixel", "weights"]), seeds)
def test_equal_sides_score_one_with_any_weights(shape, kind, seed):
    """A perfect prediction never scores above 1, and not below it by more than rounding."""
    rng = np.random.default_rng(seed)
    masks = rng.random((3, *shape)) < 0.5
    found = SegmentIoU(threshold=0)(masks, masks, regions=named(mask_of(rng, shape, kind)))
    for name in ("seg_m_iou", "seg_recall", "seg_m_iou_all_gt", "seg_m_iou_frame"):
        value = found[f"{name}@m"]
        assert math.isnan(value) or 1 - 1e-12 <= value <= 1


def test_the_threshold_is_strict():
    """A pair whose IoU is the threshold is no match."""
    truth, pred = np.zeros((1, 2, 4), int), np.zeros((1, 2, 4), int)
    truth[0, 0], pred[0] = 1, 1
    assert SegmentIoU(threshold=0.5)(pred, truth)["seg_recall"] == 0
    assert SegmentIoU(threshold=0.499)(pred, truth)["seg_m_iou"] == 0.5


@pytest.mark.parametrize("threshold", [-0.1, 1.0, math.nan])
def test_thresholds_that_match_everything_or_nothing_are_refused(threshold):
    """An IoU below 0 or above 1 does not exist."""
    with pytest.raises(UsageError, match="threshold"):
        SegmentIoU(threshold=threshold)


def test_recall_over_truth_and_over_pairs():
    """10 true objects, one prediction of IoU 0.9: recall .1 and all-gt .09, or 1 over the pairs."""
    truth = np.repeat(np.arange(1, 11), 10).reshape(1, 10, 10)
    pred = np.where(np.arange(10) < 9, truth == 1, False).astype(int)
    spec, published = SegmentIoU()(pred, truth), SegmentIoU(recall_over="pairs")(pred, truth)
    assert spec["seg_recall"] == 0.1
    assert spec["seg_m_iou_all_gt"] == pytest.approx(0.09)
    assert published["seg_recall"] == 1.0
    assert spec["seg_m_iou"] == published["seg_m_iou"] == 0.9


def test_nothing_on_either_side():
    """No true object: undefined, and the predicted ones are counted; none predicted: 0."""
    none, some = np.zeros((1, 3, 4), int), np.ones((1, 3, 4), int)
    empty_truth = SegmentIoU()(some, none)
    assert math.isnan(empty_truth["seg_m_iou"])
    assert empty_truth["seg_n_pred_unmatched"] == 1
    assert SegmentIoU(nothing="zero")(some, none)["seg_m_iou"] == 0
    assert [SegmentIoU()(none, some)[name] for name in ("seg_m_iou", "seg_recall", "seg_m_iou_all_gt")] == [0, 0, 0]
    stack = np.zeros((0, 2, 3, 4), bool)
    assert math.isnan(SegmentIoU()(stack, stack)["seg_m_iou"])
    assert SegmentIoU()(stack, stack)["seg_n_pred_unmatched"] == 0


@pytest.mark.parametrize("segments", [np.ones((2, 3, 4, 5), np.uint8), np.ones((2, 4, 5), np.float32)])
def test_what_is_neither_masks_nor_labels_is_refused(segments):
    """Stacks that are not boolean would have their axes confused; labels are whole numbers."""
    with pytest.raises(InputError):
        SegmentIoU()(segments, segments)
