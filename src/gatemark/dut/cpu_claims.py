"""CPUs that belong to a run for its time: two runs on one CPU would measure each other.

Each CPU has a file, locked while its run lasts. The kernel lets go of a lock when its process ends, however it ends, so
there is nothing to clean up: the file stays, and is empty. Who has the lock, the kernel tells.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

from gatemark.errors import TestBedError
from gatemark.files import open_to_read

FOLDER = Path("/run/lock")
"""Every user may make files there, so that runs of different users see each other."""
LOCKS = Path("/proc/locks")


@contextlib.contextmanager
def claimed_cpus(cpus: Collection[int], *, folder: Path = FOLDER) -> Iterator[None]:
    """Keep CPUs from every other run inside the block.

    Raises TestBedError, keeping none, if another run has one of them.
    """
    with contextlib.ExitStack() as stack:
        for cpu in sorted(cpus):
            stack.enter_context(_claimed(cpu, folder))
        yield


@contextlib.contextmanager
def _claimed(cpu: int, folder: Path) -> Iterator[None]:
    path = folder / f"gatemark-cpu-{cpu}.lock"
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir()  # a container may have an empty /run
            folder.chmod(0o1777)
        _make(path)
        file = open_to_read(path)
    except OSError as error:
        raise TestBedError(
            what=f"cannot be locked ({error.strerror})",
            where=str(path),
            fix="it keeps two runs from using one CPU; make the folder writable",
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(cpu, os.fstat(file.fileno())) from None
        yield


def _make(path: Path) -> None:
    """Make a file that every user may lock, which needs no right to write it."""
    with contextlib.suppress(FileExistsError):
        file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        os.fchmod(file, 0o644)  # whatever the umask says
        os.close(file)


def _taken(cpu: int, file: os.stat_result) -> TestBedError:
    return TestBedError(
        what=f"another run of gatemark uses it: {_holder(file)}",
        where=f"CPU {cpu}",
        fix="wait until that run ends, or name other CPUs with testbed.cores and testbed.gateway_cores",
    )


def _holder(file: os.stat_result) -> str:
    """Name the process that has a file locked; one of another container has no number here."""
    device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    with contextlib.suppress(OSError):
        for lock in LOCKS.read_text(encoding="ascii").splitlines():
            _, kind, _, _, pid, where, *_ = lock.replace("-> ", "").split()
            if (kind, where) == ("FLOCK", device) and int(pid) > 0:
                command = Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
                return f"process {pid} (`{shlex.join(command.rstrip(chr(0)).split(chr(0)))}`)"
    return "a process that has no number here, perhaps in another container"
