"""One trial as the journal keeps it: what was asked, what happened, what we make of it. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gatemark.search.goal import Observation, Outcome
from gatemark.trial.cause import Cause
from gatemark.trial.damage import Damage
from gatemark.trial.exchange import ExchangeFacts
from gatemark.trial.facts import Counter, Facts
from gatemark.trial.host import HostFacts
from gatemark.trial.order import TrialOrder
from gatemark.trial.report import TrialReport
from gatemark.trial.suspicion import Suspicion
from gatemark.trial.telemetry import MEASURED, PHASE_ONE, TelemetryFacts
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict


class PhaseOne(Facts):
    """One attempt at test phase 1: every connection established once (RFC 9693 section 4.2)."""

    connections_per_second: int
    """Rate of the attempt."""
    validity: Validity
    """Whether the Tester did its part."""
    verdict: Verdict | None
    """Passed if every connection was established. Null if the attempt is invalid."""
    report: TrialReport
    """What the engine counted."""
    testbed_drops: Mapping[str, int] = {}
    """As in a line."""
    testbed_faults: tuple[str, ...] = ()
    """As in a line."""
    counted: int | None = None
    """Connections that the gateway counted afterwards. Null if it cannot count."""
    host: HostFacts | None = None
    """As in a line."""
    telemetry: TelemetryFacts | None = None
    """As in a line."""
    suspicion: Suspicion | None = None
    """Why its failure may not be the gateway's. Null if it is, or if there is none."""
    causes: tuple[Cause, ...] = ()
    """As in a line."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is invalid, suspect or failed."""
        if self.verdict is None:
            return self.validity.reasons
        return self.verdict.reasons if self.suspicion is None else (self.suspicion.reason,)


@dataclass(frozen=True, slots=True)
class PhaseFacts:
    """One trial of the engine, of which a stateful trial has several."""

    name: str
    """`PHASE_ONE`, or `MEASURED` where no test phase 1 is what is measured."""
    report: TrialReport
    host: HostFacts | None
    telemetry: TelemetryFacts | None


class ConnectionFacts(Facts):
    """What a trial knows of the connections that it used."""

    phase_one: tuple[PhaseOne, ...] = ()
    """Attempts at test phase 1 before the phase that `report` is about. The last one filled the table, or the trial is
    invalid. Empty where phase 1 is itself the measurement."""
    counted_before: int | None = None
    """Connections that the gateway counted after its table was cleared: always 0, or null if it cannot count."""
    counted_after_phase_one: int | None = None
    """Connections that the gateway counted after test phase 1; fewer than N is a failure."""
    counted_after_phase_two: int | None = None
    """Connections that the gateway counted after test phase 2; changes in phase 2 are only recorded."""
    tear_down_ns: int | None = None
    """Time in which the gateway deleted all connections, on its own clock (RFC 9693 section 4.8)."""
    tear_down_fault: str | None = None
    """Why there is no such time although the connections were deleted: the clock of the gateway's host was set. Null if
    there is one."""
    counted_after_tear_down: int | None = None
    """Connections that the gateway counted then; more than 0 is a failure."""
    collapse: str | None = None
    """How the gateway stopped answering while the capacity was measured. It was started again, or its host was booted,
    and the trial has failed. Null if it did not."""
    behaviour: Mapping[str, int] | None = None
    """The gateway's behavior as the state table shows it, once for each number of connections in a run that is larger
    than those before: `runs[].connections.behaviour` of the result."""


class BootFacts(Facts):
    """A boot of the gateway's host because the gateway stopped working in a trial."""

    why: str
    """How the gateway stopped working."""
    began_at: str
    """Wall time, ISO 8601 with offset."""
    seconds: float
    """How long it took until the gateway answered again."""


class ResetFacts(Facts):
    """When the command that resets the gateway ran in the middle of a trial (RFC 6201 section 4), nanoseconds."""

    began_ns: int
    """When the command was started, from the start of sending, right within some milliseconds."""
    took_ns: int
    """How long the command took; the gateway may have needed longer, or less."""


class TrialRecord(Facts):
    """One trial, from the runner to the journal to the report."""

    order: TrialOrder
    """The order. A campaign is resumed only with trials whose orders it gives again."""
    validity: Validity
    """Whether the Tester did its part."""
    verdict: Verdict | None
    """Whether the gateway met the goal. Null if the trial is invalid."""
    suspicion: Suspicion | None = None
    """Why the failure may not be the gateway's, so that it does not count. Null if it counts."""
    causes: tuple[Cause, ...] = ()
    """What the lost frames have in common. Empty if the trial did not fail or does not count, and where
    nothing can be claimed."""
    damages: tuple[Damage, ...] = Field(default=(), exclude_if=lambda damages: not damages)
    """Which of two gateways in a row damaged frames, for each kind of fault when it is first met. Absent with one
    gateway, without such faults, and in trials after the first with a fault."""
    stated_mtus: tuple[int, ...] = Field(default=(), exclude_if=lambda mtus: not mtus)
    """MTUs, octets, that the gateway states about packets of this size: asked where a trial failed and ICMP errors said
    that packets are too large. Absent elsewhere."""
    report: TrialReport
    """What the engine counted; of a stateful trial, in the last phase that was made."""
    testbed_drops: Annotated[
        Mapping[str, int], Counter(words="frames dropped in queues towards the Tester", whose="test bed")
    ] = {}
    """Frames lost in the test bed's own queues towards the Tester, by place: the Tester's fault."""
    testbed_faults: tuple[str, ...] = ()
    """Other faults of the test bed that spoiled the trial, in sentences; they are among the reasons of its
    `validity`."""
    gateway_drops: Annotated[
        Mapping[str, int], Counter(words="frames dropped in the gateway's own queues", whose="gateway")
    ] = {}
    """Frames lost in the gateway's own queues where the test bed can see them, by place: information about the
    gateway."""
    host: HostFacts | None = None
    """The gateway's host meanwhile. Null where the test bed cannot read it."""
    telemetry: TelemetryFacts | None = None
    """Samples of the gateway's host. Null where it is not to be sampled."""
    samples_sha256: str | None = None
    """SHA-256 of the file with the samples of the trial, those of its test phase 1 as well. Null if it has none."""
    started_at: str
    """Wall time, ISO 8601 with offset."""
    seconds: float
    """How long the trial took, waits included."""
    connections: ConnectionFacts | None = None
    """Facts about the connections; stateful trials only."""
    reset: ResetFacts | None = None
    """When the gateway was reset. Null if it was not."""
    boot: BootFacts | None = None
    """The gateway stopped working in the trial, and its host was booted. The trial is invalid and `report` is empty,
    unless `collapse` says that it has failed. Null if it was not booted."""
    exchange: ExchangeFacts | None = None
    """What arrived after packets that were sent as given; `report` is then empty."""
    collapse: str | None = None
    """How the gateway stopped working in a trial of echo requests. It was started again, or its host was booted, and
    the trial has failed. Null if it did not."""

    @property
    def attempts(self) -> tuple[PhaseOne, ...]:
        """Attempts at test phase 1 before the phase that is measured; empty where there is no such phase."""
        return () if self.connections is None else self.connections.phase_one

    @property
    def measured(self) -> TrialReport | None:
        """The report of the phase that is measured; None if an attempt at test phase 1 before it was the last phase."""
        return None if self.attempts and self.report == self.attempts[-1].report else self.report

    def phases(self) -> tuple[PhaseFacts, ...]:
        """Return the trials of the engine in order: the attempts at test phase 1, then what is measured."""
        phases = tuple(PhaseFacts(PHASE_ONE, each.report, each.host, each.telemetry) for each in self.attempts)
        if self.measured is None:
            return phases
        name = MEASURED if phases or self.connections is None else PHASE_ONE
        return (*phases, PhaseFacts(name, self.report, self.host, self.telemetry))

    @property
    def filling(self) -> TrialReport | None:
        """The report of the last test phase 1, whether it is what is measured or comes before it; None without any."""
        return next((phase.report for phase in reversed(self.phases()) if phase.name == PHASE_ONE), None)

    def reports(self) -> Iterator[TrialReport]:
        """Yield the report of each phase."""
        yield from (phase.report for phase in self.phases())

    def telemetries(self) -> Iterator[tuple[str, TelemetryFacts]]:
        """Yield the samples of each phase that was sampled, with its name."""
        yield from ((phase.name, phase.telemetry) for phase in self.phases() if phase.telemetry is not None)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is invalid, suspect or failed; empty if it passed."""
        if self.verdict is None:
            return self.validity.reasons
        return self.verdict.reasons if self.suspicion is None else (self.suspicion.reason,)

    @property
    def tester_fell_short(self) -> bool:
        """Whether it says nothing about the gateway by the Tester's fault: it is invalid, or it failed by frames behind
        bursts that the Tester sent late."""
        return not self.validity.valid or (self.suspicion is not None and self.suspicion.whose == "Tester")

    @property
    def is_decisive(self) -> bool:
        """Whether it says something about the gateway: the trial is valid, and if it failed, that is not suspect."""
        return self.verdict is not None and self.suspicion is None

    @property
    def observation(self) -> Observation:
        """What a search may know of a load after its last attempt."""
        if self.verdict is None or self.suspicion is not None:
            outcome = Outcome.TESTER_LIMITED
        else:
            outcome = Outcome.PASSED if self.verdict.passed else Outcome.FAILED
        worst = self.report.worst()
        return Observation(
            frames_per_second=self.order.step.frames_per_second,
            duration_ns=self.order.step.duration_ns,
            outcome=outcome,
            offered=0 if worst is None else worst.offered,
            undelivered=0 if worst is None else max(0, worst.undelivered),
        )
