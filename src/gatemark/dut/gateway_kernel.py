"""The kernel that a namespace test bed's gateway runs in: this machine's, or one of its own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gatemark.dut.base import MIDDLE, FrameDrops, KernelCounts
from gatemark.dut.commands import run_command
from gatemark.dut.naming import BedName
from gatemark.dut.steering import CorePlan
from gatemark.technology import SIDES, SideName

MAC_ADDRESSES = {
    ("gm", "left"): "02:00:00:00:01:01",
    ("gm", "right"): "02:00:00:00:01:02",
    ("gw", "left"): "02:00:00:00:02:01",
    ("gw", "right"): "02:00:00:00:02:02",
    ("gx", "left"): "02:00:00:00:03:01",
    ("gx", "right"): "02:00:00:00:03:02",
}
"""Locally administered addresses, the same in each run, so that a run can be repeated bit for bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where one gateway of a test bed is."""

    namespace: str
    """Name of its network namespace; of the only one in a kernel of its own, what the log calls it."""
    folder: Path
    """Folder of its files and logs."""
    ends: Mapping[SideName, str]
    """Its interface on each side, towards the Tester or another gateway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What the links of a test bed are called and what they carry."""

    name: BedName
    mtus: Mapping[SideName, int]
    """Largest IP packet of each side."""
    cores: CorePlan
    middle_mtu: int | None = None
    """Largest IP packet of the link between two gateways in a row; None: there is one gateway."""
    log: list[str] = field(default_factory=list)
    """Every command that was run to make them."""

    @property
    def gateway_namespaces(self) -> tuple[str, ...]:
        """Names of what each gateway is in, from the left."""
        return (self.name.gateway_namespace, *(() if self.middle_mtu is None else (self.name.second_namespace,)))

    def namespace_of(self, side: SideName) -> str:
        """Name what the gateway on one side is in."""
        return self.gateway_namespaces[0 if side == "left" else -1]

    def tester_end(self, side: SideName) -> str:
        """Name of the Tester's interface."""
        return self.name.interface("gm", side)

    def gateway_end(self, side: SideName) -> str:
        """Name of the gateway's interface."""
        return self.name.interface("gw", side)

    def gateway_vlan(self, side: SideName) -> str:
        """Name of the interface above it that is in a VLAN."""
        return self.name.interface("gv", side)

    def middle_end(self, side: SideName) -> str:
        """Name of the interface towards the other gateway that the gateway on one side has."""
        return self.name.interface("gx", side)

    def stages(self) -> tuple[Stage, ...]:
        """Return where each gateway is, from the left."""
        if self.middle_mtu is None:
            ends = {side: self.gateway_end(side) for side in SIDES}
            return (Stage(namespace=self.name.gateway_namespace, folder=self.name.folder, ends=ends),)
        towards: dict[SideName, SideName] = {"left": "right", "right": "left"}
        return tuple(
            Stage(
                namespace=self.namespace_of(side),
                folder=self.name.folder / name,
                ends={side: self.gateway_end(side), other: self.middle_end(side)},
            )
            for (side, other), name in zip(towards.items(), ("first", "second"), strict=True)
        )

    def neutral_names(self) -> dict[str, str]:
        """Return for each interface of the gateway a name that does not differ from run to run."""
        ends = {self.gateway_end(side): f"gateway-{side}" for side in SIDES}
        middle = {self.middle_end(side): f"{MIDDLE}{side}" for side in SIDES}
        return ends | middle | {self.gateway_vlan(side): f"gateway-{side}-vlan" for side in SIDES}

    def run(self, command: list[str]) -> None:
        """Run a command on this machine and note it."""
        self.log.append(shlex.join(command))
        run_command(command, where="test bed netns")

    def run_script(self, namespace: str, script: str) -> None:
        """Run a script in a network namespace of this machine and note it."""
        self.log.extend(f"[{namespace}] {line}" for line in script.splitlines())
        run_command(["ip", "netns", "exec", namespace, "sh", "-euc", script], where="test bed netns")


class CommandPlace(Protocol):
    """Where commands run in the gateway's kernel: an `Enclosure` of this machine, or a guest."""

    @property
    def is_open(self) -> bool:
        """Whether commands can run inside."""
        ...

    def command(self, *command: str) -> list[str]:
        """Return `command` as it runs inside, in the gateway's folder."""
        ...

    def shell(self, script: str) -> list[str]:
        """Return a shell script as it runs inside; it ends at the first command that fails."""
        return self.command("sh", "-euc", script)


class KernelProcess(Protocol):
    """A kernel that runs as a process. A file that the gateway writes is not at once seen by this machine."""

    @property
    def words(self) -> str:
        """What kernel it is, for reports."""
        ...

    @property
    def release(self) -> str:
        """The same in a few words, for titles."""
        ...

    def revive(self, settings: Mapping[str, str | int]) -> bool:
        """Start the kernel again if it has ended; return whether it had, so that the gateway must be set up again."""
        ...

    def pids(self) -> list[int]:
        """Return the processes that do its work."""
        ...


class GatewayKernel(Protocol):
    """A kernel for the gateway, with a link to the Tester on each side."""

    @property
    def places(self) -> tuple[CommandPlace, ...]:
        """Where commands and daemons of each gateway run, from the left."""
        ...

    @property
    def process(self) -> KernelProcess | None:
        """The kernel as a process of this machine; None for this machine's own."""
        ...

    @property
    def cores(self) -> tuple[int, ...]:
        """The gateway's cores by the numbers that its kernel gives them."""
        ...

    def require(self, programs: Mapping[str, str]) -> None:
        """Raise TestBedError if this machine lacks something; `programs` are the recipe's, each with its package."""
        ...

    def open(self, settings: Mapping[str, str | int]) -> None:
        """Make namespaces and links, both ends up, with kernel settings of the gateway; then commands can be run."""
        ...

    def check(self) -> None:
        """Raise TestBedError if the kernel or an interface is gone, TesterPortError if that is the Tester's."""
        ...

    def set_machine(self, settings: Mapping[str, str]) -> None:
        """Change settings that a kernel has once; those of this machine are written back when it is closed."""
        ...

    def drops(self) -> FrameDrops:
        """Frames for which the receive queue of a Tester's end, or a queue of the gateway, had no room."""
        ...

    def counts(self) -> KernelCounts:
        """What the kernel has counted, as far as it tells; never raises."""
        ...

    def smallest_queue(self) -> int:
        """Return the frames that the smallest queue of the gateway holds."""
        ...

    def close(self) -> None:
        """End all processes inside and let go of the namespaces; a second call does nothing."""
        ...
