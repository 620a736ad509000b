"""What masks of instances are read from: files of one video each, and what users have in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .coco_json import is_coco
from .fingerprint import digest
from .guard import MIB, read_bounded, refusal
from .instance_coco import CocoMasks, read_coco
from .instance_masks import EXPECTS, InstanceMasks, make_instances, no_instances, read_npz
from .records import RecordKind, Source
from .strict import loads

MAX_JSON = 512 * MIB


def to_instances(value: Any) -> InstanceMasks:
    """Instances of what a user has in memory: themselves, or a mapping of their arrays."""
    if isinstance(value, InstanceMasks):
        return value
    if isinstance(value, Mapping):
        given = dict(value)
        for name in ("masks", "frame"):
            if name not in given:
                raise refusal("the instances", f"have no {name}", "masks and frame were expected", "add it")
        return make_instances(given.pop("masks"), given.pop("frame"), **given)
    raise refusal(
        f"a value of type {type(value).__name__}",
        "holds no masks",
        f"{EXPECTS} was expected",
        "pass a mapping of arrays",
    )


@dataclass(frozen=True)
class MaskFile:
    """Masks in a file; truth: the file that says what COCO detections do not."""

    path: Path
    truth: Path | None = None

    def digest(self) -> str:
        """sha256 of the file, in hex."""
        return digest(self.path)

    def open(self) -> InstanceMasks:
        """The masks of the file."""
        if self.path.suffix.lower() == ".npz":
            return read_npz(self.path)
        by = None if self.truth is None or self.truth.suffix.lower() != ".json" else _coco(self.truth)
        return _coco(self.path).instances(by)


def _coco(path: Path) -> CocoMasks:
    document = loads(read_bounded(path, MAX_JSON, "masks in JSON"))
    if not is_coco(document):
        raise refusal(
            path,
            "is JSON of another kind",
            "images and annotations, or a list of detections, were expected",
            "convert it",
        )
    return read_coco(str(path), document)


def _expand(path: Path) -> Mapping[str, Source]:
    if path.suffix.lower() not in SUFFIXES:
        known = " and ".join(sorted(SUFFIXES))
        raise refusal(path, f"has the suffix {path.suffix!r}", f"masks are read from {known}", "convert the file")
    return {"": MaskFile(path)}


def _align(own: Mapping[str, Any], truth: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sources as they are; files learn which true file they belong to."""
    lone = next(iter(truth.values())) if len(own) == len(truth) == 1 else None
    return {
        key: replace(source, truth=true.path)
        if isinstance(source, MaskFile) and isinstance(true := truth.get(key, lone), MaskFile)
        else source
        for key, source in own.items()
    }


SUFFIXES = frozenset({".npz", ".json"})
INSTANCE_MASKS = RecordKind("instance_masks", EXPECTS, SUFFIXES, _expand, to_instances, no_instances, _align)
