"""A test bed and an engine made of numbers: whole campaigns without a gateway, for tests and examples.

::

    device = SimulatedDevice(capacity_forward=412_345, noise=0.01)
    measure("campaign.toml", output="results/try", equipment=simulated_equipment(device))
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from gatemark.config.model import Campaign, RecipeFacts
from gatemark.dut.base import GatewayDescription
from gatemark.dut.recipe import load_recipe
from gatemark.engine.client import Engine
from gatemark.engine.simulated import SimulatedDevice, SimulatedEngine
from gatemark.tester import Equipment


class SimulatedTestBed:
    """A test bed that makes nothing; `closed` tells whether it was left. Needs a recipe for the facts."""

    __test__ = False

    def __init__(self, campaign: Campaign, version: str = "1.0") -> None:
        assert campaign.testbed.recipe is not None
        self._recipe = load_recipe(campaign.testbed.recipe)
        self._version = version
        self.closed = False

    @property
    def facts(self) -> RecipeFacts | None:
        """What the recipe says."""
        return self._recipe.facts

    @property
    def ports(self) -> dict[str, str]:
        """Names that open nothing."""
        return {"left": "af_packet:gm0-left", "right": "af_packet:gm0-right"}

    @property
    def namespace(self) -> str | None:
        """The namespace of the caller."""
        return None

    @property
    def tester_cores(self) -> list[int]:
        """One processor."""
        return [1]

    def describe(self) -> GatewayDescription:
        """A gateway with two routes."""
        return GatewayDescription(
            name=self._recipe.facts.name,
            version=self._version,
            configuration="# routes\n198.18.0.0/16 dev left\n198.19.0.0/16 dev right\n",
            commands=("ip netns add gateway", "sysctl net.ipv4.ip_forward=1"),
        )

    def check(self) -> None:
        """Nothing can be gone."""

    def clear_state(self) -> None:
        """Nothing keeps state."""

    def own_drops(self) -> dict[str, int]:
        """None."""
        return {}

    def gateway_queue_drops(self) -> dict[str, int]:
        """None."""
        return {}

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def simulated_equipment(
    device: SimulatedDevice, *, version: str = "1.0", beds: list[SimulatedTestBed] | None = None
) -> Equipment:
    """A simulated gateway; every test bed that is opened is put into `beds`."""

    def open_bed(campaign: Campaign) -> SimulatedTestBed:
        bed = SimulatedTestBed(campaign, version)
        if beds is not None:
            beds.append(bed)
        return bed

    @contextlib.contextmanager
    def start(_netns: str | None, log: Path | None) -> Iterator[Engine]:
        if log is not None:
            log.write_text("simulated engine\n", encoding="utf-8")
        yield SimulatedEngine(device)

    return Equipment(open_testbed=open_bed, start_engine=start)
