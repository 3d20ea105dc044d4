"""What a test bed costs while the other one is measured: CPU time of its engine and its gateway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from time import monotonic_ns

from gatemark.dut.base import TestBed
from gatemark.dut.gateway_host import threads_of
from gatemark.dut.naming import NETNS_FOLDER

PROC = Path("/proc")


class IdleCost:
    """Adds up the CPU time of the processes of one test bed over the times in which it is idle."""

    def __init__(self, testbed: TestBed) -> None:
        """Find its processes: the engine, what the recipe has started, and the gateway's kernel if it has its own."""
        gateway = testbed.can.gateway
        names = [testbed.placement.namespace, *(() if gateway is None else gateway.namespaces)]
        namespaces = [NETNS_FOLDER / name for name in names if name is not None]
        inodes = {namespace.stat().st_ino for namespace in namespaces if namespace.exists()}
        within = [process / "task" for process in PROC.glob("[0-9]*") if _namespace(process) in inodes]
        threads = () if gateway is None else threads_of(gateway.pids())
        self._tasks = {*within, *(thread.parent for thread in threads)}
        self._cpu_ns = self._elapsed_ns = 0

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Count what the processes use inside the block."""
        before, begin_ns = self._used_ns(), monotonic_ns()
        yield
        self._cpu_ns += self._used_ns() - before
        self._elapsed_ns += monotonic_ns() - begin_ns

    @property
    def share(self) -> float | None:
        """CPU time / time; None if nothing was measured."""
        return self._cpu_ns / self._elapsed_ns if self._elapsed_ns else None

    def _used_ns(self) -> int:
        used_ns = 0
        for tasks in self._tasks:
            for schedstat in tasks.glob("*/schedstat"):
                with contextlib.suppress(OSError):  # the thread ended
                    used_ns += int(schedstat.read_text(encoding="ascii").split()[0])
        return used_ns


def _namespace(process: Path) -> int | None:
    with contextlib.suppress(OSError):  # it ended, or is not ours to look at
        return (process / "ns" / "net").stat().st_ino
    return None
