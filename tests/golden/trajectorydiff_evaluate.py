"""`trajectorydiff-evaluate`: the table of TrajectoryDiff's evaluation script over all maps of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import karat
from karat.run import Run

from .case import Answer, Array, Case

MEANS = {
    "rmse_dbm": "rmse",
    "mae_dbm": "mae",
    "psnr": "psnr",
    "ssim": "ssim",
    "trajectory_rmse_dbm": "rmse@observed",
    "blind_spot_rmse_dbm": "rmse@unobserved",
    "ssim_observed": "ssim@observed",
    "psnr_observed": "psnr@observed",
    "ssim_unobserved": "ssim@unobserved",
    "psnr_unobserved": "psnr@unobserved",
    "rmse_free_space_dbm": "rmse@free",
    "mae_free_space_dbm": "mae@free",
    "rmse_building_dbm": "rmse@building",
    "rmse_free_obs_dbm": "rmse@free_observed",
    "rmse_free_unobs_dbm": "rmse@free_unobserved",
    "ssim_free_space": "ssim@free",
}


def answer(case: Case) -> Answer:
    """From single precision, as the script has it; Karat computes in double precision."""
    if case.protocol["params"]:
        raise ValueError("no parameter is known to this adapter")
    arrays = case.arrays()
    return Answer(table(evaluated(arrays["pred"], arrays["target"], arrays)))


def evaluated(pred: Array | None, target: Array, arrays: Mapping[str, Array], **more: Any) -> Run:
    """Every map a sample."""
    return karat.evaluate(
        "radiomap",
        protocol="reference-eval",
        pred=pred,
        truth=target,
        observed=arrays["mask"],
        building=arrays["building"],
        free="value>128",
        workers=1,
        **more,
    )


def table(run: Run) -> dict[str, Any]:
    """Means over maps, their standard deviations, and the values of every map."""
    found: dict[str, Any] = {"num_samples": len(run.samples)}
    for theirs, own in MEANS.items():
        values = [of[own] for of in run.sample_scores.values()]
        found[theirs] = run.scores[own].value
        found[f"{theirs}_std"] = float(np.nanstd(values))
        found[f"per_sample_{theirs}"] = values
    return found
