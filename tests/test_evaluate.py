"""Evaluating from Python: whatever holds the same pixels scores the same, and no policy cuts or invents in silence."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from clips import moving, noisy, pair, rectangle, save, write_video
from test_sources import rle

from karat import BlurSSIM, CannyF1, InputError, KaratError, Meter, UsageError, evaluate
from karat.block import BLOCK_BYTES
from karat.sources import open_stream

SETTINGS = {"blur_ssim.blur": "gaussian"}
TRUTH, PRED = moving(), noisy(moving())
MASK = rectangle()
COUNTS = ("n", "undefined", "excluded", "failed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


def run(pred=PRED, truth=TRUTH, **more):
    given = {"settings": None if "metrics" in more else SETTINGS, "cache": False, "workers": 1, **more}
    return evaluate("transfer", pred=pred, truth=truth, **given)


def values(result):
    return {name: one.value for name, one in result.scores.items()}


def counts(result, name):
    return [getattr(result.scores[name], count) for count in COUNTS]


def reasons(result):
    return " ".join(failure.reason for failure in result.failures)


class Announced:
    """Like a tensor: it has a type of its own and NumPy's protocol."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Shared:
    """Like a tensor that speaks DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


# --- sources


WHOLE = values(run())


def frame_folders(home, clip):
    for index, frame in enumerate(clip):
        (home / "a").mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(home / "a" / f"frame_{index}.png"), frame[..., ::-1])
    return home


def flat_folder(home, clip):
    frame_folders(home, clip)
    return home / "a"


def npy(home, clip):
    home.mkdir()
    np.save(home / "a.npy", clip)
    return home


SOURCES = {
    "npz": lambda home, clip: save(home, {"a": {"frames": clip, "other": np.zeros(3)}}),
    "npz of one array": lambda home, clip: save(home, {"a": {"anything": clip}}),
    "npz file": lambda home, clip: save(home, {"a": {"frames": clip}}) / "a.npz",
    "npy": npy,
    "frame folders": frame_folders,
    "one frame folder": flat_folder,
    "list": lambda _, clip: [clip],
    "batch": lambda _, clip: clip[None],
    "dict": lambda _, clip: {"a": clip},
    "dict of files": lambda home, clip: {"a": save(home, {"x": {"frames": clip}}) / "x.npz"},
    "dict of names": lambda home, clip: {"a": str(save(home, {"x": {"frames": clip}}) / "x.npz")},
    "announced": lambda _, clip: Announced(clip),
    "shared": lambda _, clip: Shared(clip.copy()),
    "list of shared": lambda _, clip: [Shared(clip.copy())],
    "fortran": lambda _, clip: np.asfortranarray(clip),
    "rgba": lambda _, clip: np.concatenate([clip, np.full_like(clip[..., :1], 255)], -1),
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_pixels_give_the_same_scores(tmp_path, source):
    given = SOURCES[source]
    assert values(run(given(tmp_path / "p", PRED), given(tmp_path / "t", TRUTH))) == WHOLE


def test_a_video_scores_as_its_decoded_frames(tmp_path):
    pred, truth = pair(tmp_path, "ab")
    decoded = {
        side: {name: np.stack(list(open_stream(folder / f"{name}.mp4", "frames"))) for name in "ab"}
        for side, folder in (("pred", pred), ("truth", truth))
    }
    assert values(run(pred, truth)) == values(run(**decoded))


def test_tensors_where_torch_is_there():
    torch = pytest.importorskip("torch")
    tensors = {"pred": torch.from_numpy(PRED.copy()), "truth": torch.from_numpy(TRUTH.copy())}
    assert values(run(**tensors)) == WHOLE


def test_arrays_and_files_pair_by_id(tmp_path):
    truth = save(tmp_path / "t", {"a": {"frames": TRUTH}, "b": {"frames": TRUTH}})
    result = run({"b": PRED, "a": PRED, "stray": PRED}, truth)
    assert result.samples == ("a", "b")
    assert values(result) == pytest.approx(WHOLE, rel=1e-12)
    assert any("1 pred without a truth left out, the first is 'stray'" in note for note in result.notes)
    one = {"a": {"frames": TRUTH}}
    assert values(run(PRED, save(tmp_path / "one", one) / "a.npz")) == WHOLE


def test_the_mean_is_over_samples():
    other = noisy(moving(1), 1, 90)
    each = [values(run(p, t)) for p, t in ((PRED, TRUTH), (other, moving(1)))]
    both = run([PRED, other], [TRUTH, moving(1)])
    for name, value in values(both).items():
        assert value == pytest.approx((each[0][name] + each[1][name]) / 2, rel=1e-12)
    for index, name in enumerate(both.samples):
        assert both.sample_scores[name] == each[index]


def test_a_number_has_one_spelling():
    plain = BlurSSIM(data_range=200, blur_size=9, blur_sigmas=(30, 40))
    assert BlurSSIM(data_range=np.float64(200), blur_size=np.int64(9), blur_sigmas=(30.0, np.float32(40))) == plain
    assert repr(BlurSSIM(data_range=np.float64(200), blur_size=9, blur_sigmas=(30.0, 40.0))) == repr(plain)
    assert "np." not in CannyF1(low=np.float64(50)).identity()


def test_the_meter_agrees():
    meter = Meter(CannyF1())
    meter.update(pred=PRED[None], truth=TRUTH[None], ids=["a"])
    scores = meter.compute()
    assert scores == {name: WHOLE[name] for name in scores}
    assert CannyF1()(PRED, TRUTH) == scores


@pytest.mark.parametrize("cut", [np.s_[:1], np.s_[0, 0], np.s_[..., None]], ids=["frames", "row", "channels"])
def test_a_mask_of_other_frames_is_refused(cut):
    mask = np.ones(TRUTH.shape[:3], bool)[cut]
    meter = Meter(CannyF1(), regions=["sky"])
    with pytest.raises(UsageError, match="'sky' has shape"):
        CannyF1()(PRED, TRUTH, regions={"sky": mask})
    with pytest.raises(UsageError, match="'sky' has shape"):
        meter.update(pred=PRED[None], truth=TRUTH[None], masks={"sky": mask[None]})


# --- policies


def test_unequal_lengths(tmp_path):
    write_video(tmp_path / "p" / "a.mp4", np.concatenate([PRED, PRED]))
    write_video(tmp_path / "t" / "a.mp4", TRUTH)
    files = tmp_path / "p", tmp_path / "t"
    for given in (files, (np.concatenate([PRED, PRED]), TRUTH), files[::-1], (PRED[:2], TRUTH)):
        result = run(*given)
        assert counts(result, "blur_ssim") == [0, 0, 0, 1]
        assert "--on-length truncate" in reasons(result)
        cut = run(*given, on_length="truncate")
        assert counts(cut, "blur_ssim") == [1, 0, 0, 0]
        assert "1 sample cut to the shorter side." in cut.notes
    assert values(run(np.concatenate([PRED, PRED]), TRUTH, on_length="truncate")) == WHOLE
    assert values(run(PRED[:2], TRUTH, on_length="truncate")) == values(run(PRED[:2], TRUTH[:2]))


def test_unequal_sizes():
    small = np.stack([cv2.resize(frame, (32, 24), interpolation=cv2.INTER_AREA) for frame in PRED])
    result = run(small, TRUTH)
    assert counts(result, "canny_f1_score") == [0, 0, 0, 1]
    assert "--on-size resize" in reasons(result)
    back = np.stack([cv2.resize(frame, (64, 48), interpolation=cv2.INTER_LINEAR) for frame in small])
    resized = run(small, TRUTH, on_size="resize")
    assert values(resized) == values(run(back, TRUTH))
    assert "pred of 1 sample resized to the truth." in resized.notes


def test_first_and_stride():
    assert values(run(frames=3)) == values(run(PRED[:3], TRUTH[:3]))
    assert values(run(stride=2)) == values(run(PRED[::2], TRUTH[::2]))
    assert values(run(frames=3, stride=2)) == values(run(PRED[:3:2], TRUTH[:3:2]))
    assert values(run(frames=2)) == values(run(PRED, TRUTH[:2], frames=2))
    assert values(run(frames=2, masks=MASK)) == values(run(PRED[:2], TRUTH[:2], masks=MASK[:2]))
    assert values(run(stride=2, masks=MASK)) == values(run(PRED[::2], TRUTH[::2], masks=MASK[::2]))
    for wrong in ({"frames": 0}, {"stride": 0}, {"stride": -1}):
        with pytest.raises(UsageError):
            run(**wrong)


@pytest.mark.parametrize(
    ("convert", "value_range"),
    [
        (lambda clip: clip / 255, (0, 1)),
        (lambda clip: (clip / 255).astype(np.float32), (0, 1)),
        (lambda clip: clip / 127.5 - 1, (-1, 1)),
        (lambda clip: clip.astype(np.float32), (0, 255)),
        (lambda clip: (clip / 255).astype(np.float16), (0, 1)),
    ],
)
def test_floats_in_a_declared_range(convert, value_range):
    assert values(run(convert(PRED), convert(TRUTH), value_range=value_range)) == pytest.approx(WHOLE, rel=1e-9)
    assert "--range" in reasons(run(convert(PRED), TRUTH))


def test_floats_outside_their_range_and_nan():
    assert "outside the declared range" in reasons(run(PRED / 1.0, TRUTH, value_range=(0, 1)))
    holes = np.where(PRED > 200, np.nan, PRED / 255.0)
    assert "holds NaN, which is in no range" in reasons(run(holes, TRUTH, value_range=(0, 1)))
    broken = PRED / 255
    broken[2, 3, 4] = np.nan
    result = run(broken, TRUTH / 255, value_range=(0, 1))
    assert counts(result, "blur_ssim") == [0, 0, 0, 1]
    for wrong in ((1, 0), (0, 0), (0, np.inf), (np.nan, 1), (-np.inf, 0)):
        with pytest.raises(UsageError):
            run(PRED / 255, TRUTH / 255, value_range=wrong)


# --- masks


def test_a_mask_leaves_the_whole_alone():
    assert {name: one for name, one in values(run(masks=MASK)).items() if "@" not in name} == pytest.approx(
        WHOLE, abs=1e-12
    )


def test_static_masks_hold_for_every_frame():
    static = np.broadcast_to(MASK[0], MASK.shape).copy()
    every = values(run(masks=static))
    assert values(run(masks={"x": MASK[0]}))["blur_ssim@x"] == every["blur_ssim@foreground"]
    assert values(run(masks=MASK[0])) == every
    assert values(run(masks=MASK[0])) == values(run(masks=MASK[0].astype(np.uint8) * 255))


def test_static_mask_files_and_pictures(tmp_path):
    every = values(run({"a": PRED}, {"a": TRUTH}, masks={"m": {"a": np.broadcast_to(MASK[0], MASK.shape).copy()}}))
    npz = save(tmp_path / "npz", {"a": {"mask": MASK[0]}})
    cv2.imwrite(str(tmp_path / "a.png"), MASK[0].astype(np.uint8) * 255)
    for source in (npz, {"a": tmp_path / "a.png"}):
        assert values(run({"a": PRED}, {"a": TRUTH}, masks={"m": source})) == every
    assert values(run(PRED, TRUTH, masks={"m": tmp_path / "a.png"})) == every


def test_pictures_named_as_samples_are_one_each(tmp_path):
    clips = [dict.fromkeys(("a", "sub/b"), clip) for clip in (PRED, TRUTH)]
    (tmp_path / "m" / "sub").mkdir(parents=True)
    for name in ("a_fg", "sub/b_fg", "sub/c_fg"):
        cv2.imwrite(str(tmp_path / "m" / f"{name}.png"), MASK[0].astype(np.uint8) * 255)
    result = run(*clips, masks=tmp_path / "m", id_pattern="^(.*?)(?:_fg)?$")
    assert values(result) == pytest.approx(values(run(masks=MASK[0])), rel=1e-12)
    assert "1 mask without a truth left out, the first is 'sub/c'." in result.notes


def test_static_masks_over_several_blocks():
    pred, truth = (np.concatenate([clip] * 4).repeat(8, axis=1).repeat(8, axis=2) for clip in (PRED, TRUTH))
    mask = MASK[0].repeat(8, axis=0).repeat(8, axis=1)
    assert truth.nbytes > 2 * BLOCK_BYTES, "more than two blocks"
    given = {"metrics": ["psnr"]}
    assert values(run(pred, truth, masks=mask, **given)) == values(
        run(pred, truth, masks=np.broadcast_to(mask, truth.shape[:3]).copy(), **given)
    )


def test_masks_of_another_length_are_no_shorter_clip():
    for mask in (MASK[:2], np.concatenate([MASK, MASK])):
        result = run(masks=mask)
        assert counts(result, "blur_ssim") == [0, 0, 0, 1]
        assert "mask" in reasons(result)
        assert f"{len(mask)} frames" in reasons(result)
        cut = run(masks=mask, on_length="truncate")
        assert counts(cut, "blur_ssim") == [1, 0, 0, 0]
        count = min(len(mask), len(TRUTH))
        assert values(cut) == values(run(PRED[:count], TRUTH[:count], masks=mask[:count]))
        assert "1 sample cut to the shorter side." in cut.notes


def test_masks_of_another_size():
    small = np.stack([cv2.resize(mask.astype(np.uint8), (32, 24), interpolation=cv2.INTER_NEAREST) for mask in MASK])
    result = run(masks=small)
    assert counts(result, "blur_ssim") == [0, 0, 0, 1]
    assert "--on-size resize" in reasons(result)
    resized = run(masks=small, on_size="resize")
    assert counts(resized, "blur_ssim@foreground") == [1, 0, 0, 0]
    assert values(resized) == pytest.approx(values(run(masks=MASK)), abs=0.05)
    assert any("mask" in note and "resized" in note for note in resized.notes)


def test_weights():
    half = np.where(MASK, 0.5, 0.0)
    assert values(run(masks={"m": half}))["blur_ssim@m"] == pytest.approx(
        values(run(masks={"m": MASK}))["blur_ssim@m"], rel=1e-12
    )
    both = values(run(masks=MASK.astype(float)))
    assert both == pytest.approx(values(run(masks=MASK)), rel=1e-12)
    assert "weights" in reasons(run(masks=-half)).lower()
    assert run(masks=np.where(MASK, np.nan, 0.0)).failures
    assert run(masks=2.0 * MASK).failures or not np.isinf(values(run(masks=2.0 * MASK))["blur_ssim@background"])


def test_named_masks_stand_beside_each_other():
    result = run(masks={"in": MASK, "out": ~MASK})
    plain = run(masks=MASK)
    assert values(result)["blur_ssim@in"] == values(plain)["blur_ssim@foreground"]
    assert values(result)["canny_f1_score@out"] == values(plain)["canny_f1_score@background"]
    assert "regions:all+in+out" in result.signature


def test_empty_masks_are_undefined():
    result = run(masks=np.zeros_like(MASK))
    assert counts(result, "blur_ssim@foreground") == [0, 1, 0, 0]
    assert counts(result, "canny_f1_score@foreground") == [0, 1, 0, 0]
    assert values(result)["blur_ssim@background"] == pytest.approx(WHOLE["blur_ssim"], abs=1e-12)
    some = MASK.copy()
    some[0] = False
    result = run(masks=some)
    assert counts(result, "blur_ssim@foreground") == [1, 0, 0, 0]
    assert any("blur_ssim@foreground: 1 frame of 1 sample undefined" in note for note in result.notes)


@pytest.mark.parametrize("name", ["", "all"])
def test_regions_that_cannot_be_named_so(name):
    with pytest.raises(UsageError):
        run(masks={name: MASK})


def test_a_missing_mask_costs_its_sample():
    result = run({"a": PRED, "b": PRED}, {"a": TRUTH, "b": TRUTH}, masks={"m": {"a": MASK}})
    assert counts(result, "blur_ssim@m") == [1, 0, 0, 1]
    assert [failure.sample for failure in result.failures] == ["b"]


# --- depth


DEPTH = 2 + 3 * MASK + np.linspace(0, 1, 64)
PRED_DEPTH = 1.1 * DEPTH + 0.3 * MASK


def depth(pred_depth=PRED_DEPTH, truth_depth=DEPTH, **more):
    return run(pred_depth=pred_depth, truth_depth=truth_depth, metrics=["depth_rmse"], **more)


def tiff(home, clip):
    home.mkdir()
    cv2.imwritemulti(str(home / "a.tiff"), list(clip.astype(np.float32)))
    return home


def png16(home, clip):
    (home / "a").mkdir(parents=True)
    for index, frame in enumerate(clip):
        cv2.imwrite(str(home / "a" / f"{index}.png"), frame.astype(np.uint16))
    return home


def test_depth_sources_agree(tmp_path):
    pred, truth = (np.rint(1000 * clip).astype(np.uint16) for clip in (PRED_DEPTH, DEPTH))
    clips = {"pred": {"a": PRED}, "truth": {"a": TRUTH}}
    expected = values(depth({"a": pred}, {"a": truth}, **clips))
    assert expected["depth_si_rmse"] > 0
    sources = {
        "npz": lambda home, clip: save(home, {"a": {"depth": clip}}),
        "data": lambda home, clip: save(home, {"a": {"data": clip, "more": clip}}),
        "npy": npy,
        "png16": png16,
        "tiff": tiff,
        "dict of tiff": lambda home, clip: {"a": tiff(home, clip) / "a.tiff"},
        "float": lambda _, clip: {"a": clip.astype(np.float32)},
    }
    for name, given in sources.items():
        (tmp_path / name).mkdir()
        result = depth(given(tmp_path / name / "p", pred), given(tmp_path / name / "t", truth), **clips)
        assert values(result) == pytest.approx(expected, rel=1e-12), name


def test_invalid_depth_is_left_out():
    truth = DEPTH.copy()
    truth[:, :5], truth[:, 5:9], truth[:, 9] = np.nan, 0, np.inf
    pred = PRED_DEPTH.copy()
    pred[:, 40:] = np.nan
    expected = depth(PRED_DEPTH[:, 10:40], DEPTH[:, 10:40])
    result = depth(pred, truth)
    assert values(result) == pytest.approx(values(expected), rel=1e-12)
    lost = (5 + 1 + len(pred[0]) - 40) * DEPTH.shape[2] * len(DEPTH)
    assert f"Depth of {lost} pixels in {len(DEPTH)} frames is NaN or infinite: left out." in result.notes
    assert not any("infinite" in note for note in expected.notes)


def test_frames_without_valid_depth_are_undefined_and_counted():
    truth = DEPTH.copy()
    truth[1] = np.nan
    kept = [0, 2, 3]
    result = depth(PRED_DEPTH, truth)
    assert values(result) == pytest.approx(
        values(depth(PRED_DEPTH[kept], DEPTH[kept], pred=PRED[kept], truth=TRUTH[kept]))
    )
    assert any("depth_si_rmse: 1 frame of 1 sample undefined and left out" in note for note in result.notes)
    assert counts(depth(PRED_DEPTH, np.zeros_like(DEPTH)), "depth_si_rmse") == [0, 1, 0, 0]
    assert np.isnan(values(depth(PRED_DEPTH, np.zeros_like(DEPTH)))["depth_si_rmse"])


def test_depth_of_another_length_or_size():
    assert "--on-length truncate" in reasons(depth(PRED_DEPTH[:2]))
    assert values(depth(PRED_DEPTH[:2], on_length="truncate")) == values(
        depth(PRED_DEPTH[:2], DEPTH[:2], pred=PRED[:2], truth=TRUTH[:2])
    )
    assert "--on-size resize" in reasons(depth(PRED_DEPTH[:, ::2, ::2]))
    assert counts(depth(PRED_DEPTH[:, ::2, ::2], on_size="resize"), "depth_si_rmse") == [1, 0, 0, 0]


def test_depth_in_a_region():
    result = depth(masks=MASK)
    inside = np.where(MASK, DEPTH, np.nan)
    assert values(result)["depth_si_rmse@foreground"] == pytest.approx(
        values(depth(PRED_DEPTH, inside))["depth_si_rmse"]
    )
    assert values(result)["depth_si_rmse"] == pytest.approx(values(depth())["depth_si_rmse"], rel=1e-12)


# --- segments


LABELS = np.zeros(MASK.shape, np.uint8)
LABELS[:, 30:44, 40:60] = 1
LABELS[MASK] = 2
PRED_LABELS = np.roll(LABELS, 3, axis=2)


def stack(labels):
    return np.stack([labels == label for label in (1, 2)])


def coco(home, labels):
    home.mkdir()
    objects = [{"label": str(label), "segmentations": [rle(frame == label) for frame in labels]} for label in (1, 2)]
    (home / "a.json").write_text(json.dumps(objects))
    return home


def label_pngs(home, labels):
    (home / "a").mkdir(parents=True)
    for index, frame in enumerate(labels):
        cv2.imwrite(str(home / "a" / f"{index}.png"), frame)
    return home


SEGMENTS = {
    "labels npz": lambda home, labels: save(home, {"a": {"labels": labels}}),
    "masks npz": lambda home, labels: save(home, {"a": {"masks": stack(labels)}}),
    "stack": lambda _, labels: {"a": stack(labels)},
    "int64": lambda _, labels: {"a": labels.astype(np.int64)},
    "large labels": lambda _, labels: {"a": labels.astype(np.int64) * 100_000},
    "png": label_pngs,
    "json": coco,
    "named": lambda home, labels: save(home, {"a": {"labels": labels, "names": np.array(["x", "y"])}}),
}


def segments(pred, truth, **more):
    return run({"a": PRED}, {"a": TRUTH}, pred_segments=pred, truth_segments=truth, metrics=["segment_iou"], **more)


@pytest.mark.parametrize("source", SEGMENTS)
def test_segment_sources_agree(tmp_path, source):
    expected = values(segments({"a": PRED_LABELS}, {"a": LABELS}))
    assert 0 < expected["seg_m_iou"] < 1
    given = SEGMENTS[source]
    (tmp_path / "x").mkdir()
    assert values(segments(given(tmp_path / "x" / "p", PRED_LABELS), given(tmp_path / "x" / "t", LABELS))) == expected
    assert values(segments(given(tmp_path / "x" / "q", PRED_LABELS), {"a": LABELS})) == expected


def test_no_segments_predicted_scores_nothing(tmp_path):
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "a.json").write_text("[]")
    for nothing in ({"a": np.zeros_like(LABELS)}, {"a": stack(LABELS)[:0]}, tmp_path / "j"):
        result = segments(nothing, {"a": LABELS})
        assert counts(result, "seg_recall") == [1, 0, 0, 0]
        assert values(result)["seg_recall"] == 0
        assert values(result)["seg_m_iou_all_gt"] == 0


def test_segments_without_a_name_are_left_out_and_counted(tmp_path):
    masks = stack(LABELS)
    names = np.array(["", *(str(i) for i in range(1, len(masks)))])
    truth = save(tmp_path / "t", {"a": {"masks": masks, "names": names}})
    result = segments({"a": masks}, truth)
    assert "1 segment without a name in truth_segments: left out." in result.notes
    assert result.scores["seg_n_pred_unmatched"].value == 1


def test_no_true_segment_is_undefined():
    result = segments({"a": PRED_LABELS}, {"a": np.zeros_like(LABELS)})
    assert counts(result, "seg_m_iou") == [0, 1, 0, 0]
    assert values(result)["seg_n_pred_unmatched"] == 2


def test_segments_of_another_length_or_size():
    assert "--on-length truncate" in reasons(segments({"a": PRED_LABELS[:2]}, {"a": LABELS}))
    assert "--on-size resize" in reasons(segments({"a": PRED_LABELS[:, ::2, ::2]}, {"a": LABELS}))
    resized = segments({"a": PRED_LABELS[:, ::2, ::2]}, {"a": LABELS}, on_size="resize")
    assert values(resized)["seg_recall"] == 1


# --- what is lacking


def test_missing_fields_name_the_flag():
    with pytest.raises(UsageError, match="--truth"):
        evaluate("transfer", pred=PRED)
    with pytest.raises(UsageError, match="--truth-depth"):
        run(pred_depth=PRED_DEPTH)
    with pytest.raises(UsageError, match="--pred-segments and --truth-segments"):
        run(metrics=["segment_iou"])
    with pytest.raises(UsageError, match="nonsense"):
        run(nonsense=PRED)
    with pytest.raises(UsageError, match="transfer"):
        evaluate("nonsense", pred=PRED, truth=TRUTH)
    assert any("--pred-depth and --truth-depth" in note for note in run().notes)


@pytest.mark.parametrize(
    "value",
    [None, 3, 3.5, "nowhere", object(), [], {}, {1: PRED}, np.array([object()]), b"bytes", {"a": 3}],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_no_clips(value):
    with pytest.raises(KaratError) as caught:
        run(pred=value)
    assert str(caught.value).isprintable()


def test_odd_shapes_cost_one_sample():
    good = dict.fromkeys("abcd", TRUTH)
    result = run({"a": PRED, "b": PRED[..., 0, :2], "c": PRED.astype(complex), "d": np.zeros(3)}, good)
    assert counts(result, "blur_ssim") == [1, 0, 0, 3]
    assert values(result) == WHOLE


def test_strict_raises_what_was_wrong():
    with pytest.raises(InputError, match=r"'?b'?: .*truncate"):
        run({"a": PRED, "b": PRED[:2]}, {"a": TRUTH, "b": TRUTH}, strict=True)


def test_one_frame_and_tiny_frames():
    assert counts(run(PRED[:1], TRUTH[:1]), "blur_ssim") == [1, 0, 0, 0]
    tiny = run(PRED[:, :3, :3], TRUTH[:, :3, :3])
    assert sum(counts(tiny, "blur_ssim")) == 1
    grey = run(PRED[..., 0], TRUTH[..., 0])
    assert counts(grey, "blur_ssim") == [1, 0, 0, 0]


def test_results_read_like_results(capsys):
    result = run(masks=MASK)
    assert "blur_ssim" in repr(result)
    assert result.notes
    assert list(result.plain()) == ["suite", "protocol", "signature", "scores", "notes"]
    assert capsys.readouterr() == ("", "")
