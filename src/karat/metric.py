"""What a metric is: a statistic that is measured, a score that is computed from its sums, and the registry of both."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.parameters import settle
from karat.sources.records import Finding

if TYPE_CHECKING:
    from karat.rows import Rows

Array = NDArray[Any]
Columns = Mapping[str, Array]
Pool = Literal["frame", "sample", "dataset"]
registry: dict[str, type[Metric]] = {}

_GIVEN = ("self", "regions", "slots", "sample")  # arguments of measure and prepare that are no fields


@dataclass(frozen=True)
class Score:
    """What is known of a score before it is measured: direction, bounds, its value when both sides are equal."""

    better: Literal["higher", "lower"] | None
    bounds: tuple[float, float] = (-np.inf, np.inf)
    identity: float | None = None
    about: str = ""
    whole: bool = False  # it counts


@dataclass(frozen=True)
class Weighted:
    """A score together with its weight in the next mean; weight 0 leaves it out, and it is counted as excluded."""

    value: Any  # one a group, or a number where rows are scored
    weight: Any


@dataclass(frozen=True)
class Derived:
    """A field made from another one, once a block for all metrics: `by` applied to the frames of `of`."""

    of: str | Derived
    by: Callable[[Array], Array]

    @property
    def field(self) -> str:
        """The sample's field at the root."""
        return self.of if isinstance(self.of, str) else self.of.field


class Sums:
    """What `score` reads as attributes: one combined value a group, or (`combine = "rows"`) every row of one group.

    `labels` name the first axis that columns have beyond that. Columns are `combined` when they are read: metrics that
    share a statistic each read a few of its columns.
    """

    def __init__(
        self, columns: Columns, labels: tuple[str, ...] = (), combined: Callable[[Array], Array] = lambda column: column
    ) -> None:
        self._columns, self.labels, self._combined = columns, labels, combined

    def __getattr__(self, name: str) -> Array:
        if name not in self._columns:
            raise AttributeError(f"no statistic {name!r}; measured were {', '.join(self._columns)}")
        value = self.__dict__[name] = self._combined(self._columns[name])
        return value


def ratio(numerator: Array, denominator: Array) -> Array:
    """numerator / denominator in float64, NaN where the denominator is 0."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, np.float64), np.asarray(denominator, np.float64))
    with np.errstate(invalid="ignore", over="ignore"):  # of infinities
        quotient: Array = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0)
    return quotient


def quotient(numerator: float, denominator: float) -> float:
    """numerator / denominator of two numbers, NaN where the denominator is 0."""
    return float(numerator) / float(denominator) if denominator else math.nan


@dataclass(frozen=True)
class Statistic:
    """Measures batches. `measure` names the fields it needs as arguments and returns columns (items, regions, *axes).

    A statistic of unit "frame" is measured block by block; one of unit "item" sees a whole clip: `prepare` shrinks each
    block while it is decoded, and `measure(parts, sample)` runs once on what it returned, in the order of the frames.
    One of unit "element" measures what is not pixels: its fields are records of the kind `record`, given whole to
    `measure(pred, truth, sample)`, which returns `Elements`; masks do not apply to it. One `of_fields` measures maps of
    numbers (B, H, W), that have no colours.
    """

    unit: ClassVar[Literal["frame", "item", "element"]] = "frame"
    record: ClassVar[str] = ""
    of_fields: ClassVar[bool] = False
    measure: ClassVar[Callable[..., Any]]  # Columns, or Elements
    prepare: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        settle(self)

    def inputs(self) -> Mapping[str, Derived]:
        """Arguments that are derived fields; the others are the sample's own."""
        return {}

    def arguments(self) -> tuple[str, ...]:
        """The fields that this statistic reads, as its arguments name them."""
        return _arguments(type(self))  # type: ignore[arg-type]  # a class with a dataclass's __hash__ is hashable

    def fields(self) -> tuple[str, ...]:
        """The sample's fields that this statistic needs."""
        inputs = self.inputs()
        return tuple(dict.fromkeys(inputs[name].field if name in inputs else name for name in self.arguments()))

    def asks_for_sample(self) -> bool:
        """Whether `measure` wants to know which sample it is given."""
        return _asks_for_sample(type(self))  # type: ignore[arg-type]  # as above

    def doubts(self, **records: Any) -> Iterable[Finding]:  # noqa: ARG002
        """What is doubtful of a sample's records before anything is computed, as this statistic reads them."""
        return ()

    def identity(self) -> str:
        """Class, parameters and derived inputs: everything of it that can change a number."""
        by = dict.fromkeys(_history(derived) for derived in self.inputs().values())
        return " of ".join([repr(self), *by])


@dataclass(frozen=True, kw_only=True)
class Metric(Statistic):
    """A statistic and the scores that follow from its sums, combined up to `pool` and averaged above it.

    What does not add is scored from the rows themselves: `combine = "rows"`, pooled by sample or over the dataset.
    Besides the scores it declares, `score` may return parts of them, named `score@kind:part`; `parts` says which kinds.
    """

    pool: Pool = "sample"

    combine: ClassVar[Literal["sum", "rows"]] = "sum"
    scores: ClassVar[Mapping[str, Score]] = {}
    parts: ClassVar[Mapping[str, str]] = {}  # kind of part -> what it is
    aliases: ClassVar[tuple[str, ...]] = ()
    exempt: ClassVar[Mapping[str, str]] = {}  # a law of the contract that cannot hold by nature -> the reason
    score: ClassVar[Callable[..., Mapping[str, Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "scores" in cls.__dict__:
            registry[cls.__name__] = cls

    def remarks(self, rows: Rows) -> Iterable[str]:  # noqa: ARG002
        """What a reader of the scores must know of the rows besides: sentences for the notes."""
        return ()

    @property
    def statistic(self) -> Statistic:
        """What is measured for this metric: itself, unless it has a field `of`, the statistic whose sums it scores."""
        of: Statistic = getattr(self, "of", self)
        return of

    def __call__(self, *arrays: Any, regions: Mapping[str, Any] | None = None, **named: Any) -> dict[str, float]:
        """Score one sample given as arrays whose first axis is frames; `regions` names masks of the same frames."""
        from karat.meter import score_arrays

        names = self.statistic.fields()
        if len(arrays) > len(names):
            raise UsageError(f"{type(self).__name__} takes {', '.join(names)}, not {len(arrays)} arrays.")
        given = dict(zip(names, arrays, strict=False)) | named
        return score_arrays(self, given, regions or {})


@cache
def _arguments(kind: type[Statistic]) -> tuple[str, ...]:
    method = kind.prepare if kind.unit == "item" else kind.measure
    return tuple(name for name in inspect.signature(method).parameters if name not in _GIVEN)


@cache
def _asks_for_sample(kind: type[Statistic]) -> bool:
    return "sample" in inspect.signature(kind.measure).parameters


def _history(derived: Derived) -> str:
    return repr(derived.by) + ("" if isinstance(derived.of, str) else f" of {_history(derived.of)}")


def snake(name: str) -> str:
    """CannyF1 -> canny_f1, BlurSSIM -> blur_ssim, SegmentIoU -> segment_iou."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][A-Za-z0-9])|(?<=[A-Z])(?=[A-Z][a-z]{2})", "_", name).lower()


def metrics() -> dict[str, type[Metric]]:
    """Every registered metric by class name, Karat's own included."""
    import karat.metrics  # noqa: F401  (registers)

    return dict(sorted(registry.items()))


def part_kinds() -> dict[str, str]:
    """Every kind of part that a metric's scores have, and what it is."""
    return {kind: about for metric in metrics().values() for kind, about in metric.parts.items()}


def find(name: str) -> type[Metric]:
    """The metric that goes by `name`: its class, its snake-case name, one of its scores, or an alias."""
    known = metrics()
    wanted = _plain(name)
    for spelled in (lambda c: (c.__name__,), lambda c: tuple(c.scores), lambda c: c.aliases):
        for kind in known.values():
            if wanted in map(_plain, spelled(kind)):
                return kind
    raise UsageError(f"There is no metric {name!r}; there are {', '.join(map(snake, known))}.")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
