"""Masks of instances in COCO's JSON: run lengths, polygons, detections beside their truth, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins.draw import MODEST, Array

import karat
from karat.errors import InputError
from karat.sources.instance_masks import InstanceMasks
from karat.sources.kinds import open_record
from karat.sources.polygon import filled

pytestmark = pytest.mark.filterwarnings("ignore:__array__")  # of pycocotools
SIZE = (6, 9)
FRAMES = (3, 3, 8, 12)
SCORES = (0.9, 0.8, 0.7, 0.6)


def pictures(seed: int = 0) -> Array:
    """A box in each of four masks."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((len(FRAMES), *SIZE), bool)
    for mask in masks:
        top, left = rng.integers(0, 3, 2)
        mask[top : top + rng.integers(1, 4), left : left + rng.integers(1, 7)] = True
    return masks


def runs(mask: Array) -> dict[str, Any]:
    """Run lengths of a mask, column by column, zeros first."""
    flat = mask.T.ravel()
    ends = [*(np.flatnonzero(np.diff(flat)) + 1).tolist(), flat.size]
    lengths = np.diff([0, *ends]).tolist()
    return {"size": [*mask.shape], "counts": [0, *lengths] if flat[0] else lengths}


def encoded(mask: Array) -> dict[str, Any]:
    """The same as pycocotools writes it."""
    coco = pytest.importorskip("pycocotools.mask")
    return {"size": [*mask.shape], "counts": coco.encode(np.asfortranarray(mask, np.uint8))["counts"].decode()}


def items(masks: Array, **more: Any) -> list[dict[str, Any]]:
    """An annotation or a detection for each mask."""
    return [
        {"image_id": frame, "category_id": 1, "segmentation": runs(mask), **{name: of[i] for name, of in more.items()}}
        for i, (mask, frame) in enumerate(zip(masks, FRAMES, strict=True))
    ]


def truth_of(annotations: list[dict[str, Any]], **image: Any) -> dict[str, Any]:
    """A COCO truth; frame 10 is empty."""
    declared = {"height": SIZE[0], "width": SIZE[1], **image}
    numbered = [{"id": i, "iscrowd": 0, **one} for i, one in enumerate(annotations)]
    images = [{"id": number, **declared} for number in (12, 10, 8, 3)]
    return {"images": images, "annotations": numbered, "categories": [{"id": 1, "name": "fly"}]}


def saved(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def opened(path: Path) -> InstanceMasks:
    return open_record(path, "instance_masks")  # type: ignore[no-any-return]


def test_run_lengths(tmp_path: Path) -> None:
    record = opened(saved(tmp_path / "a.json", truth_of(items(pictures()))))
    assert np.array_equal(np.unpackbits(record.masks, axis=-1, count=SIZE[1]), pictures())
    assert (record.frame.tolist(), record.labelled.tolist()) == ([*FRAMES], [3, 8, 10, 12])
    assert record.shape == SIZE
    assert np.isnan(record.score).all()


def test_compressed_run_lengths_and_polygons(tmp_path: Path) -> None:
    """As pycocotools writes the one and draws the other."""
    coco = pytest.importorskip("pycocotools.mask")
    masks = pictures()
    annotations = items(masks)
    for one, mask in zip(annotations[:2], masks, strict=False):
        one["segmentation"] = encoded(mask)
    drawn = [[1.2, 0.4, 7.5, 1.1, 4.4, 5.0], [0, 3, 2, 3, 2, 5, 0, 5]]
    annotations[2]["segmentation"] = drawn
    masks[2] = coco.decode(coco.merge(coco.frPyObjects(drawn, *SIZE)))
    record = opened(saved(tmp_path / "a.json", truth_of(annotations)))
    assert np.array_equal(np.unpackbits(record.masks, axis=-1, count=SIZE[1]), masks)


@MODEST
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.lists(st.lists(st.integers(-60, 260), min_size=6, max_size=14), min_size=1, max_size=3),
)
def test_polygons_are_drawn_as_by_pycocotools(size, fifths):
    """Corners at fifths of pixels, inside and outside of the picture; borders that cross themselves."""
    coco = pytest.importorskip("pycocotools.mask")
    polygons = [[one / 5 for one in polygon[: len(polygon) // 2 * 2]] for polygon in fifths]
    wanted = coco.decode(coco.merge(coco.frPyObjects(polygons, *size)))
    assert np.array_equal(filled(polygons, size), wanted)


def test_a_rectangle() -> None:
    """From corner to corner of pixels: columns 2 to 4, rows 1 to 3."""
    mask = np.zeros(SIZE, bool)
    mask[1:4, 2:5] = True
    assert np.array_equal(filled([[2, 1, 5, 1, 5, 4, 2, 4]], SIZE), mask)


@pytest.mark.parametrize("seed", range(4))
def test_detections_beside_their_truth_are_arrays_beside_theirs(tmp_path: Path, seed: int) -> None:
    """The same scores from JSON, from npz and from both."""
    true, pred = pictures(seed), pictures(seed + 1)
    files = {
        "truth": [saved(tmp_path / "truth.json", truth_of(items(true))), tmp_path / "truth.npz"],
        "pred": [saved(tmp_path / "pred.json", items(pred, score=SCORES)), tmp_path / "pred.npz"],
    }
    np.savez(files["truth"][1], masks=true, frame=FRAMES, labelled=[10])
    np.savez(files["pred"][1], masks=pred, frame=FRAMES, score=SCORES)
    said = [
        {name: value.value for name, value in karat.evaluate("instances", truth=t, pred=p, workers=1).scores.items()}
        for t in files["truth"]
        for p in files["pred"]
    ]
    for one in said[1:]:
        np.testing.assert_equal(one, said[0])


def test_average_precision_is_that_of_pycocotools(tmp_path: Path) -> None:
    """On run lengths, for all sizes; predictions lie beside their truths, some of them twice."""
    files, evaluation = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
    rng = np.random.default_rng(0)
    true = rng.random((60, 24, 30)) < 0.01
    for mask, (top, left) in zip(true, rng.integers(0, 14, (60, 2)), strict=True):
        mask[top : top + 9, left : left + 11] = True
    places = np.concatenate([np.arange(60), rng.integers(0, 60, 20)])
    pred = np.stack([np.roll(true[place], rng.integers(-2, 3, 2), (0, 1)) for place in places])
    area = true.sum(axis=(1, 2)).tolist()
    truth = truth_of([])
    truth["images"] = [{"id": number, "height": 24, "width": 30} for number in range(30)]
    truth["annotations"] = [
        {"id": i + 1, "image_id": i // 2, "category_id": 1, "iscrowd": 0, "area": area[i], "segmentation": runs(mask)}
        for i, mask in enumerate(true)
    ]
    found = [
        {"image_id": int(place) // 2, "category_id": 1, "segmentation": encoded(mask), "score": float(score)}
        for place, mask, score in zip(places, pred, rng.random(80), strict=True)
    ]
    paths = saved(tmp_path / "truth.json", truth), saved(tmp_path / "pred.json", found)
    coco = files.COCO(paths[0])
    judge = evaluation.COCOeval(coco, coco.loadRes(str(paths[1])), "segm")
    judge.evaluate()
    judge.accumulate()
    wanted = judge.eval["precision"][:, :, 0, 0, -1].mean(axis=1)
    published = {"mask_voc.arithmetic": "published"}  # it compares recalls in floating point too
    scores = karat.evaluate("instances", truth=paths[0], pred=paths[1], settings=published).scores
    ours = [value.value for name, value in scores.items() if name.startswith("mask_voc.AP@threshold:")]
    assert ours == pytest.approx(wanted.tolist(), abs=1e-9)
    assert 0.05 < scores["mask_voc.mAP"].value < 0.95


def test_images_of_large_ids_are_frames_by_rank(tmp_path: Path) -> None:
    """Detections take the ranks from their truth."""
    truth, pred = truth_of(items(pictures())), items(pictures(), score=SCORES)
    for one in (*truth["annotations"], *pred):
        one["image_id"] += 10**12
    for one in truth["images"]:
        one["id"] += 10**12
    paths = saved(tmp_path / "truth.json", truth), saved(tmp_path / "pred.json", pred)
    assert opened(paths[0]).frame.tolist() == [0, 0, 1, 3]
    run = karat.evaluate("instances", truth=paths[0], pred=paths[1])
    assert run.scores["mask_mean_iou_all_gt"].value == 1
    with pytest.raises(InputError, match="give the COCO truth with it"):
        opened(paths[1])


def test_no_detections(tmp_path: Path) -> None:
    """An empty list is a prediction of nothing."""
    truth, pred = saved(tmp_path / "truth.json", truth_of(items(pictures()))), saved(tmp_path / "pred.json", [])
    assert karat.evaluate("instances", truth=truth, pred=pred).scores["mask_n_fn"].value == len(FRAMES)


def changed(place: int = 1, **values: Any) -> list[dict[str, Any]]:
    """Annotations of which one is changed."""
    annotations = items(pictures())
    annotations[place] |= values
    return annotations


POLYGON = [[0, 0, 5, 0, 5, 5]]
WRONG: list[tuple[Any, str]] = [
    ({"annotations": []}, "another kind"),
    ([1, 2], "another kind"),
    ([{"image_id": 1}], "category_id"),
    ([{"image_id": 1, "category_id": 1}], "has nothing as segmentation"),
    ([{"image_id": 1, "category_id": 1, "segmentation": POLYGON}], "known size"),
    (truth_of(changed(segmentation="3 4")), r"segmentation of annotations\[1\]"),
    (truth_of(changed(segmentation=[])), "a list of 0 entries"),
    (truth_of(changed(segmentation=[[1, 2, 3, 4]])), "no list of pairs"),
    (truth_of(changed(segmentation=[[1, 2, 3, 4, 5, "6"]])), "nowhere"),
    (truth_of(changed(segmentation=[[1, 2, 3, 4, 5, 10**30]])), "nowhere"),
    (truth_of(changed(segmentation=[[0, 0, 0, 65536, 0, 0] * 200])), "pixels long"),
    (truth_of(changed(segmentation={"size": [6, 8], "counts": [48]})), r"run lengths of \[6, 9\]"),
    (truth_of(changed(segmentation={"size": "large", "counts": [54]})), "run lengths of 'large'"),
    (truth_of(changed(segmentation={"size": [6, 9], "counts": [53]})), "add up to 53"),
    (truth_of(changed(segmentation={"size": [6, 9], "counts": "~~~"})), "alphabet"),
    (truth_of(changed(segmentation={"size": [6, 9]})), "NoneType"),
    (truth_of(changed(category_id=2)), "categories 1, 2"),
    (truth_of(changed(image_id=4)), "4 as image_id"),
    (truth_of(changed(iscrowd=1)), "a single instance"),
    (truth_of(changed(score="high")), "'high' as score"),
    (truth_of(changed(id=0)), "two annotations of id 0"),
    (truth_of(items(pictures()), height=10**6), "9x1000000"),
    (truth_of(items(pictures()), height=-6), "9x-6"),
    ({**truth_of([]), "images": [{"id": 1, "height": 6, "width": 9}, {"id": 2, "height": 9, "width": 6}]}, "6x9"),
    ({**truth_of([]), "images": [{"id": 1}, {"id": 1}]}, "twice"),
]


@pytest.mark.parametrize("document, said", WRONG, ids=[said for _, said in WRONG])
def test_wrong_documents(tmp_path: Path, document: Any, said: str) -> None:
    """One line, with the file's name."""
    path = saved(tmp_path / "wrong.json", document)
    with pytest.raises(InputError, match=said) as caught:
        opened(path)
    assert "wrong.json" in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 10**5, "NaN", '{"images": NaN, "annotations": []}', "\x00", "3", "null"]
)
def test_what_is_no_document(tmp_path: Path, text: str) -> None:
    (tmp_path / "wrong.json").write_text(text)
    with pytest.raises(InputError, match=r"wrong\.json"):
        opened(tmp_path / "wrong.json")
