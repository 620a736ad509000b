"""What samples have in common: the building of a transmitter, read from ids, a regular expression or a table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from karat.errors import InputError, UsageError, told
from karat.sources.guard import MIB, read_bounded

USUAL = r"(?P<building>[^/_]+)[/_](?P<transmitter>.+)"
MAX_TABLE = 256 * MIB


def groups_of(ids: Sequence[str], by: str, given: str | Path | None = None) -> dict[str, str]:
    """The group `by` of every sample. `given` is a regular expression that is searched in the ids, with a named group
    (?P<building>...), or a CSV whose first column holds the ids and which has a column of that name; usually ids are
    building_transmitter or building/transmitter.
    """
    if given is not None and str(given).lower().endswith(".csv"):
        table = _column(Path(given), by)
        return {name: _known(table.get(name), name, by) for name in ids}
    try:
        pattern = re.compile(str(given) if given is not None else USUAL)
    except re.error as error:
        raise UsageError(f"--groups {told(given)} does not compile ({error}): write a regular expression.") from None
    if by not in pattern.groupindex:
        named = ", ".join(pattern.groupindex) or "none"
        raise UsageError(
            f"There is no group {told(by)!r}; there is {told(named)}: name one in --groups '(?P<{told(by)}>...)'."
        )
    found = {name: pattern.search(name) for name in ids}
    return {name: _known(match and match.group(by), name, by) for name, match in found.items()}


def _column(path: Path, by: str) -> Mapping[str, str]:
    try:
        text = read_bounded(path, MAX_TABLE, "a table of groups").decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{told(path)} cannot be read ({type(error).__name__}): give a CSV in UTF-8.") from None
    if not rows or by not in rows[0][1:]:
        there = ", ".join(rows[0][1:]) if rows else ""
        raise InputError(
            f"{told(path)} has no column {told(by)!r} behind the ids, but {told(there or 'nothing')}: name another one."
        )
    place, found = rows[0].index(by, 1), dict[str, str]()
    for row in rows[1:]:
        if len(row) > place and found.setdefault(row[0], row[place]) != row[place]:
            raise InputError(f"{told(path)} has two rows of {told(row[0])}, in different groups: leave one of them.")
    return found


def _known(group: str | None, name: str, by: str) -> str:
    if not group:
        raise InputError(f"Sample {told(name)} has no {told(by)}: name the groups with --groups.")
    return group
