"""The command line: one thin command a verb."""

from __future__ import annotations

import io
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from karat import __version__
from karat.console import FAILED_SAMPLES, console, say, say_failures
from karat.errors import KaratError, UsageError, told
from karat.fields import EXPORTS
from karat.flags import given_to_prepare, with_inputs, worker_count
from karat.inputs_cli import convert, detect, weights_app

if TYPE_CHECKING:
    from karat.compare import Comparison
    from karat.prepare import Prepared
    from karat.run import Run

app = typer.Typer(
    help="Exact, fast, reproducible evaluation of generated images, videos, spatial fields and poses.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(weights_app, name="weights")


class Format(StrEnum):
    """How scores are printed."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    parquet = "parquet"


Suite = Annotated[str, typer.Argument(help="Which evaluation: see karat list.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How the scores are printed.")]
ByOption = Annotated[
    str | None, typer.Option("--by", help="A table with a row for each sample, or each part of one kind: node, ...")
]
AllOption = Annotated[bool, typer.Option("--all", help="Every score, not only those that come first.")]


@app.command()
@with_inputs
def run(
    suite: Suite,
    out: Annotated[Path | None, typer.Option(help="Keep the run in this folder; a stopped run goes on there.")] = None,
    strict: Annotated[bool, typer.Option(help="Stop at the first sample that fails.")] = False,
    format: FormatOption = Format.table,
    by: ByOption = None,
    every: AllOption = False,
    baselines: Annotated[
        str | None,
        typer.Option(
            help="Score classical baselines beside it: all, or some by name; the skill is against the first.",
            show_default=False,
        ),
    ] = None,
    inputs: dict[str, Any] | None = None,
) -> None:
    """Evaluate predictions against the truth."""
    from karat.evaluation import cores, execute, planned

    given = inputs or {}
    prepared = planned(suite, out, say, **given_to_prepare(given))
    workers = worker_count(given, cores())
    exports = {name: given[name] for name in EXPORTS if given[name] is not None}
    for name, path in exports.items():
        _check_export(prepared, name, path)
    result = execute(prepared, out, workers, strict, say)
    for name, path in exports.items():
        prepared.suite.exports[name].write(result, path)
    if baselines:
        from karat.compare import baselines as classical
        from karat.compare import compare as compared

        others = classical(result, prepared.suite, baselines, out, **given_to_prepare(given), workers=workers)
        _print_comparison(compared({"method": result, **others}, next(iter(others))), format)
    else:
        _print(_by(result, by) if by else result.plain(), format, every)
    if result.failures:
        where = f"; see {out / 'failures.jsonl'}" if out else ""
        say_failures(result.failures, len(result.samples), f"samples failed{where}")


@app.command()
@with_inputs
def check(suite: Suite, inputs: dict[str, Any] | None = None) -> None:
    """Say what is wrong with the inputs, before anything is computed."""
    from karat.checking import findings
    from karat.evaluation import cores
    from karat.report import terminal

    given = inputs or {}
    prepared = _prepare(suite, given)
    found = findings(prepared, worker_count(given, cores()))
    terminal.findings(found, len(prepared.samples), console())
    if any(one.level == "error" for one in found):
        raise typer.Exit(FAILED_SAMPLES)


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or SLEAP-NN's metrics.npz.")],
    format: FormatOption = Format.table,
    by: ByOption = None,
    every: AllOption = False,
) -> None:
    """Show a run: value, counts and region of every score."""
    from karat.folder import read_scores
    from karat.run import Run

    if folder.suffix in (".npz", ".json") and folder.is_file():
        from karat.report import nested
        from karat.sources.sleap_metrics import read_metrics

        _print(nested.table(folder, read_metrics(folder), every or format is not Format.table), format)
        return
    scores = folder / "scores.json"
    if by:
        _print(_by(Run.load(folder), by), format)
    else:
        _print(read_scores(scores) if scores.exists() else Run.load(folder).plain(), format, every)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    against: Annotated[
        str | None, typer.Option(help="The run (its folder's name) that skill is measured against.", show_default=False)
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Runs side by side: ranked where they are comparable, unfair scores marked."""
    from karat.compare import compare as compared
    from karat.run import Run

    named = {path.name: Run.load(path) for path in runs}
    if len(named) < len(runs):
        raise UsageError("Two runs have one name: rename a folder.")
    _print_comparison(compared(named, against), format)


app.command()(detect)
app.command()(convert)


@app.command("list")
def list_() -> None:
    """List the suites and the metrics."""
    from karat.describe import catalogue
    from karat.report import terminal

    terminal.catalogue(catalogue(), console())


@app.command()
def describe(name: Annotated[str, typer.Argument(help="A metric, a score or a suite.")]) -> None:
    """Formula, parameters, protocols and citation of a metric, or a suite's protocols side by side."""
    from karat.describe import MetricPage
    from karat.describe import describe as page_of
    from karat.report import terminal

    page = page_of(name)
    if isinstance(page, MetricPage):
        terminal.metric(page, console())
    else:
        terminal.suite(page, console())


@app.command()
def demo(
    suite: Annotated[str, typer.Argument(help="One of transfer, pose, radiomap, control, generation.")] = "transfer",
    out: Annotated[
        Path | None,
        typer.Option(help="Where the inputs and the runs go. Default: karat-demo/SUITE.", show_default=False),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Threads. Default: all cores.", show_default=False)] = None,
) -> None:
    """Evaluate a few pretend models on procedural scenes whose truth is known."""
    from karat.demo.run import DEMOS, show
    from karat.report import terminal

    if suite not in DEMOS:
        raise UsageError(f"There is no demo of {suite!r}; there are {', '.join(DEMOS)}.")
    out = out or Path("karat-demo") / suite
    scenes, runs = show(suite, out, workers)
    contents = {name: result.plain() for name, result in runs.items()}
    terminal.side_by_side(contents, f"{suite}@spec: {scenes}, a column a model", console())
    first = next(iter(runs.values()))
    console().print(first.signature, style="dim", markup=False, highlight=False, soft_wrap=True)
    print(f"\nThe inputs are in {out}, the runs in {out / 'runs'}; next: karat show {first.folder}", file=sys.stderr)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"karat {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  (its callback answers)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact, fast, reproducible evaluation of generated images, videos, spatial fields and poses."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """The entry point: errors are one sentence, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without arrows gets question marks, not an error
    try:
        command = typer.main.get_command(app)
        with command.make_context("karat", sys.argv[1:]) as context:
            command.invoke(context)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except KaratError as error:
        _quit(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        _quit("stopped; with --out the same command goes on where it was.", 130)
    except BrokenPipeError:
        _mute()
        sys.exit(0)
    except OSError as error:
        _mute()
        _quit(f"the output cannot be written ({error.strerror or error}).", 74)
    except Exception as error:
        if hasattr(error, "format_message"):  # of the command line's parser
            _quit(f"{' '.join(error.format_message().split())} See karat --help.", 2)
        if os.environ.get("KARAT_DEBUG"):
            raise
        _quit(f"internal error, {type(error).__name__}: {error}; set KARAT_DEBUG=1 to see where.", 70)
    sys.exit(0)


def _mute() -> None:
    """What is still to be flushed to an output that cannot take it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _quit(message: str, code: int) -> NoReturn:
    say(message)
    sys.stdout.flush()
    sys.exit(code)


def _prepare(suite: str, given: dict[str, Any]) -> Prepared:
    from karat.prepare import prepare

    return prepare(suite, **given_to_prepare(given))


def _check_export(prepared: Prepared, name: str, path: Path) -> None:
    """Before anything is computed."""
    flag, export = f"--{name.replace('_', '-')}", prepared.suite.exports.get(name)
    if export is None:
        raise UsageError(f"{prepared.suite.name} has no {flag}: leave it out.")
    if export.protocol not in ("", prepared.identity.protocol):
        raise UsageError(f"{flag} comes with --protocol {export.protocol}: pass it too.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"The folder of {told(path)} does not exist: make it, or choose another place.")


def _print_comparison(found: Comparison, format: Format) -> None:
    if format is Format.table:
        from karat.report import terminal

        terminal.comparison(found, console())
    elif format is Format.json:
        from karat.report.formats import as_json

        sys.stdout.buffer.write(as_json(found.plain()))
    else:
        raise UsageError(f"Comparisons are printed as table or json, not as {format}.")


def _by(result: Run, kind: str) -> dict[str, Any]:
    from karat.report import wide

    return wide.by_sample(result) if kind == wide.SAMPLE else wide.by_part(result.plain(), kind)


def _print(content: dict[str, Any], format: Format, every: bool = False) -> None:
    if format is Format.table:
        from karat.report import terminal

        if "rows" in content:
            terminal.by(content, console())
        else:
            terminal.scores(content, console(), every)
    else:
        from karat.report.formats import FORMATS

        sys.stdout.buffer.write(FORMATS[format](content))
        sys.stdout.buffer.flush()
