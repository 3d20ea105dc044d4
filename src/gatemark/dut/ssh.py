"""The gateway's host by OpenSSH's own client, so that what the user's ~/.ssh/config says is true here as well.

The first command makes a connection, which the others share (ControlMaster); it ends with the test bed. If this process
is killed, it ends by itself a minute after its last command.
"""

from __future__ import annotations

import atexit
import contextlib
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gatemark.dut.commands import finished
from gatemark.errors import RESUME, HostConnectionError

CONNECT_SECONDS = 10
ALIVE_SECONDS = 5
ALIVE_COUNT = 3
KILL_AFTER_SECONDS = 5
"""How long a command of the host may take to end when it is asked to, before it is killed there."""
PATIENCE_SECONDS = CONNECT_SECONDS + ALIVE_SECONDS * (ALIVE_COUNT + 1) + KILL_AFTER_SECONDS
"""How much longer than the limit of its command ssh may take: it connects, and notices that a host is gone."""
EXIT_SECONDS_MAX = 5.0

OPTIONS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    f"ConnectTimeout={CONNECT_SECONDS}",
    f"ServerAliveInterval={ALIVE_SECONDS}",
    f"ServerAliveCountMax={ALIVE_COUNT}",
    "ClearAllForwardings=yes",
    "ControlMaster=auto",
    "ControlPersist=60",
)

FOLDER = Path("/tmp")
"""Where the folder of the connection is made: the path of a socket has at most 107 octets."""


class SshConnection:
    """One connection to a host, made when it is first needed, and again after it was lost."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._folder: Path | None = None

    @property
    def by_hand(self) -> str:
        """The remedy where a command has failed at the host."""
        return f"run the command there by hand to see why: ssh {self.host}"

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command that runs `words` at the host; its login shell splits them."""
        return ["ssh", "-T", "-x", "-a", *self._options(), "--", self.host, shlex.join(words)]

    def close(self) -> None:
        """End the connection; a second call does nothing, and a command after it makes a new one."""
        if self._folder is None:
            return
        self.disconnect()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        atexit.unregister(self.close)

    def disconnect(self) -> None:
        """End the connection, so that the next command makes a new one."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            finished(["ssh", "-O", "exit", *self._options(), "--", self.host], EXIT_SECONDS_MAX)

    def failure(self, said: str, where: str, *, began: bool) -> HostConnectionError:
        """Return the error where the end of a command is not known; `said` is what ssh printed."""
        if began:
            what = f"the connection to {self.host} was lost while the command ran: {said or 'no message from ssh'}"
            fix = (
                "the command may or may not have run: check that the management network does not depend on the links"
                f" under test and that the host is up, then continue with {RESUME}"
            )
            return HostConnectionError(what=what, where=where, fix=fix, began=True)
        fix = next((fix for text, fix in _REMEDIES if text in said), _REMEDY)
        return HostConnectionError(
            what=f"no command reaches {self.host}: {said or 'no message from ssh'}",
            where=where,
            fix=fix.format(host=self.host),
            began=False,
        )

    def _options(self) -> list[str]:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="gatemark-", dir=FOLDER))  # mode 0700
            atexit.register(self.close)
        options = (*OPTIONS, f"ControlPath={self._folder}/%C")
        return [word for option in options for word in ("-o", option)]


_REMEDY = "check that this works without a prompt: ssh -o BatchMode=yes {host} sh -c true"
_REMEDIES = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host's key has changed: if the host was reinstalled, remove the old key with `ssh-keygen -R` and its"
        " name, then connect once by hand; if not, another machine answers",
    ),
    (
        "Host key verification failed",
        "the host's key is unknown: connect once by hand with `ssh {host}`, as the user who runs gatemark, and"
        " compare the key with that of the host",
    ),
    (
        "Permission denied",
        "the host accepts no key of this user: ssh-copy-id {host}; a key with a passphrase needs an agent",
    ),
    ("Could not resolve hostname", "correct the name, or write it into ~/.ssh/config of the user who runs gatemark"),
    (
        "a password is required",
        "sudo asks for a password: give the user NOPASSWD in /etc/sudoers.d at the host, or connect as root",
    ),
    ("sudo:", "check that this works without a prompt: ssh {host} sudo -n true"),
)
"""What ssh or sudo says, and what to do about it. The first row that fits counts."""
