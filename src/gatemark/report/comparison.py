"""Several campaigns side by side: plots and tables of the tidy quantities, scale-up over cores, shares. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from gatemark.report.plots import overview_plot, plot_against
from gatemark.report.rates import rate_tables
from gatemark.report.table import REPETITIONS, Column, Plot, Section, Table, plot
from gatemark.report.words import (
    DASH,
    capital,
    format_count,
    format_in,
    format_percent,
    format_spread_in,
    unit_of_times,
)
from gatemark.results.coordinates import (
    CONNECTIONS,
    COORDINATES,
    LOAD,
    MIX,
    SIZES,
    dimension,
    is_mixed,
    place_words,
    telling,
)
from gatemark.results.document import ResultDocument, rows_of
from gatemark.results.quantity import Quantity, Row, varying
from gatemark.stats.series import ratios_to_previous, relative_scale_ups
from gatemark.technology import TECHNOLOGIES

SHARE_NOTE = (
    "A share is the median as a part of the median of another campaign with the same traffic: of plain forwarding by as"
    " many cores if that was measured, else of the first campaign of the same technology."
)
SCALE_UP_NOTE = (
    "Relative scale-up is X(n) / (n X(1)) with n cores, 1 being perfect; below it is the ratio to the median of the"
    " column before."
)

WHAT = tuple(name for name in COORDINATES if name != LOAD)
"""Coordinates that must be equal for two figures to be the same measurement."""


_Rates = tuple[ResultDocument, Sequence[Row]]
"""A campaign with its rates that the gateway limits."""


def headline_rows(documents: Sequence[ResultDocument]) -> dict[tuple[str, str], list[Row]]:
    """Return the headline quantities of the runs, by name and unit of the quantity."""
    tables: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of(documents):
        if row.quantity.is_headline and row.quantity.unit:
            tables.setdefault((row.quantity.name, row.quantity.unit), []).append(row)
    return tables


def comparison_plots(documents: Sequence[ResultDocument]) -> Iterator[Plot]:
    """Yield a plot for each quantity that several campaigns have; over cores where they differ in these."""
    for (name, unit), rows in headline_rows(documents).items():
        if unit == "%" or len({row.campaign for row in rows}) < 2:
            continue
        title = capital(name)
        caption = (
            f"{title}: median of the repetitions, whiskers from the 1st to the 99th percentile. A hollow bar is a lower"
            " bound: what passed in every repetition."
        )
        over_cores = plot_against(rows, "cores", name=f"{name} against cores")
        for drawn in (
            plot(overview_plot(rows, name=f"{name} compared"), caption),
            plot(over_cores, f"{title} against the cores of the gateway."),
        ):
            if drawn is not None:
                yield drawn


def comparison_section(documents: Sequence[ResultDocument]) -> Section | None:
    """Return the tables of several campaigns; None for a single one."""
    if len(documents) < 2:
        return None
    tables = (*rate_tables(documents), *_time_tables(documents), *scale_up_tables(documents), *_shares(documents))
    return Section(title="All gateways", tables=(*tables, *_gateways(documents)))


def _gateways(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    """Yield a table of the gateways; the tables above it name the campaigns alone."""
    rows = tuple(dict.fromkeys((document.name, document.gateway.name) for document in documents))
    if any(campaign != gateway for campaign, gateway in rows):
        columns = (Column(heading="campaign", numeric=False), Column(heading="gateway", numeric=False))
        yield Table(title="Gateways", columns=columns, rows=rows)


def _time_tables(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    """Yield a table of each delay or time that is a headline quantity."""
    for (name, unit), rows in headline_rows(documents).items():
        if unit != "ns":
            continue
        words, unit_ns = unit_of_times(row.quantity.p99 or row.quantity.value for row in rows)
        others = [name for name in varying(rows) if name not in COORDINATES]
        traffic = [name for name in (*_TRAFFIC, *others) if any(_traffic_cell(name, row) for row in rows)]
        columns = (
            Column(heading="campaign", numeric=False),
            *(Column(heading=dimension(name).heading, numeric=dimension(name).numeric) for name in traffic),
            Column(heading=words, strong=True),
            Column(heading=f"p1 {DASH} p99\ndispersion"),
            REPETITIONS,
            Column(heading="limited by", numeric=False),
        )
        cells = tuple(
            (
                row.campaign,
                *(_traffic_cell(name, row) or DASH for name in traffic),
                "not measured" if row.quantity.value is None else format_in(row.quantity.value, unit_ns),
                _spread_cell(row.quantity, unit_ns),
                str(row.quantity.repetitions),
                row.quantity.limited_by or "",
            )
            for row in rows
        )
        yield Table(title=f"{capital(name)}, {words}", columns=columns, rows=cells, names=1 + len(traffic))


_TRAFFIC = (CONNECTIONS, SIZES[0], "direction", "class", MIX[0], LOAD)
"""What a delay or time was measured with, in the order of the columns; empty columns are left out."""


def _traffic_cell(name: str, row: Row) -> str:
    if name in ("class", *MIX) and not is_mixed(row.place):
        return ""
    return dimension(name).words(row.place)


def _spread_cell(quantity: Quantity, unit_ns: int) -> str:
    spread = format_spread_in(quantity.p1, quantity.p99, unit_ns)
    return f"{spread}\n{format_percent(quantity.dispersion_percent)}" if spread else DASH


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
        medians: dict[tuple[str, ...], dict[int, Fraction]] = {}
        for count in counts:
            for row in by_cores[count].rows():
                if _is_rate(row.quantity):
                    medians.setdefault(_what(row), {})[count] = Fraction(row.quantity.median or 0)
        rows = tuple(
            (", ".join(what), *_scale_up_cells(rates, counts))
            for what, rates in medians.items()
            if 1 in rates and len(rates) > 1
        )
        if rows:
            columns = (Column(heading="cores", numeric=False), *(Column(heading=str(count)) for count in counts))
            yield Table(title=f"{gateway} over its cores", columns=columns, rows=rows, notes=(SCALE_UP_NOTE,))


def _scale_up_cells(rates: dict[int, Fraction], counts: Sequence[int]) -> Iterator[str]:
    relative = relative_scale_ups(rates)
    steps = ratios_to_previous([rates.get(count, Fraction(0)) for count in counts])
    for count, step in zip(counts, steps, strict=True):
        if count not in rates:
            yield DASH
            continue
        ratio = f"{float(step):.2f}" if step else DASH
        yield f"{format_count(float(rates[count]))}\n{float(relative[count]):.3f}\n{ratio}"


def _shares(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    rows = tuple(share_rows(documents))
    if rows:
        columns = (
            Column(heading="campaign", numeric=False),
            Column(heading="measured", numeric=False),
            Column(heading="median", strong=True),
            Column(heading="dispersion"),
            Column(heading="share"),
            Column(heading="of campaign", numeric=False),
        )
        yield Table(title="Campaigns compared", columns=columns, rows=rows, names=2, notes=(SHARE_NOTE,))


def share_rows(documents: Sequence[ResultDocument]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each rate that another campaign measured with the same traffic.

    The reference of a translator or NAT is a router with the same number of cores, if one was measured: the share shows
    the cost of translation. Otherwise it is the first campaign of the same technology with the same number of cores.
    Rates that the gateway did not limit have no share.
    """
    rates = [(document, [row for row in document.rows() if _is_rate(row.quantity)]) for document in documents]
    for document, rows in rates:
        for row in rows:
            reference = _reference(rates, document, row)
            if reference is None:
                continue
            share = 100 * Fraction(row.quantity.median or 0) / Fraction(reference.quantity.median or 1)
            yield (
                document.name,
                ", ".join((*_what(row), row.quantity.unit)),
                format_count(row.quantity.median),
                format_percent(row.quantity.dispersion_percent),
                f"{float(share):.2f} %",
                reference.campaign,
            )


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
    return (
        quantity.is_headline
        and quantity.unit.endswith("/s")
        and quantity.limited_by == "gateway"
        and quantity.is_certain
        and bool(quantity.median)
    )


def _connections_match(reference: Row, row: Row) -> bool:
    """Whether the numbers of connections are equal; a router has none."""
    return reference.place.get(CONNECTIONS) in (None, row.place.get(CONNECTIONS))


def _key(row: Row) -> tuple[object, ...]:
    """What must be equal for two figures to be the same measurement; connections are compared separately."""
    return (row.quantity.name, *(row.place.get(name) for name in WHAT if name != CONNECTIONS))


def _what(row: Row) -> tuple[str, ...]:
    names = [name for name in telling(row.place) if name != "direction" or row.quantity.unit == "frames/s"]
    return (row.quantity.name, *place_words(row.place, [name for name in names if name in WHAT]))
