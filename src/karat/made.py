"""Fields that a network makes before a run reads them: boxes of videos, features of pictures and of captions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from karat.aligning import align
from karat.cache import cache_folder
from karat.detection import detect
from karat.embedding import embed
from karat.errors import UsageError
from karat.fields import CLIP, DETECTOR, NETWORK
from karat.folder import MADE
from karat.networks.load import reads_texts
from karat.sources.arrays import npz_slabs
from karat.sources.guard import guarded
from karat.sources.images import is_image
from karat.sources.pairing import collect
from karat.suite import Suite

SAID = (*DETECTOR, *NETWORK, *CLIP)  # of networks


def made(suite: Suite, inputs: Mapping[str, Any], out: Path | None, tell: Callable[[str], None]) -> dict[str, Any]:
    """The inputs with boxes in the place of videos, features in that of pictures, and embeddings in that of captions:
    kept in the run's folder, or in the cache where a run has none, so that a stopped run goes on, and nothing is
    computed twice."""
    watched = {suite.detects[name]: inputs[name] for name in suite.detects if inputs.get(name) is not None}
    seen = {name: inputs[name] for name in suite.embeds if _are_pictures(inputs.get(name))}
    prompts = inputs.get("prompts") if suite.aligns else None
    how: dict[str, Any] = {name: inputs[name] for name in SAID if inputs.get(name) is not None}
    lone = {name for flags in suite.aligns.values() for name in flags} - set(suite.fields)
    left = {*suite.detects, *SAID, *(("prompts",) if suite.aligns else ()), *lone}
    rest = {name: one for name, one in inputs.items() if name not in left}
    _refuse_idle(inputs, how, lone, bool(watched), bool(seen), prompts is not None)
    for field, videos in watched.items():
        rest[field] = _detected(suite, rest, field, videos, how, out, tell)
    protocol = suite.protocols.get(inputs.get("protocol") or "spec")
    network = {**(protocol.network if protocol else {}), **how}
    own = {name: network[name] for name in (*NETWORK, "device") if name in network}
    for field, images in seen.items():
        place = (_place(images, own) if out is None else out / MADE) / f"{field}.npz"
        embed(images, place, value_range=rest.get("value_range"), keep=True, tell=tell, **own)
        rest[field] = place
    for field, flags in suite.aligns.items() if prompts is not None else ():
        begun = None if flags[0] not in seen else Path(rest[flags[0]])
        rest[field] = _aligned(suite, inputs, field, flags, network, how, out, begun, tell)
    return {**rest, "id_pattern": None} if watched or prompts is not None else rest


def _refuse_idle(
    inputs: Mapping[str, Any], how: Mapping[str, Any], lone: Collection[str], watched: bool, seen: bool, prompted: bool
) -> None:
    """What is said of networks and pictures that nothing is made of."""
    if idle := [name for name in lone if inputs.get(name) is not None and not prompted]:
        raise UsageError(f"--{sorted(idle)[0]} holds pictures, whose captions are missing: pass --prompts too.")
    needed = {"model": watched, "device": watched or seen or prompted, "feature": seen, "resize": seen}
    needed |= dict.fromkeys(CLIP, prompted)
    for name in how:
        if not needed.get(name, seen or prompted):
            lacking = "--prompts" if name in CLIP else "videos or pictures"
            raise UsageError(f"No network is needed here: leave --{name} out, or pass {lacking}.")


def _aligned(
    suite: Suite,
    inputs: Mapping[str, Any],
    field: str,
    flags: tuple[str, ...],
    network: Mapping[str, Any],
    how: Mapping[str, Any],
    out: Path | None,
    begun: Path | None,
    tell: Callable[[str], None],
) -> Path:
    """Embeddings of pictures and captions. Their network is --clip; --network where that reads texts too, or where no
    other is needed. What was computed for the features `begun` is taken from there."""
    if inputs.get(field) is not None:
        raise UsageError("Either captions are given, or embeddings of them: leave --prompts or --aligned out.")
    for name in flags:
        if not _are_pictures(inputs.get(name)):
            raise UsageError(f"Captions are scored beside pictures: pass --{name} with a folder of pictures.")
    settings = {name: network[name] for name in ("device", "precision", "prefix") if name in network}
    own = {name: how[name] for name in ("network", "weights") if name in how}
    if "clip" not in how and "network" in own and (not suite.embeds or reads_texts(**own)):
        settings |= own
    elif "clip" in network:
        settings["network"] = network["clip"]
    pictures, prompts = [inputs[name] for name in flags], inputs["prompts"]
    place = (_place(*pictures, prompts, settings) if out is None else out / MADE) / f"{field}.npz"
    read: dict[str, Any] = {name: inputs.get(name) for name in ("id_pattern", "value_range")}
    originals = pictures[1] if len(pictures) > 1 else None
    return align(pictures[0], prompts, place, originals, begun=begun, keep=True, tell=tell, **read, **settings)


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
    detect(
        videos,
        _asked(suite, inputs),
        place,
        keep=True,
        tell=tell,
        **read,
        **{name: how[name] for name in DETECTOR if name in how},
    )
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
