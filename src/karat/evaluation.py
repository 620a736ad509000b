"""A suite applied to what a user points at: gathered, measured shard by shard, kept, scored."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2

from karat import __version__
from karat.engines.local import each
from karat.errors import InputError
from karat.folder import RunFolder
from karat.gather import digests, fingerprint
from karat.made import made
from karat.measure import Crew, Measured, Sample, measure_sample
from karat.prepare import Prepared, declared_frames, prepare
from karat.progress import progress
from karat.run import Run, versions
from karat.suite import Suite
from karat.suites import load

TIMED_FRAMES = 3


def evaluate(
    suite: str | Suite,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    strict: bool = False,
    tell: Callable[[str], None] | None = None,
    **inputs: Any,
) -> Run:
    """Evaluate a suite: `evaluate("transfer", pred="out/", truth="real/", masks="fg/", protocol="reference")`.

    `inputs` are what `karat.prepare.prepare` takes: fields, masks, protocol, metrics, settings, how frames are read; in
    the place of a field that a detector can find (`pred` of control), `videos`, with its `model` and `device`.
    `out` keeps the run in a folder, where a run that was stopped goes on; `workers` (all cores) never changes a number;
    `strict` stops at the first sample that fails; `tell` hears the estimated time.
    """
    place = Path(out) if out is not None else None
    return execute(planned(suite, place, tell, **inputs), place, workers or cores(), strict, tell)


def planned(
    suite: str | Suite, out: Path | None = None, tell: Callable[[str], None] | None = None, **inputs: Any
) -> Prepared:
    """What will be evaluated, once the fields that a network makes of videos are made."""
    chosen = load(suite) if isinstance(suite, str) else suite
    return prepare(chosen, **made(chosen, inputs, out, tell or (lambda _: None)))


def execute(
    prepared: Prepared,
    out: Path | None,
    workers: int,
    strict: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Run:
    """Measures what is missing, shard by shard, and scores what there is."""
    began = time.time()
    names = tuple(sample.id for sample in prepared.samples)
    with progress("reading", len(names)) as advance:
        hashes = digests(prepared.samples, lambda samples: _advancing(samples, advance))
    folder = RunFolder(out, prepared.identity) if out is not None else None
    measured: dict[str, Measured] = {}
    if folder is not None:
        folder.begin(names, hashes, prepared.arguments)
        measured = folder.measured(hashes)
    shards = [shard for shard in _shards(prepared) if not all(sample.id in measured for sample in shard[1])]
    with _one_core_each(), _totals(prepared, shards, workers, tell) as total:
        for shard, done in _measure(prepared, shards, workers, strict, total):
            measured |= done
            if folder is not None:
                folder.commit(shard, done, hashes, prepared.groups)
    if prepared.plan.cache is not None:
        prepared.plan.cache.trim()
    run = Run(prepared.identity, fingerprint(hashes), names, measured, prepared.notes, out, prepared.groups)
    if not run.scores and not run.failures:
        raise InputError(f"Nothing was evaluated. {next(run.excluded())}")
    run.record = {
        "arguments": dict(prepared.arguments),
        "versions": {"karat": __version__, "python": platform.python_version(), **versions()},
        "host": {"system": platform.platform(), "machine": platform.machine(), "cores": cores()},
        "timing": {"began": began, "seconds": time.time() - began, "workers": workers, "computed": len(shards)},
    }
    if folder is not None:
        folder.finish(run, run.record)
    return run


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def estimate(prepared: Prepared, samples: Sequence[Sample], workers: int) -> str | None:
    """How long it will take, from three timed frames of the first readable sample; None where lengths are unknown."""
    lengths = [declared_frames(sample, prepared.plan) for sample in samples]
    known = [length for length in lengths if length]
    for sample, length in zip(samples, lengths, strict=True):
        if not length:
            continue
        began = time.perf_counter()
        if measure_sample(sample, prepared.plan, Crew(), TIMED_FRAMES).failures:
            continue
        each_frame = (time.perf_counter() - began) / min(TIMED_FRAMES, length)
        seconds = each_frame * sum(known) / min(workers, sum(known))
        return f"about {_duration(seconds)}: {each_frame * 1000:.0f} ms a frame, {sum(known)} frames, {workers} workers"
    return None


def _shards(prepared: Prepared) -> list[tuple[str, tuple[Sample, ...]]]:
    """Cut by the suite and the samples, never by the number of workers."""
    samples, size = prepared.samples, prepared.suite.shard_samples
    return [(f"{start // size:08d}", samples[start : start + size]) for start in range(0, len(samples), size)]


def _measure(
    prepared: Prepared,
    shards: Sequence[tuple[str, tuple[Sample, ...]]],
    workers: int,
    strict: bool,
    advance: Callable[[int], None],
) -> Iterator[tuple[str, dict[str, Measured]]]:
    stop = threading.Event()

    def work(shard: tuple[str, tuple[Sample, ...]]) -> tuple[str, dict[str, Measured]]:
        return shard[0], {sample.id: measure_sample(sample, prepared.plan, crew) for sample in shard[1]}

    threads = ThreadPoolExecutor(workers, thread_name_prefix="karat-block") if workers > 1 else None
    crew = Crew(threads, advance, stop, strict)
    try:
        yield from each(work, shards, workers, stop.set)
    finally:
        stop.set()
        if threads is not None:
            threads.shutdown(cancel_futures=True)


@contextmanager
def _totals(
    prepared: Prepared,
    shards: Sequence[tuple[str, tuple[Sample, ...]]],
    workers: int,
    tell: Callable[[str], None] | None,
) -> Iterator[Callable[[int], None]]:
    """Progress over frames, with their number where the files declare it."""
    samples = [sample for _, part in shards for sample in part]
    if tell is not None and samples:
        said = estimate(prepared, samples, workers)
        if said:
            tell(said)
    lengths = [declared_frames(sample, prepared.plan) for sample in samples] if sys.stderr.isatty() else [None]
    total = sum(length or 0 for length in lengths) if None not in lengths else None
    with progress("measuring frames", total) as advance:
        yield advance


def _advancing(samples: Iterable[Sample], advance: Callable[[int], None]) -> Iterator[Sample]:
    for sample in samples:
        yield sample
        advance(1)


@contextmanager
def _one_core_each() -> Iterator[None]:
    """OpenCV works within the thread that calls it: Karat's own threads already fill the cores."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
