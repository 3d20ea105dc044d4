"""Commands of a test bed: whatever they print, however they end, nothing of them stays."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gatemark.dut.commands import run_command, telling_tester_port, try_command
from gatemark.errors import TestBedError, TesterPortError

NO_UTF8 = ["sh", "-c", r"printf 'caf\351 \377\n'; printf '\201broken' >&2; exit ${0}"]


def test_output_that_is_no_utf8_is_read() -> None:
    assert run_command([*NO_UTF8, "0"], where="test") == "caf\ufffd \ufffd\n"
    assert try_command([*NO_UTF8, "0"]) == "caf\ufffd \ufffd\n"
    assert try_command([*NO_UTF8, "1"]) is None
    with pytest.raises(TestBedError, match="status 1: \ufffdbroken"):
        run_command([*NO_UTF8, "1"], where="test")


def test_what_is_the_testers_is_told_as_the_testers() -> None:
    with pytest.raises(TesterPortError, match="status 1") as caught, telling_tester_port():
        run_command(["false"], where="left.port", fix="see the cable")
    assert (caught.value.where, caught.value.fix) == ("left.port", "see the cable")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def started(file: Path) -> int:
    """The number that a background child wrote, once it is there."""
    until = time.monotonic() + 10
    while not file.exists() or not file.read_text().strip():
        assert time.monotonic() < until
        time.sleep(0.01)
    return int(file.read_text())


def assert_ends(pid: int) -> None:
    until = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < until, "a child outlived its command"
        time.sleep(0.01)


def test_the_children_of_a_command_that_takes_too_long_end_with_it(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/pid; wait"
    with pytest.raises(TestBedError, match="did not end within 1 s"):
        run_command(["sh", "-c", script], where="test", seconds_max=1)
    assert_ends(started(tmp_path / "pid"))


def test_a_command_ends_with_an_interruption(tmp_path: Path) -> None:
    """Ctrl-C reaches only this process: the command has a group of its own."""
    script = f"sleep 600 & echo $! > {tmp_path}/pid; sleep 0.3; kill -INT {os.getpid()}; wait"
    with pytest.raises(KeyboardInterrupt):
        run_command(["sh", "-c", script], where="test")
    assert_ends(started(tmp_path / "pid"))
