"""The run folder: shards of rows that are there when their `done` file is, so that a run killed at any byte goes on.

made/                        inputs that were made before: boxes that a detector found
run.json                     suite, protocol, metrics, signature, versions, arguments, timing, host
rows/<unit>/<shard>.parquet  what was measured, keyed by sample, side, frame, item and region
done/<shard>.json            the shard's files with their sha256, its samples' content hashes, failures and facts
failures.jsonl               why scores are missing
scores.json                  the scores, their counts, the signature and the notes
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from karat import areas
from karat.errors import InputError, UsageError, told
from karat.gather import Fingerprint, fingerprint
from karat.measure import Failure, Measured
from karat.metric import metrics
from karat.rows import Rows, concatenate
from karat.run import Identity, Run
from karat.suite import Reading, recorded, restored, tuples
from karat.table import from_table, to_table

LAYOUT = 1
MADE = "made"  # the folder of what was made of a run's inputs before they were evaluated
PART = ".{}.{}.part"
PART_GLOB = PART.format("*", "*")
PLACE = re.compile(r"rows/[a-z]+/\d+\.parquet")
HEAD = {
    "suite": str,
    "protocol": str,
    "identity": str,
    "metrics": list,
    "reading": dict,
    "fields": list,
    "samples": list,
}
DONE = {"files": dict, "samples": dict}
SCORES = {"suite": str, "protocol": str, "signature": str, "scores": dict, "notes": list}


@dataclass(frozen=True)
class RunFolder:
    """Writes and reads one run's folder."""

    path: Path
    identity: Identity

    def begin(self, samples: Sequence[str], hashes: Mapping[str, Fingerprint], arguments: Mapping[str, Any]) -> None:
        """Claims the folder for this run, or finds that it holds the same one."""
        file = self.path / "run.json"
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file: choose another --out.")
        known = read_json(file, HEAD) if file.exists() else None
        if known is not None and known["identity"] != str(self.identity):
            raise UsageError(
                f"{self.path} holds another run, {told(known['suite'])}@{told(known['protocol'])}, or one with other "
                "parameters or versions: choose another --out."
            )
        if known is not None and known["samples"] != list(samples):
            raise UsageError(f"{self.path} holds a run of other samples: choose another --out.")
        found = [file for file in self.path.iterdir() if file.name != MADE] if self.path.exists() else []
        if known is None and any(not file.match(PART_GLOB) for file in found):
            raise UsageError(f"{self.path} is not empty and holds no run: choose another --out.")
        for name, done in self.done_samples().items():
            if name not in hashes or (not done["failures"] and done["hash"] != hashes[name]._asdict()):
                raise UsageError(f"The files of {name} have changed since {self.path} was begun: choose another --out.")
        self._write_json("run.json", {**self._head(samples), "arguments": dict(arguments), "state": "running"})

    def measured(self, hashes: Mapping[str, Fingerprint] | None = None) -> dict[str, Measured]:
        """What is there: whole shards whose samples are as they were; with `hashes`, none that failed."""
        found: dict[str, Measured] = {}
        for _, done in self._shards():
            names = list(done["samples"])
            if hashes is not None and any(done["samples"][name]["failures"] for name in names):
                continue
            if any(not PLACE.fullmatch(place) for place in done["files"]):
                continue
            tables = [self._read(file, digest) for file, digest in done["files"].items()]
            if any(table is None for table in tables):
                continue
            rows = {
                name: part for table in tables for name, part in from_table(table, self.identity.statistics).items()
            }
            found |= {name: self._sample(name, done["samples"][name], rows) for name in names}
        return found

    def commit(
        self,
        shard: str,
        measured: Mapping[str, Measured],
        hashes: Mapping[str, Fingerprint],
        groups: Mapping[str, str] | None = None,
    ) -> None:
        """Publishes a shard: its files first, then the one that says they are there."""
        by_unit: dict[str, dict[str, Rows]] = {}
        for name, statistic in self.identity.statistics.items():
            parts = [one.rows[statistic] for one in measured.values() if statistic in one.rows]
            if parts:
                by_unit.setdefault(statistic.unit, {})[name] = concatenate(parts)
        files = {}
        for unit, rows in by_unit.items():
            place = f"rows/{unit}/{shard}.parquet"
            files[place] = self._publish(place, lambda part, rows=rows: pq.write_table(to_table(rows, groups), part))
        samples = {
            name: {
                "hash": hashes[name]._asdict(),
                "failures": [{"field": failure.field, "reason": failure.reason} for failure in one.failures],
                "facts": one.facts,
                "measured": [label for label, statistic in self.identity.statistics.items() if statistic in one.rows],
            }
            for name, one in measured.items()
        }
        self._write_json(f"done/{shard}.json", {"files": files, "samples": samples})

    def finish(self, run: Run, record: Mapping[str, Any]) -> None:
        """Writes what follows from the rows."""
        lines = "".join(json.dumps(asdict(failure), ensure_ascii=False) + "\n" for failure in run.failures)
        self._publish("failures.jsonl", lambda part: part.write_text(lines, encoding="utf-8"))
        self._write_json("scores.json", run.plain())
        about = {
            "groups": dict(run.groups),
            "signature": run.signature,
            "data": Fingerprint(*run.data)._asdict(),
            "notes": list(run.notes_before),
        }
        for part in self.path.rglob(PART_GLOB):  # of a run that was killed while it wrote
            if part.stat().st_mtime < record["timing"]["began"]:
                part.unlink(missing_ok=True)
        self._write_json(
            "run.json",
            {**self._head(run.samples), **about, "state": "finished", **record},
        )

    def _head(self, samples: Sequence[str]) -> dict[str, Any]:
        return {
            "layout": LAYOUT,
            "suite": self.identity.suite,
            "protocol": self.identity.protocol,
            "identity": str(self.identity),
            "metrics": [recorded(metric) for metric in self.identity.metrics],
            "reading": asdict(self.identity.reading),
            "fields": list(self.identity.fields),
            "areas": [areas.recorded(area) for area in self.identity.areas],
            "samples": list(samples),
            "grouped_by": self.identity.grouped_by,
            "made": self.identity.made,
            "origins": self.identity.origins,
        }

    def _shards(self) -> Iterable[tuple[str, dict[str, Any]]]:
        for file in sorted((self.path / "done").glob("*.json")):
            if not file.name.startswith("."):
                yield file.stem, read_json(file, DONE)

    def done_samples(self) -> dict[str, Any]:
        """What the done files say of each sample."""
        return {name: one for _, done in self._shards() for name, one in done["samples"].items()}

    def _sample(self, name: str, done: Mapping[str, Any], rows: Mapping[str, Rows]) -> Measured:
        own = {self.identity.statistics[label]: rows[label].of([name]) for label in done["measured"]}
        for statistic, part in own.items():
            if not len(part):  # Parquet forgets the regions of a table without rows
                own[statistic] = replace(part, regions=self.identity.regions_of(statistic))
        return Measured(own, [Failure(name, **failure) for failure in done["failures"]], dict(done["facts"]))

    def _read(self, place: str, digest: str) -> Any:
        file = self.path / place
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            return None
        return pq.read_table(file)

    def _write_json(self, place: str, content: Any) -> None:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        self._publish(place, lambda part: part.write_text(text, encoding="utf-8"))

    def _publish(self, place: str, write: Any) -> str:
        """Writes beside the place and renames onto it; returns the sha256."""
        file = self.path / place
        part = file.with_name(PART.format(file.name, uuid.uuid4().hex))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write(part)
            digest = hashlib.sha256(part.read_bytes()).hexdigest()
            part.replace(file)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise UsageError(f"{file} cannot be written ({error.strerror or error}): choose another --out.") from error
        return digest


def load(path: Path) -> Run:
    """The run that a folder holds."""
    head = read_json(path / "run.json", HEAD)
    kinds = metrics()
    try:
        chosen = tuple(restored(kinds[one["metric"]](), one) for one in head["metrics"])
        reading = Reading(**{name: tuples(value) for name, value in head["reading"].items()})
        known = tuple(map(areas.restored, head.get("areas", [])))
        identity = Identity(
            head["suite"],
            head["protocol"],
            chosen,
            reading,
            tuple(head["fields"]),
            known,
            head.get("grouped_by", ""),
            {name: (of, how) for name, (of, how) in head.get("made", {}).items()},
            head.get("origins", {}),
        )
        folder = RunFolder(path, identity)
        measured = folder.measured()
        data = fingerprint({name: Fingerprint(**one["hash"]) for name, one in folder.done_samples().items()})
        groups = head.get("groups", {})
        if not isinstance(groups, dict) or (groups and set(groups) != set(head["samples"])):
            raise InputError(f"{told(path)} has other groups than samples: evaluate again.")
        return Run(identity, data, tuple(head["samples"]), measured, head.get("notes", []), path, groups, head)
    except KeyError as error:
        raise InputError(
            f"{path} was written with {error}, which is not known here: import what defines it first."
        ) from None


def read_scores(file: Path) -> dict[str, Any]:
    """What a scores.json holds."""
    content = read_json(file, SCORES)
    counts = ("n", "undefined", "excluded", "failed")
    for value in content["scores"].values():
        number = value.get("value", "") if isinstance(value, dict) else ""
        if not (number in ("inf", "-inf", None) or isinstance(number, float | int)) or not all(
            isinstance(value.get(name), int) for name in counts
        ):
            raise InputError(f"{told(file)} was not written by Karat: point at a run's folder.")
    return content


def read_json(file: Path, kinds: Mapping[str, type]) -> dict[str, Any]:
    """A JSON object that Karat wrote, with members of these kinds."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{file.parent} holds no run: {file.name} is missing.") from None
    except ValueError:
        raise InputError(f"{file} is damaged: restore it or evaluate again into another folder.") from None
    if not isinstance(content, dict) or not all(isinstance(content.get(name), kind) for name, kind in kinds.items()):
        raise InputError(f"{told(file)} was not written by Karat: point at a run's folder.")
    return content
