"""What the engine reports about one trial: facts in integers, as in `protocol/README.md`. Every ratio is derived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Self

from gatemark.trial.delay import DelayFacts
from gatemark.trial.echo import EchoFacts
from gatemark.trial.facts import Facts


class LossRun(Facts):
    """Frames lost one after the other."""

    index: int
    """Index of the first of them in its direction, from 0."""
    length: int


class LossFacts(Facts):
    """Where in a trial frames were lost. Indexes are of the direction, both classes together."""

    runs: int
    longest_run: int
    first_index: int
    last_index: int
    first_runs: tuple[LossRun, ...]
    by_slice: tuple[int, ...]
    """Lost frames in each hundredth of the trial."""


class Counts(Facts):
    """Frames of one class in one direction."""

    intended: int
    """Frames the plan asked for."""
    offered: int
    """Frames the port accepted. Fewer than intended: the Tester fell short, not the gateway."""
    received: int
    """Distinct frames that came back correct."""
    faulty: int
    """Distinct frames that came back wrong."""
    duplicate: int
    """Arrivals of a frame that had already arrived."""
    late: int
    """Distinct correct frames that came back after the frame timeout that the trial has."""
    lost: int
    """Offered frames that never arrived."""
    zero_checksum: int
    """Correct frames with UDP checksum 0x0000 where 0xffff is due, which the translator is known to write."""
    reordered: int
    reordering_extent_max: int
    faults: Mapping[str, int]
    """Faulty frames by reason; one frame may have several."""
    loss: LossFacts
    delay: DelayFacts

    @property
    def accounted(self) -> int:
        """Frames that arrived, each counted once, and lost ones, counted separately: together all that were offered."""
        return self.received + self.faulty + self.late + self.lost

    @property
    def undelivered(self) -> int:
        """Frames that did not come back as a correct gateway would deliver them: lost, late or faulty."""
        return self.offered - self.received

    @property
    def loss_ratio(self) -> Fraction | None:
        """Undelivered over offered, in [0, 1] (RFC 2544 section 26.3); None where nothing was offered."""
        return Fraction(self.undelivered, self.offered) if self.offered else None


class LatenessBucket(Facts):
    """How many bursts were late by less than `below_ns` and not in an earlier bucket; None has no limit."""

    below_ns: int | None
    bursts: int


class DirectionResult(Facts):
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
    lateness_histogram: tuple[LatenessBucket, ...]
    refused: int
    """How often the port took fewer frames than it was given; they were offered again."""
    foreground: Counts
    background: Counts

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


class Foreign(Facts):
    """Arrivals that are not frames of this trial, by kind."""

    other_trial: int
    neighbour: int
    icmp: Mapping[str, int]
    """By family, type and code, such as ``icmpv6 1/3``."""
    fragment: int
    foreign: int


class PortFacts(Facts):
    """What one of the Tester's ports saw during a trial."""

    link_up: bool
    link_losses: int
    """How often the link was seen to go down while frames were sent or awaited."""
    received_by_queue: tuple[int, ...] = ()
    """Correct frames by the queue on which they arrived; empty in journals of before protocol 11."""
    foreign: Foreign
    own_drops: Mapping[str, int]
    """Frames lost on the Tester's side of the wire, by place."""
    peer_queue_drops: int
    """Frames for which the gateway's end of a veth pair had no room: the gateway's, not ours."""


class KeptFrame(Facts):
    """One of the first bad frames of its reason."""

    side: str
    """The port that received it."""
    reason: str
    octets: str
    """The frame in hexadecimal, without FCS."""


class PhaseTime(Facts):
    """How long a phase of the trial took (RFC 2544 section 23)."""

    phase: str
    """``settle``, ``learn``, ``send``, ``drain`` or ``rest``."""
    duration_ns: int


class EstablishedConnections(Facts):
    """Connections with an entry in the state table at the end of a trial (RFC 9693 section 4.2)."""

    count: int
    """Connections that the trial is about."""
    established: int

    @property
    def missing(self) -> int:
        return self.count - self.established


class ClockFacts(Facts):
    """How long sending and the wait for residual frames took on two clocks of the Tester."""

    cycle_counter_ns: int
    """On the processor's counter, which loads and delays are made of, at the rate found when the engine started."""
    monotonic_raw_ns: int
    """On CLOCK_MONOTONIC_RAW, which nobody slews or sets."""


class TrialReport(Facts):
    """One trial (RFC 2544 section 23) as the engine saw it. No opinions: see `validity` and `verdict`."""

    trial_number: int
    cancelled: bool
    phases: tuple[PhaseTime, ...]
    clocks: ClockFacts
    worker_pause_max_ns: int
    """Longest time for which a worker of the engine did nothing although frames were due or had arrived."""
    directions: tuple[DirectionResult, ...]
    """Forward, then reverse; the absent direction of a unidirectional trial is left out."""
    ports: Mapping[str, PortFacts]
    """By side, ``left`` and ``right``."""
    connections: EstablishedConnections | None = None
    """Stateful trials only."""
    kept_frames: tuple[KeptFrame, ...]
    echo: EchoFacts | None = None
    """Trials of echo requests only; their directions are the requests and the replies."""

    @classmethod
    def none(cls, trial_number: int) -> Self:
        """Return what stands for the report of a trial that has none."""
        return cls(
            trial_number=trial_number,
            cancelled=False,
            phases=(),
            clocks=ClockFacts(cycle_counter_ns=0, monotonic_raw_ns=0),
            worker_pause_max_ns=0,
            directions=(),
            ports={},
            kept_frames=(),
        )

    def counts(self) -> Iterator[tuple[str, str, Counts]]:
        """Yield direction, class and counts of everything that the trial intended to send."""
        for direction in self.directions:
            for name, counts in direction.classes:
                yield direction.direction, name, counts

    def worst(self) -> Counts | None:
        """Return the counts with the highest loss ratio over all directions and classes; None if nothing was sent."""
        candidates = [counts for _, _, counts in self.counts() if counts.offered]
        return max(candidates, key=lambda counts: Fraction(counts.undelivered, counts.offered), default=None)


def read_report(answer: Mapping[str, Any]) -> TrialReport:
    """Read the engine's answer to a trial; raise EngineError if something is missing or not known."""
    facts = {key: value for key, value in answer.items() if key not in ("answer", "id")}
    return TrialReport.read(facts, "a trial")
