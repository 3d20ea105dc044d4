"""The gateway's user-space processes: started in its enclosure, pinned to its cores, ended by process ID."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gatemark.dut.enclosure import first_child
from gatemark.dut.gateway_kernel import CommandPlace
from gatemark.errors import TestBedError

END_SECONDS_MAX = 2.0
"""How long a daemon may take to end before it is killed."""
LOG_TAIL_CHARACTERS = 600
"""How much of a daemon's log an error shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """One running process of the gateway."""

    command: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise TestBedError if the process has ended."""
        status = self.process.poll()
        if status is not None:
            tail = self.log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_TAIL_CHARACTERS:]
            raise TestBedError(
                what=f"the gateway's process ended with status {status}: {tail or 'it wrote nothing'}",
                where=f"gateway: {self.command}",
                fix="a daemon must stay in the foreground; run the command by hand to see why it ends",
            )

    def end(self) -> None:
        """Ask the process to end, wait for it, and kill it if it does not."""
        for number, patience_s in ((signal.SIGTERM, END_SECONDS_MAX), (signal.SIGKILL, None)):
            if self.process.poll() is not None:
                return
            # What was started here only waits for the daemon, and ends as it does.
            with contextlib.suppress(ProcessLookupError):
                os.kill(first_child(self.process.pid) or self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=patience_s)


def start_daemon(command: str, *, place: CommandPlace, folder: Path, cores: Collection[int], number: int) -> Daemon:
    """Start `command` where the gateway is, on `cores` of its kernel; its output goes to a log in `folder`.

    The process gets a session of its own, so Ctrl-C at the terminal does not stop the gateway in the middle of a trial,
    and it ends with the gateway's kernel or namespace.
    """
    log = folder / f"daemon-{number}.log"
    core_list = ",".join(str(core) for core in sorted(cores))
    with log.open("wb") as output:
        process = subprocess.Popen(
            place.command("taskset", "--cpu-list", core_list, "sh", "-c", f"exec {command}"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Daemon(command=shlex.join(shlex.split(command)), process=process, log=log)
