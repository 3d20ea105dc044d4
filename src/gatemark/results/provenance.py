"""Where the numbers came from: machine, kernel, engine, Python, worker layout, ports and times of a campaign.

The only module that reads wall time and the machine's files. A fact that cannot be read is null, never guessed.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from gatemark.bed_kinds import BedKind


class Facts(BaseModel):
    """A frozen group of facts; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MachineFacts(Facts):
    """The machine that the Tester ran on."""

    host_name: str
    cpu_model: str | None
    processors: int
    """Logical processors that this process may use."""
    governor: str | None
    """Frequency governor of processor 0; null if the machine does not show one."""
    kernel: str
    hypervisor: str | None
    """"yes" or the vendor's name if the processor says that it is virtual, else null."""
    memory_kilobytes: int | None
    huge_pages_total: int | None
    huge_page_kilobytes: int | None
    processors_isolated: str | None
    numa_nodes: int | None


class ClockFacts(Facts):
    """The clock that schedules frames and measures delays."""

    resolution_ps: int
    """Smallest step that was seen between two readings, picoseconds."""
    read_ps: int
    """What a reading costs, picoseconds."""


class EngineFacts(Facts):
    """The engine as it described itself in its answers to `hello` and `open`."""

    version: str
    protocol: int
    dpdk: str
    build: str
    tsc_hz: int
    tsc_invariant: bool
    huge_pages: bool
    workers: tuple[str, ...]
    """One text per worker: its processor and its tasks."""
    queues: dict[Literal["left", "right"], int] | None = None
    """Queues of each port, in each direction."""
    layout: tuple[str, ...] = ()
    """Why these queues and processors, a sentence each."""
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
    """One stretch of measuring: a resumed campaign has several."""

    started_at: str
    finished_at: str | None
    resumed: bool


class Provenance(Facts):
    """All of `provenance.json`."""

    machine: MachineFacts
    software: SoftwareFacts
    engine: EngineFacts
    left: PortFact
    right: PortFact
    seed: int
    campaign_sha256: str
    """Of campaign.toml, so that a changed file is noticed when the campaign is resumed."""
    tester_processors: tuple[int, ...]
    line_bits_per_second: int | None
    line_rate_source: str
    """Who says what the line rate is, or why there is none."""
    sessions: tuple[Session, ...]

    def to_text(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"


def now_iso() -> str:
    """Wall time in UTC with seconds, ISO 8601."""
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


def gatemark_version() -> str:
    """Version of the installed package, or "unknown" when run from sources that were never installed."""
    try:
        return metadata.version("gatemark")
    except metadata.PackageNotFoundError:
        return "unknown"


def machine_facts() -> MachineFacts:
    """Read the facts of this machine; what the kernel does not show is null."""
    cpu = _colon_file(Path("/proc/cpuinfo"))
    memory = _colon_file(Path("/proc/meminfo"))
    return MachineFacts(
        host_name=socket.gethostname(),
        cpu_model=cpu.get("model name"),
        processors=len(os.sched_getaffinity(0)),
        governor=_first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        hypervisor=_hypervisor(cpu),
        memory_kilobytes=_number(memory.get("MemTotal")),
        huge_pages_total=_number(memory.get("HugePages_Total")),
        huge_page_kilobytes=_number(memory.get("Hugepagesize")),
        processors_isolated=_first_line(Path("/sys/devices/system/cpu/isolated")),
        numa_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
    )


def software_facts() -> SoftwareFacts:
    """Versions of gatemark, Python and the packages that numbers depend on."""
    packages: dict[str, str] = {}
    for name in ("MLRsearch", "numpy", "pydantic"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return SoftwareFacts(gatemark=gatemark_version(), python=sys.version.split()[0], packages=packages)


def engine_facts(hello: Mapping[str, Any], opened: Mapping[str, Any]) -> EngineFacts:
    """Facts from the answers to `hello` and `open` (protocol/README.md)."""
    return EngineFacts(
        version=str(hello["version"]),
        protocol=int(hello["protocol"]),
        dpdk=str(hello["dpdk"]),
        build=str(hello["build"]),
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


def medium_rate(
    *, bed: BedKind, stated: int | None, left: PortFact, right: PortFact, interfaces: Path = Path("/sys/class/net")
) -> tuple[int | None, str]:
    """Line rate of the medium in bit/s and who says so; none for media that have no rate (veth, rings).

    A link speed is believed only of a network card: kernel interfaces without a device behind them (veth, tap) report a
    number that limits nothing.
    """
    if stated is not None:
        return stated, "stated in the campaign file"
    if bed.no_line_rate is not None:
        return None, bed.no_line_rate
    for port in (left, right):
        driver, _, interface = port.port.partition(":")
        if driver not in ("pci", "af_packet", "af_xdp"):
            return None, f"a port of kind {driver} has no line rate"
        if driver != "pci" and not (interfaces / interface / "device").exists():
            return None, f"interface {interface} is virtual and has no line rate"
        if port.link_mbps <= 0:
            return None, f"port {port.port} does not report a link speed"
    return min(left.link_mbps, right.link_mbps) * 1_000_000, "link speed reported by the ports"


def _worker(worker: Mapping[str, Any]) -> str:
    tasks: Sequence[str] = worker.get("tasks", [])
    return f"processor {worker.get('processor')}: {', '.join(tasks)}"


def _hypervisor(cpu: Mapping[str, str]) -> str | None:
    vendor = _first_line(Path("/sys/hypervisor/type"))
    if vendor is not None:
        return vendor
    return "yes" if "hypervisor" in cpu.get("flags", "").split() else None


def _colon_file(path: Path) -> dict[str, str]:
    """First value of each key of a file of `key: value` lines; empty if it cannot be read."""
    found: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def _first_line(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return text.splitlines()[0] if text else None


def _number(text: str | None) -> int | None:
    word = (text or "").split()[:1]
    return int(word[0]) if word and word[0].isdigit() else None
