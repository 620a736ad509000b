"""`coco-keypoints`: average precision as pycocotools computes it, from arrays and from its JSON files."""

from __future__ import annotations

from typing import Any

from karat.evaluation import evaluate

from ._poses import videos
from .case import Answer, Case

KNOWN = {"sigma", "max_dets", "area_range"}


def answer(case: Case) -> Answer:
    """From the arrays, and the same from the files where there are any: both must agree with what is expected."""
    params = case.protocol["params"]
    if unknown := set(params) - KNOWN:
        raise ValueError(f"{', '.join(sorted(unknown))} is no parameter that this adapter knows")
    found = videos(case)
    arrays = {name: {one.id: getattr(one, name) for one in found} for name in ("truth", "pred")}
    answers = [scores(params, **arrays)]
    if "coco_gt" in case.inputs:
        files = {name: case.folder / case.inputs[role] for name, role in (("truth", "coco_gt"), ("pred", "coco_dt"))}
        answers.append(scores(params, **files))
    if any(one != answers[0] for one in answers):
        raise AssertionError(f"arrays and files disagree: {answers}")
    return Answer(answers[0])


def scores(params: Any, **inputs: Any) -> dict[str, Any]:
    """What pycocotools prints of keypoints, of one range of areas."""
    run = evaluate(
        "pose",
        protocol="coco",
        metrics=["oks_voc"],
        settings={"coco_matches.sigma": float(params["sigma"]), "coco_matches.max_detections": params["max_dets"]},
        workers=1,
        strict=True,
        **inputs,
    )
    area = params["area_range"]
    if area != "all":
        return {name: run.scores[f"oks_voc.{name}@area:{area}"].value for name in ("mAP", "mAR")}
    values = {name.removeprefix("oks_voc."): value.value for name, value in run.scores.items()}
    ap, ar = ([v for name, v in values.items() if name.startswith(f"{kind}@threshold")] for kind in ("AP", "AR"))
    return {"AP": ap, "AR": ar, "mAP": values["mAP"], "mAR": values["mAR"], "AP50": ap[0], "AP75": ap[5]}
