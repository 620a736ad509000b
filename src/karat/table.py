"""Rows as Arrow tables: one table a unit and shard, the columns of all its statistics joined by key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from karat.metric import Array
from karat.rows import BOTH, Rows, concatenate

_KEYS = ("sample", "side", "frame", "item", "region")


def to_table(rows: Mapping[str, Rows], groups: Mapping[str, str] | None = None) -> pa.Table:
    """{statistic's name: its rows} -> columns sample, side, frame, item, region and `name.column`, and where samples
    belong to groups the column group.

    A statistic without a row for a key has null there.
    """
    joined = concatenate([replace(part, columns={}, labels=()) for part in rows.values()])
    count = len(joined)
    columns: dict[str, Any] = {
        "sample": pa.DictionaryArray.from_arrays(joined.sample, pa.array(joined.samples, pa.string())),
        "side": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([BOTH])),
        "frame": joined.frame,
        "item": joined.item,
        "region": pa.DictionaryArray.from_arrays(joined.region, pa.array(joined.regions, pa.string())),
    }
    if groups:
        names, code = np.unique([groups[name] for name in joined.samples], return_inverse=True)
        columns["group"] = pa.DictionaryArray.from_arrays(code[joined.sample], pa.array(names, pa.string()))
    for name, part in rows.items():
        index = _places(part, joined)
        for column, values in part.columns.items():
            columns[f"{name}.{column}"] = _scattered(values, index, count)
    labels = {name: json.dumps(part.labels) for name, part in rows.items() if part.labels}
    return pa.table(columns).replace_schema_metadata(labels)


def from_table(table: pa.Table, names: Mapping[str, Any]) -> dict[str, Rows]:
    """The rows of each statistic that has columns in the table."""
    keys = {key: table[key].combine_chunks() for key in _KEYS}
    sample, region = (_codes(keys[key]) for key in ("sample", "region"))
    frame, item = (keys[key].to_numpy(zero_copy_only=False).astype(np.int32) for key in ("frame", "item"))
    labels = {key.decode(): text for key, text in (table.schema.metadata or {}).items()}
    found: dict[str, Rows] = {}
    for name in names:
        own = [column for column in table.column_names if column.startswith(f"{name}.")]
        if not own:
            continue
        present = np.flatnonzero(table[own[0]].is_valid().to_numpy())
        columns = {column.removeprefix(f"{name}."): _gathered(table[column], present) for column in own}
        codes = (sample[1][present], frame[present], item[present], region[1][present])
        found[name] = Rows(sample[0], region[0], *codes, columns, tuple(map(str, json.loads(labels.get(name, "[]")))))
    return found


def _places(part: Rows, joined: Rows) -> Array:
    """Where the rows of `part` are in `joined`, which has them all, in key order."""
    sample = _recoded(part.samples, joined.samples)[part.sample]
    region = _recoded(part.regions, joined.regions)[part.region]
    own = (sample, part.frame, part.item, region)
    if all(map(np.array_equal, own, joined.keys())):
        return np.arange(len(joined))
    both = [np.concatenate(pair) for pair in zip(joined.keys(), own, strict=True)]
    order = np.lexsort(both[::-1])  # stable: of equal keys the joined one is first
    last = np.maximum.accumulate(np.where(order < len(joined), order, -1))
    places = np.empty(len(order), np.int64)
    places[order] = last
    return places[len(joined) :]


def _recoded(names: Sequence[str], among: Sequence[str]) -> Array:
    place = {name: code for code, name in enumerate(among)}
    return np.array([place[name] for name in names], np.int32)


def _scattered(values: Array, index: Array, count: int) -> pa.Array:
    absent = np.ones(count, bool)
    absent[index] = False
    full = np.zeros((count, *values.shape[1:]), values.dtype)
    full[index] = values
    if full.ndim == 1:
        return pa.array(full, mask=absent)
    nested = pa.array(full.reshape(-1))
    for size in full.shape[:1:-1]:
        nested = pa.FixedSizeListArray.from_arrays(nested, size)
    return pa.FixedSizeListArray.from_arrays(nested, full.shape[1], mask=pa.array(absent))


def _gathered(column: pa.ChunkedArray, present: Array) -> Array:
    kept = column.combine_chunks().take(pa.array(present))
    shape = [len(present)]
    while pa.types.is_fixed_size_list(kept.type):
        shape.append(kept.type.list_size)
        kept = kept.flatten()
    values: Array = kept.to_numpy(zero_copy_only=False)
    return values.reshape(shape)


def _codes(column: Any) -> tuple[tuple[str, ...], Array]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return tuple(encoded.dictionary.to_pylist()), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
