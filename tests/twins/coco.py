"""COCO's average precision of keypoints: every threshold and range of areas matched anew, one prediction at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from twins import poses
from twins.poses import EPS, Instance, Likeness, Video

AREAS = {"all": (0.0, math.inf), "medium": (32.0**2, 96.0**2), "large": (96.0**2, 1e10)}


@dataclass(frozen=True)
class Rules:
    """How instances are matched; sigma is that of each node."""

    sigma: tuple[float, ...]
    scale: str | float = "given"
    max_detections: int = 20
    user_labels_only: bool = True


@dataclass
class Ranked:
    """Predictions with a score and what they are (right, wrong, or None), and how many truths there are."""

    hits: list[tuple[float, bool | None]]
    truths: int = 0
    fragile: bool = False


def area_of(truth: Instance, rules: Rules) -> float:
    """What the similarity to a truth is scaled by."""
    if isinstance(rules.scale, float):
        return rules.scale
    box = poses.box_area(truth.pose)
    return truth.area if rules.scale == "given" and truth.area is not None else math.nan if box is None else box


def truth_size(truth: Instance) -> float:
    """The area that says which range a truth belongs to."""
    return truth.area if truth.area is not None else poses.box_area(truth.pose) or 0.0


def pred_size(pred: Instance) -> float:
    """The area that says which range a prediction belongs to."""
    return pred.box[2] * pred.box[3] if pred.box is not None else poses.box_area(pred.pose) or 0.0


def alike(truth: Instance, pred: Instance, rules: Rules) -> Likeness | None:
    """OKS; of a truth without nodes, by how far the nodes are outside of its box, doubled."""
    if poses.seen(truth.pose):
        return poses.oks(truth.pose, pred.pose, rules.sigma, area_of(truth, rules))
    if truth.box is None:
        return None
    x, y, width, height = truth.box
    terms = []
    for point, sigma in zip(pred.pose, rules.sigma, strict=True):
        if point is None:
            terms.append(0.0)
            continue
        dx = max(0.0, (x - width) - point[0], point[0] - (x + 2 * width))
        dy = max(0.0, (y - height) - point[1], point[1] - (y + 2 * height))
        terms.append(math.exp(-(dx * dx + dy * dy) / (2 * (2 * sigma) ** 2 * ((truth.area or 0.0) + EPS))))
    return Likeness(poses.total(terms) / len(terms), tuple(terms))


def of_frame(
    found: Ranked, labels: Sequence[Instance], preds: Sequence[Instance], limit: float, area: str, rules: Rules
) -> None:
    """Adds a frame."""
    low, high = AREAS[area]
    turn = sorted(preds, key=lambda one: -(one.score or 0.0))[: rules.max_detections]
    ignored = [
        label.ignore or label.crowd or not poses.seen(label.pose) or not low <= truth_size(label) <= high
        for label in labels
    ]
    found.truths += ignored.count(False)
    free = set(range(len(labels)))
    for one in turn:
        close = {t: value for t in free if (value := alike(labels[t], one, rules)) and value.value >= limit}
        wanted = {t: value for t, value in close.items() if not ignored[t]} or close
        if not wanted:
            beyond = not low <= pred_size(one) <= high
            found.hits.append((one.score or 0.0, None if beyond else False))
            continue
        most = max(value.value for value in wanted.values())
        best = max(t for t, value in wanted.items() if value.value == most)
        found.fragile |= any(poses.rounding(value, wanted[best]) for value in wanted.values())
        found.hits.append((one.score or 0.0, None if ignored[best] else True))
        if not labels[best].crowd:
            free.remove(best)


def scores(videos: Sequence[tuple[Video, Video]], rules: Rules) -> tuple[dict[str, float], bool]:
    """mAP and mAR of every range, AP and AR of every threshold; and whether only rounding decided somewhere."""
    result: dict[str, float] = {}
    fragile = False
    for area in AREAS:
        aps, ars = [], []
        for limit in poses.limits(published=True):
            found = Ranked([])
            for truth, pred in videos:
                kept = poses.evaluated(truth, pred, poses.Rules((), user_labels_only=rules.user_labels_only))
                for frame, labels in kept.items():
                    of_frame(found, labels, pred.get(frame, []), limit, area, rules)
            found.hits.sort(key=lambda hit: -hit[0])
            fragile |= found.fragile
            ap, ar = poses.curve([hit for _, hit in found.hits if hit is not None], found.truths, published=True)
            aps.append(ap)
            ars.append(ar)
        suffix = "" if area == "all" else f"@area:{area}"
        result |= {f"oks_voc.mAP{suffix}": fmean(aps), f"oks_voc.mAR{suffix}": fmean(ars)}
        if area == "all":
            percents = range(50, 100, 5)
            result |= {f"oks_voc.AP@threshold:{p / 100:.2f}": ap for p, ap in zip(percents, aps, strict=True)}
            result |= {f"oks_voc.AR@threshold:{p / 100:.2f}": ar for p, ar in zip(percents, ars, strict=True)}
    return result, fragile
