"""The tables of published measurements come out again from runs with their medians (RFC 9693 section 6)."""

from __future__ import annotations

import pytest
from stateful_documents import (
    MILLION,
    Words,
    capacity_run,
    cells,
    document,
    page_of,
    run,
    series_of,
    tear_down_run,
    terminal_of,
)

from gatemark.report import stateful, statements, words
from gatemark.report.scale_up import scale_up_tables
from gatemark.results.schema import (
    GatewayTablePart,
)

PUBLISHED_RATIOS = {
    "Jool, establishment": ((625_976, 483_153, 356_445), ("0.77", "0.74")),
    "Jool, throughput": ((698_826, 497_654, 378_513), ("0.71", "0.76")),
    "PF, establishment": ((120_214, 85_039, 74_022), ("0.71", "0.87")),
    "PF, throughput": ((237_304, 198_828, 173_338), ("0.84", "0.87")),
}


@pytest.mark.parametrize("name", PUBLISHED_RATIOS)
def test_medians_of_a_series_give_the_published_ratios(name: str) -> None:
    rates, ratios = PUBLISHED_RATIOS[name]
    found = series_of(rates, (400_000, 4 * MILLION, 40 * MILLION))
    assert cells(found, "Median") == tuple(f"{rate:,}" for rate in rates)
    assert cells(found, "Minimum (p1)") == tuple(f"{rate - 7:,}" for rate in rates)
    assert cells(found, "Maximum (p99)") == tuple(f"{rate + 9:,}" for rate in rates)
    assert cells(found, "Median / previous median") == ("\u2013", *ratios)


def test_hash_sizes_give_the_published_loads() -> None:
    loads = []
    for count, exponent in ((400_000, 20), (4 * MILLION, 23), (40 * MILLION, 27)):
        table = GatewayTablePart(size=1 << exponent, hash_size=1 << exponent, udp_timeout_ns=100 * 10**9)
        found = document([run("connection_establishment_rate", (102_929,), count=count)], table=table)
        loads += cells(found, "Sessions per hash size")
        assert cells(found, "Hash size") == (f"{1 << exponent:,}",)
        assert cells(found, "Destination ports from 1") == (f"{count // 40_000:,}",)
        assert cells(found, "Source ports from 1") == ("40,000",)
        assert cells(found, "UDP timeout") == ("100s",)
    assert loads == ["0.3815", "0.4768", "0.2980"]


PUBLISHED_TEAR_DOWNS = {
    "Jool": (
        (400_000, (430, 445, 480), (290, 300, 310), "(2,758,621)"),
        (4 * MILLION, (1350, 1365, 1390), (290, 300, 310), "3,755,869"),
        (40 * MILLION, (11_760, 11_790, 11_950), (290, 300, 310), "3,481,288"),
    ),
    "iptables": (
        (400_000, (670, 690, 695), (200, 210, 220), "833,333"),
        (4 * MILLION, (6_240, 6_320, 6_410), (340, 360, 380), "671,141"),
        (40 * MILLION, (70_420, 71_010, 72_230), (2_940, 2_960, 2_980), "587,803"),
    ),
    "iptables, 16 cores": (
        (1_562_500, (4_320, 4_330, 4_340), (550, 550, 550), "413,360"),
        (6_250_000, (18_000, 18_050, 18_100), (1_270, 1_280, 1_290), "372,689"),
        (25 * MILLION, (74_400, 74_470, 74_500), (4_170, 4_170, 4_170), "355,619"),
        (100 * MILLION, (305_000, 305_330, 306_000), (15_700, 15_740, 15_800), "345,316"),
        (400 * MILLION, (1_178_000, 1_178_350, 1_179_000), (31_200, 31_200, 31_200), "348,690"),
        (800 * MILLION, (2_263_000, 2_263_160, 2_263_500), (31_200, 31_200, 31_200), "358,429"),
    ),
}
"""Connections, times with a full and with an empty table in ms, and connections/s as printed."""


@pytest.mark.parametrize("name", PUBLISHED_TEAR_DOWNS)
def test_times_of_tear_down_give_the_published_rates(name: str) -> None:
    measured = PUBLISHED_TEAR_DOWNS[name]
    found = document([tear_down_run(count, full, empty, 1) for count, full, empty, _ in measured])
    assert [row.rate for row in stateful.tear_down_rows(found)] == [rate for *_, rate in measured]
    text = terminal_of(found)
    assert all(rate in text for *_, rate in measured)
    assert ("in parentheses: uncertain" in text) == ("(" in measured[0][-1])


def test_times_are_written_as_the_papers_write_them() -> None:
    found = document([tear_down_run(4 * MILLION, (1350, 1365, 1390), (290, 300, 310))])
    row = stateful.tear_down_rows(found)[0]
    assert row.full == ("1.37 s", "1.35 s", "1.39 s")
    assert row.empty == ("300 ms", "290 ms", "310 ms")
    assert row.net == "1.07 s"
    assert words.format_long_time(-2_000_000) == "\u22122 ms"
    assert words.format_long_time(1_178_350_000_000) == "1,178.35 s"


def test_a_difference_that_is_none_has_no_rate() -> None:
    found = document([tear_down_run(1000, (1, 2, 3), (1, 2, 3))])
    assert stateful.tear_down_rows(found)[0].rate == "no difference"
    assert "not deleted more slowly" in statements.statement(found, found.runs[0], "").sentence


def test_the_capacity_table_has_the_columns_of_the_rfc() -> None:
    found = document([capacity_run((4_194_300, 4_194_301, 4_194_302))])
    table = stateful.capacity_tables(found)[0]
    assert table.title == "alpha 1, beta 0.2, gamma 0.4, E 1 connections, e 100,000 connections/s"
    row = ("1", "1,000,000", "2,437,500", "4,000,000", "2,250,945", "8,000,000", "\u2013", "4,194,300")
    assert table.rows[0][:-1] == row
    assert table.rows[0][-1] == "new connections were refused"
    median, least, most = table.rows[3:]
    assert (median[0], median[2], median[7]) == ("median", "2,562,500", "4,194,301")
    assert (least[2], most[2]) == ("2,437,500", "2,687,500")
    assert (least[7], most[7]) == ("4,194,300", "4,194,302")
    said = statements.statement(found, found.runs[0], "")
    assert (said.figure, said.unit) == ("4,194,301", "connections")
    assert "capacity: 4,194,301 connections, median of 3 repetitions" in said.sentence
    assert "Beyond it new connections were refused (3 of 3 searches)." in said.sentence
    assert "4,194,301" in terminal_of(found)
    assert "new connections were refused" in Words(page_of(found)).text


def test_eviction_is_told_with_the_connections_that_were_lost() -> None:
    found = document([capacity_run((1000, 1000), "evicted", lost="oldest")])
    said = statements.statement(found, found.runs[0], "").sentence
    assert "new connections were accepted and established ones lost (2 of 2 searches)" in said
    assert "In the validation the oldest connections were lost (2 of 2 searches)." in said
    assert "the oldest connections were lost" in stateful.capacity_tables(found)[0].rows[0][-1]


def test_a_capacity_that_is_only_a_lower_bound_is_told_so() -> None:
    least = document([capacity_run((8 * MILLION,), None, limited_by="maximum")])
    assert "capacity: at least 8,000,000 connections" in statements.statement(least, least.runs[0], "").sentence
    spoilt = document([capacity_run((1000, 2000), limited_by="tester")])
    said = statements.statement(spoilt, spoilt.runs[0], "")
    assert said.figure == "Tester-limited"
    assert "not measured: Tester-limited (gateway ≥ 1,000)" in said.sentence


KCPS = {1: 223.5, 2: 371.1, 4: 708.7, 8: 1341, 16: 2383}
KPPS = {1: 414.9, 2: 742.3, 4: 1379, 8: 2336, 16: 4557}


def test_medians_over_processors_give_the_published_scale_up() -> None:
    documents = [
        document(
            [
                run("connection_establishment_rate", (int(KCPS[number] * 1000),)),
                run("throughput", (int(KPPS[number] * 1000),), direction="bidirectional"),
            ],
            name="iptables", mode="nat44", processors=number,
        )
        for number in KCPS
    ]  # fmt: skip
    table = scale_up_tables(documents)[0]
    assert table.processors == (1, 2, 4, 8, 16)
    assert [ratio for _, ratio in table.rows[0].cells] == ["1.000", "0.830", "0.793", "0.750", "0.666"]
    assert [ratio for _, ratio in table.rows[1].cells] == ["1.000", "0.895", "0.831", "0.704", "0.686"]
    for text in (Words(page_of(*documents)).text, terminal_of(*documents)):
        assert "0.666" in text
        assert "2,383,000" in text


def test_a_scale_up_needs_one_gateway_at_different_numbers_of_processors() -> None:
    one, four = (document([run("throughput", (number,))], processors=number) for number in (1, 4))
    assert len(scale_up_tables([one, four])) == 1
    assert scale_up_tables([one]) == ()
    assert scale_up_tables([one, one, four]) == ()
    assert scale_up_tables([four, document([run("throughput", (1,))], processors=2)]) == ()
    assert scale_up_tables([one, document([run("throughput", (1,))], processors=4, name="another")]) == ()
    assert scale_up_tables([document([run("throughput", (1,))])] * 2) == ()
