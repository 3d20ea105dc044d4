"""Memory that the Tester needs for the connections of a stateful test, and what the machine has."""

from __future__ import annotations

from pathlib import Path

from gatemark.config.model import Campaign
from gatemark.errors import ConfigError

BYTES_PER_CONNECTION = 8
"""An entry of the engine's state table; one bit more says whether the connection's frame arrived."""

MEMINFO = Path("/proc/meminfo")


def table_bytes(connections: int) -> int:
    """Return the memory that this number of connections takes."""
    return BYTES_PER_CONNECTION * connections + -(-connections // 8)


def available_bytes() -> int:
    """Return the memory that the machine can give without swapping (MemAvailable)."""
    lines = MEMINFO.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def most_connections(campaign: Campaign) -> tuple[int, str]:
    """Return the most connections that a campaign asks for, and the key that does; 0 if none does."""
    keys = {0: "connections.count"}
    if campaign.connections is not None:
        keys |= dict.fromkeys(campaign.connections.count, "connections.count")
    for table in campaign.tables:
        if table.largest_count is not None:
            keys[table.largest_count] = f"{table.key}.maximum"
    most = max(keys)
    return most, keys[most]


def check_memory(connections: int, available: int, *, where: str, held: int = 0) -> None:
    """Raise ConfigError if the Tester cannot hold them; it already has memory for `held` of them."""
    total = available + table_bytes(held)
    if table_bytes(connections) > total:
        raise ConfigError(
            what=f"the Tester needs {_mebibytes(table_bytes(connections))} of memory for {connections} connections,"
            f" {_mebibytes(total)} are available",
            where=where,
            fix=f"measure at most {total * 8 // (8 * BYTES_PER_CONNECTION + 1)} connections, or free memory",
        )


def _mebibytes(byte_count: int) -> str:
    return f"{-(-byte_count // (1 << 20))} MiB"
