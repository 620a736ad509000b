"""Tables with a column a score: a row for each part of one kind (a node, a threshold), or for each sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.errors import UsageError
from karat.metric import part_kinds
from karat.run import Run
from karat.score import of_keys, plain_number

SAMPLE, REGION = "sample", "region"


def by_part(content: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The parts of one kind that a run's scores have; `content` is what scores.json holds."""
    if kind == REGION:
        return by_region(content)
    start = f"{kind}:"
    found: dict[str, dict[str, Any]] = {}
    for key, (score, region) in of_keys(content["scores"]).items():
        if region.startswith(start):
            part, at, where = region.removeprefix(start).partition("@")
            found.setdefault(part, {})[f"{score}{at}{where}"] = content["scores"][key]["value"]
    return _content(content, kind, found)


def by_region(content: Mapping[str, Any]) -> dict[str, Any]:
    """The regions that a run's scores have, everything first; parts left out."""
    found: dict[str, dict[str, Any]] = {}
    parts = part_kinds()
    for key, (score, region) in of_keys(content["scores"]).items():
        if region.partition(":")[0] not in parts:
            found.setdefault(region, {})[score] = content["scores"][key]["value"]
    return _content(content, REGION, found)


def by_sample(run: Run) -> dict[str, Any]:
    """Every sample's own scores, parts left out."""
    content, own = run.plain(), run.sample_scores
    whole = [key for key, (_, region) in of_keys(run.scores).items() if ":" not in region]
    found = {sample: {key: plain_number(of[key]) for key in whole if key in of} for sample, of in own.items()}
    return _content(content, SAMPLE, found)


def kinds(content: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of parts that the scores have."""
    regions = (region for _, region in of_keys(content["scores"]).values() if ":" in region)
    return tuple(dict.fromkeys(region.partition(":")[0] for region in regions))


def _content(content: Mapping[str, Any], by: str, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if not found:
        there = ", ".join((SAMPLE, REGION, *kinds(content)))
        raise UsageError(f"These scores have no table by {by!r}; there is one by {there}.")
    scores = dict.fromkeys(score for of in found.values() for score in of)
    rows = [{by: name, **{score: of.get(score) for score in scores}} for name, of in found.items()]
    kept = {name: content[name] for name in ("suite", "protocol", "signature")}
    return {**kept, "by": by, "rows": rows, "notes": []}
