"""The gateways of a test bed, one or two in a row: made, started, watched and controlled as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gatemark.config.recipe import Standing, keeper_of
from gatemark.config.tables import GatewayTableModel
from gatemark.dut.commands import run_command
from gatemark.dut.control import GatewaySettings
from gatemark.dut.gateway_kernel import MAC_ADDRESSES, GatewayKernel, Links
from gatemark.dut.link_capture import RowLinks
from gatemark.dut.recipe_gateway import RecipeGateway
from gatemark.technology import SIDES


class GatewayRow:
    """Gateways from the left."""

    def __init__(
        self,
        standings: Sequence[Standing],
        kernel: GatewayKernel,
        links: Links,
        kernel_settings: Mapping[str, str | int],
        *,
        settings: GatewaySettings,
        start_seconds_max: float | None = None,
        echo: bool = False,
    ) -> None:
        """The arguments that may be left out are those of `NetnsTestBed`."""
        keeper = keeper_of([standing.recipe for standing in standings])
        without = replace(settings, table=GatewayTableModel(), named={})
        self.gateways = tuple(
            RecipeGateway(
                standing,
                kernel,
                links,
                number,
                settings=settings if number == keeper else without,
                start_seconds_max=start_seconds_max,
                echo=echo,
            )
            for number, standing in enumerate(standings)
        )
        self.keeper = self.gateways[keeper]
        """The one that keeps the connections."""
        self._kernel = kernel
        self._links = links
        self._kernel_settings = kernel_settings
        self._standings = tuple(standings)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Names of what each gateway is in, from the left."""
        return self._links.gateway_namespaces

    @property
    def interfaces(self) -> dict[str, str]:
        """The interface towards the Tester on each side that has a gateway's addresses."""
        first, last = self.gateways[0], self.gateways[-1]
        return {"left": first.interfaces["left"], "right": last.interfaces["right"]}

    @property
    def middle(self) -> RowLinks | None:
        """The link between both gateways; None with one."""
        places = self._kernel.places
        return RowLinks(self._standings, places, self._links.stages()) if len(places) > 1 else None

    @property
    def nice(self) -> int:
        """Precedence of their threads on their CPUs."""
        return self.keeper.nice

    @nice.setter
    def nice(self, nice: int) -> None:
        for gateway in self.gateways:
            gateway.nice = nice

    def make(self) -> None:
        """Make each gateway and start it, with all commands in the log."""
        self._set_up_kernel()
        for gateway in self.gateways:
            self._links.log.extend(gateway.start())

    def stop(self) -> None:
        """Stop all gateways and end their daemons, if their kernel still runs."""
        for gateway in self.gateways:
            gateway.stop()

    def restart(self) -> None:
        """End all daemons and start them again; the set-up is repeated only if the kernel had ended."""
        self.stop()
        if (process := self._kernel.process) is not None and process.revive(self._kernel_settings):
            self._set_up_kernel()
        for gateway in self.gateways:
            gateway.start()

    def reset(self) -> None:
        """Reset the only gateway; recipes of two have no such command."""
        self.keeper.reset()

    def check(self) -> None:
        """Raise TestBedError if a process of a gateway ended, an interface is gone or a health command fails.

        It is TesterPortError if the Tester's end of a link is gone.
        """
        for gateway in self.gateways:
            gateway.check()

    def ask(self, script: str) -> str:
        """Run a script where the left gateway is, between trials; return what it prints."""
        first = self.gateways[0]
        return run_command(first.place.shell(script), where=f"gateway {first.recipe.name}")

    def pids(self) -> list[int]:
        """Return the processes that do the gateways' work."""
        return sorted({pid for gateway in self.gateways for pid in gateway.pids()})

    def commands_since(self, at_ns: int) -> tuple[str, ...]:
        """Return which control commands ran at any time since `at_ns`."""
        return tuple(name for gateway in self.gateways for name in gateway.commands_since(at_ns))

    def _set_up_kernel(self) -> None:
        """Set up each gateway, and tell each of two what its neighbour's link-layer address is.

        So neither asks for it: the counters of their link count frames of the Tester alone.
        """
        for gateway in self.gateways:
            gateway.set_up_kernel()
        if len(self.gateways) == 1:
            return
        for gateway, other in zip(self.gateways, SIDES[::-1], strict=True):
            gateway.set_neighbour(other, MAC_ADDRESSES["gx", other])
