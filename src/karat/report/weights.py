"""Where the weights of networks come from, for people."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.errors import told
from karat.networks.known import KNOWN, megabytes, present


def listed(home: Path, console: Console) -> None:
    """Every network whose weights are known: whether they are here, and where they are published."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("network", "size", "licence", "here", "published as"):
        table.add_column(head, overflow="fold")
    for one in KNOWN.values():
        place = present(one)
        here = Text(told(place), style="green") if place else Text("–")
        table.add_row(one.name, megabytes(one.size), one.licence, here, Text(f"{one.sources}: {one.holds}"))
    console.print(table)
    console.print(
        Text(f"They are kept in {told(home)}, which KARAT_WEIGHTS sets; karat weights fetch NAME brings them.")
    )
