"""Kernel threads that work off what arrives at a CPU: what soft interrupts leave to them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
NAME = re.compile(r"(?:ksoftirqd|backlog_napi)/(?P<cpu>\d+)")
"""The second one on kernels that are set to it (Linux 6.10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelThread:
    """One of them."""

    pid: int
    name: str
    cpu: int
    """The only CPU on which it runs."""


def soft_interrupt_threads(proc: Path = PROC) -> Iterator[KernelThread]:
    """Yield all that can be seen from here: in a PID namespace none."""
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if (match := NAME.fullmatch((folder / "comm").read_text(errors="replace").strip())) is not None:
                yield KernelThread(pid=int(folder.name), name=match[0], cpu=int(match["cpu"]))
