"""Memory of the gateway's host for each connection: what samples say of it, when they say nothing, and the warning."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.simulated.equipment import SimulatedSampler, SimulatedTestBed
from tests.simulated.state import SimulatedGateway
from tests.trial_facts import ORDER, blank, record_of
from tests.unit.test_series import NAT, equipment, stop_after, terminal

from gatemark.campaign.events import ColumnStarted, ColumnWarning, Event
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.telemetry import memory_around_filling
from gatemark.dut.base import HostSample, TelemetryReading
from gatemark.errors import Interrupted
from gatemark.results.telemetry import Spread, TableMemory
from gatemark.series.document import MemoryEstimate
from gatemark.series.memory import _estimate, _of_table
from gatemark.series.run import SeriesResult, measure_series, rebuild_series, resume_series
from gatemark.trial.record import ConnectionFacts, PhaseOne
from gatemark.trial.report import EstablishedConnections, TrialReport
from gatemark.trial.telemetry import AVAILABLE, Level, SpanFacts, SpanName, TelemetryFacts
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

SECOND = 10**9
BYTES = 512
"""What a connection takes in the simulated gateway."""
AVAILABLE_KILOBYTES = 100_000
COUNTS = (20_000, 40_000, 160_000, 240_000)


def table(connections: int, empty: tuple[int, int, int], full: tuple[int, int, int], trials: int = 5) -> TableMemory:
    spreads = (Spread(minimum=low, median=middle, maximum=high) for low, middle, high in (empty, full))
    return TableMemory(connections=connections, trials=trials, empty=next(spreads), full=next(spreads))


def estimated(*tables: TableMemory) -> MemoryEstimate:
    members = tuple(_of_table(number, one_table) for number, one_table in enumerate(tables, start=1))
    return _estimate("nat", "nat44", members)


def test_the_spread_is_that_between_any_two_trials() -> None:
    estimate = estimated(table(1024, (9000, 9010, 9020), (8480, 8500, 8520)))
    assert (estimate.bytes, estimate.bytes_minimum, estimate.bytes_maximum) == (510, 480, 540)
    assert estimate.available_kilobytes == 9010 and estimate.reason is None


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ([], "no column has 5 trials"),
        ([table(1024, (9000, 9010, 9020), (8480, 8500, 8520), trials=4)], "no column has 5 trials"),
        ([table(1024, (9000, 9010, 9020), (8480, 8500, 9000))], "1,024 connections in the table and with none"),
        (
            [table(1024, (9000, 9010, 9020), (8480, 8500, 8520)), table(2048, (9000, 9010, 9020), (8400, 8470, 8500))],
            "1,024 and 2,048 connections take differs by less than it scatters",
        ),
    ],
)
def test_without_a_clear_difference_there_is_no_estimate(tables: list[TableMemory], reason: str) -> None:
    estimate = estimated(*tables)
    assert estimate.reason is not None and reason in estimate.reason
    assert estimate.bytes is estimate.bytes_minimum is estimate.bytes_maximum is None


def facts(**means: float) -> TelemetryFacts:
    def span(name: SpanName, mean: float) -> SpanFacts:
        level = blank(Level, samples=1, mean=mean)
        return blank(SpanFacts, span=name, levels={AVAILABLE: level})

    return TelemetryFacts(spans=tuple(span(name, mean) for name, mean in means.items()))  # type: ignore[arg-type]


def filled(established: int, first: TelemetryFacts, then: TelemetryFacts | None) -> tuple[float, float] | None:
    report = blank(
        TrialReport, connections=EstablishedConnections(phase="establish", count=10, established=established)
    )
    valid = Validity(valid=True)
    attempt = PhaseOne(
        connections_per_second=1,
        validity=valid,
        verdict=Verdict(passed=True),
        report=report,
        telemetry=first,
    )
    order = replace(ORDER, run=replace(ORDER.run, cell=replace(ORDER.run.cell, connections=10)))
    connections = ConnectionFacts(phase_one=(attempt,))
    return memory_around_filling(record_of(order=order, connections=connections, telemetry=then))


def test_the_sample_of_a_full_table_is_one_that_surely_lies_behind_the_last_connection() -> None:
    later = facts(before=40.0, sending=30.0)
    assert filled(10, facts(before=100.0, sending=70.0, after=50.0), later) == (100.0, 50.0)
    assert filled(10, facts(before=100.0, sending=70.0), later) == (100.0, 40.0)
    assert filled(10, facts(before=100.0), facts(sending=30.0)) == (100.0, 30.0)
    assert filled(10, facts(before=100.0, sending=70.0), None) is None
    assert filled(10, facts(sending=70.0, after=50.0), later) is None, "nobody saw the empty table"
    assert filled(9, facts(before=100.0, after=50.0), later) is None, "not all connections were established"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A simulated host whose memory holds the connections; what is called says by how much it changes by chance."""
    held, scatter, number = 0, 0, 0

    def start(gateway: SimulatedGateway) -> None:
        nonlocal held
        held = gateway.held

    def read() -> TelemetryReading:
        nonlocal number
        number += 1
        free = AVAILABLE_KILOBYTES - held * BYTES // 1024 - scatter * (number * 7 % 10) // 10
        now_ns = time.monotonic_ns()
        samples = (
            HostSample(at_ns=now_ns + step * SECOND // 4, error_ns=1, cpus={}, available_kilobytes=free)
            for step in range(1, 3)
        )
        return TelemetryReading(samples=tuple(samples), uncertainty_ns=1)

    def scatters(kilobytes: int) -> None:
        nonlocal scatter
        scatter = kilobytes

    sampler = property(lambda bed: SimulatedSampler(read, lambda _seconds: start(bed.gateway)))
    monkeypatch.setattr(SimulatedTestBed, "telemetry", sampler)
    return scatters


def series_file(tmp_path: Path) -> Path:
    file = tmp_path / "series.toml"
    text = NAT.format(repetitions=1, resolution="10k").replace('settle = "0s"', 'settle = "2s"')
    file.write_text(text + f'\n[[vary]]\n"connections.count" = {list(COUNTS)}\n')
    return file


def words(result: SeriesResult) -> list[str | None]:
    return [column.warning for column in result.document.columns]


def test_a_column_that_will_not_fit_is_warned_of_and_made(host: Callable[[int], None], tmp_path: Path) -> None:
    host(100)
    events: list[Event] = []
    progress = ProgressState()

    def watch(event: Event) -> None:
        events.append(event)
        progress.update(event)

    file = series_file(tmp_path)
    result = measure_series(file, output=tmp_path / "out", equipment=equipment(), on_event=watch)
    (estimate,) = result.document.memory
    assert estimate.bytes is not None and estimate.bytes_minimum is not None and estimate.bytes_maximum is not None
    assert estimate.bytes_minimum <= BYTES <= estimate.bytes_maximum and abs(estimate.bytes - BYTES) < 1
    assert [column.outcome for column in result.document.columns] == ["measured"] * 4
    first, second, third, last = words(result)
    assert (first, second, third) == (None, None, None) and last is not None
    assert "its 240,000 connections will not fit" in last and "0.102 GB were available" in last
    (warned,) = (event for event in events if isinstance(event, ColumnWarning))
    begin = next(event for event in events if isinstance(event, ColumnStarted) and event.number == 4)
    assert warned.number == 4 and events.index(begin) < events.index(warned)
    assert any("column 4 of 4" in line and "warning: its 240,000 connections" in line for line in progress.lines)
    text = terminal(result.document)
    assert "Memory of its host per connection, bytes" in text and "warning before it began" in text
    page = result.report_file.read_text()
    assert "estimated from the column with most connections" in page and "will not fit" in page


def test_a_host_whose_memory_changes_by_chance_has_no_estimate(host: Callable[[int], None], tmp_path: Path) -> None:
    host(200_000)
    result = measure_series(series_file(tmp_path), output=tmp_path / "out", equipment=equipment())
    (estimate,) = result.document.memory
    assert estimate.bytes is None and words(result) == [None] * 4
    text = terminal(result.document)
    assert "no estimate can be made" in text and "Memory of its host per connection" not in text


def test_a_warning_outlives_the_session(host: Callable[[int], None], tmp_path: Path) -> None:
    file, out = series_file(tmp_path), tmp_path / "out"
    result = measure_series(file, output=tmp_path / "whole", equipment=equipment())
    trials = [column.trials for column in result.document.columns]
    with pytest.raises(Interrupted):
        measure_series(file, output=out, equipment=equipment(), on_event=stop_after(sum(trials[:3]) + 1))
    resumed = resume_series(out, equipment=equipment())
    assert words(resumed)[:3] == [None] * 3 and words(resumed)[3] == words(result)[3] is not None
    assert words(rebuild_series(out)) == words(resumed)
