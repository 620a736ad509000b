"""Predicted spatial fields (radio maps) against the truth: by region, by distance from what was observed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from karat.areas import Both, Far, Uncovered, Where
from karat.errors import UsageError
from karat.kernels.ensemble import SampleDeviation, SampleMean
from karat.kernels.interpolate import BASELINES
from karat.metric import Derived, Metric
from karat.metrics.calibration import Calibration, DeviationCounts
from karat.metrics.ensemble_forecast import EnsembleCounts, EnsembleCRPS, EnsembleSpread
from karat.metrics.field_error import NMSE, FieldError, NormalizedFieldError, PixelCounts
from karat.metrics.interval_score import IntervalScore
from karat.metrics.mae import MAE
from karat.metrics.mse import MSE
from karat.metrics.normal_forecast import CRPS, NLL, SpreadSkill
from karat.metrics.normalized_ssim import NormalizedSSIM
from karat.metrics.observed_share import ObservedShare
from karat.metrics.pit import MACE, PIT
from karat.metrics.psnr import PSNR
from karat.metrics.rank_histogram import RankHistogram
from karat.metrics.rmse import RMSE
from karat.metrics.sample_diversity import SampleDiversity
from karat.metrics.ssim import SSIM
from karat.metrics.uncertainty_correlation import UncertaintyCorrelation
from karat.sources.baselines import Interpolated
from karat.suite import Option, Protocol, Suite
from karat.suites import _trajectorydiff

RADIO_MAP_SEER = 139.0  # dB, from -186 to -47 dBm
_OBSERVED = Where("observed", "observed", "unobserved")
_FREE = Where("building", "free", "building", rule="")
_ERROR = FieldError()

_BANDS = ((2.0, "excellent"), (5.0, "good"), (10.0, "moderate"), (math.inf, "poor"))
_BINS = ("distance:0-5", "distance:5-10", "distance:10-20", "distance:20-50", "distance:50+")


def _comments(scores: Mapping[str, float]) -> Iterator[str]:
    """What the numbers say together."""
    seen, unseen = scores.get("rmse@observed", math.nan), scores.get("rmse@unobserved", math.nan)
    if seen > 0 and unseen > 0:
        times = unseen / seen
        read = "hardly more" if times < 1.5 else "more" if times < 3 else "far more"
        yield f"RMSE where nothing was observed is {times:.2f} times that where something was: {read}."
    grown = [(name.partition(":")[2], scores.get(f"rmse@{name}", math.nan)) for name in _BINS]
    known = [(name, value) for name, value in grown if not math.isnan(value)]
    if len(known) > 1:
        yield "RMSE by distance to the nearest observation: " + ", ".join(f"{n} px {v:.2f}" for n, v in known) + "."
    if "coverage_ratio" in scores:
        free = scores.get("coverage_ratio@free", math.nan)
        of_free = "" if math.isnan(free) else f", {free:.2%} of free space"
        yield f"Observed is {scores['coverage_ratio']:.2%} of the map{of_free}."
    far = scores.get("weight_share@distance:50+", math.nan) + scores.get("weight_share@distance:20-50", math.nan)
    if not math.isnan(far):
        yield f"rmse@uncovered is weighed by how little was observed: {far:.1%} of its weight lies beyond 20 px."
    if "rmse@free" in scores:
        yield (
            "Scores without a region count buildings, and are fair only between methods that were given the building "
            "map; rmse@free is the primary score, rmse@free_unobserved the fairest."
        )


def _baseline(name: str, sources: Mapping[str, Any], read: Callable[[Any], Any]) -> Any:
    """A prediction that is made of the truth where it was observed."""
    if "observed" not in sources:
        raise UsageError("Baselines are made of what was observed: pass --observed.")
    return Interpolated(sources["truth"], sources["observed"], name, BASELINES[name], read)


def _differ(question: str, spec: str, library: str, script: str) -> tuple[str, dict[str, str]]:
    return question, {"spec": spec, "reference": library, "reference-eval": script}


SUITE = Suite(
    name="radiomap",
    title="Radio maps: error of spatial fields by region and distance, and of their uncertainty",
    fields={
        "pred": "field",
        "pred_std": "spread",
        "pred_samples": "ensemble",
        "truth": "field",
        "observed": "plain",
        "building": "plain",
    },
    required=("pred", "truth"),
    truth="truth",
    arrays={
        "pred": ("pred", "prediction", "mean", "map", "field"),
        "pred_std": ("std", "pred_std", "sigma", "map", "field"),
        "pred_samples": ("samples", "pred_samples", "ensemble"),
        "truth": ("truth", "target", "map", "field"),
        "observed": ("observed", "mask", "trajectory_mask", "map"),
        "building": ("building", "building_map", "map"),
    },
    metrics=(
        RMSE(of=_ERROR),
        MAE(of=_ERROR),
        MSE(of=_ERROR),
        NMSE(of=_ERROR),
        PSNR(of=_ERROR, data_range=RADIO_MAP_SEER),
        SSIM(data_range=RADIO_MAP_SEER, border="crop"),
        NormalizedFieldError(of=_ERROR),
        NormalizedSSIM(border="crop"),
        Calibration(),
        UncertaintyCorrelation(),
        CRPS(),
        NLL(),
        PIT(),
        MACE(),
        SpreadSkill(),
        IntervalScore(),
        EnsembleCRPS(),
        EnsembleSpread(),
        RankHistogram(),
        SampleDiversity(),
        ObservedShare(),
        PixelCounts(of=_ERROR),
        DeviationCounts(),
        EnsembleCounts(),
    ),
    made={
        "pred": Derived("pred_samples", SampleMean()),
        "pred_std": Derived("pred_samples", SampleDeviation(ddof=1)),
    },
    areas=(
        _OBSERVED,
        _FREE,
        Both(_FREE, _OBSERVED),
        Far(_OBSERVED),
        Uncovered(_OBSERVED),
    ),
    on_scale=("normalized_ssim.scale",),
    scaled=("psnr.data_range", "ssim.data_range", "normalized_field_error.span"),
    headline=(
        *("rmse", "mae", "mse", "nmse", "psnr", "ssim", "rmse@normalized", "mae@normalized", "ssim@normalized"),
        *("fraction_within_1std", "fraction_within_2std", "calibration_error", "uncertainty_correlation"),
        *("crps", "nll", "mace", "rmsce", "sharpness", "spread_skill", "interval_coverage", "winkler"),
        *("crps_ensemble", "crps_fair", "diversity_mean_std", "coverage_ratio", "n_pixels", "n_nan_pixels"),
    ),
    tables=("region",),
    bands={"rmse": _BANDS, "mae": _BANDS},
    expected={
        "fraction_within_1std": "0.6827",
        "fraction_within_2std": "0.9545",
        "calibration_error": "0",
        "uncertainty_correlation": "> 0.5",
        "spread_skill": "1",
    },
    comments=_comments,
    knows={
        "building_map": "where buildings are",
        "sparse_rss": "the signal at the observed pixels",
        "trajectory_mask": "which pixels were observed",
        "coverage_density": "how densely, smoothed",
        "tx_position": "where the transmitter is",
    },
    favours={"building_map": ("all", "building", "uncovered")},
    baselines={name: partial(_baseline, name) for name in BASELINES},
    baseline_inputs=("sparse_rss", "trajectory_mask"),
    options={"free": Option(("free.rule",), read=str)},
    protocols={
        "spec": Protocol("The specification's text, right at every edge."),
        "reference": Protocol(
            "The numbers of YaqoobAnsari/TrajectoryDiff@bfd07871, defects included.",
            {
                "field_error": {"missing": "spread", "arithmetic": "given"},
                "standardized_error": {"offset": 1e-8, "undefined": "miss"},
                "uncertainty_correlation": {"flat": "keep"},
                "observed_share": {"amount": "mean"},
                "psnr": {"data_range": "truth"},
                "ssim": {"data_range": "truth_or_1", "fill": "mean", "missing": "spread"},
            },
            areas={
                "observed": {"complement": "published"},
                "distance": {"zero": "out", "nowhere": "corner", "frames": "volume"},
                "uncovered": {"frames": "volume"},
            },
        ),
        "reference-eval": Protocol(
            "The numbers of its scripts/evaluate.py: on the declared scale, with an epsilon in PSNR.",
            {
                "field_error": {"missing": "spread"},
                "observed_share": {"amount": "mean"},
                "psnr": {"epsilon": 1e-8},
                "ssim": {"fill": "mean", "missing": "spread", "arithmetic": "published"},
            },
            areas={"observed": {"rule": "value>0.5"}, "distance": {"zero": "out", "nowhere": "corner"}},
        ),
    },
    differences=[
        _differ(
            "bin 0-5", "[0, 5], the observed pixels in it", "(0, 5], the observed pixels in no bin", "as reference"
        ),
        _differ("no observation", "no distance: undefined, said", "measured to a point above the map", "as reference"),
        _differ(
            "masks",
            "booleans, or 0 and one other value; what is not observed is the complement",
            "1 - mask in the mask's own type: soft masks are both, of 0 and 255 everything is unobserved",
            "observed is above 0.5",
        ),
        _differ("integers", "widened", "wrap around", "widened"),
        _differ("NaN pixels", "left out, counted", "make errors NaN", "as reference"),
        _differ("range of PSNR and SSIM", "the declared scale, or 139 dB", "of this truth", "139 dB"),
        _differ("PSNR of a perfect map", "infinite, said", "as spec", "finite: 1e-8 is added"),
        _differ("SSIM of a region", "mean of the map's SSIM in it", "of maps filled with their mean", "as reference"),
        _differ("standard deviation of 0", "undefined, counted", "1e-8 is added", "as spec"),
        _differ("free space", "what --free declares", "as spec", "building > 0 on [-1, 1]: declare it"),
        _differ("NMSE", "MSE / var(truth), or by energy", "there is none", "there is none"),
        _differ("intervals", "of whole buildings, with --group-by", "of maps, as if independent", "as reference"),
    ],
    citation="YaqoobAnsari/TrajectoryDiff@bfd07871, docs/metrics.md.",
)


@lru_cache(maxsize=16)
def _in_range(width: float) -> tuple[Metric, ...]:
    """The suite's metrics of maps in a range."""
    return SUITE.under("spec", settings={"psnr.data_range": width, "ssim.data_range": width})[0]


def compute_all_metrics(
    pred: Any, target: Any, trajectory_mask: Any = None, pred_std: Any = None, data_range: float | None = None
) -> dict[str, float]:
    """All of the specification's metrics of one map in dBm, by its keys: errors, SSIM and PSNR (`data_range` is that of
    RadioMapSeer, 139 dB, where none is given), with a mask of what was observed by region and distance, with standard
    deviations calibration."""
    given = {"pred": pred, "truth": target, "observed": trajectory_mask, "pred_std": pred_std}
    fields = {name: _trajectorydiff.single(name, one) for name, one in given.items() if one is not None}
    metrics = _in_range(RADIO_MAP_SEER if data_range is None else float(data_range))
    areas = tuple(area for area in SUITE.areas if set(area.needs) <= set(fields))
    found = _trajectorydiff.compute_all(metrics, areas, fields)
    if trajectory_mask is not None:
        found["coverage_ratio"] = float((fields["observed"] != 0).mean())
    return found


FUNCTIONS = {
    "compute_all_metrics": compute_all_metrics,
    "denormalize_radio_map": _trajectorydiff.denormalize_radio_map,
    "compute_rmse": _trajectorydiff.compute_rmse,
    "compute_psnr": _trajectorydiff.compute_psnr,
}
