"""What the engine reports about one trial: facts in integers, as in `protocol/README.md`. Every ratio is derived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from gatemark.errors import EngineError
from gatemark.trial.delay import DelayFacts

JsonObject = dict[str, Any]

CLASSES = ("foreground", "background")
"""Frames that the gateway translates, and native IPv6 beside them (RFC 8219 section 5.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRun:
    """Frames lost one after the other."""

    index: int
    """Index of the first of them in its direction, from 0."""
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFacts:
    """Where in a trial frames were lost. Indexes are of the direction, both classes together."""

    runs: int = 0
    longest_run: int = 0
    first_index: int = 0
    last_index: int = 0
    first_runs: tuple[LossRun, ...] = ()
    by_slice: tuple[int, ...] = ()
    """Lost frames in each hundredth of the trial."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LossFacts:
        """Read the `loss` object of a report."""
        return cls(
            runs=data["runs"],
            longest_run=data["longest_run"],
            first_index=data["first_index"],
            last_index=data["last_index"],
            first_runs=tuple(LossRun(index=run["index"], length=run["length"]) for run in data["first_runs"]),
            by_slice=tuple(data["by_slice"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Frames of one class in one direction."""

    intended: int = 0
    """Frames the plan asked for."""
    offered: int = 0
    """Frames the port accepted. Fewer than intended: the Tester fell short, not the gateway."""
    received: int = 0
    """Distinct frames that came back correct."""
    faulty: int = 0
    """Distinct frames that came back wrong."""
    duplicate: int = 0
    """Arrivals of a frame that had already arrived."""
    late: int = 0
    """Distinct correct frames that came back after the frame timeout that the trial has."""
    lost: int = 0
    """Offered frames that never arrived."""
    zero_checksum: int = 0
    """Correct frames with UDP checksum 0x0000 where 0xffff is due, which the translator is known to write."""
    reordered: int = 0
    reordering_extent_max: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    """Faulty frames by reason; one frame may have several."""
    loss: LossFacts = LossFacts()
    delay: DelayFacts = field(default_factory=DelayFacts)

    @property
    def accounted(self) -> int:
        """Frames that arrived, each counted once, and lost ones, found apart: together all that were offered."""
        return self.received + self.faulty + self.late + self.lost

    @property
    def undelivered(self) -> int:
        """Frames that did not come back as a correct gateway would deliver them: lost, late or faulty."""
        return self.offered - self.received

    @property
    def loss_ratio(self) -> Fraction | None:
        """Undelivered over offered, in [0, 1] (RFC 2544 section 26.3); None where nothing was offered."""
        return Fraction(self.undelivered, self.offered) if self.offered else None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Counts:
        """Read a COUNTS object of a report."""
        plain = ("intended", "offered", "received", "faulty", "duplicate", "late", "lost", "zero_checksum")
        order = ("reordered", "reordering_extent_max")
        return cls(
            **{name: data[name] for name in (*plain, *order)},
            faults=dict(data["faults"]),
            loss=LossFacts.from_json(data["loss"]),
            delay=DelayFacts.from_json(data["delay"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatenessBucket:
    """How many bursts were late by less than `below_ns` and not in an earlier bucket; None has no limit."""

    below_ns: int | None
    bursts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionResult:
    """What the Tester did and observed in one direction of one trial."""

    direction: str
    """``forward`` (left to right) or ``reverse``."""
    frames_per_second: int
    """Intended load of this direction (RFC 2285 section 3.5.1)."""
    intended_duration_ns: int
    sending_ns: int
    """From the start of the schedule to the handing over of the last frame."""
    lateness_max_ns: int
    """Largest difference of actual and planned send time: our error."""
    gave_up: bool
    """The sender fell so far behind that it stopped."""
    lateness_histogram: tuple[LatenessBucket, ...] = ()
    refused: int = 0
    """How often the port took fewer frames than it was given; they were offered again."""
    foreground: Counts = Counts()
    background: Counts = Counts()

    @property
    def classes(self) -> tuple[tuple[str, Counts], ...]:
        """Name and counts of each class that the trial intended to send."""
        both = (("foreground", self.foreground), ("background", self.background))
        return tuple((name, counts) for name, counts in both if counts.intended or counts.offered)

    @property
    def intended(self) -> int:
        """Frames of both classes that the plan asked for."""
        return self.foreground.intended + self.background.intended

    @property
    def offered(self) -> int:
        """Frames of both classes that the port accepted."""
        return self.foreground.offered + self.background.offered

    @property
    def received(self) -> int:
        """Distinct correct frames of both classes."""
        return self.foreground.received + self.background.received

    @property
    def undelivered(self) -> int:
        """Lost, late or faulty frames of both classes."""
        return self.offered - self.received

    @property
    def loss_ratio(self) -> Fraction | None:
        """Undelivered over offered, in [0, 1], both classes together; None where nothing was offered."""
        return Fraction(self.undelivered, self.offered) if self.offered else None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DirectionResult:
        """Read one of the `directions` of a report."""
        plain = (
            "direction",
            "frames_per_second",
            "intended_duration_ns",
            "sending_ns",
            "lateness_max_ns",
            "gave_up",
            "refused",
        )
        return cls(
            **{name: data[name] for name in plain},
            lateness_histogram=tuple(
                LatenessBucket(below_ns=bucket["below_ns"], bursts=bucket["bursts"])
                for bucket in data["lateness_histogram"]
            ),
            foreground=Counts.from_json(data["foreground"]),
            background=Counts.from_json(data["background"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """Arrivals that are not frames of this trial, by kind."""

    other_trial: int = 0
    neighbour: int = 0
    icmp: Mapping[str, int] = field(default_factory=dict)
    """By family, type and code, such as ``icmpv6 1/3``."""
    fragment: int = 0
    foreign: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.other_trial + self.neighbour + sum(self.icmp.values()) + self.fragment + self.foreign


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFacts:
    """What one of the Tester's ports saw during a trial."""

    link_up: bool = True
    foreign: Foreign = Foreign()
    own_drops: Mapping[str, int] = field(default_factory=dict)
    """Frames lost on the Tester's side of the wire, by place."""
    peer_queue_drops: int = 0
    """Frames for which the gateway's end of a veth pair had no room: the gateway's, not ours."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PortFacts:
        """Read one of the `ports` of a report."""
        foreign = data["foreign"]
        return cls(
            link_up=data["link_up"],
            foreign=Foreign(
                other_trial=foreign["other_trial"],
                neighbour=foreign["neighbour"],
                icmp=dict(foreign["icmp"]),
                fragment=foreign["fragment"],
                foreign=foreign["foreign"],
            ),
            own_drops=dict(data["own_drops"]),
            peer_queue_drops=data["peer_queue_drops"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFrame:
    """One of the first bad frames of its reason."""

    side: str
    """The port that received it."""
    reason: str
    octets: str
    """The frame in hexadecimal, without FCS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTime:
    """How long a phase of the trial took (RFC 2544 section 23)."""

    phase: str
    """``settle``, ``learn``, ``send``, ``drain`` or ``rest``."""
    duration_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EstablishedConnections:
    """Connections with an entry in the state table at the end of a trial (RFC 9693 section 4.2)."""

    count: int
    """Connections that the trial is about."""
    established: int

    @property
    def missing(self) -> int:
        """Connections that were not established."""
        return self.count - self.established


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReport:
    """One trial (RFC 2544 section 23) as the engine saw it. No opinions: see `validity` and `verdict`."""

    trial_number: int
    cancelled: bool
    phases: tuple[PhaseTime, ...]
    directions: tuple[DirectionResult, ...]
    """Forward, then reverse; the absent direction of a unidirectional trial is left out."""
    ports: Mapping[str, PortFacts]
    """By side, ``left`` and ``right``."""
    connections: EstablishedConnections | None = None
    """Stateful trials only."""
    kept_frames: tuple[KeptFrame, ...] = ()

    def counts(self) -> Iterator[tuple[str, str, Counts]]:
        """Yield direction, class and counts of everything that the trial intended to send."""
        for direction in self.directions:
            for name, counts in direction.classes:
                yield direction.direction, name, counts

    def worst(self) -> Counts:
        """Return the counts with the highest loss ratio over all directions and classes; zeros if nothing was sent."""
        candidates = [counts for _, _, counts in self.counts() if counts.offered]
        return max(candidates, key=lambda counts: Fraction(counts.undelivered, counts.offered), default=Counts())

    def to_json(self) -> JsonObject:
        """Return the report as the engine wrote it, without `answer` and `id`."""
        return _plain(asdict(self))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialReport:
        """Read the engine's answer to a trial; raise EngineError if something is missing."""
        try:
            return cls(
                trial_number=data["trial_number"],
                cancelled=data["cancelled"],
                phases=tuple(
                    PhaseTime(phase=phase["phase"], duration_ns=phase["duration_ns"]) for phase in data["phases"]
                ),
                directions=tuple(DirectionResult.from_json(direction) for direction in data["directions"]),
                ports={side: PortFacts.from_json(port) for side, port in data["ports"].items()},
                connections=_connections_from_json(data["connections"]),
                kept_frames=tuple(
                    KeptFrame(side=kept["side"], reason=kept["reason"], octets=kept["octets"])
                    for kept in data["kept_frames"]
                ),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise EngineError(
                what=f"the report of a trial cannot be read ({type(error).__name__}: {error})",
                where="engine",
                fix="engine and Python package must come from the same build; run `make` again",
            ) from error


def _connections_from_json(data: Mapping[str, Any] | None) -> EstablishedConnections | None:
    return None if data is None else EstablishedConnections(count=data["count"], established=data["established"])


def _plain(value: Any) -> Any:
    """Turn tuples into lists, so that what was read is written again exactly."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
