"""The machine that figures belong to, and how quiet it was."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEAL_SHARE_MAX = 0.002
LOST_SHARE_MAX = 0.005
"""Beyond these shares of a processor's time the machine is called noisy."""


def facts() -> dict[str, Any]:
    """Return what is known of processor, kernel and program."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*: (.*)", info)
    return {
        "processor": model[1] if model else platform.processor(),
        "processors": sorted(os.sched_getaffinity(0)),
        "hypervisor": " hypervisor" in info,
        "kernel": platform.release(),
        "huge_pages": _huge_pages(),
        "commit": _commit(),
    }


def _huge_pages() -> int:
    found = re.search(r"HugePages_Total:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"))
    return int(found[1]) if found else 0


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Time of some processors since the machine started, in the kernel's ticks."""

    total: int
    steal: int

    @classmethod
    def now(cls, processors: Collection[int] | None = None) -> ProcessorTime:
        """Read it, of all processors if none are named."""
        names = {"cpu"} if processors is None else {f"cpu{processor}" for processor in processors}
        lines = [line.split() for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines()]
        found = [[int(word) for word in words[1:9]] for words in lines if words[0] in names]
        return cls(total=sum(map(sum, found)), steal=sum(words[7] for words in found))

    def steal_share_since(self, before: ProcessorTime) -> float:
        """Return which share of the time the hypervisor took."""
        total = self.total - before.total
        return (self.steal - before.steal) / total if total else 0.0


def noise(steal_share: float, lost_shares: list[float], longest_gap_ns: int) -> dict[str, Any]:
    """Say how quiet the machine was. `lost_shares`: of looking at the clock, what was lost in gaps, once each round."""
    worst = max(lost_shares, default=0.0)
    quiet = steal_share <= STEAL_SHARE_MAX and worst <= LOST_SHARE_MAX
    return {"quiet": quiet, "steal_share": steal_share, "lost_share_max": worst, "longest_gap_ns": longest_gap_ns}
