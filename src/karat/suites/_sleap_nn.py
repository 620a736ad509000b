"""Results in the layout of SLEAP-NN's `metrics.npz`, for those who read them with its tools."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from karat.metric import Metric, Sums
from karat.metrics.centroid import Centroid
from karat.metrics.distance import PERCENTILES, Distance
from karat.metrics.matches import paired
from karat.metrics.oks import OKS
from karat.metrics.pck import PCK
from karat.metrics.visibility import Visibility
from karat.metrics.voc import Curves, OksVOC, PckVOC

LARGE = {"pck_metrics": ("pcks",)}  # left out of the JSON beside the npz, as SLEAP-NN does


def write(run: Any, path: Path) -> None:
    """The npz with its nested `metrics`, and the same as strict JSON beside it."""
    found = results(run)
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, metrics=np.array(found, dtype=object))
    plain = {
        section: {name: _plain(value) for name, value in values.items() if name not in LARGE.get(section, ())}
        for section, values in found.items()
    }
    path.with_suffix(".json").write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")


def results(run: Any) -> dict[str, dict[str, Any]]:
    """Everything that SLEAP-NN reports and that was evaluated, by its names."""
    sections: dict[str, dict[str, Any]] = {}
    for metric in run.identity.metrics:
        if type(metric) in SECTIONS and any(name in run.scores for name in metric.scores):
            name, of = SECTIONS[type(metric)]
            sections.setdefault(name, {}).update(of(run, metric))
    return sections


def _rows(run: Any, metric: Metric) -> Sums:
    name = next(name for name, statistic in run.identity.statistics.items() if statistic == metric.statistic)
    rows = run.rows[name]
    return Sums({**rows.columns, "frame": rows.frame, "video": np.array(rows.samples)[rows.sample]}, rows.labels)


def _voc(run: Any, metric: OksVOC | PckVOC) -> Iterator[tuple[str, Any]]:
    name = "oks_voc" if isinstance(metric, OksVOC) else "pck_voc"
    if isinstance(metric.of, type(PckVOC().of)):
        yield from _curves(name, metric.curves(_rows(run, metric)))
    for mean in ("mAP", "mAR"):
        yield f"{name}.{mean}", run.scores[f"{name}.{mean}"].value


def _curves(name: str, of: Curves) -> Iterator[tuple[str, Any]]:
    yield f"{name}.match_score_thresholds", of.thresholds
    yield f"{name}.recall_thresholds", np.linspace(0, 1, 101)
    yield f"{name}.match_scores", of.match_scores
    yield f"{name}.precisions", of.ranked.precision
    yield f"{name}.recalls", of.ranked.recall
    yield f"{name}.AP", of.ranked.ap
    yield f"{name}.AR", of.ranked.recall


def _oks(run: Any, metric: OKS) -> Iterator[tuple[str, Any]]:  # noqa: ARG001
    yield "mOKS", run.scores["mOKS"].value


def _distance(run: Any, metric: Distance) -> Iterator[tuple[str, Any]]:
    rows = _rows(run, metric)
    pairs = paired(rows)
    yield "frame_idxs", rows.frame[pairs]
    yield "video_paths", rows.video[pairs]
    yield "dists", rows.distance[pairs]
    yield "avg", run.scores["Avg_dist"].value
    yield from ((f"p{p}", run.scores[f"Dist@p{p}"].value) for p in PERCENTILES)


def _pck(run: Any, metric: PCK) -> Iterator[tuple[str, Any]]:
    rows = _rows(run, metric)
    yield "thresholds", np.array(metric.thresholds)
    yield "pcks", metric.pcks(rows.distance[paired(rows)])
    yield "mPCK_parts", np.array([run.scores[f"mPCK@node:{node}"].value for node in rows.labels])
    yield from ((name, run.scores[name].value) for name in ("mPCK", "PCK@5", "PCK@10"))


def _visibility(run: Any, metric: Visibility) -> Iterator[tuple[str, Any]]:  # noqa: ARG001
    for name in ("tp", "fp", "tn", "fn", "precision", "recall"):
        yield name, run.scores[f"visibility_{name}"].value


def _centroid(run: Any, metric: Centroid) -> Iterator[tuple[str, Any]]:  # noqa: ARG001
    for name in ("precision", "recall", "f1", "n_tp", "n_fp", "n_fn"):
        yield name, run.scores[f"centroid_{name}"].value
    yield from (
        (name, run.scores[f"centroid_dist_{name}"].value) for name in ("avg", "p50", "p75", "p90", "p95", "p99")
    )


SECTIONS: Mapping[type[Metric], tuple[str, Any]] = {
    OksVOC: ("voc_metrics", _voc),
    PckVOC: ("voc_metrics", _voc),
    OKS: ("mOKS", _oks),
    Distance: ("distance_metrics", _distance),
    PCK: ("pck_metrics", _pck),
    Visibility: ("visibility_metrics", _visibility),
    Centroid: ("detection_metrics", _centroid),
}


def _plain(value: Any) -> Any:
    """As strict JSON has it: null is undefined."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
