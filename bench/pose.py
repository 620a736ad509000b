"""Poses: Karat beside faster-coco-eval and pycocotools on the same arrays, and sleap-io's reading of the same files.

20,000 frames of three animals with fifteen nodes. What the peers do before they evaluate (their indices, their copies
of the detections) is not counted; what Karat does (checks, fingerprints, records, the table's numbers) is.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import karat
from bench import poses
from bench.race import Race

FRAMES = 20_000
FAMILIES = ("oks", "oks_voc", "pck_voc", "pck", "distance", "visibility", "centroid")


def races(folder: Path) -> list[Race]:
    """What is compared."""
    pred, truth = poses.pair(FRAMES)
    found = []
    for module, bound in (("faster_coco_eval", 6), ("pycocotools", None)):
        if find_spec(module):
            theirs = poses.oks_ap(module, pred, truth)
            ours = lambda: karat.evaluate("pose", pred=pred, truth=truth, metrics=FAMILIES, workers=1).scores  # noqa: E731
            found.append(Race("six families; peer: AP by OKS", module.replace("_", "-"), theirs, ours, bound, 4))
    if find_spec("sleap_io"):
        import sleap_io

        files = poses.write_slp(folder, pred, truth)
        read = lambda: [sleap_io.load_slp(str(file), open_videos=False) for file in files]  # noqa: E731
        table = lambda: karat.evaluate("pose", pred=files[0], truth=files[1], workers=1).plain()  # noqa: E731
        found.append(Race(".slp to table; peer: to objects", "sleap-io", read, table, 1 / 1.5, 2))
    return found
