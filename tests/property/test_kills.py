"""kill -9 at random moments of a campaign on a simulated gateway: it goes on to the result of an undisturbed one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.property.router_campaign import BARE

from gatemark.results.toml_text import to_toml

THROUGHPUT = {"maximum": "1M", "minimum": "1k", "resolution": "5k"}
CAMPAIGN = to_toml({**BARE, "name": "killed", "repetitions": 2, "throughput": THROUGHPUT})

DRIVER = """
import json, os, sys, time, traceback
from pathlib import Path
from gatemark.campaign.events import TrialStarted
from tests.simulated.engine import SimulatedDevice
from gatemark.session import measure, resume_campaign
from tests.simulated.equipment import simulated_equipment

def watch(event):
    if isinstance(event, TrialStarted):
        time.sleep(0.02)

def attempt(folder):
    device = SimulatedDevice(capacity_forward=432_100, noise=0.05, hiccup_every=7, faults={"hop_limit": 100_000})
    equipment = simulated_equipment(device)
    if (Path(folder) / "campaign.toml").exists():
        return resume_campaign(folder, on_event=watch, equipment=equipment)
    return measure(sys.argv[1], output=folder, on_event=watch, equipment=equipment)

# All that is imported, once and not by every child.
measure(sys.argv[1], output=sys.argv[2], equipment=simulated_equipment(SimulatedDevice(capacity_forward=432_100)))
print(0, flush=True)

while line := sys.stdin.readline():
    pid = os.fork()
    if pid == 0:
        print(os.getpid(), flush=True)
        try:
            attempt(line.strip())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    sys.stdin.readline()  # until then the child keeps its number, even if it has ended
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Driver:
    """A process that measures, each time in a child of its own, which may be killed."""

    def __init__(self, file: Path, first_output: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, file, first_output],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._number() == 0, "it has not begun"

    def measure(self, output: Path, *, kill_after_s: float | None = None) -> int:
        """Measure or go on; return the exit status, -9 if it was killed before its end."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{output}\n")
        self.process.stdin.flush()
        pid = self._number()
        if kill_after_s is not None:
            time.sleep(kill_after_s)
            os.kill(pid, signal.SIGKILL)
        self.process.stdin.write("wait\n")
        self.process.stdin.flush()
        return self._number()

    def _number(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def result_of(output: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((output / "result.json").read_text())
    return document


@pytest.mark.endure
def test_a_killed_campaign_goes_on_to_the_same_result(tmp_path: Path, endures: bool) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN)
    driver, rng = Driver(file, tmp_path / "first"), random.Random(1)
    try:
        begin = time.monotonic()
        assert driver.measure(tmp_path / "whole") == 0
        whole, whole_s = result_of(tmp_path / "whole"), time.monotonic() - begin
        kills = 0
        campaign = 0
        while kills < (200 if endures else 4):
            campaign += 1
            output, before = tmp_path / f"killed-{campaign}", b""
            while True:
                status = driver.measure(output, kill_after_s=rng.uniform(0, whole_s))
                journal = output / "trials.jsonl"
                kept = journal.read_bytes() if journal.exists() else b""
                assert kept.startswith(before[: before.rfind(b"\n") + 1]), "an earlier trial was changed"
                before = kept
                if status == 0:
                    break
                assert status == -signal.SIGKILL
                kills += 1
            assert result_of(output) == whole
            assert sorted(path.name for path in output.glob(".*")) == [".lock", ".origin", ".trials"]
    finally:
        driver.close()
