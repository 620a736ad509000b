"""What a user points at becomes samples: one for every truth, with what belongs to it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from karat.errors import InputError, UsageError, told
from karat.measure import MASK, Sample, is_mask, truth_of
from karat.region import ALL
from karat.sources.fingerprint import digest
from karat.sources.kinds import RECORDS
from karat.sources.pairing import collect, is_columns
from karat.suite import Suite


@dataclass(frozen=True)
class Gathered:
    """The samples in the order of their ids, and what was found beside them, by field: what belongs to no truth, and
    what came again. `left` is how many truths were not asked for."""

    samples: tuple[Sample, ...]
    fields: tuple[str, ...]
    strays: Mapping[str, tuple[str, ...]]
    again: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left: int = 0


def gather(
    suite: Suite,
    given: Mapping[str, Any],
    masks: Any = None,
    pattern: str | None = None,
    asked: Callable[[Any], bool] | None = None,
) -> Gathered:
    """Pairs every field by id; the truth says which samples there are, of which all or those that are `asked` for
    count."""
    wanted = {name: value for name, value in given.items() if value is not None}
    for name in wanted:
        if name not in suite.fields:
            known = ", ".join((*suite.fields, *suite.options, "masks"))
            raise UsageError(f"{suite.name} has no field {name!r}; it has {known}.")
    named = mask_fields(masks)
    kinds = {name: suite.fields[name] for name in wanted} | dict.fromkeys(named, "mask")
    sources: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    for name in sorted(kinds, key=lambda name: name != suite.truth):  # its ids tell others apart
        found = collect(
            {**wanted, **named}[name], kinds[name], pattern, sources[suite.truth], suite.arrays.get(name, ())
        )
        sources[name] = {_text(key): source for key, source in found.items()}
    left = set() if asked is None else {key for key, source in sources[suite.truth].items() if not asked(source)}
    for name, found in sources.items():
        sources[name] = {key: source for key, source in found.items() if key not in left}
    again = {}
    for name in wanted:
        if suite.fields[name] in RECORDS and (true := sources.get(truth_of(name))) is not None:
            kind = RECORDS[suite.fields[name]]
            sources[name] = dict(kind.align(sources[name], true))
            true = dict(kind.repeated(sources[name], true))
            again[name] = tuple(sorted(set(true) - set(sources[truth_of(name)])))
            sources[truth_of(name)] = true
    ids = sorted(sources[suite.truth])
    for name, found in sources.items():
        if len(found) == len(ids) == 1 and _nameless({**wanted, **named}[name]):
            sources[name] = dict(zip(ids, found.values(), strict=True))
    for name, found in sources.items():
        if not set(found) & set(ids):
            example = f"{next(iter(found))!r} and {ids[0]!r} differ" if found and ids else "there are none"
            raise InputError(
                f"No {name.replace(':', ' ')} ({flag(name)}) belongs to any {suite.truth}: {told(example)}; "
                "name them alike or pass --id with a pattern that finds the common part."
            )
    samples = tuple(Sample(key, {name: found.get(key) for name, found in sources.items()}) for key in ids)
    strays = {name: tuple(sorted(set(found) - set(ids))) for name, found in sources.items()}
    return Gathered(
        samples,
        tuple(sources),
        {name: extra for name, extra in strays.items() if extra},
        {name: extra for name, extra in again.items() if extra},
        len(left),
    )


def mask_fields(masks: Any) -> dict[str, Any]:
    """A bare source is the foreground; a mapping gives each of its masks a name."""
    if masks is None:
        return {}
    if isinstance(masks, Mapping):
        for name in masks:
            if name in ("", ALL) or "@" in name or not name.isprintable():
                raise UsageError(f"{name!r} cannot name a region: give the mask another name, as in --masks sky=PATH.")
        return {f"{MASK}:{name}": value for name, value in masks.items()}
    return {MASK: masks}


def flag(name: str) -> str:
    """The command line's option for a field."""
    return "--masks" if is_mask(name) else "--" + name.replace("_", "-")


class Fingerprint(NamedTuple):
    """Content as sha256, wherever the files lie: of the truth (masks included), and of the predictions."""

    truth: str
    pred: str


def digests(samples: Sequence[Sample], each: Callable[[Iterable[Sample]], Iterable[Sample]]) -> dict[str, Fingerprint]:
    """The content of every sample; a file that cannot be read counts as that."""
    return {sample.id: _digest(sample) for sample in each(samples)}


def fingerprint(hashes: Mapping[str, Fingerprint]) -> Fingerprint:
    """All samples as one."""
    return Fingerprint(*(_hash(f"{key}\0{value[side]}" for key, value in sorted(hashes.items())) for side in (0, 1)))


def _digest(sample: Sample) -> Fingerprint:
    sides: tuple[list[str], list[str]] = ([], [])
    for name, source in sorted(sample.sources.items()):
        try:
            content = "missing" if source is None else digest(source)
        except (InputError, OSError):
            content = "unreadable"
        sides[truth_of(name) != name].append(f"{name}\0{content}")
    return Fingerprint(*map(_hash, sides))


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def _text(key: str) -> str:
    """An id that can be written down: bytes of file names that are no text are spelled out."""
    return key.encode("utf-8", "backslashreplace").decode()


def _nameless(value: Any) -> bool:
    """Whether a lone file, array or record was given: it belongs to the lone truth, whatever its name."""
    if isinstance(value, str | Path):
        return Path(value).is_file()
    return not isinstance(value, Mapping) or is_columns(value)
