"""Every metric of Karat says what its cases say."""

from __future__ import annotations

import pytest
from contract.cases import FOLDER, Case, kinds, path, read
from contract.compare import near
from contract.laws import GRADED, UNDEFINED

from karat.errors import KaratError
from karat.metric import Metric, snake
from karat.score import of_keys

KINDS = kinds()
PRESENT = {name: read(path(kind)) for name, kind in KINDS.items() if path(kind).exists()}
CASES = [
    pytest.param(KINDS[name], case, id=f"{name}-{case.name}") for name, own in PRESENT.items() for case in own.cases
]


def test_every_metric_has_cases() -> None:
    lacking = [name for name in KINDS if name not in PRESENT]
    assert not lacking, f"no cases of {', '.join(lacking)}: write {', '.join(str(path(KINDS[n])) for n in lacking)}"


def test_all_cases_are_of_a_metric() -> None:
    found = {file.stem for file in FOLDER.glob("*.json")}
    assert found == {snake(name) for name in PRESENT}
    assert all(own.metric == name for name, own in PRESENT.items())


@pytest.mark.parametrize("kind, case", CASES)
def test_case(kind: type[Metric], case: Case) -> None:
    if case.raises:
        with pytest.raises(KaratError, match=case.raises):
            case.score(kind)
        return
    found = case.score(kind)
    for score, wanted in case.wanted().items():
        value = found[score]
        assert near(value, wanted, case.rtol) or abs(value - wanted) <= case.atol, f"{score} is {value}: {case.why}"


@pytest.mark.parametrize("name", PRESENT)
def test_cases_cover_the_metric(name: str) -> None:
    """Every score somewhere defined and somewhere undefined or 0, an empty region, no frames; no name twice."""
    cases, scores = PRESENT[name].cases, set(KINDS[name].scores)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    assert all(case.expected or case.raises for case in cases)
    expected = [(score, value) for case in cases for score, value in case.expected.items()]
    named = of_keys(score for score, _ in expected)  # in some region: all of something is everywhere 1
    told = {named[score][0] for score, value in expected if value not in (None, 0, 1)}
    counts, plain = (
        {score for score in scores if f"{law}:{score}" in KINDS[name].exempt} for law in (UNDEFINED, GRADED)
    )
    assert told >= scores - plain, "a number other than 0 and 1"
    assert {score for score, value in expected if value is None} >= scores - counts, "undefined at least once"
    if KINDS[name]().statistic.unit != "element":
        assert any("@" in score for score, _ in expected), "a region"
