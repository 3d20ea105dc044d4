"""What else the gateway's host did during a trial, where a test bed can read it: who had the CPUs of the gateway.

Busy CPUs say little: a gateway that works hard keeps them busy itself. What matters is how long its threads were ready
to run and did not get a CPU, and how long a hypervisor gave a CPU to others.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from gatemark.trial.facts import Facts
from gatemark.units import NANOSECONDS_PER_SECOND


class CpuFacts(Facts):
    """One CPU of the gateway. The kernel counts these times in steps of `step_ns`."""

    cpu: int
    """Number of the CPU."""
    busy_ns: int = 0
    """Time in which it was neither idle nor waiting for a disk: used by any program, or stolen meanwhile."""
    stolen_ns: int = 0
    """Time that the hypervisor gave to others while this CPU had something to do (steal)."""


class ThreadFacts(Facts):
    """One thread that does the gateway's work."""

    name: str
    """Its name as the kernel has it, such as `ksoftirqd/0`."""
    cpu: int | None = None
    """The CPU to which it is bound. Null: any of the gateway's."""
    ran_ns: int = 0
    """How long it ran."""
    waited_ns: int = 0
    """How long it was ready to run while something else had its CPU (run delay)."""

    def meets(self, other: ThreadFacts) -> bool:
        """Whether both may want the same CPU."""
        return other is not self and (self.cpu is None or other.cpu is None or self.cpu == other.cpu)


class HoldUp(Facts):
    """A time in which others had a CPU of the gateway, from the start of sending."""

    begin_ns: int
    """It began no earlier; negative before the first frame."""
    end_ns: int
    """It ended no later."""
    held_up_ns: int
    """How long they had it in between."""


class MiddleFacts(Facts):
    """The link between two gateways in a row over a trial: all frames that were handed to it, lost on it or not."""

    forward: int
    """By the left gateway."""
    reverse: int
    """By the right gateway."""
    strays: int = Field(default=0, exclude_if=lambda strays: not strays)
    """Frames counted since measuring began while none was sent: the counters see other packets as well, so they do not
    say where frames were lost. Absent if there are none."""


class HostFacts(Facts):
    """The host of the gateway from just before a trial until just after it, waits included."""

    read_ns: int
    """Time between both readings."""
    step_ns: int
    """Resolution of the times of a CPU."""
    queue_frames: int
    """Frames that the smallest queue of the gateway holds: of its CPUs' input (`net.core.netdev_max_backlog`), or of an
    interface in its namespace. 0 for a host reached by ssh, which is not asked."""
    cpus: tuple[CpuFacts, ...]
    """Each CPU of the gateway. Empty where the Tester works on them too, the kernel does not report it, or ssh reaches
    the host."""
    threads: tuple[ThreadFacts, ...]
    """Each thread that does the gateway's work, those of the kernel among them."""
    others_ran_ns: int | None = None
    """How long all other threads ran on these CPUs. Null where the kernel does not report it."""
    counters: Mapping[str, int] = {}
    """Growth of those counters of its kernel that count losses, by [name](#names-of-the-hosts-counters), the largest
    first, at most 64. Empty where none grew, or none can be read."""

    middle: MiddleFacts | None = Field(default=None, exclude_if=lambda middle: middle is None)
    """The link between two gateways in a row, which shows which of the two lost frames. Absent with one gateway,
    and where its counters cannot be read."""
    hold_ups: tuple[HoldUp, ...] | None = None
    """The up to 64 longest times in which others had a CPU of the gateway, in their order. Null if it was not watched
    while frames were sent: when others had it is not known."""
    other_hold_ups_ns: int = 0
    """How long all shorter ones were together."""

    @property
    def sees_work(self) -> bool:
        """Whether it says who had the gateway's CPUs."""
        return bool(self.cpus or self.threads)

    @property
    def waited_ns(self) -> int:
        """How long others kept threads of the gateway waiting: those of the CPU that this befell most.

        Threads of the gateway wait for each other too, which is its own affair: the time for which the others of them
        ran is taken off. Threads that may want the same CPU wait one after another or at the same time, together for no
        longer than others ran: most kernels count soft interrupts on top of the idle thread, the gateway's work, in no
        thread's time. Where it is not known how long others ran, the thread that waited most is certain alone.
        """
        waits = [(thread, max(0, thread.waited_ns - self._ran_beside(thread))) for thread in self.threads]
        if self.others_ran_ns is None:
            return max((waited_ns for _, waited_ns in waits), default=0)
        lines = (sum(ns for other, ns in waits if other is thread or thread.meets(other)) for thread, _ in waits)
        return min(max(lines, default=0), self.others_ran_ns)

    @property
    def stolen_ns(self) -> int:
        """How long at most a CPU was stolen: a time that shows at all may be one step longer than it reads."""
        longest_ns = max((cpu.stolen_ns for cpu in self.cpus), default=0)
        return longest_ns + self.step_ns if longest_ns else 0

    @property
    def held_up_ns(self) -> int:
        """How long the gateway was kept from its work by others."""
        return self.waited_ns + self.stolen_ns

    def fills_ns(self, frames_per_second: int) -> int:
        """Return the time in which the gateway's queue fills at a load: in less no frame is lost if it was empty."""
        return self.queue_frames * NANOSECONDS_PER_SECOND // max(1, frames_per_second)

    def _ran_beside(self, thread: ThreadFacts) -> int:
        return sum(other.ran_ns for other in self.threads if thread.meets(other))
