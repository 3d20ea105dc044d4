"""Where the numbers came from: machine, kernel, engine, Python, worker layout, ports and times of a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from gatemark.facts import MAY_CHANGE, ClockFacts, Facts, GatewayHostFacts, SamplingFacts, SettingFact, lasting_fields
from gatemark.port_kinds import parse_port
from gatemark.technology import SIDES


class MachineFacts(Facts):
    """The machine that the Tester ran on."""

    host_name: str
    """Name of the machine."""
    identity: str | None
    """Digest of the machine's number (`/etc/machine-id`): distinguishes machines with the same name. Null if it has
    none."""
    cpu_model: str | None
    """Model of its CPU. Null if not reported."""
    cpus: int
    """Logical CPUs that gatemark may use."""
    governor: str | None
    """Frequency governor of CPU 0. Null if the machine does not show one."""
    kernel: str
    """Name, release and architecture of the kernel."""
    hypervisor: str | None
    """`yes` or the vendor's name, if the CPU says that it is virtual, else null."""
    memory_kilobytes: Annotated[int | None, MAY_CHANGE]
    """Memory of the machine. Null if the kernel does not report it."""
    huge_pages_total: Annotated[int | None, MAY_CHANGE]
    """Huge pages reserved. Null if the kernel does not report it."""
    huge_page_kilobytes: Annotated[int | None, MAY_CHANGE]
    """Size of one. Null if the kernel does not report it."""
    cpus_isolated: str | None
    """List of isolated CPUs. Null if there are none."""
    numa_nodes: int | None
    """Number of NUMA nodes. Null if the kernel does not report it."""


class QueueCounts(Facts):
    """Queues of the ports, in each direction."""

    left: int
    """Of the left port."""
    right: int
    """Of the right port."""


class EngineFacts(Facts):
    """The engine as it described itself in its answers to `hello` and `open`."""

    version: str
    """Version of the engine."""
    protocol: int
    """Protocol number."""
    dpdk: str
    """Version of DPDK."""
    build: str
    """Build type."""
    program_sha256: str
    """Digest of the program itself."""
    tsc_hz: Annotated[int, MAY_CHANGE]
    """Rate of the clock that schedules frames."""
    tsc_invariant: bool
    """Whether that clock keeps its rate."""
    huge_pages: bool
    """Whether the engine uses huge pages."""
    workers: tuple[str, ...]
    """Core and tasks of each worker, as text."""
    queues: QueueCounts | None = None
    """Queues of the ports, in each direction. Null if the engine did not report it."""
    layout: Annotated[tuple[str, ...], MAY_CHANGE] = ()
    """Why these queues and cores, a sentence each."""
    clock: Annotated[ClockFacts | None, MAY_CHANGE] = None
    """The clock that schedules frames and measures delays. Null if the engine did not report it."""


class PortFact(Facts):
    """One port of the Tester as it was opened."""

    port: str
    """Its short name."""
    driver: str
    """Poll-mode driver."""
    mac: str
    """Link-layer address."""
    numa_node: int
    """NUMA node of the port, -1 if it has none."""
    link_up: Annotated[bool, MAY_CHANGE]
    """State of the link when opened."""
    link_mbps: int
    """Link speed that the port reports; kernel interfaces without a device report one that limits nothing."""
    mtu: int
    """Largest IP packet, octets."""
    timestamps: Literal["software", "hardware"] | None = None
    """Who reads the clock when a frame arrives: `software` (the engine) or `hardware` (the port). Null if the engine
    did not report it."""


class SoftwareFacts(Facts):
    """The Tester's own software."""

    gatemark: str
    """Version of gatemark."""
    python: str
    """Version of Python."""
    packages: dict[str, str]
    """Versions of the Python packages that figures depend on, by name."""


class Session(Facts):
    """One stretch of measuring: a resumed campaign has several, all with the same equipment (`changes`)."""

    started_at: str
    """Wall time of its begin, ISO 8601."""
    finished_at: str | None
    """Wall time of its end, ISO 8601. Null if it was not finished."""
    engine_log_sha256: str | None = None
    """SHA-256 of `engine.log` at its end, with what earlier sessions wrote. Null if it was not finished."""
    resumed: bool
    """Whether it continued an earlier one."""
    trials_before: int = 0
    """Trials that the journal held at its begin."""
    trials_removed: int = 0
    """Trials that the journal had held and did not hold any more at its begin: they were removed by hand, and made
    again."""
    machine: MachineFacts
    """The machine of the Tester."""
    software: SoftwareFacts
    """The Tester's own software."""
    engine: EngineFacts
    """The engine as it describes itself."""
    left: PortFact
    """The left port."""
    right: PortFact
    """The right port."""
    gateway_host: GatewayHostFacts | None = None
    """The gateway's host as it described itself when the session began. Null if `gateway.control` names no host."""
    interrupts_moved: tuple[str, ...] = Field(default=(), exclude_if=lambda moved: not moved)
    """Interrupts of the gateway's host that had moved to other CPUs when measuring ended, a sentence each. Left out if
    there are none, the host does not report them, or the session was interrupted."""
    settings: tuple[SettingFact, ...] = ()
    """Settings that the campaign names, as they were made."""
    sampling: SamplingFacts | None = None
    """Cost of sampling to the gateway's host, measured when the session began. Null where it is not sampled."""
    other_gateway_host: GatewayHostFacts | None = Field(default=None, exclude_if=lambda host: host is None)
    """The host of the other one of two gateways in a row. Left out if there is none, or `gateway.other_host` names
    none."""


class Provenance(Facts):
    """All of `provenance.json`, and of a side of pairs."""

    seed: int
    """Seed of all traffic."""
    campaign_sha256: str
    """SHA-256 of `campaign.toml`, of pairs of `inputs.json`; a changed file is not resumed."""
    recipe_sha256: str | None
    """SHA-256 of the recipe of the gateway; a campaign does not resume with another one. Null if there is no recipe."""
    tester_cpus: tuple[int, ...]
    """CPUs of the workers as the test bed gave them."""
    line_bits_per_second: int | None
    """Rate of the medium. Null if it has none."""
    line_rate_source: str
    """Source of the line rate, or why there is none."""
    sessions: tuple[Session, ...] = Field(min_length=1)
    """Stretches of measuring; a resumed campaign has several."""

    @property
    def last(self) -> Session:
        """The latest session; those before it had the same equipment."""
        return self.sessions[-1]

    def to_text(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"


MADE_PORT_CHANGES = frozenset({"port", "mac", "numa_node", "link_mbps"})
"""Of a port that the test bed makes, which is new in each session."""


def port_fields(*, makes_ports: bool) -> list[str]:
    """Return the names of a port's fields that are the same in all sessions; `makes_ports`: the test bed makes it."""
    return [name for name in lasting_fields(PortFact) if not (makes_ports and name in MADE_PORT_CHANGES)]


def changes(before: Session, now: Session, *, makes_ports: bool) -> list[str]:
    """Say in which facts that a figure may depend on two sessions differ, a sentence each; none: one campaign.

    `makes_ports`: the test bed makes the Tester's ports.
    """
    groups = [("machine", lasting_fields(MachineFacts)), ("engine", lasting_fields(EngineFacts))]
    for host in ("gateway_host", "other_gateway_host"):
        if getattr(before, host) is not None and getattr(now, host) is not None:
            groups.append((host, lasting_fields(GatewayHostFacts)))
    for side in SIDES:
        keeps = parse_port(getattr(before, side).port).kind.may_be_card
        groups.append((side, [name for name in port_fields(makes_ports=makes_ports) if name != "mac" or keeps]))
    return [
        sentence
        for group, compared in groups
        for sentence in _differing(group, getattr(before, group), getattr(now, group), compared)
    ]


def interrupts_moved(before: GatewayHostFacts, now: GatewayHostFacts) -> Iterator[str]:
    """Yield the interrupts of network cards that other CPUs serve, or may serve, than before, a sentence each."""
    known = {(card.interface, each.number): each for card in before.interfaces for each in card.interrupts}
    for card in now.interfaces:
        for interrupt in card.interrupts:
            earlier = known.get((card.interface, interrupt.number))
            if earlier is not None and earlier.served_by != interrupt.served_by:
                yield f"{card.interface}: {interrupt.name} by {earlier.served_by}, then by {interrupt.served_by}"


def machine_changes(before: MachineFacts, now: MachineFacts) -> list[str]:
    """Say in which facts that a figure may depend on two machines differ, a sentence each; none: one machine."""
    return _differing("machine", before, now, lasting_fields(MachineFacts))


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
