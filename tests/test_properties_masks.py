"""Masks of instances against sets of pixels, skeletons against scikit-image, the cut of the work against the whole."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skimage.morphology import skeletonize
from twins import masks as twin
from twins.draw import FEW, MODEST, Array, laid_out, layouts, seeds

from karat.errors import InputError, UsageError
from karat.kernels.masks import border, intersections, packed, united
from karat.kernels.skeleton import skeletons
from karat.meter import Meter
from karat.metrics.foregrounds import Foregrounds
from karat.metrics.mask_boundary_iou import MaskBoundaryIoU
from karat.metrics.mask_cl_dice import MaskClDice
from karat.metrics.mask_counts import MaskCounts
from karat.metrics.mask_detection import MaskDetection
from karat.metrics.mask_fragments import MaskFragments
from karat.metrics.mask_iou import MaskIoU
from karat.metrics.mask_matches import MaskMatches, Role
from karat.metrics.mask_pq import MaskPQ
from karat.metrics.mask_ranks import MaskRanks
from karat.metrics.mask_sizes import by_size
from karat.metrics.mask_voc import MaskVOC
from karat.metrics.semantic import Semantic
from karat.sources.instance_masks import InstanceMasks, make_instances

BY_PAIR = (MaskDetection, MaskIoU, MaskPQ, MaskBoundaryIoU, MaskClDice, MaskFragments, MaskCounts)
pictures = st.tuples(st.integers(1, 14), st.integers(1, 21))
which = st.sampled_from(["truth", "common"])
blanks = st.sampled_from(["ignore", "count"])


def shape(rng: np.random.Generator, size: tuple[int, int]) -> Array:
    """A box, a line, an ellipse, speckles or nothing."""
    height, width = size
    mask = np.zeros(size, np.uint8)
    (x, y), (x_to, y_to) = (tuple(map(int, rng.integers(0, (width, height)))) for _ in range(2))
    kind = rng.integers(0, 8)
    if kind < 3:
        cv2.rectangle(mask, (x, y), (x_to, y_to), 1, -1)
    elif kind < 5:
        cv2.line(mask, (x, y), (x_to, y_to), 1, int(rng.integers(1, 4)))
    elif kind == 5:
        cv2.ellipse(mask, (x, y), (x_to // 2 + 1, y_to // 2 + 1), float(rng.integers(180)), 0, 360, 1, -1)
    elif kind == 6:
        mask[:] = rng.random(size) < rng.random()
    return mask.astype(bool)


def video(rng: np.random.Generator, size: tuple[int, int]) -> tuple[InstanceMasks, InstanceMasks]:
    """A truth and its predictions: moved, cut, joined and false ones, in frames that are in no order."""
    sides: tuple[list[tuple[int, Array]], ...] = ([], [])
    for frame in range(0, 8, 2):
        true = [shape(rng, size) for _ in range(rng.integers(0, 4))]
        near = [np.roll(mask, rng.integers(-1, 2, 2), (0, 1)) for mask in true if rng.random() < 0.8]
        near += [shape(rng, size) for _ in range(rng.integers(0, 2))]
        if len(near) > 1 and rng.random() < 0.3:
            near[0] = near[0] | near[1]
        for side, masks in zip(sides, (true, near), strict=True):
            side += [(frame, mask) for mask in masks]
    return tuple(_record(rng, side, size) for side in sides)  # type: ignore[return-value]


def _record(rng: np.random.Generator, side: list[tuple[int, Array]], size: tuple[int, int]) -> InstanceMasks:
    order = rng.permutation(len(side))
    masks = np.array([side[i][1] for i in order], bool).reshape(-1, *size)
    score = rng.integers(0, 4, len(side)) / 3  # often equal
    listed = np.flatnonzero(rng.random(9) < 0.6)
    return make_instances(masks, [side[i][0] for i in order], score=score, labelled=listed)


def as_sets(record: InstanceMasks) -> tuple[dict[int, list[twin.Mask]], dict[int, list[float]]]:
    """The masks of each labelled frame, and their scores."""
    masks = np.unpackbits(record.masks, axis=-1, count=record.shape[1])
    held = {frame: np.flatnonzero(record.frame == frame) for frame in record.labelled.tolist()}
    return (
        {frame: [twin.pixels(masks[i]) for i in places] for frame, places in held.items()},
        {frame: record.score[places].tolist() for frame, places in held.items()},
    )


@MODEST
@given(
    pictures,
    st.sampled_from(["1/10", "1/3", "1/2", "3/4"]),
    st.sampled_from(["gated", "then_gate"]),
    st.sampled_from(["1/10", "1/4"]),
    st.sampled_from([0.02, 0.2]),
    which,
    blanks,
    seeds,
)
def test_pairs_are_those_of_all_assignments(size, limit, assignment, cover, share, frames, blank, seed):
    """Detection, IoU, PQ, borders, centre lines and fragments."""
    truth, pred = video(np.random.default_rng(seed), size)
    (true, _), (own, _) = as_sets(truth), as_sets(pred)
    assume(twin.frames_of(true, own, frames))
    found = twin.match(true, own, Fraction(limit), assignment, Fraction(cover), frames, blank)
    assume(found.unique)
    by = MaskMatches(
        match_threshold=float(Fraction(limit)),
        assignment=assignment,
        border=share,
        cover=float(Fraction(cover)),
        frames=frames,
        blank=blank,
    )
    said = {name: value for metric in BY_PAIR for name, value in metric(of=by)(pred, truth).items()}
    wanted = twin.scores(found, size, share)
    assert {name: said[name] for name in wanted} == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True)


@MODEST
@given(pictures, which, blanks, seeds)
def test_average_precision_is_that_of_its_definition(size, frames, blank, seed):
    """Of all masks, by size, and at each IoU."""
    truth, pred = video(np.random.default_rng(seed), size)
    (true, _), (own, scores) = as_sets(truth), as_sets(pred)
    assume(twin.frames_of(true, own, frames))
    wanted = twin.voc(true, own, scores, frames, blank)
    said = MaskVOC(of=MaskRanks(frames=frames, blank=blank))(pred, truth) if len(pred) else {}
    assume(said)
    assert {name: said[name] for name in wanted} == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True)


@MODEST
@given(pictures, st.sampled_from([0.02, 0.2]), which, st.sampled_from(["count", "skip"]), seeds)
def test_foregrounds_are_unions(size, share, frames, empty_truth, seed):
    truth, pred = video(np.random.default_rng(seed), size)
    (true, _), (own, _) = as_sets(truth), as_sets(pred)
    assume(twin.frames_of(true, own, frames))
    said = Semantic(of=Foregrounds(border=share, frames=frames), empty_truth=empty_truth)(pred, truth)
    wanted = twin.semantic(true, own, size, share, frames, empty_truth)
    assert said == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True)


@MODEST
@given(st.lists(pictures, min_size=1, max_size=5), st.integers(1, 5), seeds)
def test_skeletons_and_borders_of_single_masks(sizes, steps, seed):
    """Many skeletons at once are those of scikit-image one by one."""
    rng = np.random.default_rng(seed)
    masks = [shape(rng, size) for size in sizes]
    for mask, thin in zip(masks, skeletons(masks), strict=True):
        assert np.array_equal(thin, skeletonize(mask))
        assert twin.pixels(border(mask, steps)) == twin.border(twin.pixels(mask), steps)


def test_skeletons_of_all_small_pictures() -> None:
    """Every picture of 3 x 4 pixels: all patterns around a pixel are among them."""
    masks = [(number >> np.arange(12) & 1).astype(bool).reshape(3, 4) for number in range(1 << 12)]
    assert all(np.array_equal(thin, skeletonize(mask)) for mask, thin in zip(masks, skeletons(masks), strict=True))


@MODEST
@given(st.integers(1, 12), st.sampled_from([1, 7, 8, 9, 64, 65, 130]), layouts, seeds)
def test_packed_bits_are_pixels(height, width, layout, seed):
    """Areas, boxes, what two share, what several cover, and cut-outs, at any width and layout."""
    rng = np.random.default_rng(seed)
    masks = np.array([shape(rng, (height, width)) for _ in range(5)])
    record = make_instances(laid_out(masks, layout), np.zeros(5, int))
    own = packed(record.masks, width)
    sets = [twin.pixels(mask) for mask in masks]
    assert own.area.tolist() == [len(one) for one in sets]
    for mask, box in zip(masks, own.box.tolist(), strict=True):
        rows, columns = np.nonzero(mask)
        assert box == ([rows.min(), columns.min(), rows.max() + 1, columns.max() + 1] if len(rows) else [0] * 4)
    i, j = np.indices((5, 5))
    assert intersections(own, own, i, j).tolist() == [[len(a & b) for b in sets] for a in sets]
    groups = rng.integers(0, 3, 5)
    for number, area in enumerate(united(own, np.arange(5), groups, 3).area.tolist()):
        assert area == len(
            frozenset().union(*(one for one, group in zip(sets, groups, strict=True) if group == number))
        )
    top, left = int(rng.integers(0, height)), int(rng.integers(0, width))
    bottom, right = int(rng.integers(top, height)) + 1, int(rng.integers(left, width)) + 1
    assert np.array_equal(own.crop(0, (top, left, bottom, right)), masks[0, top:bottom, left:right])


@MODEST
@given(st.lists(st.sampled_from([0, 1, 5, 1023, 1024, 1025, 9215, 9216, 20000]), max_size=9))
def test_sizes_are_half_open(areas):
    """What is just at a bound is of the larger size."""
    bounds = twin.sizes(areas)
    found = {name: own.tolist() for name, (own,) in by_size(np.array(areas), np.array(areas))}
    assert found == {name: [low <= area < high for area in areas] for name, (low, high) in bounds.items()}


@FEW
@given(pictures, layouts, seeds)
def test_the_cut_of_the_samples_changes_no_bit(size, layout, seed):
    """Three videos at once, or one by one and merged, in any memory layout of their pixels."""
    metrics: list[Any] = [metric() for metric in (*BY_PAIR, MaskVOC, Semantic)]
    videos = {name: video(np.random.default_rng((seed, place)), size) for place, name in enumerate("abc")}
    assume(all(len(truth.labelled) and len(pred) for truth, pred in videos.values()))
    whole, parts = Meter(*metrics), Meter(*metrics)
    whole.update(ids=list(videos), truth=[t for t, _ in videos.values()], pred=[p for _, p in videos.values()])
    for name, (truth, pred) in reversed(videos.items()):
        again = laid_out(np.unpackbits(pred.masks, axis=-1, count=size[1]).astype(bool), layout)
        copy = make_instances(again, pred.frame, score=pred.score, labelled=pred.labelled)
        one = Meter(*metrics)
        one.update(ids=[name], truth=[truth], pred=[copy])
        parts.merge(one)
    np.testing.assert_equal(parts.compute(), whole.compute())


@FEW
@given(pictures, st.sampled_from(["gated", "then_gate"]), which, blanks, seeds)
def test_every_mask_is_in_one_row(size, assignment, frames, blank, seed):
    """Each truth of an evaluated frame and each prediction once; pairs are of one frame and alike enough."""
    truth, pred = video(np.random.default_rng(seed), size)
    evaluated = truth.labelled if frames == "truth" else np.intersect1d(truth.labelled, pred.labelled)
    assume(len(evaluated))
    found = MaskMatches(assignment=assignment, frames=frames, blank=blank).measure(pred, truth)
    t, p, role = (found.columns[name] for name in ("truth", "pred", "role"))
    assert sorted(t[t >= 0]) == np.flatnonzero(np.isin(truth.frame, evaluated)).tolist()
    assert sorted(p[p >= 0]) == list(range(len(pred)))
    assert np.array_equal((t >= 0) & (p >= 0), role == Role.PAIR)
    assert np.array_equal(truth.frame[t[t >= 0]], found.frame[t >= 0])
    assert np.array_equal(pred.frame[p[p >= 0]], found.frame[p >= 0])
    assert np.array_equal(np.isin(found.frame, evaluated), role != Role.OUTSIDE)
    both, either = (found.columns[name][role == Role.PAIR] for name in ("both", "either"))
    assert (2 * both >= either).all()


@FEW
@given(pictures, st.integers(0, 3), st.integers(0, 9), seeds)
def test_padding_changes_nothing_inside(size, lower, wider, seed):
    """Pictures that are larger at the right and at the bottom hold the same masks; unequal ones are refused."""
    truth, pred = video(np.random.default_rng(seed), size)
    assume(len(pred) and len(truth) and len(truth.labelled))
    masks = np.pad(np.unpackbits(pred.masks, axis=-1, count=size[1]), ((0, 0), (0, lower), (0, wider)))
    wide = make_instances(masks, pred.frame, score=pred.score, labelled=pred.labelled)
    for metric in (MaskIoU, MaskClDice, MaskFragments):  # the width of borders is a share of the picture
        said = [metric(of=MaskMatches(sizes="padded"))(one, truth) for one in (pred, wide)]
        np.testing.assert_equal(*said)
    if lower or wider:
        with pytest.raises(InputError, match="scale one side"):
            MaskIoU()(wide, truth)


def test_four_poor_pairs_before_three_good_ones() -> None:
    """Each prediction lies 27 pixels right of its truth (IoU 23 / 77), 1 pixel left of the next one (49 / 51)."""
    columns = np.arange(161)
    starts = 28 * np.arange(4)[:, None, None]
    truth, pred = (
        make_instances((columns >= first) & (columns < first + 50), [0] * 4) for first in (starts, starts + 27)
    )
    many, good = (
        MaskIoU(of=MaskMatches(match_threshold=0.25, assignment=how))(pred, truth) for how in ("gated", "then_gate")
    )
    assert many["mask_mean_iou_all_gt"] == many["mask_mean_iou"] == pytest.approx(23 / 77)
    assert good["mask_mean_iou"] == pytest.approx(49 / 51)
    assert good["mask_mean_iou_all_gt"] == pytest.approx(49 / 51 * 3 / 4)


def test_what_cannot_be_asked() -> None:
    """Shares go from 0 to 1."""
    for name in ("match_threshold", "border", "cover"):
        for value in (-0.1, 1.5):
            with pytest.raises(UsageError, match=name):
                MaskMatches(**{name: value})
    with pytest.raises(UsageError, match="border"):
        Foregrounds(border=-1.0)


def test_huge_pictures_of_nothing_cost_nothing() -> None:
    """Frames without a mask are not drawn."""
    truth = make_instances(np.zeros((0, 16000, 16000), bool), [], labelled=range(10000))
    pred = make_instances(np.zeros((0, 16000, 16000), bool), [])
    found = Semantic()(pred, truth)
    assert math.isnan(found["semantic_mean_iou"])
    assert found["semantic_n_frames"] == 0


def test_the_last_frame_that_there_can_be() -> None:
    """Its number is the largest of 32 bits."""
    one = make_instances(np.ones((1, 2, 2), bool), [2**31 - 1], score=[1.0])
    for metric in (MaskIoU, MaskVOC, Semantic):
        assert next(iter(metric()(one, one).values())) == 1
