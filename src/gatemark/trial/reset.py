"""When a gateway was reset in the middle of a trial (RFC 6201 section 4). Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetFacts:
    """When the command that resets the gateway ran, nanoseconds."""

    began_ns: int
    """From the start of sending to the start of the command, by the engine's last word on its time: right within some
    milliseconds."""
    took_ns: int
    """How long the command took; the gateway may have needed longer, or less."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the journal holds it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ResetFacts:
        """Read what `to_json` wrote."""
        return cls(began_ns=data["began_ns"], took_ns=data["took_ns"])
