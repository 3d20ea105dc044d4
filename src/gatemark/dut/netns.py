"""The test bed of network namespaces: a gateway that a recipe makes, in a kernel of this machine.

That is this machine's own kernel, with the gateway in a namespace (`host_kernel`), or one that runs as a process
(`guest_kernel`). Here is what both have in common: addresses and routes, the commands of the recipe, its daemons.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import threading
import time
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gatemark.config.recipe import Recipe
from gatemark.dut import machine, naming
from gatemark.dut.base import GatewayDescription, HostReading, TelemetryReading
from gatemark.dut.choose_kernel import HOST_KERNEL, ChosenKernel
from gatemark.dut.commands import COMMAND_SECONDS_MAX, LONGER, require_program, run_command, try_command
from gatemark.dut.control import GatewayControl, GatewaySettings
from gatemark.dut.daemon import Daemon, start_daemon
from gatemark.dut.gateway_host import GatewayHost, threads_of
from gatemark.dut.gateway_kernel import SIDES, Links
from gatemark.dut.guard import CleanupGuard
from gatemark.dut.plumbing import GATEWAY_SYSCTL, REPORTED_SYSCTL, gateway_end, machine_settings, sysctl_script
from gatemark.dut.recipe import substitute
from gatemark.dut.shell import Shell
from gatemark.dut.steering import CorePlan, renice, stepping_back
from gatemark.dut.telemetry import HostSampler
from gatemark.errors import Problem, TestBedError

if TYPE_CHECKING:
    from gatemark.config.map_tables import MapModel
    from gatemark.config.tables import LimitName, SideModel, TelemetryModel


GATEWAY_NICE = -20
"""The gateway's threads go before all others on its cores: a gateway of its own shares its CPUs with nobody."""


class NetnsTestBed:
    """A gateway made by a recipe, in namespaces of this machine. Needs root."""

    __test__ = False

    def __init__(
        self,
        recipe: Recipe,
        sides: dict[str, SideModel],
        cores: CorePlan,
        *,
        port_kind: str = "af_packet",
        settings: GatewaySettings | None = None,
        telemetry: TelemetryModel | None = None,
        start_seconds_max: float | None = None,
        edges: MapModel | None = None,
        echo: bool = False,
        kernel: ChosenKernel = HOST_KERNEL,
    ) -> None:
        """`start_seconds_max`: how long it may take from its start until its health commands succeed, if not as the
        recipe says.

        `edges`: customer edges in place of those of the recipe; `echo`: whether a border relay must know identifiers of
        echo messages; `kernel`: the one of the gateway.
        """
        self._recipe = recipe
        self._settings = GatewaySettings(table=recipe.gateway.table, named={}) if settings is None else settings
        limit_s = recipe.start_limit_ns / 1e9
        self._start_seconds_max = limit_s if start_seconds_max is None else start_seconds_max
        self._sides = sides
        self._edges = recipe.map if edges is None else edges
        self._echo = echo
        self._cores = cores
        self._port_kind = port_kind
        self._name = naming.new_name()
        self._tester_ends = {side: self._name.interface("gm", side) for side in SIDES}
        self._gateway_ends = {side: self._name.interface("gw", side) for side in SIDES}
        self._ip_ends: dict[str, str] = {  # where the gateway has its addresses: the end itself, or a VLAN on it
            side: end if sides[side].vlan is None else self._name.interface("gv", side)
            for side, end in self._gateway_ends.items()
        }
        links = Links(name=self._name, mtus={side: sides[side].mtu or recipe.mtu for side in SIDES}, cores=cores)
        self._log = links.log
        self._kernel = kernel.make(links)
        self._kernel_reason = kernel.reason
        self._place = self._kernel.place
        self._daemons: list[Daemon] = []
        where = f"gateway {recipe.name}"
        self._control = GatewayControl(self._in_gateway, recipe.commands, where=where, settings=self._settings)
        self._scripts = Shell(lambda: self._place.command("sh", "-s"), longer=LONGER)
        folder, local = shlex.quote(str(self._name.folder)), self._kernel.files_are_local
        only_gateway = (
            () if cores.shared else self._kernel.cores
        )  # a CPU that the Tester uses too tells nothing of the gateway
        self._sampler = (
            None
            if telemetry is None
            else HostSampler(self._scripts, telemetry, cpus=only_gateway, folder=folder, file_is_local=local)
        )
        self._claim: naming.Claim | None = None
        self._guard = CleanupGuard(self.close)
        self._host: GatewayHost | None = None
        self._nice = 0
        self._behind = contextlib.ExitStack()
        """Left when the test bed is closed: this process behind all others."""
        self._open = False
        self._lock = threading.Lock()

    @property
    def ports(self) -> dict[str, str]:
        """Ports of the engine: the Tester's ends."""
        return {side: f"{self._port_kind}:{interface}" for side, interface in self._tester_ends.items()}

    @property
    def namespace(self) -> str:
        """The Tester's namespace, where the engine must run."""
        return self._name.tester_namespace

    @property
    def gateway_namespace(self) -> str:
        return self._name.gateway_namespace

    @property
    def gateway_interfaces(self) -> dict[str, str]:
        """The interface of each side that has the gateway's addresses."""
        return dict(self._ip_ends)

    @property
    def tester_cores(self) -> list[int]:
        return list(self._cores.tester)

    @property
    def gateway_cores(self) -> list[int]:
        return list(self._cores.gateway)

    def __enter__(self) -> Self:
        """Make the test bed; nothing stays behind if that fails."""
        self._require()
        naming.remove_leftovers()
        machine.release_leftovers()
        self._open = True
        self._guard.install()
        try:
            self._claim = naming.Claim(self._name)
            if not self._cores.shared:
                self._go_first()
            self._kernel.open(GATEWAY_SYSCTL | self._recipe.sysctl)
            self._set_up_gateway()
            self._log.extend(self._start_gateway())
            if not self._nice:
                self._behind.enter_context(stepping_back())
            if not self._cores.shared:  # else the gateway waits for the Tester itself
                queue_frames = self._kernel.smallest_queue()
                self._host = GatewayHost(self.gateway_cores, self._pids, queue_frames=queue_frames)
        except TestBedError as error:
            self.close()
            raise self._without_removed_files(error) from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the test bed."""
        self.close()

    def close(self) -> None:
        """Remove everything that was made: processes, interfaces, namespaces, temporary files."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        try:
            # Each step is made whatever becomes of those before it.
            with self._guard.undisturbed(), contextlib.ExitStack() as stack:
                if self._claim is not None:
                    stack.callback(self._claim.release)
                stack.callback(machine.release, self._name)
                stack.callback(self._behind.close)
                if self._host is not None:
                    stack.callback(self._host.close)
                stack.callback(self._kernel.close)
                stack.callback(self._stop_gateway)
        finally:
            self._guard.remove()

    def check(self) -> None:
        """Raise TestBedError if a process of the gateway ended, an interface is gone or a health command fails.

        It is TesterPortError if the Tester's end of a link is gone.
        """
        for daemon in self._daemons:
            daemon.check()
        self._kernel.check()
        self._control.check_health()

    def ask(self, script: str) -> str:
        """Run a script where the gateway is, between trials; return what it prints."""
        return run_command(self._place.shell(script), where=f"gateway {self._recipe.name}")

    def clear_state(self) -> None:
        """Delete all connections, as the recipe says; do nothing where it has no command for that."""
        self._control.clear_state()

    def count_connections(self) -> int | None:
        """Return the number of connections that the gateway holds; None if the recipe has no command for that."""
        return self._control.count_connections()

    def tear_down(self) -> int:
        """Delete all connections; return the nanoseconds that it took in the gateway's namespace."""
        return self._control.tear_down()

    def restart(self) -> None:
        """End the gateway's daemons and start them again; its set-up is repeated only if its kernel had ended."""
        self._stop_gateway()
        if self._kernel.revive(GATEWAY_SYSCTL | self._recipe.sysctl):
            self._set_up_gateway()
        self._start_gateway()

    def boot(self) -> None:
        """Raise TestBedError: a namespace has no kernel of its own."""
        raise TestBedError(what="a namespace does not boot", where="test bed netns", fix="leave boot out")

    def reset(self) -> None:
        """Reset the gateway as the recipe says; its daemons are ended before that and started again after it."""
        with self._scripts.disturbing():
            if not self._recipe.commands.start:
                return self._control.reset()
            self._stop_gateway()
            self._control.reset()
            self._start_gateway()

    def describe(self) -> GatewayDescription:
        """Describe the gateway as it is now: versions, addresses, routes, settings, steering."""
        where = f"gateway {self._recipe.name}"
        versions = [self._shell(command, "describe", where=where).strip() for command in self._recipe.commands.version]
        parts = [
            *self._kernel_words(),
            ("cpus", f"gateway {self.gateway_cores}, Tester {self.tester_cores}"),
            *self._precedence_words(),
            ("addresses", self._read("ip -o address show scope global")),
            ("routes, IPv4", self._read("ip -4 route show")),
            ("routes, IPv6", self._read("ip -6 route show | grep -v '^fe80'")),
            ("settings", self._read_settings()),
        ]
        for interface in self._gateway_ends.values():
            parts.append((f"link {interface}", self._read(f"ip -d link show dev {interface}")))
            offloads = self._read(f"ethtool -k {interface} | grep ': on' || true")
            parts.append((f"offloads still on, {interface}", offloads))
            parts.append((f"rps_cpus, {interface}", self._read(f"cat /sys/class/net/{interface}/queues/rx-0/rps_cpus")))
        for command in self._recipe.commands.configuration:
            text = substitute(command, self._variables())
            parts.append((text, self._read(text, self._settings.limits.seconds("describe"))))
        return GatewayDescription(
            name=self._recipe.description + (f", {release}" if (release := self._kernel.release) else ""),
            version="; ".join(versions) or f"{platform.system()} {platform.release()}",
            configuration=self._neutral("\n".join(f"# {title}\n{text.rstrip()}\n" for title, text in parts)),
            commands=tuple(self._neutral(line) for line in self._log),
            settings=self._control.made,
            sampling=None if self._sampler is None else self._sampler.cost(),
        )

    def _kernel_words(self) -> list[tuple[str, str]]:
        """Say which kernel the gateway has, if it is not this machine's."""
        if self._kernel.words is None:
            return []
        return [("kernel", "; ".join(words for words in (self._kernel.words, self._kernel_reason) if words))]

    def _precedence_words(self) -> list[tuple[str, str]]:
        return [("precedence", f"nice {self._nice} for the gateway's threads on its cpus")] if self._nice else []

    def own_drops(self) -> dict[str, int]:
        """Frames for which the receive queue of a Tester's end had no room."""
        return self._kernel.own_drops()

    def own_faults(self) -> tuple[str, ...]:
        """Return none: dropping frames is all that this test bed can do to a trial."""
        return ()

    def commands_since(self, at_ns: int) -> tuple[str, ...]:
        """Return which control commands ran at any time since `at_ns`."""
        return self._scripts.ran_since(at_ns)

    def gateway_queue_drops(self) -> dict[str, int]:
        """Frames for which a queue of the gateway had no room."""
        return self._kernel.gateway_queue_drops()

    def read_host(self) -> HostReading | None:
        """Read the gateway's CPUs and threads; None where the Tester shares a CPU, or the kernel does not tell."""
        return None if self._host is None else self._host.read()

    def start_telemetry(self, seconds: float) -> None:
        """See that samples are taken in the gateway's namespaces; they end with those, however gatemark ends."""
        if self._sampler is not None:
            self._sampler.start(seconds)

    def read_telemetry(self) -> TelemetryReading | None:
        """Return the samples since the last call."""
        return None if self._sampler is None else self._sampler.read()

    def _pids(self) -> list[int]:
        return [*self._kernel.processes(), *(daemon.process.pid for daemon in self._daemons)]

    def _go_first(self) -> None:
        """Let the gateway's threads go before all others on its cores, if this process may change the kernel's.

        They would wait for whatever else is ready there, the engine's control thread and this process among it, up to
        a tick each time, while the gateway's queue overflows. Threads of the kernel and daemons get the same nice
        value: how they share a CPU among themselves stays as it is.
        """
        settings = machine.nice_values(self.gateway_cores, GATEWAY_NICE)
        with contextlib.suppress(TestBedError):
            machine.hold(self._name, settings)
            self._nice = GATEWAY_NICE if settings else 0

    def _require(self) -> None:
        if os.geteuid() != 0:
            raise TestBedError(
                what="network namespaces need root",
                where="test bed netns",
                fix='run as root, for example with sudo; as an ordinary user use testbed.kind = "loopback"',
            )
        for program in ("ip", "ethtool", "taskset", "setpriv", "unshare", "nsenter", "env", "sh"):
            require_program(program)
        self._kernel.require(self._recipe.programs)

    def _set_up_gateway(self) -> None:
        """Give the gateway its addresses and routes, write its files, run the recipe's set-up."""
        for side in SIDES:
            interface, vlan = self._ip_ends[side], self._sides[side].vlan
            if vlan is not None:
                lower = ["link", self._gateway_ends[side], "name", interface]
                self._run(["ip", "link", "add", *lower, "type", "vlan", "id", str(vlan)])
                self._run(["ip", "link", "set", interface, "up"])
            end = gateway_end(self._recipe, side, self._sides[side], interface, self._edges)
            for line in end.commands():
                self._run(line)
        for file_name, text in self._recipe.files.items():
            path = self._name.folder / file_name
            try:
                path.write_text(substitute(text, self._variables()), encoding="utf-8")
            except OSError as error:
                raise naming.cannot_keep(path, error) from None
        for command in self._recipe.commands.setup:
            self._shell(command, "setup", where=f"gateway {self._recipe.name}: setup", keep=True)

    def _start_gateway(self) -> list[str]:
        """Start the daemons, set up the connection tracking table, wait for health; return the commands."""
        done = []
        for number, line in enumerate(self._recipe.commands.start):
            command = substitute(line, self._variables())
            done.append(f"[{self.gateway_namespace}] {command} &")
            self._daemons.append(
                start_daemon(
                    command,
                    place=self._place,
                    folder=self._name.folder,
                    cores=self._kernel.cores,
                    number=number,
                )
            )
        renice((int(thread.name) for thread in threads_of(self._pids())), self._nice)
        settings = machine_settings(self._recipe, self._settings.table)
        self._kernel.set_machine(settings)
        done += sysctl_script(settings).splitlines()
        self._await_health()
        return done + [f"[{self.gateway_namespace}] {command}" for command in self._control.set_up()]

    def _stop_gateway(self) -> None:
        if not self._place.is_open:
            return
        for command in self._recipe.commands.stop:
            stop = self._place.shell(substitute(command, self._variables()))
            try_command(stop, self._settings.limits.seconds("stop"))
        while self._daemons:
            self._daemons.pop().end()

    def _await_health(self) -> None:
        until = time.monotonic() + self._start_seconds_max
        while True:
            for daemon in self._daemons:
                daemon.check()
            try:
                self.check()
            except TestBedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return

    def _variables(self) -> dict[str, str]:
        """Values of what stands in braces; `{left}` is the inside, also where the recipe is mirrored."""
        left, right = SIDES if self._recipe.inside == "left" else SIDES[::-1]
        return {
            "left": self._ip_ends[left],
            "right": self._ip_ends[right],
            "dir": str(self._name.folder),
            "cores": ",".join(str(core) for core in self._kernel.cores),
            **self._recipe.fact_variables,
            **self._map_variables,
        }

    @cached_property
    def _map_variables(self) -> dict[str, str]:
        return self._recipe.map_variables(self._edges, echo=self._echo)

    def _neutral(self, text: str) -> str:
        """Replace names that differ from run to run, so that two descriptions of one gateway are the same text."""
        for side in SIDES:
            text = text.replace(self._gateway_ends[side], f"gateway-{side}")
            text = text.replace(self._ip_ends[side], f"gateway-{side}-vlan")
            text = text.replace(self._tester_ends[side], f"tester-{side}")
        text = text.replace(self.gateway_namespace, "gateway").replace(self.namespace, "tester")
        return text.replace(str(self._name.folder), "{dir}")

    def _without_removed_files(self, error: TestBedError) -> TestBedError:
        """Name the recipe's files as the recipe does: the folder that they were written to is gone."""
        folder = str(self._name.folder)
        note = f"{{dir}} stands for the folder of the files of recipe {self._recipe.name}"
        return TestBedError(
            problems=[
                Problem(
                    what=problem.what.replace(folder, "{dir}"),
                    where=problem.where.replace(folder, "{dir}"),
                    fix=f"{problem.fix}; {note}" if folder in f"{problem.what} {problem.where}" else problem.fix,
                )
                for problem in error.problems
            ]
        )

    def _shell(self, command: str, limit: LimitName, *, where: str, keep: bool = False) -> str:
        """Run a command of the recipe in the gateway's namespace; `keep` notes it for the report."""
        text = substitute(command, self._variables())
        if keep:
            self._log.append(f"[{self.gateway_namespace}] {text}")
        seconds_max = self._settings.limits.seconds(limit)
        return run_command(self._place.shell(text), where=where, longer=LONGER, seconds_max=seconds_max)

    def _in_gateway(self, script: str, *, where: str, fix: str = "", seconds_max: float = COMMAND_SECONDS_MAX) -> str:
        """Run a control command of the recipe in the gateway's namespace."""
        return self._scripts(substitute(script, self._variables()), where=where, fix=fix, seconds_max=seconds_max)

    def _read(self, script: str, seconds_max: float = COMMAND_SECONDS_MAX) -> str:
        """Read something for the description; what cannot be read is left empty."""
        return try_command(self._place.shell(script), seconds_max) or ""

    def _read_settings(self) -> str:
        names = [*(GATEWAY_SYSCTL | self._recipe.sysctl), *self._recipe.host_sysctl, *REPORTED_SYSCTL]
        paths = " ".join(f"/proc/sys/{name.replace('.', '/')}" for name in names)
        lines = self._read(f"grep -H . {paths} || true").splitlines()
        return "\n".join(line.removeprefix("/proc/sys/").replace("/", ".").replace(":", " = ", 1) for line in lines)

    def _run(self, command: list[str]) -> None:
        """Run a command in the gateway's namespace and note it."""
        self._log.append(f"[{self.gateway_namespace}] {shlex.join(command)}")
        run_command(self._place.command(*command), where="test bed netns")
