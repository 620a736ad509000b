"""Tracks against tracks, frame by frame: every assignment is tried, every track is followed on foot."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import fmean

from twins import poses
from twins.poses import EPS, Instance, Video

ALPHAS = [percent / 100 for percent in range(5, 100, 5)]
Pair = tuple[Instance, Instance]  # true, predicted
Pairs = list[Pair]


@dataclass(frozen=True)
class Rules:
    """How instances are matched; sigma is that of each node."""

    sigma: tuple[float, ...]
    match_threshold: float = 0.5
    matching: str = "previous"
    min_area: float = 1.0
    near: float = 50.0
    unlabelled: str = "ignore"
    nodeless: str = "drop"
    user_labels_only: bool = False


@dataclass
class Frame:
    """What counts in a frame, and what is matched by itself or in time (`matches`) and for all of HOTA's alphas."""

    number: int
    truths: list[Instance]
    preds: list[Instance]
    matches: Pairs = field(default_factory=list)
    aligned: Pairs = field(default_factory=list)


@dataclass(frozen=True)
class Switch:
    """Where a truth is matched with another track than it was."""

    frame: int
    truth: int
    before: int
    after: int


@dataclass
class Tracked:
    """A video; `fragile`: some assignment was not the only best one."""

    frames: list[Frame]
    counts: Counter[str]
    likeness: Callable[[Pair], float]
    fragile: bool = False

    def track(self, number: int) -> list[tuple[Frame, Instance]]:
        """The instances of a true track."""
        return [(frame, one) for frame in self.frames for one in frame.truths if one.track == number]

    @property
    def tracks(self) -> list[int]:
        """The true tracks."""
        return sorted({one.track for frame in self.frames for one in frame.truths if one.track is not None})

    @property
    def together(self) -> list[Frame]:
        """The frames with instances on both sides."""
        return [frame for frame in self.frames if frame.truths and frame.preds]


def similarity(truth: Instance, pred: Instance, rules: Rules) -> float:
    """OKS, or by the mean distance for thin truths; 0 where nothing can be compared."""
    area = poses.box_area(truth.pose)
    if area is None:
        return 0.0
    if area < rules.min_area:
        near = poses.nearness(truth.pose, pred.pose)
        return 0.0 if near is None else max(0.0, 1 + near.value / rules.near)
    alike = poses.oks(truth.pose, pred.pose, rules.sigma, area)
    return 0.0 if alike is None else alike.value


def near(value: float, threshold: float) -> bool:
    """Whether that is alike enough."""
    return value >= threshold - EPS


def assignments(truths: Sequence[Instance], preds: Sequence[Instance]) -> Iterator[Pairs]:
    """All ways to pair as many as there can be."""
    if len(truths) <= len(preds):
        yield from ([*zip(truths, chosen, strict=True)] for chosen in permutations(preds, len(truths)))
    else:
        yield from ([*zip(chosen, preds, strict=True)] for chosen in permutations(truths, len(preds)))


def best(
    truths: Sequence[Instance], preds: Sequence[Instance], score: Callable[[Pair], float], kept: Callable[[Pair], bool]
) -> tuple[Pairs, bool]:
    """The pairs that are kept of the assignment of the largest total score, and whether no other is as good."""
    ways = [
        (math.fsum(map(score, pairs)), [pair for pair in pairs if kept(pair)]) for pairs in assignments(truths, preds)
    ]
    most, chosen = max(ways, key=lambda way: way[0])
    return chosen, all(
        sorted(map(_places, way)) == sorted(map(_places, chosen)) for total, way in ways if total > most - 1e-9
    )


def _places(pair: Pair) -> tuple[int, int]:
    return pair[0].at, pair[1].at


def follow(truth: Video, pred: Video, rules: Rules) -> Tracked:
    """Who counts, and who is matched with whom."""
    every: dict[tuple[int, int], float] = {}

    def likeness(pair: Pair) -> float:
        if _places(pair) not in every:
            every[_places(pair)] = similarity(*pair, rules)
        return every[_places(pair)]

    found = Tracked([], Counter(frames=len(truth)), likeness)
    tracks = set()
    for number in sorted(truth):
        asked = [one for one in truth[number] if one.user or not rules.user_labels_only]
        inside = pred.get(number, [])
        found.counts["frames_without_pred"] += number not in pred
        found.counts["truths_unlabelled"] += sum(not poses.seen(one.pose) for one in asked)
        found.counts["preds_nodeless"] += sum(not poses.seen(one.pose) for one in inside)
        asked = [one for one in asked if poses.seen(one.pose) or rules.unlabelled == "miss"]
        there = [one for one in inside if poses.seen(one.pose) or rules.nodeless == "count"]
        claimed = [one for one in there if one.track is not None]
        tracks |= {one.track for one in claimed}
        wanted = [one for one in asked if one.track is not None and not one.ignore and not one.crowd]
        found.counts["truths_aside"] += len(asked) - len(wanted)
        found.counts["preds_untracked"] += len(there) - len(claimed)
        alone: Pairs = []
        if rules.matching == "frame" or len(wanted) < len(asked):
            alone = _alone(found, asked, claimed, rules)
        excused = [p for t, p in alone if t not in wanted]
        found.counts["preds_aside"] += len(excused)
        frame = Frame(number, wanted, [one for one in claimed if one not in excused])
        if rules.matching == "frame":
            frame.matches = [(t, p) for t, p in alone if t in wanted]
        found.frames.append(frame)
    found.counts["pred_tracks"] = len(tracks)
    if rules.matching == "previous":
        _kept_from_the_frame_before(found, rules)
    if rules.matching == "established":
        _kept_for_good(found, rules)
    _aligned(found)
    return found


def _alone(found: Tracked, truths: Sequence[Instance], preds: Sequence[Instance], rules: Rules) -> Pairs:
    """A frame by itself."""

    def close(pair: Pair) -> bool:
        return near(found.likeness(pair), rules.match_threshold)

    def score(pair: Pair) -> float:
        return found.likeness(pair) if rules.matching == "frame" or close(pair) else 0.0

    pairs, single = best(truths, preds, score, close)
    found.fragile |= not single
    return pairs


def _kept_from_the_frame_before(found: Tracked, rules: Rules) -> None:
    """TrackEval's: whoever was matched in the frame before is worth a thousand."""
    before: dict[int | None, int | None] = {}
    for frame in found.together:
        last = before

        def close(pair: Pair) -> bool:
            return near(found.likeness(pair), rules.match_threshold)

        def score(pair: Pair, last: dict[int | None, int | None] = last) -> float:
            held = pair[0].track in last and last[pair[0].track] == pair[1].track
            return 1000 * held + found.likeness(pair) if close(pair) else 0.0

        frame.matches, single = best(frame.truths, frame.preds, score, close)
        found.fragile |= not single
        before = {t.track: p.track for t, p in frame.matches}


def _kept_for_good(found: Tracked, rules: Rules) -> None:
    """Bernardin & Stiefelhagen's: a correspondence holds until there is another; then as many as there can be."""
    partner: dict[int | None, int | None] = {}
    for frame in found.together:

        def close(pair: Pair) -> bool:
            return near(found.likeness(pair), rules.match_threshold)

        truths, preds = list(frame.truths), list(frame.preds)
        for t in frame.truths:
            again = [p for p in preds if t.track in partner and p.track == partner[t.track] and close((t, p))]
            if again:
                frame.matches.append((t, again[0]))
                truths.remove(t)
                preds.remove(again[0])
        rest, single = best(truths, preds, lambda pair: 100 + found.likeness(pair) if close(pair) else 0.0, close)
        found.fragile |= not single
        frame.matches += rest
        partner |= {t.track: p.track for t, p in frame.matches}


def _aligned(found: Tracked) -> None:
    """HOTA's: in every frame the largest total of similarity times how well the two tracks go together."""
    common: defaultdict[tuple[int | None, int | None], float] = defaultdict(float)
    lengths: Counter[tuple[str, int | None]] = Counter()
    for frame in found.frames:
        lengths.update(("true", t.track) for t in frame.truths)
        lengths.update(("pred", p.track) for p in frame.preds)
        for t in frame.truths:
            for p in frame.preds:
                of_truth = math.fsum(found.likeness((t, other)) for other in frame.preds)
                of_pred = math.fsum(found.likeness((other, p)) for other in frame.truths)
                either = of_truth + of_pred - found.likeness((t, p))
                if either > EPS:
                    common[t.track, p.track] += found.likeness((t, p)) / either

    def score(pair: Pair) -> float:
        t, p = pair
        shared = common[t.track, p.track]
        return found.likeness(pair) * shared / (lengths["true", t.track] + lengths["pred", p.track] - shared)

    for frame in found.together:
        frame.aligned, single = best(
            frame.truths, frame.preds, score, lambda pair: near(found.likeness(pair), ALPHAS[0])
        )
        found.fragile |= not single


def share(part: float, whole: float, undefined: str) -> float:
    """part / whole."""
    return part / max(whole, 1) if undefined == "trackeval" else poses.share(part, whole)


def switches(found: Tracked) -> list[Switch]:
    """By frame and true instance."""
    partner: dict[int, int] = {}
    turned = []
    for frame in found.frames:
        for t, p in sorted(frame.matches, key=lambda pair: pair[0].at):
            assert t.track is not None
            assert p.track is not None
            if partner.get(t.track, p.track) != p.track:
                turned.append(Switch(frame.number, t.track, partner[t.track], p.track))
            partner[t.track] = p.track
    return turned


def fragments(found: Tracked, rule: str) -> int:
    """How often tracks are taken up again."""
    again = 0
    for number in found.tracks:
        matched = {frame.number for frame in found.frames for t, _ in frame.matches if t.track == number}
        where = found.together if rule == "segments" else [frame for frame, _ in found.track(number)]
        states = [frame.number in matched for frame in where]
        starts = sum(now and not before for before, now in zip([False, *states], states, strict=False))
        again += max(0, starts - 1)
    return again


def clear(videos: Sequence[Tracked], mostly: str, fragmentation: str, undefined: str) -> dict[str, float]:
    """CLEAR MOT of several videos."""
    pairs = [(one, pair) for one in videos for frame in one.frames for pair in frame.matches]
    tp = len(pairs)
    fn = sum(len(frame.truths) for one in videos for frame in one.frames) - tp
    fp = sum(len(frame.preds) for one in videos for frame in one.frames) - tp
    idsw = sum(len(switches(one)) for one in videos)
    hits, purest = [], 0
    for one in videos:
        matched = [(t.track, p.track) for frame in one.frames for t, p in frame.matches]
        for number in one.tracks:
            hits.append((sum(t == number for t, _ in matched), len(one.track(number))))
        for number in {p for _, p in matched}:
            purest += max(Counter(t for t, p in matched if p == number).values())
    mt = sum(10 * hit > 8 * length or (mostly == "from" and 10 * hit == 8 * length) for hit, length in hits)
    ml = sum(10 * hit < 2 * length for hit, length in hits)
    alike = math.fsum(one.likeness(pair) for one, pair in pairs)
    counts = sum((one.counts for one in videos), Counter[str]())

    def of(part: float, whole: float) -> float:
        return share(part, whole, undefined)

    return {
        "MOTA": of(tp - fp - idsw, tp + fn),
        "MOTP": of(alike, tp),
        "MODA": of(tp - fp, tp + fn),
        "IDSW": idsw,
        "Frag": sum(fragments(one, fragmentation) for one in videos),
        "MT": mt,
        "PT": len(hits) - mt - ml,
        "ML": ml,
        "MTR": of(mt, len(hits)),
        "PTR": of(len(hits) - mt - ml, len(hits)),
        "MLR": of(ml, len(hits)),
        "CLR_TP": tp,
        "CLR_FN": fn,
        "CLR_FP": fp,
        "CLR_Re": of(tp, tp + fn),
        "CLR_Pr": of(tp, tp + fp),
        "CLR_F1": of(tp, tp + (fn + fp) / 2),
        "sMOTA": of(alike - fp - idsw, tp + fn),
        "MOTAL": of(tp - fp - (math.log10(idsw) if idsw else 0), tp + fn),
        "MOTP_sum": alike,
        "MOTP_distance": 1 - of(alike, tp),
        "FP_per_frame": of(fp, counts["frames"]),
        "CLR_Frames": counts["frames"],
        "mean_gt_coverage": of(math.fsum(hit / length for hit, length in hits), len(hits)),
        "mean_track_purity": of(purest, tp),
        "n_gt_tracks": len(hits),
        "n_pred_tracks": counts["pred_tracks"],
        "n_gt_untracked": counts["truths_aside"],
        "n_pred_untracked": counts["preds_untracked"],
        "n_dont_care": counts["preds_aside"],
        "n_gt_unlabelled": counts["truths_unlabelled"],
        "n_pred_unseen": counts["preds_nodeless"],
        "n_frames_missing_pred": counts["frames_without_pred"],
    }


def most_in_common(pairs: Sequence[tuple[int | None, int | None]]) -> int:
    """The most pairs that tracks have in common when each has one partner at most."""
    often = Counter(pairs)
    truths, preds = ({pair[side] for pair in pairs} for side in (0, 1))
    padded = [*preds, *["nobody"] * len(truths)]
    return max(
        (sum(often[t, p] for t, p in zip(truths, way, strict=True)) for way in permutations(padded, len(truths))),
        default=0,
    )


def identity(videos: Sequence[Tracked], threshold: float, common: str, undefined: str) -> dict[str, float]:
    """The identity scores of several videos."""
    matched = [[(t.track, p.track) for frame in one.frames for t, p in frame.matches] for one in videos]
    possible = [
        [
            (t.track, p.track)
            for frame in one.frames
            for t in frame.truths
            for p in frame.preds
            if near(one.likeness((t, p)), threshold)
        ]
        for one in videos
    ]
    tp = sum(map(most_in_common, possible if common == "possible" else matched))
    truths = sum(len(frame.truths) for one in videos for frame in one.frames)
    preds = sum(len(frame.preds) for one in videos for frame in one.frames)
    return {
        "IDF1": share(tp, (truths + preds) / 2, undefined),
        "IDP": share(tp, preds, undefined),
        "IDR": share(tp, truths, undefined),
        "IDTP": tp,
        "IDFP": preds - tp,
        "IDFN": truths - tp,
        "IDF1_matched": share(sum(map(most_in_common, matched)), sum(map(len, matched)), undefined),
    }


def hota(videos: Sequence[Tracked], undefined: str) -> dict[str, float]:
    """HOTA of several videos."""
    by_alpha = [_at(videos, alpha, undefined) for alpha in ALPHAS]
    if undefined == "nan" and not by_alpha[0]["HOTA_TP"]:
        for one in by_alpha:  # nothing is matched anywhere
            one |= dict.fromkeys(("AssA", "AssRe", "AssPr"), math.nan)
    known = {name: [one[name] for one in by_alpha if not math.isnan(one[name])] for name in by_alpha[0]}
    found = {name: fmean(values) if values else math.nan for name, values in known.items()}
    first = by_alpha[0]
    found |= {"HOTA_0": first["HOTA"], "LocA_0": first["LocA"], "HOTALocA_0": first["HOTA"] * first["LocA"]}
    for alpha, one in zip(ALPHAS, by_alpha, strict=True):
        found |= {f"{name}@alpha:{alpha:.2f}": one[name] for name in ("HOTA", "DetA", "AssA", "LocA")}
    return found


def _at(videos: Sequence[Tracked], alpha: float, undefined: str) -> dict[str, float]:
    tp = fn = fp = 0
    alike, association = [], []
    for one in videos:
        pairs = [pair for frame in one.frames for pair in frame.aligned if near(one.likeness(pair), alpha)]
        truths = Counter(t.track for frame in one.frames for t in frame.truths)
        preds = Counter(p.track for frame in one.frames for p in frame.preds)
        together = Counter((t.track, p.track) for t, p in pairs)
        tp += len(pairs)
        fn += truths.total() - len(pairs)
        fp += preds.total() - len(pairs)
        alike += [one.likeness(pair) for pair in pairs]
        for t, p in pairs:
            tpa = together[t.track, p.track]
            fna, fpa = truths[t.track] - tpa, preds[p.track] - tpa
            association.append((tpa / (tpa + fna + fpa), tpa / (tpa + fna), tpa / (tpa + fpa)))
    ass_a, ass_re, ass_pr = (fmean(column) for column in zip(*association, strict=True)) if association else (0.0,) * 3
    det_a, det_re = share(tp, tp + fn + fp, undefined), share(tp, tp + fn, undefined)
    return {
        "HOTA": math.sqrt(det_a * ass_a),
        "DetA": det_a,
        "AssA": ass_a,
        "DetRe": det_re,
        "DetPr": share(tp, tp + fp, undefined),
        "AssRe": ass_re,
        "AssPr": ass_pr,
        "LocA": fmean(alike) if alike else 1.0 if undefined == "trackeval" else math.nan,
        "OWTA": math.sqrt(det_re * ass_a),
        "HOTA_TP": tp,
        "HOTA_FN": fn,
        "HOTA_FP": fp,
    }
