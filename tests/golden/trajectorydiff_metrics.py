"""`trajectorydiff-metrics`: the functions of TrajectoryDiff's library, from maps, masks and standard deviations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import karat
from karat.areas import Uncovered, Where
from karat.run import Run

from .case import Answer, Array, Case

DBM = 139.0
KEYS = {
    "rmse": "rmse",
    "mae": "mae",
    "mse": "mse",
    "ssim": "ssim",
    "psnr": "psnr",
    "rmse_observed": "rmse@observed",
    "rmse_unobserved": "rmse@unobserved",
    "rmse_coverage_weighted": "rmse@uncovered",
    "rmse_dist_0_5": "rmse@distance:0-5",
    "rmse_dist_5_10": "rmse@distance:5-10",
    "rmse_dist_10_20": "rmse@distance:10-20",
    "rmse_dist_20_50": "rmse@distance:20-50",
    "rmse_dist_50_inf": "rmse@distance:50+",
    "calibration_error": "calibration_error",
    "fraction_within_1std": "fraction_within_1std",
    "fraction_within_2std": "fraction_within_2std",
    "uncertainty_error_correlation": "uncertainty_correlation",
    "coverage_ratio": "coverage_ratio",
}
WHERE = Where("observed", "observed", "unobserved", complement="published")


def answer(case: Case) -> Answer:
    """Everything that the case asks for."""
    params = dict(case.protocol["params"])
    scene, change, data_range = params.pop("scene"), params.pop("transformation", None), params.pop("data_range", None)
    if params:
        raise ValueError(f"{', '.join(params)} is no parameter that this adapter knows")
    given = fields(case.arrays(), scene)
    if change is not None:
        return Answer(EDGES[change](given, case.arrays()))
    if isinstance(case.expected, Mapping) and "compute_all_metrics" not in case.expected:
        return Answer(library(given, data_range))
    return Answer(whole(given))


def fields(arrays: Mapping[str, Array], scene: int) -> dict[str, Array]:
    """The fields of one scene, single precision widened."""
    found = {
        name: arrays[name][scene] for name in ("pred", "target", "std", "mask", "building", "png") if name in arrays
    }
    return {name: one.astype(np.float64) if one.dtype == np.float32 else one for name, one in found.items()}


def run(given: Mapping[str, Array], data_range: float | None = None, **settings: Any) -> Run:
    """One map, or several as one sample, under the protocol of the library."""
    if data_range is not None:
        settings = dict.fromkeys(("psnr.data_range", "ssim.data_range"), float(data_range)) | settings
    named = {"pred": "pred", "truth": "target", "observed": "mask", "building": "building", "pred_std": "std"}
    own = {field: {"0": given[name]} for field, name in named.items() if name in given}
    free = {"free": "value>128"} if "building" in given else {}
    return karat.evaluate("radiomap", protocol="reference", workers=1, settings=settings, **own, **free)


def library(given: Mapping[str, Array], data_range: float | None = None, **settings: Any) -> dict[str, float]:
    """compute_all_metrics."""
    given = {name: one for name, one in given.items() if name != "building"}
    scores = run(given, data_range, **settings).sample_scores["0"]
    return {theirs: scores[own] for theirs, own in KEYS.items() if own in scores}


def whole(given: Mapping[str, Array]) -> dict[str, Any]:
    """All parts of a scene."""
    density = coverage(given["mask"])
    found = run(given, DBM).sample_scores["0"]
    direct = run(given, **{"uncovered.weighting": "coverage"}).sample_scores["0"]
    return {
        "compute_all_metrics": {"data_range_none": library(given), "data_range_139": library(given, DBM)},
        "coverage_density": {
            "min": density.min(),
            "max": density.max(),
            "sum": density.sum(),
            "frac_exactly_zero": (density == 0).mean(),
        },
        "coverage_weighted_rmse": {"inverse": found["rmse@uncovered"], "direct": direct["rmse@uncovered"]},
        "calibration": calibration(found),
        "scale_sensitivity": {name: on_scale(given, *scale) for name, scale in SCALES.items()},
        "masked": {region: masked(found, region) for region in MASKED},
        "ssim_free_definitions": free_definitions(given),
        "ssim_free_constant_predictor": constant_predictor(given),
    }


def coverage(mask: Array) -> Array:
    """The mask under a Gaussian."""
    (density,) = Uncovered(WHERE, weighting="coverage").maps({"observed": mask[None]})["uncovered"]
    return density


def calibration(scores: Mapping[str, float]) -> dict[str, Any]:
    """The curve: what is expected within each z, and what is."""
    levels = [f"{z / 10:.1f}" for z in range(3, 31, 3)]
    expected = [math.erf(float(z) / math.sqrt(2)) for z in levels]
    names = ("calibration_error", "fraction_within_1std", "fraction_within_2std")
    return {name: scores[name] for name in names} | {
        "calibration_curve": [expected, [scores[f"fraction_within@z:{z}"] for z in levels]]
    }


SCALES = {  # a value in dBm -> there, and the width of that scale
    "dbm": (lambda dbm: dbm, DBM),
    "norm[-1,1]": (lambda dbm: (dbm + 186) / DBM * 2 - 1, 2.0),
    "png[0,255]": (lambda dbm: (dbm + 186) / DBM * 255, 255.0),
    "gray[0,1]": (lambda dbm: (dbm + 186) / DBM, 1.0),
}
MASKED = ("free", "building", "observed", "unobserved", "free_unobserved")


def on_scale(given: Mapping[str, Array], change: Any, width: float) -> dict[str, float]:
    """The same maps on another scale."""
    there = {name: change(given[name]) for name in ("pred", "target")}
    found = run(there, width).sample_scores["0"]
    energy = run(there, width, **{"nmse.normalizer": "energy"}).sample_scores["0"]
    own = {name: found[name] for name in ("ssim", "psnr", "rmse")}
    return own | {"nmse_var": found["nmse"], "nmse_energy": energy["nmse"]}


def masked(scores: Mapping[str, float], region: str) -> dict[str, float]:
    """The scores of one region."""
    return {name: scores[f"{name}@{region}"] for name in ("ssim", "psnr", "rmse", "mae")}


def free_definitions(given: Mapping[str, Array]) -> dict[str, float]:
    """Four readings of SSIM in free space."""
    free = {"free": given["building"] > 128}
    sides = given["pred"], given["target"]

    def ssim(**parameters: Any) -> dict[str, float]:
        return karat.SSIM(data_range=DBM, **parameters)(*sides, regions=free)

    return {
        "mean_fill": ssim(border="crop", fill="mean")["ssim@free"],
        "zero_fill": ssim(border="crop", fill="zero")["ssim@free"],
        "ssim_map_mean_over_free": ssim()["ssim@free"],
        "full_image": ssim(border="crop")["ssim"],
    }


def constant_predictor(given: Mapping[str, Array]) -> dict[str, float]:
    """A prediction of one value, scored in free space: the mean of the truth."""
    constant = np.full_like(given["target"], given["target"].mean())
    found = free_definitions({**given, "pred": constant})
    return {name: found[name] for name in ("mean_fill", "zero_fill")}


def uint8(given: Mapping[str, Array], _: Mapping[str, Array]) -> dict[str, float]:
    """Bytes against bytes, as they wrap and as they are."""
    pair = {"pred": given["png"], "target": np.roll(given["png"], 1)}
    wrapped, plain = library(pair), library({name: one.astype(float) for name, one in pair.items()})
    return {"rmse": wrapped["rmse"], "rmse_float": plain["rmse"], "mae": wrapped["mae"]}


def changed(*left_out: str, **change: Any) -> Any:
    """An edge case that changes some fields; a change is a function of all of them."""

    def edge(given: Mapping[str, Array], _: Mapping[str, Array]) -> dict[str, float]:
        kept = {name: one for name, one in given.items() if name not in left_out}
        return library(kept | {name: make(given) for name, make in change.items()})

    return edge


def one_nan(given: Mapping[str, Array]) -> Array:
    pred = given["pred"].copy()
    pred[10, 10] = np.nan
    return pred


def batch(_: Mapping[str, Array], arrays: Mapping[str, Array]) -> dict[str, float]:
    """Three scenes as the slices of one volume, that no window of seven fits into."""
    three = {name: arrays[name][:3].astype(np.float64) for name in ("pred", "target")} | {"mask": arrays["mask"][:3]}
    return library(three, float(np.ptp(three["target"])), **{"psnr.pool": "sample"}) | {"ssim": math.nan}


def error_alone(pred: Any, target: Any, std: Any) -> Any:
    """Only the calibration error."""

    def edge(given: Mapping[str, Array], _: Mapping[str, Array]) -> float:
        made = {"pred": pred(given), "target": target(given), "std": std(given)}
        return library(made)["calibration_error"]

    return edge


def perfect_gaussian(_: Mapping[str, Array], __: Mapping[str, Array]) -> dict[str, float]:
    """A million draws from the normal distribution that is predicted."""
    draws = np.random.default_rng(1).normal(0, 1, (1000, 1000))
    return library({"pred": np.zeros_like(draws), "target": draws, "std": np.ones_like(draws)})


EDGES: dict[str, Any] = {
    "mask_empty": changed(mask=lambda s: np.zeros_like(s["mask"])),
    "mask_all_ones": changed("std", mask=lambda s: np.ones_like(s["mask"])),
    "mask_bool": changed("std", mask=lambda s: s["mask"].astype(bool)),
    "mask_uint8_255": changed("std", mask=lambda s: (s["mask"] * 255).astype(np.uint8)),
    "mask_float_half": changed("std", mask=lambda s: s["mask"] * 0.5),
    "one_nan_pixel_in_pred": changed(pred=one_nan),
    "std_zero": changed("mask", std=lambda s: np.zeros_like(s["target"])),
    "std_zero_perfect": changed("mask", std=lambda s: np.zeros_like(s["target"]), pred=lambda s: s["target"]),
    "std_constant": changed("mask", std=lambda s: np.ones_like(s["target"])),
    "constant_target": changed("mask", "std", target=lambda s: np.full_like(s["target"], -100.0)),
    "perfect": changed("std", pred=lambda s: s["target"]),
    "batch3_3d_input": batch,
    "uint8_pred_target": uint8,
    "max_calibration_error_overconfident": error_alone(
        lambda s: s["pred"] + 1e6, lambda s: s["target"], lambda s: np.ones_like(s["target"])
    ),
    "max_calibration_error_underconfident": error_alone(
        lambda s: s["target"], lambda s: s["target"], lambda s: np.full_like(s["target"], 1e9)
    ),
    "perfect_gaussian_1e6": perfect_gaussian,
}
