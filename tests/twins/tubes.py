"""How an object follows the boxes that it was asked to, as the definitions read: frame by frame, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

Box = Sequence[float] | None
Exact = tuple[Fraction, Fraction, Fraction, Fraction]
Plane = Sequence[Sequence[bool]]
Point = tuple[Fraction, Fraction]
HALF = Fraction(1, 2)
STEPS = [Fraction(step, 20) for step in range(21)]
PIXELS = (5, 10, 20, 50)
NEAR = Fraction(1, 10**9)
NAN = math.nan


@dataclass(frozen=True)
class Video:
    """What was asked for, relative to the frame, and what was found: boxes in pixels, or masks, or nothing at all."""

    asked: Sequence[Box]
    found: Sequence[Box] | None = None
    masks: Sequence[Plane] | None = None
    size: tuple[int, int] = (1, 1)

    @property
    def missing(self) -> bool:
        return self.found is None and self.masks is None

    @property
    def length(self) -> int:
        return len(self.asked if self.missing else (self.masks if self.found is None else self.found) or ())


@dataclass
class Frame:
    """What is in one frame; `tie`: so close to a threshold that rounding decides."""

    asked: Exact | None
    is_found: bool
    shared: Fraction = Fraction(0)
    either: Fraction = Fraction(0)
    apart: Point | None = None
    cut_asked: bool = False
    cut_found: bool = False
    tie: bool = False

    @property
    def iou(self) -> Fraction:
        return self.shared / self.either if self.either else Fraction(0)

    @property
    def hit(self) -> bool:
        return self.either > 0 and 2 * self.shared >= self.either

    @property
    def square(self) -> Fraction:
        """The squared distance of the centres."""
        assert self.apart is not None
        return self.apart[0] ** 2 + self.apart[1] ** 2


def scaled(box: Box, sides: tuple[int, int]) -> Exact | None:
    """The edges in pixels."""
    if box is None:
        return None
    x1, y1, x2, y2 = map(Fraction, box)
    return x1 * sides[0], y1 * sides[1], x2 * sides[0], y2 * sides[1]


def inside(box: Exact, sides: tuple[int, int]) -> Exact:
    """Cut at the frame."""
    x1, x2 = (min(max(edge, Fraction(0)), Fraction(sides[0])) for edge in (box[0], box[2]))
    y1, y2 = (min(max(edge, Fraction(0)), Fraction(sides[1])) for edge in (box[1], box[3]))
    return x1, y1, x2, y2


def area(box: Exact) -> Fraction:
    """Width times height."""
    return max(box[2] - box[0], Fraction(0)) * max(box[3] - box[1], Fraction(0))


def both(a: Exact, b: Exact) -> Fraction:
    """The area that two boxes share."""
    return area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))


def centre(box: Exact) -> Point:
    """The middle."""
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def on_pixels(edge: Fraction) -> Fraction:
    """The nearest border of pixels, halves upwards."""
    return Fraction(math.floor(edge + HALF))


def frame_of(video: Video, number: int) -> Frame:
    """One frame that both sides have."""
    raw = scaled(video.asked[number], video.size)
    asked = None if raw is None else inside(raw, video.size)
    cut_asked = asked is not None and asked != raw
    if asked is not None and not area(asked):
        asked = None
    if video.masks is not None:
        return frame_of_mask(video.masks[number], asked, cut_asked)
    given = None if video.found is None or video.found[number] is None else video.found[number]
    whole = scaled(given, (1, 1))
    found = None if whole is None else inside(whole, video.size)
    frame = Frame(asked, found is not None and area(found) > 0, cut_asked=cut_asked, cut_found=found != whole)
    if asked is None:
        return frame
    if found is not None and frame.is_found:
        frame.shared = both(asked, found)
        here, there = centre(asked), centre(found)
        frame.apart = there[0] - here[0], there[1] - here[1]
    frame.either = area(asked) + (area(found) if found is not None else 0) - frame.shared
    return frame


def frame_of_mask(mask: Plane, asked: Exact | None, cut_asked: bool) -> Frame:
    """One frame in whole pixels: the box asked for is laid on them."""
    pixels = [(x, y) for y, row in enumerate(mask) for x, there in enumerate(row) if there]
    frame = Frame(asked, bool(pixels), cut_asked=cut_asked)
    if asked is None:
        return frame
    x1, y1, x2, y2 = laid = tuple(map(on_pixels, asked))
    frame.tie = any(abs((edge % 1) - HALF) < NEAR for edge in asked)
    frame.shared = Fraction(sum(x1 <= x < x2 and y1 <= y < y2 for x, y in pixels))
    frame.either = area(laid) + len(pixels) - frame.shared  # type: ignore[arg-type]
    if pixels:
        mean = [Fraction(sum(one[axis] for one in pixels), len(pixels)) + HALF for axis in (0, 1)]
        here = centre(laid)  # type: ignore[arg-type]
        frame.apart = mean[0] - here[0], mean[1] - here[1]
    return frame


@dataclass
class Followed:
    """A video's scores, which of them are left out of the mean, and its counts; `tie`: rounding decides some, or
    (`still_tie`) some of the box that never moves."""

    scores: dict[str, float] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    tie: bool = False
    still_tie: bool = False


def mean(values: Iterable[Fraction | float | bool]) -> float:
    """NaN of nothing."""
    listed = list(values)
    return math.fsum(map(float, listed)) / len(listed) if listed else NAN


def follow(video: Video) -> Followed:
    """One video."""
    frames = [frame_of(video, number) for number in range(min(len(video.asked), video.length))]
    asked = [frame for frame in frames if frame.asked is not None]
    placed = [frame for frame in asked if frame.apart is not None]
    found, told = sum(frame.is_found for frame in frames), bool(asked)
    diagonal = math.hypot(*video.size)
    union = sum((frame.either for frame in asked), Fraction(0))
    straight = [math.sqrt(frame.square) for frame in placed]
    along = [float(abs(frame.apart[0]) + abs(frame.apart[1])) for frame in placed if frame.apart is not None]
    known = len(asked)
    scores = {
        "coverage": float(2 * found > len(frames)) if told else NAN,
        "detection_rate": found / len(frames) if told else NAN,
        "miou_all": float(sum((frame.shared for frame in asked), Fraction(0)) / union) if union else NAN,
        "miou_frame_all": mean(frame.iou for frame in asked),
        "ap50": mean(frame.hit for frame in asked),
        "ap50_detected": mean(frame.hit for frame in placed),
        "centroid_distance": mean(one / diagonal for one in straight),
        "centroid_distance_px": mean(straight),
        "trajectory_l1": mean(one / diagonal for one in along),
        "trajectory_l1_px": mean(along),
        "success_auc": mean(mean(frame.iou > step for frame in asked) for step in STEPS) if told else NAN,
    }
    scores |= {"miou": scores["miou_all"], "miou_frame": scores["miou_frame_all"]}
    scores |= {f"coverage@share:{k / 10}": float(10 * found > k * len(frames)) if told else NAN for k in range(10)}
    scores |= {f"success_auc@iou:{float(s):.2f}": mean(frame.iou > s for frame in asked) for s in STEPS}
    near = {px: sum(frame.square <= px**2 for frame in placed) for px in PIXELS}
    scores |= {f"precision_20px@px:{px}": count / known if known else NAN for px, count in near.items()}
    scores["precision_20px"] = near[20] / known if known else NAN
    fixed, still_tie = still([frame.asked for frame in asked if frame.asked is not None], diagonal)
    scores |= fixed
    counts = {
        "n_records": 1,
        "n_missing_prediction": int(video.missing),
        "n_undefined_gt": int(not told),
        "n_frames_scored": len(frames),
        "n_frames_truth": known,
        "n_frames_undetected": known - len(placed),
        "n_extra_detections": sum(frame.is_found for frame in frames if frame.asked is None),
        "n_boxes_clipped_truth": sum(frame.cut_asked for frame in frames),
        "n_boxes_clipped": sum(frame.cut_found for frame in frames),
        "n_frames_unmet": 0 if video.missing else len(video.asked) - len(frames),
        "n_frames_surplus": video.length - len(frames),
    }
    left_out = set() if 2 * found >= len(frames) else {"miou", "miou_frame"}
    return Followed(scores, left_out, counts, any(close(frame) for frame in asked), still_tie)


def close(frame: Frame) -> bool:
    """Whether a threshold is so near that rounding decides on which side of it the frame is."""
    at_step = any(abs(frame.iou - step) < NEAR for step in STEPS[:-1])
    at_pixels = frame.apart is not None and any(abs(math.sqrt(frame.square) - px) < NEAR for px in PIXELS)
    return frame.tie or at_pixels or (at_step and frame.is_found and frame.shared > 0)


def still(boxes: Sequence[Exact], diagonal: float) -> tuple[dict[str, float], bool]:
    """How the box at the mean of those asked for does, which never moves, and whether rounding decides that."""
    if not boxes:
        return dict.fromkeys(("still_miou", "still_ap50", "still_centroid_distance"), NAN), False
    fixed: Exact = tuple(sum(edges) / len(boxes) for edges in zip(*boxes, strict=True))  # type: ignore[assignment]
    shared = [both(fixed, box) for box in boxes]
    either = [area(fixed) + area(box) - one for box, one in zip(boxes, shared, strict=True)]
    gaps = [[a - b for a, b in zip(centre(fixed), centre(box), strict=True)] for box in boxes]
    scores = {
        "still_miou": float(sum(shared) / sum(either)),
        "still_ap50": mean(2 * one >= all_ for one, all_ in zip(shared, either, strict=True)),
        "still_centroid_distance": mean(math.sqrt(x**2 + y**2) / diagonal for x, y in gaps),
    }
    return scores, any(abs(one / all_ - HALF) < NEAR for one, all_ in zip(shared, either, strict=True))


@dataclass(frozen=True)
class Total:
    """A score of a data set and how many videos are behind it."""

    value: float
    n: int
    undefined: int
    excluded: int


def over(videos: Sequence[Followed]) -> dict[str, Total]:
    """The means over videos, and the counts added up."""
    totals = {}
    for name in videos[0].scores:
        kept = [one.scores[name] for one in videos if name not in one.left_out]
        defined = [value for value in kept if not math.isnan(value)]
        totals[name] = Total(mean(defined), len(defined), len(kept) - len(defined), len(videos) - len(kept))
    for name in videos[0].counts:
        totals[name] = Total(sum(one.counts[name] for one in videos), len(videos), 0, 0)
    return totals


def grid(width: int, height: int, box: Sequence[int]) -> list[list[bool]]:
    """The mask that fills a box."""
    mask = [[False] * width for _ in range(height)]
    for x, y in product(range(box[0], box[2]), range(box[1], box[3])):
        mask[y][x] = True
    return mask
