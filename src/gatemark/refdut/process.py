"""The process of the reference gateway: started, queried, and removed with all that it made."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from gatemark.errors import Problem, TestBedError
from gatemark.programs import find_program
from gatemark.refdut.document import Configuration

EXECUTABLE_NAME = "gatemark-refdut"
READY_S = 30.0
"""How long it may take until it forwards: it waits for memory and for its ports."""
ANSWER_S = 60.0
"""How long an answer may take: a large table takes its time to be cleared."""
TERMINATE_S = 5.0
"""How long it may take to end before it is killed."""
LOG_TAIL_CHARACTERS = 1500
FAVOURED_NICE = -15
"""Others keep a few per cent: the commands that control a gateway run beside it."""

JsonObject = dict[str, Any]


class RefDut:
    """One running reference gateway. A context manager: it ends, and its files are removed, with the block.

    ::

        with RefDut(configuration, folder) as gateway:
            gateway.counts()["forward"]["lost"]

    The configuration file, the log and the sockets lie in `folder`, which is the caller's. `keep_log`: the log stays.
    """

    def __init__(
        self,
        configuration: Configuration,
        folder: Path,
        *,
        executable: Path | None = None,
        netns: str | None = None,
        keep_log: bool = False,
    ) -> None:
        self.configuration = configuration
        self.file = folder / "refdut.toml"
        self.log = folder / "refdut.log"
        self._control = Path(configuration.control)
        self._executable = executable
        self._netns = netns
        self._keep_log = keep_log
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id; None while it does not run."""
        return None if self._child is None else self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it forwards; raise TestBedError, with nothing left behind, if it does not."""
        executable = find_refdut(self._executable)
        command = [str(executable), "run", str(self.file)]
        if self._netns is not None:
            command = [shutil.which("ip") or "ip", "netns", "exec", self._netns, *command]
        self.file.write_text(self.configuration.to_toml(), encoding="utf-8")
        try:
            with self.log.open("wb") as log:
                self._child = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
                )
            self._await_ready(self._child)
        except OSError as error:
            self.stop()
            raise TestBedError(
                what=f"cannot be started ({error.strerror or error})", where=str(executable), fix=_BUILD
            ) from error
        except BaseException:
            self.stop()
            raise

    def ask(self, command: str, **arguments: Any) -> JsonObject:
        """Give one command and return its answer; raise TestBedError if it refuses, or if it is gone."""
        line = json.dumps({"command": command, **arguments}) + "\n"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(ANSWER_S)
                connection.connect(str(self._control))
                connection.sendall(line.encode())
                answer = _first_line(connection)
        except OSError as error:
            raise self._error(f"does not answer {command!r} ({error.strerror or error})") from error
        try:
            message = json.loads(answer)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise self._error(f"answered {command!r} with {answer[:200]!r}, which is not a JSON object")
        problems = _problems(message)
        if problems:
            raise TestBedError(problems=problems)
        return message

    def counts(self) -> JsonObject:
        """Return what it has counted since it started or since `reset_counts`."""
        return self.ask("counts")

    def reset_counts(self) -> None:
        """Restart all counters and the selectors of impairments."""
        self.ask("reset_counts")

    def favour(self, *, is_measured: bool) -> None:
        """Give it priority over everything that is not real time, or take that back; do nothing without permission.

        On a machine with few CPUs other programs share its core. Each time one of them runs, the gateway does not look
        at its ports. It has a session of its own, and the kernel may weigh sessions before it weighs threads.
        """
        if self._child is None:
            return
        nice = FAVOURED_NICE if is_measured else 0
        folder = Path(f"/proc/{self._child.pid}")
        with contextlib.suppress(OSError):  # an ordinary user may not, or this kernel does not weigh sessions
            (folder / "autogroup").write_text(f"{nice}\n", encoding="ascii")

    def check(self) -> None:
        """Raise TestBedError if the process has ended."""
        if not self.is_running:
            raise self._error("ended")

    def stop(self) -> None:
        """End the process, by its number, and remove its files. Harmless if it has ended."""
        child, self._child = self._child, None
        if child is not None:
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(TERMINATE_S)
                except subprocess.TimeoutExpired:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child.pid, signal.SIGKILL)
                    child.wait()
            if child.stdout is not None:
                child.stdout.close()
        for path in (self._control, self.file, *self._own_sockets(), *(() if self._keep_log else (self.log,))):
            path.unlink(missing_ok=True)

    def _own_sockets(self) -> list[Path]:
        ports = (self.configuration.left.port, self.configuration.right.port)
        memif = [port.removeprefix("memif:") for port in ports if port.startswith("memif:") and "role=server" in port]
        return [Path(port.split(",")[0]) for port in memif]

    def _await_ready(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        until = time.monotonic() + READY_S
        text = b""
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while time.monotonic() < until:
                if not selector.select(until - time.monotonic()):
                    break
                chunk = os.read(child.stdout.fileno(), 65536)
                if not chunk:
                    child.wait(TERMINATE_S)
                    raise self._error("ended before it was ready")
                text += chunk
                if any(b"ready" in line for line in text.split(b"\n")[:-1]):
                    return
        raise self._error(f"was not ready within {READY_S:.0f} s")

    def _error(self, what: str) -> TestBedError:
        """Return the error to raise, with how the process ended and the end of its log."""
        status = None if self._child is None else self._child.poll()
        ended = "" if status is None else f"; exit status {status}"
        tail = _tail(self.log)
        said = f"; end of its log: {tail}" if tail else "; its log is empty"
        return TestBedError(
            what=f"the reference gateway {what}{ended}{said}",
            where=f"{EXECUTABLE_NAME} {self.file}",
            fix=f"run it by hand: {EXECUTABLE_NAME} check {self.file}",
        )


_BUILD = "build it with `make`, or name it in GATEMARK_REFDUT"


def find_refdut(executable: Path | None = None) -> Path:
    """Return the executable: the one given, $GATEMARK_REFDUT, the installed one, or that of the checkout.

    Raises TestBedError if there is none.
    """
    return find_program(EXECUTABLE_NAME, "GATEMARK_REFDUT", executable, TestBedError)


def _problems(message: Mapping[str, Any]) -> list[Problem]:
    """Return the problems that an answer names."""
    errors = message.get("errors") or ([message["error"]] if message.get("error") else [])
    return [
        Problem(what=str(error["what"]), where=str(error["where"]), fix=str(error.get("fix", "")))
        if isinstance(error, Mapping)
        else Problem(what=str(error), where=EXECUTABLE_NAME, fix="")
        for error in errors
    ]


def _first_line(connection: socket.socket) -> str:
    text = b""
    while b"\n" not in text:
        chunk = connection.recv(65536)
        if not chunk:
            break
        text += chunk
    return text.partition(b"\n")[0].decode("utf-8", "replace")


def _tail(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_TAIL_CHARACTERS:]
    except OSError:
        return ""
