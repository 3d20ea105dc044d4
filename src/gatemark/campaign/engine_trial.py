"""One trial of the engine with what is asked of the test bed around it: report and drops. Nothing is judged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest

from gatemark.campaign.events import EventCallback, HostBooting, TrialProgress
from gatemark.campaign.gateway_reset import GatewayReset
from gatemark.campaign.reach import GatewayAddresses, link_down
from gatemark.campaign.telemetry import TrialTimes, telemetry_facts
from gatemark.config.model import Campaign
from gatemark.dut.base import (
    MIDDLE,
    RECEIVED_BY_TESTER,
    Abilities,
    CpuTimes,
    FrameDrops,
    HoldUps,
    HostReader,
    HostReading,
    KernelCounts,
    Watch,
    await_success,
)
from gatemark.engine.answers import Progress
from gatemark.engine.client import Engine
from gatemark.errors import (
    RESUME,
    EngineError,
    HostBootedError,
    HostBootError,
    HostConnectionError,
    Interrupted,
    OutsideGatewayError,
    TestBedError,
)
from gatemark.technology import SIDES
from gatemark.trial.answer import mismatches
from gatemark.trial.exchange import ExchangeFacts, read_exchange
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.host import CpuFacts, HoldUp, HostFacts, MiddleFacts, ThreadFacts
from gatemark.trial.host_counters import full_tables, growth
from gatemark.trial.judgement import Evidence
from gatemark.trial.messages import TrialRequest
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import BootFacts, ResetFacts
from gatemark.trial.report import TrialReport, read_report
from gatemark.trial.request import planned_ns, resolve_requests
from gatemark.trial.telemetry import TelemetryFacts
from gatemark.trial.validity import link_is_down
from gatemark.units import NANOSECONDS_PER_SECOND

HEALTH_WAIT_S = 300.0
"""A gateway that was reset may be a machine that boots."""

HEALTH_POLL_S = 0.1

COLLAPSED = "the gateway collapsed"

STRAYED_FRAMES_MAX, STRAYED_SHARE_DIVISOR = 1_000, 10
"""The kernel may work on so many frames at the Tester's CPUs, or on a tenth of those offered: other programs talk too.
With the gateway's work on its own CPUs it works on none of the trial's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What is asked of the test bed in a trial."""

    needs_link: bool
    """A trial without link, or with a gateway that does not answer for its address, is an error."""
    watches_host: bool = False
    """The gateway's host is looked at while frames are sent too, which takes some of its time."""


@dataclass(slots=True)
class IdleMiddle:
    """Frames that the link between two gateways counts between trials, when none of the Tester's is under way."""

    strays: int = 0
    """Of all such times so far."""
    _last: HostReading | None = None

    def begin(self, reading: HostReading | None) -> None:
        """Compare a reading just before a trial with the last one just after a trial."""
        if self._last is not None and reading is not None:
            grown = _middle(self._last.counted, reading.counted)
            self.strays += 0 if grown is None else grown.forward + grown.reverse
        self.forget()  # a trial that fails has no reading behind it

    def end(self, reading: HostReading | None) -> None:
        """Keep the reading just after a trial."""
        self._last = reading

    def forget(self) -> None:
        """Take note that frames of the Tester pass which no reading surrounds."""
        self._last = None


@dataclass(slots=True)
class HostBoots:
    """Boots of the gateway's hosts that nobody here asked for: what was set up there may be gone since."""

    _last: tuple[str, ...] = ()

    def check(self, reading: HostReading | None, when: str) -> None:
        """Compare with what was read before; raise HostBootedError if a host is in another boot than then."""
        if reading is None:
            return
        pairs = [*zip_longest(self._last, reading.counted.boot_ids, fillvalue="")]
        self._last = tuple(now or before for before, now in pairs)
        for place, (before, now) in enumerate(pairs):
            if before and now and before != now:
                raise HostBootedError(
                    what=f"the {'other ' if place else ''}gateway's host booted by itself {when}",
                    where="test bed",
                    fix="see in its log why. Set up again what you had set up there by hand; then gatemark makes the"
                    f" settings of the campaign file again: {RESUME}",
                )

    def forget(self) -> None:
        """Take note that a host is to boot, or may."""
        self._last = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTrials:
    """Makes trials with one engine on one test bed."""

    campaign: Campaign
    engine: Engine
    can: Abilities
    """What can be asked of the test bed."""
    on_event: EventCallback
    addresses: GatewayAddresses = field(init=False)
    """Asked for again where a trial or an exchange lost touch with the gateway."""
    health_wait_s: float = HEALTH_WAIT_S
    """How long a gateway may take to work again after the trial in which it was reset."""
    idle_middle: IdleMiddle = field(default_factory=IdleMiddle)
    """Frames on the link between two gateways that are none of a trial."""
    host_boots: HostBoots = field(default_factory=HostBoots)
    """Boots between two readings of the host."""

    def __post_init__(self) -> None:
        """Know no address yet."""
        object.__setattr__(self, "addresses", GatewayAddresses(self.engine, resolve_requests(self.campaign)))

    def make(
        self,
        body: TrialRequest,
        order: TrialOrder,
        demands: Demands,
        form: TrialForm = PLAIN,
    ) -> Evidence:
        """Make one trial of the engine for a trial of the campaign; `form` is that of its phase.

        The host is not watched where delays are measured: each look would be in some of them.
        Raises an error if the test bed broke during the trial, or a host booted since the trial before: neither must
        pass for a result of the gateway. The same holds for a trial that was cancelled, and, if the link is needed,
        for one without link or with a gateway that no longer answers for its address.
        """
        can, trial_number = self.can, order.trial_number
        if can.telemetry is not None:
            can.telemetry.start(planned_ns(body) / NANOSECONDS_PER_SECOND)
        drops_before = _dropped(can)
        host_before = self._read_host()
        self.host_boots.check(host_before, f"before frames of trial {trial_number} were sent")
        self.idle_middle.begin(host_before)
        began_ns = time.monotonic_ns()
        with _watching(can.host if demands.watches_host and not form.measures_delays else None) as watch:
            report, reset = self._report(body, trial_number, form.reset_after_ns)
        overlaps = self._overlaps(began_ns)
        host_after, ended_ns = self._read_host(), time.monotonic_ns()
        times = TrialTimes(began_ns=began_ns, ended_ns=ended_ns, phases=report.phases)
        self.idle_middle.end(host_after)
        host = host_facts(host_before, host_after, strays=self.idle_middle.strays)
        if host is not None and watch is not None:
            host = with_hold_ups(host, watch.found(), times, report)
        telemetry = telemetry_facts(
            None if can.telemetry is None else can.telemetry.read(), times, around=(host_before, host_after)
        )
        wait_s = self.health_wait_s if reset is not None else 0.0
        await_success(self.can.check, wait_s, poll_s=HEALTH_POLL_S)
        if reset is None:
            self.host_boots.check(host_after, f"in trial {trial_number}")
        else:
            self.host_boots.forget()
        if demands.needs_link and link_is_down(report):
            raise link_down([side for side, port in report.ports.items() if not port.link_up])
        drops = _dropped(can)
        full = _full_tables(host_after, host, report)
        strayed = _strayed(host_before, host_after, report)
        moved = self._moved(needs_answer=demands.needs_link) if _lost_touch(report, form) else ()
        faults = (*moved, *overlaps, *_own_faults(can), *self._not_sampled(telemetry), *full, *strayed)
        return Evidence(
            order=order,
            report=report,
            testbed_drops=_increase(drops_before.tester, drops.tester),
            testbed_faults=faults,
            gateway_drops=_increase(drops_before.gateway, drops.gateway),
            host=host,
            telemetry=telemetry,
            reset=reset,
        )

    def report(self, body: TrialRequest, trial_number: int) -> TrialReport:
        """Make a trial of the engine and return its report, which nobody judges; raise as `make` does."""
        self.idle_middle.forget()
        return self._report(body, trial_number, None)[0]

    def exchange(self, order: TrialOrder, demands: Demands) -> Evidence:
        """Send packets as they are; raise as `make` does."""
        self.idle_middle.forget()
        can, trial_number = self.can, order.trial_number
        drops_before = _dropped(can)
        self.host_boots.check(self._read_host(), f"before packets of trial {trial_number} were sent")
        began_ns = time.monotonic_ns()
        facts = self._exchanged(order)
        overlaps = self._overlaps(began_ns)
        self.can.check()
        self.host_boots.check(self._read_host(), f"in trial {trial_number}")
        drops = _dropped(can)
        moved = () if facts.arrived else self._moved(needs_answer=demands.needs_link)
        faults = (*moved, *overlaps, *_own_faults(can))
        return Evidence(
            order=order,
            report=TrialReport.none(trial_number),
            testbed_drops=_increase(drops_before.tester, drops.tester),
            testbed_faults=faults,
            gateway_drops=_increase(drops_before.gateway, drops.gateway),
            exchange=facts,
        )

    def _exchanged(self, order: TrialOrder) -> ExchangeFacts:
        try:
            answer = self.engine.exchange(order.form.of_exchange.body)
        except EngineError:
            self.can.check()  # as in a trial
            raise
        if answer.get("cancelled"):
            raise _cancelled(order.trial_number)
        return read_exchange(answer)

    def _report(
        self, body: TrialRequest, trial_number: int, reset_after_ns: int | None
    ) -> tuple[TrialReport, ResetFacts | None]:
        control = self.can.control
        way = None if control is None else control.reset
        reset = None if reset_after_ns is None else GatewayReset(way, reset_after_ns)

        def tell(progress: Progress) -> None:
            self.on_event(TrialProgress(trial_number=trial_number, progress=progress))
            if reset is not None:
                reset.take(progress)

        try:
            report = read_report(self.engine.trial(body, tell))
        except EngineError:
            self.can.check()  # an interface or a gateway that is gone is the clearer message
            raise
        if report.cancelled:
            raise _cancelled(trial_number)
        if wrong := list(mismatches(body, report)):
            raise EngineError(
                what=f"the report of trial {trial_number} is not the answer to what was asked: {'; '.join(wrong)}",
                where="engine",
                fix="nothing of it was recorded: resume, and if it happens again, report it with the engine's log",
            )
        return report, None if reset is None else reset.facts()

    def boot(self, trial_number: int, *, why: str | None = None) -> None:
        """Boot the gateway's host before a trial of the campaign, and find the gateway again; `why` as in the event.

        Raises HostBootError if the host does not come back.
        """
        booter = self.can.booter
        if booter is None:
            raise HostBootError(
                what="the gateway's host cannot be booted",
                where="test bed",
                fix="give gateway.control.reboot or power_cycle a command",
            )
        self.on_event(HostBooting(trial_number=trial_number, why=why))
        self.host_boots.forget()
        try:
            booter.boot()
            self.addresses.reach(wait_s=self.campaign.control.boot_wait_s)
        except TestBedError as error:
            raise HostBootError(problems=error.problems) from error

    def restart(self) -> bool:
        """Start the gateway again and find it; return False where nothing controls it."""
        control = self.can.control
        if control is None:
            return False
        self.host_boots.forget()
        control.restart()
        self.addresses.reach()  # its link-layer addresses may be new
        return True

    def boot_after(self, trial_number: int, why: str) -> BootFacts:
        """Boot the gateway's host because the gateway stopped working in a trial; raise HostBootError as `boot`."""
        began_at, begin = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
        self.boot(trial_number, why=why)
        return BootFacts(why=why, began_at=began_at, seconds=round(time.monotonic() - begin, 3))

    def reason_to_boot(self, error: TestBedError) -> str | None:
        """Say why the host is to be booted after an error in a trial; None if the gateway works or it is not to be.

        A host that no command reaches is booted only if its power can be cycled. It says nothing about the gateway.
        """
        control = self.campaign.gateway.control
        if control is None or not self.campaign.control.model.boot_after_collapse:
            return None
        if isinstance(error, HostBootedError):
            return error.what
        try:
            self.can.check()
        except HostConnectionError as lost:
            return f"no command reached the gateway's host: {lost.what}" if control.power_cycle else None
        except OutsideGatewayError:
            return None
        except TestBedError:
            return f"{COLLAPSED}: {error.what}"
        return None

    def _read_host(self) -> HostReading | None:
        host = self.can.host
        return None if host is None else host.read()

    def _overlaps(self, began_ns: int) -> tuple[str, ...]:
        """Say which commands ran at the gateway while frames were sent: they take its time, and frames may be lost."""
        control = self.can.control
        ran = () if control is None else control.commands_since(began_ns)
        return tuple(f"{name} ran while frames were sent" for name in ran)

    def _not_sampled(self, telemetry: TelemetryFacts | None) -> tuple[str, ...]:
        """Say why a trial has no samples of the gateway's host, if the campaign asks for them."""
        asked = self.campaign.control.telemetry
        if asked is None or not asked.required or telemetry is None:
            return ()
        hosts = (("the gateway's host", telemetry), ("the other gateway's host", telemetry.other))
        return tuple(
            f"{words} was not sampled: {facts.reason}"
            for words, facts in hosts
            if facts is not None and facts.reason is not None
        )

    def _moved(self, *, needs_answer: bool) -> tuple[str, ...]:
        """Ask for the gateway's addresses again; say why frames went elsewhere in a trial that lost them to its end.

        Raises TestBedError if the gateway does not answer and `needs_answer`.
        """
        news = self.addresses.ask_again()
        if news.silences and needs_answer:
            raise TestBedError(problems=news.problems)
        return news.sentences


def _lost_touch(report: TrialReport, form: TrialForm) -> bool:
    """Whether frames of a direction may have gone to an address that is no longer the gateway's: the last one was lost.

    A gateway that is reset in the trial may lose the last frames by itself, but not all. Where a link is down, nobody
    can answer.
    """
    if link_is_down(report):
        return False
    is_reset = form.reset_after_ns is not None
    return any(direction.is_lost if is_reset else direction.ends_lost for direction in report.directions)


def _dropped(can: Abilities) -> FrameDrops:
    return FrameDrops() if can.drops is None else can.drops()


def _own_faults(can: Abilities) -> tuple[str, ...]:
    return () if can.own_faults is None else can.own_faults()


def _increase(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return how much each counter grew; counters that did not grow are left out."""
    growth = {place: count - before.get(place, 0) for place, count in after.items()}
    return {place: count for place, count in growth.items() if count}


def _full_tables(reading: HostReading | None, host: HostFacts | None, report: TrialReport) -> tuple[str, ...]:
    """Say which tables were full that are none of the gateway's: those of a kernel of its own are."""
    if reading is None or host is None or not reading.counted.is_this_machines:
        return ()
    return full_tables(host.counters, report.lost_count)


def _strayed(before: HostReading | None, after: HostReading | None, report: TrialReport) -> tuple[str, ...]:
    """Say that CPUs of the Tester worked on more frames than a machine has of its own: on the gateway's."""
    if before is None or after is None:
        return ()
    now, then = after.counted.counters, before.counted.counters
    worked_on = now.get(RECEIVED_BY_TESTER, 0) - then.get(RECEIVED_BY_TESTER, 0)
    offered = sum(counts.offered for _, _, counts in report.counts())
    if worked_on <= STRAYED_FRAMES_MAX or worked_on * STRAYED_SHARE_DIVISOR <= offered:
        return ()
    return (
        f"the kernel worked on {worked_on:,} frames at the Tester's CPUs, where the gateway is to have no work, while"
        f" {offered:,} were offered: see that nothing changes rps_cpus of the gateway's interfaces, and that no"
        " interrupts of network cards come to these CPUs",
    )


def host_facts(before: HostReading | None, after: HostReading | None, *, strays: int = 0) -> HostFacts | None:
    """Return what happened between two readings, of the threads that are in both; `strays` as in `MiddleFacts`."""
    if before is None or after is None:
        return None
    return HostFacts(
        read_ns=after.at_ns - before.at_ns,
        step_ns=after.step_ns,
        queue_frames=after.queue_frames,
        cpus=tuple(
            _cpu_facts(cpu, before.cpus[cpu], times, after.at_ns - before.at_ns) for cpu, times in after.cpus.items()
        ),
        threads=tuple(
            ThreadFacts(
                name=times.name,
                cpu=times.cpu,
                ran_ns=times.ran_ns - before.threads[thread].ran_ns,
                waited_ns=times.waited_ns - before.threads[thread].waited_ns,
            )
            for thread, times in after.threads.items()
            if thread in before.threads
        ),
        others_ran_ns=_others_ran_ns(before, after),
        counters=_grown(before.counted, after.counted),
        middle=_middle(before.counted, after.counted, strays=strays),
    )


def _middle(before: KernelCounts, after: KernelCounts, *, strays: int = 0) -> MiddleFacts | None:
    """Return what was handed to the link between two gateways; None with one, or if the host booted meanwhile."""
    handed = []
    for side in SIDES:
        names = [f"interface.{MIDDLE}{side}.{counter}" for counter in ("tx_packets", "tx_dropped")]
        is_read = all(name in reading.counters for name in names for reading in (before, after))
        if before.boot_ids != after.boot_ids or not is_read:
            return None
        handed.append(sum(after.counters[name] - before.counters[name] for name in names))
    return MiddleFacts(forward=handed[0], reverse=handed[1], strays=strays)


def _grown(before: KernelCounts, after: KernelCounts) -> dict[str, int]:
    """Return what counters grew by; none if the host booted meanwhile: then they began again."""
    return growth(before.counters, after.counters) if before.boot_ids == after.boot_ids else {}


def with_hold_ups(host: HostFacts, watched: HoldUps, times: TrialTimes, report: TrialReport) -> HostFacts:
    """Return what happened between two readings with the times in which others had the gateway's CPUs meanwhile."""
    earliest_ns = times.began_ns + times.before_ns
    took_ns = max((direction.sending_ns for direction in report.directions), default=0)
    latest_ns = earliest_ns + times.slack_ns + max(0, times.sending_ns - took_ns)
    hold_ups = tuple(
        HoldUp(begin_ns=held_up.begin_ns - latest_ns, end_ns=held_up.end_ns - earliest_ns, held_up_ns=held_up.lasted_ns)
        for held_up in watched.longest
    )
    return host.model_copy(update={"hold_ups": hold_ups, "other_hold_ups_ns": watched.others_ns})


def _watching(host: HostReader | None) -> AbstractContextManager[Watch | None]:
    return nullcontext() if host is None else host.watched()


def _others_ran_ns(before: HostReading, after: HostReading) -> int | None:
    """Return the most that other programs ran on the gateway's CPUs.

    A thread of the gateway that is not in both readings, or that may run elsewhere too, counts as one of another.
    """
    if before.all_ran_ns is None or after.all_ran_ns is None:
        return None
    both = before.threads.keys() & after.threads.keys()
    staying = (thread for thread in both if before.threads[thread].stays and after.threads[thread].stays)
    gateway_ns = sum(after.threads[thread].ran_ns - before.threads[thread].ran_ns for thread in staying)
    return max(0, after.all_ran_ns - before.all_ran_ns - gateway_ns)


def _cpu_facts(cpu: int, before: CpuTimes, after: CpuTimes, elapsed_ns: int) -> CpuFacts:
    busy_ns = elapsed_ns - (after.idle_ns - before.idle_ns)
    return CpuFacts(cpu=cpu, busy_ns=max(0, busy_ns), stolen_ns=after.stolen_ns - before.stolen_ns)


def _cancelled(trial_number: int) -> Interrupted:
    return Interrupted(
        what="the trial was cancelled",
        where=f"trial {trial_number}",
        fix=f"every finished trial is kept; continue with {RESUME}",
    )
