"""One trial as the journal keeps it: what was asked, what happened, what we make of it. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gatemark.search.goal import Observation, Outcome
from gatemark.trial.exchange import ExchangeFacts
from gatemark.trial.facts import Facts
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
    validity: Validity
    verdict: Verdict | None
    """None if the attempt is invalid; passed if every connection was established."""
    report: TrialReport
    testbed_drops: Mapping[str, int] = {}
    """As of a record."""
    testbed_faults: tuple[str, ...] = ()
    """As of a record."""
    counted: int | None = None
    """Connections that the gateway counted afterwards; None if it cannot count."""
    host: HostFacts | None = None
    """As of a record."""
    telemetry: TelemetryFacts | None = None
    """As of a record."""
    suspicion: Suspicion | None = None
    """Why its failure may not be the gateway's; null if it is, or if there is none."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is invalid, suspect or failed."""
        if self.verdict is None:
            return self.validity.reasons
        return self.verdict.reasons if self.suspicion is None else (self.suspicion.reason,)


class ConnectionFacts(Facts):
    """What a trial knows of the connections that it used."""

    phase_one: tuple[PhaseOne, ...] = ()
    """Attempts before the phase that the record's own report is about; the last one filled the table, or the trial is
    invalid. Empty where phase 1 is itself what is measured, or where there is none."""
    counted_before: int | None = None
    """Connections that the gateway counted after its table was cleared; None if it cannot count."""
    counted_after_phase_one: int | None = None
    counted_after_phase_two: int | None = None
    tear_down_ns: int | None = None
    """Time that the gateway took to delete all connections, on its own clock (RFC 9693 section 4.8)."""
    counted_after_tear_down: int | None = None
    collapse: str | None = None
    """How the gateway stopped answering; it was started again, and the trial counts as failed. None if it did not."""
    behaviour: Mapping[str, int] | None = None
    """What the state table says about the gateway (answer to `connections` in `protocol/README.md`); once a run."""


class BootFacts(Facts):
    """A boot of the gateway's host because the gateway stopped working in a trial."""

    why: str
    began_at: str
    """Wall time, ISO 8601 with offset."""
    seconds: float
    """How long it took until the gateway answered again."""


class ResetFacts(Facts):
    """When the command that resets the gateway ran in the middle of a trial (RFC 6201 section 4), nanoseconds."""

    began_ns: int
    """From the start of sending to the start of the command, by the engine's last report of its time: accurate to a few
    milliseconds."""
    took_ns: int
    """How long the command took; the gateway may have needed longer, or less."""


class TrialRecord(Facts):
    """One trial, from the runner to the journal to the report."""

    order: TrialOrder
    validity: Validity
    verdict: Verdict | None
    """None if the trial is invalid."""
    suspicion: Suspicion | None = None
    """Why its failure may not be the gateway's, so that it does not count; None if it counts."""
    report: TrialReport
    """Of a stateful trial, that of the last phase that was made."""
    testbed_drops: Mapping[str, int] = {}
    """Frames that the test bed's queues towards the Tester dropped during the trial, by place."""
    testbed_faults: tuple[str, ...] = ()
    """What else in the test bed spoiled the trial, in sentences."""
    gateway_drops: Mapping[str, int] = {}
    """Frames that the gateway's own queues dropped meanwhile, as far as the test bed can see them, by place."""
    host: HostFacts | None = None
    """The gateway's host meanwhile; None where the test bed cannot read it. Of the phase that `report` is about."""
    telemetry: TelemetryFacts | None = None
    """Samples of the gateway's host; None where it is not to be sampled. Of the phase that `report` is about."""
    started_at: str
    """Wall time, ISO 8601 with offset."""
    seconds: float
    """How long it took, waits included; with the waits named in the report it shows what the Tester costs."""
    connections: ConnectionFacts | None = None
    """Stateful trials only."""
    reset: ResetFacts | None = None
    """When the gateway was reset; None if it was not."""
    boot: BootFacts | None = None
    """The gateway stopped working in the trial, and its host was booted; None if it was not. The trial is invalid and
    has no report, unless the collapse is what was measured."""
    exchange: ExchangeFacts | None = None
    """What arrived after packets that were sent as they are; such a trial has no report."""
    collapse: str | None = None
    """How the gateway stopped working in a trial that is about that, without connections; it was started again, and the
    trial counts as failed. None if it did not."""

    def reports(self) -> Iterator[TrialReport]:
        """Yield every report of the engine in the trial: those of test phase 1, then that of the phase that follows."""
        attempts = () if self.connections is None else self.connections.phase_one
        yield from (attempt.report for attempt in attempts)
        if not attempts or self.report != attempts[-1].report:
            yield self.report

    def telemetries(self) -> Iterator[tuple[str, TelemetryFacts]]:
        """Yield the samples of each trial of the engine that was sampled, with the phase that it was, in order."""
        facts = self.connections
        attempts = () if facts is None else facts.phase_one
        for attempt in attempts:
            if attempt.telemetry is not None:
                yield PHASE_ONE, attempt.telemetry
        is_phase_one = facts is not None and (not attempts or self.report == attempts[-1].report)
        if self.telemetry is not None and not (is_phase_one and attempts):
            yield PHASE_ONE if is_phase_one else MEASURED, self.telemetry

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is invalid, suspect or failed; empty if it passed."""
        if self.verdict is None:
            return self.validity.reasons
        return self.verdict.reasons if self.suspicion is None else (self.suspicion.reason,)

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
