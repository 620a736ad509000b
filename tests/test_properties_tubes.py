"""Objects that follow boxes against their twins: the published script to the last bit, the definitions to rounding; and
what must not change a number."""

from __future__ import annotations

import gzip
import json
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from twins import peekaboo, tubes
from twins.draw import FEW, seeds
from twins.draw_tubes import Drawn, Kind, box_near, dataset, drawn, kinds, published_kinds

import karat
from karat.errors import InputError
from karat.metrics.box_ap50 import BoxAP50
from karat.metrics.box_centroid import BoxCentroid
from karat.metrics.box_counts import BoxCounts
from karat.metrics.box_coverage import BoxCoverage
from karat.metrics.box_iou import BoxIoU
from karat.metrics.box_success import BoxSuccess
from karat.metrics.following import PublishedFollowing
from karat.metrics.still_box import StillBox
from karat.run import Run
from karat.suites._peekaboo import lines, printed, published_rows, videos

GOLDEN = Path(__file__).parents[1].parent / "shared" / "golden" / "control"
METRICS = (BoxCoverage(), BoxIoU(), BoxCentroid(), BoxAP50(), BoxSuccess(), StillBox(), BoxCounts())
PIXEL_SIZED = ("_px", "@px", "precision")
MANY = settings(FEW, max_examples=60)


def run(records: tuple[Any, Any], protocol: str = "spec", **asked: Any) -> Run:
    """An evaluation without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return karat.evaluate(
            "control", truth=records[0], pred=records[1], protocol=protocol, workers=1, strict=True, **asked
        )


def sides(found: list[Drawn], pixels: bool = False) -> tuple[list[Any], list[Any]]:
    """The records of the truth and of the predictions."""
    return [one.truth(pixels) for one in found], [one.pred() for one in found if one.found or one.masks]


def literal(one: Drawn) -> tubes.Video:
    """The video for the twin of the definitions."""
    masks = None if one.masks is None else [(mask > 0).tolist() for mask in one.masks]
    return tubes.Video(one.asked, one.found, masks, one.size if one.found or one.masks else (1, 1))


def as_script(found: list[Drawn]) -> peekaboo.Said:
    """What the twin of the script says."""
    preds = []
    for one in found:
        if one.masks is not None:
            preds.append(peekaboo.of_masks(one.id, one.masks, one.num_bb))
        elif one.found is not None:
            preds.append(peekaboo.of_boxes(one.id, one.found, one.size[1], one.size[0], one.num_bb))
    return peekaboo.script(preds, [(one.id, one.asked) for one in found])


def exactly(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def plain(scores: Any) -> dict[str, tuple[str, int, int, int]]:
    """All scores, to the last bit."""
    return {name: (repr(one.value), one.n, one.undefined, one.excluded) for name, one in scores.items()}


# --- the published script


@pytest.mark.parametrize(
    "case", ["edge_soft_mask", "edge_seg_L_mask", "edge_dup_pred", "edge_unknown_id", "syn_24_40x64"]
)
def test_the_twin_is_the_published_script(case: str) -> None:
    if not (GOLDEN / case).is_dir():
        pytest.fail(f"THE REFERENCE OUTPUTS ARE MISSING: {GOLDEN / case} is not there, so the twin was not verified.")
    wanted = json.loads((GOLDEN / case / "golden.json").read_text())
    given_ = pickle.loads(gzip.decompress((GOLDEN / case / "pred.pkl.gz").read_bytes()))
    truth = [(one["id"], one["bboxes"]) for one in json.loads((GOLDEN / case / "gt.json").read_text())]
    said = peekaboo.script([peekaboo.Prediction(one["id"], one["mask"], one["num_bb"]) for one in given_], truth)
    assert peekaboo.printed(said) == wanted["printed"]
    assert (said.line1, said.line2) == (wanted["line1_exact"], wanted["line2_exact"])
    for own, published in zip(said.records, wanted["records"], strict=True):
        for name in ("num_bb", "iou", "ap50", "centroid_dist", "gt_area", "pred_area"):
            assert exactly(getattr(own, name), math.nan if published[name] is None else published[name])


@MANY
@given(st.integers(0, 2**31), published_kinds, st.booleans())
def test_reference_is_the_script_to_the_last_bit(seed: int, kind: Kind, missing: bool) -> None:
    """Data sets: inverted boxes, negative edges, soft masks, numbers of detections that are not those of the boxes."""
    found = dataset(seed, kind, missing)
    said = as_script(found)
    if said.line1 is None:
        with pytest.raises(InputError, match="Nothing was evaluated"):
            run(sides(found), "reference")
        return
    result = run(sides(found), "reference")
    rows = published_rows(result)
    table = videos(rows)
    for own, wanted in zip(table, said.records, strict=True):
        assert (own["sample"], own["num_bb"], own["iou"]) == (wanted.id, wanted.num_bb, wanted.iou)
        assert exactly(own["ap50"], wanted.ap50)
        assert own["centroid_dist"] == wanted.centroid_dist
        at = rows.sample == rows.samples.index(own["sample"])
        assert rows.columns["asked_area"][at].sum() == wanted.gt_area
        assert rows.columns["found_area"][at].sum() == pytest.approx(wanted.pred_area, rel=1e-12)
    assert repr(lines(table)) == repr((said.line1, said.line2))
    assert [*printed(lines(table))] == peekaboo.printed(said)
    first, second = said.line1, said.line2
    assert second is not None
    scores = {name: one.value for name, one in result.scores.items()}
    wanted_scores = {"miou": first["mIoU"] / 100, "ap50": first["AP50"] / 100, "miou_all": second["mIoU"] / 100}
    wanted_scores |= {"ap50_detected": second["AP50"] / 100, "coverage": first["Coverage"]}
    wanted_scores["centroid_distance"] = first["CD"]
    for name, value in wanted_scores.items():
        assert scores[name] == pytest.approx(value, rel=1e-12, abs=1e-15, nan_ok=True), name


@MANY
@given(seeds, published_kinds)
def test_a_metric_of_one_video_is_the_script_of_it(seed: int, kind: Kind) -> None:
    one = drawn(seed, kind)
    said = as_script([one])
    truth, pred = {"boxes": [box or [np.nan] * 4 for box in one.asked]}, {}
    if one.masks is not None:
        pred = {"masks": np.stack(one.masks)}
    else:
        pred = {"boxes": [box or [np.nan] * 4 for box in one.found or []], "size": one.size}
    iou = BoxIoU(of=PublishedFollowing(), filter="majority", eps=1e-5)
    if said.line1 is None:
        with pytest.raises(InputError, match="less than 5 pixels"):
            iou(pred, truth)
        return
    (record,) = said.records
    assert iou(pred, truth)["miou_all"] == record.iou
    hits = BoxAP50(of=PublishedFollowing(), frames="detected", weight="detections")(pred, truth)
    assert hits["ap50_detected"] == pytest.approx(record.ap50, rel=1e-15, nan_ok=True)
    far = BoxCentroid(of=PublishedFollowing())(pred, truth)["centroid_distance_px"]
    assert far == pytest.approx(record.centroid_dist, rel=1e-14, abs=0)


# --- the definitions


def compare(result: Run, wanted: dict[str, tubes.Total], but: tuple[str, ...] = ()) -> None:
    for name, total in wanted.items():
        if name in but:
            continue
        own = result.scores[name]
        assert own.value == pytest.approx(total.value, rel=1e-11, abs=2e-12, nan_ok=True), name
        assert (own.n, own.undefined, own.excluded, own.failed) == (
            (own.n, 0, 0, 0) if name.startswith("n_") else (total.n, total.undefined, total.excluded, 0)
        ), name


@MANY
@given(st.integers(0, 2**31), kinds, st.booleans())
def test_scores_of_data_sets_equal_the_literal_ones(seed: int, kind: Kind, pixels: bool) -> None:
    """Boxes and masks of every kind, truths in pixels and relative, videos without a prediction, unequal lengths."""
    found = dataset(seed, kind)
    twins = [tubes.follow(literal(one)) for one in found]
    assume(kind.exact or not any(one.tie for one in twins))
    missing = any(not one.found and not one.masks for one in found)
    wanted = tubes.over(twins)
    without = ("still_centroid_distance",) if missing else ()  # whose frames have a size that nobody knows
    without += ("still_ap50",) if any(one.still_tie for one in twins) else ()
    if not any(one.counts["n_frames_truth"] for one in twins):
        assert math.isnan(wanted["ap50"].value)
    compare(run(sides(found, pixels and not missing)), wanted, without)
    of_paper = {**wanted, "ap50": wanted["ap50_detected"]}
    compare(run(sides(found), "paper"), of_paper, without)


@MANY
@given(seeds, kinds)
def test_metrics_of_one_video_equal_the_literal_ones(seed: int, kind: Kind) -> None:
    one = drawn(seed, kind)
    wanted = tubes.follow(literal(one))
    assume(kind.exact or not wanted.tie)
    pred: Any = {"masks": np.stack(one.masks)} if one.masks is not None else {"boxes": one.found, "size": one.size}
    scores = {name: value for metric in METRICS for name, value in metric(pred, {"boxes": one.asked}).items()}
    known = wanted.scores | wanted.counts | dict.fromkeys(wanted.left_out, math.nan)
    if wanted.still_tie:
        known.pop("still_ap50")
    assert {name: scores[name] for name in known} == pytest.approx(known, rel=1e-11, abs=2e-12, nan_ok=True)


@pytest.mark.parametrize("width", [20, 64, 100, 224, 320, 576])
def test_an_exact_half_is_a_hit_wherever_it_lies(width: int) -> None:
    """Boxes on the grid of pixels, relative in the truth as published files have them; and boxes of which they miss a
    hair."""
    starts = range(0, width - 20)
    truth = {"boxes": [[k / width, 0, (k + 20) / width, 1] for k in starts]}
    half = {"boxes": [[k, 0, k + 10, width] for k in starts], "size": (width, width)}
    less = {"boxes": [[k, 0, k + 9.999, width] for k in starts], "size": (width, width)}
    if starts:
        assert (BoxAP50()(half, truth)["ap50"], BoxAP50()(less, truth)["ap50"]) == (1, 0)


@pytest.mark.parametrize("width", [100, 224, 320, 576])
def test_boxes_in_pixels_that_are_met_are_met_under_reference(width: int) -> None:
    """The truth may be in pixels: the box that is painted for it is that box."""
    truth = {"boxes": [[k, 0, k + 10, width] for k in range(width - 10)], "size": (width, width)}
    assert BoxIoU(of=PublishedFollowing())(truth, truth)["miou_all"] == 1


# --- what must not change a number


@MANY
@given(seeds, kinds, st.sampled_from([-1, 1]), st.integers(0, 1), st.integers(100, 4000))
def test_a_box_that_is_moved_far_away_never_gains(seed: int, kind: Kind, way: int, axis: int, by: int) -> None:
    one = drawn(seed, Kind(exact=kind.exact))
    moved = [
        None if box is None else [edge + way * by * (place % 2 == axis) for place, edge in enumerate(box)]
        for box in one.found or []
    ]
    truth = {"boxes": one.asked}
    for metric, names in (
        (BoxIoU(), ("miou_all", "miou_frame_all")),
        (BoxAP50(), ("ap50",)),
        (BoxSuccess(), ("success_auc",)),
    ):
        near = metric({"boxes": one.found, "size": one.size}, truth)
        far = metric({"boxes": moved, "size": one.size}, truth)
        for name in names:
            assert not far[name] > near[name]


@MANY
@given(seeds, st.booleans(), st.sampled_from([2, 4, 64]))
def test_a_larger_picture_of_the_same_scores_the_same(seed: int, pixels: bool, times: int) -> None:
    """Both sides and the frame enlarged: relative scores keep their bits, since the factor is a power of 2."""
    one = drawn(seed, Kind(exact=True))
    large = Drawn(1, (one.size[0] * times, one.size[1] * times), one.asked)
    large.found = [None if box is None else [edge * times for edge in box] for box in one.found or []]
    small, wide = (run(([of.truth(pixels)], [of.pred()])).scores for of in (one, large))
    for name, value in small.items():
        if not any(part in name for part in PIXEL_SIZED):
            assert repr(wide[name].value) == repr(value.value), name
    for name in ("centroid_distance_px", "trajectory_l1_px"):
        assert wide[name].value == pytest.approx(small[name].value * times, rel=1e-12, nan_ok=True)


@MANY
@given(seeds, st.sampled_from([(8, 4), (10, 12), (28, 20)]))
def test_masks_that_fill_boxes_score_as_these(seed: int, size: tuple[int, int]) -> None:
    """On the grid; under both protocols."""
    rng = np.random.default_rng(seed)
    kind = Kind(exact=True)
    frames = int(rng.integers(1, 10))
    corners = np.floor([box_near(rng, size, None, kind) for _ in range(2 * frames)])
    corners = np.clip(corners, 0, (*size, *size)).astype(int)
    boxes = [box.tolist() if (box[2:] > box[:2]).all() else None for box in corners]
    asked = [
        None if box is None else [edge / size[place % 2] for place, edge in enumerate(box)] for box in boxes[:frames]
    ]
    of_boxes = Drawn(1, size, asked, boxes[frames:])
    of_masks = Drawn(1, size, asked, masks=[np.array(tubes.grid(*size, box or (0, 0, 0, 0))) for box in boxes[frames:]])
    assume(any(asked) and not tubes.follow(literal(of_boxes)).tie)
    a, b = (run(sides([one])).scores for one in (of_boxes, of_masks))
    for name, value in a.items():
        assert b[name].value == pytest.approx(value.value, rel=1e-12, abs=1e-13, nan_ok=True), name
    if as_script([of_boxes]).line1 is not None:
        a, b = (run(sides([one]), "reference").scores for one in (of_boxes, of_masks))
        assert plain(a) == plain(b)


@MANY
@given(st.integers(0, 2**31), kinds, st.sampled_from(["spec", "reference"]), seeds)
def test_the_order_of_records_changes_no_bit(seed: int, kind: Kind, protocol: str, order: int) -> None:
    found = dataset(seed, kind)
    assume(protocol == "spec" or as_script(found).line1 is not None)
    truth, pred = sides(found)
    rng = np.random.default_rng(order)
    shuffled = tuple([side[place] for place in rng.permutation(len(side))] for side in (truth, pred))
    a, b = run((truth, pred), protocol), run(shuffled, protocol)
    assert plain(a.scores) == plain(b.scores)
    assert a.data == b.data


def test_the_order_of_the_archive_and_of_files_changes_no_bit(tmp_path: Path) -> None:
    found = dataset(3, Kind(masks=True), missing=False)
    truth, _ = sides(found)
    arrays = {f"{one.id}/masks": np.stack(one.masks or []) for one in found}
    results = set()
    for name, order in (("a", 1), ("b", -1)):
        np.savez(tmp_path / f"{name}.npz", **dict([*arrays.items()][::order]))
        results.add(repr(plain(run((truth, tmp_path / f"{name}.npz")).scores)))
        (tmp_path / name).mkdir()
        for one in found[::order]:
            np.savez(tmp_path / name / f"{one.id}.npz", masks=np.stack(one.masks or []))
        results.add(repr(plain(run((truth, tmp_path / name)).scores)))
    assert len(results) == 1
