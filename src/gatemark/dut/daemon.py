"""The gateway's user-space processes: started in its namespace, pinned to its cores, ended by process ID."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gatemark.dut.naming import end_processes
from gatemark.errors import TestBedError

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
        """End the process and wait for it."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                end_processes([self.process.pid])
                self.process.kill()
                self.process.wait()


def start_daemon(command: str, *, namespace: str, folder: Path, cores: Collection[int], number: int) -> Daemon:
    """Start `command` in the gateway's namespace on `cores`; its output goes to a log in `folder`.

    The process gets a session of its own, so Ctrl-C at the terminal does not stop the gateway in the middle of a trial,
    and it dies with this process (PR_SET_PDEATHSIG), even if this process is killed.
    """
    log = folder / f"daemon-{number}.log"
    core_list = ",".join(str(core) for core in sorted(cores))
    pinned = ["setpriv", "--pdeathsig", "KILL", "taskset", "--cpu-list", core_list]
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *pinned, "sh", "-c", f"exec {command}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    return Daemon(command=shlex.join(shlex.split(command)), process=process, log=log)
