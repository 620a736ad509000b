"""Every law catches a metric that breaks it, and lets an honest one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from contract import toys
from contract.cases import kinds
from contract.laws import LAWS

from karat.errors import InputError, UsageError
from karat.metric import Metric, metrics

BREAKS: dict[str, type[Metric]] = {
    "merge": toys.Counting,
    "batch": toys.Counting,
    "blocks": toys.OfTheBlock,
    "workers": toys.Lazy,
    "resume": toys.Counting,
    "weights": toys.Ranking,
    "whole_mask": toys.HalfMask,
    "empty_region": toys.ZeroOfNothing,
    "region_counts": toys.Unmasked,
    "identity": toys.Offset,
    "bounds": toys.Unbounded,
    "direction": toys.Backwards,
    "no_frames": toys.ZeroOfNoFrames,
    "one_frame": toys.Motion,
    "constant_input": toys.Textured,
    "nan_input": toys.Strict,
    "signature": toys.Unsigned,
    "spelling": toys.Untypable,
    "pickling": toys.Local,
    "functional": toys.Clash,
    "described": toys.Wordless,
}

REFUSALS: dict[str, type[Exception]] = {  # where the metric itself raises
    "one_frame": InputError,
    "constant_input": InputError,
    "nan_input": InputError,
    "spelling": UsageError,
    "pickling": TypeError,
    "functional": UsageError,
}


@pytest.fixture(autouse=True)
def _toys() -> Iterator[None]:
    with toys.registered():
        yield


def test_there_is_a_toy_for_every_law() -> None:
    assert set(BREAKS) == set(LAWS)


@pytest.mark.parametrize("name", LAWS)
def test_law_catches(name: str) -> None:
    with pytest.raises(REFUSALS.get(name, AssertionError)):
        LAWS[name](BREAKS[name]())


@pytest.mark.parametrize("name", LAWS)
def test_law_lets_an_honest_metric_pass(name: str) -> None:
    LAWS[name](toys.Plain())


def test_an_exemption_is_for_one_score_alone() -> None:
    @dataclass(frozen=True)
    class Excused(toys.ZeroOfNothing):
        """Scores 0 where there is nothing, and says why."""

        exempt: ClassVar = {"empty_region:zero_of_nothing": "it is a toy"}

    LAWS["empty_region"](Excused())


def test_toys_are_not_under_the_contract() -> None:
    assert set(toys.TOYS) < set(metrics())
    assert not set(toys.TOYS) & set(kinds())
