"""How far people are apart who label the same nodes: the sigmas of OKS, estimated from repeated labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from karat.errors import Inapplicable, UsageError
from karat.kernels.assignment import most_pairs
from karat.kernels.keypoints import box_area, frames_alike, squared_distances
from karat.metric import Array, Metric, Score, Statistic, Sums, ratio
from karat.metrics.matches import one_skeleton
from karat.rows import Elements
from karat.sources.guard import refusal
from karat.sources.pose_frames import compared
from karat.sources.poses import Poses


@dataclass(frozen=True)
class LabelPairs(Statistic):
    """Two labellings of a video: who is labelled in both, and by node the squared distance over the object's area.

    In every frame labels are paired one to one: as many as there can be, of those the least total mean distance over
    the nodes that both show. A pair is no pair where that mean is beyond `gate` times the root of the area, or the area
    below `min_area` square pixels. area: the mean of the two, of the boxes around the seen nodes, or as given with the
    labels (`scale="given"`, else the box).
    """

    scale: Literal["box", "given"] = "box"
    min_area: float = 1.0
    gate: float = 0.5
    user_labels_only: bool = True

    unit: ClassVar = "element"
    record: ClassVar = "poses"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_area <= 0 or self.gate < 0:
            raise UsageError(f"LabelPairs needs a min_area above 0 and a gate of at least 0, not {self!r}.")

    @np.errstate(over="ignore", invalid="ignore")  # coordinates of 1e200: their areas and distances are no pairs
    def measure(self, pred: Poses, truth: Poses) -> Elements:
        one_skeleton(pred, truth)
        other = pred.ordered_as(truth)
        both = compared(truth, other, "truth", self.user_labels_only, "error")
        truth = both.truth
        kept = np.flatnonzero(both.inside & (other.user | (not self.user_labels_only)))
        if len(other) and not len(kept):
            raise Inapplicable(
                "no person labelled the second side: sigmas come from two labellings of the same frames."
            )
        areas, other_areas = self._area(truth), self._area(other)
        nodes = truth.points.shape[1]
        parts: list[tuple[Array, Array]] = [(np.zeros(0, np.int32), np.zeros((0, nodes)))]
        for one in frames_alike(both.frames, truth.frame, other.frame[kept], nodes):
            t, p = one.truth, kept[one.pred]
            squares = squared_distances(truth.points[t], other.points[p])
            area = (areas[t][:, None] + other_areas[p][:, :, None]) / 2
            f, at, by = self._pairs(squares, area)
            parts.append((one.frame[f], squares[f, at, by] / area[f, at, by, None]))
        frame, relative = (np.concatenate(column) for column in zip(*parts, strict=True))
        known = ~np.isnan(relative)
        columns = {"squares": np.where(known, relative, 0.0), "pairs": known.astype(np.int64)}
        return Elements(frame, columns, truth.nodes or tuple(map(str, range(nodes))))

    def _area(self, poses: Poses) -> Array:
        if poses.points.shape[2] != 2:
            raise refusal("the labels", "have points of three coordinates", "two were expected", "project them")
        boxes = box_area(poses.points)
        return np.where(np.isnan(poses.area), boxes, poses.area) if self.scale == "given" else boxes

    def _pairs(self, squares: Array, area: Array) -> tuple[Array, Array, Array]:
        """Frame, second label and first label of the pairs of (F, P, T, K)."""
        shared = ~np.isnan(squares)
        apart = ratio(np.where(shared, np.sqrt(squares), 0.0).sum(axis=3), shared.sum(axis=3))
        same = (area >= self.min_area) & (area < np.inf) & (apart <= self.gate * np.sqrt(area))
        pairs = most_pairs(apart, same)
        f, at = np.nonzero(pairs >= 0)
        return f, at, pairs[f, at]


@dataclass(frozen=True)
class NodeSigma(Metric):
    """How precisely people place each node, relative to the size of the object: sigma^2 = E[d^2 / area] / 2, the sigma
    of OKS (COCO's k is 2 sigma). Half, since d is between two labels, each of which has its own error.

    pred, truth: poses that two people labelled in the same frames; of more people, give every two as a sample. Measured
    with the same `scale` as the OKS that is to use them. `sigma` is the mean over the nodes that were labelled twice.
    Lin et al. 2014, arXiv:1405.0312; Ronchi & Perona 2017, arXiv:1707.05388.
    """

    of: LabelPairs = LabelPairs()
    pool: Literal["dataset"] = "dataset"

    scores: ClassVar = {"sigma": Score("lower", (0, np.inf), 0, "relative to the root of the area, mean over nodes")}
    parts: ClassVar = {"node": "sigma of each node"}
    aliases: ClassVar = ("sigmas", "label_sigma")

    def score(self, s: Sums) -> dict[str, Array]:
        sigma = np.sqrt(ratio(s.squares, 2 * s.pairs))
        known = ~np.isnan(sigma)
        mean = ratio(np.where(known, sigma, 0.0).sum(axis=-1), known.sum(axis=-1))
        return {"sigma": mean, **{f"sigma@node:{node}": sigma[..., k] for k, node in enumerate(s.labels)}}


def write_sigmas(scores: Mapping[str, float], path: Path) -> None:
    """The scores of `NodeSigma` as a JSON file {node: sigma}."""
    start = "sigma@node:"
    sigmas = {name.removeprefix(start): float(value) for name, value in scores.items() if name.startswith(start)}
    unusable = [node for node, sigma in sigmas.items() if not 0 < sigma < np.inf]
    if unusable or not sigmas:
        raise refusal(
            f"the node {unusable[0]}" if unusable else "the scores",
            f"has the sigma {sigmas[unusable[0]]:g}" if unusable else "have no node's sigma",
            "a number above 0 was expected",
            "label more frames twice, each time anew",
        )
    path.write_text(json.dumps(sigmas, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
