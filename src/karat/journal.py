"""A journal: what is done so far of a file that is written at the end, so that a call that was killed goes on."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MEMBERS = {"id": str, "key": dict, "record": dict}


@dataclass(frozen=True)
class Journal:
    """A line of JSON for each thing that is done, there as soon as it is; its key is all that its record hangs on."""

    path: Path

    @classmethod
    def beside(cls, path: Path) -> Journal:
        return cls(path.with_name(path.name + ".journal"))

    def resume(self, keys: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, Any], list[set[str]]]:
        """The records of what was done under the same key, and for every other one which members of its key differ.

        Only what is still good is kept in the file.
        """
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines() if self.path.exists() else []
        known, stale = {}, []
        for line in filter(None, map(_parsed, lines)):
            key = keys.get(line["id"])
            if key is not None and key == line["key"]:
                known[line["id"]] = line
            elif key is not None:
                stale.append({name for name in key if key[name] != line["key"].get(name)})
        publish(self.path, "".join(json.dumps(line) + "\n" for line in known.values()))
        return {name: line["record"] for name, line in known.items()}, stale

    def add(self, name: str, key: Mapping[str, str], record: Mapping[str, Any]) -> None:
        """Appends what is done."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": name, "key": key, "record": record}) + "\n")

    def close(self) -> None:
        """What it was kept for is written."""
        self.path.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write beside the place, renamed onto it: what is there is always whole."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def publish(path: Path, text: str) -> None:
    """Puts a text in its place."""
    with replacing(path) as file:
        file.write(text.encode())


def as_lines(records: Iterable[Mapping[str, Any]]) -> str:
    """A JSON list with a record a line."""
    return "[" + ",".join("\n" + json.dumps(record, allow_nan=False) for record in records) + "\n]\n"


def _parsed(line: str) -> dict[str, Any] | None:
    """A line that is whole: a kill may have left the last one unfinished."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    sound = isinstance(found, dict) and all(isinstance(found.get(name), kind) for name, kind in MEMBERS.items())
    return found if sound else None
