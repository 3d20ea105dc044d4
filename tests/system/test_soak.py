"""Very many trials in one engine: every count stays exact, and memory, descriptors and threads stay as they are.

Trial numbers go round after 4096 trials and generations of the state table after 256, so stragglers and entries of
trials long past must not come back.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import missing
from tests.trial_facts import blank

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.answers import Progress
from gatemark.engine.client import EngineClient
from gatemark.engine.process import EngineProcess, find_engine
from gatemark.trial.connection_request import establish_request, use_request
from gatemark.trial.messages import TrialRequest
from gatemark.trial.report import Foreign, TrialReport, read_report
from gatemark.trial.request import open_request, trial_request
from gatemark.trial.validity import ValidityPolicy, judge_validity

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")

TRIALS, TRIALS_ENDURED = 520, 10_000
"""Of the engine; half of them begin a generation."""
LOOK_EVERY = 100
FIRST_NUMBER = 4096 - 100
"""Trial numbers begin a little before they go round."""
TIMEOUT_NS = 5_000_000
CONNECTIONS = 64
RATE = 100_000
MEMORY_GROWTH_MAX = 1024 * 1024
"""Of the resident memory, in bytes, once the first trials have been made: what an allocator may do by itself, and the
288 kB of a histogram that is first touched when a busy machine delays a frame."""
BLOCKS_OF_THEIR_OWN = "MALLOC_MMAP_THRESHOLD_=131072"
"""Larger blocks go back to the kernel. Else the 288 kB of a delay histogram may at any time find no hole in a heap."""
STOPPED_S, STOPPED_ENDURED_S = 0.3, 10.0
PATIENCE_S = 60


def campaign(technology: str) -> Campaign:
    stateful = {"connections": {"count": CONNECTIONS, "rate": RATE, "gap": "0s", "timeout": f"{TIMEOUT_NS}ns"}}
    return complete_campaign(
        campaign_from_dict(
            {
                "seed": 42,
                "testbed": {"kind": "loopback", "huge_pages": "never"},
                "gateway": {"technology": technology},
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}},
                "trial": {"duration": "1ms", "settle": "0s", "learn": "0s", "drain": f"{TIMEOUT_NS}ns", "rest": "0s"},
                "frame_loss": {"rates": [RATE]},
                **(stateful if technology == "nat44" else {}),
            }
        )
    )


ROUTED, TRANSLATED = campaign("router44"), campaign("nat44")


def requests() -> Iterator[tuple[TrialRequest, int]]:
    """Yield request after request, and how many frames each sends; every connection of a phase 2 is of its phase 1."""
    (routed,), (translated,) = cells_of(ROUTED), cells_of(TRANSLATED)
    load: dict[str, Any] = {"frames_per_second": RATE, "duration_ns": 1_000_000}
    numbers = itertools.count(FIRST_NUMBER)
    while True:
        yield trial_request(ROUTED, routed, **load, trial_number=next(numbers)), 200
        for _ in range(2):
            yield establish(next(numbers)), CONNECTIONS
        yield use_request(TRANSLATED, translated, **load, trial_number=next(numbers), connections=CONNECTIONS), 200


def establish(number: int) -> TrialRequest:
    (cell,) = cells_of(TRANSLATED)
    return establish_request(
        TRANSLATED, cell, connections_per_second=RATE, trial_number=number, connections=CONNECTIONS
    )


ENDLESS = {"give_up_lateness_ns": 60_000_000_000}


def made(engine: EngineClient, body: TrialRequest) -> TrialReport:
    return read_report(engine.trial({**body, **ENDLESS}))


def assert_exact(report: TrialReport, frames: int) -> None:
    """Every frame came back once, as it was sent, and nothing else arrived.

    It came back in time as well, unless the engine was held up for longer, by its own account.
    """
    counts = [counts for _, _, counts in report.counts()]
    held_up_ns = report.worker_pause_max_ns + max(direction.lateness_max_ns for direction in report.directions)
    late = sum(c.late for c in counts)
    assert sum(c.received for c in counts) + late == sum(c.offered for c in counts) == frames
    assert late == 0 or held_up_ns > TIMEOUT_NS, report
    assert [(c.faulty, c.duplicate, c.reordered) for c in counts] == [(0, 0, 0)] * len(counts)
    assert [port.foreign for port in report.ports.values()] == [blank(Foreign)] * len(report.ports)


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """What a process holds."""

    resident_bytes: int
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Holdings:
        process = Path(f"/proc/{pid}")
        lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return cls(
            resident_bytes=1024 * int(lines["VmRSS"].split()[0]),
            descriptors=len(list((process / "fd").iterdir())),
            threads=int(lines["Threads"]),
        )


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[EngineClient, int]]:
    """An engine on rings whose clock goes back by a second at each SIGUSR1."""
    library = tmp_path / "stepped_clock.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", library, Path(__file__).with_name("stepped_clock.c")], check=True)
    child = EngineProcess(["env", f"LD_PRELOAD={library}", BLOCKS_OF_THEIR_OWN, str(find_engine())], log=None)
    with EngineClient(child) as engine:
        engine.hello()
        engine.open(open_request(TRANSLATED, [], {"left": "ring", "right": "ring"}))
        yield engine, child.pid


@pytest.mark.endure
def test_counts_stay_exact_and_nothing_grows(process: tuple[EngineClient, int], endures: bool) -> None:
    engine, pid = process
    looks: list[Holdings] = []
    trials = TRIALS_ENDURED if endures else TRIALS
    for number, (body, frames) in enumerate(itertools.islice(requests(), trials), start=1):
        assert_exact(made(engine, body), frames)
        if number % LOOK_EVERY == 0:
            looks.append(Holdings.of(pid))
    first, *later = looks[1:]
    assert {(look.descriptors, look.threads) for look in later} == {(first.descriptors, first.threads)}
    assert max(look.resident_bytes for look in later) - first.resident_bytes <= MEMORY_GROWTH_MAX, looks


def assert_only_this_trial_is_invalid(
    process: tuple[EngineClient, int], reason: str, *signals: tuple[float, int]
) -> None:
    """Send the engine signals, each so many seconds after it told of the trial's progress for the first time.

    If this process is late itself, so that the trial may be over by then, another one is made.
    """
    engine, pid = process
    (cell,) = cells_of(ROUTED)
    duration_ns = 500_000_000
    load: dict[str, Any] = {"frames_per_second": 1000, "duration_ns": duration_ns}
    is_in_time, until, numbers = False, time.monotonic() + PATIENCE_S, itertools.count(1)
    while not is_in_time:
        assert time.monotonic() < until
        body = trial_request(ROUTED, cell, **load, trial_number=next(numbers))
        timers = [threading.Timer(after, os.kill, (pid, number)) for after, number in signals if after]
        told_ns: list[int] = []

        def begin(_: Progress, timers: list[threading.Timer] = timers, told_ns: list[int] = told_ns) -> None:
            if not told_ns:
                for number in (number for after, number in signals if not after):
                    os.kill(pid, number)
                told_ns.append(time.monotonic_ns())
                for timer in timers:
                    timer.start()

        asked_ns = time.monotonic_ns()
        report = read_report(engine.trial({**body, **ENDLESS, "progress_ns": 20_000_000}, begin))
        for timer in timers:
            timer.join()
        is_in_time = told_ns[0] < asked_ns + duration_ns
    validity = judge_validity(report, ValidityPolicy(lateness_max_ns=ROUTED.validity.lateness_max_ns))
    assert not validity.valid
    assert any(reason in words for words in validity.reasons), validity
    again, frames = next(requests())
    report = made(engine, again)
    assert_exact(report, frames)


@pytest.mark.endure
def test_an_engine_that_was_stopped_makes_the_trial_invalid(process: tuple[EngineClient, int], endures: bool) -> None:
    stopped_s = STOPPED_ENDURED_S if endures else STOPPED_S
    assert_only_this_trial_is_invalid(process, "late", (0, signal.SIGSTOP), (stopped_s, signal.SIGCONT))


def test_a_clock_that_is_stepped_makes_the_trial_invalid(process: tuple[EngineClient, int]) -> None:
    assert_only_this_trial_is_invalid(process, "clock", (0, signal.SIGUSR1))
