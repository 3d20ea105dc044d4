"""Another program that takes a CPU away for a while, again and again: what a gateway on a shared machine suffers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import Self

BUSY_S, IDLE_S = 0.03, 0.07
"""How long it has the CPU at a time, and how long it leaves it."""
PROGRAM = """
import time
while True:
    until = time.monotonic() + {busy_s}
    while time.monotonic() < until:
        pass
    time.sleep({idle_s})
"""


class Disturber:
    """A process on one CPU that runs before every other one there; it sleeps while it is not wanted.

    A context manager. Without permission for real time it has an ordinary program's share of the CPU.
    """

    def __init__(self, cpu: int, *, busy_s: float = BUSY_S, idle_s: float = IDLE_S, priority: int = 1) -> None:
        """`priority` is that of real time (`SCHED_FIFO`)."""
        self._cpu = cpu
        self._program = PROGRAM.format(busy_s=busy_s, idle_s=idle_s)
        self._priority = priority
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to take the CPU away; nothing changes if that goes on already."""
        if self._process is not None:
            return
        self._process = subprocess.Popen([sys.executable, "-c", self._program], stdin=subprocess.DEVNULL)
        os.sched_setaffinity(self._process.pid, {self._cpu})
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(self._process.pid, os.SCHED_FIFO, os.sched_param(self._priority))

    def stop(self) -> None:
        """Leave the CPU alone; harmless if that was so already."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        """Nothing is taken away yet."""
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
