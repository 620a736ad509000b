"""The threads of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

Shard = TypeVar("Shard")
Result = TypeVar("Result")


def each(
    work: Callable[[Shard], Result], shards: Sequence[Shard], workers: int, halt: Callable[[], None] = lambda: None
) -> Iterator[Result]:
    """The results of `work` for every shard, as they come; at most `workers` are under way; `halt` ends them early.

    Threads, not processes: decoding, filtering and array arithmetic leave the interpreter's lock, nothing is copied,
    and metrics that live in a notebook work as well.
    """
    if workers == 1:
        yield from map(work, shards)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="karat-shard") as pool:
        coming = iter(shards)
        running = {pool.submit(work, shard) for _, shard in zip(range(workers), coming, strict=False)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(work, shard) for _, shard in zip(done, coming, strict=False)}
                for future in done:
                    yield future.result()
        except BaseException:
            halt()  # before the pool waits for those that run
            raise
