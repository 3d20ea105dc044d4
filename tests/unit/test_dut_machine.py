"""Settings that Linux has once for the whole machine: leave for real-time threads."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatemark.dut import machine, naming
from gatemark.dut.cpu_visitors import KernelThread


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for /proc/sys and for the file that says who holds what."""
    monkeypatch.setattr(machine, "SYSCTL_FOLDER", tmp_path / "sys")
    monkeypatch.setattr(naming, "ROOT_FOLDER", tmp_path / "run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(machine, "STATE_FILE", naming.run_folder() / "settings.json")
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    return tmp_path / "sys" / "kernel" / "sched_rt_runtime_us"


def test_real_time_threads_are_not_stopped_while_it_lasts(settings: Path) -> None:
    settings.write_text("950000")
    with machine.unthrottled_real_time():
        assert settings.read_text() == "-1"
        with machine.unthrottled_real_time():
            assert settings.read_text() == "-1"
        assert settings.read_text() == "-1"
    assert settings.read_text() == "950000"


def test_a_kernel_without_the_setting_is_left_alone(settings: Path) -> None:
    with machine.unthrottled_real_time():
        assert not settings.exists()


def test_a_setting_that_may_not_be_written_is_left_alone(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text("950000")

    def refuse(_name: str, _value: str) -> None:
        raise PermissionError

    monkeypatch.setattr(machine, "_write", refuse)
    with machine.unthrottled_real_time():
        assert settings.read_text() == "950000"


@pytest.fixture
def thread(settings: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelThread]:
    """A process that stands in for the kernel's thread of CPU 3."""
    with subprocess.Popen(["sleep", "600"]) as process:
        if os.geteuid() == 0:
            os.setpriority(os.PRIO_PROCESS, process.pid, 0)  # whatever `nice` these tests run under
        stand_in = KernelThread(pid=process.pid, name="ksoftirqd/3", cpu=3)
        monkeypatch.setattr(
            machine, "soft_interrupt_threads", lambda: iter([stand_in] if process.poll() is None else [])
        )
        yield stand_in
        process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: nobody else may lower a nice value again")
def test_a_nice_value_is_held_and_written_back(thread: KernelThread) -> None:
    values = machine.nice_values([3, 4], 5)
    assert values == {"nice value of ksoftirqd/3": "5"}
    with naming.claimed() as first, naming.claimed() as second:
        machine.hold(first, values)
        machine.hold(second, values)
        machine.release(first)
        assert os.getpriority(os.PRIO_PROCESS, thread.pid) == 5
        machine.release(second)
    assert os.getpriority(os.PRIO_PROCESS, thread.pid) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: nobody else may lower a nice value again")
def test_a_nice_value_that_a_dead_process_left_is_found_and_written_back(
    thread: KernelThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    with naming.claimed() as name:
        machine.hold(name, machine.nice_values([3], 5))
    monkeypatch.setattr(machine, "_is_alive", lambda _: False)
    assert machine.leftovers() == {"nice value of ksoftirqd/3": {"before": "0", "now": "5"}}
    machine.release_leftovers()
    assert os.getpriority(os.PRIO_PROCESS, thread.pid) == 0
    assert not machine.leftovers()


def test_other_cpus_have_no_thread_to_change(thread: KernelThread) -> None:
    assert machine.nice_values([2], 5) == {}
