"""Embeddings of pictures and of their captions by a network: from paths to a file of both."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from karat.embedding import TOGETHER, begin, parts_of, save_arrays, together
from karat.errors import InputError, UsageError, counted, short, told
from karat.measure import Failure
from karat.networks.load import feature_network
from karat.progress import progress
from karat.sources.captions import CAPTION, EDIT, captions
from karat.sources.pairing import collect
from karat.sources.stream import Array

CLIP = "clip_vit_l_14"
Range = tuple[float, float] | None
Tell = Callable[[str], None]


def align(
    images: Any,
    prompts: Any,
    out: str | Path,
    originals: Any = None,
    network: Any = CLIP,
    weights: str | Path | None = None,
    device: str | None = None,
    precision: Any = "float32",
    prefix: str = "",
    value_range: Range = None,
    id_pattern: str | None = None,
    begun: Path | None = None,
    keep: bool = False,
    tell: Tell = lambda _: None,
) -> Path:
    """The embeddings that a network gives pictures and their captions, written to `out` (npz) with ids and network.

    images: a folder of pictures, an array file of many, or arrays.  originals: the same before an edit; then there are
    two captions a picture.  prompts: see `karat.sources.captions`.  prefix: words before every caption.  What lacks a
    part is left out and told. A call that was stopped goes on where it was, with `keep` one that came to its end too.
    begun: a file of features of the same pictures, from whose parts those of the same network are taken.
    """
    path = Path(out)
    said = captions(prompts, CAPTION if originals is None else EDIT)
    sides = [collect(one, "picture", id_pattern) for one in ([images] if originals is None else [images, originals])]
    ids, left_out = _paired(sides, said)
    for sentence in left_out:
        tell(sentence)
    net = feature_network(network, None if weights is None else Path(weights), device, precision)
    if not hasattr(net, "texts"):
        raise UsageError(f"{told(net.name)} reads no texts: choose a CLIP or SigLIP, as a folder or by name.")
    parts = begin(begun or path)
    path.parent.mkdir(parents=True, exist_ok=True)
    seen: list[dict[str, Array]] = []
    failures: list[Failure] = []
    for side in sides:
        done, failed = parts_of(net, [(name, side[name]) for name in ids], parts, value_range)
        rows, names = together(done, "rows", "ids")
        seen.append(dict(zip(names.tolist(), rows, strict=True)))
        failures += failed
    ids = [name for name in ids if all(name in side for side in seen)]
    if not ids:
        raise InputError(f"No picture could be read: {failures[0].reason}")
    if failures:
        unread = f"{counted(len(failures), 'picture')} that cannot be read left out, the first is"
        left_out.append(f"{unread} {short(failures[0].sample)}.")
        tell(f"{unread} {failures[0].sample}: {failures[0].reason}")
    texts = [[prefix + text for text in said[name]] for name in ids]
    read, cut = _read(net, sorted({text for of in texts for text in of}), parts)
    arrays = {
        "images": np.stack([seen[0][name] for name in ids]),
        "texts": np.stack([read[of[-1]] for of in texts]),
        "truncated": np.array([sum(cut[text] for text in of) for of in texts]),
        "empty": np.array([sum(not text.strip() for text in said[name]) for name in ids]),
    }
    if originals is not None:
        arrays["original_images"] = np.stack([seen[1][name] for name in ids])
        arrays["original_texts"] = np.stack([read[of[0]] for of in texts])
    asked = {"prefix": repr(prefix)} if prefix else {}
    asked["captions"] = _brief(repr([(name, said[name]) for name in ids]).encode())
    if originals is not None:
        asked["originals"] = _brief(arrays["original_images"].tobytes())
    identity = "|".join([net.identity, *(f"{name}:{value}" for name, value in asked.items())])
    save_arrays(
        path, ids=np.array(ids, np.str_), network=np.array(identity), left_out=np.array(left_out, np.str_), **arrays
    )
    if not (keep or failures):
        shutil.rmtree(parts)
    return path


def _brief(content: bytes) -> str:
    """What tells runs apart that were asked for other things."""
    return hashlib.sha256(content).hexdigest()[:16]


def _paired(sides: Sequence[Mapping[str, Any]], said: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The ids that all have, in the order of the pictures, and sentences about the others."""
    images = sides[0]
    ids = [name for name in images if name in said and all(name in side for side in sides)]
    if not ids:
        raise InputError(
            f"No picture has a caption: there are pictures such as {short(next(iter(images)))} and captions such as "
            f"{short(next(iter(said)))}; name them alike, or say with --id where the id is."
        )
    lacking = {
        "picture without a caption": [name for name in images if name not in said],
        "caption without a picture": [name for name in said if name not in images],
        "picture without an original": [name for name in images if any(name not in side for side in sides)],
        "original without a picture": [name for side in sides[1:] for name in side if name not in images],
    }
    return ids, [
        f"{counted(len(names), what.split()[0])} {what.partition(' ')[2]} left out, the first is {short(names[0])}."
        for what, names in lacking.items()
        if names
    ]


def _read(net: Any, texts: Sequence[str], parts: Path) -> tuple[dict[str, Array], dict[str, bool]]:
    """The embedding of every text, and whether it is longer than the network reads; computed where it is not there."""
    done: list[Path] = []
    with progress("reading captions", len(texts)) as advance:
        for group in (texts[start : start + TOGETHER] for start in range(0, len(texts), TOGETHER)):
            key = hashlib.sha256(repr((net.identity, list(group))).encode()).hexdigest()[:32]
            done.append(parts / f"texts-{key}.npz")
            if not done[-1].exists():
                found = net.texts(group)
                save_arrays(done[-1], rows=found.features, truncated=found.truncated)
            advance(len(group))
    rows, truncated = together(done, "rows", "truncated")
    return dict(zip(texts, rows, strict=True)), dict(zip(texts, truncated.tolist(), strict=True))
