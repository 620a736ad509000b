"""Tables for people."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from karat.checking import Finding
from karat.compare import Comparison
from karat.describe import MetricPage, SuitePage
from karat.errors import counted, told
from karat.metric import Score, metrics
from karat.region import ALL
from karat.report import wide
from karat.score import of_keys
from karat.suite import Suite
from karat.suites import load, names

ARROWS = {"higher": "↑", "lower": "↓", None: ""}
COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def scores(content: Mapping[str, Any], console: Console, every: bool = False) -> None:
    """The table of a run, its notes and its signature; `content` is what scores.json holds.

    Parts of scores have tables of their own, and a suite may say which scores come first; `every` shows all in one.
    """
    declared, named = _declared(), of_keys(content["scores"])
    suite = load(content["suite"]) if content["suite"] in names() else None
    regional = suite is not None and wide.REGION in suite.tables and not every
    shown = list(named) if every else _first(named, suite.headline if suite else (), wide.kinds(content), regional)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=_plain(f"{content['suite']}@{content['protocol']}"),
        title_justify="left",
    )
    table.add_column("score")
    table.add_column("region")
    table.add_column("value", justify="right")
    extra = _extra(content, suite)
    for name in extra:
        table.add_column(name, justify="left")
    for name in ("n", "undefined", "excluded", "failed"):
        table.add_column(name, justify="right")
    last = ""
    for key in shown:
        (name, region), value = named[key], content["scores"][key]
        title = "" if name == last else f"{name} {_arrow(declared, name)}"
        counts = [
            Text(str(value[c]), style="red" if value[c] and c != "n" else "")
            for c in ("n", "undefined", "excluded", "failed")
        ]
        table.add_row(
            _plain(title),
            _plain(region),
            number(value["value"], _whole(declared, name)),
            *_told(name, value, extra, suite),
            *counts,
        )
        last = name
    console.print(table)
    tabled = [kind for kind in (wide.REGION, *wide.kinds(content)) if suite and kind in suite.tables and not every]
    for kind in tabled:
        _wide_table(_kept(wide.by_part(content, kind), suite.headline if suite else ()), console)
    if len(shown) < len(named):
        hidden = [kind for kind in wide.kinds(content) if kind not in tabled]
        by = f", --by {', '.join(hidden)}" if hidden else ""
        console.print(
            _plain(f"  {counted(len(named) - len(shown), 'more score')}: --all{by}, or --format json"), style="dim"
        )
        console.print()
    _notes(content["notes"], console)
    if content["notes"]:
        console.print()
    console.print(_plain(content["signature"]), style="dim", soft_wrap=True)


def side_by_side(
    runs: Mapping[str, Mapping[str, Any]],
    title: str,
    console: Console,
    ranked: bool = True,
    unfair: Collection[str] = (),
) -> None:
    """One column a run, where they are ranked the best of each score in bold; each content as scores.json holds it.

    Scores that are `unfair` have a dagger.
    """
    first = next(iter(runs.values()))
    declared, named = _declared(), of_keys(first["scores"])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=_plain(title), title_justify="left")
    table.add_column("score")
    table.add_column("region")
    for name in runs:
        table.add_column(_plain(name), justify="right")
    last = ""
    for key in _first(named, load(first["suite"]).headline, wide.kinds(first)):
        name, region = named[key]
        values = [content["scores"].get(key, {}).get("value") for content in runs.values()]
        best = _best(values, declared[name].better if ranked and name in declared else None)
        whole = _whole(declared, name)
        cells = [Text(number(value, whole), style="bold green" if value == best else "") for value in values]
        title = "" if name == last else f"{name} {_arrow(declared, name)}"
        table.add_row(_plain(title), _plain(region + " †" * (key in unfair)), *cells)
        last = name
    console.print(table)


def comparison(found: Comparison, console: Console) -> None:
    """Runs side by side, what was found of them, and how much better than a baseline they are."""
    first = next(iter(found.runs.values()))
    contents = {name: run.plain() for name, run in found.runs.items()}
    title = f"{first.suite}@{first.protocol}: {len(first.samples)} samples"
    side_by_side(contents, title, console, found.ranked, found.unfair)
    if found.skill:
        named = of_keys(key for of in found.skill.values() for key in of)
        rows = _first(named, load(first.suite).headline, wide.kinds(first.plain()))
        table = [(*named[key], *(number(of.get(key)) for of in found.skill.values())) for key in rows]
        console.print(_plain(f"Skill: 1 - error / error of {found.against}"))
        console.print(_table(("score", "region", *found.skill), table))
    _notes(found.notes, console)


def by(content: Mapping[str, Any], console: Console) -> None:
    """A wide table and its signature; turned where it is wider than it is long."""
    rows, (first, *scores) = content["rows"], content["rows"][0]
    if len(rows) < len(scores):
        declared = _declared()
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column(_plain(first))
        for row in rows:
            table.add_column(_plain(row[first]), justify="right")
        for name in scores:
            cells = [number(row[name], _whole(declared, name)) for row in rows]
            table.add_row(_plain(f"{name} {_arrow(declared, name)}".strip()), *cells)
        console.print(table)
    else:
        _wide_table(content, console)
    _notes(content["notes"], console)
    console.print(_plain(content["signature"]), style="dim", soft_wrap=True)


def _notes(notes: Iterable[str], console: Console) -> None:
    for note in notes:
        console.print(_plain(f"  note: {note}"), style="cyan")


def _wide_table(content: Mapping[str, Any], console: Console) -> None:
    declared, (first, *rest) = _declared(), content["rows"][0]
    heads = [f"{name} {_arrow(declared, name)}".strip() for name in rest]
    for start, stop in _spans(
        [len(head) for head in heads], console.width - max(len(r[first]) for r in content["rows"])
    ):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column(_plain(first))
        for head in heads[start:stop]:
            table.add_column(_plain(head), justify="right", no_wrap=True)
        for row in content["rows"]:
            cells = [number(row[name], _whole(declared, name)) for name in rest[start:stop]]
            table.add_row(_plain(row[first]), *cells)
        console.print(table)


def _spans(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Columns side by side as long as there is room, at least one."""
    spans, start, taken = [], 0, 0
    for place, width in enumerate(widths):
        taken += max(width, 8) + 3
        if taken > room and place > start:
            spans.append((start, place))
            start, taken = place, max(width, 8) + 3
    return [*spans, (start, len(widths))]


def _extra(content: Mapping[str, Any], suite: Suite | None) -> tuple[str, ...]:
    """Columns that some runs have: the interval, what an ideal method has, in what band a value is."""
    names = ["95 %"] if any("interval" in value for value in content["scores"].values()) else []
    return (*names, *(["expected"] if suite and suite.expected else []), *(["is"] if suite and suite.bands else []))


def _told(name: str, value: Mapping[str, Any], extra: Sequence[str], suite: Suite | None) -> list[str]:
    """The cells of these columns."""
    low, high = value.get("interval") or (None, None)
    found = {"95 %": f"{number(low)} .. {number(high)}" if low is not None else ""}
    if suite is not None:
        known = isinstance(value["value"], float | int)
        bands = [word for top, word in suite.bands.get(name, ()) if known and value["value"] < top]
        found |= {"expected": suite.expected.get(name, ""), "is": bands[0] if bands else ""}
    return [found[column] for column in extra]


def _kept(content: dict[str, Any], headline: Sequence[str]) -> dict[str, Any]:
    """A table by region with the scores alone that come first."""
    if content["by"] != wide.REGION or not headline:
        return content
    names = (wide.REGION, *(name for name in headline if name in content["rows"][0]))
    return {**content, "rows": [{name: row[name] for name in names} for row in content["rows"]]}


def _first(
    named: Mapping[str, tuple[str, str]], headline: Sequence[str], kinds: Sequence[str], whole: bool = False
) -> list[str]:
    """The keys of what comes first: no parts, and where there is a headline its scores alone, in its order; of
    everything alone where there is a table by region."""
    plain = [key for key, (_, region) in named.items() if region.partition(":")[0] not in kinds]
    if whole:
        plain = [key for key in plain if named[key][1] == ALL]
    if not headline:
        return plain
    place = {name: i for i, name in enumerate(headline)}
    return sorted((key for key in plain if named[key][0] in place), key=lambda key: place[named[key][0]])


def _declared() -> dict[str, Score]:
    return {name: score for kind in metrics().values() for name, score in kind.scores.items()}


def _arrow(declared: Mapping[str, Score], name: str) -> str:
    return ARROWS[declared[name].better] if name in declared else ""


def _whole(declared: Mapping[str, Score], name: str) -> bool:
    return name in declared and declared[name].whole


def findings(found: Sequence[Finding], samples: int, console: Console) -> None:
    """What `check` has to say, the worst first."""
    for one in found:
        where = f"{one.sample}: " if one.sample else ""
        console.print(Text(f"{one.level:8} ", COLORS[one.level]) + _plain(where + one.message), soft_wrap=True)
    errors, warnings = (sum(one.level == level for one in found) for level in ("error", "warning"))
    said = f"{counted(samples, 'sample')} checked: {counted(errors, 'error')}, {counted(warnings, 'warning')}."
    console.print(said, highlight=False)


def metric(page: MetricPage, console: Console) -> None:
    """A metric's page."""
    console.print(f"[bold]{page.spelling}[/]  ({page.name})", highlight=False)
    console.print(page.text, markup=False, highlight=False)
    console.print()
    if page.statistic:
        name, text = page.statistic
        console.print(f"It scores [bold]{name}[/].", highlight=False)
        console.print(text, markup=False, highlight=False)
        console.print()
    rows = [(one.name, one.default, one.choices) for one in page.parameters]
    console.print(_table(("parameter", "default", "values"), rows))
    bounds = [
        (name, ARROWS[s.better], f"{s.bounds[0]:g} .. {s.bounds[1]:g}", s.about) for name, s in page.scores.items()
    ]
    console.print(_table(("score", "better", "bounds", "what"), bounds))
    for kind, about in page.parts.items():
        console.print(f"parts score@{kind}:...: {about}", markup=False, highlight=False)
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


def number(value: float | str | None, whole: bool = False) -> str:
    """Four places, none of a count; what is undefined is a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    if whole and value == int(value):
        return f"{value:.0f}"
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
        table.add_column(_plain(head), overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
