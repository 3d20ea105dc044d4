"""Several campaigns side by side: plots and tables of the tidy quantities, scale-up over cores, shares. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from gatemark.report.figure_tables import headline_rows, rate_tables, time_tables
from gatemark.report.plots import overview_plot, plot_against
from gatemark.report.table import Column, Plot, Section, Table, plot, table_of
from gatemark.report.words import (
    DASH,
    FROM_P1_TO_P99,
    HOLLOW_BAR,
    SCALE_UP,
    capital,
    format_count,
    format_percent,
)
from gatemark.results.coordinates import (
    CONNECTIONS,
    COORDINATES,
    LOAD,
    place_words,
    telling,
)
from gatemark.results.document import ResultDocument
from gatemark.results.quantity import Quantity, Row
from gatemark.results.unit import unit_named
from gatemark.stats.series import relative_scale_ups
from gatemark.technology import TECHNOLOGIES

SHARE_NOTE = (
    "A share is the median divided by the median of another campaign with the same traffic: of plain forwarding by as"
    " many cores if that was measured, else of the first campaign of the same technology."
)
SCALE_UP_NOTE = f"{capital(SCALE_UP)}; below it is the ratio to the median of the column before."

WHAT = tuple(name for name in COORDINATES if name != LOAD)
"""Coordinates that must be equal for two figures to be the same measurement."""


_Medians = dict[int, Fraction]
"""Rates by cores."""
_OverCores = tuple[tuple[str, ...], _Medians]
"""What was measured, and with how many cores."""
_Rates = tuple[ResultDocument, Sequence[Row]]
"""A campaign with its rates that the gateway limits."""


def comparison_plots(documents: Sequence[ResultDocument]) -> Iterator[Plot]:
    """Yield a plot for each quantity that several campaigns have; over cores where they differ in these."""
    for (name, unit), figures in headline_rows(documents).items():
        rows = [figure.row for figure in figures]
        if unit in ("", "%") or len({row.campaign for row in rows}) < 2:
            continue
        title = capital(name)
        caption = (
            f"{title}: median of the repetitions, whiskers {FROM_P1_TO_P99}. {HOLLOW_BAR}: what passed in every"
            " repetition."
        )
        yield from plot(overview_plot(rows, name=f"{name} compared"), caption)
        over_cores = plot_against(rows, "cores", name=f"{name} against cores")
        yield from plot(over_cores, f"{title} against the cores of the gateway.")


def comparison_section(documents: Sequence[ResultDocument]) -> Section | None:
    """Return the tables of several campaigns; None for a single one."""
    if len(documents) < 2:
        return None
    tables = (*rate_tables(documents), *time_tables(documents), *scale_up_tables(documents), share_table(documents))
    return Section(title="All gateways", tables=(*tables, *_gateways(documents)))


def _gateways(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    """Yield a table of the gateways; the tables above it name the campaigns alone."""
    named = {(document.name, document.gateway.name): document for document in documents}
    if any(campaign != gateway for campaign, gateway in named):
        yield table_of("Gateways", GATEWAYS, named.values())


GATEWAYS: tuple[Column[ResultDocument], ...] = (
    Column("campaign", lambda document: document.name, numeric=False),
    Column("gateway", lambda document: document.gateway.name, numeric=False),
)


def scale_up_tables(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    """Yield a table for each gateway that was measured with one core and with more.

    A gateway that has two campaigns with the same number of cores is left out: nothing says which of them counts.
    """
    groups: dict[tuple[str, str], list[ResultDocument]] = {}
    for document in documents:
        if document.gateway.cores is not None:
            groups.setdefault((document.gateway.name, document.gateway.technology), []).append(document)
    for (gateway, _), members in groups.items():
        by_cores = {member.gateway.cores or 0: member for member in members}
        if 1 not in by_cores or not len(by_cores) == len(members) > 1:
            continue
        counts = sorted(by_cores)
        medians: dict[tuple[str, ...], _Medians] = {}
        for count in counts:
            for row in by_cores[count].rows():
                if _is_rate(row.quantity):
                    medians.setdefault(_what(row), {})[count] = Fraction(row.quantity.comparable or 0)
        rows = [(what, of_cores) for what, of_cores in medians.items() if 1 in of_cores and len(of_cores) > 1]
        columns = (CORES, *(_scale_up(count, before) for before, count in zip([0, *counts], counts, strict=False)))
        if rows:
            yield table_of(f"{gateway} over its cores", columns, rows, notes=(SCALE_UP_NOTE,))


CORES: Column[_OverCores] = Column("cores", lambda row: ", ".join(row[0]), numeric=False)


def _scale_up(count: int, before: int) -> Column[_OverCores]:
    """Return the column of a number of cores: median, relative scale-up, ratio to the column before."""

    def cell(row: _OverCores) -> str:
        rates = row[1]
        if count not in rates:
            return DASH
        ratio = f"{float(rates[count] / rates[before]):.2f}" if before in rates else DASH
        return f"{format_count(float(rates[count]))}\n{float(relative_scale_ups(rates)[count]):.3f}\n{ratio}"

    return Column(str(count), cell)


class Share(NamedTuple):
    """A rate, and the one that it is a part of."""

    row: Row
    reference: Row

    @property
    def measured(self) -> str:
        """What was measured, and with what."""
        return ", ".join((*_what(self.row), self.row.quantity.unit))

    @property
    def percent(self) -> Fraction:
        """The median as a part of that of the reference."""
        return 100 * Fraction(self.row.quantity.comparable or 0) / Fraction(self.reference.quantity.comparable or 1)


SHARES: tuple[Column[Share], ...] = (
    Column("campaign", lambda share: share.row.campaign, names=True, numeric=False),
    Column("measured", lambda share: share.measured, names=True, numeric=False),
    Column("median", lambda share: format_count(share.row.quantity.median), strong=True),
    Column("dispersion", lambda share: format_percent(share.row.quantity.dispersion_percent)),
    Column("share", lambda share: f"{float(share.percent):.2f} %"),
    Column("of campaign", lambda share: share.reference.campaign, numeric=False),
)


def share_table(documents: Sequence[ResultDocument]) -> Table:
    """Return a row for each rate that another campaign measured with the same traffic.

    The reference of a translator or NAT is a router with the same number of cores, if one was measured: the share shows
    the cost of translation. Otherwise it is the first campaign of the same technology with the same number of cores.
    Rates that the gateway did not limit have no share.
    """
    rates = [(document, [row for row in document.rows() if _is_rate(row.quantity)]) for document in documents]
    shares = (
        Share(row, reference)
        for document, rows in rates
        for row in rows
        if (reference := _reference(rates, document, row)) is not None
    )
    return table_of("Campaigns compared", SHARES, shares, notes=(SHARE_NOTE,))


def _reference(rates: Sequence[_Rates], document: ResultDocument, row: Row) -> Row | None:
    """Return the figure that a rate is compared with; None if there is no other."""
    equal = [entry for entry in rates if entry[0].gateway.cores == document.gateway.cores]
    routers = [] if _is_router(document) else [entry for entry in equal if _is_router(entry[0])]
    same = [entry for entry in equal if entry[0].gateway.technology == document.gateway.technology]
    for other, candidates in (*routers, *same):
        for candidate in candidates:
            if _key(candidate) == _key(row) and _connections_match(candidate, row):
                return None if other is document else candidate
    return None


def _is_router(document: ResultDocument) -> bool:
    return TECHNOLOGIES[document.gateway.technology].is_plain_forwarding


def _is_rate(quantity: Quantity) -> bool:
    """Whether a figure is a rate that the gateway limits."""
    return quantity.is_headline and unit_named(quantity.unit).is_rate and bool(quantity.comparable)


def _connections_match(reference: Row, row: Row) -> bool:
    """Whether the numbers of connections are equal; a router has none."""
    return reference.place.get(CONNECTIONS) in (None, row.place.get(CONNECTIONS))


def _key(row: Row) -> tuple[object, ...]:
    """What must be equal for two figures to be the same measurement; connections are compared separately."""
    return (row.quantity.name, *(row.place.get(name) for name in WHAT if name != CONNECTIONS))


def _what(row: Row) -> tuple[str, ...]:
    is_one_way = unit_named(row.quantity.unit).is_one_way
    names = [name for name in telling(row.place) if name != "direction" or is_one_way]
    return (row.quantity.name, *place_words(row.place, [name for name in names if name in WHAT]))
