"""Features of pictures by a network: from paths to a file of features."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from karat.detection import ahead
from karat.errors import InputError, KaratError, UsageError, counted, told
from karat.feed import as_bytes
from karat.journal import replacing
from karat.measure import Failure
from karat.networks.load import feature_network
from karat.progress import progress
from karat.sources.fingerprint import digest
from karat.sources.kinds import open_stream
from karat.sources.pairing import collect
from karat.sources.stream import Array

TOGETHER = 64  # pictures that are read, computed and kept at once: what is kept of a stopped call
LOGITS = "logits_unbiased"
Group = Sequence[tuple[str, Any]]
Range = tuple[float, float] | None


@dataclass(frozen=True)
class Embedded:
    """A file of features: where it is, of how many pictures, and why it lacks the others."""

    path: Path
    pictures: int
    failures: tuple[Failure, ...]


def embed(
    images: Any,
    out: str | Path,
    network: Any = "inception",
    feature: str = "2048",
    resize: str = "tf1",
    weights: str | Path | None = None,
    device: str | None = None,
    precision: Any = "float32",
    value_range: Range = None,
    keep: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Embedded:
    """The features that a network gives pictures, written to `out` (npz) with their ids and what the network is.

    images: a folder of pictures, an array file of many, or arrays.  network: see `karat.networks.load.feature_network`;
    feature, resize: of Inception, whose logits are kept too.  A call that was stopped goes on where it was, with `keep`
    one that came to its end too.  A picture that cannot be read is left out and told.
    """
    path = Path(out)
    if path.suffix.lower() != ".npz":
        raise UsageError(f"{told(path)} does not end in .npz: features are written as that.")
    sources = list(collect(images, "picture").items())
    place = None if weights is None else Path(weights)
    net = feature_network(network, place, device, precision, taps=(feature, LOGITS), resize=resize)
    parts = begin(path)
    done, failures = parts_of(net, sources, parts, value_range)
    rows, ids = together(done, "rows", "ids")
    if not len(ids):
        raise InputError(f"No picture could be read: {failures[0].reason}")
    taps = getattr(net, "columns", {feature: slice(None)})
    logits = {"logits": rows[:, taps[LOGITS]]} if LOGITS in taps else {}
    save_arrays(path, ids=ids, network=np.array(net.identity), features=rows[:, taps[feature]], **logits)
    if failures:
        tell(f"{counted(len(failures), 'picture')} left out, the first is {failures[0].sample}: {failures[0].reason}")
    if not (keep or failures):
        shutil.rmtree(parts)
    return Embedded(path, len(ids), tuple(failures))


def begin(path: Path) -> Path:
    """The folder of what was computed for a file so far."""
    parts = path.with_name(path.name + ".parts")
    parts.mkdir(parents=True, exist_ok=True)
    return parts


def together(parts: Sequence[Path], *names: str) -> list[Array]:
    """The arrays of these names of all parts, one after the other."""
    return [np.concatenate([np.load(part, allow_pickle=False)[name] for part in parts]) for name in names]


def parts_of(net: Any, sources: Group, parts: Path, value_range: Range) -> tuple[list[Path], list[Failure]]:
    """A file for every group of pictures, computed where it is not there, and why pictures are in none."""
    done: list[Path] = []
    failures: list[Failure] = []
    groups = [sources[start : start + TOGETHER] for start in range(0, len(sources), TOGETHER)]
    with progress("computing features", len(sources)) as advance:
        for group, key, read in ahead(_read(groups, net.identity, parts, value_range)):
            done.append(parts / f"{key}.npz")
            if read is not None:
                failures += [Failure(name, "images", one) for name, one in read if isinstance(one, str)]
                usable = [(name, one) for name, one in read if not isinstance(one, str)]
                rows = net.features([one for _, one in usable]) if usable else np.zeros((0, net.dims), np.float32)
                save_arrays(done[-1], ids=np.array([name for name, _ in usable], np.str_), rows=rows)
            advance(len(group))
    return done, failures


def _read(groups: Sequence[Group], identity: str, parts: Path, value_range: Range) -> Generator[Any]:
    """Each group with the key of its part, and its pictures where that is not there yet."""
    with ThreadPoolExecutor(thread_name_prefix="karat-decode") as pool:
        for group in groups:
            content = list(pool.map(_content, (source for _, source in group)))
            told_of = repr((identity, value_range, [name for name, _ in group], content))
            key = hashlib.sha256(told_of.encode()).hexdigest()[:32]
            if (parts / f"{key}.npz").exists() and "unreadable" not in content:
                yield group, key, None
                continue
            pictures = pool.map(lambda source: _picture(source, value_range), (source for _, source in group))
            yield group, key, [(name, one) for (name, _), one in zip(group, pictures, strict=True)]


def _content(source: Any) -> str:
    try:
        return digest(source)
    except (InputError, OSError):
        return "unreadable"


def _picture(source: Any, value_range: Range) -> Array | str:
    """Bytes (3, H, W), or why there are none."""
    try:
        with open_stream(source, "picture") as stream:
            (frame,) = (as_bytes(one, value_range, stream.name) for one in stream)
        return np.ascontiguousarray(np.moveaxis(frame, -1, 0))
    except Exception as error:  # one bad picture costs itself
        return " ".join((str(error) if isinstance(error, KaratError) else f"{type(error).__name__}: {error}").split())


def save_arrays(path: Path, **arrays: Array) -> None:
    """Puts an archive of arrays in its place."""
    with replacing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # its stub takes the arrays for allow_pickle
