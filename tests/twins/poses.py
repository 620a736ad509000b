"""Predicted poses against true ones, instance by instance and node by node, as the definitions read."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import fmean, median

Point = tuple[float, float]
Pose = tuple[Point | None, ...]  # None is a node that is not seen
EPS = sys.float_info.epsilon
PERCENTILES = (50, 75, 90, 95, 99)


@dataclass(frozen=True)
class Instance:
    """One of the instances of a frame; `at` says which of those in its file."""

    at: int
    pose: Pose
    score: float | None = None
    user: bool = True
    ignore: bool = False
    crowd: bool = False
    area: float | None = None
    box: tuple[float, float, float, float] | None = None
    track: int | None = None


Video = dict[int, list[Instance]]  # labelled frame -> its instances, in their order


@dataclass(frozen=True)
class Rules:
    """How instances are matched; sigma is that of each node, and `length` "box" or two nodes."""

    sigma: tuple[float, ...]
    form: str = "coco"
    scale: str | float = "box"
    match_threshold: float = 0.0
    thin: str = "ignore"
    min_area: float = 1.0
    near: float = 50.0
    unlabelled: str = "ignore"
    frames: str = "truth"
    user_labels_only: bool = True
    default_score: float | None = None
    length: str | tuple[int, int] = "box"


@dataclass(frozen=True)
class Row:
    """A pair, or one who has no partner."""

    role: str
    frame: int
    truth: Instance | None = None
    pred: Instance | None = None
    oks: float = math.nan
    score: float = math.nan
    length: float = math.nan

    @property
    def counts(self) -> bool:
        """Whether it counts in distances, PCK and visibility."""
        return self.role in ("pair", "thin pair")

    @property
    def nodes(self) -> list[tuple[Point | None, Point | None]]:
        """The nodes of a pair, true and predicted."""
        assert self.truth is not None
        assert self.pred is not None
        return list(zip(self.truth.pose, self.pred.pose, strict=True))


@dataclass
class Matched:
    """Rows by frame; `fragile`: some choice was between values that only rounding tells apart."""

    rows: list[Row] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    fragile: bool = False


@dataclass(frozen=True)
class Likeness:
    """A number to choose by, and the terms that it was added up from."""

    value: float
    terms: tuple[float, ...]


def seen(pose: Pose) -> list[Point]:
    """The nodes that are there."""
    return [point for point in pose if point is not None]


def sides(pose: Pose) -> tuple[float, float] | None:
    """Width and height of the box of what is seen."""
    if not seen(pose):
        return None
    x, y = zip(*seen(pose), strict=True)
    return max(x) - min(x), max(y) - min(y)


def box_area(pose: Pose) -> float | None:
    """The area of the box of what is seen."""
    box = sides(pose)
    return None if box is None else box[0] * box[1]


def apart(a: Point, b: Point) -> float:
    """Euclidean distance."""
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


def total(values: Sequence[float]) -> float:
    """Added one after the other."""
    result = 0.0
    for value in values:
        result += value
    return result


def oks(truth: Pose, pred: Pose, sigma: Sequence[float], area: float, form: str = "coco") -> Likeness | None:
    """Object keypoint similarity; None where the truth shows no node."""
    terms = []
    for true, found, s in zip(truth, pred, sigma, strict=True):
        if true is None:
            continue
        spread = 2 * (2 * s) ** 2 * (area + EPS) if form == "coco" else 2 * s**2 * (area + EPS) ** 2
        terms.append(
            0.0 if found is None else math.exp(-((true[0] - found[0]) ** 2 + (true[1] - found[1]) ** 2) / spread)
        )
    return Likeness(total(terms) / len(terms), tuple(terms)) if terms else None


def nearness(truth: Pose, pred: Pose) -> Likeness | None:
    """Minus the mean distance of the nodes that both have."""
    terms = [apart(t, p) for t, p in zip(truth, pred, strict=True) if t is not None and p is not None]
    return Likeness(-total(terms) / len(terms), tuple(terms)) if terms else None


def evaluated(truth: Video, pred: Video, rules: Rules) -> Video:
    """The frames that are looked at, with the true instances that are."""
    kept = {}
    for frame in sorted(truth):
        own = [label for label in truth[frame] if label.user or not rules.user_labels_only]
        if truth[frame] and not own:
            continue  # only a model saw something
        if rules.frames == "common" and (frame not in pred or not own):
            continue
        kept[frame] = own
    return kept


def match(truth: Video, pred: Video, rules: Rules) -> Matched:
    """Every instance of both sides in one row, by frame."""
    kept = evaluated(truth, pred, rules)
    every = [box_area(label.pose) for labels in kept.values() for label in labels]
    boxes = [area for area in every if area is not None]
    typical = median(boxes) if boxes else math.nan
    found = Matched(frames=list(kept))
    for frame in sorted({*kept, *pred}):
        poses = pred.get(frame, [])
        if frame in kept:
            _of_frame(found, frame, kept[frame], poses, rules, typical)
        else:
            found.rows += [Row("outside", frame, pred=one, score=_score(one, rules)) for one in poses]
    return found


def _score(pred: Instance, rules: Rules) -> float:
    given = rules.default_score if pred.score is None else pred.score
    return math.nan if given is None else given


def _area(truth: Instance, rules: Rules, typical: float) -> float:
    if isinstance(rules.scale, float):
        return rules.scale
    if rules.scale == "given" and truth.area is not None:
        return truth.area
    box = box_area(truth.pose)
    return math.nan if box is None else typical if rules.scale == "median" else box


def _length(truth: Instance, rules: Rules) -> float:
    if rules.length == "box":
        return max(sides(truth.pose) or (math.nan,))
    a, b = (truth.pose[node] for node in rules.length)  # type: ignore[index]
    return math.nan if a is None or b is None else apart(a, b)


def _of_frame(
    found: Matched, frame: int, labels: Sequence[Instance], poses: Sequence[Instance], rules: Rules, typical: float
) -> None:
    areas = [_area(label, rules, typical) for label in labels]
    flagged = [
        label.ignore or label.crowd or (not seen(label.pose) and rules.unlabelled == "ignore") for label in labels
    ]
    thin = [
        bool(seen(label.pose)) and area < rules.min_area and rules.thin != "exact"
        for label, area in zip(labels, areas, strict=True)
    ]
    aside = [thin[t] and not flagged[t] and rules.thin == "ignore" for t in range(len(labels))]

    def alike(t: int, one: Instance) -> Likeness | None:
        if thin[t] and rules.thin == "pixels":
            near = nearness(labels[t].pose, one.pose)
            return None if near is None else Likeness(max(0.0, 1 + near.value / 50), near.terms)
        return oks(labels[t].pose, one.pose, rules.sigma, areas[t], rules.form)

    turn = sorted((one for one in poses if seen(one.pose)), key=lambda one: -_score(one, rules))
    free = set(range(len(labels)))
    partner: dict[int, int] = {}  # prediction -> truth
    role: dict[int, str] = {}

    def take(name: str, among: Sequence[bool], by: Callable[[int, Instance], Likeness | None], enough: float) -> None:
        """Each prediction in turn that has no role takes the free truth it is most alike to, the first of equals."""
        for one in turn:
            if one.at in role:
                continue
            known = {t: value for t in sorted(free) if among[t] and (value := by(t, one)) is not None}
            best = max(known, key=lambda t: known[t].value, default=None)
            if best is None or not known[best].value >= enough:
                continue
            found.fragile |= any(rounding(value, known[best]) for value in known.values())
            role[one.at], partner[one.at] = name, best
            free.remove(best)

    ordinary = [not (flagged[t] or aside[t]) for t in range(len(labels))]
    take("pair", ordinary, alike, math.nextafter(rules.match_threshold, math.inf))
    take("thin pair", aside, lambda t, one: nearness(labels[t].pose, one.pose), -rules.near)
    of_truth = {t: at for at, t in partner.items()}
    take("ignored pred", [f and not label.crowd for f, label in zip(flagged, labels, strict=True)], alike, 0.5)
    for one in turn:
        crowds = [alike(t, one) for t, label in enumerate(labels) if label.crowd]
        if one.at not in role and any(value is not None and value.value >= 0.5 for value in crowds):
            role[one.at] = "ignored pred"

    for one in turn:
        name = role.get(one.at, "false")
        t = partner[one.at] if name in ("pair", "thin pair") else None
        likeness = None if t is None or name != "pair" else alike(t, one)
        found.rows.append(
            Row(
                name,
                frame,
                None if t is None else labels[t],
                one,
                math.nan if likeness is None else likeness.value,
                _score(one, rules),
                math.nan if t is None else _length(labels[t], rules),
            )
        )
    for t, label in enumerate(labels):
        if t not in of_truth:
            lone = "ignored truth" if flagged[t] else "thin missed" if aside[t] else "missed"
            found.rows.append(Row(lone, frame, truth=label, length=_length(label, rules)))
    found.rows += [Row("nodeless", frame, pred=one, score=_score(one, rules)) for one in poses if not seen(one.pose)]


def rounding(one: Likeness, other: Likeness) -> bool:
    """Whether two values are the same but for the order in which they were added up."""
    return one.terms != other.terms and math.isclose(one.value, other.value, rel_tol=1e-12)


def average(values: Sequence[float]) -> float:
    """The mean, NaN of nothing."""
    return fmean(values) if values else math.nan


def share(part: float, whole: float) -> float:
    """part / whole, NaN of nothing."""
    return part / whole if whole else math.nan


def percentile(values: Sequence[float], part: float) -> float:
    """Linear between the two nearest ranks."""
    if not values:
        return math.nan
    ordered, place = sorted(values), part / 100 * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def similarity(rows: Sequence[Row]) -> dict[str, float]:
    """mOKS, and the same with 0 for what is missed."""
    values = [row.oks for row in rows if row.role == "pair"]
    missed = [0.0 for row in rows if row.role == "missed"]
    return {"mOKS": average(values), "mOKS_all_gt": average(values + missed)}


def curve(hits: Sequence[bool], truths: int, published: bool) -> tuple[float, float]:
    """AP and AR of predictions by falling score, right or wrong."""
    if not truths:
        return math.nan, math.nan
    right, points = 0, []
    for seen_so_far, hit in enumerate(hits, 1):
        right += hit
        precision = right / (seen_so_far + EPS) if published else right / seen_so_far
        points.append((right / truths if published else Fraction(right, truths), precision))
    recalls = [k * 0.01 for k in range(100)] + [1.0] if published else [Fraction(k, 100) for k in range(101)]
    best = [max((p for r, p in points if r >= recall), default=0.0) for recall in recalls]
    return fmean(best), right / truths


def limits(published: bool) -> list[float]:
    """.50, .55, ... .95, or as steps of a float that are added."""
    step = (0.95 - 0.5) / 9
    return (
        [0.5 + k * step for k in range(9)] + [0.95] if published else [percent / 100 for percent in range(50, 100, 5)]
    )


def voc(
    rows: Sequence[Row], score: Callable[[Row], float], inclusive: bool, false_positives: bool, arithmetic: str
) -> tuple[list[float], list[float]]:
    """AP and AR at each threshold; rows in the order of videos, frames and places."""
    kinds = ("pair", "false") if false_positives else ("pair",)
    ranked = sorted((row for row in rows if row.role in kinds), key=lambda row: -row.score)
    truths = sum(row.role in ("pair", "missed") for row in rows)
    found = []
    for limit in limits(arithmetic == "published"):
        hits = [row.role == "pair" and (score(row) >= limit if inclusive else score(row) > limit) for row in ranked]
        found.append(curve(hits, truths, arithmetic == "published"))
    return [ap for ap, _ in found], [ar for _, ar in found]


def distances(row: Row) -> list[float | None]:
    """Of the nodes of a pair; None where one is missing."""
    return [None if t is None or p is None else apart(t, p) for t, p in row.nodes]


def within(row: Row, px: float, inclusive: bool) -> list[bool]:
    """Which nodes of a pair are as near as that."""
    return [d is not None and (d <= px if inclusive else d < px) for d in distances(row)]


def pck_of_pair(row: Row, thresholds: Sequence[float], inclusive: bool, denominator: str) -> float:
    """What a pair scores in the VOC of PCK."""
    right = [sum(within(row, px, inclusive)[node] for px in thresholds) for node in range(len(row.nodes))]
    if denominator == "all":
        return total([count / len(thresholds) for count in right]) / len(right)
    visible = [true is not None for true, _ in row.nodes]
    return sum(count for count, there in zip(right, visible, strict=True) if there) / (sum(visible) * len(thresholds))


def pck(
    rows: Sequence[Row], nodes: Sequence[str], thresholds: Sequence[float], inclusive: bool, denominator: str
) -> dict[str, float]:
    """Share of nodes within each threshold."""
    pairs = [row for row in rows if row.counts]
    asked = [[denominator == "all" or row.nodes[node][0] is not None for row in pairs] for node in range(len(nodes))]

    def right(node: int, px: float) -> int:
        return sum(within(row, px, inclusive)[node] for row in pairs)

    every = range(len(nodes))
    whole = {px: share(sum(right(node, px) for node in every), sum(map(sum, asked))) for px in {*thresholds, 5.0, 10.0}}
    part = [average([share(right(node, px), sum(asked[node])) for px in thresholds]) for node in every]
    return {
        "mPCK": average([value for value in part if not math.isnan(value)]),
        "PCK@5": whole[5.0],
        "PCK@10": whole[10.0],
        **{f"PCK@px:{px:g}": whole[px] for px in thresholds},
        **{f"mPCK@node:{name}": value for name, value in zip(nodes, part, strict=True)},
    }


def lengths(rows: Sequence[Row], nodes: Sequence[str]) -> dict[str, float]:
    """Distances of nodes."""
    pairs = [[d for d in distances(row) if d is not None] for row in rows if row.counts]
    every = [d for own in pairs for d in own]
    by_node = [
        [d for row in rows if row.counts and (d := distances(row)[node]) is not None] for node in range(len(nodes))
    ]
    return {
        "Avg_dist": average(every),
        "Avg_dist_per_instance": average([fmean(own) for own in pairs if own]),
        **{f"Dist@p{part}": percentile(every, part) for part in PERCENTILES},
        **{f"Avg_dist@node:{name}": average(own) for name, own in zip(nodes, by_node, strict=True)},
    }


def visibility(rows: Sequence[Row], nodes: Sequence[str]) -> dict[str, float]:
    """Nodes that are shown by whom."""
    pairs = [row.nodes for row in rows if row.counts]

    def count(among: Sequence[int], true: bool, shown: bool) -> int:
        return sum(
            (own[node][0] is not None, own[node][1] is not None) == (true, shown) for own in pairs for node in among
        )

    def scored(among: Sequence[int], suffix: str) -> dict[str, float]:
        tp, fp, fn = count(among, True, True), count(among, False, True), count(among, True, False)
        return {
            f"visibility_precision{suffix}": share(tp, tp + fp),
            f"visibility_recall{suffix}": share(tp, tp + fn),
        }

    every = range(len(nodes))
    kinds = {"tp": (True, True), "fp": (False, True), "tn": (False, False), "fn": (True, False)}
    found = scored(every, "") | {f"visibility_{kind}": count(every, *of) for kind, of in kinds.items()}
    for node, name in enumerate(nodes):
        found |= scored([node], f"@node:{name}")
    return found


def relative(
    rows: Sequence[Row], nodes: Sequence[str], thresholds: Sequence[float], inclusive: bool
) -> dict[str, float]:
    """Distances in sizes of the true instance."""
    sized = [row for row in rows if row.counts and row.length > 0]
    errors = [[None if d is None else d / row.length for d in distances(row)] for row in sized]
    visible = sum(true is not None for row in sized for true, _ in row.nodes)
    every = [e for own in errors for e in own if e is not None]
    shares = [share(sum(e <= t if inclusive else e < t for e in every), visible) for t in sorted(thresholds)]
    return {
        "NME": average(every),
        "mNPCK": average(shares),
        **{f"NPCK@size:{t:g}": value for t, value in zip(sorted(thresholds), shares, strict=True)},
        **{
            f"NME@node:{name}": average([own[node] for own in errors if own[node] is not None])
            for node, name in enumerate(nodes)
        },
    }


def auc(rows: Sequence[Row], limit: float, steps: int | None) -> float:
    """The area under PCK, of the nodes that are visible in the truth."""
    pairs = [row for row in rows if row.counts]
    every = [d for row in pairs for (true, _), d in zip(row.nodes, distances(row), strict=True) if true is not None]
    if steps is None:
        return average([0.0 if d is None else max(0.0, 1 - d / limit) for d in every])
    reads = [i / steps * limit for i in range(steps)]
    return average([share(sum(d is not None and d < read for d in every), len(every)) for read in reads])


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """What became of everybody."""

    def of(*roles: str) -> int:
        return sum(row.role in roles for row in rows)

    return {
        "n_gt": sum(row.truth is not None for row in rows),
        "n_pred": sum(row.pred is not None and row.role != "outside" for row in rows),
        "n_pairs": of("pair", "thin pair"),
        "n_fn_unmatched": of("missed", "thin missed"),
        "n_fp_unmatched": of("false"),
        "n_gt_ignored": of("ignored truth"),
        "n_gt_degenerate": of("thin pair", "thin missed"),
        "n_pred_ignored": of("ignored pred"),
        "n_pred_nodeless": of("nodeless"),
        "n_pred_outside": of("outside"),
        "n_weak_pairs": sum(row.role == "pair" and row.oks < 0.1 for row in rows),
    }


def frame_counts(truth: Video, pred: Video, rules: Rules) -> dict[str, int]:
    """The frames."""
    kept = evaluated(truth, pred, rules)
    return {
        "n_frames_gt": len(kept),
        "n_frames_skipped": len(truth) - len(kept),
        "n_frames_without_prediction": sum(frame not in pred for frame in kept),
        "n_frames_empty": sum(not labels for labels in kept.values()),
    }


def rows_of(found: Sequence[Matched]) -> Iterator[Row]:
    """The rows of several videos."""
    for one in found:
        yield from one.rows
