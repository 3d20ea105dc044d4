"""Choice of the test bed by the campaign: `testbed.kind`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gatemark.bed_kinds import BedKindName
from gatemark.dut.base import TestBed
from gatemark.dut.choose_kernel import choose_kernel
from gatemark.dut.control import GatewaySettings
from gatemark.dut.loopback import LoopbackTestBed
from gatemark.dut.netns import NetnsTestBed
from gatemark.dut.ports import PortsTestBed
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.errors import ConfigError

if TYPE_CHECKING:
    from gatemark.config.model import Campaign
    from gatemark.config.recipe import Recipe


def open_testbed(campaign: Campaign) -> TestBed:
    """Return the test bed of `campaign`, to be entered with `with`; it is made on entering.

    Raises ConfigError for a recipe or port that cannot be used; entering raises TestBedError.
    """
    if campaign.recipe is not None:
        return _open_netns(campaign, campaign.recipe)
    return _OPENERS[campaign.testbed.kind](campaign)


def _open_netns(campaign: Campaign, recipe: Recipe) -> TestBed:
    """Return the test bed of network namespaces that a recipe's gateway is made in."""
    control = campaign.gateway.control
    return NetnsTestBed(
        recipe,
        {"left": campaign.left, "right": campaign.right},
        plan_cores(usable_cpus(), tester=campaign.testbed.cores, gateway=campaign.testbed.gateway_cores),
        port_kind=_port_kind(campaign),
        settings=GatewaySettings(
            table=campaign.gateway.table,
            named=campaign.gateway.settings,
            limits=campaign.control.model.limits,
        ),
        start_seconds_max=None if control is None else control.limits.seconds("start"),
        telemetry=campaign.control.telemetry,
        edges=campaign.map,
        b4=campaign.b4,
        echo=any(table.sends_echo for table in campaign.tables),
        kernel=choose_kernel(campaign.testbed.kernel, recipe),
    )


def _port_kind(campaign: Campaign) -> str:
    """How the engine opens the Tester's ends: af_packet, or af_xdp where the campaign's sides say so."""
    named = {side.port for side in (campaign.left, campaign.right) if side.port is not None}
    if not named:
        assert campaign.bed.default_port is not None, "a test bed that makes its ports has a way to open them"
        return campaign.bed.default_port
    if len(named) > 1 or not named <= set(campaign.bed.made_ports):
        raise ConfigError(
            what=f"port {', '.join(sorted(named))}: the netns test bed makes its interfaces itself",
            where=f"{campaign.source}: left.port, right.port",
            fix='leave port out, or write only the kind on both sides: "af_packet" or "af_xdp"',
        )
    return named.pop()


_OPENERS: Mapping[BedKindName, Callable[[Campaign], TestBed]] = {
    "ports": PortsTestBed,
    "loopback": LoopbackTestBed,
}
