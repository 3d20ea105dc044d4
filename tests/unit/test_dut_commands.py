"""Commands of a test bed: whatever they print, however they end, nothing of them stays."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import pytest

from gatemark.dut.commands import finished, read_each, run_command, telling_tester_port, try_command
from gatemark.dut.shell import shell_at
from gatemark.errors import TestBedError, TesterPortError

NO_UTF8 = ["sh", "-c", r"printf 'caf\351 \377\n'; printf '\201broken' >&2; exit ${0}"]


def test_output_that_is_no_utf8_is_read() -> None:
    assert run_command([*NO_UTF8, "0"], where="test") == "caf\ufffd \ufffd\n"
    assert try_command([*NO_UTF8, "0"]) == "caf\ufffd \ufffd\n"
    assert try_command([*NO_UTF8, "1"]) is None
    with pytest.raises(TestBedError, match="status 1: \ufffdbroken"):
        run_command([*NO_UTF8, "1"], where="test")


CHATTY_SCRIPT = "trap '' PIPE; yes ${0} & yes >&2"


def test_a_command_that_does_not_stop_printing_is_killed() -> None:
    with pytest.raises(TestBedError, match="printed more than 16 MiB") as raised:
        run_command(["sh", "-c", CHATTY_SCRIPT, "talk"], where="test")
    assert "print less" in raised.value.fix
    assert try_command(["sh", "-c", CHATTY_SCRIPT, "talk"]) is None
    with pytest.raises(TestBedError, match="printed more than 16 MiB"):
        shell_at(None, ("sh", "-s"))("yes", where="test")


def test_what_a_command_does_not_read_is_dropped() -> None:
    done = finished(["sh", "-c", "echo ends"], 60, given="x" * (1 << 20))
    assert (done.stdout, done.returncode) == ("ends\n", 0)
    assert finished(["cat"], 60, given="line\r\n" * 100_000).stdout == "line\n" * 100_000


def test_what_is_the_testers_is_told_as_the_testers() -> None:
    with pytest.raises(TesterPortError, match="status 1") as caught, telling_tester_port():
        run_command(["false"], where="left.port", fix="see the cable")
    assert (caught.value.where, caught.value.fix) == ("left.port", "see the cable")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def written(file: Path) -> str:
    """The number that a background child wrote; empty until it is there."""
    return file.read_text().strip() if file.exists() else ""


def assert_ends(pid: int) -> None:
    until = time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < until, "a child outlived its command"
        time.sleep(0.01)


def test_the_children_of_a_command_that_takes_too_long_end_with_it(tmp_path: Path) -> None:
    script, pid = f"sleep 600 & echo $! > {tmp_path}/pid; wait", ""
    for seconds in (1, 10, 100):  # on a busy machine it may not even have begun
        with pytest.raises(TestBedError, match=f"did not end within {seconds} s"):
            run_command(["sh", "-c", script], where="test", seconds_max=seconds)
        if pid := written(tmp_path / "pid"):
            break
    assert_ends(int(pid))


def test_a_command_ends_with_an_interruption(tmp_path: Path) -> None:
    """Ctrl-C reaches only this process, which waits for the command: that has a group of its own."""
    main = threading.get_ident()

    def interrupt() -> None:
        while not written(tmp_path / "pid") or "_communicate" not in calls_of(sys._current_frames()[main]):
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    script = f"sleep 600 & echo $! > {tmp_path}/pid; wait"
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_command(["sh", "-c", script], where="test")
    thread.join()
    assert_ends(int(written(tmp_path / "pid")))


def calls_of(frame: FrameType | None) -> set[str]:
    """The names of the functions that a thread is in."""
    names = set()
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return names


def test_each_of_several_scripts_is_read_whatever_becomes_of_the_others() -> None:
    def shell(script: str) -> list[str]:
        return ["sh", "-euc", script]

    scripts = [
        "echo one; echo two",
        "false",
        "printf three",
        "echo four; exit 3",
        "no-such-program",
        "echo five | grep six",
        ":",
    ]
    assert read_each(shell, scripts) == ["one\ntwo\n", "", "three", "four\n", "", "", ""]
    assert read_each(lambda script: ["false", script], scripts) == [""] * len(scripts)
    assert read_each(shell, ["echo one", ")", "echo two"]) == [""] * 3
