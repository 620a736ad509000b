"""Errors that a user reads: one sentence that says what was found, what was expected and what to do."""

from __future__ import annotations


class KaratError(Exception):
    """Anything that Karat refuses, told in one sentence."""


class InputError(KaratError):
    """A file or an array that cannot be used as it is."""


class Inapplicable(InputError):
    """A sample that a statistic says nothing about, by its nature: no tracks to follow, no instances to match."""


class UsageError(KaratError):
    """A call or a command line that asks for something that does not exist."""


def told(name: object) -> str:
    """A name for a message: readable unicode stays, what would break the line or the terminal is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(name))


def short(name: str) -> str:
    """A name in quotes, the end of a long one left out."""
    return repr(name if len(name) <= 80 else name[:80] + "...")


def counted(number: int, what: str) -> str:
    """1 sample, 2 samples."""
    return f"{number} {what}{'' if number == 1 else 's'}"
