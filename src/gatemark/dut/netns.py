"""The test bed of network namespaces: a gateway that a recipe makes, in a kernel of this machine.

That is this machine's own kernel, with the gateway in a namespace (`host_kernel`), or one that runs as a process
(`guest_kernel`). Here is what both have in common around the gateway itself (`recipe_gateway`): names, CPUs, what it is
on this machine, and that nothing of it stays behind.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self

from gatemark.bed_kinds import bed_kinds_where
from gatemark.config.recipe import Recipe
from gatemark.dut import machine, naming
from gatemark.dut.base import Abilities, GatewayDescription, Placement
from gatemark.dut.choose_kernel import HOST_KERNEL, ChosenKernel
from gatemark.dut.commands import read_each, require_program, try_command
from gatemark.dut.control import GatewaySettings
from gatemark.dut.gateway_host import GatewayHost
from gatemark.dut.gateway_kernel import Links
from gatemark.dut.gateway_row import GatewayRow
from gatemark.dut.guard import CleanupGuard
from gatemark.dut.plumbing import GATEWAY_SYSCTL, REPORTED_SYSCTL
from gatemark.dut.recipe_gateway import RecipeGateway
from gatemark.dut.steering import CorePlan, stepping_back
from gatemark.dut.telemetry import HostSampler
from gatemark.errors import Problem, TestBedError
from gatemark.technology import SIDES

if TYPE_CHECKING:
    from gatemark.config.map_tables import MapModel
    from gatemark.config.tables import B4Model, SideModel, TelemetryModel


GATEWAY_NICE = -20
"""The gateway's threads go before all others on its cores: a gateway of its own shares its CPUs with nobody."""


class NetnsTestBed:
    """A gateway made by a recipe, in namespaces of this machine. Needs root."""

    __test__ = False

    def __init__(
        self,
        recipe: Recipe,
        sides: Mapping[str, SideModel],
        cores: CorePlan,
        *,
        port_kind: str = "af_packet",
        settings: GatewaySettings | None = None,
        telemetry: TelemetryModel | None = None,
        start_seconds_max: float | None = None,
        edges: MapModel | None = None,
        b4: B4Model | None = None,
        echo: bool = False,
        kernel: ChosenKernel = HOST_KERNEL,
    ) -> None:
        """`start_seconds_max`: how long it may take from its start until its health commands succeed, if not as the
        recipe says.

        `edges`: customer edges in place of those of the recipe; `b4`: hosts behind each B4; `echo`: whether a border
        relay must know identifiers of echo messages; `kernel`: the one of the gateway.
        """
        self._recipe = recipe
        self._cores = cores
        self._port_kind = port_kind
        self._name = naming.new_name()
        self.placement = Placement(
            namespace=self.tester_namespace, tester_cores=cores.tester, gateway_cores=cores.gateway
        )
        self._tester_ends = {side: self._name.interface("gm", side) for side in SIDES}
        links = Links(
            name=self._name,
            mtus={side: sides[side].mtu or recipe.mtu for side in SIDES},
            cores=cores,
            middle_mtu=recipe.gateway.middle_mtu,
        )
        self._log = links.log
        self._links = links
        self._neutral_names = links.neutral_names()
        self.kernel = kernel.make(links)
        self._kernel_reason = kernel.reason
        self._settings = GatewaySettings(table=recipe.gateway.table, named={}) if settings is None else settings
        self._kernel_settings = GATEWAY_SYSCTL | recipe.sysctl
        self.gateway = GatewayRow(
            recipe.standings(sides, edges, b4),
            self.kernel,
            links,
            self._kernel_settings,
            settings=self._settings,
            start_seconds_max=start_seconds_max,
            echo=echo,
        )
        folder, local = shlex.quote(str(self._name.folder)), self.kernel.process is None
        only_gateway = (
            () if cores.shared else self.kernel.cores
        )  # a CPU that the Tester uses too tells nothing of the gateway
        self._sampler = (
            None
            if telemetry is None
            else HostSampler(
                self.gateway.keeper.shell, telemetry, cpus=only_gateway, folder=folder, file_is_local=local
            )
        )
        self._claim: naming.Claim | None = None
        self._guard = CleanupGuard(self.close)
        self._host: GatewayHost | None = None
        self._behind = contextlib.ExitStack()
        """Left when the test bed is closed: this process behind all others."""
        self._open = False
        self._lock = threading.Lock()

    @property
    def ports(self) -> dict[str, str]:
        """Ports of the engine: the Tester's ends."""
        return {side: f"{self._port_kind}:{interface}" for side, interface in self._tester_ends.items()}

    @property
    def tester_namespace(self) -> str:
        """That of the Tester's ends."""
        return self._name.tester_namespace

    @property
    def can(self) -> Abilities:
        """The CPUs of its host are read only where the Tester shares none with it."""
        return Abilities(
            health=self.gateway.check,
            control=self.gateway,
            connections=self.gateway.keeper.connections,
            host=self._host,
            telemetry=self._sampler,
            middle=self.gateway.middle,
            gateway=self.gateway,
            drops=self.kernel.drops,
        )

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
            self.kernel.open(self._kernel_settings)
            self.gateway.make()
            if not self.gateway.nice:
                self._behind.enter_context(stepping_back())
            self._host = GatewayHost(
                () if self._cores.shared else self._cores.gateway,  # a shared one waits for the Tester itself
                self.gateway.pids,
                queue_frames=self.kernel.smallest_queue(),
                counts=self.kernel.counts,
            )
        except TestBedError as error:
            self.close()
            raise self._without_removed_files(error) from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
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
                stack.callback(self.kernel.close)
                stack.callback(self.gateway.stop)
        finally:
            self._guard.remove()

    def describe(self) -> GatewayDescription:
        """Describe the gateway as it is now: versions, addresses, routes, settings, steering."""
        gateways, process = self.gateway.gateways, self.kernel.process
        versions = [line for gateway in gateways for line in gateway.versions()]
        parts = [
            *self._kernel_words(),
            ("cpus", f"gateway {list(self._cores.gateway)}, Tester {list(self._cores.tester)}"),
            *self._precedence_words(),
        ]
        for gateway in gateways:
            at = "" if len(gateways) == 1 else f"{gateway.recipe.name}: "
            parts += [(f"{at}{title}", text) for title, text in self._describe(gateway)]
        return GatewayDescription(
            name=self._recipe.description + ("" if process is None else f", {process.release}"),
            version="; ".join(dict.fromkeys(versions)) or f"{platform.system()} {platform.release()}",
            configuration=self._neutral("\n".join(f"# {title}\n{text.rstrip()}\n" for title, text in parts)),
            commands=tuple(self._neutral(line) for line in self._log),
            settings=self.gateway.keeper.made,
            sampling=None if self._sampler is None else self._sampler.cost(),
        )

    def _describe(self, gateway: RecipeGateway) -> Iterator[tuple[str, str]]:
        """Yield what one gateway has been set up to, each part with its title."""
        names = [*(GATEWAY_SYSCTL | gateway.recipe.sysctl), *gateway.recipe.host_sysctl, *REPORTED_SYSCTL]
        paths = " ".join(f"/proc/sys/{name.replace('.', '/')}" for name in names)
        scripts = {
            "addresses": "ip -o address show scope global",
            "routes, IPv4": "ip -4 route show",
            "routes, IPv6": "ip -6 route show | grep -v '^fe80'",
            "settings": f"grep -H . {paths}",
        }
        for interface in gateway.ends:
            scripts |= {
                f"link {interface}": f"ip -d link show dev {interface}",
                f"offloads still on, {interface}": f"ethtool -k {interface} | grep ': on'",
                f"rps_cpus, {interface}": f"cat /sys/class/net/{interface}/queues/rx-0/rps_cpus",
            }
        texts = dict(zip(scripts, read_each(gateway.place.shell, scripts.values()), strict=True))
        settings = (line.removeprefix("/proc/sys/") for line in texts["settings"].splitlines())
        texts["settings"] = "\n".join(line.replace("/", ".").replace(":", " = ", 1) for line in settings)
        yield from texts.items()
        for command in gateway.recipe.commands.configuration:
            text, seconds_max = gateway.filled(command), self._settings.limits.seconds("describe")
            yield text, try_command(gateway.place.shell(text), seconds_max) or ""  # what cannot be read is left empty

    def _kernel_words(self) -> list[tuple[str, str]]:
        """Say which kernel the gateway has, if it is not this machine's."""
        process = self.kernel.process
        if process is None:
            return []
        return [("kernel", "; ".join(words for words in (process.words, self._kernel_reason) if words))]

    def _precedence_words(self) -> list[tuple[str, str]]:
        nice = self.gateway.nice
        return [("precedence", f"nice {nice} for the gateway's threads on its cpus")] if nice else []

    def _go_first(self) -> None:
        """Let the gateway's threads go before all others on its cores, if this process may change the kernel's.

        They would wait for whatever else is ready there, the engine's control thread and this process among it, up to
        a tick each time, while the gateway's queue overflows. Threads of the kernel and daemons get the same nice
        value: how they share a CPU among themselves stays as it is.
        """
        settings = machine.nice_values(self._cores.gateway, GATEWAY_NICE)
        with contextlib.suppress(TestBedError):
            machine.hold(self._name, settings)
            self.gateway.nice = GATEWAY_NICE if settings else 0

    def _require(self) -> None:
        if os.geteuid() != 0:
            without = bed_kinds_where(lambda kind: not kind.needs_rights)
            raise TestBedError(
                what="network namespaces need root",
                where="test bed netns",
                fix=f'run as root, for example with sudo; as an ordinary user use testbed.kind = "{without}"',
            )
        for program in ("ip", "ethtool", "taskset", "setpriv", "unshare", "nsenter", "env", "sh"):
            require_program(program)
        self.kernel.require(self._recipe.programs)

    def _neutral(self, text: str) -> str:
        """Replace names that differ from run to run, so that two descriptions of one gateway are the same text."""
        names = {**self._neutral_names, **{self._tester_ends[side]: f"tester-{side}" for side in SIDES}}
        for name, neutral in names.items():
            text = text.replace(name, neutral)
        spaces = zip(
            (self.tester_namespace, *self.gateway.namespaces), ("tester", "gateway", "second gateway"), strict=False
        )
        for namespace, neutral in spaces:
            text = text.replace(namespace, neutral)
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
