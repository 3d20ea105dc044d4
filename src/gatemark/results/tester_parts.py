"""Parts of `result.json` about the Tester itself: its clock, and what it reaches without a gateway."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, Literal

from gatemark.facts import Ceiling, ClockFacts, EchoLoop, SelfLatency, SelfTestFacts
from gatemark.results.provenance import Provenance
from gatemark.technology import Family

SELF_TEST_FILE = "selftest.json"


class ClockPart(ClockFacts):
    """The clock that delays are measured with."""

    timestamps: Literal["software", "hardware", "mixed"]
    """Who reads it when a frame arrives: the engine (`software`), the port (`hardware`), or one of them on each side
    (`mixed`)."""


class CeilingPart(Ceiling):
    """The limit of the Tester alone in one mode of traffic, for readers of results."""

    is_line_rate: bool = False
    """Whether that is all that the line carries, so that the Tester may do more."""


class SelfTestPart(SelfTestFacts):
    """The self-test of the Tester that applied when the campaign was measured."""

    entries: tuple[CeilingPart, ...]
    """Highest rates without a gateway."""

    def echo_loops_of(self, family: str, frame_octets: int) -> tuple[EchoLoop, ...]:
        """Return the echo requests to itself of one size."""
        return tuple(loop for loop in self.echo_loops if (loop.family, loop.frame_octets) == (family, frame_octets))

    def ceiling(
        self,
        sizes: Mapping[Family, int],
        direction: str,
        kind: str = "frames",
        *,
        connections: int | None = None,
        left_out: Collection[str] = (),
    ) -> CeilingPart | None:
        """Return the lowest rate over the modes of traffic, for frames of these sizes by family.

        In each mode the next size and number of connections that are not smaller count, because larger ones are never
        faster; if there are none, the largest. Modes in `left_out` do not count. None if nothing of this kind was
        tested in this direction.
        """
        way = "forward" if direction == "reverse" else direction
        entries = [
            entry
            for entry in self.entries
            if entry.kind == kind and entry.mode not in left_out and (entry.direction == way or kind == "connections")
        ]
        slowest = []
        for family, octets in sizes.items():
            for mode in dict.fromkeys(entry.mode for entry in entries):
                tested = [entry for entry in entries if (entry.family, entry.mode) == (family, mode)]
                if tested:
                    slowest.append(min(tested, key=lambda entry: _distance(entry, octets, connections)))
        return min(slowest, key=lambda entry: entry.frames_per_second, default=None)

    def latency_at(self, sizes: Mapping[Family, int], direction: str, load: int) -> SelfLatency | None:
        """Return the delays of the Tester's own path in one direction that are nearest to a load, frames/s.

        Of the sizes by family the larger one counts. The nearest size is chosen first, then the lowest load that is not
        below the given one, else the highest.
        """
        family, octets = max(sizes.items(), key=lambda size: size[1])
        tested = [delays for delays in self.self_latency if (delays.family, delays.direction) == (family, direction)]
        nearest = min((abs(delays.frame_octets - octets) for delays in tested), default=0)
        near = [delays for delays in tested if abs(delays.frame_octets - octets) == nearest and delays.samples]
        return min(near, key=lambda delays: beyond(delays.frames_per_second, load), default=None)


def _distance(entry: CeilingPart, octets: int, connections: int | None) -> tuple[tuple[bool, Fraction], ...]:
    """How far an entry is from a frame size and a number of connections, for `min`."""
    return beyond(entry.frame_octets, octets), beyond(entry.connections or 0, connections or 0)


def beyond(value: int, least: int | Fraction) -> tuple[bool, Fraction]:
    """Order values: those not below `least` first, nearest first; then those below, the largest first."""
    return value < least, abs(Fraction(value) - least)


def clock_of(provenance: Provenance) -> ClockPart | None:
    """Return the clock of the Tester; None if the engine said nothing about it."""
    clock = provenance.last.engine.clock
    if clock is None:
        return None
    both = {side.timestamps for side in (provenance.last.left, provenance.last.right) if side.timestamps is not None}
    return ClockPart(
        resolution_ps=clock.resolution_ps,
        read_ps=clock.read_ps,
        timestamps="mixed" if len(both) > 1 else next(iter(both), "software"),
    )


def self_test_part(data: dict[str, Any]) -> SelfTestPart:
    """Return the part of a self-test that reports need."""
    entries = [{**entry, "is_line_rate": not entry["limited"]} for entry in data["entries"]]
    return SelfTestPart.model_validate({**data, "entries": entries}, extra="ignore")
