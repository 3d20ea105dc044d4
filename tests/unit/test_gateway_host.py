"""What is read of the gateway's host, from a /proc of files."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.trial_facts import blank

from gatemark.campaign.engine_trial import host_facts, with_hold_ups
from gatemark.campaign.telemetry import TrialTimes
from gatemark.dut.base import CpuTimes, HeldUp, HoldUps, KernelCounts, ThreadTimes
from gatemark.dut.gateway_host import STEP_NS, GatewayHost, parse_cpu_list, parse_cpu_times, parse_schedstat
from gatemark.trial.host import CpuFacts, HoldUp, HostFacts
from gatemark.trial.report import DirectionResult, PhaseTime, TrialReport

MS = 1_000_000

STAT = """cpu  9 9 9 9 9 9 9 9 9 9
cpu0 1 2 3 1000 2000 4 5 6 50 60
cpu1 10 20 30 1000 2000 40 50 60 0 0
cpu10 0 0 0 7 0 0 0 0 0 0
intr 5
"""


def thread(folder: Path, name: str, ran_ns: int, waited_ns: int) -> None:
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "schedstat").write_text(f"{ran_ns} {waited_ns} 12\n")
    (folder / "children").write_text("")
    (folder / "status").write_text(f"Name:\t{name}\nCpus_allowed:\t2\nCpus_allowed_list:\t1\nMems_allowed:\t1\n")


def write_in_place(path: Path, text: str) -> None:
    """Write as long a text as there was: a reader never finds half of one."""
    assert path.stat().st_size == len(text)
    file = os.open(path, os.O_WRONLY)
    os.pwrite(file, text.encode(), 0)
    os.close(file)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Two CPUs with their threads; a daemon, 70, of two threads, that has started another process, 80."""
    (tmp_path / "stat").write_text(STAT)
    thread(tmp_path / "self", "python", 0, 0)
    for cpu, number in ((0, 14), (1, 22)):
        thread(tmp_path / str(number), f"ksoftirqd/{cpu}", 100 + cpu, 200 + cpu)
    thread(tmp_path / "30", "kworker/0:1", 1, 1)
    for process, number, name in ((70, 70, "tayga"), (70, 71, "tayga-worker"), (80, 80, "helper")):
        thread(tmp_path / str(process) / "task" / str(number), name, number, 10 * number)
    (tmp_path / "70/task/71/children").write_text("80 ")
    return tmp_path


def test_a_cpu_idles_while_it_waits_for_a_disk_too() -> None:
    times = parse_cpu_times(STAT, 10)
    assert times[0] == CpuTimes(idle_ns=30_000, stolen_ns=60)
    assert times[10] == CpuTimes(idle_ns=70, stolen_ns=0)
    assert set(times) == {0, 1, 10}


def test_times_of_a_thread() -> None:
    assert parse_schedstat("307888 122642 2\n") == (307888, 122642)


def test_the_gateways_threads_are_those_of_its_cpus_and_all_of_its_daemons(proc: Path) -> None:
    host = GatewayHost([1], lambda: [70], queue_frames=500, proc=proc)
    reading = host.read()
    assert reading is not None
    assert set(reading.cpus) == {1}
    assert reading.threads == {
        22: ThreadTimes(name="ksoftirqd/1", cpu=1, stays=True, ran_ns=101, waited_ns=201),
        70: ThreadTimes(name="tayga", cpu=None, stays=True, ran_ns=70, waited_ns=700),
        71: ThreadTimes(name="tayga-worker", cpu=None, stays=True, ran_ns=71, waited_ns=710),
        80: ThreadTimes(name="helper", cpu=None, stays=True, ran_ns=80, waited_ns=800),
    }
    host.close()
    host.close()


def test_what_all_ran_less_what_the_gateway_ran_is_others(proc: Path, tmp_path: Path) -> None:
    accounts = tmp_path / "cpuacct"
    accounts.mkdir()
    (accounts / "cpuacct.usage_percpu").write_text("5000 7000 \n")
    (proc / "self/mounts").write_text(f"proc /proc proc rw 0 0\ncgroup {accounts} cgroup rw,relatime,cpu,cpuacct 0 0\n")

    def all_ran_ns() -> int | None:
        reading = GatewayHost([1], lambda: [70], queue_frames=500, proc=proc).read()
        assert reading is not None
        return reading.all_ran_ns

    assert all_ran_ns() is None, "of a container's own control group: it knows nothing of other programs"
    (accounts / "release_agent").touch()
    assert all_ran_ns() == 7000
    before = GatewayHost([1], lambda: [70], queue_frames=500, proc=proc).read()
    (accounts / "cpuacct.usage_percpu").write_text("9000 7100 \n")
    (proc / "70/task/71/schedstat").write_text("101 0 12\n")
    facts = host_facts(before, GatewayHost([1], lambda: [70], queue_frames=500, proc=proc).read())
    assert facts is not None
    assert facts.others_ran_ns == 100 - 30


def test_a_thread_that_may_run_elsewhere_counts_as_one_of_another_program(proc: Path) -> None:
    def facts_of(cpus: str) -> HostFacts:
        (proc / "80/task/80/status").write_text(f"Cpus_allowed_list:\t{cpus}\n")
        before = GatewayHost([1], lambda: [70], queue_frames=500, proc=proc).read()
        assert before is not None
        after = replace(
            before,
            all_ran_ns=1000,
            threads={number: replace(times, ran_ns=times.ran_ns + 10) for number, times in before.threads.items()},
        )
        facts = host_facts(replace(before, all_ran_ns=0), after)
        assert facts is not None
        return facts

    assert facts_of("1").others_ran_ns == 1000 - 4 * 10
    assert facts_of("0-1,3").others_ran_ns == 1000 - 3 * 10


def test_a_list_of_cpus() -> None:
    assert list(parse_cpu_list("0-3,8,10-11")) == [0, 1, 2, 3, 8, 10, 11]


def test_a_daemon_that_has_ended_is_left_out(proc: Path) -> None:
    reading = GatewayHost([0], lambda: [99], queue_frames=500, proc=proc).read()
    assert reading is not None and list(reading.threads) == [14]


def test_files_stay_open_and_are_read_from_their_start(proc: Path) -> None:
    host = GatewayHost([0], list, queue_frames=500, proc=proc)
    host.read()
    (proc / "14/schedstat").write_text("5 6 7\n")
    reading = host.read()
    assert reading is not None and reading.threads[14].waited_ns == 6
    host.close()


def test_threads_that_have_ended_leave_no_open_file(proc: Path) -> None:
    daemons = [70]
    host = GatewayHost([0], lambda: daemons, queue_frames=500, proc=proc)
    descriptors = []
    for daemons[:] in ([70], [], []):
        host.read()
        descriptors.append(len(os.listdir("/proc/self/fd")))
    assert descriptors[0] - descriptors[1] == 6 and descriptors[1] == descriptors[2]
    host.close()


def test_where_the_kernel_does_not_tell_nothing_is_read(proc: Path) -> None:
    assert GatewayHost([0, 2], list, queue_frames=500, proc=proc).read() is None, "no thread of CPU 2 is seen"
    (proc / "self/schedstat").unlink()
    assert GatewayHost([0], list, queue_frames=500, proc=proc).read() is None


def test_a_watch_sees_a_wait_that_ends_inside_the_block(proc: Path) -> None:
    host = GatewayHost([1], lambda: [70], queue_frames=500, proc=proc)
    host.read()
    opened = len(os.listdir("/proc/self/fd"))
    with host.watched() as watch:
        assert watch is not None
        began_ns = time.monotonic_ns()
        write_in_place(proc / "70/task/70/schedstat", "70 900 12\n")
    (held_up,) = watch.found().longest
    assert held_up.lasted_ns == 200
    assert held_up.begin_ns < began_ns < held_up.end_ns
    assert len(os.listdir("/proc/self/fd")) == opened
    host.close()


def test_a_watch_looks_at_steal_where_a_cpu_was_ever_stolen(proc: Path) -> None:
    host = GatewayHost([1], list, queue_frames=500, proc=proc)
    host.read()
    with host.watched() as watch:
        assert watch is not None
        write_in_place(proc / "stat", STAT.replace("40 50 60", "40 50 63"))
    (held_up,) = watch.found().longest
    assert held_up.lasted_ns == 4 * STEP_NS
    host.close()


def test_a_watch_ends_with_its_block_whatever_happens(proc: Path) -> None:
    host = GatewayHost([1], lambda: [70], queue_frames=500, proc=proc)
    host.read()

    def fail() -> None:
        with host.watched():
            assert "gatemark-watch" in {thread.name for thread in threading.enumerate()}
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert "gatemark-watch" not in {thread.name for thread in threading.enumerate()}
    host.close()


def test_nothing_is_watched_where_the_kernel_does_not_tell(proc: Path) -> None:
    host = GatewayHost([0, 2], list, queue_frames=500, proc=proc)
    host.read()
    with host.watched() as watch:
        assert watch is None


def test_what_is_seen_is_put_into_the_time_of_the_trial() -> None:
    """The engine was asked at 1 s, and answered 25 ms later than its phases take: sending began in that time."""
    phases = (PhaseTime(phase="learn", duration_ns=100 * MS), PhaseTime(phase="send", duration_ns=1005 * MS))
    times = TrialTimes(began_ns=1000 * MS, ended_ns=2130 * MS, phases=phases)
    watched = HoldUps(longest=(HeldUp(begin_ns=1300 * MS, end_ns=1350 * MS, lasted_ns=40 * MS),), others_ns=7)
    trial = blank(TrialReport, directions=(blank(DirectionResult, direction="forward", sending_ns=1000 * MS),))
    host = with_hold_ups(blank(HostFacts), watched, times, trial)
    assert host.hold_ups == (HoldUp(begin_ns=(200 - 25 - 5) * MS, end_ns=250 * MS, held_up_ns=40 * MS),)
    assert host.other_hold_ups_ns == 7


def test_counters_are_read_where_nothing_is_told_of_the_cpus(proc: Path) -> None:
    counted = KernelCounts(counters={"ip.InDiscards": 3})
    for cpus in ((), (0, 2)):
        host = GatewayHost(cpus, lambda: [70], queue_frames=500, counts=lambda: counted, proc=proc)
        reading = host.read()
        assert reading is not None
        assert (reading.cpus, reading.threads, reading.counted) == ({}, {}, counted)


def test_a_cpu_is_busy_while_it_is_not_idle(proc: Path) -> None:
    """Whatever the columns of work say, which a kernel that counts by ticks makes of what a tick finds."""
    host = GatewayHost([0], lambda: [], queue_frames=500, proc=proc)
    before = host.read()
    (proc / "stat").write_text(STAT.replace("cpu0 1 2 3 1000 2000 4 5 6", "cpu0 1 2 3 1002 2001 4 5 7"))
    after = host.read()
    assert before is not None
    assert after is not None
    facts = host_facts(before, replace(after, at_ns=before.at_ns + 10 * after.step_ns))
    assert facts is not None
    assert facts.cpus == (CpuFacts(cpu=0, busy_ns=7 * after.step_ns, stolen_ns=after.step_ns),)
