"""Fields that a network makes of videos before a run reads them: boxes, by a detector."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from karat.cache import cache_folder
from karat.detection import detect
from karat.errors import UsageError
from karat.fields import DETECTOR
from karat.folder import MADE
from karat.sources.pairing import collect
from karat.suite import Suite


def from_videos(
    suite: Suite, inputs: Mapping[str, Any], out: Path | None, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The inputs with boxes in the place of videos: kept in the run's folder, or in the cache where a run has none, so
    that a stopped run goes on, and nothing is detected twice."""
    fields = {suite.detects[name]: inputs[name] for name in suite.detects if inputs.get(name) is not None}
    how: dict[str, Any] = {name: inputs[name] for name in DETECTOR if inputs.get(name) is not None}
    rest = {name: one for name, one in inputs.items() if name not in (*suite.detects, *DETECTOR)}
    if not fields:
        if how:
            raise UsageError(f"Nothing is to be detected: pass --{next(iter(suite.detects), 'videos')}, or no model.")
        return rest
    for field, videos in fields.items():
        if rest.get(field) is not None:
            raise UsageError(f"Either {field} is given, or the videos that its boxes are found in: leave one out.")
        if rest.get(suite.truth) is None:
            raise UsageError(f"What to look for is in the {suite.truth}: pass --{suite.truth}.")
        place = (_place(videos, rest[suite.truth], how) if out is None else out / MADE) / f"{field}.json"
        read: dict[str, Any] = {name: rest.get(name) for name in ("id_pattern", "value_range")}
        detect(videos, _asked(suite, rest), place, keep=True, tell=tell, **read, **how)
        rest[field] = place
    return {**rest, "id_pattern": None}


def _asked(suite: Suite, inputs: Mapping[str, Any]) -> Any:
    """The truth whose objects are looked for: of a subset these alone."""
    truth, subset = inputs[suite.truth], inputs.get("subset")
    if subset is None or subset not in suite.subsets:
        return truth
    found = collect(truth, suite.fields[suite.truth])
    return {key: source for key, source in found.items() if suite.subsets[subset](source)}


def _place(*given: Any) -> Path:
    """A folder in the cache for the same call."""
    told = "\0".join(str(Path(one).resolve() if isinstance(one, str | Path) else one) for one in given)
    return cache_folder() / MADE / hashlib.sha256(told.encode()).hexdigest()[:16]
