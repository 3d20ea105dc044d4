"""Running the commands of the test bed; a failed one becomes one TestBedError with its remedy."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from gatemark.errors import TestBedError, TesterPortError

DEBIAN_PACKAGES: Mapping[str, str] = {
    "ip": "iproute2",
    "ethtool": "ethtool",
    "nft": "nftables",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "tayga": "tayga",
    "taskset": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "env": "coreutils",
    "sh": "dash",
    "ssh": "openssh-client",
}
"""Debian package of each program that test beds and built-in recipes use."""

COMMAND_SECONDS_MAX = 30
"""A set-up command that takes longer hangs."""

LONGER = "if it needs longer, raise its limit under gateway.control.limits"
"""How a user allows a command of the gateway a longer time."""

_HINTS = (
    ("Operation not permitted", "network namespaces need root: run as root, for example with sudo"),
    ("Permission denied", "network namespaces need root: run as root, for example with sudo"),
    ("No such file or directory", "check that the program is installed and the file exists"),
    ("RTNETLINK answers: Not supported", "this kernel lacks the feature; see /proc/config.gz or /boot/config-*"),
    ("Unknown device type", "this kernel lacks the interface type; load or build its module"),
)


def require_program(program: str, package: str | None = None) -> str:
    """Return the path of `program`; raise TestBedError that names the Debian package if it is not installed."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if path is None:
        package = package or DEBIAN_PACKAGES.get(program, program)
        raise TestBedError(
            what=f"program `{program}` is not installed", where="test bed", fix=f"apt-get install {package}"
        )
    return path


@contextlib.contextmanager
def telling_tester_port() -> Iterator[None]:
    """Raise TesterPortError in place of TestBedError: what was looked at is the Tester's, not the gateway's."""
    try:
        yield
    except TestBedError as error:
        raise TesterPortError(problems=error.problems) from error


def run_command(
    command: Sequence[str], *, where: str, fix: str = "", longer: str = "", seconds_max: float = COMMAND_SECONDS_MAX
) -> str:
    """Run `command` and return its standard output; raise TestBedError if it cannot run, fails or hangs.

    `longer`: how a user allows a longer time.
    """
    try:
        done = finished(command, seconds_max)
    except FileNotFoundError:
        require_program(command[0])
        raise
    except subprocess.TimeoutExpired:
        raise TestBedError(
            what=f"`{shlex.join(command)}` did not end within {seconds_max:g} s",
            where=where,
            fix="; ".join(
                part
                for part in (fix or "run the command by hand; a daemon belongs under `start`, not `setup`", longer)
                if part
            ),
        ) from None
    except TooMuchOutputError as error:
        raise TestBedError(what=f"`{shlex.join(command)}` {error}", where=where, fix=CHATTY) from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no output")[-800:]
        raise TestBedError(
            what=f"`{shlex.join(command)}` failed with status {done.returncode}: {said}",
            where=where,
            fix=fix or hint_for(said),
        )
    return done.stdout


def hint_for(said: str) -> str:
    """Return the remedy for what a failed command of this machine printed."""
    return next((hint for text, hint in _HINTS if text in said), "run the command by hand to see why")


def try_command(command: Sequence[str], seconds_max: float = COMMAND_SECONDS_MAX) -> str | None:
    """Run `command` and return its standard output, or None if it could not run or failed: for removal and reading."""
    try:
        done = finished(command, seconds_max)
    except (OSError, subprocess.TimeoutExpired, TooMuchOutputError):
        return None
    return done.stdout if done.returncode == 0 else None


def read_each(shell: Callable[[str], Sequence[str]], scripts: Collection[str]) -> list[str]:
    """Return what each of some scripts prints, all run by one command: in a guest each takes a twentieth of a second.

    `shell` returns the command that runs a script. Of a script that fails there is what it had printed.
    """
    end = secrets.token_hex(16)
    text = "\n".join(f"( {script} ) || :\nprintf '\\n%s\\n' {end}" for script in scripts)
    printed = (try_command(shell(text)) or "").split(f"\n{end}\n")
    return [*printed[:-1], *[""] * len(scripts)][: len(scripts)]


OUTPUT_OCTETS_MAX = 16 << 20
"""Of standard output or standard error of one command: a list of all connections of a large table has less."""


CHATTY = "let it print less, or send its output to a file there"


class TooMuchOutputError(Exception):
    """A command printed more than anybody reads; it was killed."""

    def __init__(self) -> None:
        super().__init__(f"printed more than {OUTPUT_OCTETS_MAX >> 20} MiB")


def finished(
    command: Sequence[str], seconds_max: float, *, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `command` in a process group of its own; kill all of the group if it takes too long or we are stopped.

    `given` is its standard input. Octets that are no UTF-8 are replaced: a command may print whatever it likes.
    Raises OSError if the command cannot run, TimeoutExpired if it takes too long, TooMuchOutputError.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = _communicate(process, given, seconds_max)
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return subprocess.CompletedProcess(list(command), process.returncode, output, errors)


def _communicate(process: subprocess.Popen[bytes], given: str | None, seconds_max: float) -> tuple[str, str]:
    """Write the standard input of a process and read the rest, as `Popen.communicate` does, but only so much."""
    end = time.monotonic() + seconds_max
    kept: dict[int, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            assert stream is not None, "both are pipes"
            selector.register(stream, selectors.EVENT_READ)
            kept[stream.fileno()] = bytearray()
        waiting = memoryview(b"" if given is None else given.encode())
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.monotonic()))
            if not ready and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(process.args, seconds_max)
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    try:
                        waiting = waiting[os.write(key.fd, waiting[: 1 << 16]) :]
                    except BrokenPipeError:
                        waiting = waiting[:0]
                    if not waiting:
                        selector.unregister(key.fileobj)
                        process.stdin.close()
                    continue
                piece = os.read(key.fd, 1 << 16)
                kept[key.fd] += piece
                if not piece:
                    selector.unregister(key.fileobj)
                if len(kept[key.fd]) > OUTPUT_OCTETS_MAX:
                    raise TooMuchOutputError
        process.wait(max(0.0, end - time.monotonic()))
    output, errors = (_text(octets) for octets in kept.values())
    return output, errors


def _text(octets: bytes | bytearray) -> str:
    """Return what was printed with the line ends of this machine."""
    return octets.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
