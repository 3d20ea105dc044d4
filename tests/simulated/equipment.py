"""A test bed and an engine made of numbers: whole campaigns without a gateway.

::

    device = SimulatedDevice(capacity_forward=412_345, noise=0.01)
    measure("campaign.toml", output="results/try", equipment=simulated_equipment(device))
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.simulated.engine import SimulatedDevice, SimulatedEngine, SimulatedGateway

from gatemark.config.model import Campaign
from gatemark.dut.base import (
    Abilities,
    CpuTimes,
    GatewayDescription,
    HoldUps,
    HostReading,
    Placement,
    Sampler,
    TelemetryReading,
    ThreadTimes,
)
from gatemark.dut.recipe import load_recipe
from gatemark.engine.client import Engine
from gatemark.results.store import writing
from gatemark.tester import Equipment


@dataclass(frozen=True, slots=True)
class SimulatedSampler:
    """Samples of the host that a gateway is simulated on."""

    read: Callable[[], TelemetryReading]
    start: Callable[[float], None] = lambda _seconds: None


class SimulatedWatch:
    """Sees that no slice that others took was long enough to be listed."""

    def found(self) -> HoldUps:
        """Return what it has found."""
        return HoldUps(longest=(), others_ns=0)


class SimulatedHost:
    """The host that a gateway is simulated on."""

    def __init__(self, gateway: SimulatedGateway) -> None:
        self._gateway = gateway

    def read(self) -> HostReading:
        """Return a reading in which others had its CPU as long as the gateway says."""
        thread = ThreadTimes(name="ksoftirqd/0", cpu=0, stays=True, ran_ns=0, waited_ns=self._gateway.held_up_ns)
        idle = CpuTimes(idle_ns=time.monotonic_ns(), stolen_ns=0)
        return HostReading(
            at_ns=time.monotonic_ns(),
            step_ns=10_000_000,
            queue_frames=0,
            cpus={0: idle},
            threads={1: thread},
            all_ran_ns=None,
        )

    @contextlib.contextmanager
    def watched(self) -> Iterator[SimulatedWatch | None]:
        """Watch it, if the gateway says that others took its CPU in slices."""
        yield SimulatedWatch() if self._gateway.device.held_up_in_slices else None


class SimulatedTestBed:
    """A test bed that makes nothing; `closed` says whether it was left.

    What is asked of a stateful gateway is done by `gateway`, whose table the simulated engine fills.
    """

    __test__ = False
    telemetry: Sampler | None = None
    """Samples the host that it is simulated on, where a test sets one."""

    def __init__(self, campaign: Campaign, gateway: SimulatedGateway, version: str = "1.0") -> None:
        recipe = campaign.testbed.recipe
        self.gateway = gateway
        self._name = "simulated gateway" if recipe is None else load_recipe(recipe).name
        self._version = version
        self.placement = Placement(tester_cores=(1,))
        self.closed = False

    @property
    def can(self) -> Abilities:
        """What is done to a stateful gateway, and either reading or sampling of its host."""
        host = SimulatedHost(self.gateway) if self.telemetry is None else None
        return replace(self.gateway.can, host=host, telemetry=self.telemetry)

    @property
    def ports(self) -> dict[str, str]:
        """Names that open nothing."""
        return {"left": "af_packet:gm0-left", "right": "af_packet:gm0-right"}

    def describe(self) -> GatewayDescription:
        """A gateway with two routes."""
        return GatewayDescription(
            name=self._name,
            version=self._version,
            configuration="# routes\n198.18.0.0/16 dev left\n198.19.0.0/16 dev right\n",
            commands=("ip netns add gateway", "sysctl net.ipv4.ip_forward=1"),
        )

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exception_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def simulated_equipment(
    device: SimulatedDevice | Callable[[Campaign], SimulatedDevice],
    *,
    version: str = "1.0",
    beds: list[SimulatedTestBed] | None = None,
) -> Equipment:
    """A simulated gateway, or one for each campaign; every test bed that is opened is put into `beds`."""
    gateways = [] if callable(device) else [SimulatedGateway(device)]

    def open_bed(campaign: Campaign) -> SimulatedTestBed:
        if callable(device):
            gateways.append(SimulatedGateway(device(campaign)))
        bed = SimulatedTestBed(campaign, gateways[-1], version)
        if beds is not None:
            beds.append(bed)
        return bed

    @contextlib.contextmanager
    def start(_netns: str | None, log: Path | None) -> Iterator[Engine]:
        if log is not None:
            with writing(log.parent):
                log.write_text("simulated engine\n", encoding="utf-8")
        yield SimulatedEngine(gateways[-1].device, gateway=gateways[-1])

    return Equipment(open_testbed=open_bed, start_engine=start, engine_sha256=lambda: "simulated")
