"""Scores for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

COLUMNS = ("score", "region", "value", "n", "undefined", "excluded", "failed")


def as_json(content: Mapping[str, Any]) -> bytes:
    """What scores.json holds."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(content: Mapping[str, Any]) -> bytes:
    """One line a score and region; an undefined value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(["" if cell is None else cell for cell in row.values()] for row in records(content))
    return out.getvalue().encode()


def as_markdown(content: Mapping[str, Any]) -> bytes:
    """A table, the notes, the signature."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * 5]
    for row in records(content):
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

    rows = [{**row, "value": None if row["value"] is None else float(row["value"])} for row in records(content)]
    types = [("score", pa.string()), ("region", pa.string()), ("value", pa.float64())]
    schema = pa.schema([*types, *((name, pa.int64()) for name in COLUMNS[3:])])
    table = pa.Table.from_pylist(rows, schema).replace_schema_metadata({"signature": content["signature"]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def records(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One record a score and region."""
    return [
        {"score": key.partition("@")[0], "region": key.partition("@")[2] or "all", **value}
        for key, value in content["scores"].items()
    ]


FORMATS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
    "parquet": as_parquet,
}
