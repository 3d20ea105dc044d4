"""Makes the checks: starts a reference gateway for each, measures it like any other gateway, compares."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatemark.calibrate.base import campaign_of, gateway_of
from gatemark.calibrate.checks_delays import SPREAD_NS_MAX, self_error_of
from gatemark.calibrate.disturber import Disturber
from gatemark.calibrate.links import LinkKind, ReferenceTestBed, open_links
from gatemark.calibrate.model import Check, CheckResult, Evidence, NothingProven, ObservedTrial, Reference, SelfError
from gatemark.calibrate.netem import measure_netem, unavailable
from gatemark.campaign.events import Event, EventCallback, PhaseStarted, RunFinished, TrialFinished, TrialStarted
from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.steering import CorePlan, plan_cores, stepping_back, usable_cpus
from gatemark.errors import GatemarkError, Interrupted, ResultError
from gatemark.refdut.process import RefDut, find_refdut
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.run import RunResult
from gatemark.results.this_machine import now_iso
from gatemark.session import measure
from gatemark.tester import Equipment
from gatemark.units import format_duration_ns

ATTEMPTS = 3
"""How often a check is made at most until the reference gateway keeps its truth. It is repeated after all others, so
that a machine that is busy for a while has time to calm down."""

Tell = Callable[[str], None]
Keep = Callable[[Sequence[CheckResult], SelfError | None], object]
"""Called after each check with what is known so far."""


@dataclass(slots=True, kw_only=True)
class Observer:
    """Gathers what the campaign finds and what the reference gateway counts in each trial."""

    gateway: RefDut
    counts_phase_two: bool
    forward: EventCallback
    results: list[RunResult] = field(default_factory=list)
    trials: list[ObservedTrial] = field(default_factory=list)
    reference: Reference = field(default_factory=Reference)
    disturber: Disturber | None = None
    _counts: dict[str, Any] = field(default_factory=dict)

    def note(self, counts: dict[str, Any]) -> None:
        """Take what the gateway counted until the end of a trial, or of a phase of it."""
        self._counts = counts

    def on_event(self, event: Event) -> None:
        """Take one event of the campaign."""
        match event:
            case TrialStarted():
                self.gateway.reset_counts()
                self.gateway.favour(is_measured=True)
                if self.disturber is not None and event.order.attempt == 0:
                    self.disturber.start()
            case PhaseStarted() if self.counts_phase_two and event.uses_connections:
                self.gateway.reset_counts()
            case TrialFinished():
                self.gateway.favour(is_measured=False)
                if self.disturber is not None:
                    self.disturber.stop()
                self.trials.append(ObservedTrial(record=event.record, counts=self._counts))
                if event.record.is_decisive:
                    self.reference = self.reference.worst(reference_of(self._counts))
            case RunFinished():
                self.results.append(event.result)
            case _:
                pass
        self.forward(event)

    def evidence(self, self_error: SelfError | None) -> Evidence:
        """Return all of it."""
        return Evidence(
            results=tuple(self.results), trials=tuple(self.trials), reference=self.reference, self_error=self_error
        )


def reference_of(counts: dict[str, Any]) -> Reference:
    """Return what the reference gateway says about itself in an answer to `counts`."""
    errors = counts["own"]
    return Reference(
        poll_gap_max_ns=int(errors["poll_gap_max_ns"]),
        late_departure_max_ns=int(errors["late_departure_max_ns"]),
        own_drops=sum(int(errors[name]) for name in OWN_DROPS),
    )


OWN_DROPS = ("transmit_full", "receive_missed", "hold_full")
"""Counters of frames that the reference gateway lost without being told to."""


@dataclass(slots=True, kw_only=True)
class Calibration:
    """Makes checks on one kind of port."""

    ports: LinkKind
    output: Path
    """Holds a folder for each check."""
    on_event: EventCallback
    tell: Tell
    keep: Keep = lambda _results, _self_error: None
    cores: CorePlan = field(default_factory=lambda: plan_cores(usable_cpus()))
    self_error: SelfError | None = None

    def run(self, checks: Sequence[Check], known: Sequence[CheckResult] = ()) -> list[CheckResult]:
        """Make all checks, then repeat those from which nothing was learned.

        `known`: what an earlier calibration in this folder found; what is settled there is not repeated. Delays are
        compared with the Tester's own delays as they are now, so those are measured again before any other delay.
        """
        results = {result.name: result for result in known if result.status != "skipped"}
        if any(check.procedure == "delay" and not _is_settled(results.get(check.name)) for check in checks):
            for check in checks:
                if check.gives_self_error:
                    results.pop(check.name, None)
            self.self_error = None
        for _ in range(ATTEMPTS):
            self._round(checks, results)
        return [results[check.name] for check in checks]

    def _round(self, checks: Sequence[Check], results: dict[str, CheckResult]) -> None:
        """Make every check that is not settled once, and put it among the results."""
        open_checks = [check for check in checks if not _is_settled(results.get(check.name))]
        begin, measured = time.monotonic(), 0
        for done, check in enumerate(open_checks):
            place = f"check {checks.index(check) + 1} of {len(checks)}: {check.name}"
            left = ""
            if measured:
                left_s = (time.monotonic() - begin) / measured * (len(open_checks) - done)
                left = f"; about {max(1, round(left_s / 60))} min left"
            if self._can_compare(check):
                self.tell(f"{place}: {check.truth}{left}")
                measured += 1
            results[check.name] = self.make(check, checks.index(check) + 1, results.get(check.name))
            self.tell(f"{place}: {results[check.name].status}")
            self.keep([results[other.name] for other in checks if other.name in results], self.self_error)

    def make(self, check: Check, number: int, before: CheckResult | None = None) -> CheckResult:
        """Make one check; `before` is how it ended last time, from which nothing was learned."""
        begin = time.monotonic()
        attempt = 1 if before is None else before.attempts + 1
        result = self._attempt(check, self._free_folder(f"{number:02}-{check.name}"), attempt)
        seconds = time.monotonic() - begin + (0 if before is None else before.seconds)
        return result.model_copy(update={"made_at": now_iso(), "seconds": seconds})

    def _can_compare(self, check: Check) -> bool:
        return check.procedure != "delay" or self.self_error is not None

    def _free_folder(self, name: str) -> Path:
        """Return a folder that no attempt has used, not even one that was stopped."""
        names = (name, *(f"{name}-{number}" for number in range(2, 10_000)))
        return next(self.output / candidate for candidate in names if not (self.output / candidate).exists())

    def _attempt(self, check: Check, folder: Path, attempt: int) -> CheckResult:
        def ended(evidence: Evidence | None, problem: str = "", skipped: str = "") -> CheckResult:
            reference = Reference() if evidence is None else evidence.reference
            return CheckResult(
                procedure=check.procedure,
                name=check.name,
                truth=check.truth,
                technology=check.technology,
                comparisons=() if evidence is None or problem else check.compare(evidence),
                reference=reference,
                attempts=attempt,
                kept=evidence is not None and is_kept(check, reference),
                seconds=0,
                folder=folder.name,
                problem=problem,
                skipped=skipped,
            )

        if lacking := self._lacking(check):
            return ended(None, skipped=lacking)
        if check.is_held_up and self.cores.shared:
            return ended(None, "Tester and gateway share a CPU, so nothing can be taken away from the gateway alone")
        if not self._can_compare(check):
            return ended(None, "the Tester's own delays are not known, so nothing can be compared")
        try:
            evidence = self._measure(check, folder)
        except (Interrupted, ResultError):
            raise
        except GatemarkError as error:
            return ended(None, str(error))
        limited = limit_of_tester(evidence)
        if limited:
            return ended(evidence, limited)
        if check.gives_self_error and is_kept(check, evidence.reference):
            self_error = self_error_of(evidence)
            if self_error is None or self_error.spread_ns > SPREAD_NS_MAX:
                spread = (
                    "have no result" if self_error is None else f"spread by {format_duration_ns(self_error.spread_ns)}"
                )
                return ended(evidence, f"the Tester's own delays {spread}: the machine is too busy")
            self.self_error = self_error
        try:
            return ended(evidence)
        except NothingProven as error:
            return ended(evidence, error.what)

    def _lacking(self, check: Check) -> str:
        """Return what this machine lacks for a check; empty if nothing."""
        return "" if check.netem is None else unavailable()

    def _measure(self, check: Check, folder: Path) -> Evidence:
        if check.netem is not None:
            return measure_netem(check, folder, cores=self.cores, on_event=self.on_event)
        with open_links(self.ports, self.cores) as links:
            control = str(links.folder / "control.sock")
            cpu = None if self.cores.shared else self.cores.gateway[0]
            configuration = gateway_of(check, links.ports, control, cpu)
            ask = shlex.join([str(find_refdut()), "ask", control])
            document = campaign_of(check, links.ports, ask=ask, cores=self.cores.tester, configuration=configuration)
            campaign = campaign_from_dict(document, where=check.name)
            disturber = Disturber(self.cores.gateway[0]) if check.is_held_up else None
            with (
                RefDut(configuration, links.folder, netns=links.gateway_namespace) as gateway,
                disturber or contextlib.nullcontext(),
            ):
                observer = Observer(
                    gateway=gateway,
                    counts_phase_two=check.counts_phase_two,
                    forward=self.on_event,
                    disturber=disturber,
                )
                equipment = Equipment(
                    open_testbed=lambda complete: ReferenceTestBed(
                        complete,
                        links,
                        gateway,
                        poll_gap_max_ns=check.poll_gap_max_ns,
                        late_departure_max_ns=check.late_departure_max_ns,
                        note=observer.note,
                        cores=() if cpu is None else (cpu,),
                        host_queue_frames=check.forward.queue if check.is_held_up else None,
                    )
                )
                with stepping_back():
                    measure(campaign, output=folder, on_event=observer.on_event, equipment=equipment)
                observer.reference = observer.reference.worst(Reference(own_drops=links.lost_by_the_kernel()))
                return observer.evidence(self.self_error)


def _is_settled(result: CheckResult | None) -> bool:
    """Whether something was learned about the Tester, good or bad, or nothing can be learned here."""
    return result is not None and result.status in ("passed", "failed", "skipped")


def limit_of_tester(evidence: Evidence) -> str:
    """Return how Tester or host fell short of a load that a check needs; empty if it did not."""
    if all(result.limited_by not in NOT_THE_GATEWAY for result in evidence.results):
        return ""
    reasons = [reason for trial in evidence.trials if not trial.record.is_decisive for reason in trial.record.reasons]
    return f"the Tester was the limit: {reasons[-1] if reasons else 'no valid trial'}"


def is_kept(check: Check, reference: Reference) -> bool:
    """Whether the reference gateway kept the truth of a check, by its own account."""
    return (
        reference.own_drops == 0
        and reference.poll_gap_max_ns <= check.poll_gap_max_ns
        and reference.late_departure_max_ns <= check.late_departure_max_ns
    )
