"""A gateway whose CPU others take away: its losses are suspect and repeated, and blame nobody. Needs root."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.system.beds import QUICK, OpenBed, netns_campaign, open_bed
from tests.system.machine import missing, nothing_compared, own_cpu, sees_kernel_threads

from gatemark.calibrate.disturber import Disturber
from gatemark.campaign.events import Event, TrialFinished, TrialStarted
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.gateway_host import threads_of
from gatemark.procedures.frame_loss.result import FrameLossResult
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "nft", "tayga", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"namespaces need {', '.join(MISSING)}"),
    own_cpu,
    pytest.mark.skipif(not sees_kernel_threads(), reason="a container: the gateway's host is not read"),
]
RECIPE = "tayga-siit64"
"""A gateway that is a process: it stands still while another one has its CPU."""
LOAD = 20_000
"""Each way. In 30 ms twice as many frames arrive as the 500 that its queue holds."""
DURATION_NS = 500_000_000
ATTEMPTS = 8
STOPS_DURATION_NS = 4_000_000_000
STANDS_S, STANDS_EVERY_S = 0.03, 1.3
"""The gateway stands still twice at least in such a trial: never in one run of losses, which looks like a hold-up."""
CONTINUED = 20
"""nsenter stops itself when it sees that the program in it was stopped, which may be after both were continued."""
SLICE_S, SLICE_EVERY_S = 0.001, 0.06
"""So does a program have the CPU before everything else: less than 2 % of it."""
DISTURBED = 2
"""Attempts at a load during which another program takes the CPU away."""
READINGS = 200
COUNTER_FILES = 8
"""Of connection tracking, both neighbour tables, input queues, IPv4 (2), IPv6 and interfaces."""


def campaign_of(*, duration_ns: int) -> Campaign:
    tables = {
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}},
        "trial": {**QUICK, "duration": f"{duration_ns}ns"},
        "frame_loss": {"rates": [LOAD]},
        "validity": {"retries": 10, "lateness_max": "5s", "suspect_retries": ATTEMPTS},
        "repetitions": 1,
    }
    return netns_campaign(RECIPE, **tables)


@pytest.fixture
def bed() -> Iterator[OpenBed]:
    with open_bed(campaign_of(duration_ns=DURATION_NS)) as opened:
        yield opened


@pytest.fixture
def disturber(bed: OpenBed) -> Iterator[Disturber]:
    with Disturber(bed.bed.placement.gateway_cores[0]) as opened:
        yield opened


def asks_for_real_time() -> None:
    """Skip on a machine that gives no real time to a program: nothing takes the gateway's CPU there for sure."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        pytest.skip("this machine lets no program run in real time")


def takes_the_cpu(disturber: Disturber) -> None:
    """Take it away before everything else."""
    asks_for_real_time()
    disturber.start()


def is_suspect_of_the_host(record: TrialRecord) -> bool:
    """Whether the host is what may have failed, not the Tester, which is late on a busy machine."""
    return record.suspicion is not None and record.suspicion.whose == "host"


def failed_trial(bed: OpenBed) -> TrialRecord | None:
    """Return a valid trial, which must have failed; None if the Tester says of each that it did not do its job."""
    for _ in range(ATTEMPTS):
        record = bed.trial(frames_per_second=LOAD, duration_ns=DURATION_NS)
        if record.validity.valid:
            assert record.verdict is not None and not record.verdict.passed, record
            return record
        assert record.validity.reasons and record.verdict is None and not record.is_decisive
    return None


def test_a_loss_while_others_have_the_cpu_is_suspect(bed: OpenBed, disturber: Disturber) -> None:
    takes_the_cpu(disturber)
    record = failed_trial(bed)
    if record is None:
        return
    assert record.host is not None and record.host.held_up_ns > 10_000_000
    assert record.suspicion is not None, record.verdict
    assert not record.is_decisive


def test_a_campaign_repeats_it_and_blames_nobody_for_it(bed: OpenBed, disturber: Disturber, tmp_path: Path) -> None:
    """The disturbance ends after two attempts; the machine may be busy by itself, which must not look like loss."""

    def watch(event: Event) -> None:
        if isinstance(event, TrialStarted) and event.order.attempt < DISTURBED:
            takes_the_cpu(disturber)
        if isinstance(event, TrialFinished):
            disturber.stop()

    campaign = bed.tester.campaign
    with Journal(tmp_path / "trials.jsonl") as journal:
        (result,) = run_campaign(
            campaign, plan_of(campaign), bed.tester.engine, journal, on_event=watch, can=bed.bed.can
        )
    records = read_journal(tmp_path / "trials.jsonl")
    assert isinstance(result, FrameLossResult)
    assert result.suspect_trials == sum(is_suspect_of_the_host(record) for record in records)
    for record in records[:DISTURBED]:
        assert not record.is_decisive and record.reasons, record
    for before, record in pairwise(records):
        is_watched = record.host is not None and record.host.hold_ups is not None
        assert is_watched or before.suspicion is None, "a failure was suspect, and its repetition was not watched"
    (point,) = result.points
    if result.limited_by in NOT_THE_GATEWAY:
        assert not any(record.is_decisive for record in records)
        assert (point.repetitions, point.tester_limited, point.losses) == (0, 1, ())
        assert [quantity.value for quantity in result.own_quantities()] == [None]
        return
    last = records[-1]
    assert last.host is not None and last.report is not None
    ways = [(way.longest_loss_runs, way.late_bursts) for way in last.report.directions]
    assert result.limited_by == "maximum", f"{[each.reasons for each in records]} {ways} {last.host.hold_ups}"
    assert [loss.undelivered for loss in point.losses] == [(0,), (0,)]


@contextlib.contextmanager
def stands_still(bed: OpenBed) -> Iterator[None]:
    """Let the gateway stop by itself now and then, its process that is."""
    ended = threading.Event()

    def send(number: signal.Signals) -> None:
        for thread_folder in threads_of(bed.bed.gateway.pids()):  # those that it has started too
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(int(thread_folder.name), number)

    def stop() -> None:
        while not ended.wait(STANDS_EVERY_S):
            send(signal.SIGSTOP)
            time.sleep(STANDS_S)
            send(signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for _ in range(CONTINUED):
            send(signal.SIGCONT)
            time.sleep(0.01)


def test_a_gateway_that_stands_still_by_itself_is_not_excused_by_slices_of_its_cpu(tmp_path: Path) -> None:
    """Added up over the trial, the slices of others are longer than what the queue does not hold of the stops."""
    asks_for_real_time()
    campaign = campaign_of(duration_ns=STOPS_DURATION_NS)
    with (
        open_bed(campaign) as bed,
        Disturber(bed.bed.placement.gateway_cores[0], busy_s=SLICE_S, idle_s=SLICE_EVERY_S) as slices,
        stands_still(bed),
    ):
        slices.start()
        campaign = bed.tester.campaign
        with Journal(tmp_path / "trials.jsonl") as journal:
            (result,) = run_campaign(campaign, plan_of(campaign), bed.tester.engine, journal, can=bed.bed.can)
    records = read_journal(tmp_path / "trials.jsonl")
    assert isinstance(result, FrameLossResult)
    for record in records:
        if record.host is not None and record.host.hold_ups is not None and is_suspect_of_the_host(record):
            assert record.suspicion is not None
            is_long = max(hold_up.held_up_ns for hold_up in record.host.hold_ups) > record.host.fills_ns(2 * LOAD)
            # A busy machine may hold it up for less, at the very moments of the losses.
            assert is_long or "that was when frames were lost" in record.suspicion.reason
    if result.limited_by in NOT_THE_GATEWAY:
        nothing_compared("the host was held up whenever the gateway stood still, or no trial was valid")
        return
    last = records[-1]
    assert last.is_decisive and last.verdict is not None
    if last.verdict.passed:
        nothing_compared("the program that stops the gateway had no CPU itself")
        return
    assert min(min(loss.undelivered) for loss in result.points[0].losses) > 0


def test_a_gateway_that_is_too_slow_fails_whatever_others_do(bed: OpenBed) -> None:
    with bed.rules("limit rate over 1000/second drop"):
        record = failed_trial(bed)
    assert record is None or record.is_decisive


def test_reading_the_host_costs_little(bed: OpenBed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is opened for the first reading alone, and read to its end with two calls, which is all that is asked."""
    host = bed.bed.can.host
    assert host is not None
    first = host.read()
    assert first is not None
    opened, read = os.open, os.pread
    calls = {"open": 0, "pread": 0}

    def counted_open(*arguments: Any, **named: Any) -> int:
        calls["open"] += 1
        return opened(*arguments, **named)

    def counted_read(*arguments: Any) -> bytes:
        calls["pread"] += 1
        return read(*arguments)

    monkeypatch.setattr(os, "open", counted_open)
    monkeypatch.setattr(os, "pread", counted_read)
    for _ in range(READINGS):
        assert host.read() is not None
    monkeypatch.undo()
    files = 2 + 2 * len(first.threads) + COUNTER_FILES  # /proc/stat and the accounts of the CPUs; two for each thread
    assert calls["open"] == 0
    assert 0 < calls["pread"] <= (2 * files + 1) * READINGS  # /proc/stat of many CPUs takes another one
