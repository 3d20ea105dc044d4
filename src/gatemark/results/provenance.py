"""Where the numbers came from: machine, kernel, engine, Python, worker layout, ports and times of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from gatemark.facts import ClockFacts, Facts, GatewayHostFacts, SamplingFacts, SettingFact


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
