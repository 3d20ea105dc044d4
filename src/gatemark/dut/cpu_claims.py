"""CPUs that belong to a run for its time: two runs on one CPU would measure each other.

Each CPU has a file, locked while its run lasts. The kernel lets go of a lock when its process ends, however it ends, so
there is nothing to clean up. The file stays and says who had the lock last.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import shlex
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from gatemark.errors import TestBedError

FOLDER = Path("/run/lock")
"""Every user may write there, so that runs of different users see each other."""


@contextlib.contextmanager
def claimed_cpus(cpus: Collection[int], *, result: Path | None = None, folder: Path = FOLDER) -> Iterator[None]:
    """Keep CPUs from every other run inside the block; `result` is the folder that others are told.

    Raises TestBedError, keeping none, if another run has one of them.
    """
    with contextlib.ExitStack() as stack:
        for cpu in sorted(cpus):
            stack.enter_context(_claimed(cpu, result, folder))
        yield


@contextlib.contextmanager
def _claimed(cpu: int, result: Path | None, folder: Path) -> Iterator[None]:
    path = folder / f"gatemark-cpu-{cpu}.lock"
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir()  # a container may have an empty /run
            folder.chmod(0o1777)
        file = _open(path)
    except OSError as error:
        raise TestBedError(
            what=f"cannot be locked ({error.strerror})",
            where=str(path),
            fix="it keeps two runs from using one CPU; make the folder writable",
        ) from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(cpu, os.pread(file, 1 << 16, 0)) from None
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(_this_run(result)).encode() + b"\n", 0)
        yield
    finally:
        os.close(file)


def _open(path: Path) -> int:
    """Open a file that every user may lock; `O_CREAT` on the file of another user is refused in such a folder."""
    with contextlib.suppress(FileExistsError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        os.fchmod(file, 0o666)  # whatever the umask says
        return file
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW)


def _this_run(result: Path | None) -> dict[str, str | int]:
    return {
        "pid": os.getpid(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "folder": str((Path.cwd() if result is None else result).resolve()),
        "since": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _taken(cpu: int, text: bytes) -> TestBedError:
    try:
        run = json.loads(text)
        who = f"process {run['pid']} (`{run['command']}`, in {run['folder']}, since {run['since']})"
    except (ValueError, KeyError, TypeError):  # it has just got the lock and did not write yet
        who = "a process that has just been started"
    return TestBedError(
        what=f"another run of gatemark uses it: {who}",
        where=f"CPU {cpu}",
        fix="wait until that run ends, or name other CPUs with testbed.cores and testbed.gateway_cores",
    )
