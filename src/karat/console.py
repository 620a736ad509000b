"""How commands speak: tables on the standard output, sentences on the standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

from karat.errors import told

if TYPE_CHECKING:
    from rich.console import Console

    from karat.measure import Failure

FAILED_SAMPLES = 3  # the exit code


def say(message: str) -> None:
    """A sentence."""
    print(f"karat: {told(message)}", file=sys.stderr)


def say_failures(failures: Sequence[Failure], total: int, what: str) -> NoReturn:
    """How many there are, and why the first of them; then the command ends."""
    say(f"{len({failure.sample for failure in failures})} of {total} {what}.")
    for failure in failures[:5]:
        say(f"{failure.sample}: {failure.reason}")
    raise typer.Exit(FAILED_SAMPLES)


def console() -> Console:
    """Where tables go; wide where nobody watches."""
    from rich.console import Console

    class Piped(Console):
        """Leaves a reader that went away to the entry point."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Piped(width=None if sys.stdout.isatty() else 160)
