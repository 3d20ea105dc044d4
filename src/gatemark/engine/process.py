"""Start and stop the engine's process. Lines on its standard input and output, words for people in its log."""

from __future__ import annotations

import contextlib
import hashlib
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from gatemark.engine.client import EngineClient
from gatemark.errors import EngineError, ResultError
from gatemark.files import open_to_append
from gatemark.programs import find_program

CLOSE_S = 5.0
"""How long the engine may take to end by itself once its input is closed."""

TERMINATE_S = 2.0
"""How long it may take after SIGTERM before SIGKILL."""

LOG_TAIL_LINES = 12
READ_BYTES = 1 << 16
EXECUTABLE_NAME = "gatemark-engine"


class EngineProcess:
    """The engine as a child in a process group of its own, so that Ctrl-C in the terminal does not reach it."""

    def __init__(self, command: Sequence[str], *, log: Path | None) -> None:
        self._log = _open_log(log)
        self._log_path = log
        self._tail = ""
        self._lines: deque[str] = deque()
        self._partial = b""
        try:
            self._child = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
            )
        except OSError as error:
            self._log.close()
            raise EngineError(
                what=f"cannot be started ({error.strerror or error})",
                where=command[0],
                fix="build it with `make`, or name it in GATEMARK_ENGINE",
            ) from error
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._input, self._output = self._child.stdin, self._child.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, line: str) -> None:
        """Send one line; raise OSError if the engine is gone."""
        self._input.write(line.encode() + b"\n")
        self._input.flush()

    def receive(self, timeout_s: float) -> str | None:
        """Return the next line, None at the end of file; raise TimeoutError if there is none in time."""
        deadline = time.monotonic() + timeout_s
        while not self._lines:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            chunk = os.read(self._output.fileno(), READ_BYTES)
            if not chunk:
                return None
            *whole, self._partial = (self._partial + chunk).split(b"\n")
            self._lines.extend(line.decode("utf-8", "replace") for line in whole if line.strip())
        return self._lines.popleft()

    def kill(self) -> None:
        """End the engine and whatever it started, at once."""
        self._signal(signal.SIGKILL)
        self._child.wait()
        self._release()

    def close(self) -> None:
        """Close the engine's input, which ends it; if it stays, terminate it, then kill it."""
        with contextlib.suppress(OSError):
            self._input.close()
        for patience_s, next_signal in ((CLOSE_S, signal.SIGTERM), (TERMINATE_S, signal.SIGKILL)):
            try:
                self._child.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                self._signal(next_signal)
        self._child.wait()
        self._release()

    def describe_end(self) -> str:
        """Say how the engine ended and what it wrote last."""
        code = self._child.poll()
        if code is None:
            ended = "it is still running"
        elif code < 0:
            ended = f"ended by signal {signal.Signals(-code).name}"
        else:
            ended = f"exit status {code}"
        tail = self._tail if self._log.closed else self._log_tail()
        place = f" ({self._log_path})" if self._log_path is not None else ""
        return f"{ended}; end of its log{place}:\n{tail}" if tail else f"{ended}; its log{place} is empty"

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    def _release(self) -> None:
        if self._log.closed:
            return
        self._tail = self._log_tail()
        self._selector.close()
        for stream in (self._input, self._output, self._log):
            with contextlib.suppress(OSError):
                stream.close()

    def _log_tail(self) -> str:
        try:
            if self._log_path is not None:
                text = self._log_path.read_bytes()
            else:
                self._log.seek(0)
                text = self._log.read()
        except OSError:
            return ""
        return "\n".join("  " + line for line in text.decode("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:])


def _open_log(log: Path | None) -> IO[bytes]:
    try:
        return open_to_append(log) if log is not None else tempfile.TemporaryFile()
    except OSError as error:
        raise ResultError(
            what=f"the engine's log cannot be written ({error.strerror or error})",
            where=str(log or tempfile.gettempdir()),
            fix="make room or correct the permissions, then start again or continue with --resume",
        ) from error


def start_engine(*, netns: str | None = None, log: Path | None = None, executable: Path | None = None) -> EngineClient:
    """Start an engine, check that it speaks our protocol, and return the client that owns it.

    `netns`: name of the network namespace to run in (needs root); `log`: file for its standard error, appended to.
    Raises EngineError if it is not found, does not start or speaks another protocol.
    """
    command = [str(find_engine(executable))]
    if netns is not None:
        ip = shutil.which("ip")
        if ip is None:
            raise EngineError(what="`ip` is not installed", where="network namespace", fix="install iproute2")
        command = [ip, "netns", "exec", netns, *command]
    client = EngineClient(EngineProcess(command, log=log))
    try:
        client.hello()
    except BaseException:
        with contextlib.suppress(EngineError):
            client.close()
        raise
    return client


def engine_sha256() -> str:
    """Return the digest of the engine's program, in hexadecimal."""
    return hashlib.sha256(find_engine().read_bytes()).hexdigest()


def find_engine(executable: Path | None = None) -> Path:
    """Return the engine's executable: the one given, $GATEMARK_ENGINE, the installed one, or that of the checkout."""
    return find_program(EXECUTABLE_NAME, "GATEMARK_ENGINE", executable, EngineError)
