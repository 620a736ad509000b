"""The options that say what is evaluated and how it is read: those of every field, suite and reading."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from karat.errors import UsageError
from karat.fields import CLIP, DETECTOR, EXPORTS, FIELDS, NETWORK, OPTIONS, PROMPTS, SHORT, VIDEOS


def with_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every field, and those that say how fields are read and what is measured, as `**inputs`."""

    @wraps(command)
    def wrapped(**named: Any) -> None:
        own = {name: named.pop(name) for name in list(named) if name in inspect.signature(command).parameters}
        command(**own, inputs=named)

    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "inputs"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in INPUTS.items()
    ]
    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    wrapped.__signature__ = inspect.Signature([*keyword[:1], *options, *keyword[1:]])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in [*keyword, *options]}
    return wrapped


def _option(kind: Any, *names: str, text: str, **more: Any) -> Any:
    return Annotated[kind | None, typer.Option(*names, help=text, show_default=False, **more)]


def _flags(field: str) -> tuple[str, ...]:
    """Its own, and a short one where it has one."""
    return ("--" + field.replace("_", "-"), *([SHORT[field]] if field in SHORT else []))


INPUTS: dict[str, Any] = {
    **{name: _option(Path, *_flags(name), text=text, rich_help_panel="Fields") for name, text in FIELDS.items()},
    "masks": _option(
        list[str], text="Foreground masks, or NAME=PATH for a named region; repeatable.", rich_help_panel="Fields"
    ),
    **{name: _option(Path, *_flags(name), text=text, rich_help_panel="Fields") for name, text in VIDEOS.items()},
    **{name: _option(Path, *_flags(name), text=text, rich_help_panel="Fields") for name, text in PROMPTS.items()},
    "model": _option(str, text="The detector for --videos, by name or folder.", rich_help_panel="Fields"),
    "device": _option(str, text="What networks run on: cuda or cpu.", rich_help_panel="Fields"),
    **{
        name: _option(str, text=text, rich_help_panel="Of single suites")
        for name, text in {**NETWORK, **CLIP, **OPTIONS}.items()
    },
    **{name: _option(Path, text=text, rich_help_panel="Of single suites") for name, text in EXPORTS.items()},
    "protocol": _option(str, text="Which reading of the specification: spec (default), reference, ..."),
    "metric": _option(list[str], text="Only this metric, as canny_f1 or CannyF1(low=50); repeatable."),
    "set": _option(list[str], text="METRIC.PARAMETER=VALUE, such as blur_ssim.blur=gaussian; repeatable."),
    "frames": _option(int, text="Only the first so many frames of every clip."),
    "stride": _option(int, text="Only every so many frames."),
    "on_length": _option(str, text="Unequal lengths: error (default) or truncate."),
    "on_size": _option(str, text="Unequal sizes: error (default) or resize (to the truth)."),
    "range": _option(str, text="Black and white of floating frames, such as 0..1 or -1..1."),
    "scale": _option(str, text="What the ends of the stored range of fields stand for, such as -186..-47."),
    "stored": _option(str, "--from", text="The range in which fields are stored, such as -1..1 or 0..255."),
    "units": _option(str, text="The unit of that scale, such as dBm."),
    "on_stray": _option(str, text="Predictions without a truth, and several for one: note or error."),
    "subset": _option(str, text="Only the truths of this subset, such as paper (of control's IMC)."),
    "group_by": _option(str, text="What samples have in common, such as building: scores get intervals by it."),
    "groups": _option(str, text="How ids tell: a regular expression with (?P<building>...), or a CSV with a column."),
    "knows": _option(
        str, "--inputs", text="What the method was given, such as building_map,sparse_rss: for fair comparison."
    ),
    "id": _option(str, text="Regular expression: its first group in the relative stem is the sample's id."),
    "workers": _option(int, text="Threads; never changes a number. Default: all cores."),
    "cache": Annotated[bool, typer.Option("--cache/--no-cache", help="Keep blurred truth between runs.")],
}


_PLAIN = (*FIELDS, *OPTIONS, *VIDEOS, *PROMPTS, *DETECTOR, *NETWORK, *CLIP)  # that go on under their names


def given_to_prepare(given: dict[str, Any]) -> dict[str, Any]:
    """The command line's options as `karat.prepare.prepare` takes them."""
    return dict(
        protocol=given["protocol"] or "spec",
        metrics=given["metric"],
        settings=dict(map(_setting, given["set"] or [])),
        masks=_masks(given["masks"]),
        frames=given["frames"],
        stride=given["stride"],
        on_length=given["on_length"],
        on_size=given["on_size"],
        value_range=range_of(given["range"], "--range"),
        scale=range_of(given["scale"], "--scale"),
        stored=range_of(given["stored"], "--from"),
        units=given["units"],
        on_stray=given["on_stray"],
        subset=given["subset"],
        group_by=given["group_by"],
        groups=given["groups"],
        inputs=given["knows"].split(",") if given["knows"] else None,
        id_pattern=given["id"],
        cache=given["cache"] is not False,
        **{name: given[name] for name in _PLAIN if given[name] is not None},
    )


def _masks(given: list[str] | None) -> Any:
    if not given:
        return None
    named: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            if len(given) > 1:
                raise UsageError("Give one foreground (--masks PATH) or only named regions (--masks NAME=PATH).")
            return Path(text)
        if name in named:
            raise UsageError(f"Two --masks are named {name!r}: give each region its own name.")
        named[name] = path
    return named


def _setting(text: str) -> tuple[str, Any]:
    from karat.suite import literal

    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text} sets nothing; write METRIC.PARAMETER=VALUE, such as canny_f1.low=50.")
    return key, literal(value)


def range_of(text: str | None, flag: str) -> tuple[float, float] | None:
    """LOW..HIGH as two numbers."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(".."))
    except ValueError:
        raise UsageError(f"{flag} {text} is no range; write LOW..HIGH, such as 0..1.") from None
    return low, high


def worker_count(given: dict[str, Any], cores: int) -> int:
    wanted: int | None = given["workers"]
    if wanted is not None and wanted < 1:
        raise UsageError(f"--workers starts at 1, not {wanted}.")
    return wanted or cores
