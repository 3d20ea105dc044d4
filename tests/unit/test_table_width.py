"""Tables fit 100 columns with long contents, and say as much as on a wider terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.delay_documents import everything
from tests.unit.stateful_documents import all_kinds, series_of, terminal_of
from tests.unit.test_calibrate import result_of
from tests.unit.test_selftest import document as self_test

from gatemark.calibrate.checks import chosen_checks
from gatemark.calibrate.model import Comparison
from gatemark.campaign.file import load_campaign
from gatemark.campaign.plan import plan_of
from gatemark.cli.calibrate import results_table
from gatemark.cli.doctor import findings_table
from gatemark.cli.plan import runs_table
from gatemark.cli.selftest import tables_of
from gatemark.consoles import WIDTH_MAX, stdout_console
from gatemark.dut.recipe import complete_campaign
from gatemark.findings import Finding
from gatemark.report.comparison import comparison_section
from gatemark.report.table import Column, Table, table_of
from gatemark.report.terminal import table_text
from gatemark.selftest.document import CountedLoop, Entry, TimedLatency

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG = "Other programs run on this CPU: stop them, isolate CPUs (isolcpus=), or name others in testbed.cores"


def printed(table: Table, width: int = WIDTH_MAX) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    for part in table_text(table, width=width):
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width, text
    missing = {word for row in table.rows for cell in row for word in cell.split()} - set(text.split())
    assert {word for word in missing if f"{word}," not in text.split() and f"{word};" not in text.split()} == set()
    return str(text)


def parts(text: str) -> int:
    return text.count("\n\u2500")


@pytest.mark.parametrize(("columns", "width"), [("200", WIDTH_MAX), ("60", 60)])
def test_a_wider_terminal_gets_no_wider_tables(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert stdout_console().width == WIDTH_MAX, "not a terminal"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert stdout_console().width == width


@pytest.mark.parametrize("width", [50, 60, 80, 100])
@pytest.mark.parametrize("figures", [1, 4, 9, 15])
def test_words_are_wrapped_and_figures_are_not(width: int, figures: int) -> None:
    columns: tuple[Column[Sequence[str]], ...] = (
        Column("gateway", itemgetter(0), numeric=False),
        *(Column(f"figure {number},\nframes/s", itemgetter(1 + number)) for number in range(figures)),
        Column("limited by", itemgetter(-1), numeric=False),
    )
    rows = tuple(
        ("tayga with nftables masquerade", *[f"{row}48,809,{number}95" for number in range(figures)], "host not quiet")
        for row in (1, 2)
    )
    printed(table_of("Long", columns, (*rows, "Heading of the rows below it", rows[0])), width)


def test_what_all_rows_have_in_common_is_said_once_if_the_table_is_too_wide() -> None:
    headings = ("direction", "limited by", *(f"figure {number}" for number in range(4)))
    columns = (Column(words, itemgetter(at), numeric=at > 1) for at, words in enumerate(headings))
    table = table_of("T", columns, [(way, "the gateway", "1", "2", "2", "2") for way in ("forward", "reverse")])
    assert "In every row" not in printed(table)
    narrow = printed(table, 60)
    assert narrow.splitlines()[1] == "In every row: limited by: the gateway"
    assert narrow.count(" 2") == 3 * 2 + 1, "figures that happen to be equal stay"


def test_the_tables_of_several_campaigns_are_in_one_part_each() -> None:
    names = ("tayga-mapt-br", "jool-nat64-kernel-7.2", "linux-router4-netem")
    rates, counts = (1_488_095, 1_386_453), (10_000, 1_000_000)
    gateway = "Jool as stateful NAT64, in User-Mode Linux 7.2.13, with a table of 1,048,576 connections"
    whole = series_of(rates, counts)
    named = whole.model_copy(update={"gateway": whole.gateway.model_copy(update={"name": gateway})})
    documents = [named.model_copy(update={"name": name}) for name in names]
    section = comparison_section(documents)
    assert section is not None
    for table in section.tables:
        text = printed(table)
        assert parts(text) == 1
        assert text.count("1,048,576") == (len(names) if table.title == "Gateways" else 0)


def test_the_tables_of_every_procedure_fit() -> None:
    delays, _ = everything()
    for whole in (delays, all_kinds(), series_of([10**6 + n for n in range(7)], [10**n for n in range(2, 9)])):
        text = terminal_of(whole, width=WIDTH_MAX)
        assert max(map(len, text.splitlines())) <= WIDTH_MAX


def test_the_tables_of_the_commands_fit() -> None:
    findings = [
        Finding(check="frequency governor", status="warning", observed=LONG, remedy=LONG),
        Finding(
            check="leftovers", status="failed", observed="folder /run/gatemark/gatemark-22312-1518823-0", remedy=LONG
        ),
    ]
    assert parts(printed(findings_table(findings))) == 1
    comparison = Comparison(
        quantity="sum of both directions, 99.9 %", unit="/s", true=1_488_095, measured=1_386_453,
        allowed_below=148_809, allowed_above=148_809,
    )  # fmt: skip
    (throughput, *_) = chosen_checks(["throughput"])
    check = replace(throughput, truth=f"{LONG}; {LONG}")
    assert parts(printed(results_table([result_of(check, comparison), result_of(check, kept=False)]))) == 1
    runs = runs_table(plan_of(complete_campaign(load_campaign(EXAMPLES / "10-nat64-between-ports.toml"))))
    assert parts(printed(runs)) == 1


def test_the_tables_of_a_self_test_fit() -> None:
    entry = Entry(
        family="ipv6", frame_octets=1518, direction="bidirectional", mode="stateful_hosts", kind="connections",
        frames_per_second=14_880_952, connections=16_000_000, limited=f"[loss] {LONG}",
    )  # fmt: skip
    times = dict.fromkeys(("minimum_ns", "p50_ns", "p99_ns", "p999_ns", "maximum_ns"), 123_456_789)
    delay = TimedLatency(
        frame_octets=1518, family="ipv6", frames_per_second=14_880_952, direction="reverse", samples=1, negative=0,
        lateness_max_ns=1, **times,
    )  # fmt: skip
    loop = CountedLoop(
        family="ipv6", frame_octets=1518, clients=4096, window=64, frames_per_second=None,
        replies_per_second=14_880_952, samples=1, requests=1, mean_ns=123_456_789,
        **{name: value for name, value in times.items() if name != "p99_ns"},
    )  # fmt: skip
    whole = self_test(entries=(entry, entry), latency=(delay, delay)).model_copy(update={"echo_loops": (loop,)})
    for table in tables_of(whole):
        assert parts(printed(table)) == 1
