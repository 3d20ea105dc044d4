"""What this machine is and what time it is: the facts that a result gives as its origin.

The only module that reads wall time and the machine's files. A fact that cannot be read is null, never guessed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

from gatemark.bed_kinds import BedKind
from gatemark.harmless import whole_number
from gatemark.port_kinds import parse_port
from gatemark.results.provenance import MachineFacts, PortFact, SoftwareFacts


def now_iso() -> str:
    """Wall time in UTC with seconds, ISO 8601."""
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


def iso_after(moment: str, seconds: float) -> str:
    """Return the time a number of seconds after another, but not before now; both as `now_iso` writes them."""
    later = datetime.fromisoformat(moment) + timedelta(seconds=round(seconds))
    return max(later, datetime.now(tz=UTC)).isoformat(timespec="seconds")


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two times as `now_iso` writes them."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def gatemark_version() -> str:
    """Version of the installed package, or "unknown" when run from sources that were never installed."""
    try:
        return metadata.version("gatemark")
    except metadata.PackageNotFoundError:
        return "unknown"


def machine_facts() -> MachineFacts:
    """Read the facts of this machine; what the kernel does not show is null."""
    cpu = colon_file(Path("/proc/cpuinfo"))
    memory = colon_file(Path("/proc/meminfo"))
    return MachineFacts(
        host_name=socket.gethostname(),
        identity=_identity(),
        cpu_model=cpu.get("model name"),
        cpus=len(os.sched_getaffinity(0)),
        governor=_first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        hypervisor=_hypervisor(cpu),
        memory_kilobytes=_number(memory.get("MemTotal")),
        huge_pages_total=_number(memory.get("HugePages_Total")),
        huge_page_kilobytes=_number(memory.get("Hugepagesize")),
        cpus_isolated=_first_line(Path("/sys/devices/system/cpu/isolated")),
        numa_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
    )


def colon_file(path: Path) -> dict[str, str]:
    """First value of each key of a file of `key: value` lines; empty if it cannot be read."""
    values: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return values
    for line in lines:
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key.strip(), value.strip())
    return values


def names() -> dict[str, str | None]:
    """Return what a machine is told apart by."""
    return {"host_name": socket.gethostname(), "identity": _identity()}


def software_facts() -> SoftwareFacts:
    """Versions of gatemark, Python and the packages that numbers depend on."""
    packages: dict[str, str] = {}
    for name in ("MLRsearch", "numpy", "pydantic"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return SoftwareFacts(gatemark=gatemark_version(), python=sys.version.split()[0], packages=packages)


def medium_rate(
    *, bed: BedKind, stated: int | None, left: PortFact, right: PortFact, interfaces: Path = Path("/sys/class/net")
) -> tuple[int | None, str]:
    """Line rate of the medium in bit/s and its source; None for media that have no rate (veth, rings).

    A link speed is believed only of a network card: kernel interfaces without a device behind them (veth, tap) report a
    number that limits nothing.
    """
    if stated is not None:
        return stated, "stated in the campaign file"
    if bed.no_line_rate is not None:
        return None, bed.no_line_rate
    for port in (left, right):
        name = parse_port(port.port)
        if not name.kind.may_be_card:
            return None, f"a port of kind {name.kind.name} has no line rate"
        if name.interface is not None and not (interfaces / name.interface / "device").exists():
            return None, f"interface {name.interface} is virtual and has no line rate"
        if port.link_mbps <= 0:
            return None, f"port {port.port} does not report a link speed"
    return min(left.link_mbps, right.link_mbps) * 1_000_000, "link speed reported by the ports"


def _identity() -> str | None:
    """Digest of the machine's number, which itself is not to be shown (machine-id(5))."""
    number = _first_line(Path("/etc/machine-id"))
    return None if number is None else hashlib.sha256(f"gatemark {number}".encode()).hexdigest()[:32]


def _hypervisor(cpu: Mapping[str, str]) -> str | None:
    vendor = _first_line(Path("/sys/hypervisor/type"))
    if vendor is not None:
        return vendor
    return "yes" if "hypervisor" in cpu.get("flags", "").split() else None


def _first_line(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return text.splitlines()[0] if text else None


def _number(text: str | None) -> int | None:
    return whole_number((text or "").partition(" ")[0])
