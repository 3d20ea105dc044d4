"""Trials through a stateful gateway: its table is cleared, test phase 1 fills it, then the measurement follows.

RFC 9693 section 4. Phase 2 never starts over a table that is not full: a test phase 1 that lost connections is repeated
at half the rate, and if no attempt fills the table, the trial says nothing about the gateway's frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from gatemark.campaign.engine_trial import COLLAPSED, Demands, EngineTrials
from gatemark.campaign.events import PhaseName, PhaseStarted, TableClearing
from gatemark.campaign.tester_memory import available_bytes, check_memory
from gatemark.causes.judgement import why_phase_one_failed
from gatemark.config.stateful import time_needed_ns
from gatemark.dut.base import Abilities
from gatemark.errors import ConfigError, ImpossibleTimeError, OutsideGatewayError, TestBedError
from gatemark.trial.connection_request import establishing_ns
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.judgement import Evidence, Rules, judged_phase_one
from gatemark.trial.kinds import (
    ESTABLISHMENT,
    STATEFUL,
    TEAR_DOWN,
    RateTrial,
    kind_of,
    phase_one_request,
)
from gatemark.trial.messages import TrialRequest
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import BootFacts, ConnectionFacts, PhaseOne
from gatemark.trial.report import TrialReport
from gatemark.units import format_duration_ns

EMPTY_WAIT_S = 10.0
"""How long a cleared table may take to become empty."""

EMPTY_POLL_S = 0.1


class StatefulTrials:
    """Makes the trials of a stateful campaign. `available_bytes` returns the memory that the machine can give."""

    def __init__(
        self,
        trials: EngineTrials,
        *,
        empty_wait_s: float = EMPTY_WAIT_S,
        available_bytes: Callable[[], int] = available_bytes,
    ) -> None:
        self.trials = trials
        self._empty_wait_s = empty_wait_s
        self._available_bytes = available_bytes
        self._observed: dict[int, int] = {}
        """Connections with which each run was observed last."""
        self._largest = 0

    def make(self, order: TrialOrder, rules: Rules, demands: Demands) -> Evidence:
        """Make one trial; `rules` judge the attempts at test phase 1.

        Raises ConfigError before anything is sent if connections would expire or the Tester lacks memory, TestBedError
        if the table cannot be emptied or the gateway is gone. A gateway that stops answering is a result
        only while the capacity is measured: it is started again, or its host is booted (RFC 9693 section 4.9).
        """
        trial = _Trial(self, order, rules, demands)
        if not order.step.may_collapse:
            return trial.make()
        try:
            return trial.make()
        except TestBedError as error:
            if not trial.has_sent or is_alive(self.trials.can):
                raise
            return replace(trial.collapsed(error), boot=revive(self.trials, order.trial_number, error))

    def reserve(self, connections: int) -> None:
        """Check that the Tester has memory for this number of connections; memory once reserved is kept."""
        if connections > self._largest:
            where = f"{self.trials.campaign.source}: connections"
            check_memory(connections, self._available_bytes(), where=where, held=self._largest)
            self._largest = connections

    def empty_table(self, trial_number: int) -> int | None:
        """Clear the gateway's table and wait until it is empty; return 0, or None if the gateway cannot count.

        A gateway that is booted before each trial is emptied by that, for a command may leave entries behind.
        """
        connections = self.trials.can.connections
        if self.trials.campaign.control.model.boot == "trial":
            self.trials.boot(trial_number)
        elif connections is not None:
            self.trials.on_event(TableClearing(trial_number=trial_number))
            connections.clear_state()
        if connections is None:
            return None
        deadline = time.monotonic() + self._empty_wait_s
        while left := connections.count_connections():
            if time.monotonic() >= deadline:
                raise TestBedError(
                    what=f"the gateway still holds {left} connections {self._empty_wait_s:g} s after its table was"
                    " cleared",
                    where="gateway control: clear_state",
                    fix="see that clear_state deletes every connection, that count_connections counts only those of"
                    " the test, and that no other traffic passes the gateway",
                )
            time.sleep(EMPTY_POLL_S)
        return left

    def count(self) -> int | None:
        """Return how many connections the gateway counts."""
        connections = self.trials.can.connections
        return None if connections is None else connections.count_connections()

    def behaviour(self, order: TrialOrder) -> Mapping[str, object] | None:
        """Return what the state table says about the gateway, in a run the first time and with more connections."""
        count = order.connections or 0
        if count <= self._observed.get(order.run.number, 0):
            return None
        self._observed[order.run.number] = count
        answer = self.trials.engine.connections()
        return {key: value for key, value in answer.items() if key not in ("answer", "id")}


class _Trial:
    """One trial under way."""

    def __init__(self, makes: StatefulTrials, order: TrialOrder, rules: Rules, demands: Demands) -> None:
        self.makes = makes
        self.campaign = makes.trials.campaign
        self.order = order
        self.cell = order.run.cell
        self.rules = rules
        self.demands = demands
        assert order.connections is not None, "it is a stateful trial"
        self.kind = kind_of(order)
        self.count = order.connections
        self.facts = ConnectionFacts()
        self._steps = 0
        self._last = Evidence(order=order, report=TrialReport.none(order.step_number(0)))
        """What was observed in the last phase whose connections could be counted; it is empty before that."""

    @property
    def has_sent(self) -> bool:
        return self._steps > 0

    def make(self) -> Evidence:
        """Run the phases of its kind."""
        self.makes.reserve(self.count)
        makers: Mapping[RateTrial, Callable[[], Evidence]] = {
            STATEFUL: self._measure_frames,
            ESTABLISHMENT: self._establish,
            TEAR_DOWN: self._tear_down,
        }
        return makers[self.kind]()

    def _measure_frames(self) -> Evidence:
        """Fill the table, then measure with the connections that it holds (RFC 9693 section 4.7)."""
        step = self.order.step
        if not self._fill(step.duration_ns):
            return self._evidence()
        return self._last_phase("phase 2", step.frames_per_second, self.order.form)

    def _establish(self) -> Evidence:
        """Establish all connections at the rate under test; validate them if asked to (RFC 9693 sections 4.5, 4.6)."""
        rate = self.order.step.frames_per_second
        checked_rate = self.order.step.validation_rate
        self._check_time(rate, 0 if checked_rate is None else establishing_ns(self.cell.mix, self.count, checked_rate))
        first = self._phase_one(rate)
        if checked_rate is None:
            return self._evidence()
        self._learn(phase_one=(first,))
        if first.verdict is None or not first.verdict.passed:
            return self._evidence()
        return self._last_phase("validation", checked_rate)

    def _last_phase(self, phase: PhaseName, per_second: int, form: TrialForm = PLAIN) -> Evidence:
        """Make what follows a test phase 1 that filled the table."""
        body = self.kind.last_request(self.campaign, self.order, self._next_step())
        assert body is not None, "something is sent after test phase 1"
        trial = self._ask(phase, body, per_second, form=form)
        self._learn(counted_after_phase_two=self.makes.count())
        self._last = trial
        return self._evidence()

    def _tear_down(self) -> Evidence:
        """Delete all connections at once, or measure how long that takes with an empty table (RFC 9693 section 4.8)."""
        if self.count == 0:
            self._learn(counted_before=self.makes.empty_table(self.order.trial_number))
        elif not self._fill(0):
            return self._evidence()
        connections = self.makes.trials.can.connections
        if connections is None:
            raise TestBedError(
                what="connections cannot be deleted", where="test bed", fix="give gateway.control.tear_down a command"
            )
        self._tell("tear-down", None)
        try:
            self._learn(tear_down_ns=connections.tear_down())
        except ImpossibleTimeError as error:
            self._learn(tear_down_fault=error.what)
        self._learn(counted_after_tear_down=self.makes.count())
        return self._evidence()

    def _fill(self, phase_two_ns: int) -> bool:
        """Fill the table; return whether an attempt succeeded.

        An attempt that lost connections is repeated at half the rate; if the Tester fell short or others held up the
        gateway's host, at the same rate.
        """
        rate = self.order.connections_per_second
        assert rate is not None, "a trial that begins with a full table has a rate of test phase 1"
        self._check_time(rate, phase_two_ns)
        for attempt in range(1 + self.campaign.connections_model.retries):
            if attempt and self._expires(rate, phase_two_ns):
                return False
            phase_one = self._phase_one(rate, attempt)
            self._learn(phase_one=(*self.facts.phase_one, phase_one))
            if phase_one.verdict is not None and phase_one.verdict.passed:
                return True
            if phase_one.verdict is not None and phase_one.suspicion is None:
                rate = max(1, rate // 2)
            if phase_one.suspicion is not None:
                self.demands = replace(self.demands, watches_host=True)
        return False

    def _phase_one(self, rate: int, attempt: int = 0) -> PhaseOne:
        """Make one attempt at test phase 1 (RFC 9693 section 4.2), over an empty table."""
        self._learn(counted_before=self.makes.empty_table(self.order.trial_number))
        body = phase_one_request(self.campaign, self.order, rate, self._next_step())
        trial = self._ask("phase 1", body, rate, attempt)
        counted = self.makes.count()
        self._last = trial
        self._learn(counted_after_phase_one=counted)
        validity, verdict = judged_phase_one(self.order, trial, counted, self.rules)
        phase_one = PhaseOne(
            connections_per_second=rate,
            validity=validity,
            verdict=verdict,
            report=trial.report,
            testbed_drops=trial.testbed_drops,
            testbed_faults=trial.testbed_faults,
            host=trial.host,
            telemetry=trial.telemetry,
            counted=counted,
        )
        suspicion, causes = why_phase_one_failed(phase_one, self.rules)
        phase_one = phase_one.model_copy(update={"suspicion": suspicion, "causes": causes})
        if phase_one.verdict is not None and phase_one.verdict.passed and self.facts.behaviour is None:
            self._learn(behaviour=self.makes.behaviour(self.order))
        return phase_one

    def collapsed(self, error: TestBedError) -> Evidence:
        """Return what was observed of a trial in which the gateway stopped answering."""
        self._learn(collapse=error.problems[0].what)
        return self._evidence()

    def _evidence(self) -> Evidence:
        """Return what was observed so far."""
        return replace(self._last, connections=self.facts)

    def _learn(self, **facts: object) -> None:
        """Add to what is known of the connections."""
        self.facts = self.facts.model_copy(update=facts)

    def _ask(
        self, phase: PhaseName, body: TrialRequest, per_second: int, attempt: int = 0, form: TrialForm = PLAIN
    ) -> Evidence:
        self._tell(phase, per_second, attempt)
        return self.makes.trials.make(body, self.order, self.demands, form)

    def _tell(self, phase: PhaseName, per_second: int | None, attempt: int = 0) -> None:
        started = PhaseStarted(
            trial_number=self.order.trial_number,
            phase=phase,
            connections=self.count,
            per_second=per_second,
            attempt=attempt,
            drawn_frames=self.order.step.drawn_frames if phase == "phase 1" else None,
        )
        self.makes.trials.on_event(started)

    def _next_step(self) -> int:
        """Return the number of the next phase, from 0."""
        self._steps += 1
        return self._steps - 1

    def _needed_ns(self, rate: int, phase_two_ns: int) -> int:
        """For how long a connection must live without frames: the first one until the trial ends."""
        frames = self.order.step.drawn_frames or self.count
        return time_needed_ns(self.campaign, frames, rate, phase_two_ns)

    def _expires(self, rate: int, phase_two_ns: int) -> bool:
        """Whether connections would expire before the trial ends (RFC 9693 section 4.4)."""
        timeout_ns = self.campaign.gateway.table.udp_timeout_ns
        return timeout_ns is not None and self._needed_ns(rate, phase_two_ns) >= timeout_ns

    def _check_time(self, rate: int, phase_two_ns: int) -> None:
        if not self._expires(rate, phase_two_ns):
            return
        timeout_ns = self.campaign.gateway.table.udp_timeout_ns or 0
        needed_ns = self._needed_ns(rate, phase_two_ns)
        raise ConfigError(
            what=f"the gateway deletes connections after {format_duration_ns(timeout_ns)} without frames, but"
            f" {self.count} of them at {rate} connections/s and what follows take {format_duration_ns(needed_ns)}",
            where=f"{self.campaign.source}: gateway.table.udp_timeout",
            fix="set a longer timeout, a higher connections.rate or minimum of the rates, or fewer connections",
        )


def revive(trials: EngineTrials, trial_number: int, error: TestBedError) -> BootFacts | None:
    """Start a gateway again that stopped working, or boot its host where the campaign wants that.

    Raises the error where nothing controls the gateway.
    """
    if trials.campaign.control.model.boot_after_collapse:
        return trials.boot_after(trial_number, f"{COLLAPSED}: {error.what}")
    if not trials.restart():
        raise error
    return None


def is_alive(can: Abilities) -> bool:
    """Whether the gateway works.

    Raises OutsideGatewayError if nobody can be asked or the Tester is what broke: no collapse.
    """
    try:
        can.check()
    except OutsideGatewayError:
        raise
    except TestBedError:
        return False
    return True
