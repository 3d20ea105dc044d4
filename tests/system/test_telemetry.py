"""The gateway's host sampled beside trials on a real gateway in namespaces. Needs root."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pytest
from tests.system.beds import QUICK, OpenBed, netns_campaign, open_bed
from tests.system.machine import missing, nothing_compared, own_cpu

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.base import TelemetryReading
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.search import RateResult
from gatemark.results.store import ResultFolder
from gatemark.session import measure
from gatemark.stored import open_result, provenance_of
from gatemark.trial.record import TrialRecord
from gatemark.trial.telemetry import TelemetryFacts

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "nft", "conntrack", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"namespaces need {', '.join(MISSING)}"),
    own_cpu,
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
STEP_NS = SECOND // os.sysconf("SC_CLK_TCK")
LAG_NS = 3 * STEP_NS
"""By so much may what the kernel shows of CPU times be old: it adds the time since its last tick at the next one, and
rounds down."""
CSV_ERROR_S = 0.15
"""How far a sample may lie from the time in the file: half of the longest one that counts, a step and the clocks."""
FORKS_OF_A_SAMPLE = 30
"""One sample costs less than so many programs that do nothing."""
NOTHINGS = "left=50; while [ $left -gt 0 ]; do /bin/true; left=$((left - 1)); done"


def burner_ran_ns(pid: int) -> int:
    """CPU time of a process as its scheduler counts it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def idle_ns(cpu: int) -> int:
    for line in Path("/proc/stat").read_text().splitlines():
        name, *columns = line.split()
        if name == f"cpu{cpu}":
            return (int(columns[3]) + int(columns[4])) * STEP_NS
    raise AssertionError(cpu)


class Watched:
    """A counter of the kernel that only grows, read again and again beside the sampler. A context manager.

    If a thread of ours is late, it knows less of a moment, but nothing wrong.
    """

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        self._readings: list[tuple[int, int, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._ended.is_set():
            begin_ns = time.monotonic_ns()
            value = self._read()
            self._readings.append((begin_ns, value, time.monotonic_ns()))
            self._ended.wait(0.01)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def between(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """Return the least and the most that it may have shown to somebody who read it between these moments."""
        before = [value for _, value, ended in self._readings if ended <= begin_ns]
        after = [value for begun, value, _ in self._readings if begun >= end_ns]
        return (before[-1] if before else 0) - LAG_NS, (after[0] if after else end_ns) + LAG_NS


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


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def sampled(record: TrialRecord) -> TelemetryFacts | None:
    """Return what was sampled. On a busy machine samples may be too slow or too few, which is told, with no figure."""
    facts = record.telemetry
    assert facts is not None
    if facts.reason is None:
        return facts
    assert facts.samples < 2 and facts.spans == () and facts.points == (), facts
    nothing_compared("no samples")
    return None


@pytest.fixture
def bed() -> Iterator[OpenBed]:
    telemetry = {"interval": "100ms", "processes": ["gm-burner"], "commands": {"links": "ls /sys/class/net | wc -l"}}
    tables: dict[str, Any] = {
        "gateway": {"telemetry": telemetry},
        "trial": {**QUICK, "settle": "500ms", "drain": "500ms"},
    }
    with open_bed(netns_campaign("linux-router4", **tables)) as opened:
        yield opened


@pytest.fixture
def burner(bed: OpenBed) -> Iterator[int]:
    """A process in the gateway's enclosure that burns up to half of the time of the gateway's core; its number."""
    core = str(bed.bed.placement.gateway_cores[0])
    inside = bed.bed.kernel.places[0].command(sys.executable, "-c", BURN, core)
    with subprocess.Popen(inside) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_for(lambda: bool(children.read_text().split()))
        pid = int(children.read_text().split()[0])
        wait_for(lambda: Path(f"/proc/{pid}/comm").read_text().strip() == "gm-burner")
        try:
            yield pid
        finally:
            os.kill(pid, signal.SIGKILL)


def read_by_the_sampler(bed: OpenBed, monkeypatch: pytest.MonkeyPatch) -> list[TelemetryReading]:
    """Return a list that gets what the sampler says after each trial."""
    readings: list[TelemetryReading] = []
    sampler = bed.bed.can.telemetry
    assert sampler is not None
    read = sampler.read

    def kept() -> TelemetryReading:
        readings.append(read())
        return readings[-1]

    monkeypatch.setattr(sampler, "read", kept)
    return readings


def test_a_process_and_the_core_that_it_burns_are_seen_as_they_are(
    bed: OpenBed, burner: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truth is what the scheduler counts for the process and the kernel for the CPU, read by the test itself."""
    core, readings = bed.bed.placement.gateway_cores[0], read_by_the_sampler(bed, monkeypatch)
    with Watched(lambda: burner_ran_ns(burner)) as ran, Watched(lambda: idle_ns(core)) as idle:
        before_ns = time.monotonic_ns()
        record = bed.trial(duration_ns=2 * SECOND)
        slack_ns = time.monotonic_ns() - before_ns - sum(phase.duration_ns for phase in record.report.phases)
    (reading,) = readings
    for sample in reading.samples:
        error_ns = sample.error_ns + reading.uncertainty_ns
        moment = sample.at_ns - error_ns, sample.at_ns + error_ns
        least, most = idle.between(*moment)
        assert least <= sample.cpus[core] <= most
        for process in sample.processes.values():
            least, most = ran.between(*moment)
            assert least <= process.ran_ns <= most
    facts = sampled(record)
    if facts is None:
        return
    shares = burner_shares(reading, facts)
    span = facts.span("sending")
    sending_ns = next(phase.duration_ns for phase in record.report.phases if phase.phase == "send")
    covered_ns = sum(
        later.at_ns - earlier.at_ns
        for earlier, later in pairwise(facts.points)
        if f"cpu.{core}" in later.values
        and earlier.at_ns >= slack_ns + facts.uncertainty_ns
        and later.at_ns + facts.uncertainty_ns <= sending_ns
    )
    if span is None:
        assert covered_ns == 0
        return
    assert span.covered_ns >= covered_ns, "no time between samples is left out that surely lies in the sending time"
    assert set(span.levels) >= {"busy", "busiest", f"cpu.{core}", "memory_available"}
    assert span.busiest_cpu == core
    level = facts.level("sending", "process.gm-burner.cpu")
    if level is not None:
        assert min(shares) - 0.01 <= level.mean <= max(shares) + 0.01
    links = facts.level("sending", "command.links")
    assert links is not None and links.minimum == links.maximum == 3  # lo and both ends
    assert facts.faults == ()


def burner_shares(reading: TelemetryReading, facts: TelemetryFacts) -> list[float]:
    """Check the share of the burner in each time between two samples; return all of them, 0 if there is none."""
    shares = [0.0]
    ran_ns = {
        sample.at_ns: process.ran_ns for sample in reading.samples for process in sample.processes.values()
    }  # fmt: skip
    times = sorted(ran_ns)
    told = [point.values["process.gm-burner.cpu"] for point in facts.points if "process.gm-burner.cpu" in point.values]
    computed = [100 * (ran_ns[end] - ran_ns[begin]) / (end - begin) for begin, end in pairwise(times)]
    for share in told:
        assert any(share == pytest.approx(right, abs=0.01) for right in computed), (share, computed)
    assert len(told) <= len(computed)
    return shares + told


def test_a_trial_costs_no_more_for_it_and_samples_lie_where_frames_were(
    bed: OpenBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No program is started for it once the sampler runs, and nothing is waited for."""
    bed.trial()  # which starts the sampler
    calls = {"Popen": 0, "sleep": 0}
    started, slept = subprocess.Popen.__init__, time.sleep

    def counted_start(*arguments: Any, **named: Any) -> None:
        calls["Popen"] += 1
        started(*arguments, **named)

    def counted_sleep(seconds: float) -> None:
        calls["sleep"] += 1
        slept(seconds)

    monkeypatch.setattr(subprocess.Popen, "__init__", counted_start)
    monkeypatch.setattr(time, "sleep", counted_sleep)
    begin_ns = time.monotonic_ns()
    record = bed.trial()
    lasted_ns = time.monotonic_ns() - begin_ns
    assert bed.bed.can.telemetry is not None
    bed.bed.can.telemetry.read()
    monkeypatch.undo()
    assert calls == {"Popen": 0, "sleep": 0}
    facts = sampled(record)
    if facts is None:
        return
    assert facts.uncertainty_ns <= 2 * STEP_NS, "the samples are of this machine's clock"
    phases = {phase.phase: phase.duration_ns for phase in record.report.phases}
    before_ns = sum(phases[name] for name in list(phases)[: list(phases).index("send")])
    slack_ns = lasted_ns - sum(phases.values()) + facts.uncertainty_ns
    assert -before_ns - slack_ns <= facts.points[0].at_ns < 0
    assert phases["send"] < facts.points[-1].at_ns <= sum(phases.values()) - before_ns + slack_ns


def test_connections_and_memory_follow_the_table(tmp_path: Path) -> None:
    count, rate = 25_000, 25_000
    campaign = {
        "repetitions": 1,
        "gateway": {"telemetry": {"interval": "100ms", "required": True}, "table": {"size": "128k"}},
        "testbed": {"kind": "netns", "recipe": "nft-nat44"},
        "left": {"mtu": 1500},
        "right": {"mtu": 1500},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}},
        "trial": {**QUICK, "duration": "1s"},
        "validity": {"retries": 5, "lateness_max": "5s"},
        "connections": {"count": [count], "rate": rate},
        "throughput": {"maximum": 1000, "minimum": 500, "resolution": 500, "search_duration": "1s"},
    }
    result = measure(campaign_from_dict(campaign), output=tmp_path / "out")
    (run,) = result.runs
    assert isinstance(run, RateResult)
    levels = {(level.phase, level.series): level.values for level in run.telemetry}
    provenance = provenance_of(ResultFolder.open(tmp_path / "out"))
    assert provenance is not None and provenance.last.sampling is not None
    cost = provenance.last.sampling.cpu_ns
    assert cost is not None and 0 < cost < FORKS_OF_A_SAMPLE * nothing_costs_ns()
    assert "What the gateway&#39;s host did" in (tmp_path / "out" / "report.html").read_text()
    if run.lower_bounds == (0,):  # no load passed of which levels could be told
        assert run.limited_by in NOT_THE_GATEWAY
        assert all(values == (None,) for values in levels.values())
        nothing_compared("no load passed")
        return
    told, nothing = result.document.telemetry, (None,)
    assert told is not None
    (filling,), (full,) = (levels.get((phase, "connections"), nothing) for phase in ("test phase 1", "measured"))
    if told.sending == told.trials:
        assert filling is not None and full == count
    assert full in (None, count)
    sampled: set[int] = set()
    for file in (tmp_path / "out" / "telemetry").iterdir():
        heading, *lines = (line.split(",") for line in file.read_text().splitlines())
        at, column = heading.index("at_s"), heading.index("connections")
        filled = [row for row in lines if row[1] == "test phase 1" and row[column]]
        for attempt in {row[0] for row in filled}:
            counts = [(float(row[at]), int(float(row[column]))) for row in filled if row[0] == attempt]
            known = [number for _, number in counts]
            assert known == sorted(known) and max(known, default=0) <= count, "they only grow meanwhile"
            for at_s, number in counts:
                assert number <= rate * max(0.0, at_s + CSV_ERROR_S) + 1, "none is sent before it is due"
            sampled |= set(known)
    assert filling is None or filling in sampled


def nothing_costs_ns() -> float:
    """Return the CPU time of a program that does nothing, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["sh", "-c", NOTHINGS], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * SECOND / 50


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
duration = "1s"
settle = "0s"
learn = "100ms"
drain = "200ms"
rest = "0s"
[validity]
retries = 20
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
            wait_for(lambda: bool(set(samplers()) - before))
            wait_for(lambda: (out / "trials.jsonl").exists() and (out / "trials.jsonl").stat().st_size > 0)
        finally:
            tester.kill()
    wait_for(lambda: not set(samplers()) - before)
    done = subprocess.run([*words, "--resume", str(out)], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    told = open_result(out).document.telemetry
    assert told is not None and told.trials >= 2
    assert told.sampled == told.trials or told.reasons
    lines = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert all("telemetry" in line for line in lines)
    wait_for(lambda: not set(samplers()) - before)
    assert not list(Path("/run/gatemark").glob("*/gatemark-telemetry.*")) or before
