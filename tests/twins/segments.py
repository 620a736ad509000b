"""Overlap of segments as sets of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from numpy.typing import NDArray

from .draw import weight_at

Array = NDArray[Any]
Pixel = tuple[int, int, int]
Objects = dict[str, set[Pixel]]


def from_labels(labels: Array, names: Sequence[str] = ()) -> Objects:
    """Objects of a label map (T, H, W): 0 and below is nothing, label i is names[i - 1] or "i"."""
    found: Objects = {}
    for label in sorted({int(value) for value in labels.ravel() if value > 0}):
        name = names[label - 1] if label <= len(names) else str(label)
        found.setdefault(name, set()).update(_pixels(labels == label))
    found.pop("", None)
    return found


def from_masks(masks: Array, names: Sequence[str] = (), last_wins: bool = False) -> Objects:
    """Objects of boolean masks (N, T, H, W)."""
    found: Objects = {}
    for n in range(len(masks)):
        own = _pixels(masks[n])
        if last_wins:
            for later in range(n + 1, len(masks)):
                own -= _pixels(masks[later])
        found.setdefault(names[n] if names else str(n + 1), set()).update(own)
    found.pop("", None)
    return found


def _pixels(mask: Array) -> set[Pixel]:
    return {
        (t, i, j)
        for t in range(mask.shape[0])
        for i in range(mask.shape[1])
        for j in range(mask.shape[2])
        if mask[t, i, j]
    }


def size(pixels: set[Pixel], mask: Array | None) -> float:
    """Their summed weight."""
    return math.fsum(weight_at(mask, *pixel) for pixel in sorted(pixels))


def iou(a: set[Pixel], b: set[Pixel], mask: Array | None) -> float:
    """|A & B| / |A | B|, 0 where both are empty."""
    union = size(a | b, mask)
    return size(a & b, mask) / union if union else 0.0


def frame_iou(a: set[Pixel], b: set[Pixel], mask: Array | None) -> float:
    """The mean of the IoU of the frames in which there is anything."""
    values = []
    for frame in sorted({t for t, _, _ in a | b}):
        x, y = {pixel for pixel in a if pixel[0] == frame}, {pixel for pixel in b if pixel[0] == frame}
        if size(x | y, mask):
            values.append(iou(x, y, mask))
    return math.fsum(values) / len(values)


def _lies(pixels: set[Pixel], mask: Array | None, inside: float) -> bool:
    """Whether an object belongs to a region: a pixel, and at least that share of it, lies there."""
    return size(pixels, mask) > 0 and size(pixels, mask) >= inside * size(pixels, None)


@dataclass(frozen=True)
class Matched:
    """The pairs of a matching as (truth, pred, IoU), and whether another one is as good."""

    pairs: list[tuple[str, str, float]]
    unique: bool


def match(truth: Objects, pred: Objects, mask: Array | None, matching: str, require_label: bool) -> Matched:
    """Hungarian: the best of all ways to pair them; max: the best prediction for every true object."""
    table = {(t, p): 0.0 if require_label and t != p else iou(truth[t], pred[p], mask) for t in truth for p in pred}
    if not table:
        return Matched([], True)
    if matching == "max":
        best = [(t, max(pred, key=lambda p, t=t: table[t, p])) for t in truth]
        ties = any(sum(table[t, q] == table[t, p] for q in pred) > 1 for t, p in best if table[t, p])
        return Matched([(t, p, table[t, p]) for t, p in best], not ties)
    few, many, turned = (truth, pred, False) if len(truth) <= len(pred) else (pred, truth, True)
    ways = []
    for chosen in permutations(many, len(few)):
        pairs = [(b, a) if turned else (a, b) for a, b in zip(few, chosen, strict=True)]
        ways.append([(t, p, table[t, p]) for t, p in pairs])
    total = max(math.fsum(share for _, _, share in way) for way in ways)
    best_ways = [way for way in ways if total - math.fsum(share for _, _, share in way) < 1e-9]
    different = {frozenset((t, p) for t, p, share in way if share > 0) for way in best_ways}
    return Matched(best_ways[0], len(different) == 1)


def scores(
    truth: Objects,
    pred: Objects,
    mask: Array | None = None,
    *,
    matching: str = "hungarian",
    threshold: float = 0.1,
    require_label: bool = False,
    empty: str = "drop",
    inside: float = 0.0,
    recall_over: str = "truth",
    nothing: str = "undefined",
) -> tuple[dict[str, float], Matched]:
    """The five scores, and the matching that they come from."""
    both_named = bool(truth and pred)
    if empty == "drop":
        truth, pred = ({name: own for name, own in side.items() if _lies(own, mask, inside)} for side in (truth, pred))
    matched = match(truth, pred, mask, matching, require_label)
    kept = [pair for pair in matched.pairs if pair[2] > threshold]
    unmatched = float(len(pred) - len({p for _, p, _ in kept}))
    if not truth or (nothing == "zero" and not pred):
        default = 0.0 if nothing == "zero" and not both_named else math.nan
        names = ("seg_m_iou", "seg_recall", "seg_m_iou_all_gt", "seg_m_iou_frame")
        return {**dict.fromkeys(names, default), "seg_n_pred_unmatched": unmatched}, matched
    frames = [frame_iou(truth[t], pred[p], mask) for t, p, _ in kept]
    total = math.fsum(share for _, _, share in kept)
    among = len(truth) if recall_over == "truth" else len(matched.pairs)
    return {
        "seg_m_iou": total / len(kept) if kept else 0.0,
        "seg_recall": len(kept) / among if among else 0.0,
        "seg_m_iou_all_gt": total / len(truth),
        "seg_m_iou_frame": math.fsum(frames) / len(kept) if kept else 0.0,
        "seg_n_pred_unmatched": unmatched,
    }, matched
