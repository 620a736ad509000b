"""Tables for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from karat.checking import Finding
from karat.describe import MetricPage, SuitePage
from karat.errors import told

ARROWS = {"higher": "↑", "lower": "↓", None: ""}
COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def scores(content: Mapping[str, Any], console: Console) -> None:
    """The table of a run, its notes and its signature; `content` is what scores.json holds."""
    from karat.metric import metrics

    better = {name: score.better for kind in metrics().values() for name, score in kind.scores.items()}
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=_plain(f"{content['suite']}@{content['protocol']}"),
        title_justify="left",
    )
    table.add_column("score")
    table.add_column("region")
    for name in ("value", "n", "undefined", "excluded", "failed"):
        table.add_column(name, justify="right")
    last = ""
    for key, value in content["scores"].items():
        name, _, region = key.partition("@")
        shown = "" if name == last else f"{name} {ARROWS[better.get(name)]}"
        counts = [
            Text(str(value[c]), style="red" if value[c] and c != "n" else "")
            for c in ("n", "undefined", "excluded", "failed")
        ]
        table.add_row(_plain(shown), _plain(region or "all"), number(value["value"]), *counts)
        last = name
    console.print(table)
    for note in content["notes"]:
        console.print(_plain(f"  note: {note}"), style="cyan")
    if content["notes"]:
        console.print()
    console.print(_plain(content["signature"]), style="dim", soft_wrap=True)


def side_by_side(runs: Mapping[str, Mapping[str, Any]], title: str, console: Console) -> None:
    """One column a run, the best of each score in bold; each content as scores.json holds it."""
    from karat.metric import metrics

    better = {name: score.better for kind in metrics().values() for name, score in kind.scores.items()}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    table.add_column("score")
    table.add_column("region")
    for name in runs:
        table.add_column(name, justify="right")
    last = ""
    for key in next(iter(runs.values()))["scores"]:
        name, _, region = key.partition("@")
        values = [content["scores"][key]["value"] for content in runs.values()]
        best = _best(values, better.get(name))
        cells = [Text(number(value), style="bold green" if value == best else "") for value in values]
        table.add_row("" if name == last else f"{name} {ARROWS[better.get(name)]}", region or "all", *cells)
        last = name
    console.print(table)


def findings(found: Sequence[Finding], samples: int, console: Console) -> None:
    """What `check` has to say, the worst first."""
    for one in found:
        where = f"{one.sample}: " if one.sample else ""
        console.print(Text(f"{one.level:8} ", COLORS[one.level]) + _plain(where + one.message), soft_wrap=True)
    counts = {level: sum(one.level == level for one in found) for level in ("error", "warning")}
    console.print(
        f"{samples} samples checked: {counts['error']} errors, {counts['warning']} warnings.", highlight=False
    )


def metric(page: MetricPage, console: Console) -> None:
    """A metric's page."""
    console.print(f"[bold]{page.spelling}[/]  ({page.name})", highlight=False)
    console.print(page.text, markup=False, highlight=False)
    console.print()
    rows = [(one.name, one.default, one.choices) for one in page.parameters]
    console.print(_table(("parameter", "default", "values"), rows))
    bounds = [
        (name, ARROWS[s.better], f"{s.bounds[0]:g} .. {s.bounds[1]:g}", s.about) for name, s in page.scores.items()
    ]
    console.print(_table(("score", "better", "bounds", "what"), bounds))
    needs = ", ".join(page.needs)
    console.print(
        f"needs {needs}; also called {', '.join(page.aliases)}" if page.aliases else f"needs {needs}", highlight=False
    )
    for law, reason in page.exempt.items():
        console.print(f"exempt from {law}: {reason}", markup=False, highlight=False)
    for protocol, changes in page.protocols.items():
        said = ", ".join(f"{name}={value}" for name, value in changes.items()) or "the defaults"
        console.print(f"{protocol}: {said}", markup=False, highlight=False)


def suite(page: SuitePage, console: Console) -> None:
    """A suite's page."""
    console.print(f"[bold]{page.title}[/]", highlight=False)
    console.print(f"metrics: {', '.join(page.metrics)}", highlight=False)
    console.print(
        f"fields: {', '.join(f'{name} ({kind})' for name, kind in page.fields.items())}, masks", highlight=False
    )
    console.print(_table(("protocol", "what it is"), list(page.protocols.items())))
    names = list(page.protocols)
    console.print("Where the protocols differ")
    console.print(
        _table(("", *names), [(what, *(answers.get(n, "") for n in names)) for what, answers in page.differences])
    )
    console.print("and in which parameters")
    console.print(
        _table(("parameter", *names), [(key, *(values.get(n, "") for n in names)) for key, values in page.settings])
    )
    console.print(page.citation, markup=False, highlight=False)


def catalogue(content: Mapping[str, Iterable[tuple[str, str, str]]], console: Console) -> None:
    """What there is."""
    console.print(_table(("suite", "what it evaluates", "protocols"), list(content["suites"])))
    console.print(_table(("metric", "what it measures", "scores"), list(content["metrics"])))


def number(value: float | str | None) -> str:
    """Four significant places; what is undefined is a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"


def _plain(text: object) -> Text:
    """Text from elsewhere: no markup, no control characters."""
    return Text(told(text))


def _best(values: Sequence[Any], better: str | None) -> Any:
    known = [value for value in values if isinstance(value, float | int)]
    if better is None or not known or len(set(known)) == 1:
        return None
    return max(known) if better == "higher" else min(known)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
