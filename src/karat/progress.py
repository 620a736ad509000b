"""A progress bar with rate and time left, on stderr, when somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int | None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Gives a function that is told how much more is done; does nothing where stderr is no terminal."""
    if not shown or not sys.stderr.isatty():
        yield unwatched
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(done: int) -> None:
            bar.advance(task, done)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:.1f}/s" if speed else "")

        yield advance


def unwatched(_: int) -> None:
    """Nobody watches."""
