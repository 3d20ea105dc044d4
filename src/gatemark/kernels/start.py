"""How a User-Mode Linux kernel is started, and whether one that was built starts on this machine."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gatemark.errors import TestBedError

START_SECONDS_MAX = 30.0
"""How long a kernel may take until its first process says so; a quarter of a second on an idle machine."""
MEGABYTES_TO_START = 64
STARTED = "gatemark: started"
FIRST_PROCESS = f"""#!/bin/sh
/bin/mount -t proc proc /proc
echo "{STARTED} $(/bin/uname -r)"
while :; do /bin/sleep 1; done
"""
"""What a new kernel runs: it says which one it is, and is killed. A first process that ends would be a panic."""


def kernel_command(program: Path, first_process: Path, *, megabytes: int, more: Sequence[str] = ()) -> list[str]:
    """Return the command of a kernel whose root is that of this machine, read-only; its console is standard output."""
    root = ("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro")
    console = ("con=null", "con0=null,fd:1", "ssl=null", "quiet")
    return [str(program), f"mem={megabytes}M", *root, f"init={first_process}", "seccomp=on", *console, *more]


def check_start(program: Path, release: str) -> None:
    """Raise TestBedError if a kernel does not start on this machine, or is another one."""
    with tempfile.TemporaryDirectory(dir=program.parent, ignore_cleanup_errors=True) as folder:
        script = Path(folder) / "init"
        script.write_text(FIRST_PROCESS, encoding="ascii")
        script.chmod(0o755)
        process = subprocess.Popen(
            kernel_command(program, script, megabytes=MEGABYTES_TO_START),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said = _until_started(process, f"{STARTED} {release}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    if f"{STARTED} {release}" not in said:
        raise TestBedError(
            what=f"the kernel was built, but it does not start on this machine: {said.strip()[-300:]}",
            where=f"Linux {release}",
            fix="try another version: gatemark kernel build VERSION; those before 7.2 fail on many machines",
        )


def _until_started(process: subprocess.Popen[bytes], line: str) -> str:
    """Return what a kernel prints until it has printed `line`, has ended, or takes too long."""
    assert process.stdout is not None
    said, until = "", time.monotonic() + START_SECONDS_MAX
    while line not in said:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
        part = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if not part:
            return said if ready else f"{said}\nit did not start within {START_SECONDS_MAX:g} s"
        said += part.decode(errors="replace")
    return said
