"""The test bed without a gateway: what one port sends the other receives, to test the Tester itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gatemark.dut.base import GatewayDescription, Unwatched
from gatemark.dut.ingress import IngressDrop
from gatemark.dut.isolation import guard_ports

if TYPE_CHECKING:
    from gatemark.config.model import Campaign


class LoopbackTestBed(Unwatched):
    """Ports that need no gateway: `ring`, `null` or `memif`, or two cards and a cable."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._ingress = IngressDrop(())

    @property
    def ports(self) -> dict[str, str]:
        """Ports as the campaign names them, by default a pair of rings."""
        return {"left": self._campaign.left.port or "ring", "right": self._campaign.right.port or "ring"}

    @property
    def namespace(self) -> str | None:
        """The namespace of the caller."""
        return None

    @property
    def tester_cores(self) -> list[int]:
        """Cores as the campaign names them."""
        return list(self._campaign.testbed.cores)

    @property
    def gateway_cores(self) -> list[int]:
        """There is no gateway."""
        return []

    def describe(self) -> GatewayDescription:
        """Say that there is no gateway."""
        ports = " - ".join(self.ports.values())
        return GatewayDescription(name="none (loop-back)", version="", configuration=f"ports {ports}")

    def close(self) -> None:
        """Let frames into this machine's kernel again."""
        self._ingress.close()

    def __enter__(self) -> Self:
        """Check the ports and keep what arrives at them out of this machine's kernel.

        Raises ConfigError with all that is wrong: the campaign names ports that cannot be used.
        """
        self._ingress = guard_ports(
            {f"{self._campaign.source}: {side}.port": text for side, text in self.ports.items()}
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
