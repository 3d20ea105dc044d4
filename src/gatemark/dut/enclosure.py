"""Where the gateway's commands and daemons run: its network namespace, with mounts and process numbers of its own.

A recipe's commands run as root, and their files are those of the machine. What they mount is seen by them alone, and
they see and signal no process but their own: `pkill` in a recipe reaches no other. When the first process of the
enclosure ends, the kernel ends all others, daemons in sessions of their own as well; it ends with the thread that
opened it (PR_SET_PDEATHSIG), even if that is killed.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gatemark.dut.gateway_kernel import CommandPlace
from gatemark.dut.naming import NETNS_FOLDER
from gatemark.errors import TestBedError

HOLD = ("sh", "-c", "echo ready; exec sleep infinity")
"""The first process: it keeps the enclosure open."""


class Enclosure(CommandPlace):
    """Namespaces of the processes of one gateway, from `open` to `close`. Needs root."""

    def __init__(self, namespace: str, folder: Path, first: Sequence[str] = HOLD) -> None:
        """`namespace`: name of the network namespace; `folder`: where commands run.

        `first`: the first process; it prints `ready` when it runs.
        """
        self._namespace = namespace
        self._folder = folder
        self._first = first
        self._holder: subprocess.Popen[str] | None = None

    @property
    def is_open(self) -> bool:
        return self._holder is not None

    def open(self) -> None:
        """Make the namespaces; raise TestBedError if the machine does not allow them."""
        inside = ["ip", "netns", "exec", self._namespace]
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *inside, *unshare, *self._first],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._holder = holder
        assert holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            said = holder.stderr.read().strip()
            self.close()
            raise TestBedError(
                what=f"mount and PID namespace cannot be made: {said or 'no output'}",
                where=f"gateway's namespace {self._namespace}",
                fix="recipes need them; in a container, give it CAP_SYS_ADMIN and an unmasked /proc",
            )

    def command(self, *command: str) -> list[str]:
        """Return `command` as it runs inside, in the gateway's folder."""
        if self._holder is None:
            raise TestBedError(
                what="the gateway's namespaces are closed", where=f"namespace {self._namespace}", fix="start again"
            )
        spaces = f"/proc/{self._holder.pid}/ns"
        kinds = [f"--net={NETNS_FOLDER / self._namespace}", f"--mount={spaces}/mnt", f"--pid={spaces}/pid_for_children"]
        return ["nsenter", *kinds, "--", "env", f"--chdir={self._folder}", *command]

    def await_line(self, line: str, seconds_max: float) -> bool:
        """Whether the first process prints `line` as its next one in time."""
        assert self._holder is not None and self._holder.stdout is not None
        ready, _, _ = select.select([self._holder.stdout], [], [], seconds_max)
        return bool(ready) and self._holder.stdout.readline() == f"{line}\n"

    @property
    def lives(self) -> bool:
        """Whether the first process runs, and with it all others."""
        return self._holder is not None and self._holder.poll() is None

    @property
    def pid(self) -> int | None:
        """The process that was started to open it, on this machine; None while it is closed."""
        return None if self._holder is None else self._holder.pid

    def close(self) -> None:
        """End all processes inside, whatever they do; a second call does nothing."""
        holder, self._holder = self._holder, None
        if holder is None:
            return
        with contextlib.suppress(ProcessLookupError):
            holder.kill()
        holder.wait()
        for stream in (holder.stdout, holder.stderr):
            if stream is not None:
                stream.close()


def first_child(pid: int) -> int | None:
    """Return the process that `nsenter` with number `pid` started inside; None if there is none."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(children[0]) if children else None
