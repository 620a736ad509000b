"""The calls of TrajectoryDiff's library by its names and keys, on single maps; `karat.functional` offers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from karat.areas import Area
from karat.errors import InputError
from karat.kernels.pixels import difference
from karat.metric import Array, Metric, Statistic, Sums, ratio
from karat.metrics.psnr import PSNR
from karat.metrics.rmse import RMSE
from karat.region import Map, Regions, make_regions
from karat.sources.pairing import as_array

LOW, HIGH = -186.0, -47.0  # dBm, of RadioMapSeer
REGIONAL = {
    "rmse_observed": "observed",
    "rmse_unobserved": "unobserved",
    "rmse_coverage_weighted": "uncovered",
    "rmse_dist_0_5": "distance:0-5",
    "rmse_dist_5_10": "distance:5-10",
    "rmse_dist_10_20": "distance:10-20",
    "rmse_dist_20_50": "distance:20-50",
    "rmse_dist_50_inf": "distance:50+",
}
WHOLE = ("rmse", "mae", "mse", "nmse", "psnr", "ssim")
UNCERTAIN = {
    "calibration_error": "calibration_error",
    "fraction_within_1std": "fraction_within_1std",
    "fraction_within_2std": "fraction_within_2std",
    "uncertainty_error_correlation": "uncertainty_correlation",
}


def denormalize_radio_map(values: Any, low: float = LOW, high: float = HIGH) -> Array:
    """Maps in [-1, 1] -> [0, 255] -> dBm: (x + 1) / 2 (high - low) + low, in float64."""
    return np.asarray((as_array(values).astype(np.float64) + 1) / 2 * (high - low) + low)


def compute_rmse(pred: Any, target: Any, mask: Any = None) -> float:
    """Root mean squared error of two maps, over a mask where one is given; NaN where that is empty."""
    return _in(mask, RMSE(), pred, target)["rmse"]


def compute_psnr(pred: Any, target: Any, data_range: float = HIGH - LOW, mask: Any = None) -> float:
    """10 log10(data_range^2 / MSE) of two maps, over a mask where one is given."""
    return _in(mask, PSNR(data_range=data_range), pred, target)["psnr"]


def compute_all(metrics: tuple[Metric, ...], areas: tuple[Area, ...], fields: Mapping[str, Array]) -> dict[str, float]:
    """The library's keys of one map, whose fields are (1, H, W): errors by region, all else of the whole map."""
    shape = fields["truth"].shape
    masks: dict[str, Map] = {}
    for area in areas:
        masks |= area.maps(fields)
    everything = make_regions({}, shape)
    measured: dict[Statistic, Any] = {}
    found = _rmse(fields["pred"], fields["truth"], make_regions(masks, shape))
    for metric in metrics:
        statistic = metric.statistic
        if not set(statistic.fields()) <= set(fields) or not set(metric.scores) & {*WHOLE, *UNCERTAIN.values()}:
            continue
        if statistic not in measured:
            given = {name: fields[name] for name in statistic.arguments()}
            measured[statistic] = {name: c[0] for name, c in statistic.measure(**given, regions=everything).items()}
        for name, values in metric.score(Sums(measured[statistic])).items():
            (found[name],) = np.asarray(getattr(values, "value", values), np.float64).tolist()
    named = {name: name for name in WHOLE} | {theirs: f"rmse@{r}" for theirs, r in REGIONAL.items()} | UNCERTAIN
    return {theirs: found[own] for theirs, own in named.items() if own in found}


def _rmse(pred: Array, truth: Array, regions: Regions) -> dict[str, float]:
    """The root of the mean squared error of every region, pixels that are NaN left out."""
    gap = difference(pred, truth)
    lost = np.isnan(gap)
    known = regions.where(~lost) if lost.any() else regions
    values = np.sqrt(ratio(known.sum(gap * gap), known.weight(truth.shape)))[0].tolist()
    return {f"rmse@{region}": value for region, value in zip(regions.names, values, strict=True)}


def single(name: str, value: Any) -> Array:
    """One map as (1, H, W); axes of length 1 in front are passed over."""
    array = as_array(value)
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2:
        raise InputError(
            f"{name} has shape {as_array(value).shape}, and one map (H, W) was expected: call it map by map."
        )
    return array[None]


def _in(mask: Any, metric: Metric, pred: Any, target: Any) -> dict[str, float]:
    sides = (as_array(pred), as_array(target))
    if mask is None:
        return metric(*sides)
    found = metric(*sides, regions={"mask": as_array(mask)})
    return {name: found[f"{name}@mask"] for name in metric.scores}
