"""A series from its file to its table on simulated gateways: derived rows, resuming, collapses, failures, the page."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import SimulatedTestBed, simulated_equipment

from gatemark.campaign.events import ColumnStarted, Event, EventCallback, RunFinished, TrialFinished
from gatemark.campaign.progress import ProgressState
from gatemark.cli.common import one_campaign
from gatemark.cli.main import main
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError, Interrupted, ResultError
from gatemark.report.terminal import section_text
from gatemark.series.document import Metric, SeriesDocument
from gatemark.series.report import section
from gatemark.series.run import SeriesResult, measure_series, open_series, rebuild_series, resume_series
from gatemark.tester import Equipment

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

NAT = """
name = "scaling"
seed = 7
repetitions = {repetitions}
[testbed]
kind = "netns"
recipe = "nft-nat44"
[traffic]
frame_sizes = {{family = "ipv4", octets = [64]}}
[trial]
duration = "1s"
settle = "0s"
learn = "0s"
drain = "0s"
rest = "0s"
[gateway.table]
udp_timeout = "10000s"
[connections]
count = 1000
rate = "50%"
[connection_establishment_rate]
maximum = "4M"
resolution = "{resolution}"
[throughput]
maximum = "16M"
resolution = "{resolution}"
"""
CORES = """
[[vary]]
"testbed.gateway_cores" = [[0], [0, 1], [0, 1, 2, 3]]
titles = ["one", "two", "four"]
"""
SIZES = """
[[vary]]
"connections.count" = ["10k", "100k", "1M"]
"gateway.table.size" = ["16k", "160k", "1600k"]
"""


def write(tmp_path: Path, *vary: str, repetitions: int = 1, resolution: str = "1k") -> Path:
    file = tmp_path / "scaling.toml"
    file.write_text(NAT.format(repetitions=repetitions, resolution=resolution) + "".join(vary))
    return file


def forwarded(cores: int) -> int:
    """Frames per second of the simulated gateway: a little less than linear."""
    return int(300_000 * cores**0.9)


def established(cores: int, connections: int) -> int:
    """Connections per second: fewer for a larger table."""
    return int(200_000 * cores**0.8 * (10_000 / connections) ** 0.1)


def gateway(campaign: Campaign) -> SimulatedDevice:
    cores = campaign.control.core_count or 1
    return SimulatedDevice(
        capacity_forward=forwarded(cores),
        establishment_rate=established(cores, campaign.connections_model.count[0]),
        table_size=campaign.gateway.table.size,
        noise=0.01,
    )


def equipment(device: Callable[[Campaign], SimulatedDevice] = gateway) -> Equipment:
    return replace(simulated_equipment(device), available_bytes=lambda: 1 << 40)


def stop_after(trials: int) -> EventCallback:
    """A watcher that presses Ctrl-C after a number of trials."""
    count = 0

    def watch(event: Event) -> None:
        nonlocal count
        count += isinstance(event, TrialFinished) and not event.replayed
        if count >= trials:
            raise KeyboardInterrupt

    return watch


def metric(document: SeriesDocument, quantity: str) -> Metric:
    (result,) = (metric for metric in document.metrics if metric.quantity == quantity)
    return result


def medians(metric: Metric) -> list[Fraction]:
    return [Fraction(str(figure.median)) for figure in metric.figures]


def outcomes(result: SeriesResult) -> list[str]:
    return [column.outcome for column in result.document.columns]


def terminal(document: SeriesDocument) -> str:
    from rich.console import Console

    out = Console(file=io.StringIO(), width=400)
    for printed in section_text(section(document, columns_max=100), name="", width=400):
        out.print(printed)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def row_of(text: str, label: str) -> list[str]:
    """Return the cells of the first row with this label."""
    line = next(line for line in text.splitlines() if line.strip().startswith(label))
    return line.strip().removeprefix(label).split()


def test_five_columns_of_cores_have_the_derived_rows_of_what_is_true(tmp_path: Path) -> None:
    counts = [1, 2, 4, 8, 16]
    cores = f'[[vary]]\n"testbed.gateway_cores" = {[list(range(count)) for count in counts]}\n'
    file = write(tmp_path, cores.replace("[[vary]]", '[[vary]]\ntitles = ["1", "2", "4", "8", "16"]'), repetitions=3)
    result = measure_series(file, output=tmp_path / "out", equipment=equipment())
    assert result.document.status == "complete"
    assert [column.parameters.cores for column in result.document.columns] == counts
    for name, truth in (
        ("throughput", [forwarded(count) for count in counts]),
        ("connection establishment rate", [established(count, 1000) for count in counts]),
    ):
        answer = metric(result.document, name)
        rates = medians(answer)
        for rate, true in zip(rates, truth, strict=True):
            assert abs(rate - true) <= true / 50 + 1000
        assert [figure.repetitions for figure in answer.figures] == [3] * 5
        for figure, rate, before, count in zip(answer.figures, rates, [None, *rates], counts, strict=False):
            assert figure.scale_up == float(rate / (count * rates[0]))
            assert figure.ratio_to_previous == (None if before is None else float(rate / before))
            assert figure.p1 is not None and figure.p99 is not None and figure.p1 <= rate <= figure.p99
    first = metric(result.document, "throughput").figures[0]
    assert first.sum_of_directions is not None and first.median is not None and first.resolution is not None
    assert first.sum_of_directions.median == 2 * first.median
    assert first.sum_of_directions.resolution == 2 * first.resolution
    text = terminal(result.document)
    assert row_of(text, "Cores") == ["1", "2", "4", "8", "16"]
    assert row_of(text, "Relative scale-up")[0] == "1.0000"
    page = result.report_file.read_text()
    assert page.count("ideal scale-up") >= 2
    assert "X(1) times the number of cores" in page


def test_six_columns_of_connections_have_ports_table_and_hash_beside_them(tmp_path: Path) -> None:
    vary = """
[[vary]]
titles = ["1.56M", "6.25M", "25M", "100M", "400M", "800M"]
"connections.count" = [1562500, 6250000, "25M", "100M", "400M", "800M"]
"connections.source_ports" = ["1-2500", "1-5000", "1-10000", "1-20000", "1-40000", "1-40000"]
"connections.destination_ports" = ["1-625", "1-1250", "1-2500", "1-5000", "1-10000", "1-20000"]
"gateway.table.size" = [2097152, 8388608, 33554432, 134217728, 536870912, 1073741824]
"gateway.table.hash_size" = [2097152, 8388608, 33554432, 134217728, 268435456, 268435456]
"gateway.table.udp_timeout" = ["300s", "300s", "2000s", "5000s", "20000s", "40000s"]
repetitions = [2, 2, 2, 2, 2, 1]
[connection_tear_down_rate]
"""
    text = NAT.format(repetitions=1, resolution="5k").replace("count = 1000\n", "")
    text = text.replace('[gateway.table]\nudp_timeout = "10000s"\n', "").replace(
        'maximum = "4M"', 'maximum = "4M"\nminimum = "60k"'
    )
    file = tmp_path / "sizes.toml"
    file.write_text(text + vary)
    result = measure_series(file, output=tmp_path / "out", equipment=equipment())
    assert outcomes(result) == ["measured"] * 6
    rates = medians(answer := metric(result.document, "connection establishment rate"))
    counts = [column.parameters.connections[0] for column in result.document.columns]
    for rate, count in zip(rates, counts, strict=True):
        assert abs(rate - established(1, count)) <= established(1, count) / 50 + 5000
    assert [figure.ratio_to_previous for figure in answer.figures] == [
        None, *(float(after / before) for before, after in pairwise(rates)),
    ]  # fmt: skip
    assert all(figure.scale_up is None for figure in answer.figures)
    assert [figure.repetitions for figure in answer.figures] == [2, 2, 2, 2, 2, 1]
    shown = terminal(result.document)
    assert row_of(shown, "Source ports from 1") == ["2,500", "5,000", "10,000", "20,000", "40,000", "40,000"]
    assert row_of(shown, "Destination ports from 1") == ["625", "1,250", "2,500", "5,000", "10,000", "20,000"]
    assert row_of(shown, "Connections per hash size")[4:] == ["1.4901", "2.9802"]
    assert row_of(shown, "Table size per connection")[0] == "1.3422"
    assert row_of(shown, "Hash size")[3:5] == ["134,217,728", "268,435,456"]
    assert row_of(shown, "repetitions") == ["2", "2", "2", "2", "2", "1"]
    assert "Connection tear-down rate, connections/s" in shown
    assert "Time to delete all connections" in shown


def test_lists_of_tables_are_told_by_their_titles_and_domains_are_an_axis(tmp_path: Path) -> None:
    rule = '{{ipv6 = "2001:2:0:{n}000::/52", ipv4 = "198.18.{n}.0/28", ea_bits = 12, dmr = "2001:2:0:6400::/96"}}'
    rules = [rule.format(n=number) for number in (1, 2, 3)]
    file = tmp_path / "domains.toml"
    file.write_text(f"""
name = "domains"
[testbed]
kind = "netns"
recipe = "tayga-mapt-br"
[map]
edges = 60
[traffic]
frame_sizes = {{family = "ipv6", octets = 84}}
[trial]
duration = "1s"
[throughput]
maximum = "1M"
[[vary]]
titles = ["one", "two", "three"]
"map.domains" = [[{rules[0]}], [{", ".join(rules[:2])}], [{", ".join(rules)}]]
""")
    result = measure_series(
        file, output=tmp_path / "out", equipment=equipment(lambda _: SimulatedDevice(capacity_forward=300_000))
    )
    text = terminal(result.document)
    assert row_of(text, "map.domains") == ["one", "two", "three"]
    assert row_of(text, "Domains") == ["1", "2", "3"]
    assert "Throughput against number of domains" in result.report_file.read_text()


def test_crossed_parts_compare_what_differs_in_one_thing(tmp_path: Path) -> None:
    file = write(tmp_path, CORES, SIZES.replace(', "1M"', "").replace(', "1600k"', ""))
    result = measure_series(file, output=tmp_path / "out", equipment=equipment())
    answer = metric(result.document, "connection establishment rate")
    rates = medians(answer)
    for at, figure in enumerate(answer.figures):
        line, place = divmod(at, 2)
        assert figure.ratio_to_previous == (float(rates[at] / rates[at - 1]) if place else None)
        assert figure.scale_up == float(rates[at] / ((1, 2, 4)[line] * rates[place]))
    page = result.report_file.read_text()
    for caption in ("against cores of the gateway", "against number of connections"):
        assert f"Connection establishment rate {caption}" in page
    rows = list(csv.DictReader((result.folder / "series.csv").read_text().splitlines()))
    assert [row["column"] for row in rows] == [str(number) for number in range(1, 7) for _ in range(2)]
    assert rows[6] | {
        "title": "two, count 100k", "cores": "2", "connections.count": "100k", "testbed.gateway_cores": "0,1",
        "gateway.table.size": "160k", "connections": "100000", "outcome": "measured",
    } == rows[6]  # fmt: skip


def test_mixes_that_vary_are_not_in_the_heading(tmp_path: Path) -> None:
    """The first number of 1/1 and 1/2 is the same."""
    file = tmp_path / "mixes.toml"
    begin, _, end = NAT.format(repetitions=1, resolution="1k").partition("[gateway.table]")
    begin = begin.replace("nft-nat44", "tayga-siit64")
    file.write_text(f'{begin}[throughput]{end.partition("[throughput]")[2]}[[vary]]\n"traffic.mix" = ["1/1", "1/2"]\n')
    result = measure_series(
        file, output=tmp_path / "out", equipment=equipment(lambda _: SimulatedDevice(capacity_forward=10**6))
    )
    assert outcomes(result) == ["measured"] * 2
    heading = next(line for line in terminal(result.document).splitlines() if line.strip().startswith("Throughput, "))
    assert heading.split() == [
        "Throughput,",
        "frames/s",
        "in",
        "one",
        "direction,",
        "bidirectional,",
        "64",
        "/",
        "84",
        "octets",
    ]


def test_a_router_in_the_same_file_gives_shares_of_plain_forwarding(tmp_path: Path) -> None:
    routers = """
[traffic.source_ports]
range = "1024-65535"
[traffic.destination_ports]
range = "1"
mode = "fixed"
[[vary]]
titles = ["NAT", "router"]
"testbed.recipe" = ["nft-nat44", "linux-router4"]
without = [
    ["traffic.source_ports", "traffic.destination_ports"],
    ["connections", "gateway.table", "connection_establishment_rate"],
]
"""

    def either(campaign: Campaign) -> SimulatedDevice:
        if campaign.technology.is_stateful:
            return gateway(campaign)
        return SimulatedDevice(capacity_forward=900_000 * (campaign.control.core_count or 1), noise=0.01)

    file = write(tmp_path, routers, CORES, resolution="100")
    file.write_text(file.read_text().replace("count = 1000", 'count = 1000\nsource_ports = "1024-65535"'))
    result = measure_series(file, output=tmp_path / "out", equipment=equipment(either))
    assert outcomes(result) == ["measured"] * 6
    answer = metric(result.document, "throughput")
    rates = medians(answer)
    assert [figure.share_of_plain_forwarding for figure in answer.figures] == [
        *(float(rates[at] / rates[at + 3]) for at in range(3)), None, None, None,
    ]  # fmt: skip
    text = terminal(result.document)
    assert row_of(text, "Share of plain forwarding")[:2] == [f"{100 * float(rates[0] / rates[3]):.2f}", "%"]
    scale_ups = [figure.scale_up for figure in answer.figures]
    assert scale_ups[3:] == pytest.approx([1, 1, 1], abs=0.01)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """A file, the series.json of it without a stop, and its number of trials."""
    folder = tmp_path_factory.mktemp("whole")
    file = write(folder, CORES, repetitions=2)
    count: list[Event] = []
    result = measure_series(file, output=folder / "out", equipment=equipment(), on_event=count.append)
    return file, result.document.to_text(), sum(isinstance(event, TrialFinished) for event in count)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(2, 5), Fraction(2, 3), Fraction(99, 100)])
def test_a_stopped_series_resumes_to_the_same_result(
    whole: tuple[Path, str, int], tmp_path: Path, share: Fraction
) -> None:
    file, expected, trials = whole
    beds: list[SimulatedTestBed] = []
    used = replace(simulated_equipment(gateway, beds=beds), available_bytes=lambda: 1 << 40)
    with pytest.raises(Interrupted) as caught:
        measure_series(file, output=tmp_path / "cut", equipment=used, on_event=stop_after(max(1, int(share * trials))))
    assert f"gatemark run --resume {tmp_path / 'cut'}\n" in f"{caught.value}\n"
    assert open_series(tmp_path / "cut").document.status == "incomplete"
    assert "Still to be measured" in (tmp_path / "cut" / "report.html").read_text()
    count: list[Event] = []
    resumed = resume_series(tmp_path / "cut", equipment=equipment(), on_event=count.append)
    assert resumed.document.to_text() == expected
    new = sum(isinstance(event, TrialFinished) and not event.replayed for event in count)
    assert new == trials - max(1, int(share * trials))
    assert open_series(tmp_path / "cut").document == resumed.document
    again: list[Event] = []
    assert resume_series(tmp_path / "cut", equipment=equipment(), on_event=again.append).document.to_text() == expected
    assert again == []


def test_a_killed_series_goes_on_from_what_is_on_disk(whole: tuple[Path, str, int], tmp_path: Path) -> None:
    """As after kill -9: no file was written at the end, and the journal ends in the middle of a line."""
    file, expected, trials = whole
    with pytest.raises(Interrupted):
        measure_series(file, output=tmp_path / "cut", equipment=equipment(), on_event=stop_after(trials // 2))
    folder = tmp_path / "cut"
    under_way = sorted(path.parent for path in folder.glob("*/trials.jsonl"))[-1]
    (under_way / "result.json").unlink()
    journal = under_way / "trials.jsonl"
    journal.write_bytes(journal.read_bytes()[:-10])
    count: list[Event] = []
    assert resume_series(folder, equipment=equipment(), on_event=count.append).document.to_text() == expected
    assert sum(isinstance(event, TrialFinished) and not event.replayed for event in count) == trials - trials // 2 + 1


def test_a_series_without_pages_has_the_same_figures(whole: tuple[Path, str, int], tmp_path: Path) -> None:
    file, expected, _ = whole
    result = measure_series(file, output=tmp_path / "out", equipment=equipment(), report=False)
    assert result.document.to_text() == expected
    assert not list(result.folder.rglob("report.html"))
    rebuild_series(result.folder)
    assert list(result.folder.rglob("report.html")) == [result.report_file]


FROM_PREVIOUS = SIZES + "search_from_previous = true\n"


def uneven(campaign: Campaign) -> SimulatedDevice:
    """A gateway whose second column is far below its neighbours, and whose third one is far above."""
    factor = {10_000: 20, 100_000: 1, 1_000_000: 60}[campaign.connections_model.count[0]]
    return SimulatedDevice(capacity_forward=40_123 * factor, establishment_rate=30_456 * factor)


@pytest.mark.parametrize("device", [uneven, gateway])
def test_searches_from_the_column_before_find_the_same(
    device: Callable[[Campaign], SimulatedDevice], tmp_path: Path
) -> None:
    def steady(campaign: Campaign) -> SimulatedDevice:
        return replace(device(campaign), noise=0)

    (tmp_path / "all").mkdir()
    whole = measure_series(write(tmp_path / "all", SIZES), output=tmp_path / "all/out", equipment=equipment(steady))
    near = measure_series(write(tmp_path, FROM_PREVIOUS), output=tmp_path / "out", equipment=equipment(steady))
    assert outcomes(near) == ["measured"] * 3
    for quantity in ("connection establishment rate", "throughput"):
        expected, result = (metric(entry.document, quantity) for entry in (whole, near))
        for before, after in zip(expected.figures, result.figures, strict=True):
            assert after.resolution == before.resolution
            assert abs(float(after.median or 0) - float(before.median or 0)) <= (before.resolution or 0)
    key = "connection_establishment_rate"
    rates = metric(near.document, "connection establishment rate").figures
    assert [column.expected.get(key) for column in near.document.columns] == [None, rates[0].median, rates[1].median]
    if device is gateway:
        assert near.document.columns[1].trials < whole.document.columns[1].trials
    told = near.columns[1].document.deviations
    assert any("begins at 1.5 times an expected result" in entry.sentence for entry in told)
    assert "Searches began near the results of another column in columns 2, 3" in " ".join(
        terminal(near.document).split()
    )


@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(1, 2), Fraction(4, 5)])
def test_a_series_that_searches_from_the_column_before_resumes_to_the_same(tmp_path: Path, share: Fraction) -> None:
    file = write(tmp_path, FROM_PREVIOUS)
    count: list[Event] = []
    whole = measure_series(file, output=tmp_path / "out", equipment=equipment(), on_event=count.append)
    trials = sum(isinstance(event, TrialFinished) for event in count)
    with pytest.raises(Interrupted):
        measure_series(file, output=tmp_path / "cut", equipment=equipment(), on_event=stop_after(int(share * trials)))
    again: list[Event] = []
    resumed = resume_series(tmp_path / "cut", equipment=equipment(), on_event=again.append)
    assert resumed.document.to_text() == whole.document.to_text()
    new = sum(isinstance(event, TrialFinished) and not event.replayed for event in again)
    assert new == trials - int(share * trials)
    assert rebuild_series(tmp_path / "cut").document.to_text() == whole.document.to_text()


def test_what_is_wrong_with_any_column_is_told_before_anything_is_made(tmp_path: Path) -> None:
    file = write(tmp_path, SIZES.replace('"160k"', '"90k"'))
    with pytest.raises(ConfigError, match=r"column 2 \(count 100k\): gateway.table.size: is 90000"):
        measure_series(file, output=tmp_path / "out", equipment=equipment())
    assert not (tmp_path / "out").exists()


def collapsing(campaign: Campaign) -> SimulatedDevice:
    """It dies of more than 50,000 connections for each core."""
    return replace(gateway(campaign), collapses_beyond=50_000 * (campaign.control.core_count or 1))


def test_a_collapse_is_a_result_and_larger_columns_are_skipped(tmp_path: Path) -> None:
    file = write(tmp_path, CORES.replace(", [0, 1, 2, 3]", "").replace(', "four"', ""), SIZES)
    result = measure_series(file, output=tmp_path / "out", equipment=equipment(collapsing))
    assert outcomes(result) == ["measured", "collapsed", "skipped", "measured", "measured", "collapsed"]
    assert result.document.status == "complete"
    assert not result.has_failed
    assert result.document.columns[1].reason == "simulated gateway: the gateway does not answer"
    assert result.document.columns[2].reason == (
        "it asks for more than column 2, one, count 100k, at which the gateway collapsed"
    )
    text = terminal(result.document)
    assert "Column 2, one, count 100k: gateway collapsed: simulated gateway: the gateway does not answer" in text
    assert "skipped" in text
    rows = list(csv.DictReader((result.folder / "series.csv").read_text().splitlines()))
    (skipped,) = (row for row in rows if row["column"] == "3")
    assert (skipped["outcome"], skipped["quantity"], skipped["median"]) == ("skipped", "", "")
    assert "at which the gateway collapsed" in skipped["refused"]
    count: list[Event] = []
    again = resume_series(result.folder, equipment=equipment(collapsing), on_event=count.append)
    assert again.document.to_text() == result.document.to_text()
    assert count == []
    rates = metric(result.document, "connection establishment rate")
    assert [figure.column for figure in rates.figures] == [1, 4, 5]
    collapsed = rates.of(5)
    assert collapsed is not None and collapsed.scale_up is None  # its one core collapsed


def test_a_column_that_failed_has_its_reason_and_is_tried_again(tmp_path: Path) -> None:
    def broken(campaign: Campaign) -> SimulatedDevice:
        return replace(gateway(campaign), dies_at_trial=5 if campaign.control.core_count == 2 else None)

    result = measure_series(write(tmp_path, CORES), output=tmp_path / "out", equipment=equipment(broken))
    assert outcomes(result) == ["measured", "failed", "measured"]
    assert result.has_failed
    assert result.document.status == "incomplete"
    assert result.document.columns[1].reason
    page = result.report_file.read_text()
    assert "<strong>Incomplete:</strong> 1 of 3 columns" in page
    rates = metric(result.document, "throughput")
    assert rates.of(2) is None
    after = rates.of(3)
    assert after is not None and after.ratio_to_previous is None and after.scale_up is not None
    assert "failed" in row_of(terminal(result.document), "Outcome")
    with pytest.raises(Interrupted):
        resume_series(result.folder, equipment=equipment(), on_event=stop_after(2))
    stopped = open_series(result.folder).document.columns[1]
    assert (stopped.outcome, stopped.reason) == ("missing", None)
    assert "<svg" in result.report_file.read_text()
    mended = resume_series(result.folder, equipment=equipment())
    assert outcomes(mended) == ["measured"] * 3
    assert not mended.has_failed


def test_the_page_of_a_running_series_says_what_is_missing_and_when(tmp_path: Path) -> None:
    pages: list[str] = []
    started: list[ColumnStarted] = []

    def watch(event: Event) -> None:
        if isinstance(event, ColumnStarted):
            started.append(event)
        if isinstance(event, TrialFinished) and len(started) == 2:
            pages.append((tmp_path / "out" / "report.html").read_text())

    measure_series(write(tmp_path, CORES), output=tmp_path / "out", equipment=equipment(), on_event=watch)
    assert "Column 3, four: not measured yet, expected by 20" in pages[0]
    first, last = pages[0], pages[-1]
    assert "2 of 3 columns are missing" in first
    assert "Column 2, two: under way, expected by 20" in last
    establishment = last.index("Connection establishment rate, connections/s")
    assert last.index("Throughput, frames/s") > establishment
    assert last[establishment:].count("not measured yet") < first[establishment:].count("not measured yet")
    assert [(event.number, event.columns, event.title) for event in started] == [
        (1, 3, "one"), (2, 3, "two"), (3, 3, "four"),
    ]  # fmt: skip
    assert started[0].later_s > 0
    assert started[2].later_s == 0


def test_progress_shows_the_column_and_the_time_of_those_after_it(tmp_path: Path) -> None:
    times = iter(range(0, 10**6, 10))
    state = ProgressState(now=lambda: float(next(times)))
    lines: list[str] = []
    left: list[float | None] = []

    def watch(event: Event) -> None:
        state.update(event)
        lines.extend(state.lines)
        state.lines.clear()
        if isinstance(event, RunFinished):
            left.append(state.left_s)
            assert state.position().startswith("column ")

    def on_plan(_plan: object, expected_ns: tuple[int, ...]) -> None:
        state.expected_ns = expected_ns

    measure_series(
        write(tmp_path, CORES), output=tmp_path / "out", equipment=equipment(), on_event=watch, on_plan=on_plan
    )
    told = [line for line in lines if line.startswith("column")]
    assert told == [
        "column 1 of 3: one", "column 1 of 3, one: measured", "column 2 of 3: two", "column 2 of 3, two: measured",
        "column 3 of 3: four", "column 3 of 3, four: measured",
    ]  # fmt: skip
    assert left[-1] == 0


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file of a series, and its result up to the middle of the second column."""
    place = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Interrupted):
        measure_series(write(place, CORES), output=place / "cut", equipment=equipment(), on_event=stop_after(40))
    assert (place / "cut" / "02-two").exists()
    return place


class TestRefusals:
    @pytest.fixture
    def cut(self, stopped: Path, tmp_path: Path) -> Path:
        return shutil.copytree(stopped, tmp_path, dirs_exist_ok=True) / "cut"

    def refused(self, folder: Path, used: Equipment | None = None) -> str:
        with pytest.raises(ResultError) as caught:
            resume_series(folder, equipment=used or equipment())
        return str(caught.value)

    def test_a_changed_file(self, cut: Path) -> None:
        text = (cut / "series.toml").read_text()
        (cut / "series.toml").write_text(text.replace("[0, 1, 2, 3]", "[0, 1, 2]"))
        assert "series.toml has changed" in self.refused(cut)

    def test_another_column_in_a_folder(self, cut: Path) -> None:
        file = cut / "02-two" / "campaign.toml"
        file.write_text(file.read_text().replace("seed = 7", "seed = 8"))
        message = "campaign.toml in 02-two is not that of column 2"
        assert message in self.refused(cut)
        with pytest.raises(ResultError, match=message):
            rebuild_series(cut)

    def test_another_engine(self, cut: Path) -> None:
        message = self.refused(cut, replace(equipment(), engine_sha256=lambda: "other"))
        assert "engine.program_sha256 was simulated, is other" in message

    def test_a_folder_that_everybody_may_write_to(self, cut: Path) -> None:
        (cut / "series.toml").chmod(0o666)
        assert "can write to it (series.toml)" in self.refused(cut)
        assert resume_series(cut, equipment=equipment(), trust_commands=True).document.status == "complete"

    def test_a_damaged_document(self, cut: Path) -> None:
        data = json.loads((cut / "series.json").read_text())
        data["columns"][0]["outcome"] = "perhaps"
        (cut / "series.json").write_text(json.dumps(data))
        assert "series.json is damaged at columns.0.outcome" in self.refused(cut)

    def test_a_folder_that_holds_a_series(self, cut: Path) -> None:
        with pytest.raises(ResultError, match="already holds a series"):
            measure_series(cut.parent / "scaling.toml", output=cut, equipment=equipment())

    def test_no_folder_of_a_series(self, cut: Path) -> None:
        assert "holds no series.toml" in self.refused(cut / "01-one")


def test_series_json_has_a_published_form(whole: tuple[Path, str, int]) -> None:
    schema = SeriesDocument.model_json_schema(by_alias=True, mode="serialization")
    jsonschema.validate(json.loads(whole[1]), schema)
    assert SeriesDocument.model_validate(json.loads(whole[1])).to_text() == whole[1]


def test_a_report_is_made_again_from_the_columns(
    whole: tuple[Path, str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = whole[0].parent / "out"
    page = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    (folder / "series.csv").unlink()
    assert rebuild_series(folder).document.to_text() == whole[1]
    assert (folder / "report.html").read_text() == page
    assert (folder / "series.csv").is_file()
    assert main(["report", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(whole[1])
    assert main(["report", str(folder)]) == 0
    assert "Relative scale-up" in capsys.readouterr().out


class TestPlan:
    def test_columns_with_what_they_set_and_their_time(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = write(tmp_path, CORES, SIZES)
        assert main(["plan", str(file)]) == 0
        text = capsys.readouterr().out
        assert text.startswith("# 9 columns")
        assert "   5  two, count 100k: " in text
        assert '      connections.count = "100k"\n' in text
        assert main(["plan", str(file), "--json"]) == 0
        planned = json.loads(capsys.readouterr().out)
        assert planned["columns"][4]["settings"]["testbed.gateway_cores"] == [0, 1]
        for key in ("trials_min", "trials_max", "seconds_min", "seconds_max"):
            assert planned["estimate"][key] == sum(column["estimate"][key] for column in planned["columns"])

    def test_one_column_is_planned_like_any_campaign(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = write(tmp_path, CORES, SIZES)
        assert main(["plan", str(file), "--column", "5", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["campaign"]["connections"]["count"] == [100_000]
        for wrong in ("0", "10"):
            assert main(["plan", str(file), "--column", wrong]) == 2
            assert "write 1 to 9" in capsys.readouterr().err
        assert main(["plan", str(write(tmp_path)), "--column", "1"]) == 2
        assert "has no [[vary]]" in capsys.readouterr().err

    def test_all_columns_are_checked(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["plan", str(write(tmp_path, SIZES.replace('"160k"', '"90k"')))]) == 2
        assert "column 2 (count 100k): gateway.table.size" in capsys.readouterr().err


def test_commands_about_one_campaign_take_the_first_column_and_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, CORES)
    assert complete_campaign(one_campaign(file)).control.core_count == 1
    assert capsys.readouterr().err == f"{file} varies keys; this shows column 1 of 3, one\n"
    assert complete_campaign(one_campaign(write(tmp_path))).control.core_count is None
    assert capsys.readouterr().err == ""
    with pytest.raises(ConfigError, match=r"column 2 \(repetitions 0\)"):  # every column is checked
        one_campaign(write(tmp_path, "[[vary]]\nrepetitions = [3, 0]\n"))
