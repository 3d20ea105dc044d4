"""Memory that the Tester needs for the connections of a stateful test, and what the machine has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gatemark.config.model import CampaignFile
from gatemark.errors import ConfigError

BYTES_PER_CONNECTION = 8
"""An entry of the engine's state table; one bit more says whether the connection's frame arrived."""

MEMINFO, MEMBERSHIPS, CONTROL_GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def table_bytes(connections: int) -> int:
    """Return the memory that this number of connections takes."""
    return BYTES_PER_CONNECTION * connections + -(-connections // 8)


def available_bytes() -> int:
    """Return the memory that a process of ours can take without swapping.

    That is MemAvailable of the machine, or what the tightest control group above us leaves. The engine reads the same
    before each trial (`engine/src/base/available_memory.cpp`).
    """
    groups = (left for limit, use, dropped in _groups() if (left := _left_by(limit, use, dropped)) is not None)
    return min([_number_after(MEMINFO, "MemAvailable:") * 1024, *groups])


def _groups() -> Iterator[tuple[Path, Path, tuple[Path, str]]]:
    """Yield the files with limit, use and what can be dropped of each control group that may limit our memory."""
    for line in MEMBERSHIPS.read_text(encoding="utf-8").splitlines() if MEMBERSHIPS.exists() else ():
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            root, names = CONTROL_GROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = CONTROL_GROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *(above for above in group.parents if above.is_relative_to(root))):
            yield folder / names[0], folder / names[1], (folder / "memory.stat", names[2])


def _left_by(limit: Path, use: Path, dropped: tuple[Path, str]) -> int | None:
    """Return what a control group leaves; None if it has no limit, or if it is not visible from in here."""
    try:
        most, used = int(limit.read_text(encoding="ascii")), int(use.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return max(0, most - max(0, used - _number_after(*dropped)))


def _number_after(path: Path, name: str) -> int:
    """Return the number after a name at the beginning of a line; 0 if there is none."""
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)


def most_connections(campaign: CampaignFile) -> tuple[int, str]:
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
