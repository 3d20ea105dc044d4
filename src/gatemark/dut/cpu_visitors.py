"""Which threads keep a CPU for long at a time, and which devices interrupt it.

A worker or a gateway waits for them. The kernel counts for each thread how long it ran and how often it was given a
CPU (`/proc/PID/task/TID/schedstat`, nanoseconds), and for each interrupt how often it came to each CPU
(`/proc/interrupts`).
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
CPU_FIELD = 36
"""Of `/proc/PID/stat`, from the state on, which is field 3: the CPU on which the thread ran last."""
SOFT_INTERRUPT_THREAD = re.compile(r"(?:ksoftirqd|backlog_napi)/(?P<cpu>\d+)")
"""The second one on kernels that are set to it (Linux 6.10)."""
INTERRUPT = re.compile(r"^\s*(?P<number>\d+):\s+(?P<rest>.*)$", re.MULTILINE)
"""Of a device; those of the processors themselves have names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A thread in the time of a watch."""

    thread: int
    name: str
    cpu: int
    """On which it ran last."""
    ran_ns: int
    times: int
    """How often it was given a CPU."""

    @property
    def stretch_ns(self) -> int:
        """Return how long it ran at a time, in the mean."""
        return self.ran_ns // max(1, self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupts:
    """What a device did in the time of a watch."""

    number: int
    name: str
    cpu: int
    """To which most of them came."""
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What else ran while this process slept: the longest stretches first, the most interrupts first."""

    seconds: float
    visits: tuple[Visit, ...]
    interrupts: tuple[Interrupts, ...]


def watch_visitors(seconds: float) -> Watched:
    """Sleep so long, then say who ran meanwhile; threads of this process are left out."""
    threads, interrupts = _threads(), read_interrupts()
    time.sleep(seconds)
    visits = [
        Visit(thread=thread, name=name, cpu=cpu, ran_ns=ran_ns - threads[thread][2], times=times - threads[thread][3])
        for thread, (name, cpu, ran_ns, times) in _threads().items()
        if thread in threads and ran_ns > threads[thread][2]
    ]
    came = [
        Interrupts(number=number, name=name, cpu=increases.index(max(increases)), times=sum(increases))
        for number, (name, counts) in read_interrupts().items()
        if number in interrupts
        for increases in [[now - then for now, then in zip(counts, interrupts[number][1], strict=True)]]
        if sum(increases)
    ]
    return Watched(
        seconds=seconds,
        visits=tuple(sorted(visits, key=lambda visit: -visit.stretch_ns)),
        interrupts=tuple(sorted(came, key=lambda row: -row.times)),
    )


def _threads() -> dict[int, tuple[str, int, int, int]]:
    """Return name, CPU, nanoseconds run and times run of every thread but those of this process."""
    return {thread: facts for folder in _folders() for thread, facts in _facts(folder)}


def _folders() -> Iterator[Path]:
    this_process = str(os.getpid())
    for process in PROC.iterdir():
        if process.name.isdigit() and process.name != this_process:
            with contextlib.suppress(OSError):  # it has ended
                yield from (process / "task").iterdir()


def _facts(folder: Path) -> Iterator[tuple[int, tuple[str, int, int, int]]]:
    with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended
        name, _, rest = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
        ran_ns, _, times = (folder / "schedstat").read_text(encoding="ascii").split()
        yield int(folder.name), (name.partition("(")[2], int(rest.split()[CPU_FIELD]), int(ran_ns), int(times))


def read_interrupts(proc: Path = PROC) -> dict[int, tuple[str, list[int]]]:
    """Return name and count on each CPU of every device's interrupt, by its number; empty if the kernel hides them."""
    with contextlib.suppress(OSError):
        text = (proc / "interrupts").read_text(encoding="utf-8", errors="replace")
        cpus = len(text.split("\n", 1)[0].split())
        rows = ((int(row["number"]), row["rest"].split()) for row in INTERRUPT.finditer(text))
        return {number: (" ".join(words[cpus:][-1:]), [int(word) for word in words[:cpus]]) for number, words in rows}
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelThread:
    """A kernel thread that works off what arrives at a CPU: what soft interrupts leave to it."""

    pid: int
    name: str
    cpu: int
    """The only CPU on which it runs."""


def soft_interrupt_threads(proc: Path = PROC) -> Iterator[KernelThread]:
    """Yield all that can be seen from here: in a PID namespace none."""
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            name = (folder / "comm").read_text(errors="replace").strip()
            if (match := SOFT_INTERRUPT_THREAD.fullmatch(name)) is not None:
                yield KernelThread(pid=int(folder.name), name=match[0], cpu=int(match["cpu"]))
