"""A Tester starved on purpose: trials are invalid or Tester-limited, and never become a lower figure of the gateway."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journals import read_journal
from tests.system.beds import netns_campaign, open_bed
from tests.system.machine import Ended, gatemark, missing, nothing_compared

from gatemark.calibrate.disturber import Disturber
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import DirectionResult, TrialReport

MISSING = missing("taskset", "chrt")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
    pytest.mark.alone,
]
MISSING_FOR_NETNS = missing("ip", "ethtool", "setpriv", root=True)
MISSING_FOR_POLICER = missing("ip", "ethtool", "setpriv", "nft", root=True)
TRIALS = 5

BUSY_PROCESSES = 2
SPIN = "while True: pass"

LOOPBACK = """
repetitions = 1
[gateway]
technology = "router44"
[testbed]
kind = "loopback"
cores = [{core}]
[left]
ring_frames = 32
ipv4 = {{address = "198.18.0.2"}}
[right]
ring_frames = 32
ipv4 = {{address = "198.19.0.2"}}
[traffic]
direction = {direction}
frame_sizes = {{family = "ipv4", octets = [64]}}
"""
ROUTER = """
repetitions = 1
[testbed]
kind = "netns"
recipe = "linux-router4"
cores = [{core}]
[left]
mtu = 1500
ring_frames = {ring_frames}
[right]
mtu = 1500
ring_frames = {ring_frames}
[traffic]
frame_sizes = {{family = "ipv4", octets = [64]}}
"""
SEARCH = """
[trial]
duration = "100ms"
settle = "0s"
learn = "50ms"
drain = "300ms"
rest = "0s"
[validity]
retries = 0
[throughput]
maximum = "{maximum}"
minimum = "{resolution}"
resolution = "{resolution}"
search = "{search}"
search_duration = "100ms"
"""


STALL_S, STALL_EVERY_S, STALL_PRIORITY = 0.0025, 0.14, 50
"""The Tester's worker is kept from its CPU about seven times a second."""
POLICED = "limit rate over 14794/second burst 20 packets drop"
"""A token bucket that holds 1.4 ms of its rate."""
POLICED_LOAD = 14_000


@contextlib.contextmanager
def busy(core: int) -> Iterator[None]:
    """Load a CPU so that the Tester's worker is kept from it for milliseconds.

    As root in the class that the worker has: with round robin each gets its turn, one after the other.
    """
    same_class = ["chrt", "--rr", "1"] if os.geteuid() == 0 else []
    command = [*same_class, "taskset", "--cpu-list", str(core), sys.executable, "-c", SPIN]
    spinning = [subprocess.Popen(command) for _ in range(BUSY_PROCESSES)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def run_campaign(tmp_path: Path, text: str) -> tuple[Ended, tuple[TrialRecord, ...]]:
    """Run a campaign through the command line; return how it ended and its trials."""
    file, output = tmp_path / "starved.toml", tmp_path / "result"
    file.write_text(text)
    ended = gatemark("run", file, "--output", output, "--json")
    assert ended.status in (0, 1), ended.words
    assert "runs" in ended.document, ended.output
    return ended, read_journal(output / "trials.jsonl")


def gateway_drops(report: TrialReport) -> int:
    """Return the frames for which the gateway's input queues had no room."""
    return sum(port.peer_queue_drops for port in report.ports.values())


def assert_the_gateway_is_not_blamed(ended: Ended, trials: tuple[TrialRecord, ...]) -> None:
    """Check that every load that failed failed by frames that the gateway is known to have dropped."""
    for trial in trials:
        if trial.verdict is None:
            assert trial.validity.reasons
        elif not trial.verdict.passed:
            undelivered = sum(direction.undelivered for direction in trial.report.directions)
            assert undelivered <= gateway_drops(trial.report), trial
    (run,) = ended.document["runs"]
    if not any(trial.verdict is not None and not trial.verdict.passed for trial in trials):
        assert run["limited_by"] in ("tester", "maximum"), run
    for repetition in run["repetitions"]:
        assert repetition["upper_bound"] is None or any(
            trial.verdict is not None
            and not trial.verdict.passed
            and trial.order.step.frames_per_second == repetition["upper_bound"]
            for trial in trials
        )


@pytest.mark.endure
def test_loop_back_on_a_loaded_cpu_is_limited_by_the_tester(tmp_path: Path, endures: bool) -> None:
    """Without a gateway none can be at fault: at 10 million frames/s the Tester is, and says so."""
    core = usable_cpus()[-1]
    text = LOOPBACK.format(core=core, direction='"bidirectional"')
    for search in ("binary", "mlrsearch") if endures else ("binary",):
        folder = tmp_path / search
        folder.mkdir()
        with busy(core):
            ended, trials = run_campaign(folder, text + SEARCH.format(maximum="10M", resolution="3M", search=search))
        (run,) = ended.document["runs"]
        assert run["limited_by"] == "tester"
        assert all(trial.verdict is None or trial.verdict.passed for trial in trials)
        assert all(repetition["upper_bound"] is None for repetition in run["repetitions"])
        assert ended.status == 1
        assert_the_gateway_is_not_blamed(ended, trials)


@pytest.mark.skipif(bool(MISSING_FOR_NETNS), reason=f"needs {', '.join(MISSING_FOR_NETNS)}")
@pytest.mark.endure
def test_router_measured_by_a_starved_tester_is_not_blamed(tmp_path: Path, endures: bool) -> None:
    (core,) = plan_cores(usable_cpus()).tester
    for ring_frames in (32, 4096) if endures else (32,):
        folder = tmp_path / str(ring_frames)
        folder.mkdir()
        text = ROUTER.format(core=core, ring_frames=ring_frames)
        search = SEARCH.format(maximum="100k", resolution="30k", search="binary")
        with busy(core):
            ended, trials = run_campaign(folder, text + search)
        assert any(not trial.validity.valid for trial in trials)
        assert_the_gateway_is_not_blamed(ended, trials)


def is_behind_a_late_burst(index: int, way: DirectionResult) -> bool:
    return any(burst.index <= index < burst.index + burst.frames for burst in way.late_bursts)


@pytest.mark.skipif(bool(MISSING_FOR_POLICER), reason=f"needs {', '.join(MISSING_FOR_POLICER)}")
def test_what_a_policer_loses_behind_late_bursts_is_the_testers() -> None:
    """The load is below the policer's rate: it loses what was sent at once, because it became due during a stall."""
    campaign = netns_campaign(
        "linux-router4",
        traffic={"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": 64}},
        validity={"retries": 0, "lateness_max": "5ms"},
    )
    with open_bed(campaign) as bed, bed.rules(POLICED, hook="forward"):
        core = bed.bed.placement.tester_cores[0]
        with Disturber(core, busy_s=STALL_S, idle_s=STALL_EVERY_S, priority=STALL_PRIORITY) as stalls:
            stalls.start()
            records = [bed.trial(frames_per_second=POLICED_LOAD, duration_ns=10**9) for _ in range(TRIALS)]
    compared = 0
    for record in records:
        if record.verdict is None or record.verdict.passed:
            continue
        (way,) = record.report.directions
        assert all(burst.lateness_ns <= way.lateness_max_ns for burst in way.late_bursts)
        if all(is_behind_a_late_burst(run.index, way) for run in way.longest_loss_runs):
            assert record.suspicion is not None and record.suspicion.whose == "Tester", record.suspicion
            assert "that the Tester sent" in record.suspicion.reason and not record.is_decisive
            compared += 1
    if not compared:
        nothing_compared("no valid trial lost frames behind late bursts alone")
