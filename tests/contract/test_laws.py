"""Every metric of Karat under every law; none is named here."""

from __future__ import annotations

import pytest
from contract.cases import kinds
from contract.laws import GRADED, LAWS, OF_PIXELS, UNDEFINED

from karat.metric import Metric

KINDS = kinds()


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@pytest.mark.parametrize("name", LAWS)
def test_law(name: str, kind: type[Metric]) -> None:
    if name in kind.exempt:
        pytest.skip(f"exempt: {kind.exempt[name]}")
    if name in OF_PIXELS and kind().statistic.unit == "element":
        pytest.skip("records have no pixels")
    LAWS[name](kind())


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_exemptions_are_of_laws_and_scores_that_exist_and_have_a_reason(kind: type[Metric]) -> None:
    for key, reason in kind.exempt.items():
        name, _, score = key.partition(":")
        assert name in (*LAWS, UNDEFINED, GRADED), f"{key}: there is no law {name!r}; there are {', '.join(LAWS)}"
        assert score in ("", *kind.scores), f"{key}: there is no score {score!r}"
        assert len(reason.split()) > 2, f"{key}: say why"
