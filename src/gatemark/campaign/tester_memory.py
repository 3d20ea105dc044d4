"""Memory that the Tester needs for the connections of a stateful test, and what the machine has."""

from __future__ import annotations

from pathlib import Path

from gatemark.config.model import Campaign
from gatemark.errors import ConfigError

OCTETS_PER_CONNECTION = 8
"""An entry of the engine's state table; beside it one bit tells whether the connection's frame arrived."""

MEMINFO = Path("/proc/meminfo")


def table_octets(connections: int) -> int:
    """Return the memory that this number of connections takes."""
    return OCTETS_PER_CONNECTION * connections + -(-connections // 8)


def available_octets() -> int:
    """Return the memory that the machine can give without swapping (MemAvailable)."""
    lines = MEMINFO.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def most_connections(campaign: Campaign) -> tuple[int, str]:
    """Return the most connections that a campaign asks for, and the key that does; 0 where none does."""
    wanted = {0: "connections.count"}
    if campaign.connections is not None:
        wanted |= dict.fromkeys(campaign.connections.count, "connections.count")
    for table in campaign.tables:
        if table.largest_count is not None:
            wanted[table.largest_count] = f"{table.key}.maximum"
    most = max(wanted)
    return most, wanted[most]


def check_memory(connections: int, available: int, *, where: str, held: int = 0) -> None:
    """Raise ConfigError if the Tester cannot hold them; it has memory for `held` already."""
    total = available + table_octets(held)
    if table_octets(connections) > total:
        raise ConfigError(
            what=f"the Tester needs {_mebibytes(table_octets(connections))} of memory for {connections} connections,"
            f" {_mebibytes(total)} are available",
            where=where,
            fix=f"measure at most {total * 8 // (8 * OCTETS_PER_CONNECTION + 1)} connections, or free memory",
        )


def _mebibytes(octets: int) -> str:
    return f"{-(-octets // (1 << 20))} MiB"
