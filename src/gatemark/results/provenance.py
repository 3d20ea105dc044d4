"""Where the numbers came from: machine, kernel, engine, Python, worker layout, ports and times of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Facts(BaseModel):
    """A frozen group of facts; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MachineFacts(Facts):
    """The machine that the Tester ran on."""

    host_name: str
    identity: str | None
    """Digest of the machine's number (/etc/machine-id) that tells machines of one name apart; null without one."""
    cpu_model: str | None
    cpus: int
    """Logical CPUs that this process may use."""
    governor: str | None
    """Frequency governor of CPU 0; null if the machine does not show one."""
    kernel: str
    hypervisor: str | None
    """"yes" or the vendor's name if the CPU says that it is virtual, else null."""
    memory_kilobytes: int | None
    huge_pages_total: int | None
    huge_page_kilobytes: int | None
    cpus_isolated: str | None
    numa_nodes: int | None


class ClockFacts(Facts):
    """The clock that schedules frames and measures delays."""

    resolution_ps: int
    """Smallest step observed between two readings, picoseconds."""
    read_ps: int
    """What a reading costs, picoseconds."""


class EngineFacts(Facts):
    """The engine as it described itself in its answers to `hello` and `open`."""

    version: str
    protocol: int
    dpdk: str
    build: str
    program_sha256: str
    """Digest of the program itself."""
    tsc_hz: int
    tsc_invariant: bool
    huge_pages: bool
    workers: tuple[str, ...]
    """One text per worker: its CPU and its tasks."""
    queues: dict[Literal["left", "right"], int] | None = None
    """Queues of each port, in each direction."""
    layout: tuple[str, ...] = ()
    """Why these queues and CPUs, a sentence each."""
    clock: ClockFacts | None = None


class PortFact(Facts):
    """One port of the Tester as it was opened."""

    port: str
    driver: str
    mac: str
    numa_node: int
    link_up: bool
    link_mbps: int
    mtu: int
    timestamps: Literal["software", "hardware"] | None = None
    """Who reads the clock when a frame arrives: the engine, or the port."""


class SoftwareFacts(Facts):
    """The Tester's own software."""

    gatemark: str
    python: str
    packages: dict[str, str]


class InterruptFacts(Facts):
    """One interrupt of a network card of the gateway's host, as a rule that of one queue."""

    number: int
    name: str
    """As its driver calls it, such as "eth1-TxRx-3"."""
    cpus: str | None
    """CPUs that serve it."""
    allowed_cpus: str | None
    """CPUs that may: the kernel chooses among them."""
    taken: Mapping[int, int]
    """How often each CPU took it since the host was started, without those that never did."""


class InterfaceFacts(Facts):
    """One network card of the gateway's host."""

    interface: str
    driver: str | None
    numa_node: int | None
    """-1 if the card has none."""
    rx_queues: int | None
    tx_queues: int | None
    rss_udp4: str | None
    """Fields of an IPv4 UDP packet that choose its queue, as ethtool says it."""
    rss_udp6: str | None
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
    """The gateway's host as it described itself at the begin of a session; null is what it does not tell."""

    host_name: str | None
    kernel: str | None
    command_line: str | None
    """Of its kernel."""
    boot_id: str | None
    """Another one after each boot; on a BSD the time of the boot."""
    cpu_model: str | None
    cpus_online: int | None
    cpu_list: str | None
    """Those that are online."""
    governor: str | None
    """Frequency governors of all CPUs, each once."""
    mhz_min: int | None
    mhz_max: int | None
    memory_kilobytes: int | None
    available_kilobytes: int | None
    numa_nodes: int | None
    interfaces: tuple[InterfaceFacts, ...]


class SamplingFacts(Facts):
    """What sampling the gateway's host cost it, measured at the begin of a session with no frames under way."""

    interval_ns: int
    samples: int
    """Taken to learn it."""
    cpu_ns: int | None
    """CPU time of one sample: of the sampler and of all that it starts. Null if the host did not tell."""

    @property
    def share_of_core(self) -> float | None:
        """What share of one core it takes; None if that is not known."""
        return None if self.cpu_ns is None else self.cpu_ns / self.interval_ns


class SettingFact(Facts):
    """One setting of the gateway that the user named, as it was made at the begin of a session."""

    name: str
    value: str
    read: str | None
    """What the gateway said afterwards; null if it was not asked."""


class Session(Facts):
    """One stretch of measuring: a resumed campaign has several, all with the same equipment (`changes`)."""

    started_at: str
    finished_at: str | None
    resumed: bool
    machine: MachineFacts
    software: SoftwareFacts
    engine: EngineFacts
    left: PortFact
    right: PortFact
    gateway_host: GatewayHostFacts | None = None
    """Null where the gateway's host was not asked."""
    settings: tuple[SettingFact, ...] = ()
    sampling: SamplingFacts | None = None
    """Null where the gateway's host is not sampled."""


class Provenance(Facts):
    """All of `provenance.json`."""

    seed: int
    campaign_sha256: str
    """Of campaign.toml, so that a changed file is noticed when the campaign is resumed."""
    recipe_sha256: str | None
    """Of the recipe's text; null without a recipe."""
    tester_cpus: tuple[int, ...]
    line_bits_per_second: int | None
    line_rate_source: str
    """Source of the line rate, or why there is none."""
    sessions: tuple[Session, ...] = Field(min_length=1)

    @property
    def last(self) -> Session:
        """The latest session; those before it had the same equipment."""
        return self.sessions[-1]

    def to_text(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"


SAME_MACHINE = (
    "host_name", "identity", "cpu_model", "cpus", "governor", "kernel", "hypervisor", "cpus_isolated", "numa_nodes",
)  # fmt: skip
SAME_ENGINE = (
    "version", "protocol", "dpdk", "build", "program_sha256", "tsc_invariant", "huge_pages", "workers", "queues",
)  # fmt: skip
SAME_GATEWAY_HOST = ("host_name", "kernel", "command_line", "cpu_model", "cpus_online", "governor", "numa_nodes")
SAME_PORT = ("port", "driver", "mac", "numa_node", "link_mbps", "mtu", "timestamps")
SAME_MADE_PORT = ("driver", "mtu", "timestamps")
"""Of a port that the test bed makes: its name is new in each session."""
KEEPS_ADDRESS = ("pci", "af_packet", "af_xdp")
"""Kinds of port whose link-layer address stays the same each time they are opened."""


def changes(before: Session, now: Session, *, makes_ports: bool) -> list[str]:
    """Say in which facts that a figure may depend on two sessions differ, a sentence each; none: one campaign.

    `makes_ports`: the test bed makes the Tester's ports.
    """
    groups: list[tuple[str, Sequence[str]]] = [("machine", SAME_MACHINE), ("engine", SAME_ENGINE)]
    if before.gateway_host is not None and now.gateway_host is not None:
        groups.append(("gateway_host", SAME_GATEWAY_HOST))
    for side in ("left", "right"):
        keeps = getattr(before, side).port.partition(":")[0] in KEEPS_ADDRESS
        names: Sequence[str] = SAME_MADE_PORT if makes_ports else SAME_PORT
        groups.append((side, [name for name in names if name != "mac" or keeps]))
    return [
        sentence
        for group, compared in groups
        for sentence in _differing(group, getattr(before, group), getattr(now, group), compared)
    ]


def machine_changes(before: MachineFacts, now: MachineFacts) -> list[str]:
    """Say in which facts that a figure may depend on two machines differ, a sentence each; none: one machine."""
    return _differing("machine", before, now, SAME_MACHINE)


def _differing(group: str, before: Facts, now: Facts, names: Sequence[str]) -> list[str]:
    return [
        f"{group}.{name} was {getattr(before, name)}, is {getattr(now, name)}"
        for name in names
        if getattr(before, name) != getattr(now, name)
    ]


def engine_facts(hello: Mapping[str, Any], opened: Mapping[str, Any], *, program_sha256: str) -> EngineFacts:
    """Facts from the answers to `hello` and `open` (protocol/README.md), and the digest of the program."""
    return EngineFacts(
        version=str(hello["version"]),
        protocol=int(hello["protocol"]),
        dpdk=str(hello["dpdk"]),
        build=str(hello["build"]),
        program_sha256=program_sha256,
        tsc_hz=int(hello["tsc_hz"]),
        tsc_invariant=bool(hello["tsc_invariant"]),
        huge_pages=bool(opened.get("huge_pages", False)),
        workers=tuple(_worker(worker) for worker in opened.get("workers", [])),
        queues=opened.get("queues"),
        layout=tuple(opened.get("why", ())),
        clock=ClockFacts(**hello["clock"]) if "clock" in hello else None,
    )


def port_fact(port: Mapping[str, Any]) -> PortFact:
    """Facts of one port from the answer to `open`."""
    return PortFact(**{key: port[key] for key in PortFact.model_fields if key != "timestamps" or key in port})


def _worker(worker: Mapping[str, Any]) -> str:
    tasks: Sequence[str] = worker.get("tasks", [])
    return f"CPU {worker.get('cpu')}: {', '.join(tasks)}"
