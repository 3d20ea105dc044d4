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
"""Beyond these shares of a CPU's time the machine is called noisy."""


def facts() -> dict[str, Any]:
    """Return what is known of CPU, kernel and program."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*: (.*)", info)
    return {
        "cpu": model[1] if model else platform.processor(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "hypervisor": " hypervisor" in info,
        "kernel": platform.release(),
        "huge_pages": _huge_pages(),
        "commit": _commit(),
    }


def _huge_pages() -> int:
    line = re.search(r"HugePages_Total:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"))
    return int(line[1]) if line else 0


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Time of some CPUs since the machine started, in the kernel's ticks."""

    total: int
    steal: int

    @classmethod
    def now(cls, cpus: Collection[int] | None = None) -> CpuTime:
        """Read it, of all CPUs if none are named."""
        names = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
        lines = [line.split() for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines()]
        ticks = [[int(word) for word in words[1:9]] for words in lines if words[0] in names]
        return cls(total=sum(map(sum, ticks)), steal=sum(words[7] for words in ticks))

    def steal_share_since(self, before: CpuTime) -> float:
        """Return which share of the time the hypervisor took."""
        total = self.total - before.total
        return (self.steal - before.steal) / total if total else 0.0


def noise(steal_share: float, lost_shares: list[float], longest_gap_ns: int) -> dict[str, Any]:
    """Say how quiet the machine was. `lost_shares`: of looking at the clock, what was lost in gaps, once each round."""
    worst = max(lost_shares, default=0.0)
    quiet = steal_share <= STEAL_SHARE_MAX and worst <= LOST_SHARE_MAX
    return {"quiet": quiet, "steal_share": steal_share, "lost_share_max": worst, "longest_gap_ns": longest_gap_ns}
