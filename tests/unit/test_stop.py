"""A measurement that is stopped from outside: by a signal, or with its terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

WriteCampaign = Callable[..., Path]

SLOW = """
import sys, time
from pathlib import Path
from gatemark.campaign.events import TrialFinished
from gatemark.campaign.progress import progress_display
from gatemark.cli.output import tell_error
from tests.simulated.engine import SimulatedDevice
from gatemark.errors import GatemarkError
from gatemark.session import measure
from tests.simulated.equipment import simulated_equipment

finished = 0

def slow(event):
    global finished
    watcher.on_event(event)
    if isinstance(event, TrialFinished):
        finished += 1
        while finished == 3 and not Path(sys.argv[3]).exists():
            time.sleep(0.02)

try:
    with progress_display() as watcher:
        measure(sys.argv[1], output=sys.argv[2], on_event=slow,
                equipment=simulated_equipment(SimulatedDevice(capacity_forward=412_345)))
except GatemarkError as error:
    tell_error(error, as_json=False)
    sys.exit(error.exit_status)
"""


def await_trials(output: Path, count: int) -> None:
    """The campaign goes on after the third when it may."""
    journal = output / "trials.jsonl"
    until = time.monotonic() + 60
    while not journal.exists() or journal.read_bytes().count(b"\n") < count:
        assert time.monotonic() < until, "no trial in time"
        time.sleep(0.02)


def status_of(output: Path) -> str:
    status: str = json.loads((output / "result.json").read_text())["status"]
    return status


@pytest.mark.parametrize("how", ["terminal", "SIGHUP", "SIGTERM", "SIGINT"])
def test_what_was_measured_is_reported(write_campaign: WriteCampaign, tmp_path: Path, how: str) -> None:
    file, output = write_campaign(), tmp_path / "out"
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        os.execv(sys.executable, [sys.executable, "-c", SLOW, str(file), str(output), str(tmp_path / "never")])
    try:
        await_trials(output, 3)
        if how == "terminal":
            os.close(terminal)
        else:
            os.kill(pid, signal.Signals[how])
        until = time.monotonic() + 60
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < until, "it does not stop"
            with contextlib.suppress(OSError):
                os.set_blocking(terminal, False)
                os.read(terminal, 65536)
            time.sleep(0.02)
        assert os.waitstatus_to_exitcode(ended[1]) == 130
    finally:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.close(terminal)
    assert status_of(output) == "incomplete"
    assert json.loads((output / "provenance.json").read_text())["sessions"][0]["finished_at"] is not None


def test_what_is_ignored_stays_ignored(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    """`nohup gatemark run` goes on without its terminal."""
    file, output = write_campaign(), tmp_path / "out"
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.execv(sys.executable, [sys.executable, "-c", SLOW, str(file), str(output), str(tmp_path / "go on")])
    await_trials(output, 3)
    os.kill(pid, signal.SIGHUP)
    (tmp_path / "go on").touch()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert status_of(output) == "complete"


def test_an_error_that_nobody_reads_keeps_its_exit_status(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gatemark.cli.main", "plan", str(tmp_path / "none.toml"), "--json"]
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (2, b"")
