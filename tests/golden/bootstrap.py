"""`bootstrap`: intervals of means and paired tests as TrajectoryDiff's scripts compute them."""

from __future__ import annotations

from typing import Any

from karat.intervals import bootstrap, paired

from .case import Answer, Case, resolve


def answer(case: Case) -> Answer:
    """By what the case is called after: bootstrap_ci(a), paired_test(a,b), compute_significance(a,b)."""
    params = case.protocol["params"]
    draws = {"draws": params["n_bootstrap"], "seed": params["seed"]}
    values = resolve(case.document, case.inputs["values"].partition("#")[2])
    function, _, arguments = case.name.partition(":")[2].rstrip(")").partition("(")
    own = [values[name] for name in arguments.split(",")]
    return Answer(
        {"bootstrap_ci": interval, "paired_test": test, "compute_significance": significance}[function](own, draws)
    )


def interval(own: list[Any], draws: dict[str, int]) -> dict[str, Any]:
    found = bootstrap(own[0], **draws)
    return {
        "mean": found.mean,
        "std": found.std,
        "se": found.se,
        "ci_lower": found.low,
        "ci_upper": found.high,
        "n": found.n,
    }


def test(own: list[Any], draws: dict[str, int]) -> dict[str, Any]:
    found = paired(*own, **draws)
    plain = {"mean_diff": found.difference, "p_value": found.p_value, "ci_lower": found.low, "ci_upper": found.high}
    return plain | {"significant_005": found.p_value < 0.05, "significant_001": found.p_value < 0.01}


def significance(own: list[Any], draws: dict[str, int]) -> dict[str, Any]:
    found = test(own, draws)
    return {name: found[name] for name in ("mean_diff", "p_value", "ci_lower", "ci_upper")} | {
        "significant": found["significant_005"]
    }
