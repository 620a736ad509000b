"""What poses are read from: files of one video or of several, and what users have in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from karat.errors import InputError, told

from .coco_json import is_coco
from .guard import MIB, guarded, read_bounded, refusal
from .pose_coco import Coco, read_coco
from .pose_csv import read_csv
from .pose_findings import find
from .pose_hdf5 import read_hdf5
from .pose_json import read_json
from .pose_labels import is_labels, poses_of
from .pose_npz import ALIASES, read_npz
from .pose_nwb import read_nwb
from .pose_pairing import Listed, pair, stem, video_ids
from .pose_slp import read_slp
from .poses import Poses, make_poses, no_poses
from .records import RecordKind, Source
from .strict import loads

MAX_JSON = 512 * MIB
CONVERT = "convert it, as with sleap_io.load_file(path).save('labels.slp')"
KEPT_BYTES = 512 * MIB  # of files that were read and may be asked for again

Content = Mapping[str, Poses] | Coco


class PoseFile:
    """A file of poses, read when it is first needed, and again when memory was needed for others since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reading = threading.Lock()

    def content(self) -> Content:
        """The poses by video, or what COCO has, which may take more than the file to understand."""
        with self._reading:
            with _KEPT_LOCK:
                content, size = _KEPT.pop(self, (None, 0))
            if content is None:
                content = _read(self.path)
                size = content.nbytes if isinstance(content, Coco) else sum(one.nbytes for one in content.values())
            with _KEPT_LOCK:
                total = size + sum(other for _, other in _KEPT.values())
                for file, (_, other) in list(_KEPT.items()):
                    if total > KEPT_BYTES:
                        del _KEPT[file]
                        total -= other
                _KEPT[self] = content, size
            return content


class PoseMemory:
    """Poses by video that are in memory already."""

    def __init__(self, videos: Sequence[Poses]) -> None:
        self._content = _by_id(videos)

    def content(self) -> Content:
        """The poses by video."""
        return self._content


_KEPT: WeakKeyDictionary[PoseFile, tuple[Content, int]] = WeakKeyDictionary()  # those asked for last at the end
_KEPT_LOCK = threading.Lock()


@dataclass(frozen=True, eq=False)
class PoseVideo:
    """One video of a file, or of what is in memory.

    id: in the file, "" where it holds one nameless video.  name, place: what it is called, and its number there.
    plain: the id says which video it is.  truth: what COCO detections belong to.
    """

    file: PoseFile | PoseMemory
    id: str
    name: str
    place: int
    plain: bool = True
    truth: PoseFile | PoseMemory | None = None

    def open(self) -> Poses:
        """The poses of this video."""
        content = self.file.content()
        if isinstance(content, Coco):
            known = None if self.truth is None else self.truth.content()
            with _named(content.name):
                return content.poses(known if isinstance(known, Coco) else None)
        return content[self.id]

    def digest(self) -> str:
        """sha256 of the content, in hex: the same from whatever kind of file."""
        return self.open().digest()


def to_poses(value: Any) -> Poses:
    """Poses of what a user has in memory: themselves, a mapping of their arrays, sleap_io.Labels of one video."""
    if isinstance(value, Poses):
        return value
    if isinstance(value, Mapping):
        given = {ALIASES.get(str(name), str(name)): column for name, column in value.items()}
        for name in ("points", "frame"):
            if name not in given:
                raise refusal("the poses", f"have no {name}", "points and frame were expected", "add it")
        return make_poses(given.pop("points"), given.pop("frame"), **given)
    if is_labels(value):
        videos = poses_of(value)
        if len(videos) > 1:
            raise refusal(
                "the labels", f"hold {len(videos)} videos", "one was expected", "pass them as a side, or split them"
            )
        return videos[0]
    raise refusal(
        f"a value of type {type(value).__name__}", "holds no poses", POSES.expects, "pass a mapping of arrays"
    )


def split(value: Any) -> Mapping[str, Source] | None:
    """The videos of a sleap_io.Labels."""
    if not is_labels(value):
        return None
    return {name or "0000": video for name, video in _videos(PoseMemory(poses_of(value))).items()}


def expand(path: Path) -> Mapping[str, Source]:
    """The videos of a file."""
    return _videos(PoseFile(path))


def _videos(file: PoseFile | PoseMemory) -> Mapping[str, Source]:
    content = file.content()
    if isinstance(content, Coco):
        return {"": PoseVideo(file, "", "", 0)}
    named = [stem(poses.name) for poses in content.values()]
    times = Counter(named)
    return {
        key: PoseVideo(file, key, poses.name, place if called else int(key or 0), not called or times[called] == 1)
        for place, ((key, poses), called) in enumerate(zip(content.items(), named, strict=True))
    }


def align(own: Mapping[str, Any], truth: Mapping[str, Any]) -> Mapping[str, Any]:
    """The predicted videos under the ids of the true ones, as names and numbers tell; those that none belongs to keep
    theirs. COCO detections learn from their truth what it alone says."""
    pairs = pair([_listed(*item) for item in own.items()], [_listed(*item) for item in truth.items()])
    aligned: dict[str, Any] = {}
    lone = next(iter(truth.values())) if len(own) == len(truth) == 1 else None
    for key, source in own.items():
        true = truth.get(pairs[key]) if key in pairs else lone
        if isinstance(source, PoseVideo) and isinstance(true, PoseVideo):
            source = replace(source, truth=true.file)
        stray = f"{key} (of {source.name})" if key in truth and isinstance(source, PoseVideo) else key
        aligned[pairs.get(key, stray)] = source
    return aligned


def _listed(key: str, source: Any) -> Listed:
    """A source as it is paired."""
    if not isinstance(source, PoseVideo):
        return Listed(key, "", 0, key, True)
    folder, _, inside = key.rpartition("/") if source.id != key else ("", "", key)
    is_own = bool(inside) and inside == source.id
    return Listed(key, source.name, source.place, folder if is_own else key, source.plain or not is_own)


def _read(path: Path) -> Content:
    """All that a file holds."""
    with _named(path), guarded(path, POSES.expects):
        suffix = path.suffix.lower()
        if suffix == ".npz":
            return read_npz(path)
        if suffix == ".json":
            document = loads(read_bounded(path, MAX_JSON, "poses in JSON"))
            return read_coco(str(path), document) if is_coco(document) else _by_id(read_json(path, document))
        if suffix not in READERS:
            known = " ".join(sorted(POSES.suffixes))
            raise refusal(path, f"has the suffix {suffix!r}", f"poses are read from {known}", CONVERT)
        return _by_id(READERS[suffix](path))


@contextmanager
def _named(name: object) -> Iterator[None]:
    """Whatever is wrong with a file is told with its name."""
    try:
        yield
    except InputError as error:
        if told(name) in str(error):
            raise
        raise InputError(f"{told(name)}: {error}") from error


def _by_id(videos: Sequence[Poses]) -> Content:
    return dict(zip(video_ids([one.name for one in videos]), videos, strict=True))


READERS: Mapping[str, Callable[[Path], Sequence[Poses]]] = {
    ".slp": read_slp,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".nwb": read_nwb,
    ".csv": read_csv,
}
POSES = RecordKind(
    "poses",
    "poses: points (n, nodes, 2) with their frame, score and track",
    frozenset({".npz", ".json", *READERS}),
    expand,
    to_poses,
    no_poses,
    align,
    find,
    split,
    CONVERT,
)
