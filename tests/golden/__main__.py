"""Karat against a folder of reference outputs: `python -m tests.golden FOLDER [--family F ...] [-v]`.

FOLDER holds index.json, a list of {family, case, inputs, expected, protocol}. Every `protocol.name` has an adapter: a
module of this folder (`transfer-clips` is transfer_clips.py) whose `answer(case)` says what Karat gives. A case whose
protocol has no adapter is not run; that counts as little as a failure, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from .case import Answer, Case, forget, read_case
from .compare import Comparison, Tolerance, compare

Adapter = Callable[[Case], Answer]
Say = Callable[[str], None]


@dataclass
class Tally:
    """How the cases of one family went."""

    passed: int = 0
    failed: int = 0
    not_run: Counter[str] = field(default_factory=Counter)  # protocol without an adapter -> cases
    compared: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # reason -> leaves or branches
    largest: dict[str, float] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Whether every case ran and agreed."""
        return not self.failed and not self.not_run

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.not_run.total()} not run"

    def add(self, protocol: str, outcome: Comparison) -> None:
        """One case that ran to its end."""
        self.compared += outcome.compared
        self.skipped.update(outcome.skipped.values())
        for quantity, gap in outcome.largest.items():
            name = f"{protocol} {quantity}"
            self.largest[name] = max(self.largest.get(name, 0.0), gap)


def adapters() -> dict[str, Adapter]:
    """{protocol name: adapter}, of every module in this folder that answers."""
    found: dict[str, Adapter] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.startswith("_") and path.stem not in ("case", "compare"):
            found[path.stem.replace("_", "-")] = import_module(f".{path.stem}", __package__).answer
    return found


def walk(folder: Path, families: Iterable[str] = (), say: Say = print) -> dict[str, Tally]:
    """Every case of the folder (of the named families, where any is named), family by family."""
    forget()
    wanted, known = set(families), adapters()
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    tallies: dict[str, Tally] = {family: Tally() for family in sorted(wanted)}
    for entry in index:
        if not wanted or entry["family"] in wanted:
            _run(folder, entry, known, tallies.setdefault(entry["family"], Tally()), say)
    return tallies


def _run(folder: Path, entry: Mapping[str, Any], known: Mapping[str, Adapter], tally: Tally, say: Say) -> None:
    title, protocol = f"{entry['family']} {entry['case']}", entry["protocol"]["name"]
    if protocol not in known:
        tally.not_run[protocol] += 1
        return
    try:
        case = read_case(folder, entry)
        outcome = compare(case.expected, known[protocol](case), Tolerance.of(case.protocol))
    except Exception as error:  # one case that stops must not hide the others
        tally.failed += 1
        say(f"{title} stopped: {type(error).__name__}: {error}")
        return
    tally.add(protocol, outcome)
    for difference in outcome.differences:
        say(f"{title} {difference}")
    if outcome.compared == 0:
        say(f"{title} compares nothing")
    if outcome.differences or outcome.compared == 0:
        tally.failed += 1
    else:
        tally.passed += 1


def report(tallies: Mapping[str, Tally], verbose: bool, say: Say = print) -> None:
    """What was not run and, when asked, how far the numbers are apart and what was left out; a line a family."""
    for family, tally in tallies.items():
        for protocol, count in tally.not_run.items():
            say(f"{family} {protocol}: no adapter, {count} not run")
        if verbose:
            say(f"{family}: {tally.compared} values compared")
            for quantity, gap in sorted(tally.largest.items()):
                say(f"{family} {quantity}: largest difference {'undefined' if math.isinf(gap) else f'{gap:.3g}'}")
            for reason, count in tally.skipped.items():
                say(f"{family} left out {count}: {reason}")
    for family, tally in tallies.items():
        say(f"{family}: {tally}")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where every case ran and agreed, 1 where one did not, 2 where there is nothing to run."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="holds index.json")
    parser.add_argument("--family", action="append", nargs="+", default=[], help="only these families")
    parser.add_argument("-v", "--verbose", action="store_true", help="the largest differences, and what is left out")
    given = parser.parse_args(arguments)
    if not (given.folder / "index.json").is_file():
        print(f"{given.folder} holds no index.json", file=sys.stderr)
        return 2
    tallies = walk(given.folder, [name for names in given.family for name in names])
    report(tallies, given.verbose)
    empty = [family for family, tally in tallies.items() if tally.passed + tally.failed + tally.not_run.total() == 0]
    for family in empty:
        print(f"{family}: no case of this family in {given.folder}", file=sys.stderr)
    if empty or not tallies:
        return 2
    return 0 if all(tally.clean for tally in tallies.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
