"""Facts that several packages know: stated once here, below all of them.

A fact never changes, is written as JSON and read again; a key that no field has is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict

from gatemark.technology import Family

OneWay = Literal["forward", "reverse"]
"""Direction of frames; `forward` is left to right."""
ONE_WAYS: tuple[OneWay, OneWay] = ("forward", "reverse")
Direction = Literal["forward", "reverse", "bidirectional"]
"""Direction of traffic."""
TrafficClass = Literal["foreground", "background"]
"""Frames that the gateway translates, and native IPv6 alongside them (RFC 8219 section 5.3)."""
TRAFFIC_CLASSES: tuple[TrafficClass, TrafficClass] = ("foreground", "background")
Order = Literal["increasing", "decreasing", "pseudorandom"]
Variation = Literal["fixed", "increasing", "decreasing", "pseudorandom"]
"""How a value differs from frame to frame."""
EdgeChoice = Literal["cycle", "pseudorandom"]
"""Customer edge of each frame: in turn, or drawn each time."""
CauseName = Literal[
    "fields",
    "flows",
    "residue",
    "start",
    "end",
    "first_frames",
    "age",
    "gap",
    "too_large",
    "counted",
    "each",
    "uniform",
    "spell",
    "rows",
    "queue",
    "gateway",
]
"""The kinds of causes why frames were lost, each with a rule of its own."""

CHECKSUMS = "SHA256SUMS"
"""Name of the list of checksums that every archive has. The folder of a campaign has it only if it was unpacked."""


class Facts(BaseModel):
    """A frozen group of facts."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


MAY_CHANGE = object()
"""Mark of a field whose value may be another one in each session of a campaign: no figure depends on it."""


def lasting_fields(kind: type[Facts]) -> list[str]:
    """Return the names of the fields that are the same in all sessions of a campaign."""
    return [name for name, field in kind.model_fields.items() if MAY_CHANGE not in field.metadata]


def fields_of(facts: Facts, base: type[Facts]) -> dict[str, Any]:
    """Return those fields of facts that one of their bases has."""
    return {name: getattr(facts, name) for name in base.model_fields}


class ClockFacts(Facts):
    """The clock that schedules frames and measures delays."""

    resolution_ps: int
    """Smallest step observed between two readings of the clock."""
    read_ps: int
    """Cost of a reading."""


class SettingFact(Facts):
    """One setting of the gateway that the user named, as it was made."""

    name: str
    """Name of the setting; `table.size`, `table.hash_size`, `table.udp_timeout` (s) where they were read. Where the
    gateway has several timeouts, the name of each follows: `table.udp_timeout.NAME`."""
    value: str
    """What it was set to, as text."""
    read: str | None
    """What the gateway said afterwards. Null if it was not asked."""


class SamplingFacts(Facts):
    """Cost of sampling to the gateway's host, measured with no frames under way."""

    interval_ns: int
    """Time from one sample to the next."""
    samples: int
    """How many were taken to learn it."""
    cpu_ns: int | None
    """CPU time of one sample, of the sampler and all that it starts. Null if the host did not report it."""

    @property
    def share_of_core(self) -> float | None:
        """What share of one core it takes; None if that is not known."""
        return None if self.cpu_ns is None else self.cpu_ns / self.interval_ns


class InterruptFacts(Facts):
    """One interrupt of a network card of the gateway's host, as a rule that of one queue."""

    number: int
    """Number of the interrupt."""
    name: str
    """Its name as its driver has it, such as `eth1-TxRx-3`."""
    cpus: str | None = None
    """CPUs that serve it. Null if the host does not report it."""
    allowed_cpus: str | None = None
    """CPUs that may serve it; the kernel chooses among them. Null if the host does not report it."""
    taken: Mapping[int, int] = {}
    """How often each CPU took it since the host was started, without those that never did."""

    @property
    def served_by(self) -> str:
        """CPUs that serve it, else those that may, for people."""
        return f"one of CPU {self.allowed_cpus or 'not shown'}" if self.cpus is None else f"CPU {self.cpus}"


class InterfaceFacts(Facts):
    """One network card of the gateway's host."""

    interface: str
    """Name of the interface."""
    driver: str | None = None
    """Its driver. Null if not reported."""
    numa_node: int | None = None
    """NUMA node of the card, -1 if it has none. Null if not reported."""
    rx_queues: int | None = None
    """Receive queues. Null if not reported."""
    tx_queues: int | None = None
    """Transmit queues. Null if not reported."""
    rss_udp4: str | None = None
    """The fields of an IPv4 UDP packet that choose its queue, as ethtool names them. Null if the driver does not report
    it."""
    rss_udp6: str | None = None
    """The same for IPv6. Null if the driver does not report it."""
    interrupts: tuple[InterruptFacts, ...] = ()
    """Its interrupts, as a rule one for each queue, in the order of their numbers; empty if the host does not report
    them."""

    @property
    def interrupt_words(self) -> str:
        """Which CPUs serve which interrupt; empty if the host does not report them."""
        return "; ".join(f"{interrupt.name} by {interrupt.served_by}" for interrupt in self.interrupts)


class GatewayHostFacts(Facts):
    """The gateway's host as it described itself at the beginning of a session; null is what it does not report."""

    host_name: str | None = None
    """Its name. Null if not reported."""
    kernel: str | None = None
    """Name, release and architecture of its kernel. Null if not reported."""
    command_line: str | None = None
    """Command line of its kernel. Null if not reported."""
    boot_id: Annotated[str | None, MAY_CHANGE] = None
    """Identifier of the boot, which changes with each boot; on a BSD its time. Null if not reported."""
    cpu_model: str | None = None
    """Model of its CPU. Null if not reported."""
    cpus_online: int | None = None
    """Logical CPUs that work. Null if not reported."""
    cpu_list: Annotated[str | None, MAY_CHANGE] = None
    """CPUs that work. Null if not reported."""
    governor: str | None = None
    """Frequency governors of all CPUs, each once. Null if not reported."""
    mhz_min: Annotated[int | None, MAY_CHANGE] = None
    """Lowest frequency of a CPU at that moment. Null if not reported."""
    mhz_max: Annotated[int | None, MAY_CHANGE] = None
    """Highest frequency of a CPU at that moment. Null if not reported."""
    memory_kilobytes: Annotated[int | None, MAY_CHANGE] = None
    """Its memory. Null if not reported."""
    available_kilobytes: Annotated[int | None, MAY_CHANGE] = None
    """Memory available to programs, at that moment. Null if not reported."""
    numa_nodes: int | None = None
    """Number of NUMA nodes. Null if not reported."""
    interfaces: Annotated[tuple[InterfaceFacts, ...], MAY_CHANGE] = ()
    """Its network cards."""


Mode = Literal[
    "fixed",
    "random_ports",
    "random_hosts",
    "random_both",
    "mixed",
    "translated",
    "edges",
    "tunnels",
    "tunnels_6in4",
    "stateful_ports",
    "stateful_hosts",
    "stateful_both",
    "stateful_tunnels",
]
"""Traffic of a self-test. `mixed`: IPv4 with as much native IPv6 background. `translated`: as sent to a translator.
`edges`: the same from and to customer edges. `tunnels`, `tunnels_6in4`: from and to customer edges in tunnels, IPv4 in
IPv6 and IPv6 in IPv4. `stateful_tunnels`: connections of hosts behind B4s. The others vary ports, hosts or both."""


class Ceiling(Facts):
    """The limit of the Tester alone in one mode of traffic."""

    family: Family
    """Family of the frames."""
    frame_octets: int
    """Frame size with FCS."""
    direction: Direction
    """Direction of the frames."""
    mode: Mode
    """What varies from frame to frame."""
    frames_per_second: int
    """Highest rate of each direction that the Tester offered and received without loss, several times; connections/s
    for the kind `connections`."""
    kind: Literal["frames", "connections"]
    """What is counted."""
    connections: int | None = None
    """Number of connections of the kind `connections`, else null."""


class SelfLatency(Facts):
    """Delays through the ports alone, of one direction, nanoseconds; both directions were sent at once."""

    family: Family
    """Family of the frames."""
    frame_octets: int
    """Frame size with FCS."""
    frames_per_second: int
    """Load of the direction."""
    direction: OneWay
    """Direction of the frames."""
    samples: int
    """Frames with a delay of 0 or more."""
    negative: int
    """Frames that seem to have arrived before they were sent: an error of the clock."""
    minimum_ns: int | None
    """Shortest delay. Null without samples."""
    p50_ns: int | None
    """50th percentile. Null without samples."""
    p99_ns: int | None
    """99th percentile. Null without samples."""
    p999_ns: int | None
    """99.9th percentile. Null without samples."""
    maximum_ns: int | None
    """Longest delay. Null without samples."""


class EchoLoop(Facts):
    """Echo requests of the Tester's own clients to its own host that answers, without a gateway. Times: nanoseconds."""

    family: Family
    """Family of the packets."""
    frame_octets: int
    """Frame size with FCS."""
    clients: int
    """Number of clients."""
    window: int
    """Slots of each client."""
    frames_per_second: int | None
    """Rate of all requests. Null in a closed loop, which is as fast as the Tester."""
    replies_per_second: int
    """Correct replies in time while all clients ask."""
    samples: int
    """Correct replies in time, which have a round-trip time."""
    minimum_ns: int | None
    """Shortest round trip. Null without samples."""
    mean_ns: int | None
    """Mean round trip. Null without samples."""
    p50_ns: int | None
    """50th percentile. Null without samples."""
    p999_ns: int | None
    """99.9th percentile. Null without samples."""
    maximum_ns: int | None
    """Longest round trip. Null without samples."""


class SelfTestFacts(Facts):
    """What every reader of a self-test needs of it."""

    machine: str
    """Machine of the self-test."""
    port_kind: str
    """Kind of its ports."""
    measured_at: str
    """Wall time, ISO 8601."""
    lateness_max_ns: int
    """A trial of the self-test with a burst sent later than this did not count."""
    entries: tuple[Ceiling, ...]
    """Highest rates without a gateway."""
    self_latency: tuple[SelfLatency, ...]
    """Delays through the ports alone."""
    echo_loops: tuple[EchoLoop, ...] = ()
    """Echo requests of the Tester's own clients to its own host that answers."""


class RuleFacts(Facts):
    """A rule of MAP (RFC 7597 section 5), or softwires (RFC 7596 section 5.1)."""

    ipv6: str
    """Rule IPv6 prefix."""
    ipv4: str
    """Rule IPv4 prefix."""
    ea_bits: int
    """Number of EA bits, or of those that number a softwire: rest of the IPv4 address, and PSID."""
    psid_offset: int
    """Bits of a port before the PSID."""
    psid_bits: int
    """Bits of the PSID; 0 where no address is shared."""
    dmr: str | None
    """Default mapping rule: prefix of all IPv4 addresses outside (RFC 7599 section 5.1). Null: MAP-E has none."""
    in_identifier: bool
    """Whether they are lwB4s: the prefix is that of all of them, and the EA bits, the number of a softwire, are in the
    interface identifier only (RFC 7596 section 5.1)."""


class CauseWords(Facts):
    """One cause why frames of a class are lost in a direction."""

    cause: CauseName
    """Its kind."""
    direction: OneWay
    """Direction of the frames."""
    traffic_class: TrafficClass
    """Class of the frames (RFC 8219 section 5.3)."""
    what: str
    """What sets the lost frames apart, without the counts of a trial: the same in trials that fail alike."""


class LossCause(CauseWords):
    """One cause of lost frames, in the failed trials in which it was claimed."""

    trials: int
    """Failed trials in which it was claimed."""
    load_minimum: int
    """Lowest load of them, as the loads of the run."""
    load_maximum: int
    """Highest load of them."""
    lost: int
    """Frames lost in them, in this direction and class."""
    explained: int
    """How many of these it explains."""
    sentence: str
    """What was said of the trial that lost most of them."""


class DamageCounts(Facts):
    """Which of two gateways in a row damaged frames with one kind of fault, in a short trial made to find out."""

    direction: OneWay
    """Direction of the frames."""
    traffic_class: TrafficClass
    """Class of the frames (RFC 8219 section 5.3)."""
    reason: str
    """The kind of fault, as under `faults` of the journal."""
    again: int
    """Frames that arrived with it in the short trial that followed."""
    customer: int
    """Those of them that the customer's gateway damaged."""
    provider: int
    """Those that the provider's gateway damaged."""
    both: int
    """Those that each of both damaged."""
    undecided: int
    """Those of which it cannot be decided, or that were not kept."""
