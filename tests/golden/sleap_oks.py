"""`sleap-oks`: poses as the evaluation of SLEAP-NN scores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from karat.errors import InputError
from karat.evaluation import evaluate
from karat.metrics.matches import Role
from karat.run import Run
from karat.sources.poses import Poses, make_poses
from karat.suites._sleap_nn import results

from ._poses import Video, skipped, videos
from .case import Answer, Array, Case

SETTINGS = {"oks_stddev": "sigma", "oks_scale": "scale", "match_threshold": "match_threshold"}
SECOND = "a second formula of the same quantity, which the tolerance of pck_voc allows for"
NOT_RECORDED = "the reference does not count false positives"


def answer(case: Case) -> Answer:
    """Every quantity that the case asks for."""
    found = videos(case)
    left_out = skipped() | {"scalars/pck_voc_from_counts": SECOND}
    left_out |= {"n_fp": NOT_RECORDED, "scalars/n_false_positives_recorded": NOT_RECORDED}
    if "inline" not in case.inputs:
        run = evaluated(found, case.protocol["params"])
        return Answer({"scalars": scalars(run, found), "arrays": arrays(run, found)}, left_out)
    try:
        run = evaluated([same_nodes(video) for video in found], case.protocol["params"])
    except InputError:
        return Answer({"ok": False}, left_out)
    return Answer({"ok": False} if run.failures else edge_case(run), left_out)


def evaluated(found: Sequence[Video], params: Mapping[str, Any]) -> Run:
    """Under the protocol of the reference."""
    known = {*SETTINGS, "user_labels_only", "match_method"}
    if unknown := set(params) - known:
        raise ValueError(f"{', '.join(sorted(unknown))} is no parameter that this adapter knows")
    only_user = params.get("user_labels_only", True)
    return evaluate(
        "pose",
        truth={video.id: video.truth for video in found},
        pred={video.id: video.pred for video in found},
        protocol="reference",
        match="oks",
        workers=1,
        settings={f"matches.{SETTINGS[name]}": float(value) for name, value in params.items() if name in SETTINGS}
        | {"matches.user_labels_only": only_user, "pose_frames.user_labels_only": only_user},
    )


def same_nodes(video: Video) -> Video:
    """A side without instances has the other's skeleton."""
    truth, pred = video.truth, video.pred
    nodes = max(truth.points.shape[1], pred.points.shape[1])
    sides = [one if len(one) else _empty(one, nodes) for one in (truth, pred)]
    return Video(video.id, *sides, video.truth_rows, video.pred_rows)


def _empty(poses: Poses, nodes: int) -> Poses:
    return make_poses(np.zeros((0, nodes, 2)), np.zeros(0, np.int32), labelled=poses.labelled)


def metrics(run: Run) -> dict[str, Any]:
    """SLEAP-NN's layout of results; without a pair its average precisions are a plain 0."""
    found = {section: {name: listed(value) for name, value in of.items()} for section, of in results(run).items()}
    if not run.scores["n_pairs"].value:
        found["voc_metrics"] = dict.fromkeys(found["voc_metrics"], 0)
        found["pck_metrics"]["mPCK_parts"] = []
    return found


def listed(value: Any) -> Any:
    """Arrays as the lists that they are in JSON."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def edge_case(run: Run) -> dict[str, Any]:
    """The layout of an entry of edge_cases.json."""
    rows = run.rows["matches"]
    return {
        "ok": True,
        "n_pairs": int(run.scores["n_frames_gt"].value),
        "n_pos": int(run.scores["n_pairs"].value),
        "n_fn": int(run.scores["n_fn_unmatched"].value),
        "pair_scores": listed(rows.columns["oks"][rows.columns["role"] == Role.PAIR]),
        "metrics": metrics(run),
    }


def scalars(run: Run, found: Sequence[Video]) -> dict[str, Any]:
    """The layout of metrics.json."""
    alike = run.rows["matches"].columns["oks"]
    alike = alike[~np.isnan(alike)]
    return {
        "n_frame_pairs": int(run.scores["n_frames_gt"].value),
        "n_positive_pairs": int(run.scores["n_pairs"].value),
        "n_false_negatives": int(run.scores["n_fn_unmatched"].value),
        "n_gt_instances": sum(len(video.truth) for video in found),
        "n_pr_instances": sum(len(video.pred) for video in found),
        "min_pair_oks": float(alike.min(initial=np.inf)),
        "n_subnormal_pair_oks": int(((alike > 0) & (alike < np.finfo(float).tiny)).sum()),
        "metrics": metrics(run),
    }


def arrays(run: Run, found: Sequence[Video]) -> dict[str, Any]:
    """The layout of outputs.npz."""
    rows, sections = run.rows["matches"], results(run)
    role = rows.columns["role"]
    pairs, missed = role == Role.PAIR, role == Role.MISSED
    truth, pred = (_place(rows, found, which) for which in ("truth", "pred"))
    voc = {f"voc__{name.replace('.', '__')}": value for name, value in sections["voc_metrics"].items()}
    return voc | {
        "pairs_gt_pr": np.stack([truth, pred], axis=1)[pairs],
        "oks": rows.columns["oks"][pairs],
        "false_negative_gt": listed(truth[missed]),
        "dists": sections["distance_metrics"]["dists"],
        "pcks": sections["pck_metrics"]["pcks"],
        "mPCK_parts": sections["pck_metrics"]["mPCK_parts"],
    }


def _place(rows: Any, found: Sequence[Video], which: str) -> Array:
    """Rows of the inputs, -1 for none."""
    own = {video.id: getattr(video, f"{which}_rows") for video in found}
    at = rows.columns[which]
    places = [
        own[rows.samples[sample]][place] if place >= 0 else -1 for sample, place in zip(rows.sample, at, strict=True)
    ]
    return np.array(places, np.int64)
