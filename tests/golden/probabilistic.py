"""`probabilistic`: scores and calibration of several libraries, of a map with standard deviations and samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import karat

from .case import Answer, Case

SCORES = {  # theirs -> ours
    "properscoring.crps_gaussian": "crps",
    "scoringrules.crps_normal": "crps",
    "uct.crps_gaussian": "crps",
    "properscoring.crps_ensemble": "crps_ensemble",
    "scoringrules.crps_ensemble.nrg": "crps_ensemble",
    "scoringrules.crps_ensemble.qd": "crps_ensemble",
    "scores.crps_for_ensemble.ecdf": "crps_ensemble",
    "scoringrules.crps_ensemble.pwm": "crps_fair",
    "scoringrules.crps_ensemble.fair": "crps_fair",
    "scores.crps_for_ensemble.fair": "crps_fair",
    "scoringrules.logs_normal": "nll",
    "uct.nll_gaussian": "nll",
    "uct.sharpness": "sharpness",
    "uct.mace.interval100": "mace",
    "uct.rmsce.interval100": "rmsce",
    "uct.miscalibration_area.interval100": "miscalibration_area",
    "uct.mace.quantile100": "mace_quantile",
    "trajectorydiff.uncertainty_error_correlation": "uncertainty_correlation",
    "numpy.pit_mean": "pit_mean",
    "numpy.pit_var": "pit_var",
    "numpy.ensemble_mean_rmse": "ensemble_rmse",
    "numpy.spread_rms_ddof1": "ensemble_spread",
    "numpy.spread_skill_ratio_with_sqrt((K+1)/K)": "spread_skill_ensemble",
    "n_pixels": "n_sampled_pixels",
    "n_samples": "n_members",
}


def answer(case: Case) -> Answer:
    """Every score of the case; all of one run, but for the published calibration."""
    found, published = scores(case, "spec"), scores(case, "reference")
    n = found["n_std_pixels"]
    return Answer(
        {
            **{theirs: found[own] for theirs, own in SCORES.items()},
            "numpy.pit_hist10": [found[f"pit_hist@u:{k / 10:g}-{(k + 1) / 10:g}"] * n for k in range(10)],
            "numpy.rank_hist": [
                found[f"rank_hist@rank:{k}"] * n for k in range(case.protocol["params"]["n_samples"] + 1)
            ],
            "trajectorydiff.uncertainty_calibration": calibration(published),
        }
    )


def scores(case: Case, protocol: str) -> Mapping[str, float]:
    """Karat's scores of the one map, samples widened to double precision."""
    given = case.arrays()
    fields = {"pred": given["mean"], "pred_std": given["std"], "truth": given["target"]}
    fields["pred_samples"] = given["samples"].astype(np.float64)
    run = karat.evaluate("radiomap", protocol=protocol, workers=1, **{name: {"0": one} for name, one in fields.items()})
    return run.sample_scores["0"]


def calibration(found: Mapping[str, float]) -> dict[str, Any]:
    """The published shares: what is expected within each z, and what is."""
    levels = [z / 10 for z in range(3, 31, 3)]
    curve = [[math.erf(z / math.sqrt(2)) for z in levels], [found[f"fraction_within@z:{z}"] for z in levels]]
    names = ("calibration_error", "fraction_within_1std", "fraction_within_2std")
    return {**{name: found[name] for name in names}, "calibration_curve": curve}
