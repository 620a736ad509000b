"""`transfer-depth`: scale-invariant error of depth, of the reference and straight."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.evaluation import evaluate
from karat.run import Run

from .case import Answer, Array, Case, unpacked
from .transfer_clips import frame_scores, sample_score

SKIPPED = {
    "gt": "names the input",
    "pred": "names the input",
    "gt_shape": "describes the input",
    "pred_shape": "describes the input",
    "resize": "describes the reference",
}
ROOT_OF_ROUNDING = (
    "the reference takes the root of a difference of rounding errors here (NaN or noise); Karat sums squared "
    "deviations, as the straight form does"
)
NO_FOREGROUND = "the inputs have no foreground"
KEY = re.compile(
    r"(?:(?P<code>fork|upstream)_?)?(?:cap(?P<cap>[\d.]+)|nocap|(?P<log>log))?(?:_(?P<region>foreground|background))?"
)
PROTOCOLS = {"fork": "reference", "upstream": "reference-upstream"}
NOISE = 1e-7  # the root of float64's rounding, times some


@dataclass(frozen=True)
class Depths:
    """The inputs of one case."""

    pred: Array
    truth: Array
    foreground: Array | None

    def run(self, protocol: str = "spec", **settings: Any) -> Run:
        """Karat's evaluation; the suite's frames are not looked at."""
        frames = np.broadcast_to(np.uint8(0), (*self.truth.shape, 3))
        reading: dict[str, Any] = (
            {} if protocol.startswith("reference") else {"on_length": "truncate", "on_size": "resize"}
        )
        run: Run = evaluate(
            "transfer",
            pred=frames,
            truth=frames,
            pred_depth=self.pred,
            truth_depth=self.truth,
            masks=self.foreground,
            protocol=protocol,
            metrics=["depth_rmse"],
            settings={f"depth_rmse.{name}": value for name, value in settings.items()},
            workers=1,
            cache=False,
            strict=True,
            **reading,
        )
        return run


def answer(case: Case) -> Answer:
    """Every quantity that the case asks for."""
    depths = Depths(case.array("pred"), case.array("gt"), foreground(case))
    keys = {part: case.expected.get(part, {}) for part in ("reference", "reference_mask", "straight")}
    found: dict[str, dict[str, Any]] = {
        "reference": {key: reference(depths, key) for key in keys["reference"]},
        "reference_mask": {
            key: reference(depths, key) for key in keys["reference_mask"] if depths.foreground is not None
        },
        "straight": {key: straight(depths, key) for key in keys["straight"] if allowed(depths, key)},
    }
    skipped = dict(SKIPPED)
    if depths.foreground is None:
        skipped |= {"reference_mask/*": NO_FOREGROUND, "straight/*ground": NO_FOREGROUND}
    for key, value in found["reference"].items():
        if key.endswith("log") and value < NOISE:
            skipped[f"reference/{key}"] = ROOT_OF_ROUNDING
    return Answer(found, skipped)


def foreground(case: Case) -> Array | None:
    """The mask that the inputs name, or the one that lies beside the depths."""
    name = case.inputs.get("foreground", "fg")
    if "foreground" not in case.inputs and name not in case.arrays():
        return None
    return unpacked(case.arrays(), name).astype(bool)


def reference(depths: Depths, key: str) -> float:
    """What the published function returns, such as `fork_nocap` or `fork_cap10_foreground`."""
    protocol, settings, score = parsed(key)
    return sample_score(depths.run(protocol, **settings), score)


def straight(depths: Depths, key: str) -> dict[str, Any]:
    """By frame, and the means with a frame without valid pixels as 0 or left out."""
    _, settings, score = parsed(key)
    zero = depths.run(**settings, invalid_frame="zero")
    undefined = depths.run(**settings, invalid_frame="undefined")
    return {
        "per_frame": frame_scores(zero, score),
        "valid_frame": [not np.isnan(value) for value in frame_scores(undefined, score)],
        "mean_all_frames": sample_score(zero, score),
        "mean_valid_frames": sample_score(undefined, score),
    }


def parsed(key: str) -> tuple[str, Mapping[str, Any], str]:
    """Protocol, parameters and score that a key names."""
    found = KEY.fullmatch(key)
    if found is None:
        raise ValueError(f"{key!r} names no form of depth error")
    score = "depth_si_rmse_log" if found["log"] else "depth_si_rmse"
    at = f"@{found['region']}" if found["region"] else ""
    protocol = PROTOCOLS.get(found["code"] or "", "spec")
    if found["cap"] is None and "nocap" not in key:
        return protocol, {}, score + at  # the protocol's own
    return protocol, {"cap": float(found["cap"]) if found["cap"] else None}, score + at


def allowed(depths: Depths, key: str) -> bool:
    """Whether the mask that a key speaks of is there."""
    return depths.foreground is not None or not key.endswith("ground")
