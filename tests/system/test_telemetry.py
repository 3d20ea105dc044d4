"""The gateway's host sampled beside trials on a real gateway in namespaces. Needs root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.beds import QUICK, OpenBed, netns_campaign, open_bed
from tests.system.machine import missing

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.steering import usable_cpus
from gatemark.results.store import ResultFolder
from gatemark.session import measure, open_result
from gatemark.stored import provenance_of
from gatemark.trial.record import TrialRecord
from gatemark.trial.telemetry import TelemetryFacts

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "nft", "conntrack", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"namespaces need {', '.join(MISSING)}"),
    pytest.mark.skipif(len(usable_cpus()) < 2, reason="a gateway with a CPU of its own needs two"),
]
SECOND = 10**9
BURN = """
import os, sys, time
open("/proc/self/comm", "w").write("gm-burner")
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    end = time.process_time() + 0.005
    while time.process_time() < end: pass
    time.sleep(0.005)
"""
OVERHEAD_SECONDS_MAX = 0.01
"""What reading the samples may add to a trial."""


def burner_ran_s(pid: int) -> float:
    """CPU time of a process as its scheduler counts it, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / SECOND


def idle_s(cpu: int) -> float:
    for line in Path("/proc/stat").read_text().splitlines():
        name, *columns = line.split()
        if name == f"cpu{cpu}":
            return (int(columns[3]) + int(columns[4])) / os.sysconf("SC_CLK_TCK")
    raise AssertionError(cpu)


def samplers() -> list[int]:
    """Processes of samplers in folders of test beds."""
    result = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"sampler" in words and any(b"gatemark-telemetry." in word for word in words):
            result.append(int(process.name))
    return result


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def sampled(record: TrialRecord) -> TelemetryFacts:
    assert record.telemetry is not None
    assert record.telemetry.reason is None, record.telemetry.reason
    return record.telemetry


@pytest.fixture
def bed() -> Iterator[OpenBed]:
    telemetry = {"interval": "200ms", "processes": ["gm-burner"], "commands": {"links": "ls /sys/class/net | wc -l"}}
    tables: dict[str, Any] = {
        "gateway": {"telemetry": telemetry},
        "trial": {**QUICK, "duration": "4s", "settle": "1s", "drain": "1s"},
    }
    with open_bed(netns_campaign("linux-router4", **tables)) as opened:
        yield opened


@pytest.fixture
def burner(bed: OpenBed) -> Iterator[int]:
    """A process in the gateway's enclosure that burns up to half of the time of the gateway's core; its number."""
    core = str(bed.bed.gateway_cores[0])
    inside = bed.bed._place.command(sys.executable, "-c", BURN, core)
    with subprocess.Popen(inside) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_for(lambda: bool(children.read_text().split()))
        pid = int(children.read_text().split()[0])
        wait_for(lambda: Path(f"/proc/{pid}/comm").read_text().strip() == "gm-burner")
        try:
            yield pid
        finally:
            os.kill(pid, signal.SIGKILL)


def test_a_process_and_the_core_that_it_burns_are_seen_as_they_are(bed: OpenBed, burner: int) -> None:
    """The truth is what the scheduler counts for the process and the kernel for the CPU, read by the test itself."""
    bed.trial(duration_ns=2 * SECOND)  # the sampler looks for new processes every tenth time
    core = bed.bed.gateway_cores[0]
    before = time.monotonic(), burner_ran_s(burner), idle_s(core)
    record = bed.trial(duration_ns=4 * SECOND)
    after = time.monotonic(), burner_ran_s(burner), idle_s(core)
    lasted, ran, idle = (late - early for early, late in zip(before, after, strict=True))
    facts = sampled(record)
    span = facts.span("sending")
    assert span is not None and span.covered_ns > 3 * SECOND, facts
    assert set(span.levels) >= {"busy", "busiest", f"cpu.{core}", "memory_available"}
    assert span.busiest_cpu == core
    shares = [
        level.mean for name in ("before", "sending", "after") if (level := facts.level(name, "process.gm-burner.cpu"))
    ]
    assert len(shares) == 3
    assert sum(shares) / 3 == pytest.approx(100 * ran / lasted, abs=8)
    busy = [level.mean for name in ("before", "sending", "after") if (level := facts.level(name, "busy"))]
    low, high = min(busy) - 8, max(busy) + 8
    assert low <= 100 * (1 - idle / lasted) <= high
    assert all(share <= busy_share + 8 for share, busy_share in zip(shares, busy, strict=True))
    links = facts.level("sending", "command.links")
    assert links is not None and links.minimum == links.maximum == 3  # lo and both ends
    assert facts.faults == ()


def test_a_trial_costs_no_more_for_it_and_samples_lie_where_frames_were(bed: OpenBed) -> None:
    record = bed.trial(duration_ns=2 * SECOND)
    facts = sampled(record)
    phases = sum(phase.duration_ns for phase in record.report.phases) / SECOND
    begin = time.monotonic()
    bed.bed.read_telemetry()
    assert time.monotonic() - begin < OVERHEAD_SECONDS_MAX
    assert record.seconds - phases < 0.3
    assert facts.uncertainty_ns < 0.05 * SECOND
    assert -1.2 * SECOND < facts.points[0].at_ns < 0 < facts.points[-1].at_ns < 3.5 * SECOND


def test_connections_and_memory_follow_the_table(tmp_path: Path) -> None:
    count = 50_000
    campaign = {
        "repetitions": 1,
        "gateway": {"telemetry": {"interval": "100ms", "required": True}, "table": {"size": "128k"}},
        "testbed": {"kind": "netns", "recipe": "nft-nat44"},
        "left": {"mtu": 1500},
        "right": {"mtu": 1500},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}},
        "trial": {**QUICK, "duration": "1s"},
        "validity": {"retries": 5, "lateness_max": "5s"},
        "connections": {"count": [count], "rate": 25_000},
        "throughput": {"maximum": 1000, "minimum": 500, "resolution": 500, "search_duration": "1s"},
    }
    result = measure(campaign_from_dict(campaign), output=tmp_path / "out")
    (run,) = result.runs
    levels = {(level.phase, level.series): level.values for level in run.telemetry}
    (filling,), (full,) = levels["test phase 1", "connections"], levels["measured", "connections"]
    assert full == count
    assert filling is not None and 0.5 * count < filling <= count
    provenance = provenance_of(ResultFolder.open(tmp_path / "out"))
    assert provenance is not None and provenance.last.sampling is not None
    cost = provenance.last.sampling.cpu_ns
    assert cost is not None and 0 < cost < 0.05 * SECOND
    text = (tmp_path / "out" / "telemetry" / "trial-000001.csv").read_text().splitlines()
    column = text[0].split(",").index("connections")
    counts = [int(float(cell)) for line in text[1:] if line.startswith("1,") and (cell := line.split(",")[column])]
    assert counts == sorted(counts) and counts[-1] <= count, "they only grow while they are established"
    assert "What the gateway&#39;s host did" in (tmp_path / "out" / "report.html").read_text()


CAMPAIGN = """
name = "killed"
repetitions = 1
[testbed]
kind = "netns"
recipe = "linux-router4"
[left]
mtu = 1500
[right]
mtu = 1500
[traffic]
frame_sizes = {family = "ipv4", octets = [64]}
[trial]
duration = "2s"
settle = "0s"
learn = "100ms"
drain = "200ms"
rest = "0s"
[validity]
lateness_max = "5s"
[frame_loss]
rates = [1000, 2000]
"""


def test_nothing_is_left_after_kill_9_and_the_rest_is_resumed(tmp_path: Path) -> None:
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    file.write_text(CAMPAIGN)
    before = set(samplers())
    words = [sys.executable, "-m", "gatemark.cli.main", "run"]
    with subprocess.Popen([*words, str(file), "--output", str(out)], stdout=subprocess.DEVNULL) as tester:
        try:
            wait_for(lambda: (out / "trials.jsonl").exists() and (out / "trials.jsonl").stat().st_size > 0, 60)
            assert set(samplers()) - before
        finally:
            tester.kill()
    wait_for(lambda: not set(samplers()) - before)
    done = subprocess.run([*words, "--resume", str(out)], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = open_result(out).document.telemetry
    assert told is not None and told.trials == told.sampled >= 2
    lines = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert all("telemetry" in line for line in lines)
    wait_for(lambda: not set(samplers()) - before)
    assert not list(Path("/run/gatemark").glob("*/gatemark-telemetry.*")) or before
