"""The kernel that a namespace test bed's gateway runs in: this machine's, or one of its own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatemark.dut.base import KernelCounts
from gatemark.dut.commands import run_command
from gatemark.dut.naming import BedName
from gatemark.dut.steering import CorePlan
from gatemark.technology import SideName

SIDES: tuple[SideName, ...] = ("left", "right")
MAC_ADDRESSES = {
    ("gm", "left"): "02:00:00:00:01:01",
    ("gm", "right"): "02:00:00:00:01:02",
    ("gw", "left"): "02:00:00:00:02:01",
    ("gw", "right"): "02:00:00:00:02:02",
}
"""Locally administered addresses, the same in each run, so that a run can be repeated bit for bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What the links of a test bed are called and what they carry."""

    name: BedName
    mtus: Mapping[SideName, int]
    """Largest IP packet of each side."""
    cores: CorePlan
    log: list[str] = field(default_factory=list)
    """Every command that was run to make them."""

    def tester_end(self, side: SideName) -> str:
        """Name of the Tester's interface."""
        return self.name.interface("gm", side)

    def gateway_end(self, side: SideName) -> str:
        """Name of the gateway's interface."""
        return self.name.interface("gw", side)

    def gateway_vlan(self, side: SideName) -> str:
        """Name of the interface above it that is in a VLAN."""
        return self.name.interface("gv", side)

    def neutral_names(self) -> dict[str, str]:
        """Return for each interface of the gateway a name that does not differ from run to run."""
        ends = {self.gateway_end(side): f"gateway-{side}" for side in SIDES}
        return ends | {self.gateway_vlan(side): f"gateway-{side}-vlan" for side in SIDES}

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
        ...


class GatewayKernel(Protocol):
    """A kernel for the gateway, with a link to the Tester on each side."""

    @property
    def place(self) -> CommandPlace:
        """Where the gateway's commands and daemons run."""
        ...

    @property
    def words(self) -> str | None:
        """What kernel it is, for reports; None for this machine's."""
        ...

    @property
    def release(self) -> str | None:
        """The same in a few words, for titles; None for this machine's."""
        ...

    @property
    def cores(self) -> tuple[int, ...]:
        """The gateway's cores by the numbers that its kernel gives them."""
        ...

    @property
    def files_are_local(self) -> bool:
        """Whether a file that the gateway writes is at once seen by this machine."""
        ...

    def require(self, programs: Mapping[str, str]) -> None:
        """Raise TestBedError if this machine lacks something; `programs` are the recipe's, each with its package."""
        ...

    def open(self, settings: Mapping[str, str | int]) -> None:
        """Make namespaces and links, both ends up, with kernel settings of the gateway; then commands can be run."""
        ...

    def revive(self, settings: Mapping[str, str | int]) -> bool:
        """Start the kernel again if it has ended; return whether it had, so that the gateway must be set up again."""
        ...

    def check(self) -> None:
        """Raise TestBedError if the kernel or an interface is gone, TesterPortError if that is the Tester's."""
        ...

    def set_machine(self, settings: Mapping[str, str]) -> None:
        """Change settings that a kernel has once; those of this machine are written back when it is closed."""
        ...

    def own_drops(self) -> dict[str, int]:
        """Frames for which the receive queue of a Tester's end had no room."""
        ...

    def gateway_queue_drops(self) -> dict[str, int]:
        """Frames for which a queue of the gateway had no room."""
        ...

    def counts(self) -> KernelCounts:
        """What the kernel has counted, as far as it tells; never raises."""
        ...

    def smallest_queue(self) -> int:
        """Return the frames that the smallest queue of the gateway holds."""
        ...

    def processes(self) -> list[int]:
        """Processes of this machine that do the work of the kernel, besides its own kernel threads."""
        ...

    def close(self) -> None:
        """End all processes inside and let go of the namespaces; a second call does nothing."""
        ...
