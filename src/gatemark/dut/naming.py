"""Names of what a test bed makes, who owns it, and removal of what a dead process left behind.

::

    /run/gatemark/                            the folder of all test beds: locked while one comes or goes
    /run/gatemark/gatemark-PID-START-N/       the folder of one: its configuration files and logs
    /run/gatemark/gatemark-PID-START-N/lock   locked as long as its owner lives (flock(2))

The kernel lets go of a lock when its process ends, however it ends, and knows it in every PID namespace. A process
number says nothing: an owner in another container has none here.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gatemark.dut.commands import try_command
from gatemark.dut.guard import leave_a_survivor
from gatemark.errors import TestBedError
from gatemark.technology import SIDES

NETNS_FOLDER = Path("/run/netns")
"""Where iproute2 keeps named network namespaces."""
ROOT_FOLDER = Path("/run/gatemark")
"""Holds the folders of the test beds of root. It is empty after a reboot, as is the machine."""
PROCESS_END_SECONDS_MAX = 2.0
"""How long a process of the gateway may take to end before it is killed."""

LOCK_FILE = "lock"
"""In the folder of a test bed."""
FORKED_SECONDS_MAX = 0.5
"""How long a process that was just forked may take to become another program: till then it has its parent's locks."""

_counter = itertools.count()
_NAME = re.compile(r"gatemark-(?P<pid>\d+)-(?P<start>\d+)-(?P<number>\d+)(?:-tester|-gateway|-second)?")
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
        return f"{self.stem}-gateway"

    @property
    def second_namespace(self) -> str:
        """Network namespace of the second of two gateways in a row."""
        return f"{self.stem}-second"

    @property
    def folder(self) -> Path:
        """Folder of configuration files and logs; there is one as long as there is anything else of the test bed."""
        return run_folder() / self.stem

    def interface(self, end: str, side: str) -> str:
        """Name an interface end (`gm` for the Tester's, `gw` for the gateway's, `gx` for one between two gateways); at
        most 15 characters."""
        return f"{end}{_base36(self.pid)}{_base36(self.number % 36)}-{side}"


def new_name() -> BedName:
    """Return a name that no other test bed of this or another process has."""
    pid = os.getpid()
    return BedName(pid=pid, start_ticks=start_ticks(pid) or 0, number=next(_counter))


def run_folder() -> Path:
    """Return the folder that holds those of all test beds of this user."""
    if os.geteuid() == 0:
        return ROOT_FOLDER
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"gatemark-{os.geteuid()}"


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Keep every other process from claiming, removing or changing settings meanwhile."""
    folder = run_folder()
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise cannot_keep(folder, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def cannot_keep(path: Path, error: OSError) -> TestBedError:
    """Return the error for a state that cannot be written down, so that nothing is made."""
    return TestBedError(
        what=f"cannot be written ({error.strerror or error}): gatemark made nothing, as leftovers would go unnoticed",
        where=str(path),
        fix="free space there (`df`), or correct its permissions",
    )


class Claim:
    """A test bed that this process owns: its folder, locked as long as the claim or the process lives."""

    def __init__(self, name: BedName) -> None:
        """Make the folder; raise TestBedError, with nothing left behind, if that fails."""
        self.name = name
        self._handle = -1
        leave_a_survivor()
        with locked():
            try:
                name.folder.mkdir(mode=0o700)
                self._handle = os.open(name.folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                if not isinstance(error, FileExistsError):
                    shutil.rmtree(name.folder, ignore_errors=True)
                raise cannot_keep(name.folder, error) from None
            fcntl.flock(self._handle, fcntl.LOCK_EX)

    def release(self) -> None:
        """Remove everything of the test bed, its folder last; a second call does nothing."""
        if self._handle < 0:
            return
        try:
            remove(self.name)
        finally:
            os.close(self._handle)
            self._handle = -1


@contextlib.contextmanager
def claimed() -> Iterator[BedName]:
    """Own a new name and its folder inside the block."""
    claim = Claim(new_name())
    try:
        yield claim.name
    finally:
        claim.release()


def is_owned(name: BedName) -> bool:
    """Whether a process, in whatever PID namespace, owns a test bed.

    Without a lock to ask, because somebody removed the folder, the process of its name decides. A lock whose process is
    not in sight is held in another namespace, or for a moment by a child of a dead process: that is waited for.
    """
    until = time.monotonic() + FORKED_SECONDS_MAX
    while _is_locked(name):
        if start_ticks(name.pid) == name.start_ticks or time.monotonic() >= until:
            return True
        time.sleep(0.01)
    return not (name.folder / LOCK_FILE).exists() and start_ticks(name.pid) == name.start_ticks


def _is_locked(name: BedName) -> bool:
    try:
        handle = os.open(name.folder / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


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
    """Test beds that no process owns any more."""
    entries: list[str] = []
    for folder in (NETNS_FOLDER, run_folder()):
        with contextlib.suppress(OSError):
            entries.extend(os.listdir(folder))
    names = {name for entry in entries if (name := parse_name(entry)) is not None}
    return {name for name in names if not is_owned(name)}


def remove_leftovers() -> list[str]:
    """Remove what dead processes left behind and return the names of the test beds removed."""
    left = leftovers()
    if not left:
        return []
    with locked():
        # These are asked again: a test bed seen between its folder and its lock is somebody's. The others are not, for
        # each owner in another PID namespace is waited for.
        stale = sorted((name for name in left if not is_owned(name)), key=lambda name: name.stem)
        for name in stale:
            remove(name)
    return [name.stem for name in stale]


def namespaces_of(name: BedName) -> list[str]:
    """Return the network namespaces of a test bed that there are."""
    spaces = (name.gateway_namespace, name.second_namespace, name.tester_namespace)
    return [space for space in spaces if (NETNS_FOLDER / space).exists()]


def processes_in(namespace: str) -> list[int]:
    """Return the processes in a network namespace, but for this one."""
    listed = try_command(["ip", "netns", "pids", namespace]) or ""
    return [int(pid) for pid in listed.split() if int(pid) != os.getpid()]


def remove(name: BedName) -> None:
    """End the processes in the namespaces of a test bed, then remove its interfaces, namespaces and folder."""
    namespaces = namespaces_of(name)
    for namespace in namespaces:
        end_processes(processes_in(namespace))
    for namespace in namespaces:
        for side in SIDES:
            # Deleting one end deletes both at once; the kernel would do it later, when the
            # namespace is gone.
            for end in ("gm", "gw", "gx"):
                try_command(["ip", "-n", namespace, "link", "delete", name.interface(end, side)])
        try_command(["ip", "netns", "delete", namespace])
    shutil.rmtree(name.folder, ignore_errors=True)


def end_processes(pids: Iterable[int]) -> None:
    """Ask processes to end, wait, then kill those that did not."""
    waiting = set(pids)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in waiting:
            with contextlib.suppress(OSError):
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
