"""The published script's lines, and the prompts of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from karat.metrics.following import PUBLISHED_DIAGONAL, PUBLISHED_EPS, PublishedFollowing
from karat.rows import Rows

HEADER = "mIoU , Coverage , CD , AP50"
RULE = 10 * "-"
NOT_IN_PAPER = (
    "a classic steam train stationed",
    "a grand piano in an elegant",
    "a red british telephone box",
    "a sailboat gliding",
    "a spider descending",
    "a vintage car cruising",
    "a vintage car parked",
    "an old-fashioned street lamp",
)
Line = dict[str, float]


def in_paper(caption: str) -> bool:
    """Whether a prompt of IMC is one of the 34 that the paper has."""
    return not caption.strip().rstrip(".").lower().startswith(NOT_IN_PAPER)


def videos(rows: Rows) -> list[dict[str, Any]]:
    """What the script says of every video, in the order of the predictions."""
    found = []
    for sample in range(len(rows.samples)):
        one = {name: column[rows.sample == sample] for name, column in rows.columns.items()}
        if not len(one["place"]):
            continue
        detected = one["detected"]
        judged = one["hit"][detected]
        found.append(
            {
                "sample": rows.samples[sample],
                "place": int(one["place"][0]),
                "num_bb": int(one["counted"][0]),
                "iou": float(one["inter"].sum() / (one["union"].sum() + PUBLISHED_EPS)),
                "ap50": float(np.mean(judged)) if len(judged) else float("nan"),
                "centroid_dist": float(np.mean(one["l2_px"])),
            }
        )
    return sorted(found, key=lambda video: video["place"])


def lines(of: Iterable[dict[str, Any]]) -> tuple[Line, Line]:
    """The numbers of the two lines, not rounded: summed in the order of the predictions, as the script does."""
    table = list(of)
    iou, ap50, far, num_bb = (
        np.array([one[name] for one in table]) for name in ("iou", "ap50", "centroid_dist", "num_bb")
    )
    covered = num_bb > 8
    shared = {"Coverage": float(np.mean(covered)), "CD": float(np.mean(far / PUBLISHED_DIAGONAL))}
    known = ~np.isnan(ap50)
    with np.errstate(invalid="ignore", divide="ignore"):
        weighted = np.float64((ap50 * num_bb)[known].sum()) / num_bb.sum()
        of_covered = np.float64((iou * covered).sum()) / covered.sum()
    plain = float(ap50[known].mean()) if known.any() else float("nan")
    return (
        {"mIoU": float(100 * of_covered), **shared, "AP50": float(100 * weighted)},
        {"mIoU": float(100 * iou.mean()), **shared, "AP50": 100 * plain},
    )


def printed(both: Iterable[Line]) -> Iterator[str]:
    """The script's words."""
    yield HEADER
    for one in both:
        yield f"{one['mIoU']:.1f} , {one['Coverage']} , {one['CD']:.2f} , {one['AP50']:.1f}"
    yield RULE


def write_lines(run: Any, path: Path) -> None:
    """Writes what the script prints of a run under `reference`."""
    path.write_text("".join(f"{line}\n" for line in printed(lines(videos(published_rows(run))))), encoding="utf-8")


def published_rows(run: Any) -> Rows:
    """The rows in the script's arithmetic."""
    names = (name for name, one in run.identity.statistics.items() if isinstance(one, PublishedFollowing))
    rows: Rows = run.rows[next(names)]
    return rows
