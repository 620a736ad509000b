"""Boxes of what videos were asked to show, found by a network: from paths to a file of boxes."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from karat.errors import InputError, KaratError, UsageError, counted, told
from karat.feed import as_bytes, size_of
from karat.journal import Journal, as_lines, publish
from karat.measure import Failure
from karat.networks import weights
from karat.progress import progress
from karat.sources.fingerprint import digest
from karat.sources.kinds import open_record, open_stream
from karat.sources.pairing import collect

MODEL = "google/owlvit-large-patch14"
SUBJECT = "{subject}"
STALE = {"detector": "another detector, threshold or prompt", "prompt": "other subjects", "content": "other videos"}
FIELD = "videos"
TRACKER = "sam3_video"  # what transformers calls SAM 3 for videos
AHEAD = 2

Item = TypeVar("Item")
Range = tuple[float, float] | None


@dataclass(frozen=True)
class Detected:
    """A file of boxes.

    path: where it is.  videos: how many it has.  failures: why it lacks the others.
    without_video: how many ids have none.  without_truth: how many videos belong to no id.
    """

    path: Path
    videos: int
    failures: tuple[Failure, ...]
    without_video: int
    without_truth: int


@dataclass(frozen=True, eq=False)
class Task:
    """A video, the text to look for in it, and the sha256 of its content."""

    id: str
    source: Any
    text: str
    content: str

    def key(self, detector: str) -> dict[str, str]:
        """All that the boxes hang on."""
        return {"detector": detector, "prompt": self.text, "content": self.content}


def detect(
    videos: Any,
    truth: Any,
    out: str | Path,
    model: str | Path = MODEL,
    device: str | None = None,
    threshold: float = 0.1,
    prompt: str = SUBJECT,
    batch: int = 8,
    id_pattern: str | None = None,
    value_range: Range = None,
    keep: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Detected:
    """Find the subject that the truth names in every frame of every video, and write its best boxes to `out`.

    videos: a folder, or what else `evaluate` takes as frames; a video belongs to the id that its relative stem is, or
    that the folder is called in which it is alone.  truth: a file of records with `id` and `subject`.  model: a
    zero-shot detector of transformers, as a folder or by its name.  prompt: what is asked for.  value_range: black and
    white of floating frames.  Of a video that cannot be read the file has the reason, for which its evaluation fails. A
    call that was stopped, or in which videos failed, goes on where it was; with `keep` one that came to its end too,
    and detects only what has changed.  `tell` hears what is left out.
    """
    weights.require()
    path, tell = Path(out), tell or _unheard
    _check(path, threshold, prompt, batch)
    sources, subjects = collect(videos, "frames", id_pattern), collect(truth, "tubes")
    _spare(path, truth, *sources.values())
    paired = pair(sources, subjects)
    unseen, unasked = len(subjects) - len(paired), len(sources) - len(paired)
    if unseen:
        tell(f"left out: {counted(unseen, 'id')} of the truth, without a video.")
    if unasked:
        tell(f"left out: {counted(unasked, 'video')}, of no id of the truth.")
    tasks, failures = _tasks(paired, subjects, prompt)
    detector = _detector(model, device, float(threshold), batch)
    read = "" if value_range is None else f"|range:{value_range[0]:g}..{value_range[1]:g}"
    identity = told(f"{detector.identity}|prompt:{prompt}{read}")
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal.beside(path)
    known, stale = journal.resume({task.id: task.key(identity) for task in tasks})
    if stale:
        why = {next(STALE[name] for name in STALE if name in differs) for differs in stale}
        tell(f"{journal.path} was begun with {' and '.join(sorted(why))}: {counted(len(stale), 'video')} done again.")
    if known:
        tell(f"{counted(len(known), 'video')} done before.")
    todo = [task for task in tasks if task.id not in known]
    with progress("detecting in frames", _declared(todo) if sys.stderr.isatty() else None) as advance:
        for task, found in _detected(detector, todo, value_range, advance):
            if isinstance(found, Failure):
                failures.append(found)
            else:
                known[task.id] = {"id": task.id, **found, "detector": identity}
                journal.add(task.id, task.key(identity), known[task.id])
    records = known | {one.sample: {"id": one.sample, "failure": one.reason} for one in failures}
    publish(path, as_lines(records[name] for name in paired))
    if not (failures or keep):
        journal.close()
    return Detected(path, len(known), tuple(failures), unseen, unasked)


def pair(videos: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The video of each known id: the one of that name, or the only one below a folder of that name."""
    below = Counter(map(_top, videos))
    named = {
        _top(name) if name not in known and below[_top(name)] == 1 else name: source for name, source in videos.items()
    }
    found = {name: named[name] for name in known if name in named}
    if not found:
        raise InputError(
            f"No video belongs to an id of the truth: there are videos such as {told(next(iter(videos)))} and ids such "
            f"as {told(next(iter(known)))}; name videos or their folders by the ids, or say with --id where the id is."
        )
    return found


def ahead(items: Generator[Item], depth: int = AHEAD) -> Generator[Item]:
    """The items, made in another thread, at most `depth` before they are asked for."""
    end: Any = object()
    with closing(items), ThreadPoolExecutor(1, thread_name_prefix="karat-decode") as pool:
        try:
            coming = deque(pool.submit(next, items, end) for _ in range(depth))
            while (item := coming.popleft().result()) is not end:
                coming.append(pool.submit(next, items, end))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)  # before `items`, which it may be in, is closed


def _check(path: Path, threshold: float, prompt: str, batch: int) -> None:
    if path.is_dir():
        raise UsageError(f"{told(path)} is a folder: name a file, such as {told(path / 'boxes.json')}.")
    if path.suffix.lower() != ".json":
        raise UsageError(f"{told(path)} does not end in .json: boxes are written as that.")
    if not 0 <= threshold < 1:
        raise UsageError(f"--threshold is at least 0 and below 1, not {threshold:g}.")
    if SUBJECT not in prompt:
        raise UsageError(f"--prompt {told(prompt)} asks for the same in every video: write {SUBJECT} where it belongs.")
    if batch < 1:
        raise UsageError(f"--batch starts at 1, not {batch}.")


def _spare(path: Path, *inputs: Any) -> None:
    """What is read is not written over."""
    for one in inputs:
        if isinstance(one, str | Path) and path.exists() and Path(one).exists() and path.samefile(one):
            raise UsageError(f"{told(path)} is read here: name another file for the boxes.")


def _tasks(paired: Mapping[str, Any], subjects: Mapping[str, Any], prompt: str) -> tuple[list[Task], list[Failure]]:
    tasks, failures = [], []
    for name, source in paired.items():
        try:
            subject = open_record(subjects[name], "tubes").subject
            if not subject.strip():
                raise InputError("the truth names no subject for this id: add it.")
            tasks.append(Task(name, source, prompt.replace(SUBJECT, subject), digest(source)))
        except InputError as error:
            failures.append(Failure(name, FIELD, str(error)))
    return tasks, failures


def _detector(model: str | Path, device: str | None, threshold: float, batch: int) -> Any:
    found = weights.find(model)
    if found.model_type == TRACKER:
        from karat.networks.tracker import Tracker

        return Tracker(found, device, threshold)
    from karat.networks.detector import Detector

    return Detector(found, device, threshold, batch)


def _declared(tasks: Iterable[Task]) -> int | None:
    """How many frames the videos have, where all say so."""
    total = 0
    for task in tasks:
        try:
            with open_stream(task.source, "frames") as stream:
                if stream.length is None:
                    return None
                total += stream.length
        except InputError:
            continue  # it fails when its turn comes
    return total


def _detected(
    detector: Any, tasks: Iterable[Task], value_range: Range, advance: Callable[[int], None]
) -> Iterator[tuple[Task, Any]]:
    """What is found in each video, or why nothing can be; the next frames are decoded while the network computes."""
    with closing(ahead(_prepared(detector, tasks, value_range))) as coming:
        for task, items in groupby(coming, itemgetter(0)):
            parts = _sound(item for _, item in items)
            try:
                height, width = next(parts)
                found = detector.find(parts, task.text, advance)
            except UsageError:
                raise
            except Exception as error:
                reason = str(error) if isinstance(error, KaratError) else f"{type(error).__name__}: {error}"
                yield task, Failure(task.id, FIELD, " ".join(reason.split()))
            else:
                boxes, scores = [one.box for one in found], [one.score for one in found]
                yield task, {"width": width, "height": height, "bboxes": boxes, "scores": scores}


def _prepared(detector: Any, tasks: Iterable[Task], value_range: Range) -> Generator[tuple[Task, Any]]:
    """For each video the size of its frames and its batches; what goes wrong is the last of them."""
    for task in tasks:
        try:
            with open_stream(task.source, "frames") as stream:
                yield task, size_of(stream, "frames")
                frames = (as_bytes(frame, value_range, stream.name) for frame in stream)
                for batch in detector.prepare(frames, task.text):
                    yield task, batch
        except Exception as error:
            yield task, error


def _sound(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, Exception):
            raise item
        yield item


def _top(name: str) -> str:
    return name.partition("/")[0]


def _unheard(_: str) -> None:
    """Nobody listens."""
