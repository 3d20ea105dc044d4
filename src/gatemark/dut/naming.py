"""Names of what a test bed makes, and removal of what a dead process left behind.

Each name carries the process that owns it and that process's start time, so whether a namespace or folder is a
leftover follows from its name alone: no lock file that could be lost.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gatemark.dut.commands import try_command

NETNS_FOLDER = Path("/run/netns")
"""Where iproute2 keeps named network namespaces."""
PROCESS_END_SECONDS_MAX = 2.0
"""How long a process of the gateway may take to end before it is killed."""

_counter = itertools.count()
_NAME = re.compile(r"gatemark-(?P<pid>\d+)-(?P<start>\d+)-(?P<number>\d+)(?:-tester|-gateway)?")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class BedName:
    """The identity of one test bed: its process, that process's start time, and its number within the process."""

    pid: int
    start_ticks: int
    """Start time of the process in clock ticks since boot (field 22 of /proc/PID/stat)."""
    number: int

    @property
    def stem(self) -> str:
        """The common part of all names."""
        return f"gatemark-{self.pid}-{self.start_ticks}-{self.number}"

    @property
    def tester_namespace(self) -> str:
        """Network namespace of the Tester's ends."""
        return f"{self.stem}-tester"

    @property
    def gateway_namespace(self) -> str:
        """Network namespace of the gateway."""
        return f"{self.stem}-gateway"

    @property
    def folder(self) -> Path:
        """Temporary folder of configuration files and logs."""
        return Path(tempfile.gettempdir()) / self.stem

    def interface(self, end: str, side: str) -> str:
        """Name an interface end (`gm` for the Tester's, `gw` for the gateway's); at most 15 characters."""
        return f"{end}{_base36(self.pid)}{_base36(self.number % 36)}-{side}"


def new_name() -> BedName:
    """Return a name that no other test bed of this or another process has."""
    pid = os.getpid()
    return BedName(pid=pid, start_ticks=start_ticks(pid) or 0, number=next(_counter))


def start_ticks(pid: int) -> int | None:
    """Start time of process `pid` in clock ticks since boot; None if there is no such process, or only its zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the command name may hold spaces and brackets
    return None if fields[0] in "ZX" else int(fields[19])


def parse_name(text: str) -> BedName | None:
    """Read a namespace or folder name; None if it is not one of ours."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    return BedName(pid=int(match["pid"]), start_ticks=int(match["start"]), number=int(match["number"]))


def leftovers() -> set[BedName]:
    """Test beds whose owning process no longer lives."""
    entries: list[str] = []
    for folder in (NETNS_FOLDER, Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            entries.extend(os.listdir(folder))
    names = {name for entry in entries if (name := parse_name(entry)) is not None}
    return {name for name in names if start_ticks(name.pid) != name.start_ticks}


def remove_leftovers() -> list[str]:
    """Remove what dead processes left behind and return the names of the test beds removed."""
    stale = sorted(leftovers(), key=lambda name: name.stem)
    for name in stale:
        remove(name)
    return [name.stem for name in stale]


def remove(name: BedName) -> None:
    """End the processes in both namespaces of a test bed, then remove its interfaces, namespaces and folder."""
    namespaces = [space for space in (name.gateway_namespace, name.tester_namespace) if (NETNS_FOLDER / space).exists()]
    for namespace in namespaces:
        listed = try_command(["ip", "netns", "pids", namespace]) or ""
        end_processes(int(pid) for pid in listed.split() if int(pid) != os.getpid())
    for namespace in namespaces:
        for side in ("left", "right"):
            # Deleting one end deletes both at once; the kernel would do it later, when the
            # namespace is gone.
            for end in ("gm", "gw"):
                try_command(["ip", "-n", namespace, "link", "delete", name.interface(end, side)])
        try_command(["ip", "netns", "delete", namespace])
    shutil.rmtree(name.folder, ignore_errors=True)


def end_processes(pids: Iterable[int]) -> None:
    """Ask processes to end, wait, then kill those that did not."""
    waiting = set(pids)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in waiting:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + PROCESS_END_SECONDS_MAX
        while waiting and time.monotonic() < until:
            waiting = {pid for pid in waiting if start_ticks(pid) is not None}
            time.sleep(0.01 if waiting else 0)
        if not waiting:
            return


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if number == 0:
            return digits
