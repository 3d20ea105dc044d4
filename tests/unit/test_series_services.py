"""Services side by side: which column is which gateway of which service, and what a customer costs in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.unit.test_series_join import column, figure, series

from gatemark.report.table import Table
from gatemark.report.words import DASH
from gatemark.results.document import ResultDocument
from gatemark.results.run import RunResult
from gatemark.results.telemetry import HostLevel
from gatemark.series.document import Parameters, SeriesDocument
from gatemark.series.memory import subscriber_estimates
from gatemark.series.services import services_plots, services_section
from gatemark.technology import TECHNOLOGIES

SERVICES = [row.service for row in TECHNOLOGIES.values() if row.service is not None]
MAP_E, LW4O6 = (next(row for row in TECHNOLOGIES.values() if row.service == name) for name in ("MAP-E", "lw4o6"))
FEW, MANY = {"edges": 1}, {"edges": 10_000}


def compared(*columns: tuple[str, Mapping[str, Any], float | None]) -> SeriesDocument:
    """A series of columns with a technology, further parameters, and their throughput; None: the gateway collapsed."""
    quantities = [[] if rate is None else [figure(rate, p1=rate - 5, p99=rate + 5)] for _, _, rate in columns]
    document = series(*quantities)
    parts = (
        column(number, technology=technology, gateway=f"my {technology}", **more).model_copy(
            update={"outcome": "collapsed" if rate is None else "measured"}
        )
        for number, (technology, more, rate) in enumerate(columns, start=1)
    )
    return document.model_copy(update={"columns": tuple(parts)})


def gateways(*services: Any) -> list[tuple[str, Mapping[str, Any], float | None]]:
    return [
        part
        for number, service in enumerate(services, start=1)
        for part in (
            (service.in_a_row[0], {}, 100.0 * number),
            (service.in_a_row[1], FEW, 200.0 * number),
            (service.in_a_row[1], MANY, 150.0 * number),
            (service.name, {}, 90.0 * number),
        )
    ]


def tables(document: SeriesDocument) -> dict[str, Table]:
    whole = services_section(document)
    assert whole is not None
    return {table.title.partition(",")[0]: table for table in whole.tables}


def test_each_service_is_a_line_with_its_gateways_and_numbers_of_customers() -> None:
    table = tables(compared(*gateways(MAP_E, LW4O6)))["Throughput"]
    assert [column.heading for column in table.columns] == [
        "service",
        "customer's gateway",
        "provider's gateway,\n1 customer",
        "provider's gateway,\n10,000 customers",
        "both in a row",
    ]
    assert table.rows == (
        ("MAP-E", "100\n(95 to 105)", "200\n(195 to 205)", "150\n(145 to 155)", "90\n(85 to 95)"),
        ("lw4o6", "200\n(195 to 205)", "400\n(395 to 405)", "300\n(295 to 305)", "180\n(175 to 185)"),
    )


def test_gateways_with_the_same_number_of_customers_are_one_column() -> None:
    columns = [part for part in gateways(MAP_E, LW4O6) if part[1] is not MANY]
    table = tables(compared(*columns))["Throughput"]
    assert [column.heading for column in table.columns][1:3] == ["customer's gateway", "provider's gateway"]
    assert [row[2].partition("\n")[0] for row in table.rows] == ["200", "400"]


def test_gateways_with_other_numbers_of_customers_do_not_stand_under_one_name() -> None:
    columns = [part for part in gateways(MAP_E, LW4O6) if part[1] is not MANY]
    columns[4] = "lwaftr", {"edges": 252}, 400.0
    table = tables(compared(*columns))["Throughput"]
    assert [column.heading for column in table.columns][2:4] == [
        "provider's gateway,\n1 customer",
        "provider's gateway,\n252 customers",
    ]
    assert [row[2:4] for row in table.rows] == [("200\n(195 to 205)", DASH), (DASH, "400\n(395 to 405)")]
    bars, _ = services_plots(compared(*columns))
    assert "252 customers" in bars.svg and "1 customer" in bars.svg


def test_a_gateway_that_has_no_figure_says_why_and_one_that_is_not_there_has_a_dash() -> None:
    customer, few, _, both, *others = gateways(MAP_E, LW4O6)
    collapsed = "lwaftr", MANY, None
    table = tables(compared(customer, few, both, *others[:2], collapsed, others[3]))["Throughput"]
    assert [column.heading for column in table.columns][2:] == ["provider's gateway,\n1 customer", "both in a row"]
    with_many = tables(compared(customer, few, gateways(MAP_E)[2], both, *others[:2], collapsed))["Throughput"]
    assert with_many.rows[1][1:] == ("200\n(195 to 205)", "400\n(395 to 405)", "gateway collapsed", DASH)


def test_plots_group_bars_by_service_and_draw_lines_over_customers() -> None:
    bars, lines = services_plots(compared(*gateways(MAP_E, LW4O6)))
    assert "hollow bar" in bars.caption and "against its customers" in lines.caption
    for words in ("MAP-E", "lw4o6", "customer", "both in a row"):
        assert words in bars.svg
    (alone,) = services_plots(compared(*(part for part in gateways(MAP_E, LW4O6) if part[1] is not MANY)))
    assert alone.caption == bars.caption


def test_a_series_that_compares_no_services_has_none() -> None:
    assert services_section(compared(("nat44", {}, 1.0), ("router44", {}, 2.0))) is None
    assert services_section(compared(*gateways(MAP_E))) is None, "one service is no comparison"
    twice = [*gateways(MAP_E, LW4O6), gateways(MAP_E)[0]]
    assert services_section(compared(*twice)) is None, "which of both gateways would be meant?"
    assert list(services_plots(compared(*twice))) == []


def test_what_needs_no_measurement_follows_from_the_technologies() -> None:
    services = [row for row in TECHNOLOGIES.values() if row.in_a_row is not None]
    assert len(SERVICES) == len(services) == 5
    table = tables(compared(*((service.name, {}, 1.0) for service in services)))["By design (RFC 9313)"]
    shown = {row[0]: (row[1], row[2].partition("\n")[0], row[4].partition("\n")[2], *row[5:]) for row in table.rows}
    each, fixed = "each connection", "a fixed set"
    assert shown == {
        "464XLAT": ("20", "12,019,230", "(98.72 %)", "none", each, "as connections come"),
        "DS-Lite": ("40", "10,080,645", "(97.47 %)", "none", each, "as connections come"),
        "lw4o6": ("40", "10,080,645", "(97.47 %)", each, "each customer", fixed),
        "MAP-E": ("40", "10,080,645", "(97.47 %)", each, "rules only", fixed),
        "MAP-T": ("20", "12,019,230", "(98.72 %)", each, "rules only", fixed),
    }


@pytest.mark.parametrize(
    ("technology", "parameters", "subscribers"),
    [
        ("map_e_br", {"edges": 7, "source_hosts": 7}, 7),
        ("lwaftr", {"edges": 9}, 9),
        ("aftr", {"b4s": 5, "source_hosts": 10}, 5),
        ("nat64", {"source_hosts": 3}, 3),
        ("map_e_ce", {"source_hosts": 3}, None),
        ("b4", {"source_hosts": 3}, None),
        ("ds_lite", {"source_hosts": 3}, None),
        ("router44", {"source_hosts": 3}, None),
    ],
)
def test_subscribers_are_edges_b4s_or_hosts_behind_a_nat(
    technology: str, parameters: dict[str, Any], subscribers: int | None
) -> None:
    assert column(1, technology=technology, **parameters).parameters.subscribers == subscribers
    assert "b4s" not in Parameters.model_validate(column(1).parameters.model_dump()).model_dump()


def result(*available: int | None) -> ResultDocument:
    levels = (
        HostLevel(phase="measured", series="memory_available", name="", unit="kB", values=available),
        HostLevel(phase="test phase 1", series="memory_available", name="", unit="kB", values=(1,)),
        HostLevel(phase="measured", series="busy", name="", unit="%", values=(1,)),
    )
    run: dict[str, Any] = {"telemetry": levels}
    whole: dict[str, Any] = {"runs": (RunResult.model_construct(**run),)}
    return ResultDocument.model_construct(**whole)


def estimates(*available: Sequence[int | None], **more: Any) -> Any:
    counts = (1, 100, 10_001)
    given = {"technology": "lwaftr", **more}
    columns = [column(n, (n - 1,), edges=counts[n - 1], **given) for n in range(1, len(available) + 1)]
    return subscriber_estimates(columns, {n: result(*values) for n, values in enumerate(available, start=1)})


def test_a_customer_costs_what_memory_differs_between_the_fewest_and_the_most() -> None:
    (known,) = estimates(
        [90_000, 90_010, None, 90_020, 90_030, 90_040], [1] * 4, [80_000, 80_010, 80_020, 80_030, 80_040]
    )
    assert [(each.column, each.subscribers, each.values) for each in known.columns] == [
        (1, 1, 5), (2, 100, 4), (3, 10_001, 5),
    ]  # fmt: skip
    assert (known.bytes, known.bytes_minimum, known.bytes_maximum) == (1024, 1019.904, 1028.096)
    assert known.words == "1024 bytes (1020 to 1028)" and known.reason is None


def test_memory_that_scatters_or_other_columns_give_no_estimate() -> None:
    (scatters,) = estimates([90_000, 90_001, 90_002, 90_003, 80_000], [80_000] * 5)
    assert scatters.bytes is None and "differs by less than it scatters" in str(scatters.reason)
    (few,) = estimates([90_000] * 4, [80_000] * 5)
    assert few.bytes is None and "have 5 samples of memory" in str(few.reason)
    assert estimates([90_000] * 5) == ()
    columns = [column(n, (n,), technology="lwaftr", edges=n, connections=(n,)) for n in (1, 2)]
    assert subscriber_estimates(columns, {1: result(1), 2: result(2)}) == (), "they differ in more than subscribers"
    columns = [column(n, (n, n), technology="lwaftr", edges=n) for n in (1, 2)]
    assert subscriber_estimates(columns, {1: result(1), 2: result(2)}) == (), (
        "in what another part of the series varies"
    )
