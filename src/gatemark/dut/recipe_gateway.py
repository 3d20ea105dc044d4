"""The gateway that a recipe makes: addresses and routes, files, daemons and commands, wherever its kernel is."""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import TYPE_CHECKING

from gatemark.config.recipe import Recipe
from gatemark.config.tables import B4Model
from gatemark.dut import naming
from gatemark.dut.base import await_success
from gatemark.dut.commands import LONGER, run_command, try_command
from gatemark.dut.control import POLL_SECONDS, GatewayControl, GatewaySettings
from gatemark.dut.daemon import Daemon, start_daemon
from gatemark.dut.gateway_host import threads_of
from gatemark.dut.gateway_kernel import SIDES, GatewayKernel, Links
from gatemark.dut.plumbing import GATEWAY_SYSCTL, IPV6_SETTINGS, gateway_end, machine_settings, sysctl_script
from gatemark.dut.recipe import substitute
from gatemark.dut.shell import Shell
from gatemark.dut.steering import renice
from gatemark.errors import TestBedError

if TYPE_CHECKING:
    from gatemark.config.map_tables import MapModel
    from gatemark.config.tables import LimitName, SideModel


class RecipeGateway(GatewayControl):
    """A gateway in a namespace of this machine, or in a kernel that runs as a process."""

    def __init__(
        self,
        recipe: Recipe,
        kernel: GatewayKernel,
        links: Links,
        sides: dict[str, SideModel],
        *,
        settings: GatewaySettings,
        start_seconds_max: float | None = None,
        edges: MapModel | None = None,
        b4: B4Model | None = None,
        echo: bool = False,
    ) -> None:
        """The arguments that may be left out are those of `NetnsTestBed`."""
        shell = Shell(lambda: kernel.place.command("sh", "-s"), longer=LONGER)
        where = f"gateway {recipe.name}"
        super().__init__(shell, recipe.commands, where=where, settings=settings, filled=self.filled)
        self.nice = 0
        """Precedence of its threads on its CPUs."""
        self._recipe = recipe
        self._kernel = kernel
        self._links = links
        self._sides = sides
        self._edges = recipe.map if edges is None else edges
        self._b4 = b4 or B4Model()
        self._echo = echo
        self._start_seconds_max = recipe.start_limit_ns / 1e9 if start_seconds_max is None else start_seconds_max
        self._daemons: list[Daemon] = []
        self.interfaces: dict[str, str] = {
            side: links.gateway_end(side) if sides[side].vlan is None else links.gateway_vlan(side) for side in SIDES
        }
        """The interface of each side that has the gateway's addresses: its end of the link, or a VLAN on it."""

    def make(self) -> None:
        """Give the gateway its addresses and routes, write its files, run the recipe's set-up, start it; log it all."""
        self._set_up_kernel()
        self._links.log.extend(self.start())

    def start(self) -> list[str]:
        """Start the daemons, set up the connection tracking table, wait for health; return the commands."""
        done = []
        for number, line in enumerate(self._recipe.commands.start):
            command = self.filled(line)
            done.append(f"[{self._namespace}] {command} &")
            place, folder, cores = self._kernel.place, self._links.name.folder, self._kernel.cores
            self._daemons.append(start_daemon(command, place=place, folder=folder, cores=cores, number=number))
        renice((int(thread.name) for thread in threads_of(self.pids())), self.nice)
        settings = machine_settings(self._recipe, self._settings.table)
        self._kernel.set_machine(settings)
        done += sysctl_script(settings).splitlines()
        self._await_start()
        return done + [f"[{self._namespace}] {command}" for command in self.set_up()]

    def stop(self) -> None:
        """Stop the gateway and end its daemons, if its kernel still runs."""
        if not self._kernel.place.is_open:
            return
        for command in self._recipe.commands.stop:
            try_command(self._kernel.place.shell(self.filled(command)), self._limits.seconds("stop"))
        while self._daemons:
            self._daemons.pop().end()

    def restart(self) -> None:
        """End the gateway's daemons and start them again; its set-up is repeated only if its kernel had ended."""
        self.stop()
        if self._kernel.revive(GATEWAY_SYSCTL | self._recipe.sysctl):
            self._set_up_kernel()
        self.start()

    def reset(self) -> None:
        """Reset the gateway as the recipe says; its daemons are ended before that and started again after it."""
        with self.shell.disturbing():
            if not self._recipe.commands.start:
                return super().reset()
            self.stop()
            super().reset()
            self.start()

    def check(self) -> None:
        """Raise TestBedError if a process of the gateway ended, an interface is gone or a health command fails.

        It is TesterPortError if the Tester's end of a link is gone.
        """
        self._check_daemons()
        self._kernel.check()
        try:
            self.check_health()
        except TestBedError:
            self._check_daemons()  # one that ended meanwhile is why
            raise

    def pids(self) -> list[int]:
        """Return the processes that do the gateway's work."""
        return [*self._kernel.processes(), *(daemon.process.pid for daemon in self._daemons)]

    def run(self, command: str, limit: LimitName, *, where: str, keep: bool = False) -> str:
        """Run a command of the recipe where the gateway is; `keep` notes it for the report."""
        text = self.filled(command)
        if keep:
            self._links.log.append(f"[{self._namespace}] {text}")
        seconds_max = self._limits.seconds(limit)
        return run_command(self._kernel.place.shell(text), where=where, longer=LONGER, seconds_max=seconds_max)

    def filled(self, text: str) -> str:
        """Return a text of the recipe with values for what stands in braces.

        `{left}` is the inside, also where the recipe is mirrored.
        """
        left, right = SIDES if self._recipe.inside == "left" else SIDES[::-1]
        variables = {
            "left": self.interfaces[left],
            "right": self.interfaces[right],
            "dir": str(self._links.name.folder),
            "cores": ",".join(str(core) for core in self._kernel.cores),
            **self._recipe.fact_variables,
            **self._made_variables,
        }
        return substitute(text, variables)

    def _set_up_kernel(self) -> None:
        """Give the gateway its addresses and routes, write its files, run the recipe's set-up."""
        ends = {
            side: gateway_end(self._recipe, side, self._sides[side], self.interfaces[side], self._edges)
            for side in SIDES
        }
        if any(":" in address for end in ends.values() for address in end.addresses):
            self._require_ipv6()
        for side, end in ends.items():
            interface, vlan = self.interfaces[side], self._sides[side].vlan
            if vlan is not None:
                lower = ["link", self._links.gateway_end(side), "name", interface]
                self._note(["ip", "link", "add", *lower, "type", "vlan", "id", str(vlan)])
                self._note(["ip", "link", "set", interface, "up"])
            for line in end.commands():
                self._note(line)
        for file_name, text in self._recipe.files.items():
            path = self._links.name.folder / file_name
            try:
                path.write_text(self.filled(text), encoding="utf-8")
            except OSError as error:
                raise naming.cannot_keep(path, error) from None
        for command in self._recipe.commands.setup:
            self.run(command, "setup", where=f"gateway {self._recipe.name}: setup", keep=True)

    def _require_ipv6(self) -> None:
        if try_command(self._kernel.place.shell(f"test -d {IPV6_SETTINGS}")) is None:
            raise TestBedError(
                what="IPv6 is switched off in the gateway's kernel, and its recipe gives it IPv6 addresses",
                where=f"gateway {self._recipe.name}",
                fix="boot without `ipv6.disable=1`, or give the gateway a kernel of its own (testbed.kernel)",
            )

    def _await_start(self) -> None:
        """Wait until the gateway works; a daemon that ended is not waited for."""
        await_success(self.check, self._start_seconds_max, poll_s=POLL_SECONDS, alive=self._check_daemons)

    def _check_daemons(self) -> None:
        for daemon in self._daemons:
            daemon.check()

    def _note(self, command: list[str]) -> None:
        """Run a command where the gateway is and note it."""
        self._links.log.append(f"[{self._namespace}] {shlex.join(command)}")
        run_command(self._kernel.place.command(*command), where="test bed netns")

    @property
    def _namespace(self) -> str:
        return self._links.name.gateway_namespace

    @cached_property
    def _made_variables(self) -> dict[str, str]:
        inside = self._sides[self._recipe.inside]
        return {
            **self._recipe.map_variables(self._edges, echo=self._echo),
            **self._recipe.b4_variables(inside, self._b4),
            **self._recipe.end_variables(self._sides[self._recipe.roles.outside], self._edges),
        }
