"""`transfer-clips`: blur SSIM and Canny agreement of a predicted clip, of the reference and straight."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from karat.evaluation import evaluate
from karat.feed import resized
from karat.kernels.blur import Filter, blur_filter
from karat.run import Run

from .case import Answer, Array, Case

SKIPPED = {
    "pred_shape": "describes the input",
    "gt_shape": "describes the input",
    "foreground_fraction": "of the input",
}
NO_FOREGROUND = "neither the inputs nor the document say what the foreground is"
EDGES = {"gray": ("gray", "reference"), "rgb3": ("rgb", "reference-upstream")}  # edges_of, protocol
REGIONS = ("foreground", "background")
EMPTY = "_empty_foreground"  # an array of that name is the one without it, and no pixel is foreground
BOX = re.compile(r"rows (\d+)\.\.(\d+), columns (\d+)\.\.(\d+) of every frame")
VARIANT = re.compile(
    r"(?:(?P<none>no_blur)_|(?P<kind>[a-z]+)_k(?P<size>\d+)_s(?P<sigma>[\d.]+)_)?data_range_(?P<of>.+)"
)


@dataclass(frozen=True)
class Clip:
    """The inputs of one case; `foreground` (T, H, W) may be unknown."""

    pred: Array
    truth: Array
    foreground: Array | None

    def run(self, metric: str, protocol: str = "spec", **settings: Any) -> Run:
        """Karat's evaluation of one metric: cut to the shorter side, resized to the truth."""
        reading: dict[str, Any] = (
            {} if protocol.startswith("reference") else {"on_length": "truncate", "on_size": "resize"}
        )
        run: Run = evaluate(
            "transfer",
            pred=self.pred,
            truth=self.truth,
            masks=self.foreground,
            protocol=protocol,
            metrics=[metric],
            settings={f"{metric}.{name}": value for name, value in settings.items()},
            workers=1,
            cache=False,
            strict=True,
            **reading,
        )
        return run

    @cached_property
    def scored(self) -> tuple[Array, Array]:
        """The frames that are compared, prediction and truth, as Karat's reader brings them to one size."""
        count, size = min(len(self.pred), len(self.truth)), self.truth.shape[1:3]
        if self.pred.shape[1:3] == size:
            return self.pred[:count], self.truth[:count]
        return np.stack([resized(frame, "frames", size, False) for frame in self.pred[:count]]), self.truth[:count]


def answer(case: Case) -> Answer:
    """Every quantity that the case asks for."""
    clip = read_clip(case)
    makers: dict[str, Callable[[Clip, Any], Any]] = {
        "frames_scored": lambda clip, _: len(frame_scores(clip.run("canny_f1"), "canny_f1_score")),
        "resized_pred_sha256": lambda clip, _: sha256(clip.scored[0]),
        "blur_ssim": blur_ssim,
        "canny": canny,
    }
    values = {key: makers[key](clip, wanted) for key, wanted in case.expected.items() if key in makers}
    if clip.foreground is not None:
        return Answer(values, SKIPPED)
    return Answer(
        values, SKIPPED | {f"*/{region}{suffix}": NO_FOREGROUND for region in REGIONS for suffix in ("", "_*")}
    )


def read_clip(case: Case) -> Clip:
    """The clip with its foreground: an array, or the box that the document describes."""
    arrays, foreground = case.arrays(), None
    names = {side: case.inputs[side] for side in ("pred", "gt")}
    pred, truth = (arrays[name if name in arrays else name.replace(EMPTY, "")] for name in (names["pred"], names["gt"]))
    if "foreground" in case.inputs:
        foreground = case.array("foreground").astype(bool)
    elif EMPTY in names["gt"]:
        foreground = np.zeros(truth.shape[:3], bool)
    elif isinstance(case.document, Mapping) and (box := BOX.search(str(case.document.get("edge_case_foreground")))):
        top, bottom, left, right = map(int, box.groups())
        foreground = np.zeros(truth.shape[:3], bool)
        foreground[:, top : bottom + 1, left : right + 1] = True
    return Clip(pred, truth, foreground)


def blur_ssim(clip: Clip, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """SSIM of every variant: which blur, which data range, which part of the clip."""
    medium = blur_filter("bilateral", "medium", None, None)
    found: dict[str, Any] = {}
    for key, inner in wanted.items():
        if key == "reference_video":
            found[key] = sample_score(clip.run("blur_ssim", "reference"), "blur_ssim")
        elif key == "gt_blurred_sha256":
            found[key] = blurred(clip.scored[1], medium)
        elif key == "pred_blurred_sha256":
            found[key] = blurred(clip.scored[0], medium)
        elif variant := VARIANT.fullmatch(key):
            found[key] = similarity(clip, *settings_of(variant), inner)
    return found


def settings_of(variant: re.Match[str]) -> tuple[str, dict[str, Any]]:
    """The metric and its parameters that a key such as `gaussian_k25_s12.5_data_range_gt_frame` names."""
    of = "truth" if variant["of"] == "gt_frame" else float(variant["of"])
    settings: dict[str, Any] = {"data_range": of, "least": 1}  # the straight form averages any mask that is not empty
    if variant["none"]:
        return "ssim", settings
    if variant["kind"]:
        settings |= {
            "blur": variant["kind"],
            "blur_size": int(variant["size"]),
            "blur_sigmas": (float(variant["sigma"]),),
        }
    return "blur_ssim", settings


def similarity(clip: Clip, metric: str, settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """SSIM by frame, over the video, and inside the regions.

    Frames have equal size, so pooling pixels is the mean over frames, except that an undefined frame is not left out.
    """
    keys = {*wanted, *(inner for region in REGIONS for inner in wanted.get(region, ()))}
    by_frame = clip.run(metric, **settings, pool="frame") if keys & {"per_frame", "mean_of_frames"} else None
    pooled = clip.run(metric, **settings, pool="sample") if keys & {"video", "pooled_pixels"} else None
    cropped = clip.run(metric, **settings, pool="sample", border="crop") if "cropped_mean_video" in keys else None

    def part(score: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if by_frame is not None:
            found |= {"per_frame": frame_scores(by_frame, score), "mean_of_frames": sample_score(by_frame, score)}
        if pooled is not None:
            found |= {"video": sample_score(pooled, score), "pooled_pixels": sample_score(pooled, score)}
        return found

    regions = REGIONS if clip.foreground is not None else ()
    found = part(metric) | {region: part(f"{metric}@{region}") for region in regions}
    return found if cropped is None else found | {"cropped_mean_video": sample_score(cropped, metric)}


def canny(clip: Clip, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Counts and scores of edges: of grey frames (fork) and of colour frames (upstream)."""
    return {key: agreement(clip, *EDGES[key]) for key in wanted if key in EDGES}


def agreement(clip: Clip, edges_of: str, protocol: str) -> dict[str, Any]:
    """Straight: 0/0 is 0, where Karat's value is undefined. Reference: undefined where it stops."""
    run = clip.run("canny_f1", edges_of=edges_of)
    averaged = clip.run("canny_f1", edges_of=edges_of, pool="frame")
    reference = clip.run("canny_f1", protocol)
    each = frame_scores(run, "canny_f1_score")
    defined = sum(not np.isnan(f1) for f1 in each)
    whole = counts(run, "all")
    found = {
        "video_micro": whole | zeroed(edge_scores(run)),
        "per_frame": [counts(run, "all", t) | zeroed(edge_scores(run, frame=t)) for t in range(len(each))],
        "frame_macro_f1": sample_score(averaged, "canny_f1_score") * defined / len(each) if defined else 0.0,
        "reference": edge_scores(reference),
        "gt_edge_pixels": whole["tp"] + whole["fn"],
        "pred_edge_pixels": whole["tp"] + whole["fp"],
    }
    for region in REGIONS if clip.foreground is not None else ():
        found[f"{region}_micro"] = counts(run, region) | zeroed(edge_scores(run, region))
    return found


def counts(run: Run, region: str, frame: int | None = None) -> dict[str, int]:
    """True and false positives and misses, of the clip or of one frame."""
    rows = run.rows["canny_f1"]
    chosen = rows.region == rows.regions.index(region)
    if frame is not None:
        chosen &= rows.frame == frame
    return {name: int(rows.columns[name][chosen].sum()) for name in ("tp", "fp", "fn")}


def edge_scores(run: Run, region: str = "all", frame: int | None = None) -> dict[str, float]:
    """Karat's F1, precision and recall."""
    (sample,) = run.samples
    scores = run.sample_scores[sample] if frame is None else run.frame_scores[sample][frame]
    at = "" if region == "all" else f"@{region}"
    names = {"f1": "canny_f1_score", "precision": "canny_precision", "recall": "canny_recall"}
    return {short: scores[name + at] for short, name in names.items()}


def zeroed(scores: Mapping[str, float]) -> dict[str, float]:
    """Undefined as 0: how the straight form writes 0/0."""
    return {name: 0.0 if np.isnan(value) else value for name, value in scores.items()}


def sample_score(run: Run, score: str) -> float:
    """The score of the only sample."""
    (sample,) = run.samples
    return run.sample_scores[sample][score]


def frame_scores(run: Run, score: str) -> list[float]:
    """The score of every frame of the only sample."""
    (sample,) = run.samples
    return [scores[score] for _, scores in sorted(run.frame_scores[sample].items())]


def blurred(frames: Array, how: Filter) -> str:
    """The hash of the filtered frames."""
    return sha256(how(frames))


def sha256(frames: Array) -> str:
    """The hash of the frames' bytes."""
    return hashlib.sha256(np.ascontiguousarray(frames).tobytes()).hexdigest()
