"""What the kernel tells about the CPUs and the threads of a gateway on this machine, read from files that stay open.

The gateway's work in the kernel is done in soft interrupts of its CPUs. They preempt whatever runs there, but not for
long: after 2 ms, or when the scheduler wants the CPU for another thread, the rest is left to the thread `ksoftirqd/N`,
which waits for its turn like any other thread. The kernel counts for each thread how long it ran and how long it was
ready to run and waited (`/proc/PID/schedstat`, nanoseconds), and for each CPU how long it was idle and how long the
hypervisor gave it to others (`/proc/stat`, steps of 10 ms in most kernels).

Who had the CPU for which a thread waited is not counted: it may have been soft interrupts on top of the idle thread,
work of the gateway that is in no thread's time unless the kernel times interrupts (CONFIG_IRQ_TIME_ACCOUNTING). How
long all threads ran on each CPU, those that have ended too, says the controller `cpuacct` where it is mounted. Less
what the gateway's threads ran that may run on no other CPU, that is the most that others ran there.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from gatemark.dut.base import CpuTimes, HoldUps, HostReading, KernelCounts, ThreadTimes
from gatemark.dut.cpu_visitors import PROC, soft_interrupt_threads
from gatemark.dut.hold_ups import HoldUpFinder, Moment
from gatemark.dut.interface_counters import read_whole

ALLOWED_CPUS = re.compile(r"^Cpus_allowed_list:\s*(?P<cpus>\S+)", re.MULTILINE)
IDLE_COLUMNS = (3, 4)
"""Of a line of `/proc/stat`, after the name: idle, and waiting for a disk."""
STOLEN_COLUMN = 7
STEP_NS = 10**9 // os.sysconf("SC_CLK_TCK")
"""Of the times of a CPU."""
WATCH_S = 0.01
"""From one look of a watch to the next: a step of the times of a CPU in most kernels. A look takes about 0.1 ms of a
CPU, which may be the gateway's."""


class GatewayHost:
    """Reads the CPUs of a gateway on this machine, its kernel threads and its daemons.

    `daemons` returns the processes of the gateway as they are at the moment, without those of the kernel;
    `queue_frames` is what its smallest queue holds, `counts` returns what its kernel has counted. Without `cpus`, as of
    a gateway on another machine, a reading has that alone. It takes some tenths of a millisecond on this machine.
    """

    def __init__(
        self,
        cpus: Collection[int],
        daemons: Callable[[], Collection[int]],
        *,
        queue_frames: int,
        counts: Callable[[], KernelCounts] = KernelCounts,
        proc: Path = PROC,
    ) -> None:
        self._cpus = frozenset(cpus)
        self._daemons = daemons
        self._queue_frames = queue_frames
        self._counts = counts
        self._proc = proc
        self._accounts = accounts_of_cpus(proc)
        self._kernel_threads = {
            thread.pid: thread.cpu for thread in soft_interrupt_threads(proc) if thread.cpu in self._cpus
        }
        self._files: dict[Path, int] = {}
        self._threads_read: Mapping[int, ThreadTimes] = {}
        self.can_read = (
            bool(cpus) and set(self._kernel_threads.values()) == self._cpus and (proc / "self/schedstat").exists()
        )
        """Whether the kernel tells of its CPUs: it must count (CONFIG_SCHED_INFO), and show its threads to this
        process."""

    def read(self) -> HostReading | None:
        """Return what the kernel has counted until now; None if it does not tell."""
        counted = self._counts()
        if not self.can_read:
            return self._reading(counted=counted) if counted.counters else None
        before, self._files = self._files, {}
        try:
            times = parse_cpu_times(self._read(self._proc / "stat", before), STEP_NS)
            self._threads_read = dict(self._threads(before))
            return self._reading(
                counted=counted,
                cpus={cpu: times[cpu] for cpu in sorted(self._cpus)},
                threads=self._threads_read,
                all_ran_ns=self._all_ran_ns(before),
            )
        finally:
            _close(before)  # what is left in it belongs to threads that have ended

    @contextlib.contextmanager
    def watched(self) -> Iterator[HostWatch | None]:
        """Watch, inside the block, the CPUs and threads that were read last; None if the kernel does not tell."""
        if not self.can_read or not self._threads_read:
            yield None
            return
        opened = {path: file for path, file in self._files.items() if path.name == "schedstat"}
        watch = HostWatch(
            self._threads_read,
            {int(path.parent.name): file for path, file in opened.items()},
            stat=self._files[self._proc / "stat"],
            cpus=self._cpus,
            accounts=None if self._accounts is None else self._files[self._accounts],
        )
        try:
            yield watch
        finally:
            watch.end()

    def _reading(
        self,
        *,
        counted: KernelCounts,
        cpus: Mapping[int, CpuTimes] = MappingProxyType({}),
        threads: Mapping[int, ThreadTimes] = MappingProxyType({}),
        all_ran_ns: int | None = None,
    ) -> HostReading:
        return HostReading(
            at_ns=time.monotonic_ns(),
            step_ns=STEP_NS,
            queue_frames=self._queue_frames,
            cpus=cpus,
            threads=threads,
            all_ran_ns=all_ran_ns,
            counted=counted,
        )

    def close(self) -> None:
        """Close the files; a second call does nothing."""
        _close(self._files)

    def _threads(self, before: dict[Path, int]) -> Iterator[tuple[int, ThreadTimes]]:
        for thread, cpu in self._kernel_threads.items():
            yield from self._thread(self._proc / str(thread), cpu, before)
        for folder in threads_of(self._daemons(), self._proc):
            yield from self._thread(folder, None, before)

    def _thread(self, folder: Path, cpu: int | None, before: dict[Path, int]) -> Iterator[tuple[int, ThreadTimes]]:
        with contextlib.suppress(OSError):  # it has ended
            ran_ns, waited_ns = parse_schedstat(self._read(folder / "schedstat", before))
            name = self._read(folder / "comm", before).strip()
            stays = cpu is not None or self._stays(folder)
            yield int(folder.name), ThreadTimes(name=name, cpu=cpu, stays=stays, ran_ns=ran_ns, waited_ns=waited_ns)

    def _stays(self, folder: Path) -> bool:
        status = (folder / "status").read_text(encoding="ascii", errors="replace")
        allowed = ALLOWED_CPUS.search(status)
        return allowed is not None and set(parse_cpu_list(allowed["cpus"])) <= self._cpus

    def _all_ran_ns(self, before: dict[Path, int]) -> int | None:
        return None if self._accounts is None else _sum_of(self._cpus, self._read(self._accounts, before))

    def _read(self, path: Path, before: dict[Path, int]) -> str:
        """Read a file, the one that was opened for the reading before if there is one."""
        opened = before.pop(path, None)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if opened is None else opened
        self._files[path] = file
        return read_whole(file)


class HostWatch:
    """A thread that looks at the threads and CPUs of a gateway until it is ended.

    `threads` are the gateway's, `files` those with the times of each of them; `stat` and `accounts` as above. The CPUs
    are looked at only if one of them was ever stolen.
    """

    def __init__(
        self,
        threads: Mapping[int, ThreadTimes],
        files: Mapping[int, int],
        *,
        stat: int,
        cpus: Collection[int],
        accounts: int | None,
    ) -> None:
        self._files = dict(files)
        self._cpus = cpus
        self._accounts = accounts
        self._stat = stat if any(self._stolen_ns(stat).values()) else None
        self._finder = HoldUpFinder(threads, step_ns=STEP_NS)
        self._finder.take(self._moment())
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look, name="gatemark-watch")
        self._thread.start()

    def end(self) -> None:
        """Look for the last time."""
        self._ending.set()
        self._thread.join()

    def found(self) -> HoldUps:
        """Return the hold-ups of the time until it ended."""
        return self._finder.found()

    def _look(self) -> None:
        while not self._ending.wait(WATCH_S):
            self._finder.take(self._moment())
        self._finder.take(self._moment())

    def _moment(self) -> Moment:
        at_ns, threads = time.monotonic_ns(), {}
        for thread, file in list(self._files.items()):
            try:
                threads[thread] = parse_schedstat(read_whole(file))
            except OSError:  # it has ended
                del self._files[thread]
        return Moment(
            at_ns=at_ns,
            threads=threads,
            all_ran_ns=None if self._accounts is None else _sum_of(self._cpus, read_whole(self._accounts)),
            stolen_ns={} if self._stat is None else self._stolen_ns(self._stat),
        )

    def _stolen_ns(self, stat: int) -> Mapping[int, int]:
        times = parse_cpu_times(read_whole(stat), STEP_NS)
        return {cpu: times[cpu].stolen_ns for cpu in self._cpus}


def _sum_of(cpus: Collection[int], by_cpu: str) -> int:
    counts = by_cpu.split()
    return sum(int(counts[cpu]) for cpu in cpus)


def _close(files: dict[Path, int]) -> None:
    while files:
        os.close(files.popitem()[1])


def parse_cpu_times(text: str, step_ns: int) -> Mapping[int, CpuTimes]:
    """Read `/proc/stat`: how long each CPU was idle and stolen since the machine was started.

    The kernel times idling, where its tick stops meanwhile. The columns of work count what a tick happened to find at
    work: of a program that works for 20 us of each 100 us, little or nothing.
    """
    times = {}
    for line in text.splitlines():
        name, *columns = line.split()
        if not re.fullmatch(r"cpu\d+", name):
            continue
        steps = [int(column) for column in columns]
        idle = sum(steps[column] for column in IDLE_COLUMNS)
        times[int(name[3:])] = CpuTimes(idle_ns=idle * step_ns, stolen_ns=steps[STOLEN_COLUMN] * step_ns)
    return times


def parse_cpu_list(text: str) -> Iterator[int]:
    """Yield the CPUs of a list as the kernel writes it, for example `0-3,8`."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def parse_schedstat(text: str) -> tuple[int, int]:
    """Read `/proc/PID/schedstat`: how long a thread has run and how long it has waited for a CPU, nanoseconds."""
    ran, waited, _ = text.split()
    return int(ran), int(waited)


def accounts_of_cpus(proc: Path = PROC) -> Path | None:
    """Return the file that says how long all threads of the host ran on each CPU; None if it is not mounted.

    A container may see the file of its own control group, which knows nothing of others: only that of the host has
    `release_agent` beside it.
    """
    with contextlib.suppress(OSError):
        for line in (proc / "self/mounts").read_text(encoding="utf-8").splitlines():
            _, place, kind, options, *_ = line.split()
            if kind == "cgroup" and "cpuacct" in options.split(","):
                file = Path(place, "cpuacct.usage_percpu")
                return file if file.exists() and file.with_name("release_agent").exists() else None
    return None


def threads_of(processes: Collection[int], proc: Path = PROC) -> Iterator[Path]:
    """Yield the folders of all threads of processes and of those that they have started."""
    waiting = list(processes)
    while waiting:
        tasks = proc / str(waiting.pop()) / "task"
        with contextlib.suppress(OSError):  # it has ended
            for thread in os.listdir(tasks):
                yield tasks / thread
                waiting += map(int, (tasks / thread / "children").read_text(encoding="ascii").split())
