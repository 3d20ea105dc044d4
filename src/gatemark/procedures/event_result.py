"""What a run of back-to-back frames, system recovery or reset found. Counts are integers; figures derive from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBack:
    """Longest bursts without loss (RFC 2544 section 26.4, RFC 9004), one for each search."""

    burst_frames: tuple[int, ...]
    ceiling_frames: int
    resolution_frames: int
    line_rate: int
    throughput: int

    def to_json(self) -> dict[str, Any]:
        """Return it as result.json holds it."""
        plain = ("ceiling_frames", "resolution_frames", "line_rate", "throughput")
        return {"burst_frames": list(self.burst_frames), **{name: getattr(self, name) for name in plain}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BackToBack:
        """Read what `to_json` wrote."""
        return cls(**{**data, "burst_frames": tuple(data["burst_frames"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """System recovery times (RFC 2544 section 26.5)."""

    overload_fps: int
    recovery_fps: int
    throughput_fps: int

    def to_json(self) -> dict[str, Any]:
        """Return it as result.json holds it."""
        return {name: getattr(self, name) for name in ("overload_fps", "recovery_fps", "throughput_fps")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Recovery:
        """Read what `to_json` wrote."""
        return cls(**data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Reset times (RFC 2544 section 26.6, RFC 6201 section 4)."""

    kind: str
    load: int

    def to_json(self) -> dict[str, Any]:
        """Return it as result.json holds it."""
        return {"kind": self.kind, "load": self.load}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reset:
        """Read what `to_json` wrote."""
        return cls(**data)
