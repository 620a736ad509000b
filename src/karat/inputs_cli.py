"""The commands that make what a run reads: detect, convert, weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from karat.console import console, say, say_failures
from karat.errors import counted
from karat.flags import range_of

weights_app = typer.Typer(
    help="Where the weights of networks come from, and which are here.", invoke_without_command=True
)


def detect(
    videos: Annotated[Path, typer.Option(help="Generated videos: <id>.mp4, or <id>/<any name>.mp4.")],
    truth: Annotated[Path, typer.Option(help="Records with id and subject, such as davis_inputs.json.")],
    out: Annotated[Path, typer.Option(help="The file of boxes to write; a stopped command goes on there.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="A zero-shot detector of transformers, by name or folder. Default: google/owlvit-large-patch14.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cuda, in half precision, or cpu. Default: cuda if it is there.", show_default=False),
    ] = None,
    threshold: Annotated[float, typer.Option(help="Boxes have scores above it.")] = 0.1,
    prompt: Annotated[str, typer.Option(help="What is asked for, such as 'a photo of a {subject}'.")] = "{subject}",
    batch: Annotated[int, typer.Option(help="Frames at once; less needs less memory.")] = 8,
    id: Annotated[
        str | None,
        typer.Option(help="Regular expression: its first group in the relative stem is the id.", show_default=False),
    ] = None,
    range: Annotated[
        str | None, typer.Option(help="Black and white of floating frames, such as 0..1.", show_default=False)
    ] = None,
) -> None:
    """Find the subjects of videos with a network, and write their boxes for control."""
    from karat.detection import MODEL
    from karat.detection import detect as detected

    result = detected(
        videos,
        truth,
        out,
        model=model or MODEL,
        device=device,
        threshold=threshold,
        prompt=prompt,
        batch=batch,
        id_pattern=id,
        value_range=range_of(range, "--range"),
        tell=say,
    )
    say(f"the boxes of {counted(result.videos, 'video')} are in {out}.")
    if result.failures:
        total = len(result.failures) + result.videos
        say_failures(result.failures, total, "videos failed; the same command tries only them again")


def convert(
    source: Annotated[Path, typer.Argument(help="Predicted boxes or masks: pickle, npz, safetensors or JSON.")],
    target: Annotated[Path, typer.Argument(help="The JSON to write.")],
) -> None:
    """Write boxes or masks of any format as plain JSON: masks that are boxes as these, others as run lengths."""
    from karat.conversion import convert as converted

    done = converted(source, target)
    say(f"{counted(done.videos, 'video')} in {target}.")
    if done.soft:
        say(f"{counted(done.soft, 'video')} had masks of other values than 0 and 1: kept is where they are above 0.")
    if done.failures:
        say_failures(done.failures, len(done.failures) + done.videos, "videos failed")


@weights_app.callback()
def weights(context: typer.Context) -> None:
    """Where the weights of networks come from, and which are here."""
    if context.invoked_subcommand is None:
        from karat.networks.weights import home
        from karat.report.weights import listed

        listed(home(), console())


@weights_app.command()
def fetch(name: Annotated[str, typer.Argument(help="A network: see karat weights.")]) -> None:
    """Download the weights of a network, and verify them."""
    from karat.networks.fetch import fetch as fetched
    from karat.progress import progress

    say(f"the weights of {name} are in {fetched(name, progress)}.")
