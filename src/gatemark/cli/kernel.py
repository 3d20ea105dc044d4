"""`gatemark kernel`: build kernels that run as a process, and list those that there are."""

from __future__ import annotations

import sys
import time
from typing import Any, Literal

from gatemark.cli.output import AsJson, print_json
from gatemark.dut.steering import usable_cpus
from gatemark.kernels.build import build_kernel
from gatemark.kernels.store import BUILD_COMMAND, Kernel, kernels

TOLD_SECONDS = 20.0
"""How often progress is told where no terminal shows it."""


def kernel(
    action: Literal["build", "list"],
    version: str | None = None,
    /,
    *,
    suite: tuple[str, ...] = (),
    jobs: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Build a kernel that runs as a process (User-Mode Linux), or list the kernels already built.

    gatemark builds it from Debian's sources, with Jool, in ~/.cache/gatemark, and keeps an existing one. The sources
    come from this machine's own suite, stable-backports, testing and unstable. A build takes 3 GB, and four to
    thirteen minutes on two CPUs.

    Parameters
    ----------
    action
        What to do.
    version
        With `build`: the kernel series, for example 7.3. Default: the newest in Debian, if none was built yet.
    suite
        With `build`: also search this Debian suite, for example trixie-backports. Can be repeated.
    jobs
        With `build`: number of files to compile at once. Default: the number of CPUs.
    as_json
        Print JSON instead of text.
    """
    if action == "list":
        built = kernels()
    else:
        progress = _Progress()
        built = [build_kernel(version, progress.tell, jobs=jobs or len(usable_cpus()), suites=suite)]
        progress.end()
    if as_json:
        print_json({"kernels": [_kernel_json(row) for row in built]})
    else:
        print("\n".join(map(_kernel_words, built)) or f"no kernel was built; build one with `{BUILD_COMMAND}`")


def _kernel_json(row: Kernel) -> dict[str, Any]:
    assert row.facts is not None, "built on this machine"
    return {
        "version": row.facts.version,
        "release": row.facts.release,
        "source": row.facts.source,
        "jool": row.facts.jool,
        "program": str(row.program),
        "current": row.is_current,
    }


def _kernel_words(row: Kernel) -> str:
    assert row.facts is not None, "built on this machine"
    jool = f"Jool {row.facts.jool}" if row.facts.jool else "without Jool"
    other = (
        "" if row.is_current else f"; built by another gatemark: rebuild it with `{BUILD_COMMAND} {row.facts.version}`"
    )
    return f"{row.facts.release}, {row.facts.source}, {jool}: {row.program}{other}"


class _Progress:
    """Tells on standard error what is being done and how long it still takes."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._doing = ""
        self._began = self._told = time.monotonic()

    def tell(self, doing: str, done: int, steps: int) -> None:
        """Tell what is being done, at once if it is another thing than before."""
        now, is_new = time.monotonic(), doing != self._doing
        if is_new:
            self._doing, self._began = doing, now
        elif now - self._told < (0.2 if self._live else TOLD_SECONDS):
            return
        self._told = now
        share = f", {done} of about {steps} files{_time_left(now - self._began, done, steps)}" if done > 1 else ""
        start = "\r\x1b[K" if self._live else ""
        print(f"{start}{doing}{share}", end="" if self._live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line of the progress empty."""
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _time_left(seconds: float, done: int, steps: int) -> str:
    """Return how long the rest takes if it goes on like this, in words; empty where that cannot be said yet."""
    if seconds < 5 or done >= steps:
        return ""
    left = seconds / done * (steps - done)
    return f", {left / 60:.0f} min left" if left >= 90 else f", {left:.0f} s left"
