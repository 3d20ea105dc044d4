"""The test bed of two ports of this machine with a gateway that somebody else set up between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Self

from gatemark.dut.base import Abilities, GatewayDescription, KernelCounts, Sampler
from gatemark.dut.boot import HostBoot
from gatemark.dut.commands import LONGER, run_command, telling_tester_port
from gatemark.dut.control import GatewayControl, GatewaySettings, table_settings
from gatemark.dut.gateway_host import GatewayHost
from gatemark.dut.host_capture import HostLinks
from gatemark.dut.host_description import read_host_description
from gatemark.dut.isolation import NamedPorts
from gatemark.dut.other_gateway import BothSamplers, HostCounters, OtherGateway, of_both
from gatemark.dut.shell import shell_at
from gatemark.dut.telemetry import HostSampler
from gatemark.errors import TestBedError
from gatemark.facts import GatewayHostFacts
from gatemark.port_kinds import parse_port
from gatemark.technology import SIDES, SideName

if TYPE_CHECKING:
    from gatemark.config.model import Campaign


class PortsTestBed(NamedPorts):
    """Two ports of this machine. The gateway is the user's; the campaign file describes it and how it is controlled."""

    def __init__(self, campaign: Campaign) -> None:
        super().__init__(campaign)
        self._commands = campaign.control.model
        self._described: GatewayHostFacts | None = None
        self._run = shell_at(self._commands.host, self._commands.words, longer=LONGER)
        asked, model = campaign.control.telemetry, campaign.gateway.other_host
        self._other = None if model is None else OtherGateway(model, self._commands.limits, asked)
        settings = GatewaySettings(table=campaign.gateway.table, named=campaign.gateway.settings)
        beside = None if self._other is None else self._other.run
        self.control = GatewayControl(
            self._run, self._commands, where="gateway.control", settings=settings, beside=beside
        )
        self._booter = HostBoot(self._run, self._commands, self.control)
        there = self._commands.host is not None
        self._sampler = (
            None if asked is None else HostSampler(self._run, asked, cpus=asked.cpus or None, counts_interrupts=there)
        )
        self._controls = (self.control, *(() if self._other is None else (self._other.control,)))
        self._captures = self._captured_links()
        runs_commands = campaign.gateway.control is not None or model is not None or asked is not None
        is_asked = there or model is not None
        self.can = Abilities(
            health=self._check,
            control=self.control if runs_commands else None,
            connections=self.control.connections,
            booter=None if self._commands.boot == "never" else self,
            host=GatewayHost((), tuple, queue_frames=0, counts=self._counters()) if is_asked else None,
            telemetry=self._samplers(),
            middle=self._captures,
            describe_host=partial(read_host_description, self._run) if there else None,
        )

    def describe(self) -> GatewayDescription:
        """Repeat what the campaign file says about the gateway, and what its own commands say."""
        gateway = self._campaign.gateway
        said = [f"# {command}\n{output.rstrip()}" for command, output in self.control.describe()]
        if self._other is not None:
            described = self._other.control.describe()
            said += [f"# the other gateway: {command}\n{output.rstrip()}" for command, output in described]
        table = [f"{row.action.removeprefix('set_')} = {value}" for _, row, value in table_settings(gateway.table)]
        if table:
            said.append("\n".join(["# connection tracking table", *table]))
        return GatewayDescription(
            name=gateway.name or "gateway between two ports",
            version=gateway.version,
            configuration="\n\n".join(part for part in (gateway.configuration, *said) if part),
            settings=self.control.made,
            host=self._described,
            sampling=None if self._sampler is None else self._sampler.cost(),
            other_host=None if self._other is None else self._other.describe_host(),
        )

    def boot(self) -> None:
        """Boot the gateway's host and set it up again; its links may still be down.

        Raises TestBedError if it comes back with another number of CPUs than the campaign states.
        """
        self._booter.boot()
        if self._sampler is not None:
            self._sampler.forget()
        if self._described is not None:
            self._check_cores(read_host_description(self._run))

    def _check(self) -> None:
        """Raise TesterPortError if an interface of the kernel is gone, TestBedError if a health command fails."""
        for side, text in self.ports.items():
            interface = parse_port(text).interface
            if interface is not None:
                fix = "the interface is gone: check cable, driver and `ip link`"
                with telling_tester_port():
                    run_command(["ip", "link", "show", "dev", interface], where=f"{side}.port", fix=fix)
        for control in self._controls:
            control.check_health()

    def _samplers(self) -> Sampler | None:
        """Return what samples the gateway's host, or both of a row; None where nothing is sampled."""
        other = None if self._other is None else self._other.sampler
        return self._sampler if self._sampler is None or other is None else BothSamplers(self._sampler, other)

    def _counters(self) -> Callable[[], KernelCounts]:
        """Return what reads the counters of the gateway's host, or of both of a row."""
        keeper, other = self._stand_on
        run = None if self._commands.host is None else self._run
        counters = HostCounters(run, self.control, keeper)
        if self._other is None:
            return counters.read
        others = self._other.counters(other)
        return lambda: of_both(counters.read(), others.read())

    def _captured_links(self) -> HostLinks | None:
        """Return the links of a row on which frames can be captured; None where their interfaces are not named."""
        control, model, other = self._commands, self._campaign.gateway.other_host, self._other
        if other is None or model is None or control.middle_interface is None:
            return None
        near, far = self._stand_on
        return HostLinks(
            {
                near: (self._run, control.outer_interface or ""),
                "middle": (self._run, control.middle_interface),
                far: (other.run, model.outer_interface or ""),
            }
        )

    @property
    def _stand_on(self) -> tuple[SideName, SideName]:
        """The sides of a row on which its gateways stand: the one that keeps the connections, and the other one."""
        left, right = SIDES
        return (left, right) if self._campaign.technology.keeper == 0 else (right, left)

    def _check_cores(self, host: GatewayHostFacts) -> None:
        """Raise TestBedError if the host has another number of CPUs than the campaign states."""
        gateway = self._campaign.gateway
        counts_cpus = gateway.cores_set_by in ("kernel_command_line", "hot_plug")
        if not counts_cpus or host.cpus_online is None or host.cpus_online == gateway.cores:
            return
        raise TestBedError(
            what=f"the campaign states {gateway.cores} cores, but {host.cpus_online} CPUs are online at"
            f" {self._commands.host} ({host.cpu_list or 'not listed'})",
            where="gateway.cores",
            fix="boot it with maxcpus= or take CPUs offline, by a setting of [gateway.control.set] for example; with"
            " simultaneous multithreading each logical CPU counts",
        )

    def __enter__(self) -> Self:
        """Check the ports, keep what arrives at them out of this machine's kernel, and set up the gateway.

        Raises ConfigError with all that is wrong: the campaign names ports that cannot be used.
        """
        self._guard()
        try:
            if self._commands.boot == "never":
                self.control.set_up()
            else:
                self.boot()
            if self._commands.host is not None:
                self._described = read_host_description(self._run)
                self._check_cores(self._described)
            for control in self._controls:
                control.count_middle()  # a command that fails is better known now than missed in each trial
            if self._captures is not None:
                with self._captures.captured():
                    pass  # as above
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Let frames into this machine's kernel again, and end the connection to the gateway's host."""
        try:
            super().close()
        finally:
            try:
                if self._sampler is not None:
                    self._sampler.stop()
                self._run.close()
            finally:
                if self._other is not None:
                    self._other.close()
