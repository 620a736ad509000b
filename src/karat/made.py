"""Fields that a network makes before a run reads them: boxes of videos, features of pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from karat.cache import cache_folder
from karat.detection import detect
from karat.embedding import embed
from karat.errors import UsageError
from karat.fields import DETECTOR, NETWORK
from karat.folder import MADE
from karat.sources.arrays import npz_slabs
from karat.sources.guard import guarded
from karat.sources.images import is_image
from karat.sources.pairing import collect
from karat.suite import Suite


def made(suite: Suite, inputs: Mapping[str, Any], out: Path | None, tell: Callable[[str], None]) -> dict[str, Any]:
    """The inputs with boxes in the place of videos, and features in that of pictures: kept in the run's folder, or in
    the cache where a run has none, so that a stopped run goes on, and nothing is computed twice."""
    watched = {suite.detects[name]: inputs[name] for name in suite.detects if inputs.get(name) is not None}
    seen = {name: inputs[name] for name in suite.embeds if _are_pictures(inputs.get(name))}
    how: dict[str, Any] = {name: inputs[name] for name in (*DETECTOR, *NETWORK) if inputs.get(name) is not None}
    rest = {name: one for name, one in inputs.items() if name not in (*suite.detects, *DETECTOR, *NETWORK)}
    if how and not watched and not seen:
        raise UsageError(f"No network is needed here: leave --{next(iter(how))} out, or pass videos or pictures.")
    for field, videos in watched.items():
        rest[field] = _detected(suite, rest, field, videos, how, out, tell)
    protocol = suite.protocols.get(inputs.get("protocol") or "spec")
    network = {**(protocol.network if protocol else {}), **how}
    for field, images in seen.items():
        place = (_place(images, network) if out is None else out / MADE) / f"{field}.npz"
        embed(images, place, value_range=rest.get("value_range"), keep=True, tell=tell, **network)
        rest[field] = place
    return {**rest, "id_pattern": None} if watched else rest


def _detected(
    suite: Suite,
    inputs: Mapping[str, Any],
    field: str,
    videos: Any,
    how: Mapping[str, Any],
    out: Path | None,
    tell: Callable[[str], None],
) -> Path:
    if inputs.get(field) is not None:
        raise UsageError(f"Either {field} is given, or the videos that its boxes are found in: leave one out.")
    if inputs.get(suite.truth) is None:
        raise UsageError(f"What to look for is in the {suite.truth}: pass --{suite.truth}.")
    place = (_place(videos, inputs[suite.truth], how) if out is None else out / MADE) / f"{field}.json"
    read: dict[str, Any] = {name: inputs.get(name) for name in ("id_pattern", "value_range")}
    detect(videos, _asked(suite, inputs), place, keep=True, tell=tell, **read, **how)
    return place


def _are_pictures(value: Any) -> bool:
    """Whether a folder holds pictures, or an array has the axes of many."""
    if not isinstance(value, str | Path):
        return getattr(value, "ndim", 0) == 4
    path = Path(value)
    if path.is_dir():
        return any(is_image(file) for file in path.rglob("*"))
    if path.suffix.lower() == ".npz" and path.is_file():
        with guarded(path, "an archive of arrays"):
            return any(len(announced().shape) == 4 for announced in npz_slabs(path).values())
    return False


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
