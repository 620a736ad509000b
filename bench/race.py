"""Two sides that compute the same, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Race:
    """The same numbers from a peer and from Karat; `bound` is the ratio that is promised, `share` how much of the work
    the peer is given, whose time grows with it."""

    name: str
    peer: str
    theirs: Callable[[], object]
    ours: Callable[[], object]
    bound: float | None = None
    repeats: int = 5
    share: float = 1.0


def ratio(race: Race) -> tuple[float, float]:
    """Best seconds of the peer and of Karat, measured in turns."""
    best = [float("inf"), float("inf")]
    for _ in range(race.repeats):
        for side, call in enumerate((race.theirs, race.ours)):
            began = time.perf_counter()
            call()
            best[side] = min(best[side], time.perf_counter() - began)
    return best[0] / race.share, best[1]


def table(races: Iterable[Race]) -> bool:
    """Prints a line a race; whether every promise is kept."""
    print(f"{'what':34} {'peer':22} {'peer':>9} {'karat':>9} {'ratio':>7} {'promised':>9}")
    kept = True
    for race in races:
        theirs, ours = ratio(race)
        promised = f">= {race.bound:.3g}x" if race.bound else ""
        kept &= race.bound is None or theirs / ours >= race.bound
        row = f"{race.name:34} {race.peer:22} {theirs:8.3f}s {ours:8.3f}s {theirs / ours:6.1f}x {promised:>9}"
        print(row, flush=True)
    return kept
