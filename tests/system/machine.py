"""What system tests need of the machine: an engine for an ordinary user, and the command line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatemark.dut.cpu_visitors import soft_interrupt_threads
from gatemark.dut.kernel_counters import neighbours_held
from gatemark.engine.process import find_engine
from gatemark.errors import EngineError
from gatemark.kernels.store import newest_kernel

NOBODY = 65534
"""An ordinary user and group that every Linux has."""
COMMAND_SECONDS_MAX = 120


def missing_for_guest(*tools: str) -> list[str]:
    """Name what this machine lacks for gateways of the kernel in a kernel of their own."""
    kernel = [] if newest_kernel() is not None else ["`gatemark kernel build`"]
    return missing("ip", "ethtool", "taskset", "setpriv", "unshare", "nft", *tools, root=True) + kernel


def missing(*tools: str, root: bool = False, engine: bool = True) -> list[str]:
    """Name what this machine lacks."""
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    if root and os.geteuid() != 0:
        lacking.insert(0, "root")
    if engine:
        try:
            find_engine()
        except EngineError:
            lacking.append("gatemark-engine")
    return lacking


def sees_kernel_threads() -> bool:
    """Whether the kernel's threads are to be seen; in a container with a PID namespace of its own they are not."""
    return any(True for _ in soft_interrupt_threads())


def neighbours_free() -> int:
    """Return how many more IPv4 neighbours the kernel's table takes, of which all network namespaces have one."""
    limit = int(Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3").read_text(encoding="ascii"))
    return limit - neighbours_held("ipv4")


def nothing_compared(said: str) -> None:
    """Tell in pytest's summary that a test asserted only what a result says of a busy machine."""
    warnings.warn(f"the machine was busy: {said}", stacklevel=2)


own_cpu = pytest.mark.cpus(2, "a gateway with one of its own")


def cpu_each(workers: int) -> pytest.MarkDecorator:
    """Return the mark of a test with this many workers, which share no CPU."""
    return pytest.mark.cpus(workers, "each worker has one of its own")


def nightly_but(chosen: Container[int], why: str, values: Iterable[Any]) -> list[Any]:
    """Return the values of a parametrized test: every run has those at the chosen places, the night all of them.

    A value that is a tuple has one part for each parameter.
    """
    mark = pytest.mark.nightly(why)
    every = (value if isinstance(value, tuple) else (value,) for value in values)
    return [pytest.param(*value, marks=() if place in chosen else mark) for place, value in enumerate(every)]


def without_rights(command: Sequence[str]) -> list[str]:
    """Return the command as an ordinary user runs it; the caller is that user already unless it is root."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", *command]


@contextlib.contextmanager
def ordinary_engine() -> Iterator[tuple[Path, Path]]:
    """Make a folder that everyone may use; yield an engine in it that runs without rights, and the folder.

    The folder lies outside pytest's, which only its owner may enter; the same may be true of the checkout.
    """
    folder = Path(tempfile.mkdtemp(prefix="gm-g-"))
    try:
        folder.chmod(0o777)
        shutil.copy(find_engine(), folder / "engine")
        (folder / "engine").chmod(0o755)
        wrapper = folder / "ordinary-engine"
        wrapper.write_text(f'#!/bin/sh\nexec {" ".join(without_rights([str(folder / "engine")]))} "$@"\n')
        wrapper.chmod(0o755)
        yield wrapper, folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended and what it wrote."""

    status: int
    output: str
    words: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.output)


def gatemark(*arguments: str | Path, prefix: Sequence[str] = (), cwd: Path | None = None) -> Ended:
    """Run the command line to its end; `prefix` goes before it, for example `ip netns exec NAME`."""
    done = subprocess.run(
        [*prefix, *command_line(*arguments)],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        cwd=cwd,
        check=False,
    )
    return Ended(status=done.returncode, output=done.stdout, words=done.stderr)


def command_line(*arguments: str | Path) -> list[str]:
    """Return the command line of gatemark from this checkout or installation."""
    return [sys.executable, "-m", "gatemark.cli.main", *(str(argument) for argument in arguments)]


def run(*command: str | Path, check: bool = True) -> str:
    """Run a program and return what it wrote."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout
