"""What poses at the edges of the definitions score: every edge of the reference outputs, and others.

`cases_pose_edges.json` holds for each what is said under a protocol, worked out on paper: scores, or a text that is
part of the refusal. Inputs are spelled as in `cases/README.md`, by video where there are several; a case without any is
one of the reference outputs, which are not part of this repository. `asked` are further arguments of `evaluate`,
`told` is part of a note, `absent` are scores that are not there, and `equals` names a case of the same bits.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from contract.compare import near, value_bits
from contract.inputs import build
from golden._poses import Video, inline
from golden.sleap_oks import same_nodes

import karat
from karat.errors import KaratError
from karat.run import Run
from karat.suite import tuples
from karat.suites import load

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "shared" / "golden" / "pose" / "edge" / "edge_cases.json"
EDGES = {case["name"]: case for case in json.loads((HERE / "cases_pose_edges.json").read_text(encoding="utf-8"))}
PROTOCOLS = ("spec", "coco", "reference")
SAID = [pytest.param(name, on, id=f"{name}-{on}") for name, case in EDGES.items() for on in PROTOCOLS if on in case]


def reference() -> dict[str, Any]:
    """The edges of the reference outputs by name."""
    if not REFERENCE.is_file():
        pytest.fail(f"THE REFERENCE OUTPUTS ARE MISSING: {REFERENCE} is not there, so its edges were not verified.")
    return {case["name"]: case for case in json.loads(REFERENCE.read_text(encoding="utf-8"))}


def videos(case: Mapping[str, Any]) -> dict[str, Any]:
    """Both sides, poses by video."""
    if "truth" in case:
        sides = {name: case[name] if "poses" not in case[name] else {"0": case[name]} for name in ("truth", "pred")}
        return {name: {video: build(given, {}) for video, given in side.items()} for name, side in sides.items()}
    given = reference()[case["name"]]
    truth, pred = inline(given["gt"]), inline(given["pred"])
    both = same_nodes(Video("0", truth, pred, truth.frame, pred.frame))
    return {"truth": {"0": both.truth}, "pred": {"0": both.pred}}


def run(name: str, protocol: str, out: Path | None = None) -> Run:
    """The case evaluated; whatever is refused is raised."""
    asked = dict(EDGES[name].get("asked", {}))
    settings = {key: tuples(value) for key, value in asked.pop("settings", {}).items()}
    return karat.evaluate(
        "pose", protocol=protocol, settings=settings, workers=1, strict=True, out=out, **asked, **videos(EDGES[name])
    )


@pytest.mark.parametrize(("name", "protocol"), SAID)
def test_edge(name: str, protocol: str) -> None:
    said, why = EDGES[name][protocol], EDGES[name]["why"]
    if isinstance(said, str):
        with pytest.raises(KaratError, match=re.escape(said)):
            run(name, protocol)
        return
    found = run(name, protocol)
    for score, wanted in said.items():
        value = found.scores[score].value
        assert near(value, math.nan if wanted is None else wanted), f"{score} is {value}, not {wanted}: {why}"
    if protocol == "spec":
        assert any(EDGES[name].get("told", "") in note for note in ["", *found.notes]), found.notes
        assert not set(EDGES[name].get("absent", ())) & set(found.scores)


@pytest.mark.parametrize("name", [name for name, case in EDGES.items() if "equals" in case])
def test_equal_edges(name: str) -> None:
    for protocol in load("pose").protocols:
        assert value_bits(run(name, protocol).scores) == value_bits(run(EDGES[name]["equals"], protocol).scores)


def test_every_edge_of_the_reference_outputs_has_its_answer() -> None:
    assert {name for name, case in EDGES.items() if "truth" not in case} == set(reference())


def test_every_edge_says_something_and_why() -> None:
    listed = json.loads((HERE / "cases_pose_edges.json").read_text(encoding="utf-8"))
    assert len(listed) == len(EDGES)
    assert all(case["why"] and any(case.get(on) for on in PROTOCOLS) for case in listed)


@pytest.mark.parametrize("protocol", load("pose").protocols)
def test_a_run_of_every_protocol_is_read_back(protocol: str, tmp_path: Path) -> None:
    kept = run("nodes reversed, with sigmas", protocol, tmp_path / "run")
    back = Run.load(tmp_path / "run")
    assert (back.signature, value_bits(back.scores)) == (kept.signature, value_bits(kept.scores))
