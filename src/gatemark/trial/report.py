"""What the engine reports about one trial: facts in integers. Every ratio is derived."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from gatemark.facts import OneWay
from gatemark.packets import TOO_LARGE
from gatemark.technology import SideName
from gatemark.trial.delay import DelayFacts
from gatemark.trial.echo import EchoFacts
from gatemark.trial.facts import Counter, Facts, Natural
from gatemark.trial.loss import LossFacts, LossRun, LossTable

ZERO_CHECKSUM_ONE_OF = 65_536
"""UDP checksum 0xffff is due in one of so many frames."""
ZERO_CHECKSUM_CERTAINTY = 9 * math.log(10)


def arriving_at(side: str) -> OneWay:
    """Return the direction whose frames arrive at a side."""
    return "forward" if side == "right" else "reverse"


class Counts(Facts):
    """Frames of one class in one direction."""

    frame_octets: Natural | None
    """Size of its frames as sent, with FCS and without VLAN tag. Null where it has none, and of echo requests."""
    intended: Natural
    """Frames that the plan asked for; of replies to echo requests, those that the Tester's port took. In a closed loop
    it may be more than `offered`: the duration ended first."""
    offered: Natural
    """Frames that the port accepted. Fewer than intended: the Tester fell short, not the gateway."""
    received: Natural
    """Distinct frames that came back correct."""
    faulty: Natural
    """Distinct frames that came back wrong."""
    duplicate: Annotated[Natural, Counter(words="frames that arrived again", whose="gateway")]
    """Arrivals of a frame that had already arrived."""
    late: Annotated[Natural, Counter(words="correct frames that arrived too late", whose="gateway")]
    """Distinct frames that came back correct, but later than the frame timeout of the trial after they were sent."""
    lost: Natural
    """Frames offered and never seen again."""
    zero_checksum: Annotated[
        Natural, Counter(words="frames with UDP checksum 0 that counts as correct", whose="gateway")
    ]
    """Frames of `received` that have UDP checksum 0x0000 where 0xffff is due, as `gateway.zero_udp_checksum` allows;
    without it such frames are `faulty`. Any 0x0000 is among them in the Initiator's direction of a stateful gateway, in
    the Responder's of a customer edge, and from customer edges through a border relay, because 0xffff may be due in a
    packet inside the gateway. Where they are more than chance makes due, the excess counts as not delivered."""
    congestion_experienced: Annotated[
        Natural | None, Counter(words="frames that the gateway marked as congestion experienced", whose="gateway")
    ] = None
    """Frames of `received` that were sent as understanding it and that the gateway marked *congestion experienced*
    (RFC 3168 section 5). In other frames the mark is the fault `traffic_class`. Null in older journals."""
    congestion_outside: Annotated[
        Natural | None, Counter(words="frames in a tunnel that was marked as congestion experienced", whose="gateway")
    ] = None
    """Frames of `received` in whose outer header a router marked *congestion experienced* (RFC 6040 section 4.1). Where
    the header says that nobody understands that, the mark is the fault `tunnel_traffic_class`. Null in older journals.
    """
    flow_label_set: Annotated[
        Natural | None, Counter(words="frames that a router gave a flow label", whose="gateway")
    ] = None
    """IPv6 frames of `received` that were sent with flow label 0 and that a router gave another one (RFC 6437 section
    3). Any other change is the fault `flow_label`. Null in older journals."""
    with_trailer: Annotated[
        Natural | None, Counter(words="frames with octets behind the IP packet", whose="gateway")
    ] = None
    """Frames of `received` that had octets behind the IP packet. These are not part of it (RFC 894, RFC 2464 section
    3), so the packet was delivered; in a translated frame the gateway, or what is behind it, put them there. Null in
    older journals."""
    identifications: Natural | None = None
    """Frames of `received`, among the first 16,384 at each queue and 256 of each pair of hosts that has several, of
    which a translator chose the IPv4 identification although others may fragment them (RFC 7915 section 5.1). Null in
    older journals."""
    distinct_identifications: Natural | None = None
    """How many different ones they have, counted for each pair of hosts: from one to one other, none must come again
    soon (RFC 6864 section 4.1)."""
    reordered: Annotated[Natural, Counter(words="frames that arrived after one sent later", whose="gateway")]
    """Arrivals after a frame with a higher index (RFC 4737 section 3.3) that left by the same queue and arrived on the
    same queue; complete with one queue a side. Of echo requests it is counted at a constant rate only."""
    reordering_extent_max: Annotated[Natural, Counter(words="largest reordering extent", whose="gateway", total=max)]
    """Largest distance to that higher index, frames."""
    faults: Mapping[str, Natural]
    """Arrivals by reason; one frame may have several."""
    loss: LossFacts
    """Where frames were lost. The indexes of a closed loop are not quite the order in which the requests left."""
    loss_table: LossTable | None = None
    """Which frames were lost. Null if none was, for echo requests, and in journals before protocol 14."""
    delay: DelayFacts
    """How long frames took; of replies to echo requests, the round-trip time."""

    @property
    def accounted(self) -> int:
        """Frames that arrived, each counted once, and lost ones, counted separately: together all that were offered."""
        return self.received + self.faulty + self.late + self.lost

    @property
    def excess_zero_checksums(self) -> int:
        """Frames with UDP checksum 0x0000 that are more than those in which 0xffff may be due; 0 if chance made them.

        Checksums are of one's complement sums over random values, so one of 65,536 is 0xffff. Chance is said to make as
        many if it does so once in a billion trials (Chernoff's bound of a Poisson number).
        """
        count, expected = self.zero_checksum, self.received / ZERO_CHECKSUM_ONE_OF
        if count <= expected or count * math.log(count / expected) - count + expected < ZERO_CHECKSUM_CERTAINTY:
            return 0
        return count - int(expected)

    @property
    def undelivered(self) -> int:
        """Frames that did not come back as a correct gateway would deliver them: lost, late or faulty."""
        return self.offered - self.received + self.excess_zero_checksums

    @property
    def loss_ratio(self) -> Fraction | None:
        """Undelivered over offered, in [0, 1] (RFC 2544 section 26.3); None where nothing was offered."""
        return Fraction(self.undelivered, self.offered) if self.offered else None


class LatenessBucket(Facts):
    """How many bursts were late by less than `below_ns` and not in an earlier bucket."""

    below_ns: int | None
    """The bursts were less late than this. Null: no limit."""
    bursts: Natural
    """Bursts that are in no earlier bucket."""


class LateBurst(Facts):
    """Frames that left at once, because the Tester had been kept from sending them."""

    index: Natural
    """Index of the first of them in its direction, from 0."""
    frames: Natural
    """Number of frames; with several queues, frames of the others are among them."""
    lateness_ns: Natural
    """Actual minus planned time of the first one."""


class DirectionResult(Facts):
    """What the Tester did and observed in one direction of one trial."""

    direction: OneWay
    """The direction; `forward` is left to right."""
    frames_per_second: Natural
    """Intended load of this direction (RFC 2285 section 3.5.1). 0 of replies to echo requests, and in a closed loop."""
    intended_duration_ns: Natural
    """Sending time that was asked for."""
    sending_ns: Natural
    """From the start of the schedule to the handing over of the last frame."""
    lateness_max_ns: Natural
    """Actual minus planned time of the oldest frame of the latest burst: the Tester's error."""
    gave_up: Annotated[bool, Counter(words="trials that the Tester ended because it was too late", whose="Tester")]
    """Whether the sender stopped because a burst was later than the trial allows."""
    lateness_histogram: tuple[LatenessBucket, ...]
    """How late bursts were. Empty of replies to echo requests, and in a closed loop: nothing is late there."""
    refused: Annotated[Natural, Counter(words="times a port took fewer frames than it was given", whose="Tester")]
    """How often the port took fewer frames than it was given; they were offered again."""
    longest_loss_runs: tuple[LossRun, ...] = ()
    """Longest series of successive frames that were all lost, of whatever class: up to 64, by index."""
    late_bursts: tuple[LateBurst, ...] = ()
    """Where frames were lost: up to 32 of the latest times at which the Tester was more than 50 us late and caught up,
    by index. Empty in journals before protocol 15."""
    foreground: Counts
    """Counts of the foreground (RFC 8219 section 5.3)."""
    background: Counts
    """Counts of the background."""

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
        return self.foreground.undelivered + self.background.undelivered

    @property
    def is_lost(self) -> bool:
        """Whether frames were offered and none of them arrived, correct or not."""
        return self.offered > 0 and all(counts.lost == counts.offered for _, counts in self.classes)

    @property
    def ends_lost(self) -> bool:
        """Whether the last frame that was offered was lost."""
        last = max((counts.loss.last_index for _, counts in self.classes if counts.lost), default=None)
        return self.is_lost or (last is not None and last + 1 == self.offered)


class Foreign(Facts):
    """Arrivals that are not frames of this trial, by kind."""

    other_trial: Annotated[Natural, Counter(words="stragglers of an earlier trial", whose="gateway")]
    """Frames of an earlier trial, of an earlier phase of the same one, or stamped before the trial began: a trial that
    is made again after a stop has the same number."""
    neighbour: Annotated[Natural, Counter(words="ARP and neighbour discovery messages", whose="test network")]
    """ARP, neighbour and router discovery, multicast listener reports."""
    icmp: Annotated[Mapping[str, Natural], Counter(words="ICMP errors", whose="gateway")]
    """ICMP errors by family, type and code, such as `icmpv6 1/3`."""
    fragment: Annotated[Natural, Counter(words="fragments", whose="gateway")]
    """Later fragments, which carry no mark."""
    foreign: Annotated[Natural, Counter(words="frames from elsewhere", whose="test network")]
    """Frames that have no other name here."""
    of_gateway: Annotated[Natural, Counter(words="frames of the gateway's own", whose="gateway")] = 0
    """Frames without another name that came from the gateway's own Ethernet address, such as LLDP, or what it forwards
    for others; 0 in older journals. They never make a trial invalid."""
    of_other_port: Annotated[
        Natural, Counter(words="frames of the Tester's other port, past the gateway", whose="test network")
    ] = 0
    """Frames from the Ethernet address of the Tester's other port, which no gateway has forwarded, since the trial
    before: both ports are in one broadcast domain. Frames of hosts with random addresses are not counted here. 0 in
    older journals."""


class PortFacts(Facts):
    """What one of the Tester's ports saw during a trial."""

    link_up: bool
    """State of the link after the wait for residual frames."""
    link_losses: Natural
    """How often the link was seen to go down while frames were sent or awaited; the Tester looks every 100 ms."""
    clock_error_ns: Natural = 0
    """How far the times of arriving frames may have been off. Where the port stamps them, it is the largest difference
    between a time that one comparison of both clocks predicts and the next comparison, plus the time that the readings
    took. 0 where the Tester reads its own clock, and in journals before protocol 12."""
    received_by_queue: tuple[Natural, ...] = ()
    """Frames that count as `received`, by the queue of the port on which they arrived. Empty in journals before
    protocol 11."""
    foreign: Foreign
    """Arrivals that are not frames of this trial, by kind."""
    own_drops: Annotated[
        Mapping[str, Natural], Counter(words="frames dropped on the Tester's side of the wire", whose="Tester")
    ]
    """Frames lost on the Tester's side of the wire, by kind; any of them makes the trial invalid."""
    peer_queue_drops: Annotated[
        Natural, Counter(words="frames dropped at the gateway's end of a veth pair", whose="gateway")
    ]
    """veth and TAP only: frames for which the gateway's end had no room; the gateway's loss. A veth interface counts
    them as `tx_dropped`, so its `interface_tx_dropped` is 0."""


class KeptFrame(Facts):
    """One of the first bad frames of its reason."""

    side: SideName
    """The port that received it."""
    reason: str
    """The reason, as under `faults`."""
    octets: str
    """The frame in hexadecimal, without FCS."""


PhaseName = Literal["settle", "learn", "send", "drain", "rest"]
"""In their order."""


class PhaseTime(Facts):
    """How long a phase of the trial took (RFC 2544 section 23)."""

    phase: PhaseName
    """The phase (RFC 2544 section 23)."""
    duration_ns: Natural
    """Its length."""


class EstablishedConnections(Facts):
    """Connections with an entry in the state table at the end of a trial (RFC 9693 section 4.2)."""

    phase: Literal["establish", "use"]
    """Whether the trial filled the state table or used it."""
    count: Natural
    """Number of connections that the trial is about."""
    established: Natural
    """Connections that have an entry in the state table."""

    @property
    def missing(self) -> int:
        return self.count - self.established


class SendingClocks(Facts):
    """From before the first frame to the end of the wait for residual frames, on two clocks of the Tester."""

    cycle_counter_ns: Natural
    """Time on the processor's counter, of which loads and delays are made, at the rate found when the engine started. 0
    in a trial that was cancelled before its first frame."""
    monotonic_raw_ns: Natural
    """Time on CLOCK_MONOTONIC_RAW, with which that rate was found, and which is never slewed or set. The ratio of the
    two is near 1 unless the machine was suspended, paused or moved. 0 as well where nothing was sent."""


class TrialReport(Facts):
    """One trial (RFC 2544 section 23) as the engine saw it. No opinions: see `validity` and `verdict`."""

    trial_number: Natural
    """Number of the trial in the campaign, from 1."""
    cancelled: bool
    """Whether it ended early on demand."""
    phases: tuple[PhaseTime, ...]
    """The phases of the trial."""
    clocks: SendingClocks
    """How long sending and the wait for residual frames took on two clocks."""
    worker_pause_max_ns: Natural
    """Longest time for which a worker of the engine did nothing although frames were due or had arrived: its CPU was
    taken away, or the engine was stopped. More than `validity.lateness_max` makes the trial invalid."""
    directions: tuple[DirectionResult, ...]
    """Forward, then reverse; the absent direction of a unidirectional trial is left out."""
    ports: Mapping[str, PortFacts]
    """Facts of the ports by side, `left` and `right`."""
    connections: EstablishedConnections | None = None
    """Connections with an entry in the state table at the end; stateful trials only."""
    kept_frames: tuple[KeptFrame, ...]
    """First 4 frames of each reason and side; the result folder has them as pcap."""
    echo: EchoFacts | None = None
    """Result of echo requests. Null in all other trials. The requests are forward, the replies that the Tester sent
    reverse."""

    @classmethod
    def none(cls, trial_number: int) -> Self:
        """Return what stands for the report of a trial that has none."""
        return cls(
            trial_number=trial_number,
            cancelled=False,
            phases=(),
            clocks=SendingClocks(cycle_counter_ns=0, monotonic_raw_ns=0),
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

    @property
    def established(self) -> int:
        """Connections with an entry in the state table at the end; 0 where it has none."""
        return 0 if self.connections is None else self.connections.established

    @property
    def lost_count(self) -> int:
        """Frames of all directions and classes that did not come back."""
        return sum(counts.lost for _, _, counts in self.counts())

    def told_too_large(self, direction: OneWay) -> int:
        """Return how many ICMP errors told the sender of a direction that a packet is too large for a link."""
        sender = self.ports.get("left" if direction == "forward" else "right")
        return 0 if sender is None else sum(sender.foreign.icmp.get(name, 0) for name in TOO_LARGE)

    def worst(self) -> Counts | None:
        """Return the counts with the highest loss ratio over all directions and classes; None if nothing was sent."""
        candidates = [counts for _, _, counts in self.counts() if counts.offered]
        return max(candidates, key=lambda counts: Fraction(counts.undelivered, counts.offered), default=None)


def read_report(answer: Mapping[str, Any]) -> TrialReport:
    """Read the engine's answer to a trial; raise EngineError if something is missing or not known."""
    facts = {key: value for key, value in answer.items() if key not in ("answer", "id")}
    return TrialReport.read(facts, "a trial")
