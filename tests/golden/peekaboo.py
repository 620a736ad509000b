"""`peekaboo`: the two lines that the published script prints, from its pickles and from the same boxes as JSON."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from karat.errors import InputError
from karat.evaluation import execute
from karat.prepare import Prepared, prepare
from karat.run import Run
from karat.sources.tube_files import read_tubes
from karat.sources.tube_records import tubes_of
from karat.suites._peekaboo import lines, printed, published_rows, videos

from .case import Answer, Case

INFORMATIVE = {
    "case": "describes the input",
    "n_gt": "describes the input",
    "n_pred": "describes the input",
    "reference_exception": "the words of the script's refusal",
    "records/*/caption": "describes the input",
    "records/*/id": "describes the input",
    "records/*/subject": "describes the input",
}


def answer(case: Case) -> Answer:
    """From the pickle; the boxes, where all predictions are boxes, must give the same to the bit."""
    with TemporaryDirectory() as place:
        pickled = Path(place) / "pred.pkl"
        pickled.write_bytes(gzip.decompress((case.folder / case.inputs["pred_pickle"]).read_bytes()))
        truth, file = case.folder / case.inputs["gt"], json.loads((case.folder / case.inputs["pred_boxes"]).read_text())
        found = of(pickled, truth)
        if all(box is None or isinstance(box, list) for record in file["records"] for box in record["boxes"]):
            again = of(boxes(file), truth)
            if again != found:
                raise AssertionError(f"the pickle gives {found}, and its boxes {again}")
    return Answer(found, INFORMATIVE)


def boxes(file: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The predictions as Karat's boxes."""
    height, width = file["shape"]
    return [
        {"id": one["id"], "width": width, "height": height, "bboxes": one["boxes"], "num_bb": one["num_bb"]}
        for one in file["records"]
    ]


def of(pred: Any, truth: Path) -> dict[str, Any]:
    """The layout of golden.json."""
    try:
        prepared = prepare("control", pred=pred, truth=truth, protocol="reference")
        run = execute(prepared, None, workers=1)
    except InputError as error:
        if "less than 5 pixels" not in str(error):
            raise
        return {"n_scored": 0, "printed": [], "line1_exact": None, "line2_exact": None, "records": []}
    rows = published_rows(run)
    table = videos(rows)
    both = lines(table)
    exact = {f"line{number}_exact": undefined(one) for number, one in enumerate(both, start=1)}
    _agree(run, exact)
    areas = {
        sample: {
            "gt_area": float(rows.columns["asked_area"][rows.sample == place].sum()),
            "pred_area": float(rows.columns["found_area"][rows.sample == place].sum()),
        }
        for place, sample in enumerate(rows.samples)
    }
    names = ("num_bb", "iou", "ap50", "centroid_dist")
    records = [undefined({name: one[name] for name in names}) | areas[one["sample"]] for one in table]
    said = [*strangers(pred, prepared), *printed(both)]
    return {"n_scored": len(table), "printed": said, **exact, "records": records}


def strangers(pred: Any, prepared: Prepared) -> list[str]:
    """What the script says of predictions without a truth, in their order."""
    given = read_tubes(pred) if isinstance(pred, Path) else tubes_of("the list", pred)
    known = {sample.id for sample in prepared.samples}
    return [f"Could not find {one.id}" for one in given.values() if one.id not in known]


def undefined(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """NaN as the files have it."""
    return {name: None if math.isnan(one) else one for name, one in numbers.items()}


def _agree(run: Run, exact: Mapping[str, Mapping[str, float | None]]) -> None:
    """The scores under `reference` are those of the lines."""
    first, second = exact["line1_exact"], exact["line2_exact"]
    wanted = {"miou": first["mIoU"], "ap50": first["AP50"], "miou_all": second["mIoU"], "ap50_detected": second["AP50"]}
    wanted = {name: None if one is None else one / 100 for name, one in wanted.items()}
    wanted |= {"coverage": first["Coverage"], "centroid_distance": first["CD"]}
    for name, one in wanted.items():
        value = run.scores[name].value
        if math.isnan(value) != (one is None) or (
            one is not None and not math.isclose(value, one, rel_tol=1e-12, abs_tol=1e-15)
        ):
            raise AssertionError(f"{name} is {value}, and the line has {one}")
