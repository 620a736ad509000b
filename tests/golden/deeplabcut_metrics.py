"""`deeplabcut-metrics`: pixel error and average precision of DeepLabCut's own metrics."""

from __future__ import annotations

from karat.meter import Meter
from karat.metrics.deeplabcut import DeepLabCutAP, DeepLabCutMatches, DeepLabCutRMSE

from .case import Answer, Case
from .sleap_centroid import given


def answer(case: Case) -> Answer:
    """The four numbers; the score of an instance stands for the confidence of each of its nodes."""
    params = dict(case.protocol["params"])
    by_oks = DeepLabCutAP(of=DeepLabCutMatches(sigma=float(params.pop("oks_sigma", 0.1)), least_nodes=2))
    by_pixels = DeepLabCutRMSE(pcutoff=float(params.pop("pcutoff", -1.0)))
    if params:
        raise ValueError(f"{', '.join(sorted(params))} is no parameter that this adapter knows")
    videos = list(given(case.arrays()))
    meter = Meter(by_oks, by_pixels)
    meter.update(
        ids=[f"{number:06d}" for number in range(len(videos))],
        truth=[truth for truth, _ in videos],
        pred=[pred for _, pred in videos],
    )
    found = meter.compute()
    names = {"rmse": "dlc_rmse", "rmse_pcutoff": "dlc_rmse_pcutoff", "mAP": "dlc_map", "mAR": "dlc_mar"}
    return Answer({name: found[score] for name, score in names.items()})
