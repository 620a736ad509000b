"""`sleap-centroid`: detection by centroids as the evaluation of SLEAP-NN counts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from karat.errors import InputError
from karat.meter import Meter
from karat.metrics.centroid import Centroid, CentroidMatches
from karat.sources.poses import Poses, make_poses

from .case import Answer, Array, Case

INPUT = dict.fromkeys(
    ("case", "note", "name", "kwargs", "gt", "pred", "inputs", "tie_dependent"), "describes the input"
)
WORDS = {"exception": "the words of the reference's refusal"}
PARTS = ("p50", "p75", "p90", "p95", "p99")
Videos = Sequence[tuple[Poses, Poses]]


def answer(case: Case) -> Answer:
    """Every quantity that the case asks for."""
    inline = "inline" in case.inputs
    videos = [listed(case.expected)] if inline else [*given(case.arrays())]
    skipped = {f"{where}{name}": why for name, why in (INPUT | WORDS).items() for where in ("", "scalars/")}
    try:
        return Answer((of_edge_case if inline else of_arrays)(videos, metric(case.protocol["params"])), skipped)
    except InputError:
        return Answer({"ok": False}, skipped)


def metric(params: Mapping[str, Any]) -> Centroid:
    """The reference, whose threshold is 0 where none is given."""
    known = {"match_method", "match_threshold", "user_labels_only", "anchor_ind"}
    if unknown := set(params) - known:
        raise ValueError(f"{', '.join(sorted(unknown))} is no parameter that this adapter knows")
    anchor = params.get("anchor_ind")
    matches = CentroidMatches(
        match_threshold=float(params.get("match_threshold", 0.0)),
        anchor=None if anchor is None else str(anchor),
        pred_centroid="first",
        frames="common",
        user_labels_only=params.get("user_labels_only", True),
        repeated="skip",
    )
    return Centroid(of=matches, undefined_truth="miss", empty="zero")


def of_arrays(videos: Videos, by: Centroid) -> dict[str, Any]:
    """The layout of metrics.json and outputs.npz."""
    scores, rows = scored(videos, by)
    scalars = {
        "n_frame_pairs": len({(video, frame) for video, frame, _ in rows}),
        "n_positive_pairs": int(scores["n_tp"]),
        "n_false_negatives": int(scores["n_fn"]),
        "n_false_positives_recorded": int(scores["n_fp"]),
        "n_gt_instances": sum(len(truth) for truth, _ in videos),
        "n_pr_instances": sum(len(pred) for _, pred in videos),
        "metrics": {"detection_metrics": scores, "distance_metrics": far(scores)},
    }
    return {"scalars": scalars, "arrays": {"dists": matched(rows)[1]}}


def of_edge_case(videos: Videos, by: Centroid) -> dict[str, Any]:
    """The layout of an entry of edge_cases.json."""
    scores, rows = scored(videos, by)
    frames, distances = matched(rows)
    return {
        "ok": True,
        "n_pairs": len({frame for _, frame, _ in rows}),
        "n_pos": int(scores["n_tp"]),
        "n_fn": int(scores["n_fn"]),
        "n_fp": int(scores["n_fp"]),
        "pair_scores": distances,
        "metrics": {
            "detection_metrics": scores,
            "distance_metrics": {"frame_idxs": frames, "dists": distances, **far(scores)},
        },
    }


def far(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The scores that are distances."""
    return {name: scores[name] for name in ("avg", *PARTS)}


def scored(videos: Videos, by: Centroid) -> tuple[dict[str, Any], list[tuple[int, int, float]]]:
    """The scores under the reference's names, and of every row its video, frame and distance."""
    meter = Meter(by)
    meter.update(
        ids=[f"{number:06d}" for number in range(len(videos))],
        truth=[truth for truth, _ in videos],
        pred=[pred for _, pred in videos],
    )
    found = meter.compute()
    scores: dict[str, Any] = {name: found[f"centroid_{name}"] for name in ("precision", "recall", "f1")}
    scores |= {name: int(found[f"centroid_{name}"]) for name in ("n_tp", "n_fp", "n_fn")}
    scores |= {name: found[f"centroid_dist_{name}"] for name in ("avg", *PARTS)}
    return scores, [row for number, (truth, pred) in enumerate(videos) for row in measured(number, truth, pred, by.of)]


def measured(number: int, truth: Poses, pred: Poses, by: CentroidMatches) -> Iterator[tuple[int, int, float]]:
    """The rows of one video, frame by frame."""
    elements = by.measure(pred, truth)
    for row in np.argsort(elements.frame, kind="stable"):
        yield number, int(elements.frame[row]), float(elements.columns["distance"][row])


def matched(rows: Sequence[tuple[int, int, float]]) -> tuple[list[int], list[float]]:
    """Frames and distances of the matches, in their order."""
    pairs = [(frame, distance) for _, frame, distance in rows if not np.isnan(distance)]
    return [frame for frame, _ in pairs], [distance for _, distance in pairs]


def given(arrays: Mapping[str, Array]) -> Iterator[tuple[Poses, Poses]]:
    """The videos of an inputs.npz."""
    for video in np.unique(arrays["gt_labeled_video_idx"]):
        yield side(arrays, "gt", video), side(arrays, "pr", video)


def side(arrays: Mapping[str, Array], which: str, video: int) -> Poses:
    """Truth or predictions of one video; the nodes go by their place."""
    own, labelled = arrays[f"{which}_video_idx"] == video, arrays[f"{which}_labeled_video_idx"] == video
    return make_poses(
        arrays[f"{which}_points"][own],
        arrays[f"{which}_frame_idx"][own],
        nodes=[str(node) for node in range(arrays[f"{which}_points"].shape[1])],
        score=arrays[f"{which}_score"][own] if f"{which}_score" in arrays else None,
        labelled=arrays[f"{which}_labeled_frame_idx"][labelled],
    )


def listed(case: Mapping[str, Any]) -> tuple[Poses, Poses]:
    """The video of an entry of edge_cases.json."""
    return inline(case["gt"]), inline(case["pred"])


def inline(frames: Sequence[Any]) -> Poses:
    """A list of [frame, instances]; an instance is a list of points, or a mapping with `pts`."""
    found = [
        (frame, one if isinstance(one, Mapping) else {"pts": one}) for frame, instances in frames for one in instances
    ]
    points = np.array([one["pts"] for _, one in found], np.float64).reshape(len(found), -1, 2) if found else None
    return make_poses(
        np.zeros((0, 1, 2)) if points is None else points,
        np.array([frame for frame, _ in found], np.int32),
        nodes=[str(node) for node in range(1 if points is None else points.shape[1])],
        score=np.array([one.get("score", np.nan) for _, one in found]),
        user=np.array(["pred" not in one for _, one in found], bool),
        labelled=[frame for frame, _ in frames],
    )
