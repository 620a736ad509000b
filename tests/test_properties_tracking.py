"""Tracking scores against their twins, switch by switch; what must not change a number."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from twins import tracking as twin
from twins.draw import FEW, MODEST, laid_out, layouts, seeds
from twins.draw_poses import herds, listed, tracked

from karat.errors import InputError
from karat.meter import Meter
from karat.metric import Metric
from karat.metrics.clear_mot import ClearMOT
from karat.metrics.hota import HOTA
from karat.metrics.identity import Identity
from karat.metrics.tracks import Tracks, identity_switches
from karat.rows import element_rows
from karat.sources.poses import Poses, make_poses

rules = st.fixed_dictionaries(
    {
        "match_threshold": st.sampled_from([0.1, 0.5, 0.9]),
        "matching": st.sampled_from(["previous", "established", "frame"]),
        "min_area": st.sampled_from([1e-9, 5.0]),
        "near": st.sampled_from([4.0, 50.0]),
        "unlabelled": st.sampled_from(["ignore", "miss"]),
        "nodeless": st.sampled_from(["drop", "count"]),
        "user_labels_only": st.booleans(),
    }
)
sigmas = st.sampled_from([0.1, 0.3, 0.6])
undefined = st.sampled_from(["nan", "trackeval"])


def followed(videos: list[tuple[Poses, Poses]], by: Tracks) -> list[twin.Tracked]:
    """What the twin makes of videos that have frames and tracks, and one way only to be assigned."""
    assume(all(not len(side) or (side.track >= 0).any() for video in videos for side in video))
    found = [_followed(truth, pred, by) for truth, pred in videos]
    assume(any(one.frames for one in found) and not any(one.fragile for one in found))
    return found


def _followed(truth: Poses, pred: Poses, by: Tracks) -> twin.Tracked:
    names = ("match_threshold", "matching", "min_area", "near", "unlabelled", "nodeless", "user_labels_only")
    sigma = (float(by.sigma),) * truth.points.shape[1]  # type: ignore[arg-type]
    return twin.follow(listed(truth), listed(pred), twin.Rules(sigma, **{name: getattr(by, name) for name in names}))


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


@MODEST
@given(
    herds, rules, sigmas, st.sampled_from(["above", "from"]), st.sampled_from(["segments", "gaps"]), undefined, seeds
)
def test_clear_mot_equals_the_literal_one(herd, chosen, sigma, mostly, fragmentation, blank, seed):
    """Two videos, every rule of matching and of counting."""
    by = Tracks(sigma=sigma, **chosen)
    videos = [tracked((seed, number), herd) for number in range(2)]
    expected = twin.clear(followed(videos, by), mostly, fragmentation, blank)
    metric = ClearMOT(of=by, mostly=mostly, fragmentation=fragmentation, undefined=blank)
    assert measured((metric,), *videos) == close(expected)


@MODEST
@given(herds, rules, sigmas, undefined, seeds)
def test_hota_equals_the_literal_one(herd, chosen, sigma, blank, seed):
    """Two videos, all alphas."""
    by = Tracks(sigma=sigma, **chosen)
    videos = [tracked((seed, number), herd) for number in range(2)]
    expected = twin.hota(followed(videos, by), blank)
    assert measured((HOTA(of=by, undefined=blank),), *videos) == close(expected)


@MODEST
@given(herds, rules, sigmas, st.sampled_from(["possible", "matched"]), undefined, seeds)
def test_identity_scores_equal_the_literal_ones(herd, chosen, sigma, common, blank, seed):
    """Two videos, whose tracks are paired in every way."""
    by = Tracks(sigma=sigma, **chosen)
    videos = [tracked((seed, number), herd) for number in range(2)]
    expected = twin.identity(followed(videos, by), by.match_threshold, common, blank)
    assert measured((Identity(of=by, common=common, undefined=blank),), *videos) == close(expected)


@MODEST
@given(herds, rules, sigmas, seeds)
def test_identity_switches_are_where_they_happen(herd, chosen, sigma, seed):
    """Frame, true track, and both predicted ones."""
    by = Tracks(sigma=sigma, **chosen)
    truth, pred = tracked(seed, herd)
    (expected,) = followed([(truth, pred)], by)
    found = identity_switches(element_rows("a", "", by.measure(pred, truth, None)))
    assert sorted(one[1:] for one in found) == sorted(
        (one.frame, one.truth, one.before, one.after) for one in twin.switches(expected)
    )


def every_metric(by: Tracks) -> tuple[Metric, ...]:
    """All that speak of tracks."""
    return ClearMOT(of=by), HOTA(of=by), Identity(of=by)


@FEW
@given(herds, rules, sigmas, seeds)
def test_the_order_of_a_file_changes_nothing(herd, chosen, sigma, seed):
    """Frames in any order change no bit; who stands first in a frame has no advantage."""
    by, rng = Tracks(sigma=sigma, **chosen), np.random.default_rng(seed)
    truth, pred = tracked(seed, herd)
    followed([(truth, pred)], by)
    expected = measured(every_metric(by), (truth, pred))
    backwards = [poses.take(np.argsort(-poses.frame, kind="stable")) for poses in (truth, pred)]
    np.testing.assert_equal(measured(every_metric(by), (backwards[0], backwards[1])), expected)
    if by.matching != "established":  # where the first truth of those that want the same has it
        shuffled = [poses.take(rng.permutation(len(poses))) for poses in (truth, pred)]
        assert measured(every_metric(by), (shuffled[0], shuffled[1])) == close(expected)


@FEW
@given(herds, rules, sigmas, seeds)
def test_names_of_nodes_and_tracks_are_names(herd, chosen, sigma, seed):
    """Nodes in another order on one side; tracks with other numbers."""
    by, rng = Tracks(sigma=sigma, **chosen), np.random.default_rng(seed)
    truth, pred = tracked(seed, herd)
    followed([(truth, pred)], by)
    order, numbers = rng.permutation(herd.nodes), rng.permutation(100)
    turned = replace(pred, nodes=tuple(pred.nodes[node] for node in order), points=pred.points[:, order])
    renamed = [replace(poses, track=np.where(poses.track < 0, -1, numbers[poses.track])) for poses in (truth, turned)]
    found = measured(every_metric(by), (renamed[0], renamed[1]))
    assert found == close(measured(every_metric(by), (truth, pred)))


@FEW
@given(herds, rules, sigmas, st.tuples(st.integers(-9999, 9999), st.integers(-9999, 9999)), seeds)
def test_where_the_origin_is_changes_no_bit(herd, chosen, sigma, shift, seed):
    """Everything moved by whole pixels, and by whole frames."""
    by = Tracks(sigma=sigma, **chosen)
    truth, pred = tracked(seed, herd)
    followed([(truth, pred)], by)
    moved = [
        replace(poses, points=poses.points + shift, frame=poses.frame + 7, labelled=poses.labelled + 7)
        for poses in (truth, pred)
    ]
    found = measured(every_metric(by), (moved[0], moved[1]))
    np.testing.assert_equal(found, measured(every_metric(by), (truth, pred)))


@FEW
@given(herds, rules, sigmas, layouts, seeds)
def test_the_order_of_the_videos_and_the_layout_change_no_bit(herd, chosen, sigma, layout, seed):
    """Three videos of twelve nodes at once; backwards, one by one and merged, in any memory layout."""
    metrics = every_metric(Tracks(sigma=sigma, **chosen))
    videos = {name: tracked((seed, number), replace(herd, nodes=12)) for number, name in enumerate("abc")}
    whole, parts = Meter(*metrics), Meter(*metrics)
    whole.update(ids=list(videos), truth=[t for t, _ in videos.values()], pred=[p for _, p in videos.values()])
    for name in reversed(videos):
        truth, pred = (replace(poses, points=laid_out(poses.points, layout)) for poses in videos[name])
        one = Meter(*metrics)
        one.update(ids=[name], truth=[truth], pred=[pred])
        parts.merge(one)
    np.testing.assert_equal(parts.compute(), whole.compute())


def line(*instances: tuple[int, int, float], **given: Any) -> Poses:
    """Instances of one node, (frame, track, place): of places d apart the similarity is 1 - d / 10 (`near=10`)."""
    frame, track, place = zip(*instances, strict=True)
    return make_poses([[[x, 0]] for x in place], frame, track=track, **given)


@pytest.mark.parametrize("first", [1, 2])
def test_of_two_truths_that_want_one_track_the_first_keeps_it(first: int) -> None:
    """1 had track 7, then 2 had it while 1 was away; now they are both there, with 7 and 8."""
    last = [(2, 1, 1.0), (2, 2, 0.0)]
    truth = line((0, 1, 0.0), (1, 2, 0.0), *(last if first == 1 else reversed(last)))
    pred = line((0, 7, 0.0), (1, 7, 0.0), (2, 7, 0.0), (2, 8, 3.0))
    by = Tracks(matching="established", near=10.0)
    found = identity_switches(element_rows("a", "", by.measure(pred, truth, None)))
    assert [one[1:] for one in found] == [(2, 3 - first, 7, 8)]
    assert ClearMOT(of=by)(pred, truth)["CLR_TP"] == 4


@pytest.mark.parametrize("matching, similarity", [("previous", 0.6), ("established", 0.6), ("frame", 0.55)])
def test_who_is_too_far_has_no_say(matching: str, similarity: float) -> None:
    """.6 + 0 is less than .45 + .55, but .45 is no match; frame by frame, the threshold comes after."""
    truth, pred = line((0, 1, 0.0), (0, 2, 8.5)), line((0, 7, 4.0), (0, 8, -5.5))
    found = ClearMOT(of=Tracks(matching=matching, near=10.0))(pred, truth)
    assert (found["CLR_TP"], found["MOTP"]) == (1, pytest.approx(similarity))


def test_who_is_too_far_excuses_nobody() -> None:
    """As before, and the second truth does not count: its .55 with the first prediction is less than the first's .6."""
    truth = line((0, 1, 0.0), (0, 2, 8.5), ignore=[False, True])
    found = ClearMOT(of=Tracks(near=10.0))(line((0, 7, 4.0), (0, 8, -5.5)), truth)
    assert (found["CLR_TP"], found["CLR_FP"], found["n_dont_care"]) == (1, 1, 0)


def test_hota_pairs_those_whose_tracks_go_together() -> None:
    """In the last frame 7 is there exactly, and 8, which was with the truth for longer, at .7. Alignment of 7:
    C / (4 + 2 - C) = 27 / 75 with C = 1 + 10 / 17; of 8: C / (4 + 3 - C) = 41 / 78 with C = 2 + 7 / 17, and .7 of that
    is more."""
    truth = line(*((frame, 1, 0.0) for frame in range(4)))
    pred = line((0, 7, 0.0), (1, 8, 0.0), (2, 8, 0.0), (3, 7, 0.0), (3, 8, 3.0))
    assert HOTA(of=Tracks(near=10.0))(pred, truth)["LocA_0"] == pytest.approx((1 + 1 + 1 + 0.7) / 4)


@pytest.mark.parametrize("matched, above, at_least", [(4, (0, 1, 0), (1, 0, 0)), (1, (0, 1, 0), (0, 1, 0))])
def test_exactly_four_fifths_and_one_fifth(matched: int, above: Any, at_least: Any) -> None:
    """Mostly, partly, mostly lost, of a track of five frames."""
    truth, pred = line(*((frame, 1, 0.0) for frame in range(5))), line(*((frame, 7, 0.0) for frame in range(matched)))
    for mostly, expected in (("above", above), ("from", at_least)):
        found = ClearMOT(mostly=mostly)(pred, truth)
        assert (found["MT"], found["PT"], found["ML"]) == expected


@pytest.mark.parametrize("side", ["truth", "prediction"])
def test_a_track_is_in_one_place(side: str) -> None:
    """An individual that is in a frame twice has no one answer."""
    once, twice = line((0, 1, 0.0), (0, 2, 5.0)), line((0, 1, 0.0), (0, 1, 5.0), name="cage")
    with pytest.raises(InputError, match=f"the {side} of cage has several instances of track 1 in frame 0"):
        HOTA()(*((once, twice) if side == "truth" else (twice, once)))


@pytest.mark.parametrize("scale", [1e154, 1e200, 1e307])
def test_hostile_coordinates_are_no_crash(scale: float) -> None:
    """Areas and distances that overflow are no match; the other one is."""
    body = np.array([[0, 0], [10, 0], [10, 10], [0, 10]], float)
    truth, pred = (make_poses([side * body * scale, body], [0, 0], track=[1, 2]) for side in (1, -1))
    found = measured(every_metric(Tracks()), (truth, pred))
    assert (found["CLR_TP"], found["IDTP"], found["HOTA_TP"]) == (1, 1, 1)
