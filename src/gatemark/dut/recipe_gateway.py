"""The gateway that a recipe makes: addresses and routes, files, daemons and commands, wherever its kernel is."""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import TYPE_CHECKING

from gatemark.config.recipe import Standing
from gatemark.dut import naming
from gatemark.dut.base import await_success
from gatemark.dut.commands import LONGER, run_command, try_command
from gatemark.dut.control import POLL_SECONDS, GatewayControl, GatewaySettings
from gatemark.dut.daemon import Daemon, start_daemon
from gatemark.dut.gateway_host import threads_of
from gatemark.dut.gateway_kernel import GatewayKernel, Links
from gatemark.dut.plumbing import IPV6_SETTINGS, gateway_end, machine_settings, sysctl_script
from gatemark.dut.recipe import substitute
from gatemark.dut.shell import Shell
from gatemark.dut.steering import renice
from gatemark.errors import TestBedError
from gatemark.technology import SIDES, SideName

if TYPE_CHECKING:
    from gatemark.config.tables import LimitName


class RecipeGateway(GatewayControl):
    """A gateway in a namespace of this machine, or in a kernel that runs as a process."""

    def __init__(
        self,
        standing: Standing,
        kernel: GatewayKernel,
        links: Links,
        number: int,
        *,
        settings: GatewaySettings,
        start_seconds_max: float | None = None,
        echo: bool = False,
    ) -> None:
        """`number`: which one it is from the left, from 0. The arguments that may be left out are those of
        `NetnsTestBed`."""
        recipe, place, stage = standing.recipe, kernel.places[number], links.stages()[number]
        shell = Shell(lambda: place.command("sh", "-s"), longer=LONGER)
        where = f"gateway {recipe.name}"
        super().__init__(shell, recipe.commands, where=where, settings=settings, filled=self.filled)
        self.nice = 0
        """Precedence of its threads on its CPUs."""
        self.place = place
        self.recipe = recipe
        self._kernel = kernel
        self._links = links
        self._stage = stage
        self._standing = standing
        self._sides = standing.sides
        self._echo = echo
        self._start_seconds_max = recipe.start_limit_ns / 1e9 if start_seconds_max is None else start_seconds_max
        self._daemons: list[Daemon] = []
        self.interfaces: dict[str, str] = {
            side: stage.ends[side] if self._sides[side].vlan is None else links.gateway_vlan(side) for side in SIDES
        }
        """The interface of each side that has the gateway's addresses: its end of the link, or a VLAN on it."""

    def start(self) -> list[str]:
        """Start the daemons, set up the connection tracking table, wait for health; return the commands."""
        done = []
        for number, line in enumerate(self.recipe.commands.start):
            command = self.filled(line)
            done.append(f"[{self._namespace}] {command} &")
            place, folder, cores = self.place, self._stage.folder, self._kernel.cores
            self._daemons.append(start_daemon(command, place=place, folder=folder, cores=cores, number=number))
        renice((int(thread.name) for thread in threads_of(self.pids())), self.nice)
        settings = machine_settings(self.recipe, self._settings.table)
        self._kernel.set_machine(settings)
        done += sysctl_script(settings).splitlines()
        self._await_start()
        return done + [f"[{self._namespace}] {command}" for command in self.set_up()]

    def stop(self) -> None:
        """Stop the gateway and end its daemons, if its kernel still runs."""
        if not self.place.is_open:
            return
        for command in self.recipe.commands.stop:
            try_command(self.place.shell(self.filled(command)), self._limits.seconds("stop"))
        while self._daemons:
            self._daemons.pop().end()

    def reset(self) -> None:
        """Reset the gateway as the recipe says; its daemons are ended before that and started again after it."""
        with self.shell.disturbing():
            if not self.recipe.commands.start:
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
        kernel = self._kernel.process
        return [*(() if kernel is None else kernel.pids()), *(daemon.process.pid for daemon in self._daemons)]

    def _run(self, command: str, limit: LimitName, *, where: str, keep: bool = False) -> str:
        """Run a command of the recipe where the gateway is; `keep` notes it for the report."""
        text = self.filled(command)
        if keep:
            self._links.log.append(f"[{self._namespace}] {text}")
        seconds_max = self._limits.seconds(limit)
        return run_command(self.place.shell(text), where=where, longer=LONGER, seconds_max=seconds_max)

    def filled(self, text: str) -> str:
        """Return a text of the recipe with values for what stands in braces.

        `{left}` is the inside, also where the recipe is mirrored.
        """
        left, right = SIDES if self.recipe.inside == "left" else SIDES[::-1]
        variables = {
            "left": self.interfaces[left],
            "right": self.interfaces[right],
            "dir": str(self._stage.folder),
            "cores": ",".join(str(core) for core in self._kernel.cores),
            **self.recipe.fact_variables,
            **self._made_variables,
        }
        return substitute(text, variables)

    def set_up_kernel(self) -> None:
        """Give the gateway its addresses and routes, write its files, run the recipe's set-up."""
        ends = {
            side: gateway_end(self.recipe, side, self._sides[side], self.interfaces[side], self._standing.edges)
            for side in SIDES
        }
        if any(":" in address for end in ends.values() for address in end.addresses):
            self._require_ipv6()
        for side, end in ends.items():
            interface, vlan = self.interfaces[side], self._sides[side].vlan
            if vlan is not None:
                lower = ["link", self._stage.ends[side], "name", interface]
                self._note(["ip", "link", "add", *lower, "type", "vlan", "id", str(vlan)])
                self._note(["ip", "link", "set", interface, "up"])
            for line in end.commands():
                self._note(line)
        for file_name, text in self.recipe.files.items():
            path = self._stage.folder / file_name
            try:
                path.write_text(self.filled(text), encoding="utf-8")
            except OSError as error:
                raise naming.cannot_keep(path, error) from None
        for command in self.recipe.commands.setup:
            self._run(command, "setup", where=f"gateway {self.recipe.name}: setup", keep=True)

    @property
    def ends(self) -> tuple[str, ...]:
        """Its ends of the links, from the left."""
        return tuple(self._stage.ends[side] for side in SIDES)

    def versions(self) -> list[str]:
        """Return what the recipe's commands say of versions."""
        where = f"gateway {self.recipe.name}"
        return [self._run(command, "describe", where=where).strip() for command in self.recipe.commands.version]

    def set_neighbour(self, side: SideName, mac: str) -> None:
        """Let the gateway know the link-layer address of the router on one side for good."""
        router = self._sides[side].link_address("ipv6")
        self._note(
            ["ip", "neigh", "replace", str(router), "lladdr", mac, "dev", self.interfaces[side], "nud", "permanent"]
        )

    def _require_ipv6(self) -> None:
        if try_command(self.place.shell(f"test -d {IPV6_SETTINGS}")) is None:
            raise TestBedError(
                what="IPv6 is switched off in the gateway's kernel, and its recipe gives it IPv6 addresses",
                where=f"gateway {self.recipe.name}",
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
        run_command(self.place.command(*command), where="test bed netns")

    @property
    def _namespace(self) -> str:
        return self._stage.namespace

    @cached_property
    def _made_variables(self) -> dict[str, str]:
        inside = self._sides[self.recipe.inside]
        return {
            **self.recipe.map_variables(self._standing.edges, echo=self._echo),
            **self.recipe.b4_variables(inside, self._standing.b4),
            **self.recipe.end_variables(self._sides[self.recipe.roles.outside], self._standing.edges),
        }
