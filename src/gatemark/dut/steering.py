"""Which cores work for the Tester and which for the gateway, where both live on one machine.

A veth end hands a frame over in the sender's own system call, so without steering the gateway's work would run on the
Tester's worker core and an overloaded gateway would show as a slow Tester. Receive packet steering (RPS) on the
gateway's ends moves that work to the gateway's cores.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gatemark.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan:
    """The cores of each party, ascending."""

    tester: tuple[int, ...]
    """Cores for the Tester's workers."""
    gateway: tuple[int, ...]
    """Cores for the gateway's kernel work and daemons."""

    @property
    def shared(self) -> bool:
        """Whether a core works for both, so that a measured limit may be that of either."""
        return bool(set(self.tester) & set(self.gateway))


def usable_cpus() -> list[int]:
    """Return the CPUs that this process may use, ascending."""
    return sorted(os.sched_getaffinity(0))


def plan_cores(usable: Sequence[int], *, tester: Collection[int] = (), gateway: Collection[int] = ()) -> CorePlan:
    """Divide the cores in `usable`: by default the last one for the Tester, all others for the gateway.

    What is named in `tester` or `gateway` is kept. On a machine with one core both use it. Raises ConfigError for a
    core that is not usable.
    """
    problems = [
        f"CPU {core} is not usable ({name})"
        for name, cores in (("testbed.cores", tester), ("testbed.gateway_cores", gateway))
        for core in sorted(set(cores) - set(usable))
    ]
    if problems:
        usable_text = ", ".join(str(core) for core in usable)
        raise ConfigError(what="; ".join(problems), where="testbed", fix=f"usable CPUs are {usable_text}")
    named_tester, named_gateway = tuple(sorted(set(tester))), tuple(sorted(set(gateway)))
    if not named_tester:
        free = [core for core in usable if core not in named_gateway]
        named_tester = ((free or list(usable))[-1],)
    if not named_gateway:
        named_gateway = tuple(core for core in usable if core not in named_tester) or tuple(usable)
    return CorePlan(tester=named_tester, gateway=named_gateway)


def cpu_mask(cores: Collection[int]) -> str:
    """Write `cores` as the kernel's comma-separated hexadecimal mask, 32 CPUs a group; `0` for none."""
    mask = sum(1 << core for core in set(cores))
    groups = []
    while mask:
        groups.append(mask & 0xFFFFFFFF)
        mask >>= 32
    if not groups:
        return "0"
    return ",".join([f"{groups[-1]:x}", *(f"{group:08x}" for group in reversed(groups[:-1]))])


LAST_NICE = 19


@contextlib.contextmanager
def keeping_off(cpus: Collection[int]) -> Iterator[None]:
    """Keep the threads of this process off the cores of the Tester's workers, where others are left.

    A worker polls in real time, but a thread of ordinary priority that waits on its core gets 50 ms of each second
    all the same (the kernel's fair server): the Tester would be late by as much.
    """
    before = os.sched_getaffinity(0)
    others = before - set(cpus)
    if others:
        _run_on(others)
    try:
        yield
    finally:
        _run_on(before)


def _run_on(cpus: Collection[int]) -> None:
    for thread in _own_threads():
        with contextlib.suppress(OSError):  # the thread ended
            os.sched_setaffinity(thread, cpus)


@contextlib.contextmanager
def stepping_back() -> Iterator[None]:
    """Let the threads of this process run behind everything else inside the block.

    On one machine the Tester's own words and files are made on the gateway's cores. At the priority of the gateway's
    threads they keep those waiting for up to a tick, and an input queue of 1000 frames overflows meanwhile: a loss of
    the Tester's making.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    renice(_own_threads(), LAST_NICE)
    try:
        yield
    finally:
        renice(_own_threads(), before)


def renice(threads: Iterable[int], nice: int) -> None:
    """Give threads a nice value, as far as they are there and this process may."""
    for thread in threads:
        with contextlib.suppress(OSError):  # the thread ended, or an ordinary user may not go back
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def _own_threads() -> Iterator[int]:
    yield from map(int, os.listdir("/proc/self/task"))
