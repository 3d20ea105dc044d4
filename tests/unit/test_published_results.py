"""The tables of published measurements come out again from runs with their medians (RFC 9693 section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from tests.unit.published_runs import (
    PUBLISHED,
    capacity_document,
    column_document,
    delay_document,
    rate_documents,
    tear_down_document,
)
from tests.unit.stateful_documents import (
    MILLION,
    Words,
    capacity_run,
    cells,
    document,
    page_of,
    rate_run,
    run,
    sentence,
    tear_down_run,
    terminal_of,
)

from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.procedures.delay.result import DelayResult, DelaySeries
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.report import words
from gatemark.report.comparison import scale_up_tables, share_table
from gatemark.report.headline import headlines
from gatemark.report.table import Table
from gatemark.results.document import ResultDocument
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
from gatemark.stats.summary import Summary
from gatemark.stored import sections_of

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

Vector = dict[str, Any]


def tables(kind: str, key: str | None = None, over: str | None = None) -> pytest.MarkDecorator:
    """All published tables of a kind, or those that have a column `key`, or whose columns differ in `over`."""
    result = [
        pytest.param(table, id=table["source"])
        for table in PUBLISHED[kind]
        if (key is None or key in table) and (over is None or table["over"] == over)
    ]
    assert result
    return pytest.mark.parametrize("table", result)


def number(text: str) -> float:
    """A figure of the report as a number: unit, thousands separators and parentheses left out."""
    return float(text.strip("()").split(" ")[0].replace(",", ""))


def last_digit(printed: str) -> float:
    """Value of the last digit of a figure."""
    return float(10.0 ** -len(printed.partition(".")[2]))


def check_derived(shown: Sequence[str], printed: Sequence[str], slack: Sequence[float], digits: float = 0.51) -> None:
    """Compare figures of the report with printed ones: `digits` of the last printed one, and what `slack` allows."""
    assert len(shown) == len(printed) == len(slack)
    for text, expected, more in zip(shown, printed, slack, strict=True):
        tolerance = digits * last_digit(expected) + more
        if "." in text:  # what the report itself rounds off
            tolerance += 0.5 * last_digit(text.split(" ")[0].strip("()"))
        assert abs(number(text) - number(expected)) <= tolerance, (text, expected)


def found_in(run: RunResult, unit: str) -> Summary:
    """The summary whose figures the paper prints."""
    assert isinstance(run, RateResult)
    both = run.rate_sum_of_directions if unit == "sum" and isinstance(run, ThroughputResult) else None
    summary = both or run.rate
    assert summary is not None
    return summary


def runs_of(documents: Sequence[ResultDocument]) -> list[RunResult]:
    return [run for whole in documents for run in whole.runs]


def table_of(whole: ResultDocument) -> Table:
    """The only table of the only procedure of a campaign."""
    ((table,),) = (section.tables for section in sections_of(whole))
    return table


def lines(cell: str) -> tuple[str, str, str]:
    """A cell of a median and its spread, as three figures."""
    median, spread = cell.split("\n")
    low, high = spread.split(f" {words.DASH} ")
    return median, low, high


def input_error(table: Vector) -> list[float]:
    """By how much the last printed digit of each median may change it, as a ratio."""
    digits = table.get("digit", [1] * len(table["columns"]))
    exact = "digit" not in table
    return [0 if exact else digit / 2 / median for digit, median in zip(digits, table["median"], strict=True)]


@tables("rates")
def test_median_and_percentiles_are_the_published_ones(table: Vector) -> None:
    documents = rate_documents(table)
    result = [found_in(run, table["unit"]) for run in runs_of(documents)]
    assert [figure.median for figure in result] == table["median"]
    assert [figure.p1 for figure in result] == table["minimum"]
    assert [figure.p99 for figure in result] == table["maximum"]


@pytest.mark.parametrize(
    "source", ["NAT64, Table 4", "NAT64, Table 7", "unbiased, Table IX", "unbiased, Table XI", "Maptperf, Table 4"]
)
def test_the_page_shows_median_spread_and_dispersion(source: str) -> None:
    documents = rate_documents(next(table for table in PUBLISHED["rates"] if table["source"] == source))
    text = Words(page_of(*documents)).text
    for figure in (found_in(measured_run, "direction") for measured_run in runs_of(documents)):
        for shown in (figure.median, figure.p1, figure.p99):
            assert words.format_count(shown) in text
        assert words.format_percent(figure.dispersion_percent) in text


@tables("rates", "step", over="cores")
def test_ratios_over_cores(table: Vector) -> None:
    (result,) = scale_up_tables(rate_documents(table))
    assert [column.heading for column in result.columns] == ["cores", *(str(cores) for cores in table["columns"])]
    (row,) = result.rows
    assert [cell.split("\n")[2] for cell in row[1:]] == [words.DASH, *table["step"]]


@tables("rates", "step", over="connections")
def test_ratios_over_connections(table: Vector) -> None:
    (result,) = rate_documents(table)
    assert cells(result, "Median / previous median") == (words.DASH, *table["step"])


@tables("rates", "scale_up")
def test_relative_scale_up(table: Vector) -> None:
    documents = rate_documents(table)
    (result,) = scale_up_tables(documents)
    first, *shown = [cell.split("\n")[1] for cell in result.rows[0][1:]]
    assert first == "1.000"
    error = input_error(table)
    slack = [float(text) * (own_error + error[0]) for text, own_error in zip(table["scale_up"], error[1:], strict=True)]
    check_derived(shown, table["scale_up"], slack)
    for text in (Words(page_of(*documents)).text, terminal_of(*documents)):
        assert all(cell in text for cell in shown)


@tables("rates", "dispersion")
def test_dispersion(table: Vector) -> None:
    documents = rate_documents(table)
    result = [found_in(run, table["unit"]).dispersion_percent for run in runs_of(documents)]
    shown = [words.format_percent(percent) for percent in result]
    slack = [100 / median for median in table["median"]]  # minimum and maximum are rounded to whole frames/s
    check_derived(shown, table["dispersion"], slack, digits=1.1)


@tables("rates", "relative")
def test_share_of_the_first_column(table: Vector) -> None:
    documents = rate_documents(table)
    rows = share_table(documents).rows
    assert [(campaign, reference) for campaign, *_, reference in rows] == [
        (str(column), str(table["columns"][0])) for column in table["columns"][1:]
    ]
    shown = [row[4] for row in rows]
    check_derived(shown, table["relative"], [0] * len(shown))
    for text in (Words(page_of(*documents)).text, terminal_of(*documents)):
        assert all(cell in text for cell in shown)


@tables("shares")
def test_share_of_plain_forwarding_by_as_many_cores(table: Vector) -> None:
    by_source = {rate["source"]: rate for rate in PUBLISHED["rates"]}
    routers, gateways = (rate_documents(by_source[table[name]]) for name in ("of", "what"))
    rows = [row for row in share_table([*gateways, *routers]).rows if row[0].isdecimal()]
    assert len(rows) == len(gateways)
    slack = [
        float(printed) * (share + other)
        for printed, share, other in zip(
            table["printed"], input_error(by_source[table["what"]]), input_error(by_source[table["of"]]), strict=True
        )
    ]
    check_derived([row[4] for row in rows], table["printed"], slack)


@tables("rates", "load")
def test_connections_for_each_place_of_the_hash_table(table: Vector) -> None:
    shown: list[str] = []
    for place, column in enumerate(table["columns"]):
        result = column_document(table, place)
        shown += cells(result, "Connections per hash size")
        if "destination_ports" in table:
            destinations = table["destination_ports"][place]
            assert cells(result, "Destination ports from 1") == (f"{destinations:,}",)
            assert cells(result, "Source ports from 1") == (f"{column // destinations:,}",)
    check_derived(shown, table["load"], [0] * len(shown))


@tables("rates", "drawn_frames")
def test_connections_of_random_ports(table: Vector) -> None:
    documents = rate_documents(table)
    for whole, frames, (low, median, high) in zip(documents, table["drawn_frames"], table["established"], strict=True):
        (row,) = table_of(whole).rows
        counts = f"{median:,}\n{low:,} {words.DASH} {high:,}"
        assert (row[0], row[1]) == ("4,000,000", f"{frames:,}")
        assert row[6:8] == (counts, counts)


@tables("tear_downs")
def test_tear_down(table: Vector) -> None:
    answer = tear_down_document(table)
    shown_net, rates = zip(*((row[3], row[4]) for row in table_of(answer).rows), strict=True)
    net_ns = [result.net_ns for result in answer.runs if isinstance(result, TearDownResult)]
    assert len(net_ns) == len(rates) == len(table["columns"])
    for net, shown, printed in zip(net_ns, shown_net, table["net_s"], strict=True):
        assert net is not None
        assert shown == words.format_long_time(net)
        assert not printed or abs(net / 10**9 - float(printed)) <= 0.501 * last_digit(printed)
    for rate, printed in zip(rates, table["rate"], strict=True):
        assert abs(number(rate) - number(printed)) <= 0.51 * table.get("rate_digit", 1)
        assert rate.startswith("(") or not printed.startswith("(")
    for text in (Words(page_of(answer)).text, terminal_of(answer)):
        assert all(rate in text for rate in rates)
    doubted = any(rate.startswith("(") for rate in rates)
    assert ("In parentheses: uncertain" in terminal_of(answer).replace("\n", " ")) == doubted


@tables("capacities")
def test_capacity(table: Vector) -> None:
    result = table_of(capacity_document(table))
    assert len(result.rows) == table["repetitions"] + 3
    columns = [
        tuple(number(text) for text in (c0, r0, cs, rs, ct, c))
        for _, c0, r0, cs, rs, ct, _, c, _ in result.rows[-3:]
    ]  # fmt: skip
    expected = [
        (table["c0"], table["r0"][i], table["cs"], table["rs"][i], table["ct"], table["c"][i]) for i in range(3)
    ]
    assert columns == [expected[1], expected[0], expected[2]]


def delay_figures(series: DelaySeries) -> dict[str, Summary | None]:
    figures: dict[str, Summary | None] = {}
    if series.latency is not None:
        figures |= {"typical_ns": series.latency.typical_ns.summary}
        figures |= {"worst_case_ns": series.latency.worst_case_ns.summary}
    if series.pdv is not None:
        figures |= {"pdv_ns": series.pdv.pdv_ns.summary}
    return figures


@tables("delays")
def test_delays(table: Vector) -> None:
    found_document = delay_document(table)
    (result,) = found_document.runs
    assert isinstance(result, DelayResult)
    (point,) = result.points
    text = Words(page_of(found_document)).text
    assert point.frames_per_second == table["load"]
    for series in point.series:
        figures = delay_figures(series)
        assert set(figures) == set(table[series.direction])
        for name, (minimum, median, maximum) in table[series.direction].items():
            answer = figures[name]
            assert answer is not None
            assert (answer.p1, answer.median, answer.p99) == (minimum, median, maximum)
            printed = table.get("dispersion", {}).get(series.direction, {}).get(name)
            if printed is not None:  # minimum and maximum are rounded, median as well
                slack = 100 * table["digit"] / median * (1 + (maximum - minimum) / median / 2)
                check_derived([words.format_percent(answer.dispersion_percent)], [printed], [slack], digits=1.1)
            assert words.format_percent(answer.dispersion_percent) in text
            assert words.format_in(answer.median, 1000) in text


def test_times_are_written_as_the_papers_write_them() -> None:
    published = document([tear_down_run(4 * MILLION, (1350, 1365, 1390), (290, 300, 310))])
    ((count, full, empty, net, rate, repetitions),) = table_of(published).rows
    assert (count, repetitions) == ("4,000,000", "3")
    assert lines(full) == ("1.37 s", "1.35 s", "1.39 s")
    assert lines(empty) == ("300 ms", "290 ms", "310 ms")
    assert (net, rate) == ("1.07 s", "3,755,869")
    assert words.format_long_time(-2_000_000) == "\u22122 ms"
    assert words.format_long_time(1_178_350_000_000) == "1,178.35 s"


def test_a_difference_that_is_none_has_no_rate() -> None:
    published = document([tear_down_run(1000, (1, 2, 3), (1, 2, 3))])
    assert table_of(published).rows[0][4] == "no difference"
    assert "not deleted more slowly" in sentence(published)


def test_the_capacity_table_has_the_columns_of_the_rfc() -> None:
    published = document([capacity_run((4_194_300, 4_194_301, 4_194_302))])
    table = table_of(published)
    assert table.title == "alpha 1, beta 0.2, gamma 0.4, E 1 connections, e 100,000 connections/s"
    row = ("1", "1,000,000", "2,437,500", "4,000,000", "2,250,945", "8,000,000", "\u2013", "4,194,300")
    assert table.rows[0][:-1] == row
    assert table.rows[0][-1] == "new connections were refused"
    median, least, most = table.rows[3:]
    assert (median[0], median[2], median[7]) == ("median", "2,562,500", "4,194,301")
    assert (least[2], most[2]) == ("2,437,500", "2,687,500")
    assert (least[7], most[7]) == ("4,194,300", "4,194,302")
    (large,) = headlines(published)
    assert (large.figure, large.unit) == ("4,194,301", "connections")
    assert "capacity: 4,194,301 connections, median of 3 repetitions" in sentence(published)
    assert "Beyond it new connections were refused (3 of 3 searches)." in sentence(published)
    assert "4,194,301" in terminal_of(published)
    assert "new connections were refused" in Words(page_of(published)).text


def test_eviction_is_told_with_the_connections_that_were_lost() -> None:
    published = document([capacity_run((1000, 1000), "evicted", lost="oldest")])
    said = sentence(published)
    assert "new connections were accepted and established ones lost (2 of 2 searches)" in said
    assert "In the validation the oldest connections were lost (2 of 2 searches)." in said
    assert "the oldest connections were lost" in table_of(published).rows[0][-1]


def test_a_capacity_that_is_only_a_lower_bound_is_told_so() -> None:
    least = document([capacity_run((8 * MILLION,), None, limited_by="maximum")])
    assert "capacity: at least 8,000,000 connections" in sentence(least)
    spoilt = document([capacity_run((1000, 2000), limited_by="tester")])
    assert [large.figure for large in headlines(spoilt)] == ["Tester-limited"]
    assert "not measured: Tester-limited (gateway ≥ 1,000)" in sentence(spoilt)


def test_a_scale_up_needs_one_gateway_with_different_numbers_of_cores() -> None:
    def tables_of(*documents: ResultDocument) -> int:
        return len(list(scale_up_tables(documents)))

    single, four = (document([run("throughput", (number,))], cores=number) for number in (1, 4))
    assert tables_of(single, four) == 1
    assert tables_of(single) == 0
    assert tables_of(single, single, four) == 0
    assert tables_of(four, document([run("throughput", (1,))], cores=2)) == 0
    assert tables_of(single, document([run("throughput", (1,))], cores=4, name="another")) == 0
    assert tables_of(*[document([run("throughput", (1,))])] * 2) == 0


def named(name: str, *runs: RunResult, **of_gateway: Any) -> ResultDocument:
    return document(runs, **of_gateway).model_copy(update={"name": name})


def shares(*documents: ResultDocument) -> list[tuple[str, str, str]]:
    """Campaign, share and reference of each row."""
    return [(row[0], row[4], row[5]) for row in share_table(documents).rows]


def test_only_equal_measurements_that_the_gateway_limited_are_compared() -> None:
    first = named("first", run("throughput", (1000,)))
    assert shares(first, named("second", run("throughput", (500,)))) == [("second", "50.00 %", "first")]
    goal = rate_run("throughput", (500,)).goal
    tolerant = goal.model_copy(update={"loss_tolerance": Fraction(1, 10_000)})
    more_tolerant = goal.model_copy(update={"loss_tolerance": Fraction(1, 100)})
    timed = goal.model_copy(update={"frame_timeout_ns": 10**8})
    for other in (
        run("throughput", (500,), changes={"goal": tolerant}),
        run("throughput", (500,), changes={"goal": timed}),
        run("throughput", (500,), changes={"limited_by": "tester"}),
        run("throughput", (500,), changes={"limited_by": "maximum"}),
        run("throughput", (500,), count=5),
        run("throughput", (500,), direction="reverse"),
        run("connection_establishment_rate", (500,)),
    ):
        assert shares(first, named("second", other)) == []
    assert shares(first, named("second", run("throughput", (500,)), cores=2)) == []
    assert shares(first, named("second", run("throughput", (500,)), technology="nat44")) == []
    lossy, lossier = (
        named(name, run("throughput", (500,), changes={"goal": goal}))
        for name, goal in (("lossy", tolerant), ("lossier", more_tolerant))
    )
    assert shares(lossy, lossier) == []
    assert shares(lossy, lossy.model_copy(update={"name": "again"})) == [("again", "100.00 %", "lossy")]


def test_a_router_is_the_reference_of_a_translator_wherever_it_stands() -> None:
    router = named("router", run("throughput", (2000,), count=None), technology="router44")
    gateways = [named("one", run("throughput", (1000,))), named("two", run("throughput", (500,)))]
    assert shares(*gateways, router) == [("one", "50.00 %", "router"), ("two", "25.00 %", "router")]
