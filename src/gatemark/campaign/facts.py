"""What the trials of a run report besides its result: counts, connections, the gateway's own numbers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from gatemark.causes.campaign import CausesOfRun
from gatemark.config.model import Campaign
from gatemark.config.stateful import tuple_space
from gatemark.config.types import Span
from gatemark.facts import DamageCounts, LossCause, fields_of
from gatemark.procedures.loads import tightest_link
from gatemark.results.connections import Behaviour, Connections, GatewayCounts, PortRange
from gatemark.results.connections import PhaseOne as PublishedPhaseOne
from gatemark.results.header_changes import HeaderChanges
from gatemark.results.part import ReasonCounter
from gatemark.results.run import FrameDamage, FrameSizes, Mix, RunResult, TheoreticalMaximum
from gatemark.results.search import MaximumForwardingRate, RateResult
from gatemark.results.telemetry import HostLevel
from gatemark.trial.cell import Run
from gatemark.trial.record import ConnectionFacts, PhaseOne, TrialRecord
from gatemark.trial.telemetry import MEASURED, Level, figure_of, unit_of, words_of

FORWARDS_MORE = 1.5
"""A forwarding rate so many times the rate found is published beside it."""
CAUSES_MAX = 16
"""So many causes are published of a run, and so many kinds of damage."""


class TrialTally:
    """What the results of all procedures tell of the trials of a run. Its memory grows with those that failed."""

    def __init__(self, trials: Iterable[TrialRecord] = ()) -> None:
        self.trials = self.invalid = self.suspect = self.zero_checksum = 0
        self.largest = 1
        """Largest number of connections of a trial."""
        self.behaviour: Behaviour | None = None
        """What the trial with the most connections was told."""
        self._phase_one = _PhaseOneTally()
        self._counts = _GatewayCountTally()
        self._open = _OpenLoads()
        self._host = _HostTally()
        self._causes = CausesOfRun()
        self._headers = Counter[str]()
        self.damages: tuple[FrameDamage, ...] = ()
        """Which of two gateways in a row damaged frames."""
        for trial in trials:
            self.add(trial)

    @property
    def header_changes(self) -> HeaderChanges | None:
        """What the gateway wrote into headers of correct frames; None where nothing is to be told."""
        changes = HeaderChanges(**{name: self._headers[name] for name in HeaderChanges.model_fields})
        return changes if changes.told() else None

    def add(self, trial: TrialRecord) -> None:
        """Count a trial, valid or not."""
        self.trials += 1
        self.invalid += trial.tester_fell_short
        self.suspect += _is_suspect(trial)
        self._open.add(trial)
        self._host.add(trial)
        self._causes.add(trial)
        self.damages = (*self.damages, *_published_damages(trial))[:CAUSES_MAX]
        for counts in (counts for report in trial.reports() for *_, counts in report.counts()):
            self.zero_checksum += counts.zero_checksum
            self._headers.update({name: getattr(counts, name) or 0 for name in HeaderChanges.model_fields})
        self.largest = max(self.largest, trial.order.connections or 0)
        facts = trial.connections
        if facts is None:
            return
        if trial.order.connections_per_second is not None:
            for attempt in facts.phase_one:
                self._phase_one.add(attempt)
        self._counts.add(trial, facts)
        if facts.behaviour and (self.behaviour is None or facts.behaviour["established"] > self.behaviour.established):
            self.behaviour = Behaviour(**{name: facts.behaviour[name] for name in Behaviour.model_fields})

    @property
    def is_open_for_host_alone(self) -> bool:
        """Whether loads remained open, each because other work held up the gateway's host."""
        return self._open.is_for_host_alone

    @property
    def telemetry(self) -> tuple[HostLevel, ...]:
        """What the gateway's host did while frames were sent; empty where it was not sampled."""
        return self._host.published()

    @property
    def losses(self) -> tuple[LossCause, ...]:
        """What lost frames had in common."""
        return tuple(self._causes.most_shared()[:CAUSES_MAX])

    @property
    def no_limit(self) -> str | None:
        """Why a search for a rate or a burst ends on a loss that is no limit; None if it does not."""
        return self._causes.no_limit()

    @property
    def forwarded_most(self) -> MaximumForwardingRate | None:
        """The highest forwarding rate of the trials that failed; None if none did."""
        if (failure := self._causes.delivered_most) is None:
            return None
        return MaximumForwardingRate(
            load=failure.load,
            frames_per_second=failure.delivered,
            offered=failure.offered,
            undelivered=failure.undelivered,
        )

    @property
    def phase_one(self) -> PublishedPhaseOne | None:
        """All attempts at test phase 1 before another phase; None if there was none."""
        return self._phase_one.published()

    @property
    def gateway_counts(self) -> GatewayCounts | None:
        """The gateway's counts beside ours; None if it counted in no trial."""
        return self._counts.published()


def _published_damages(trial: TrialRecord) -> Iterator[FrameDamage]:
    for damage in trial.damages:
        yield FrameDamage(
            **fields_of(damage, DamageCounts),
            trial=trial.order.trial_number,
            faulty=damage.faulty,
            sentence=damage.sentence,
        )


class _HostTally:
    """What the gateway's host did in the trial of each repetition with the highest load that passed."""

    def __init__(self) -> None:
        self._by_repetition: dict[int, tuple[int, dict[tuple[str, str], int | float]] | None] = {}
        self._is_sampled = False

    def add(self, trial: TrialRecord) -> None:
        before = self._by_repetition.setdefault(trial.order.repetition, None)
        sampled = list(trial.telemetries())
        self._is_sampled |= bool(sampled)
        load = trial.order.step.frames_per_second
        passed = trial.is_decisive and trial.verdict is not None and trial.verdict.passed
        if not passed or (before is not None and load < before[0]):
            return
        values: dict[tuple[str, str], int | float] = {}
        for phase, facts in sampled:  # of several attempts at test phase 1 the last one is what filled the table
            for begin, of_host in facts.of_hosts:
                span = of_host.span("sending")
                for series, level in {} if span is None else span.levels.items():
                    values[phase, f"{begin}{series}"] = _figure(series, level)
        self._by_repetition[trial.order.repetition] = (load, values)

    def published(self) -> tuple[HostLevel, ...]:
        if not self._is_sampled:
            return ()
        repetitions = [None if best is None else best[1] for _, best in sorted(self._by_repetition.items())]
        names = dict.fromkeys(name for values in repetitions if values is not None for name in values)
        return tuple(
            HostLevel(
                phase="measured" if phase == MEASURED else "test phase 1",
                series=series,
                name=words_of(series),
                unit=unit_of(series),
                values=tuple(None if values is None else values.get((phase, series)) for values in repetitions),
            )
            for phase, series in names
        )


def _figure(series: str, level: Level) -> int | float:
    value = figure_of(series, level)
    return int(value) if value.is_integer() else value


class _OpenLoads:
    """Loads whose latest attempt says nothing about the gateway."""

    def __init__(self) -> None:
        self._count = self._for_host = 0
        self._latest_is_for_host = False

    def add(self, trial: TrialRecord) -> None:
        if trial.order.attempt:  # the attempt before it left the same load open
            self._count -= 1
            self._for_host -= self._latest_is_for_host
        self._latest_is_for_host = not trial.is_decisive and _is_of_the_host(trial)
        self._count += not trial.is_decisive
        self._for_host += self._latest_is_for_host

    @property
    def is_for_host_alone(self) -> bool:
        return 0 < self._count == self._for_host


def _is_of_the_host(trial: TrialRecord) -> bool:
    """Whether a trial decides nothing for the host: its failure is suspect, or that of its last test phase 1."""
    return _is_suspect(trial) or any(_is_suspect(attempt) for attempt in trial.attempts[-1:])


def _is_suspect(trial: TrialRecord | PhaseOne) -> bool:
    """Whether the gateway's host may be what failed."""
    return trial.suspicion is not None and trial.suspicion.whose == "host"


class _PhaseOneTally:
    def __init__(self) -> None:
        self._lowest = self._highest = self._attempts = self._failed = 0
        self._reasons = ReasonCounter()

    def add(self, attempt: PhaseOne) -> None:
        rate = attempt.connections_per_second
        self._lowest = min(self._lowest, rate) if self._attempts else rate
        self._highest = max(self._highest, rate)
        self._attempts += 1
        if attempt.verdict is None or not attempt.verdict.passed:
            self._failed += 1
            self._reasons.add(attempt.reasons)

    def published(self) -> PublishedPhaseOne | None:
        if not self._attempts:
            return None
        return PublishedPhaseOne(
            connections_per_second_minimum=self._lowest,
            connections_per_second_maximum=self._highest,
            attempts=self._attempts,
            failed=self._failed,
            reasons=self._reasons.counted(),
        )


class _GatewayCountTally:
    """Compares the gateway's counts with ours, in trials in which we saw every connection established."""

    def __init__(self) -> None:
        self._compared = self._equal = self._later = self._changed = 0
        self._lowest: int | None = None
        self._highest: int | None = None

    def add(self, trial: TrialRecord, facts: ConnectionFacts) -> None:
        count, counted = trial.order.connections, facts.counted_after_phase_one
        first = trial.filling
        if not count or counted is None or first is None:
            return
        established = first.established
        is_drawn = trial.order.step.drawn_frames is not None
        if established == count or (is_drawn and all(c.received == c.intended for _, _, c in first.counts())):
            self._compared += 1
            self._equal += counted == established
            self._lowest = counted if self._lowest is None else min(self._lowest, counted)
            self._highest = counted if self._highest is None else max(self._highest, counted)
        if facts.counted_after_phase_two is not None:
            self._later += 1
            self._changed += counted != facts.counted_after_phase_two

    def published(self) -> GatewayCounts | None:
        if not self._compared and not self._later:
            return None
        return GatewayCounts(
            phase_one=self._compared,
            phase_one_equal=self._equal,
            phase_one_minimum=self._lowest,
            phase_one_maximum=self._highest,
            phase_two=self._later,
            phase_two_changed=self._changed,
        )


def run_facts(campaign: Campaign, run: Run, tally: TrialTally) -> dict[str, Any]:
    """Return the fields that the results of all procedures have; `tally` is of the trials of the run so far."""
    sizes, mix, line = run.cell.frame_sizes, run.cell.mix, campaign.line.rate
    limit = None
    if line is not None:
        limit = TheoreticalMaximum(line_bits_per_second=line, frames=tightest_link(campaign, run.cell))
    return {
        "number": run.number,
        "procedure": run.procedure,
        "direction": run.cell.direction,
        "frame_sizes": FrameSizes(ipv4=sizes.ipv4, ipv6=sizes.ipv6, tunnel=sizes.tunnel),
        "mix": Mix(m=mix.m, n=mix.n),
        "theoretical_maximum": limit,
        "connections": connections_of(campaign, run, tally),
        "zero_checksum": tally.zero_checksum if campaign.gateway.zero_udp_checksum else None,
        "trials": tally.trials,
        "invalid_trials": tally.invalid,
        "suspect_trials": tally.suspect,
        "losses": tally.losses,
        "damages": tally.damages,
        "header_changes": tally.header_changes,
        "telemetry": tally.telemetry,
    }


def blamed(result: RunResult, tally: TrialTally) -> RunResult:
    """Return a result with what limited it as far as all trials of the run show it: `tally` is of them.

    Not the Tester but the host, if every load that remained open is open for the host. A search for a rate, or for a
    burst, measured nothing if it ended on a loss that is no limit: chance chose where no such frame was sent.
    """
    if result.ends_on_a_loss and result.refused is None and (reason := tally.no_limit) is not None:
        return result.model_copy(update={"refused": reason, "limited_by": "gateway"})
    if isinstance(result, RateResult) and (most := tally.forwarded_most) is not None and _forwards_more(result, most):
        result = result.model_copy(update={"maximum_forwarding_rate": most})
    if result.limited_by == "tester" and tally.is_open_for_host_alone:
        return result.model_copy(update={"limited_by": "host"})
    return result


def _forwards_more(result: RateResult, most: MaximumForwardingRate) -> bool:
    """Whether so much was forwarded in a failed trial that the rate found says how few frames are lost, and no more."""
    bounds = result.published_bounds
    return result.unit == "frames/s" and bool(bounds) and most.frames_per_second >= FORWARDS_MORE * median(bounds)


def connections_of(campaign: Campaign, run: Run, tally: TrialTally) -> Connections | None:
    """Return the connections of a run with these trials; None if the gateway is stateless."""
    if not campaign.technology.is_stateful:
        return None
    connections = campaign.connections_model
    space = tuple_space(campaign, run.cell.connections or tally.largest)
    return Connections(
        initiator=campaign.roles.inside,
        count=run.cell.connections,
        source_hosts=space.source_hosts,
        destination_hosts=space.destination_hosts,
        source_ports=port_range(space.source_ports),
        destination_ports=port_range(space.destination_ports),
        order=connections.order,
        send_order=connections.send_order,
        read_order=connections.read_order,
        timeout_ns=connections.timeout_ns,
        gap_ns=connections.gap_ns,
        phase_one=tally.phase_one,
        gateway_counts=tally.gateway_counts,
        behaviour=tally.behaviour,
    )


def port_range(ports: Span) -> PortRange:
    """Return a range of ports as results publish it."""
    return PortRange(minimum=ports.minimum, maximum=ports.maximum)
