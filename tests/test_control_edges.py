"""What boxes at the edges of the definitions score: every edge of the reference outputs, and others.

`cases_control_edges.json` holds for each what is said under a protocol, worked out on paper: scores, or a text that is
part of the refusal. A case without records is one of the reference outputs, which are not part of this repository.
`asked` are further arguments of `evaluate`, `told` is part of a note.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from contract.compare import near
from golden.peekaboo import boxes

import karat
from karat.errors import KaratError
from karat.run import Run

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "shared" / "golden" / "control"
EDGES = {case["name"]: case for case in json.loads((HERE / "cases_control_edges.json").read_text(encoding="utf-8"))}
PROTOCOLS = ("spec", "paper", "reference")
SAID = [pytest.param(name, on, id=f"{name}-{on}") for name, case in EDGES.items() for on in PROTOCOLS if on in case]


def sides(name: str, place: Path, pickled: bool) -> dict[str, Any]:
    """Both sides: of a reference output its files, the predictions as its pickle or as boxes."""
    if "truth" in EDGES[name]:
        return {side: EDGES[name][side] for side in ("truth", "pred")}
    folder = REFERENCE / name
    if not folder.is_dir():
        pytest.fail(f"THE REFERENCE OUTPUTS ARE MISSING: {folder} is not there, so its edge was not verified.")
    given = json.loads((folder / "pred_boxes.json").read_text(encoding="utf-8"))
    if not pickled:
        return {"truth": folder / "gt.json", "pred": boxes(given)}
    (place / "pred.pkl").write_bytes(gzip.decompress((folder / "pred.pkl.gz").read_bytes()))
    return {"truth": folder / "gt.json", "pred": place / "pred.pkl"}


def run(name: str, protocol: str, place: Path, pickled: bool = True) -> Run:
    """The case evaluated; whatever is refused is raised."""
    asked = EDGES[name].get("asked", {})
    return karat.evaluate("control", protocol=protocol, workers=1, strict=True, **asked, **sides(name, place, pickled))


@pytest.mark.parametrize(("name", "protocol"), SAID)
def test_edge(name: str, protocol: str, tmp_path: Path) -> None:
    said, why = EDGES[name][protocol], EDGES[name]["why"]
    if isinstance(said, str):
        with pytest.raises(KaratError, match=re.escape(said)):
            run(name, protocol, tmp_path)
        return
    found = run(name, protocol, tmp_path)
    for score, wanted in said.items():
        value = found.scores[score].value
        assert near(value, math.nan if wanted is None else wanted), f"{score} is {value}, not {wanted}: {why}"
    if protocol == "spec":
        assert any(EDGES[name].get("told", "") in note for note in ["", *found.notes]), found.notes


@pytest.mark.parametrize("name", [name for name, case in EDGES.items() if "truth" not in case and "L_" not in name])
def test_masks_of_boxes_score_as_these_boxes(name: str, tmp_path: Path) -> None:
    if "soft" in name or isinstance(EDGES[name]["spec"], str):
        return
    of_masks, of_boxes = (run(name, "spec", tmp_path, pickled).scores for pickled in (True, False))
    for score, value in of_masks.items():
        assert near(value.value, of_boxes[score].value), score
        assert (value.n, value.undefined, value.excluded) == (
            of_boxes[score].n,
            of_boxes[score].undefined,
            of_boxes[score].excluded,
        )


def test_every_edge_of_the_reference_outputs_has_its_answer() -> None:
    known = {folder.name for folder in REFERENCE.iterdir() if folder.name.startswith("edge_")}
    assert {name for name, case in EDGES.items() if "truth" not in case} == known


def test_every_edge_says_why() -> None:
    assert all(case["why"] and "spec" in case for case in EDGES.values())
