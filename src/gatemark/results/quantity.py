"""Quantities: all results as one tidy table, a row for each figure of each run.

Tables, CSV, headline, overview, comparison and plots are functions of these rows; none of them knows a procedure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import Literal, NamedTuple

from gatemark.harmless import csv_text
from gatemark.results.coordinates import LOAD, NAMES, Coordinate, Place, ordered
from gatemark.results.part import NOT_THE_GATEWAY, LimitedBy
from gatemark.results.unit import unit_named
from gatemark.stats.summary import Number, Summary

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class QuantityKind:
    """What a figure is, in whichever run it is measured."""

    name: str
    """Words of the RFC, such as "throughput" or "worst case latency"."""
    unit: str
    better: Better | None = None
    """Whether a higher or a lower value is better; None where neither is."""
    source: str = "none"
    """RFC sections that define it; where none does, "none", and what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One figure of one run, over its repetitions."""

    run: int
    procedure: str
    name: str
    unit: str
    better: Better | None
    coordinates: Place
    """Some of `COORDINATES`, and anything else that the campaign varies."""
    load_share: str | None = None
    """Its load as a share of the line or of what was measured before, such as "50% of the throughput"; None where the
    campaign file says it in frames/s."""
    values: tuple[Number | None, ...] = ()
    """One for each valid repetition; None where it could not be measured. Empty where the figure has none."""
    repetitions: int = 0
    """Number of valid repetitions behind it."""
    median: Number | None = None
    """The figure where the RFC asks for the median (RFC 8219 section 12); None if nothing was measured."""
    p1: Number | None = None
    p99: Number | None = None
    dispersion_percent: float | None = None
    average: Number | None = None
    """The figure where the RFC asks for the mean (RFC 2544 section 26.5, RFC 9004 section 6.3)."""
    lower_bound: int | None = None
    """Highest load that passed in every repetition."""
    upper_bound: int | None = None
    """Largest of the lowest loads that failed in a repetition."""
    resolution: int | None = None
    """Distance of the bounds at which a search ended, in `unit` and rounded up, the largest over the repetitions: the
    true figure may be better by up to this much. None without a search."""
    limited_by: LimitedBy | None = "gateway"
    """None: it was read at the gateway's host, at a load that passed. It is not a bound, whatever limited the run."""
    tester_limited_at: int | None = None
    refused: str | None = None
    """Why nothing was measured, as a sentence."""
    is_certain: bool = True
    """False if the repetitions differ too much: then it is shown in parentheses and never compared."""
    is_headline: bool = False
    """Whether it is the purpose of the run: shown large, compared and plotted."""

    @property
    def asked(self) -> Place:
        """What it was asked to be measured with: its coordinates, with the share in place of a load that follows."""
        return self.coordinates if self.load_share is None else {**self.coordinates, LOAD: self.load_share}

    @property
    def value(self) -> Number | None:
        """The figure: median or average, whichever the RFC asks for."""
        return self.median if self.average is None else self.average

    @property
    def is_measured(self) -> bool:
        """Whether it is a figure of the gateway that may be compared."""
        return self.value is not None and self.limited_by not in NOT_THE_GATEWAY and self.is_certain

    @property
    def comparable(self) -> Number | None:
        """The figure if it is the gateway's own, and not only a bound of it."""
        return self.value if self.is_measured and self.limited_by in ("gateway", None) else None

    @property
    def sum_of_directions(self) -> Number | None:
        """A rate of both directions together; None unless it is one of frames that both carried."""
        both = unit_named(self.unit).is_one_way and self.coordinates.get("direction") == "bidirectional"
        return 2 * self.median if both and self.median is not None else None

    @property
    def passed_at_least(self) -> int | None:
        """The load that passed in every repetition, where something other than the gateway ended the search."""
        told = self.limited_by in NOT_THE_GATEWAY and self.refused is None and self.is_certain
        return self.lower_bound if told else None


def true_range(value: Fraction, resolution: int | None, better: Better | None) -> tuple[Fraction, Fraction]:
    """Return where a figure lies that a search found to be `value`: up to the resolution on the better side of it.

    What a search finds is never below 0.
    """
    error = resolution or 0
    return (min(value, max(Fraction(0), value - error)), value) if better == "lower" else (value, value + error)


def summarised(summary: Summary | None) -> dict[str, Number | None]:
    """Return the fields of a quantity that come from a summary; none if there is no summary."""
    if summary is None:
        return {}
    return {
        "median": summary.median,
        "p1": summary.p1,
        "p99": summary.p99,
        "dispersion_percent": summary.dispersion_percent,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A quantity with its campaign."""

    campaign: str
    gateway: str
    quantity: Quantity
    coordinates: Place = field(default_factory=dict)
    """What distinguishes this campaign from others of a series, such as the number of cores of its gateway."""

    @property
    def place(self) -> dict[str, Coordinate]:
        """All coordinates: the campaign's and the quantity's."""
        return {**self.coordinates, **self.quantity.coordinates}


def varying(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the coordinates in which rows differ, in the order of the list, others last."""
    names = ordered(name for row in rows for name in row.place)
    return tuple(name for name in names if len({row.place.get(name) for row in rows}) > 1)


class CsvColumn(NamedTuple):
    """A column of `result.csv`. A cell is empty where nothing was measured, or where the column says nothing."""

    cell: Callable[[Row], object]
    unit: str
    meaning: str


def _coordinate(name: str) -> Callable[[Row], object]:
    return lambda row: row.place.get(name)


def _values(row: Row) -> str:
    return " ".join("-" if value is None else str(value) for value in row.quantity.values)


def _figure(name: str, unit: str, meaning: str) -> CsvColumn:
    return CsvColumn(attrgetter(f"quantity.{name}"), unit, meaning)


COLUMNS: Mapping[str, CsvColumn] = {
    "campaign": CsvColumn(attrgetter("campaign"), "", "name of the campaign"),
    "gateway": CsvColumn(attrgetter("gateway"), "", "name of the gateway"),
    "run": _figure("run", "", "number of the run, from 1"),
    "procedure": _figure("procedure", "", "as in `result.json`"),
    "quantity": _figure("name", "", "name of the figure, see the next table"),
    "unit": _figure("unit", "", "unit of all figures in the row"),
    "better": _figure("better", "", "`higher` or `lower`: whether more or less of it is better"),
    **{known.name: CsvColumn(_coordinate(known.name), known.unit, known.meaning) for known in NAMES if known.always},
    "repetitions": _figure("repetitions", "", "valid repetitions that the figure is made of"),
    "median": _figure("median", "as `unit`", "median of the repetitions (RFC 8219 section 12)"),
    "p1": _figure("p1", "as `unit`", "1st percentile of the repetitions (RFC 8219 section 12)"),
    "p99": _figure("p99", "as `unit`", "99th percentile of the repetitions (RFC 8219 section 12)"),
    "average": _figure(
        "average",
        "as `unit`",
        "mean of the repetitions, where the RFC asks for it: then it is the figure, and `median` is empty",
    ),
    "lower_bound": _figure("lower_bound", "as `unit`", "highest that passed in every repetition"),
    "upper_bound": _figure("upper_bound", "as `unit`", "largest of the lowest that failed in a repetition"),
    "resolution": _figure(
        "resolution",
        "as `unit`",
        "distance of the bounds at which a search ended, the largest of the repetitions: the true figure may be better"
        " by up to this much",
    ),
    "limited_by": _figure(
        "limited_by",
        "",
        "`gateway`, `tester`, `host` or `maximum`; a row with `tester` or `host` is not a figure of the gateway. Empty"
        " for readings from the gateway's host, which are not bounds, whatever limited the run",
    ),
    "tester_limited_at": _figure(
        "tester_limited_at", "frames/s, connections/s", "lowest load that the Tester could not offer"
    ),
    "refused": _figure("refused", "", "why the procedure could not be run, as a sentence; the row then has no figure"),
    "values": CsvColumn(
        _values, "as `unit`", "values of the repetitions, separated by spaces; `-` where one could not be measured"
    ),
}
"""Columns of `result.csv`, by their headings. Coordinates of other names follow where some row has them."""


def to_csv(rows: Iterable[Row]) -> str:
    """Return `result.csv`: a heading line, then one line for each quantity."""
    table = list(rows)
    others = dict.fromkeys(name for row in table for name in row.place if name not in COLUMNS)
    columns = {
        **{name: column.cell for name, column in COLUMNS.items()},
        **{name: _coordinate(name) for name in others},
    }
    return csv_text([[*columns], *([cell(row) for cell in columns.values()] for row in table)])
