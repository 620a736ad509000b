"""Predicted spatial fields (radio maps) against the truth: by region, by distance from what was observed."""

from __future__ import annotations

from karat.areas import Both, Far, Uncovered, Where
from karat.metrics.coverage import Coverage
from karat.metrics.field_error import NMSE, FieldError, NormalizedFieldError, PixelCounts
from karat.metrics.mae import MAE
from karat.metrics.mse import MSE
from karat.metrics.psnr import PSNR
from karat.metrics.rmse import RMSE
from karat.metrics.ssim import SSIM
from karat.suite import Option, Protocol, Suite

RADIO_MAP_SEER = 139.0  # dB, from -186 to -47 dBm
_OBSERVED = Where("observed", "observed", "unobserved")
_FREE = Where("building", "free", "building", rule="")
_ERROR = FieldError()

SUITE = Suite(
    name="radiomap",
    title="Radio maps: error of spatial fields by region and distance, and of their uncertainty",
    fields={
        "pred": "field",
        "truth": "field",
        "observed": "plain",
        "building": "plain",
    },
    required=("pred", "truth"),
    truth="truth",
    metrics=(
        RMSE(of=_ERROR),
        MAE(of=_ERROR),
        MSE(of=_ERROR),
        NMSE(of=_ERROR),
        PSNR(of=_ERROR, data_range=RADIO_MAP_SEER),
        SSIM(data_range=RADIO_MAP_SEER, border="crop"),
        NormalizedFieldError(of=_ERROR),
        Coverage(),
        PixelCounts(of=_ERROR),
    ),
    areas=(
        _OBSERVED,
        _FREE,
        Both(_FREE, _OBSERVED),
        Far(_OBSERVED),
        Uncovered(_OBSERVED),
    ),
    scaled=("psnr.data_range", "ssim.data_range", "normalized_field_error.span"),
    options={"free": Option(("free.rule",), read=str)},
    protocols={
        "spec": Protocol("The specification's text, right at every edge."),
        "reference": Protocol(
            "The numbers of YaqoobAnsari/TrajectoryDiff@bfd07871, defects included.",
            {
                "field_error": {"missing": "spread", "arithmetic": "given"},
                "coverage": {"amount": "mean"},
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
                "coverage": {"amount": "mean"},
                "psnr": {"epsilon": 1e-8},
                "ssim": {"fill": "mean", "missing": "spread"},
            },
            areas={"observed": {"rule": "value>0.5"}, "distance": {"zero": "out", "nowhere": "corner"}},
        ),
    },
    citation="YaqoobAnsari/TrajectoryDiff@bfd07871, docs/metrics.md.",
)
