"""Progress is told in plain lines where no terminal is, and shown live where one is."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.campaign.events import Event, PhaseStarted, RepetitionFinished, RunFinished, TableClearing, TrialFinished
from gatemark.campaign.plan import Plan
from gatemark.campaign.progress import ProgressState, live_view, progress_display
from gatemark.session import measure

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

WriteCampaign = Callable[..., Path]
DEVICE = SimulatedDevice(capacity_forward=412_345, hiccup_every=9)


def test_plain_lines_one_per_trial(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    out = io.StringIO()
    with progress_display(Console(file=out, force_terminal=False, width=200)) as watcher:
        result = measure(
            write_campaign(),
            output=tmp_path / "out",
            equipment=simulated_equipment(DEVICE),
            on_event=watcher.on_event,
            on_plan=watcher.on_plan,
        )
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("run 1 of 1: throughput, 64-octet IPv4 / 84-octet IPv6, bidirectional")
    assert sum(line.startswith("  trial ") for line in lines) == result.document.validity.trials
    assert sum(": invalid (" in line for line in lines) == result.document.validity.invalid
    assert lines[-1] == "run 1 of 1: done, limited by gateway"


def test_the_live_view_shows_run_trial_bounds_and_time(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    clock = iter(float(second) for second in range(1_000_000))
    state = ProgressState(now=lambda: next(clock))
    views: list[str] = []

    def on_plan(_plan: Plan, expected_ns: tuple[int, ...]) -> None:
        state.expected_ns = expected_ns

    def on_event(event: Event) -> None:
        state.update(event)
        console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
        with console.capture() as captured:
            console.print(live_view(state))
        views.append(captured.get())

    measure(
        write_campaign(octets="[64, 128]", repetitions=2),
        output=tmp_path / "out",
        equipment=simulated_equipment(DEVICE),
        on_event=on_event,
        on_plan=on_plan,
    )
    middle = views[len(views) // 2]
    assert "of 2" in middle
    assert "frames/s for" in middle
    assert "bounds" in middle
    assert "left" in middle
    assert any("about 0:" in view or "about 1:" in view or "about 2:" in view for view in views)
    assert state.left_s == 0


def times_left(file: Path, output: Path, *, alike: bool) -> tuple[list[float], list[float]]:
    """Seconds that were said to be left at the end of each run but the last, and that then were.

    The clock goes on by what each trial sends and waits. `alike`: all runs are expected to take the same time.
    """
    at_s = 0.0
    state = ProgressState(now=lambda: at_s)
    told: list[tuple[float | None, float]] = []

    def on_plan(_plan: Plan, expected_ns: tuple[int, ...]) -> None:
        state.expected_ns = tuple(1 for _ in expected_ns) if alike else expected_ns

    def on_event(event: Event) -> None:
        nonlocal at_s
        if isinstance(event, TrialFinished):
            at_s += sum(phase.duration_ns for phase in event.record.report.phases) / 10**9
        state.update(event)
        if isinstance(event, RunFinished):
            told.append((state.left_s, at_s))

    measure(file, output=output, equipment=simulated_equipment(DEVICE), on_event=on_event, on_plan=on_plan)
    assert told.pop()[0] == 0
    assert len(told) == 3
    return [said or 0.0 for said, _ in told], [at_s - then_s for _, then_s in told]


def test_the_time_left_knows_which_runs_are_long(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    """Four runs: two searches with short trials, then twice 50 trials of 2 s."""
    file = write_campaign(octets="[64, 128]", frame_loss=True)
    rates = ", ".join(f'"{rate}k"' for rate in range(20, 1020, 20))
    file.write_text(re.sub(r"(?m)^rates = .*$", f"rates = [{rates}]", file.read_text()))
    said, were = times_left(file, tmp_path / "by length", alike=False)
    said_alike, were_alike = times_left(file, tmp_path / "alike", alike=True)
    assert were == were_alike
    assert said == pytest.approx(were, rel=0.15)
    assert said_alike[0] < 0.2 * were[0]
    assert said_alike[1] < 0.2 * were[1]


def test_half_of_the_repetitions_is_half_of_a_run(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    events: list[Event] = []
    file = write_campaign(octets="[64, 128]", repetitions=2)
    measure(file, output=tmp_path / "out", equipment=simulated_equipment(DEVICE), on_event=events.append)
    first = next(number for number, event in enumerate(events) if isinstance(event, RepetitionFinished))
    at_s = 0.0
    state = ProgressState(now=lambda: at_s, expected_ns=(10, 30))
    for event in events[:first]:
        state.update(event)
    at_s = 6.0
    state.update(events[first])
    assert state.left_s == 6 * 35 / 5


def test_a_run_that_was_refused_says_nothing_of_the_pace(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    events: list[Event] = []
    equipment = simulated_equipment(DEVICE)
    measure(write_campaign(octets="[64, 128]"), output=tmp_path / "out", equipment=equipment, on_event=events.append)
    (finished, later) = (event for event in events if isinstance(event, RunFinished))
    at_s = 0.0
    state = ProgressState(now=lambda: at_s, expected_ns=(10, 1000, 10))
    for event in events[: events.index(finished)]:
        state.update(event)
    at_s = 7.0
    state.update(finished)
    state.update(RunFinished(run=later.run, result=later.result.model_copy(update={"trials": 0, "refused": "no rate"})))
    assert state.left_s == 7


def test_a_gateway_that_deletes_for_long_is_said_to_be_waited_for() -> None:
    out = io.StringIO()
    with progress_display(Console(file=out, force_terminal=False, width=200), remind_s=0.05) as watcher:
        watcher.on_event(TableClearing(trial_number=1))
        await_lines(out, 2)
        phase = PhaseStarted(trial_number=1, phase="phase 1", connections=10, per_second=10, attempt=0)
        watcher.on_event(phase)
        told = len(out.getvalue().splitlines())
        time.sleep(0.2)
        assert len(out.getvalue().splitlines()) <= told + 1  # that it may just have been writing
        watcher.on_event(TableClearing(trial_number=2))
        await_lines(out, told + 2)
    words = r"  waiting for the gateway: it deletes its connections, \d+:\d\d so far"
    assert all(re.fullmatch(words, line) for line in out.getvalue().splitlines())


def await_lines(out: io.StringIO, count: int) -> None:
    until = time.monotonic() + 60
    while out.getvalue().count("\n") < count:
        assert time.monotonic() < until, "no reminder in time"
        time.sleep(0.01)


def test_the_live_view_shows_how_long_the_gateway_deletes() -> None:
    clock = iter(float(second) for second in range(0, 10_000, 100))
    state = ProgressState(now=lambda: next(clock))
    state.update(PhaseStarted(trial_number=1, phase="tear-down", connections=10, per_second=None, attempt=0))
    words = state.waiting_words
    assert words is not None
    assert words.startswith("it deletes its connections, 3:20")
    state.update(PhaseStarted(trial_number=1, phase="phase 2", connections=10, per_second=10, attempt=0))
    assert state.waiting_words is None
