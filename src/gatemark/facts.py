"""Facts that several packages know: stated once here, below all of them.

A fact never changes, is written as JSON and read again; a key that no field has is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from gatemark.technology import Family


class Facts(BaseModel):
    """A frozen group of facts."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ClockFacts(Facts):
    """The clock that schedules frames and measures delays."""

    resolution_ps: int
    """Smallest step observed between two readings, picoseconds."""
    read_ps: int
    """What a reading costs, picoseconds."""


class SettingFact(Facts):
    """One setting of the gateway that the user named, as it was made."""

    name: str
    value: str
    """What it was set to."""
    read: str | None
    """What the gateway said afterwards; null if it was not asked."""


class SamplingFacts(Facts):
    """What sampling the gateway's host costs it, measured with no frames under way."""

    interval_ns: int
    samples: int
    """Taken to learn it."""
    cpu_ns: int | None
    """CPU time of one sample: of the sampler and of all that it starts. Null if the host did not tell."""

    @property
    def share_of_core(self) -> float | None:
        """What share of one core it takes; None if that is not known."""
        return None if self.cpu_ns is None else self.cpu_ns / self.interval_ns


class InterruptFacts(Facts):
    """One interrupt of a network card of the gateway's host, as a rule that of one queue."""

    number: int
    name: str
    """As its driver calls it, such as "eth1-TxRx-3"."""
    cpus: str | None = None
    """CPUs that serve it."""
    allowed_cpus: str | None = None
    """CPUs that may: the kernel chooses among them."""
    taken: Mapping[int, int] = {}
    """How often each CPU took it since the host was started, without those that never did."""


class InterfaceFacts(Facts):
    """One network card of the gateway's host."""

    interface: str
    driver: str | None = None
    numa_node: int | None = None
    """-1 if the card has none."""
    rx_queues: int | None = None
    tx_queues: int | None = None
    rss_udp4: str | None = None
    """Fields of an IPv4 UDP packet that choose its queue, as ethtool says it."""
    rss_udp6: str | None = None
    interrupts: tuple[InterruptFacts, ...] = ()
    """Those that the kernel has set up, in the order of their numbers."""

    @property
    def interrupt_words(self) -> str:
        """Which CPUs serve which interrupt; empty if the host does not tell."""
        return "; ".join(
            f"{interrupt.name} by CPU {interrupt.cpus}"
            if interrupt.cpus is not None
            else f"{interrupt.name} by one of CPU {interrupt.allowed_cpus or 'not shown'}"
            for interrupt in self.interrupts
        )


class GatewayHostFacts(Facts):
    """The gateway's host as it described itself at the beginning of a session; null is what it does not tell."""

    host_name: str | None = None
    kernel: str | None = None
    command_line: str | None = None
    """Of its kernel."""
    boot_id: str | None = None
    """Another one after each boot; on a BSD the time of the boot."""
    cpu_model: str | None = None
    cpus_online: int | None = None
    cpu_list: str | None = None
    """Those that are online."""
    governor: str | None = None
    """Frequency governors of all CPUs, each once."""
    mhz_min: int | None = None
    mhz_max: int | None = None
    memory_kilobytes: int | None = None
    available_kilobytes: int | None = None
    numa_nodes: int | None = None
    interfaces: tuple[InterfaceFacts, ...] = ()


class Ceiling(Facts):
    """What the Tester alone reaches in one mode of traffic."""

    family: Family
    frame_octets: int
    """With FCS."""
    direction: Literal["forward", "reverse", "bidirectional"]
    mode: str
    """fixed, random_ports, random_hosts, random_both, mixed, translated, edges; stateful_ports, stateful_hosts,
    stateful_both."""
    frames_per_second: int
    """Highest rate of each direction that it offered and received without loss, several times; connections/s for the
    kind ``connections``."""
    kind: Literal["frames", "connections"]
    connections: int | None = None
    """Number of connections of the kind ``connections``."""


class SelfLatency(Facts):
    """Delays through the ports alone, of one direction, nanoseconds; both directions were sent at once."""

    family: Family
    frame_octets: int
    frames_per_second: int
    direction: Literal["forward", "reverse"]
    samples: int
    negative: int
    """Frames that seem to have arrived before they were sent: an error of the clock."""
    minimum_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    maximum_ns: int | None


class EchoLoop(Facts):
    """Echo requests of the Tester's own clients to its own host that answers, without a gateway. Times: nanoseconds."""

    family: Family
    frame_octets: int
    clients: int
    window: int
    frames_per_second: int | None
    """Rate of all requests; null in a closed loop, which is as fast as the Tester."""
    replies_per_second: int
    samples: int
    """Correct replies in time."""
    minimum_ns: int | None
    mean_ns: int | None
    p50_ns: int | None
    p999_ns: int | None
    maximum_ns: int | None
