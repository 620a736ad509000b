"""Scores for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from karat.score import of_keys

COLUMNS = ("score", "region", "value", "n", "undefined", "excluded", "failed")


def as_json(content: Mapping[str, Any]) -> bytes:
    """What scores.json holds, or a wide table."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(content: Mapping[str, Any]) -> bytes:
    """One line a score and region; an undefined value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    rows = records(content)
    writer.writerow(columns(rows))
    writer.writerows(["" if cell is None else cell for cell in row.values()] for row in rows)
    return out.getvalue().encode()


def as_markdown(content: Mapping[str, Any]) -> bytes:
    """A table, the notes, the signature."""
    rows = records(content)
    names = columns(rows)
    left = 1 if "by" in content else 2
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * left + "---:|" * (len(names) - left)]
    for row in rows:
        cells = [
            "–" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row.values()
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    notes = ["", *(f"- {note}" for note in content["notes"])] if content["notes"] else []
    return "\n".join([*lines, *notes, "", f"`{content['signature']}`", ""]).encode()


def as_parquet(content: Mapping[str, Any]) -> bytes:
    """The records as one table, the signature in its metadata; null is undefined."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, counts = ("score", "region", content.get("by")), COLUMNS[3:]
    rows = records(content)
    kinds = {
        name: pa.string() if name in text else pa.int64() if name in counts else pa.float64() for name in columns(rows)
    }
    numbers = [name for name, kind in kinds.items() if kind == pa.float64()]
    rows = [row | {name: None if row[name] is None else float(row[name]) for name in numbers} for row in rows]
    table = pa.Table.from_pylist(rows, pa.schema(kinds)).replace_schema_metadata({"signature": content["signature"]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def columns(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of the columns; without any row those of scores."""
    return tuple(rows[0]) if rows else COLUMNS


def records(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One record a score and region; of a wide table its rows."""
    if "rows" in content:
        return list(content["rows"])
    grouped = any("interval" in value for value in content["scores"].values())
    return [
        {"score": score, "region": region, **_flat(content["scores"][key], grouped)}
        for key, (score, region) in of_keys(content["scores"]).items()
    ]


def _flat(value: Mapping[str, Any], grouped: bool) -> dict[str, Any]:
    """The interval as two columns, where any score has one."""
    plain = {name: one for name, one in value.items() if name != "interval"}
    low, high = value.get("interval") or (None, None)
    return plain | {"low": low, "high": high} if grouped else plain


FORMATS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
    "parquet": as_parquet,
}
