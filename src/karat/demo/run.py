"""The demos: scenes with known truth, a few pretend models, their scores side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from karat.run import Run

DEMOS: Mapping[str, tuple[str, str]] = {  # suite -> the module that makes its scenes, and what these are
    "transfer": ("karat.demo.transfer", "three scenes"),
    "pose": ("karat.demo.pose", "three mice in two films"),
    "radiomap": ("karat.demo.radiomap", "nine radio maps of three floors"),
    "control": ("karat.demo.control", "24 objects in six scenes"),
    "generation": (
        "karat.demo.generation",
        "96 pictures of eight classes; distances of EfficientNet features, not FID numbers of the literature",
    ),
}


def show(suite: str, folder: Path, workers: int | None = None) -> tuple[str, dict[str, Run]]:
    """What the scenes of a suite's demo are; every pretend model evaluated on them, kept under `folder`/runs."""
    module, scenes = DEMOS[suite]
    run: Callable[[Path, int | None], dict[str, Run]] = import_module(module).run
    return scenes, run(folder, workers)
