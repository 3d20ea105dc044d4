"""The test bed without a gateway: what one port sends the other receives, to test the Tester itself."""

from __future__ import annotations

from typing import Self

from gatemark.dut.base import NO_ABILITIES, GatewayDescription
from gatemark.dut.isolation import NamedPorts


class LoopbackTestBed(NamedPorts):
    """Ports that need no gateway: `ring`, `null` or `memif`, or two cards and a cable."""

    unnamed = "ring"
    can = NO_ABILITIES

    def describe(self) -> GatewayDescription:
        """Say that there is no gateway."""
        ports = " - ".join(self.ports.values())
        return GatewayDescription(name="none (loop-back)", version="", configuration=f"ports {ports}")

    def __enter__(self) -> Self:
        """Guard the ports. Raises ConfigError with all that is wrong with them."""
        self._guard()
        return self
