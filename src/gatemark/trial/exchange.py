"""Packets that are sent octet for octet, and every frame that arrives meanwhile. Values only.

No rate is measured with them: they ask what a gateway does with one packet or another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatemark.technology import SideName
from gatemark.trial.facts import Facts, Natural
from gatemark.trial.messages import ExchangeRequest

PACKETS_MAX = 1024
"""Packets of one side that the engine takes at once."""
PACKET_OCTETS_MAX = 9000
"""Octets of the longest packet that it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What each side sends: IP packets in hexadecimal, in order."""

    left: tuple[str, ...]
    """Packets of the left side."""
    right: tuple[str, ...]
    """Packets of the right side."""
    interval_ns: int
    """From one packet of a side to the next."""
    wait_ns: int
    """How long to receive after the last one."""

    @property
    def sending_ns(self) -> int:
        return max(len(self.left), len(self.right)) * self.interval_ns

    @property
    def frames_per_second(self) -> int:
        """Return the rate of a side that sends, rounded down, but at least 1."""
        return max(1, 10**9 // max(1, self.interval_ns))

    @property
    def body(self) -> ExchangeRequest:
        """Return the request to the engine, without its `id`."""
        return {
            "request": "exchange",
            "left": list(self.left),
            "right": list(self.right),
            "interval_ns": self.interval_ns,
            "wait_ns": self.wait_ns,
        }


class ArrivedFrame(Facts):
    """A frame that arrived during an exchange."""

    side: SideName
    """The port that received it."""
    at_ns: Natural
    """Since the exchange began."""
    octets: str
    """The whole frame in hexadecimal, without FCS."""


class ExchangeFacts(Facts):
    """Result of an exchange. Messages of neighbours are left out."""

    sent: Mapping[str, Natural]
    """Packets that each port took, by side."""
    arrived: tuple[ArrivedFrame, ...]
    """Frames that arrived, in order."""
    not_kept: Natural = 0
    """Frames that arrived as well, but the Tester had no room for them: each queue keeps 4096 frames and 4 MiB."""


def read_exchange(answer: Mapping[str, Any]) -> ExchangeFacts:
    """Read the engine's answer to an exchange; raise EngineError if something is missing or not known."""
    facts = {key: value for key, value in answer.items() if key not in ("answer", "id", "cancelled")}
    return ExchangeFacts.read(facts, "an exchange")
