"""Masks of instances as sets of pixels: every assignment is tried, every pixel's neighbours are looked at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from statistics import fmean
from typing import Any

import numpy as np
from skimage.morphology import skeletonize

Mask = frozenset[tuple[int, int]]
Size = tuple[int, int]  # height, width
Video = Mapping[int, Sequence[Mask]]  # labelled frame -> its masks
Pair = tuple[Mask, Mask]  # predicted, true
PERCENT = range(50, 100, 5)


@dataclass
class Found:
    """What was found in the frames; `unique` says whether every frame had one best assignment."""

    pairs: list[Pair] = field(default_factory=list)
    false: list[Mask] = field(default_factory=list)
    missed: list[Mask] = field(default_factory=list)
    blank: list[int] = field(default_factory=lambda: [0, 0])  # true, predicted
    split: int = 0
    merged: int = 0
    unique: bool = True


def pixels(mask: Any) -> Mask:
    """The places of a boolean array that are set."""
    return frozenset((r, c) for r in range(mask.shape[0]) for c in range(mask.shape[1]) if mask[r, c])


def iou(a: Mask, b: Mask) -> Fraction:
    """|A & B| / |A | B|, 1 where both are empty."""
    return Fraction(len(a & b), len(a | b)) if a | b else Fraction(1)


def border(mask: Mask, steps: int) -> Mask:
    """The pixels that see what is not of the mask from at most so many steps, diagonal ones too."""
    around = range(-steps, steps + 1)
    return frozenset((r, c) for r, c in mask if any((r + i, c + j) not in mask for i in around for j in around))


def boundary_iou(a: Mask, b: Mask, size: Size, share: float) -> float:
    """Of borders that are a share of the diagonal wide."""
    steps = max(1, round(share * math.hypot(*size)))
    return float(iou(border(a, steps), border(b, steps)))


def line(mask: Mask, size: Size) -> Mask:
    """The centre line, by scikit-image."""
    image = np.zeros(size, bool)
    for place in mask:
        image[place] = True
    return pixels(skeletonize(image))


def cldice(a: Mask, b: Mask, size: Size) -> float:
    """2 P S / (P + S) of the shares of each centre line that lie in the other mask."""
    if not a and not b:
        return 1.0
    if not a or not b:
        return 0.0
    shares = [Fraction(len(line(own, size) & other), len(line(own, size))) for own, other in ((a, b), (b, a))]
    return float(2 * shares[0] * shares[1] / sum(shares)) if any(shares) else 0.0


def frames_of(truth: Video, pred: Video, frames: str) -> list[int]:
    """The frames that are evaluated."""
    return [frame for frame in sorted(truth) if frames == "truth" or frame in pred]


def assignments(preds: int, truths: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to pair as many as there can be."""
    if preds <= truths:
        yield from (list(enumerate(chosen)) for chosen in permutations(range(truths), preds))
    else:
        yield from ([(p, t) for t, p in enumerate(chosen)] for chosen in permutations(range(preds), truths))


def match(
    truth: Video,
    pred: Video,
    match_threshold: Fraction,
    assignment: str = "gated",
    cover: Fraction = Fraction(1, 10),
    frames: str = "truth",
    blank: str = "ignore",
) -> Found:
    """Who is who in all frames."""
    found = Found()
    for frame in frames_of(truth, pred, frames):
        sides = [list(truth[frame]), list(pred.get(frame, ()))]
        if blank == "ignore":
            for side, masks in enumerate(sides):
                found.blank[side] += sum(not mask for mask in masks)
            sides = [[mask for mask in masks if mask] for masks in sides]
        _match_frame(found, *sides, match_threshold, assignment)
        _count_fragments(found, *sides, cover)
    return found


def _match_frame(found: Found, truths: list[Mask], preds: list[Mask], limit: Fraction, assignment: str) -> None:
    alike = {(p, t): iou(one, other) for p, one in enumerate(preds) for t, other in enumerate(truths)}
    ways = []
    for pairs in assignments(len(preds), len(truths)):
        near = [pair for pair in pairs if alike[pair] >= limit]
        counted = near if assignment == "gated" else pairs
        ways.append((len(counted), sum(alike[pair] for pair in counted), near))
    most, total, near = max(ways)
    found.unique &= all(set(way[2]) == set(near) for way in ways if way[:2] == (most, total))
    found.pairs += [(preds[p], truths[t]) for p, t in sorted(near)]
    found.false += [one for p, one in enumerate(preds) if p not in {p for p, _ in near}]
    found.missed += [one for t, one in enumerate(truths) if t not in {t for _, t in near}]


def _count_fragments(found: Found, truths: list[Mask], preds: list[Mask], cover: Fraction) -> None:
    covers = {
        (p, t): len(preds[p] & truths[t]) >= cover * max(len(truths[t]), 1)
        for p in range(len(preds))
        for t in range(len(truths))
    }
    found.split += sum(sum(covers[p, t] for p in range(len(preds))) >= 2 for t in range(len(truths)))
    found.merged += sum(sum(covers[p, t] for t in range(len(truths))) >= 2 for p in range(len(preds)))


def scores(found: Found, size: Size, share: float) -> dict[str, float]:
    """Named numbers of who is who."""
    alike = [float(iou(*pair)) for pair in found.pairs]
    tp, fp, fn = len(found.pairs), len(found.false), len(found.missed)
    return {
        "mask_n_tp": tp,
        "mask_n_fp": fp,
        "mask_n_fn": fn,
        "mask_precision": part(tp, tp + fp),
        "mask_recall": part(tp, tp + fn),
        "mask_f1": part(2 * tp, 2 * tp + fp + fn),
        "mask_mean_iou": mean(alike),
        "mask_mean_iou_all_gt": mean(alike + [0.0] * fn),
        "mask_iou_min": min(alike, default=math.nan),
        "mask_iou_max": max(alike, default=math.nan),
        **{f"mask_iou_p{p}": percentile(alike, p) for p in (25, 50, 75)},
        "mask_pq": part(2 * math.fsum(alike), 2 * tp + fp + fn),
        "mask_sq": mean(alike),
        "mask_rq": part(2 * tp, 2 * tp + fp + fn),
        "mask_mean_boundary_iou": mean([boundary_iou(*pair, size, share) for pair in found.pairs]),
        "mask_mean_cldice": mean([cldice(*pair, size) for pair in found.pairs]),
        "mask_oversegmentation": found.split,
        "mask_undersegmentation": found.merged,
        "mask_n_gt": tp + fn,
        "mask_n_pred": tp + fp,
        "mask_n_gt_blank": found.blank[0],
        "mask_n_pred_blank": found.blank[1],
    }


def semantic(truth: Video, pred: Video, size: Size, share: float, frames: str, empty_truth: str) -> dict[str, float]:
    """Means over frames of everything true against everything predicted."""
    sides = [
        (frozenset().union(*pred.get(frame, ())), frozenset().union(*truth[frame]))
        for frame in frames_of(truth, pred, frames)
    ]
    counted = [(p, t) for p, t in sides if t or (p and empty_truth == "count")]
    return {
        "semantic_mean_iou": mean([float(iou(*pair)) for pair in counted]),
        "semantic_mean_cldice": mean([cldice(*pair, size) for pair in counted]),
        "semantic_mean_boundary_iou": mean([boundary_iou(*pair, size, share) for pair in counted]),
        "semantic_n_frames": len(counted),
    }


def sizes(areas: Sequence[int]) -> dict[str, tuple[float, float]]:
    """For every size the least area of it and the least that is too large."""
    thirds = [percentile(list(areas), 100 / 3), percentile(list(areas), 200 / 3)]
    found = {}
    for kind, (medium, large) in {"size": (32 * 32, 96 * 96), "third": thirds}.items():
        found |= {f"{kind}:small": (-1, medium), f"{kind}:medium": (medium, large), f"{kind}:large": (large, math.inf)}
    return found


def voc(
    truth: Video,
    pred: Video,
    ranks: Mapping[int, Sequence[float]],
    frames: str = "truth",
    blank: str = "ignore",
) -> dict[str, float]:
    """Average precision and recall of all masks and of those of each size; ranks: {frame: the scores of its masks}."""
    chosen = frames_of(truth, pred, frames)
    areas = [len(mask) for frame in chosen for mask in truth[frame] if mask or blank == "count"]
    by_size = {"": (-1, math.inf)} | {f"@{name}": bounds for name, bounds in sizes(areas).items()}
    ap: dict[str, list[float]] = {name: [] for name in by_size}
    ar: dict[str, list[float]] = {name: [] for name in by_size}
    for percent in PERCENT:
        ranked = sorted(_taken(truth, pred, ranks, chosen, Fraction(percent, 100), blank), key=lambda one: -one[0])
        for name, (least, beyond) in by_size.items():
            hits = [took is not None for _, own, took in ranked if least <= (own if took is None else took) < beyond]
            one_ap, one_ar = precision_and_recall(hits, sum(least <= area < beyond for area in areas))
            ap[name].append(one_ap)
            ar[name].append(one_ar)
    means = {f"mask_voc.mAP{name}": fmean(values) for name, values in ap.items()}
    means |= {f"mask_voc.mAR{name}": fmean(values) for name, values in ar.items()}
    each = {f"mask_voc.AP@threshold:{percent / 100:.2f}": value for percent, value in zip(PERCENT, ap[""], strict=True)}
    return means | each | {"mask_voc.AP50": ap[""][0], "mask_voc.AP75": ap[""][5]}


def _taken(
    truth: Video, pred: Video, ranks: Mapping[int, Sequence[float]], chosen: Iterable[int], limit: Fraction, blank: str
) -> Iterator[tuple[float, int, int | None]]:
    """Of every prediction its score, its area, and the area of the truth that it took."""
    for frame in chosen:
        free = [mask for mask in truth[frame] if mask or blank == "count"]
        own = zip(ranks.get(frame, ()), pred.get(frame, ()), strict=True)
        for score, mask in sorted((one for one in own if one[1] or blank == "count"), key=lambda one: -one[0]):
            best = max(range(len(free)), key=lambda t: (iou(mask, free[t]), -t), default=None)
            if best is None or iou(mask, free[best]) < limit:
                yield score, len(mask), None
            else:
                yield score, len(mask), len(free.pop(best))


def precision_and_recall(hits: Sequence[bool], truths: int) -> tuple[float, float]:
    """The mean of the best precision at a recall of at least 0, .01, ... 1, and the largest recall."""
    if not truths:
        return math.nan, math.nan
    points = [(Fraction(sum(hits[: n + 1]), truths), Fraction(sum(hits[: n + 1]), n + 1)) for n in range(len(hits))]
    best = [max((p for r, p in points if r >= Fraction(k, 100)), default=Fraction(0)) for k in range(101)]
    return float(sum(best) / 101), float(Fraction(sum(hits), truths))


def part(of: float, whole: float) -> float:
    """NaN of nothing."""
    return of / whole if whole else math.nan


def mean(values: Sequence[float]) -> float:
    """NaN of nothing."""
    return fmean(values) if values else math.nan


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear between the two nearest ranks."""
    if not values:
        return math.nan
    ordered, place = sorted(values), percent / 100 * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
