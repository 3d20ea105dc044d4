"""The test bed of two ports of this machine with a gateway that somebody else set up between them."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gatemark.config.tables import GatewayControlModel
from gatemark.dut.base import FoundTestBed, GatewayDescription
from gatemark.dut.commands import COMMAND_SECONDS_MAX, run_command, try_command
from gatemark.dut.control import GatewayControl, table_settings
from gatemark.dut.ingress import IngressDrop
from gatemark.dut.isolation import isolate, sending_problems, wire_problems
from gatemark.dut.port_name import KERNEL_PORT_KINDS, NET_FOLDER, parse_port
from gatemark.dut.uplinks import read_uplinks
from gatemark.errors import ConfigError, Problem

if TYPE_CHECKING:
    from gatemark.config.model import Campaign, RecipeFacts

ROOT_PORT_KINDS = (*KERNEL_PORT_KINDS, "tap", "pci")
"""Kinds of port that an ordinary user cannot open."""
START_SECONDS_MAX = 300.0
"""How long a gateway may take from its start until its health commands succeed: it may be a machine that boots."""


def port_problems(ports: Mapping[str, str]) -> list[Problem]:
    """Check ports, by where they are named: they exist, this user may open them, test traffic stays between them.

    Raises TestBedError if the kernel does not tell its routes.
    """
    uplinks = functools.cache(read_uplinks)
    problems = []
    for where, text in ports.items():
        port = parse_port(text)
        if port.kind in ROOT_PORT_KINDS and os.geteuid() != 0:
            what = f"port {text} needs root (CAP_NET_RAW, CAP_NET_ADMIN)"
            problems.append(Problem(what=what, where=where, fix='run as root, or use testbed.kind = "loopback"'))
        if port.interface is not None and not (NET_FOLDER / port.interface).exists():
            known = ", ".join(sorted(folder.name for folder in NET_FOLDER.glob("*") if folder.name != "lo"))
            fix = f"interfaces here are {known or 'none'}; `ip link` lists them"
            problems.append(Problem(what=f"there is no interface {port.interface}", where=where, fix=fix))
        elif port.interfaces:
            problems += wire_problems(port, where, uplinks())
    return problems or sending_problems(ports, uplinks)


class PortsTestBed(FoundTestBed):
    """Two ports of this machine. The gateway is the user's; the campaign file describes it and how it is controlled."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._commands = campaign.gateway.control or GatewayControlModel()
        self._ingress = IngressDrop(())
        self._control = GatewayControl(
            self._at_gateway, self._commands, where="gateway.control", table=campaign.gateway.table
        )
        missing = [
            Problem(
                what="kind ports needs a port on each side",
                where=f"{campaign.source}: {name}.port",
                fix='for example port = "pci:0000:01:00.0"',
            )
            for name, side in (("left", campaign.left), ("right", campaign.right))
            if side is None or side.port is None
        ]
        if missing:
            raise ConfigError(problems=missing)
        if self.ports["left"] == self.ports["right"] and parse_port(self.ports["left"]).target:
            raise ConfigError(
                what=f"left and right are the same port {self.ports['left']}",
                where=f"{campaign.source}: right.port",
                fix="a gateway has two sides: name two ports",
            )

    @property
    def facts(self) -> RecipeFacts | None:
        """Nothing: the campaign file says all."""
        return None

    @property
    def ports(self) -> dict[str, str]:
        """Ports as the campaign names them."""
        left, right = self._campaign.left, self._campaign.right
        return {"left": (left and left.port) or "", "right": (right and right.port) or ""}

    @property
    def namespace(self) -> str | None:
        """The namespace of the caller."""
        return None

    @property
    def tester_cores(self) -> list[int]:
        """Cores as the campaign names them."""
        return list(self._campaign.testbed.cores)

    def describe(self) -> GatewayDescription:
        """Repeat what the campaign file says about the gateway, and what its own commands say."""
        gateway = self._campaign.gateway
        said = [
            f"# {command}\n{self._at_gateway(command, where='gateway.control: describe').rstrip()}"
            for command in self._commands.describe
        ]
        table = [f"{action.removeprefix('set_')} = {value}" for action, value in table_settings(gateway.table)]
        if table:
            said.append("\n".join(["# connection tracking table", *table]))
        return GatewayDescription(
            name=gateway.name or "gateway between two ports",
            version=gateway.version,
            configuration="\n\n".join(part for part in (gateway.configuration, *said) if part),
        )

    def clear_state(self) -> None:
        """Delete all connections; do nothing where the campaign file has no command for that."""
        self._control.clear_state()

    def count_connections(self) -> int | None:
        """Return the number of connections that the gateway holds; None where there is no command for that."""
        return self._control.count_connections()

    def tear_down(self) -> int:
        """Delete all connections; return the nanoseconds that it took where the command ran."""
        return self._control.tear_down()

    def restart(self) -> None:
        """Stop the gateway, start it again, wait until it is healthy, and set up its table again."""
        if not self._commands.start:
            super().restart()
        for command in self._commands.stop:
            try_command(self._shell(command))
        for command in self._commands.start:
            self._at_gateway(command, where="gateway.control: start", seconds_max=START_SECONDS_MAX)
        self._control.await_health(START_SECONDS_MAX)
        self._control.set_up_table()

    def reset(self) -> None:
        """Reset the gateway by the commands of the campaign file; its table is as they leave it."""
        self._control.reset()

    def check(self) -> None:
        """Raise TestBedError if an interface of the kernel is gone or down, or a health command fails."""
        for side, text in self.ports.items():
            port = parse_port(text)
            if port.kind in KERNEL_PORT_KINDS and port.interface is not None:
                fix = "the interface is gone: check cable, driver and `ip link`"
                run_command(["ip", "link", "show", "dev", port.interface], where=f"{side}.port", fix=fix)
        self._control.check_health()

    def _shell(self, script: str) -> list[str]:
        return [*shlex.split(self._commands.shell), script]

    def _at_gateway(self, script: str, *, where: str, fix: str = "", seconds_max: float = COMMAND_SECONDS_MAX) -> str:
        """Run a command through the shell that leads to the gateway."""
        return run_command(self._shell(script), where=where, fix=fix, seconds_max=seconds_max)

    def __enter__(self) -> Self:
        """Check the ports, keep what arrives at them out of this machine's kernel, and set up the gateway's table.

        Raises ConfigError with all that is wrong: the campaign names ports that cannot be used.
        """
        ports = {f"{self._campaign.source}: {side}.port": text for side, text in self.ports.items()}
        problems = port_problems(ports)
        if problems:
            raise ConfigError(problems=problems)
        self._ingress = isolate(ports, read_uplinks)
        try:
            self._control.set_up_table()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Let frames into this machine's kernel again."""
        self._ingress.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
