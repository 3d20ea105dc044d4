"""Progress is told in plain lines where no terminal is, and shown live where one is."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from gatemark.campaign.events import Event, PhaseStarted, TableClearing
from gatemark.campaign.plan import Plan
from gatemark.campaign.progress import ProgressState, live_view, progress_display
from gatemark.engine.simulated import SimulatedDevice
from gatemark.session import measure
from gatemark.simulated import simulated_equipment

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

    def on_plan(plan: Plan) -> None:
        state.runs_planned = len(plan.runs)

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


def test_a_gateway_that_deletes_for_long_is_said_to_be_waited_for() -> None:
    out = io.StringIO()
    with progress_display(Console(file=out, force_terminal=False, width=200), remind_s=0.05) as watcher:
        watcher.on_event(TableClearing(trial_number=1))
        time.sleep(0.3)
        phase = PhaseStarted(trial_number=1, phase="phase 1", connections=10, per_second=10, attempt=0)
        watcher.on_event(phase)
        time.sleep(0.1)
        told = len(out.getvalue().splitlines())
        time.sleep(0.2)
    lines = out.getvalue().splitlines()
    assert 2 <= len(lines) == told
    assert set(lines) == {"  waits for the gateway: it deletes its connections, 0:00 so far"}


def test_the_live_view_shows_how_long_the_gateway_deletes() -> None:
    clock = iter(float(second) for second in range(0, 10_000, 100))
    state = ProgressState(now=lambda: next(clock))
    state.update(PhaseStarted(trial_number=1, phase="tear-down", connections=10, per_second=None, attempt=0))
    words = state.waiting_words
    assert words is not None
    assert words.startswith("it deletes its connections, 3:20")
    state.update(PhaseStarted(trial_number=1, phase="phase 2", connections=10, per_second=10, attempt=0))
    assert state.waiting_words is None
