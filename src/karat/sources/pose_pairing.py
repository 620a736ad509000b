"""Which predicted video is which true one, where files hold several."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from .guard import refusal

NO_NAMES = ("", ".", "..")


@dataclass(frozen=True)
class Listed:
    """A video. id: of the sample.  name: its path as it was recorded, empty where there is none.  place: its number in
    its file.  file: what is common to the ids of that file.  plain: the id says which of them it is.
    """

    id: str
    name: str
    place: int
    file: str
    plain: bool


def video_ids(names: Sequence[str]) -> list[str]:
    """An id for each video of a file: the stem of its own file, with its number where another has that too."""
    stems = [stem(name) for name in names]
    if stems == [""]:
        return [""]
    width, times = len(str(len(stems) - 1)), Counter(stems)
    return [
        one if one and times[one] == 1 else f"{place:0{width}d}_{one}" if one else f"{place:04d}"
        for place, one in enumerate(stems)
    ]


def stem(name: str) -> str:
    """What a video's file is called, without folder and suffix."""
    last = _parts(name)[-1]
    return "" if last in NO_NAMES else last.rpartition(".")[0] or last


def pair(own: Sequence[Listed], truth: Sequence[Listed]) -> dict[str, str]:
    """Own id -> true id: of videos whose ids are alike; then of those whose files are called alike, in folders as alike
    as any; then, of files that hold equally many where names say nothing, by their numbers. Others are left out.
    """
    plain = {one.id for one in truth if one.plain}
    pairs = {one.id: one.id for one in own if one.plain and one.id in plain}
    _by_name(pairs, *_left(pairs, own, truth))
    _by_number(pairs, *_left(pairs, own, truth))
    return pairs


def _left(pairs: dict[str, str], own: Sequence[Listed], truth: Sequence[Listed]) -> tuple[list[Listed], list[Listed]]:
    """What is not paired."""
    taken = set(pairs.values())
    return [one for one in own if one.id not in pairs], [one for one in truth if one.id not in taken]


def _by_name(pairs: dict[str, str], own: Sequence[Listed], truth: Sequence[Listed]) -> None:
    same: dict[str, list[Listed]] = {}
    for one in truth:
        if stem(one.name):
            same.setdefault(stem(one.name), []).append(one)
    for one in own:
        alike = {other.id: _alike(one.name, other.name) for other in same.get(stem(one.name), [])}
        best = [other for other, likeness in alike.items() if likeness == max(alike.values())]
        if not best or _says_nothing([other for other in own if other.file == one.file]):
            continue
        if len(best) > 1 or best[0] in pairs.values():
            raise refusal(
                f"the predicted video {one.name}",
                f"is called as {len(best)} true ones are" if len(best) > 1 else "is called as another one is",
                "names that tell videos apart were expected",
                "rename them, or evaluate them in separate files",
            )
        pairs[one.id] = best[0]


def _by_number(pairs: dict[str, str], own: Sequence[Listed], truth: Sequence[Listed]) -> None:
    for file in dict.fromkeys(one.file for one in own):
        mine, theirs = ([one for one in side if one.file == file] for side in (own, truth))
        if not mine or not theirs or not (_says_nothing(mine) or _says_nothing(theirs)):
            continue
        numbers = {one.place: one.id for one in theirs}
        if sorted(numbers) != sorted(one.place for one in mine):
            raise refusal(
                "the predictions",
                f"hold {len(mine)} videos that no name tells apart",
                f"there are {len(theirs)} true ones",
                "name the videos, or give them in separate files",
            )
        pairs |= {one.id: numbers[one.place] for one in mine}


def _says_nothing(videos: Sequence[Listed]) -> bool:
    """Whether no name tells one of these from another."""
    return len({one.name for one in videos}) <= 1 < len(videos)


def _alike(one: str, other: str) -> tuple[bool, int]:
    """Whether two files have the same name, suffix included, and how many of the folders above have."""
    mine, theirs = _parts(one), _parts(other)
    folders = zip(reversed(mine[:-1]), reversed(theirs[:-1]), strict=False)
    return mine[-1] == theirs[-1], sum(1 for _ in takewhile(lambda both: both[0] == both[1], folders))


def _parts(name: str) -> list[str]:
    return re.split(r"[/\\]", name)
