"""The demo of videos: every pretend model evaluated on all fields of the scenes."""

from __future__ import annotations

from pathlib import Path

from karat.demo.write import write
from karat.evaluation import evaluate
from karat.run import Run


def run(folder: Path, workers: int | None = None) -> dict[str, Run]:
    """Writes the clips under `folder`, evaluates every model against the truth, keeps the runs under `folder`/runs."""
    places = write(folder)
    shared = ("truth", "truth_depth", "truth_segments", "masks")
    return {
        name: evaluate(
            "transfer",
            pred=place / "videos",
            pred_depth=place / "depth",
            pred_segments=place / "segments",
            out=folder / "runs" / name,
            workers=workers,
            truth=places["truth"],
            truth_depth=places["truth_depth"],
            truth_segments=places["truth_segments"],
            masks=places["masks"],
        )
        for name, place in places.items()
        if name not in shared
    }
