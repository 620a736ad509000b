"""Boxes and masks of one object a video: the same from every file that may hold them, and the published data files."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import karat
from karat.errors import InputError
from karat.run import Run
from karat.sources.kinds import RECORDS
from karat.sources.tube_files import read_tubes
from karat.sources.tubes import Tube, inverted

pytestmark = pytest.mark.filterwarnings("ignore:__array__")  # of pycocotools
DATA = Path(__file__).parents[1].parent / "shared" / "data" / "control"
HEIGHT, WIDTH, FRAMES = 12, 20, 9
IDS = ("1", "2", "clip (1)", "a/b")
COUNTS = {"ssv2": (322, 6651), "imc": (126, 2016), "lasot": (456, 10944), "davis": (40, 960)}
Array = NDArray[Any]


def boxes_of(own: str) -> list[list[float] | None]:
    """Whole pixels within the frame; in some frames nothing."""
    rng = np.random.default_rng([*own.encode()])
    low = rng.integers(0, (WIDTH - 5, HEIGHT - 5), (FRAMES, 2))
    high = low + rng.integers(2, 6, (FRAMES, 2))
    return [None if rng.random() < 0.2 else [*map(float, a), *map(float, b)] for a, b in zip(low, high, strict=True)]


def masks_of(own: str) -> Array:
    """The masks that fill these boxes."""
    masks = np.zeros((FRAMES, HEIGHT, WIDTH), bool)
    for mask, box in zip(masks, boxes_of(own), strict=True):
        if box is not None:
            x1, y1, x2, y2 = map(int, box)
            mask[y1:y2, x1:x2] = True
    return masks


def shapes_of(own: str) -> Array:
    """Masks that fill no box."""
    rng = np.random.default_rng([*own.encode(), 7])
    return masks_of(own) & (rng.random((FRAMES, HEIGHT, WIDTH)) < 0.8)


def array_of(own: str) -> Array:
    """The boxes with NaN where there is none."""
    return np.array([box or [np.nan] * 4 for box in boxes_of(own)])


@pytest.fixture(scope="module")
def truth() -> list[dict[str, Any]]:
    """Boxes on a grid that is not that of the predictions."""
    rng = np.random.default_rng(1)
    asked = np.sort(rng.integers(0, 33, (len(IDS), FRAMES, 2, 2)) / 32, axis=2).reshape(len(IDS), FRAMES, 4)
    return [{"id": own, "bboxes": boxes.tolist()} for own, boxes in zip(IDS, asked, strict=True)]


def rows_of(truth: Any, pred: Any, protocol: str = "spec") -> dict[str, list[str]]:
    """All columns that were measured, to the last bit, but for where a record is in its file."""
    run = karat.evaluate("control", truth=truth, pred=pred, protocol=protocol, workers=1, strict=True)
    rows = next(iter(run.rows.values()))
    assert rows.samples == tuple(sorted(IDS))
    return {name: list(map(repr, column.tolist())) for name, column in rows.columns.items() if name != "place"}


def run_lengths(mask: Array) -> dict[str, Any]:
    """As lists of numbers."""
    flat = mask.T.ravel()
    edges = [0, *(np.flatnonzero(np.diff(flat)) + 1).tolist(), flat.size]
    counts = np.diff(edges).tolist()
    return {"size": [*mask.shape], "counts": [0, *counts] if flat[0] else counts}


def text_lengths(mask: Array) -> dict[str, Any]:
    """As pycocotools writes them."""
    coco = pytest.importorskip("pycocotools.mask")
    return {"size": [*mask.shape], "counts": coco.encode(np.asfortranarray(mask, np.uint8))["counts"].decode()}


def saved_json(path: Path, records: Any) -> Path:
    path.with_suffix(".json").write_text(json.dumps(records))
    return path.with_suffix(".json")


def saved_npz(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez_compressed(path.with_suffix(".npz"), **arrays)
    return path.with_suffix(".npz")


def saved_tensors(path: Path, arrays: dict[str, Any]) -> Path:
    tensors = pytest.importorskip("safetensors.numpy")
    tensors.save_file(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()}, path.with_suffix(".safetensors")
    )
    return path.with_suffix(".safetensors")


def saved_pickle(path: Path, records: Any, protocol: int = 4) -> Path:
    path.with_suffix(".pkl").write_bytes(pickle.dumps(records, protocol))
    return path.with_suffix(".pkl")


def sized(own: str, **more: Any) -> dict[str, Any]:
    return {"id": own, "width": WIDTH, "height": HEIGHT, **more}


SIZE = np.array([WIDTH, HEIGHT])
OF_BOXES: dict[str, Callable[[Path], Any]] = {
    "JSON": lambda at: saved_json(at, [sized(own, bboxes=boxes_of(own)) for own in IDS]),
    "JSON, boxes": lambda at: saved_json(at, [sized(own, boxes=boxes_of(own)) for own in IDS]),
    "JSON, fractional size": lambda at: saved_json(
        at, [{**sized(own, boxes=boxes_of(own)), "width": 20.0} for own in IDS]
    ),
    "npz": lambda at: saved_npz(
        at, {k: v for own in IDS for k, v in ((f"{own}/boxes", array_of(own)), (f"{own}/size", SIZE))}
    ),
    "npz, sizes last": lambda at: saved_npz(
        at, {f"{own}/boxes": array_of(own).astype("f4") for own in IDS} | {f"{own}/size": SIZE for own in IDS}
    ),
    "safetensors": lambda at: saved_tensors(
        at, {f"{own}/boxes": array_of(own) for own in IDS} | {f"{own}/size": SIZE for own in IDS}
    ),
    "pickle": lambda at: saved_pickle(at, [sized(own, bboxes=boxes_of(own)) for own in IDS]),
    "pickle of arrays": lambda at: saved_pickle(at, [sized(own, bboxes=array_of(own)) for own in IDS]),
    "pickle of a list of arrays": lambda at: saved_pickle(
        at, [sized(own, bboxes=[None if box is None else np.array(box, "i2") for box in boxes_of(own)]) for own in IDS]
    ),
    "list": lambda _: [sized(own, bboxes=boxes_of(own)) for own in IDS],
    "tuple": lambda _: tuple(sized(own, bboxes=tuple(boxes_of(own))) for own in IDS),
    "mapping": lambda _: {own: {"boxes": array_of(own), "size": (WIDTH, HEIGHT)} for own in IDS},
    "mapping of tubes": lambda _: {
        own: RECORDS["tubes"].convert({"boxes": boxes_of(own), "size": SIZE}) for own in IDS
    },
}


@pytest.mark.parametrize("protocol", ["spec", "reference"])
@pytest.mark.parametrize("form", OF_BOXES)
def test_boxes_are_the_same_from_everywhere(truth: Any, tmp_path: Path, form: str, protocol: str) -> None:
    wanted = rows_of(truth, OF_BOXES["list"](tmp_path), protocol)
    assert rows_of(truth, OF_BOXES[form](tmp_path / "pred"), protocol) == wanted


@pytest.mark.parametrize("frames", [9, 33, 400])
@pytest.mark.parametrize("save", [saved_npz, saved_pickle])
def test_arrays_of_boxes_may_be_of_any_length(tmp_path: Path, frames: int, save: Any) -> None:
    boxes = np.tile([2.0, 3.0, 8.0, 9.0], (frames, 1))
    boxes[1] = np.nan
    given = {"7/boxes": boxes, "7/size": SIZE} if save is saved_npz else [sized("7", bboxes=boxes)]
    asked = [[0.1, 0.25, 0.4, 0.75]] * frames
    run = karat.evaluate("control", truth=[{"id": 7, "bboxes": asked}], pred=save(tmp_path / "p", given), strict=True)
    assert run.scores["ap50"].value == (frames - 1) / frames
    assert run.scores["miou"].value == pytest.approx((frames - 1) / frames)


def mask_records(how: Callable[[Array], Any], key: str = "mask") -> list[dict[str, Any]]:
    return [{"id": own, key: how(shapes_of(own))} for own in IDS]


def with_axis(masks: Array) -> Array:
    return masks[:, None]


OF_MASKS: dict[str, Callable[[Path], Any]] = {
    "run lengths as text": lambda at: saved_json(at, mask_records(lambda m: [*map(text_lengths, m)], "masks")),
    "run lengths as lists": lambda at: saved_json(at, mask_records(lambda m: [*map(run_lengths, m)], "mask")),
    "run lengths, null of nothing": lambda at: saved_json(
        at, mask_records(lambda m: [run_lengths(one) if one.any() else None for one in m], "masks")
    ),
    "npz": lambda at: saved_npz(at, {f"{own}/masks": shapes_of(own) for own in IDS}),
    "npz, bare": lambda at: saved_npz(at, {own: shapes_of(own).astype(np.uint8) for own in IDS}),
    "npz, Fortran": lambda at: saved_npz(at, {own: np.asfortranarray(shapes_of(own)) for own in IDS}),
    "npz, big-endian": lambda at: saved_npz(at, {own: shapes_of(own).astype(">i4") for own in IDS}),
    "npz, an axis of 1": lambda at: saved_npz(at, {f"{own}/masks": with_axis(shapes_of(own)) for own in IDS}),
    "safetensors": lambda at: saved_tensors(at, {f"{own}/masks": shapes_of(own) for own in IDS}),
    "safetensors, bare": lambda at: saved_tensors(at, {own: shapes_of(own).astype(np.float16) for own in IDS}),
    "pickle of lists": lambda at: saved_pickle(at, mask_records(list)),
    "pickle of lists, masks": lambda at: saved_pickle(at, mask_records(list, "masks")),
    "pickle of lists, bboxes": lambda at: saved_pickle(at, mask_records(list, "bboxes")),
    "pickle of lists (1, H, W)": lambda at: saved_pickle(at, mask_records(lambda m: [*with_axis(m)])),
    "pickle of tuples": lambda at: saved_pickle(at, mask_records(tuple)),
    "pickle of arrays": lambda at: saved_pickle(at, mask_records(np.asarray)),
    "pickle of arrays, bboxes": lambda at: saved_pickle(at, mask_records(np.asarray, "bboxes")),
    "pickle of arrays (T, 1, H, W)": lambda at: saved_pickle(at, mask_records(with_axis)),
    "list": lambda _: mask_records(list),
    "list of stacks": lambda _: mask_records(np.asarray, "bboxes"),
    "mapping": lambda _: {own: {"masks": shapes_of(own)} for own in IDS},
    "mapping of lists": lambda _: {own: {"masks": list(shapes_of(own))} for own in IDS},
    "mapping of run lengths": lambda _: {own: {"masks": [*map(text_lengths, shapes_of(own))]} for own in IDS},
}


@pytest.mark.parametrize("protocol", ["spec", "reference"])
@pytest.mark.parametrize("form", OF_MASKS)
def test_masks_are_the_same_from_everywhere(truth: Any, tmp_path: Path, form: str, protocol: str) -> None:
    wanted = rows_of(truth, OF_MASKS["list"](tmp_path), protocol)
    assert rows_of(truth, OF_MASKS[form](tmp_path / "pred"), protocol) == wanted


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float64", "int16", "float32"])
@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_every_protocol(truth: Any, tmp_path: Path, protocol: int, dtype: str) -> None:
    """With ids of every type that a pickle may have."""
    own_types = (int, str, np.int64, np.str_)
    records = [
        {"id": kind(number), "subject": "a fly", "num_bb": np.int64(FRAMES), "mask": list(shapes_of(own).astype(dtype))}
        for number, (kind, own) in enumerate(zip(own_types, IDS, strict=True))
    ]
    asked = [{**one, "id": str(number)} for number, one in enumerate(truth)]
    path = saved_pickle(tmp_path / "p", records, protocol)
    runs = [karat.evaluate("control", truth=asked, pred=pred, workers=1, strict=True) for pred in (path, records)]
    assert scores(runs[0]) == scores(runs[1])
    assert any("read from a pickle" in note and "karat convert" in note for note in runs[0].notes)
    assert not any("pickle" in note for note in runs[1].notes)


def scores(run: Run) -> dict[str, str]:
    return {name: repr(one) for name, one in run.scores.items()}


def test_one_video_alone(tmp_path: Path) -> None:
    """It needs no id where the truth has one record too."""
    asked = [{"id": "only", "bboxes": [[0.1, 0.2, 0.5, 0.9]] * FRAMES}]
    given = {
        saved_json(tmp_path / "a", {"width": WIDTH, "height": HEIGHT, "bboxes": boxes_of("1")}),
        saved_json(tmp_path / "b", {"width": WIDTH, "height": HEIGHT, "boxes": boxes_of("1")}),
        saved_json(tmp_path / "c", {"masks": [*map(run_lengths, masks_of("1"))]}),
        saved_npz(tmp_path / "d", {"boxes": array_of("1"), "size": SIZE}),
        saved_npz(tmp_path / "e", {"masks": masks_of("1")}),
        saved_npz(tmp_path / "f", {"only": masks_of("1")}),
        saved_pickle(tmp_path / "g", {"mask": list(masks_of("1"))}),
        saved_tensors(tmp_path / "h", {"boxes": array_of("1"), "size": SIZE}),
    }
    found = {path.name: karat.evaluate("control", truth=asked, pred=path, strict=True).scores["ap50"] for path in given}
    assert len({repr(one) for one in found.values()}) == 1, found


def test_a_folder_with_a_file_for_each_video(truth: Any, tmp_path: Path) -> None:
    for own in IDS[:2]:
        np.savez(tmp_path / f"{own}.npz", masks=shapes_of(own))
    few = [one for one in truth if one["id"] in IDS[:2]]
    a = karat.evaluate("control", truth=few, pred=tmp_path, workers=1)
    b = karat.evaluate("control", truth=few, pred=mask_records(list)[:2], workers=1)
    assert scores(a) == scores(b)


def test_one_id_spelled_as_text_and_as_a_number(tmp_path: Path) -> None:
    asked = [{"id": 5, "bboxes": [[0, 0, 1, 1]]}]
    box = {"width": 4, "height": 4, "bboxes": [[0, 0, 4, 4]]}
    for own in (5, "5", " 5 ", np.int32(5), np.str_("5")):
        assert karat.evaluate("control", truth=asked, pred=[{"id": own, **box}], strict=True).scores["ap50"].value == 1
    twice = saved_json(tmp_path / "p", [{"id": 5, **box}, {"id": "5", **box}])
    with pytest.raises(InputError, match="has an id that came before"):
        karat.evaluate("control", truth=asked, pred=twice)
    assert karat.evaluate("control", truth=asked, pred=twice, on_stray="note").scores["n_records"].value == 2
    with pytest.raises(InputError, match="listed more than once in the truth"):
        karat.evaluate("control", truth=[asked[0], {**asked[0], "id": "5"}], pred=[{"id": 5, **box}])


def test_ids_that_look_like_repeated_ones_are_their_own(tmp_path: Path) -> None:
    """1, 1 and "1 (2)" are three records, whatever their order."""
    box = {"width": 4, "height": 4, "bboxes": [[0, 0, 4, 4]]}
    for order in ([1, 1, "1 (2)"], ["1 (2)", 1, 1], [1, "1 (2)", 1]):
        assert len(read_tubes(saved_json(tmp_path / "p", [{"id": own, **box} for own in order]))) == 3


def test_only_arrays_of_an_archive_are_videos(tmp_path: Path) -> None:
    """Another member beside them is none."""
    path = saved_npz(tmp_path / "p", {"1": masks_of("1")})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "masks of one video")
    assert list(read_tubes(path)) == ["1"]


# --- the published files


def published(name: str) -> Path:
    path = DATA / f"{name}_inputs.json"
    if not path.is_file():
        pytest.fail(f"THE PUBLISHED BOXES ARE MISSING: {path} is not there, so they were not read.")
    return path


@pytest.mark.parametrize("name", COUNTS)
def test_published_files(name: str) -> None:
    """Records, boxes, placeholders and order are as they were counted."""
    tubes = [*read_tubes(published(name)).values()]
    boxes = np.concatenate([one.boxes for one in tubes])
    assert (len(tubes), len(boxes)) == COUNTS[name]
    assert not any(one.damage or one.repeated for one in tubes)
    placeholders, zeros = (boxes == 0.5).all(axis=1), (boxes == 0).all(axis=1)
    wanted = {"ssv2": (780, 0), "lasot": (0, 111)}.get(name, (0, 0))
    assert (placeholders.sum(), zeros.sum()) == wanted
    assert {one.order for one in tubes} == {"x1x2y1y2" if name == "lasot" else "x1y1x2y2"}
    if name == "ssv2":
        assert sum(bool((one.boxes == 0.5).all()) for one in tubes) == 25
    if name == "lasot":
        assert inverted(boxes).sum() == 6297
        assert inverted(boxes[:, [0, 2, 1, 3]]).sum() == 0
        assert (boxes > 1).any(axis=1).sum() == 17
        assert [one.name.rpartition(" ")[2] for one in tubes if (one.boxes == 0).all()] == ["265"]


def followed(name: str, **asked: Any) -> Run:
    """The truth of a published file met exactly, at 576x320."""
    records = json.loads(published(name).read_text())
    order = [0, 2, 1, 3] if name == "lasot" else [0, 1, 2, 3]
    preds = [
        {
            "id": one["id"],
            "width": 576,
            "height": 320,
            "bboxes": (np.array(one["bboxes"])[:, order] * (576, 320, 576, 320)).tolist(),
        }
        for one in records
    ]
    return karat.evaluate("control", truth=published(name), pred=preds, **asked)


def test_the_order_of_lasot_is_told() -> None:
    """By what the file is; 126 boxes without an area, 111 of them all zero, and 17 that leave the frame are counted."""
    run = followed("lasot", strict=True)
    values = {name: one.value for name, one in run.scores.items()}
    assert values["miou_all"] == values["ap50"] == values["coverage"] == pytest.approx(1)
    assert (values["n_records"], values["n_undefined_gt"]) == (456, 1)
    assert values["n_frames_scored"] - values["n_frames_truth"] == 126
    assert values["n_boxes_clipped_truth"] == values["n_boxes_clipped"] == 17
    assert any("Boxes asked for in 456 videos were read as x1, x2, y1, y2" in note for note in run.notes)


@pytest.mark.parametrize("kept", ["names", "no names"])
def test_a_part_of_lasot_is_known_by_its_names_or_refused(tmp_path: Path, kept: str) -> None:
    records = json.loads(published("lasot").read_text())[:40]
    if kept == "no names":
        records = [{**one, "metadata": {}} for one in records]
    tubes = [*read_tubes(saved_json(tmp_path / "t", records)).values()]
    assert {one.order for one in tubes} == {"x1x2y1y2" if kept == "names" else None}
    if kept == "no names":
        assert "pass --box-order x1x2y1y2, in which none does" in tubes[0].doubt


def test_lasot_put_in_order_is_read_as_it_is(tmp_path: Path) -> None:
    records = json.loads(published("lasot").read_text())[:40]
    for one in records:
        one["bboxes"] = [[box[0], box[2], box[1], box[3]] for box in one["bboxes"]]
    assert {one.order for one in read_tubes(saved_json(tmp_path / "t", records)).values()} == {"x1y1x2y2"}


def test_what_other_files_count() -> None:
    for name, frames, told in (("ssv2", 6651, 6651 - 781), ("davis", 960, 960)):
        run = followed(name, strict=True)
        values = {key: one.value for key, one in run.scores.items()}
        assert (values["n_frames_scored"], values["n_frames_truth"]) == (frames, told)
        assert values["miou_all"] == pytest.approx(1)
        assert values["n_undefined_gt"] == (25 if name == "ssv2" else 0)


def test_the_prompts_of_the_paper() -> None:
    """102 of 126 records."""
    run = followed("imc", strict=True, subset="paper")
    assert run.scores["n_records"].value == 102
    assert len(run.samples) == 102
    assert "Subset paper: 102 of 126 records." in run.notes


def test_masks_are_read_again_each_time() -> None:
    """And give the same."""
    tube = RECORDS["tubes"].convert({"masks": shapes_of("1")})
    assert isinstance(tube, Tube)
    assert tube.masks is not None
    assert tube.digest() == tube.digest()
    assert sum(int(mask.sum()) for mask in tube.masks) == sum(int(mask.sum()) for mask in tube.masks) > 0
