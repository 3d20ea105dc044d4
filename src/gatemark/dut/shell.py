"""How a script gets to a shell where the gateway is: in a namespace, on this machine, over ssh. One way for all.

The script goes to the standard input of `sh -s`, so no other shell reads it: ssh gives its last words to the login
shell, which need not be a POSIX one. What the script prints lies between two lines of its own, the second of which
has its exit status. Without that line nobody knows how it ended, and over ssh the connection was lost.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import shlex
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatemark.dut.commands import (
    CHATTY,
    COMMAND_SECONDS_MAX,
    TooMuchOutputError,
    finished,
    hint_for,
    require_program,
)
from gatemark.dut.ssh import KILL_AFTER_SECONDS, PATIENCE_SECONDS, SshConnection
from gatemark.errors import HostConnectionError, TestBedError
from gatemark.harmless import whole_number

SHOWN_CHARACTERS = 200
"""How much of a script an error shows."""
SAID_CHARACTERS = 800
"""How much of what it printed."""
TIMED_OUT = (124, 137)
"""Exit status of timeout(1) for a command that it ended, or had to kill."""

SCRIPT = """{{
{limited}
printf '\\n%s\\n' {token}
"$@" sh -euc {script} < /dev/null
printf '\\n%s %d\\n' {token} "$?"
}}
"""
"""One compound command, so that the shell runs nothing of a script of which it got only the beginning."""

LIMITED = """if timeout -k 1 9 true 2> /dev/null; then set -- timeout -k {kill_after} {seconds}; else set --; fi"""
"""A command that hangs at a host must end there: a local end of ssh does not end it."""


class Run(Protocol):
    """How a command gets to where the gateway is."""

    def __call__(self, script: str, *, where: str, fix: str = "", seconds_max: float = COMMAND_SECONDS_MAX) -> str:
        """Run a shell script and return its standard output; raise TestBedError if it fails or takes too long.

        It runs under `sh -eu`. Raises HostConnectionError if nobody knows how it ended.
        """


@dataclass(slots=True)
class _Ran:
    """A script that was run, and what for."""

    where: str
    ended_ns: int | None = None
    """Monotonic clock; None while it runs. Of one whose end nobody saw: when it has reached its limit."""


class Shell:
    """Runs scripts, each in a new shell. `way` returns the command that starts one, as it is to be now."""

    def __init__(
        self, way: Callable[[], Sequence[str]], *, connection: SshConnection | None = None, longer: str = ""
    ) -> None:
        """`connection`: what `way` leads through, None on this machine; `longer`: how a user allows a longer time."""
        self._way = way
        self._connection = connection
        self._longer = longer
        self._ran: deque[_Ran] = deque(maxlen=256)
        self._may_disturb = False

    def __call__(self, script: str, *, where: str, fix: str = "", seconds_max: float = COMMAND_SECONDS_MAX) -> str:
        """Run a script as `Run` says."""
        entry, latest_ns = _Ran(where), time.monotonic_ns() + int((seconds_max + KILL_AFTER_SECONDS) * 1e9)
        if not self._may_disturb:
            self._ran.append(entry)
        try:
            return self._run(script, where, fix, seconds_max)
        except HostConnectionError as error:
            entry.ended_ns = latest_ns if error.began else None
            raise
        finally:
            entry.ended_ns = entry.ended_ns or time.monotonic_ns()

    @contextlib.contextmanager
    def disturbing(self) -> Iterator[None]:
        """Let the scripts of the block disturb the gateway: that is what they are for."""
        before, self._may_disturb = self._may_disturb, True
        try:
            yield
        finally:
            self._may_disturb = before

    def command(self) -> list[str]:
        """Return what starts a shell there now; it reads a script from its standard input."""
        return list(self._way())

    def ran_since(self, at_ns: int) -> tuple[str, ...]:
        """Return what the scripts were for that ran at any time since `at_ns` (monotonic clock), in order.

        Those that are meant to disturb the gateway are left out.
        """
        late = (entry.where for entry in list(self._ran) if entry.ended_ns is None or entry.ended_ns >= at_ns)
        return tuple(dict.fromkeys(late))

    def forget(self) -> None:
        """Take note that nothing runs any more: the host has booted."""
        self._ran.clear()

    def disconnect(self) -> None:
        """End the connection; the next script makes a new one."""
        if self._connection is not None:
            self._connection.disconnect()

    def close(self) -> None:
        """End the connection; a second call does nothing."""
        if self._connection is not None:
            self._connection.close()

    def _run(self, script: str, where: str, fix: str, seconds_max: float) -> str:
        token, command, begin = secrets.token_hex(16), self.command(), time.monotonic()
        limited, patience = "set --", 0.0
        if self._connection is not None:
            limited = LIMITED.format(kill_after=KILL_AFTER_SECONDS, seconds=math.ceil(seconds_max))
            patience = PATIENCE_SECONDS
        text = SCRIPT.format(limited=limited, token=token, script=shlex.quote(script))
        try:
            done = finished(command, seconds_max + patience, given=text)
        except FileNotFoundError:
            require_program(command[0])
            raise
        except subprocess.TimeoutExpired:
            raise self._endless(script, where, fix, seconds_max) from None
        except TooMuchOutputError as error:
            what = f"`{script[:SHOWN_CHARACTERS]}` {error}"
            raise TestBedError(what=what, where=where, fix=fix or CHATTY) from None
        output, status = _between(done.stdout, token)
        if status is None:
            raise self._unknown_end(done, where, began=output is not None)
        if self._connection is not None and status in TIMED_OUT and time.monotonic() - begin >= seconds_max:
            raise self._endless(script, where, fix, seconds_max)
        if status != 0:
            said = (done.stderr.strip() or (output or "").strip() or "no output")[-SAID_CHARACTERS:]
            raise TestBedError(
                what=f"`{_shown(script)}` failed with status {status}: {said}",
                where=where,
                fix=fix or (hint_for(said) if self._connection is None else self._connection.by_hand),
            )
        return output or ""

    def _endless(self, script: str, where: str, fix: str, seconds_max: float) -> TestBedError:
        advice = (fix, self._longer, "a daemon must leave its output: `daemon > /dev/null 2>&1 &`")
        return TestBedError(
            what=f"`{_shown(script)}` did not end within {seconds_max:g} s",
            where=where,
            fix="; ".join(part for part in advice if part),
        )

    def _unknown_end(self, done: subprocess.CompletedProcess[str], where: str, *, began: bool) -> TestBedError:
        said = done.stderr.strip()[-SAID_CHARACTERS:]
        if self._connection is not None:
            return self._connection.failure(said, where, began=began)
        words = shlex.join(done.args)
        return TestBedError(
            what=f"`{words}` ended with status {done.returncode} before the command had: {said or 'no output'}",
            where=where,
            fix="it must be a POSIX shell that reads a script from its standard input, for example `sh -s`",
        )


def shell_at(host: str | None, words: Sequence[str], *, longer: str = "") -> Shell:
    """Return the shell that `words` start at a host, which ssh reaches, or on this machine; they read standard input.

    `longer`: how a user allows a longer time.
    """
    if host is None:
        return Shell(lambda: words, longer=longer)
    connection = SshConnection(host)
    return Shell(lambda: connection.command(words), connection=connection, longer=longer)


def attempt(run: Run, script: str, *, where: str, seconds_max: float = COMMAND_SECONDS_MAX) -> str | None:
    """Run a script that may fail; return its output, None if it failed. A lost connection is an error even so."""
    try:
        return run(script, where=where, seconds_max=seconds_max)
    except HostConnectionError:
        raise
    except TestBedError:
        return None


def _between(output: str, token: str) -> tuple[str | None, int | None]:
    """Return what a script printed and its status; None for what is missing."""
    _, began, rest = output.partition(f"\n{token}\n")
    printed, ended, status = rest.rpartition(f"\n{token} ")
    if not began:
        return None, None
    number = whole_number(status.strip())
    return (printed, number) if ended and number is not None else (rest, None)


def _shown(script: str) -> str:
    text = " ".join(script.split())
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
