"""Makes a self-test: one engine on one pair of ports, a search for each case, then the delays of its own path."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypedDict

from gatemark.bed_kinds import bed_kinds_where
from gatemark.campaign.engine_trial import Demands
from gatemark.campaign.events import Event
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import cells_of
from gatemark.campaign.trials import Patience
from gatemark.config.defaults import LATENESS_MAX_NS
from gatemark.config.model import Campaign, EchoAsked
from gatemark.config.tables import HostMacs, UdpChecksum
from gatemark.dut.base import TestBed
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.dut.wire import WireTestBed
from gatemark.errors import ConfigError
from gatemark.facts import ClockFacts
from gatemark.port_kinds import parse_port
from gatemark.procedures.loads import line_maximum
from gatemark.results.this_machine import gatemark_version, now_iso
from gatemark.search.goal import Measure, bounds_of, sending_ns
from gatemark.selftest.document import (
    SELF_TEST_FORMAT,
    CountedLoop,
    Entry,
    SelfTest,
    TimedLatency,
    conditions_of,
    port_kind_of,
    self_test_kind,
    this_machine,
)
from gatemark.selftest.modes import (
    CONNECTIONS,
    ECHO_MODE,
    QUICK_SIZES,
    SIZES,
    Case,
    Direction,
    campaign_of,
    cases,
)
from gatemark.selftest.search import Reached, Tried, find_rate
from gatemark.technology import SIDES, Family
from gatemark.tester import Equipment, Tester, open_tester, prepare
from gatemark.trial.cell import Run
from gatemark.trial.delay import DelayFacts
from gatemark.trial.echo import EchoForm
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord

RATE_MAX = 200_000_000
"""Above the rate of any port."""
FIRST_RATE = 100_000
ECHO_PERCENT = (1, 5, 25)
"""Rates of the Tester's own round trip, of what its closed loop reaches: where a gateway may be measured with it, and
below."""
ECHO_COUNT = 65_536
"""Requests to each destination: so many that a trial does not end before its time."""
ECHO_ATTEMPTS = 3
"""Trials of each closed loop."""
ECHO_PACE_NS = 10_000_000
ECHO_TIMEOUT_NS = 50_000_000
LATENCY_PERCENT = (1, 10, 50, 90)
"""Loads of the self-latency, of the throughput found in both directions at once with fixed ports and hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How thorough a self-test is."""

    search_ns: int = 250_000_000
    trial_ns: int = 1_000_000_000
    confirmations: int = 3
    sizes: dict[Family, tuple[int, ...]] = field(default_factory=lambda: SIZES)


QUICK = Effort(search_ns=100_000_000, trial_ns=200_000_000, confirmations=1, sizes=QUICK_SIZES)
DEFAULT_KIND = "netns-af_packet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Which ports are joined to each other."""

    port_kind: str
    """As self-tests are kept by it: `self_test_kind`."""
    conditions: Mapping[str, str]
    """What else it depends on: `conditions_of`."""
    cores: tuple[int, ...] = ()
    """Those that the campaign names for the Tester; none: they are chosen."""
    queues: tuple[int | None, int | None] = (None, None)
    """Those that the campaign names, left and right; None: they are chosen."""
    ports: dict[str, str]
    """Of both sides."""
    open_testbed: Callable[[Campaign], TestBed] | None = None
    """None: the ports as they are named."""
    cable: bool = False
    """Whether the user must join both ports."""
    line_bits_per_second: int | None = None
    lateness_max_ns: int = LATENESS_MAX_NS
    """A trial with a later burst does not count, as in the campaign."""
    connections: tuple[int, ...] = (CONNECTIONS,)
    udp_checksum: UdpChecksum = "computed"
    """Of IPv4 frames."""
    host_macs: HostMacs = "fixed"
    """Of both sides."""
    domains: int = 1
    """Of customer edges."""
    echo: EchoAsked | None = None
    """What a campaign of echo requests needs to know; None for any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Progress of a running self-test."""

    number: int
    count: int
    words: str
    elapsed_s: float

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest will take at the pace so far; None at the beginning."""
        done = self.number - 1
        return None if done < 1 else self.elapsed_s / done * (self.count - done)


Tell = Callable[[Step], None]


def subject_of(campaign: Campaign | None) -> Subject:
    """Return the ports to be joined: of the same kind as those of a campaign, else a veth pair.

    Raises ConfigError for ports that cannot be joined.
    """
    conditions = conditions_of(campaign, Equipment().engine_sha256())
    if campaign is None or campaign.bed.makes_ports:
        kind = DEFAULT_KIND if campaign is None else port_kind_of(campaign)
        cores = plan_cores(usable_cpus(), tester=() if campaign is None else campaign.testbed.cores)
        bed = WireTestBed(cores, port_kind=kind.rpartition("-")[2])
        return Subject(
            port_kind=kind if campaign is None else self_test_kind(campaign),
            conditions=conditions,
            ports=bed.ports,
            open_testbed=lambda _: bed,
            **_asked(campaign),
        )
    named: dict[str, str] = {name: campaign.side(name).port or campaign.bed.default_port or "" for name in SIDES}
    port = parse_port(named["left"]).kind
    if not port.can_be_joined:
        alone = bed_kinds_where(lambda other: other.makes_ports)
        raise ConfigError(
            what=f"two ports of kind {port.name} of one process cannot be joined to each other",
            where=campaign.source,
            fix=f"test the Tester alone with a campaign of kind {alone}, with ring ports, or with network cards",
        )
    return Subject(
        port_kind=self_test_kind(campaign),
        conditions=conditions,
        cores=tuple(campaign.testbed.cores),
        queues=(campaign.left.queues, campaign.right.queues),
        ports=dict.fromkeys(named, port.name) if port.is_joined else named,
        cable=not port.is_joined,
        line_bits_per_second=None if port.is_joined else campaign.line.rate,
        **_asked(campaign),
    )


class _Asked(TypedDict, total=False):
    """What a campaign asks of the Tester beside its kind of port; without a campaign all of it is as usual."""

    lateness_max_ns: int
    connections: tuple[int, ...]
    udp_checksum: UdpChecksum
    host_macs: HostMacs
    domains: int
    echo: EchoAsked | None


def _asked(campaign: Campaign | None) -> _Asked:
    if campaign is None:
        return {}
    return {
        "lateness_max_ns": campaign.validity.lateness_max_ns,
        "connections": (campaign.connections and campaign.connections.count) or (CONNECTIONS,),
        "udp_checksum": "zero" if campaign.directions.lack_checksums else "computed",
        "host_macs": "random" if campaign.has_random_macs else "fixed",
        "domains": max(campaign.edges.domain_count, 1),
        "echo": echo_asked(campaign),
    }


def echo_asked(campaign: Campaign) -> EchoAsked | None:
    """Return the echo requests of the Tester to itself that a campaign is reported with; None for most campaigns."""
    return next((asked for table in campaign.tables if (asked := table.asked_echo(campaign)) is not None), None)


class SelfTester:
    """Tests the Tester alone, on an opened pair of ports."""

    def __init__(self, tester: Tester, subject: Subject, effort: Effort, tell: Tell) -> None:
        self._tester = tester
        self._subject = subject
        self._effort = effort
        self._tell = tell
        self._trial_number = 0
        self._begin = time.monotonic()
        self._last: dict[tuple[str, str, str], int] = {}

    def run(self, planned: Sequence[Case], *, quick: bool) -> SelfTest:
        """Run every case, then measure the delays."""
        entries: list[Entry] = []
        sized = [(case.family, case.frame_octets) for case in planned if case.connections is None]
        delayed = list(dict.fromkeys(sized))
        count = len(planned) + len(delayed) + (self._subject.echo is not None)
        for number, case in enumerate(planned, start=1):
            self._say(number, count, case.words)
            entries.append(self._entry(case))
        latencies: list[TimedLatency] = []
        for number, (family, octets) in enumerate(delayed, start=len(planned) + 1):
            self._say(number, count, f"self-latency, {family}, {octets} octets")
            latencies += self._latencies(family, octets, entries)
        loops: list[CountedLoop] = []
        if self._subject.echo is not None:
            self._say(count, count, "echo requests")
            loops += self.echo_loops(self._subject.echo)
        return self.document(entries, latencies, loops, quick=quick)

    def document(
        self,
        entries: Sequence[Entry],
        latencies: Sequence[TimedLatency],
        loops: Sequence[CountedLoop] = (),
        *,
        quick: bool,
    ) -> SelfTest:
        """Return what was found, with what was tested."""
        hello = self._tester.hello
        return SelfTest(
            selftest=SELF_TEST_FORMAT,
            machine=this_machine(),
            port_kind=self._subject.port_kind,
            conditions=self._subject.conditions,
            measured_at=now_iso(),
            gatemark=gatemark_version(),
            engine=str(hello["version"]),
            quick=quick,
            trial_ns=self._effort.trial_ns,
            confirmations=self._effort.confirmations,
            lateness_max_ns=self._subject.lateness_max_ns,
            entries=tuple(entries),
            self_latency=tuple(latencies),
            echo_loops=tuple(loops),
            clock=ClockFacts.model_validate(hello["clock"]),
        )

    def _say(self, number: int, count: int, words: str) -> None:
        self._tell(Step(number=number, count=count, words=words, elapsed_s=time.monotonic() - self._begin))

    def _entry(self, case: Case) -> Entry:
        """Search for the highest rate of a case; that of the next smaller size is where it begins."""
        campaign = self._campaign(case)
        ceiling = line_maximum(campaign, cells_of(campaign)[0], self._subject.line_bits_per_second) or RATE_MAX
        key = (case.family, case.direction, case.mode)

        def attempt(rate: int, is_long: bool) -> Tried:
            if case.connections is not None:
                duration_ns = sending_ns(case.connections, rate)
            else:
                duration_ns = self._effort.trial_ns if is_long else self._effort.search_ns
            return judged(self._trial(campaign, case, rate, duration_ns))

        start = self._last.get(key) or FIRST_RATE
        reached: Reached = find_rate(attempt, start=start, ceiling=ceiling, confirmations=self._effort.confirmations)
        self._last[key] = reached.rate
        return Entry(
            family=case.family,
            frame_octets=case.frame_octets,
            direction=case.direction,
            mode=case.mode,
            frames_per_second=reached.rate,
            kind=case.kind,
            connections=case.connections,
            limited=reached.limited,
        )

    def _latencies(self, family: Family, octets: int, entries: Sequence[Entry]) -> Iterator[TimedLatency]:
        """Measure the delays of both directions at shares of the throughput."""
        fixed = [
            entry for entry in entries if (entry.family, entry.frame_octets, entry.mode) == (family, octets, "fixed")
        ]
        most = min((entry.frames_per_second for entry in fixed), default=0)
        yield from self.delays(
            family, octets, [max(1000, most * percent // 100) for percent in LATENCY_PERCENT if most]
        )

    def delays(self, family: Family, octets: int, rates: Sequence[int]) -> Iterator[TimedLatency]:
        """Measure the delays of both directions at these loads; one that the Tester cannot offer is left out."""
        case = Case(family=family, frame_octets=octets, direction="bidirectional", mode="fixed")
        campaign = self._campaign(case)
        for rate in rates:
            record = self._trial(campaign, case, rate, self._effort.trial_ns)
            if not record.validity.valid:
                continue
            for way in record.report.directions:
                yield _latency(case, rate, way.direction, way.foreground.delay, way.lateness_max_ns)

    def echo_loops(self, asked: EchoAsked) -> Iterator[CountedLoop]:
        """Let the Tester's clients ask its own host that answers: each shape as fast as it goes, the last at rates.

        Of a shape the fastest of a few trials counts: in the others somebody took the CPU. A trial that is not valid is
        left out.
        """
        case = Case(family=asked.family, frame_octets=asked.frame_octets, direction="forward", mode=ECHO_MODE)
        most = 0
        for clients, window in asked.shapes:
            loops = [self._echo_loop(case, clients, window, None) for _ in range(ECHO_ATTEMPTS)]
            known = [loop for loop in loops if loop is not None]
            if known:
                fastest = max(known, key=lambda loop: loop.replies_per_second)
                most = max(most, fastest.replies_per_second)
                yield fastest
        clients, window = max(asked.shapes, key=lambda shape: shape[0] * shape[1])
        for percent in ECHO_PERCENT if most else ():
            if (loop := self._echo_loop(case, clients, window, max(1, most * percent // 100))) is not None:
                yield loop

    def _echo_loop(self, case: Case, clients: int, window: int, rate: int | None) -> CountedLoop | None:
        echo = EchoForm(
            clients=clients,
            window=window,
            count=ECHO_COUNT,
            destinations=window,
            pace_without_reply_ns=ECHO_PACE_NS if rate is None else None,
            timeout_ns=ECHO_TIMEOUT_NS,
        )
        form = TrialForm(echo=echo, drain_ns=ECHO_TIMEOUT_NS)
        record = self._trial(self._campaign(case), case, rate or 0, self._effort.trial_ns, form)
        facts = record.report.echo
        per_second = None if facts is None or facts.steady is None else facts.steady.replies_per_second
        if not record.validity.valid or facts is None or per_second is None:
            return None
        return CountedLoop(
            family=case.family,
            frame_octets=case.frame_octets,
            clients=clients,
            window=window,
            frames_per_second=rate,
            replies_per_second=per_second,
            samples=facts.all.samples,
            requests=facts.total("requests"),
            minimum_ns=facts.all.minimum_ns,
            mean_ns=facts.all.mean_ns,
            p50_ns=facts.all.percentile_ns(50_000),
            p999_ns=facts.all.percentile_ns(99_900),
            maximum_ns=facts.all.maximum_ns,
        )

    def _campaign(self, case: Case) -> Campaign:
        return loop_back_campaign(case, self._subject, self._effort)

    def _trial(
        self, campaign: Campaign, case: Case, rate: int, duration_ns: int, form: TrialForm = PLAIN
    ) -> TrialRecord:
        """Make one trial; an invalid one is repeated as in a campaign."""
        cell = cells_of(campaign)[0]
        run = Run(number=1, procedure="self-test", cell=cell)
        maker = TrialMaker(
            campaign=campaign, engine=self._tester.engine, can=self._tester.testbed.can, on_event=_ignore
        )
        patience = Patience(campaign.validity, campaign.trial, duration_ns)
        is_last = False
        while not is_last:
            is_last = patience.ends
            self._trial_number += 1
            order = TrialOrder(
                run=run,
                trial_number=self._trial_number,
                repetition=0,
                attempt=patience.attempts,
                step=Measure(
                    frames_per_second=rate, duration_ns=duration_ns, purpose="search", connections=case.connections
                ),
                form=form,
            )
            record = maker.make(
                order, loss_tolerance=Fraction(0), bounds=bounds_of(()), demands=Demands(needs_link=True)
            )
            if record.validity.valid:
                break
            patience.take(record)
        return record


def run_self_test(
    subject: Subject, *, effort: Effort, quick: bool, tell: Tell, equipment: Equipment | None = None
) -> SelfTest:
    """Join the ports, test, and take them apart again. Raises GatemarkError."""
    planned = planned_cases(subject, effort)
    with open_self_tester(subject, planned[0], effort, tell, equipment) as tester:
        return tester.run(planned, quick=quick)


@contextlib.contextmanager
def open_self_tester(
    subject: Subject, first: Case, effort: Effort, tell: Tell, equipment: Equipment | None = None
) -> Iterator[SelfTester]:
    """Join the ports and open a Tester on them, for cases like the first."""
    used = equipment or _equipment(subject)
    bed, complete = prepare(loop_back_campaign(first, subject, effort), used)
    with open_tester(complete, bed, used) as tester:
        yield SelfTester(tester, subject, effort, tell)


def loop_back_campaign(case: Case, subject: Subject, effort: Effort) -> Campaign:
    """Return the campaign whose trials test the Tester in a case."""
    return campaign_of(
        case,
        ports=subject.ports,
        cores=subject.cores,
        queues=subject.queues,
        trial_ns=effort.trial_ns,
        lateness_max_ns=subject.lateness_max_ns,
        udp_checksum=subject.udp_checksum,
        host_macs=subject.host_macs,
        domains=subject.domains,
    )


def planned_cases(subject: Subject, effort: Effort) -> list[Case]:
    """Return the cases of a self-test."""
    families: tuple[Family, ...] = ("ipv4", "ipv6")
    directions: tuple[Direction, ...] = ("forward", "bidirectional")
    return cases(families=families, sizes=effort.sizes, directions=directions, connections=subject.connections)


def judged(record: TrialRecord) -> Tried:
    """Return whether the Tester passed a trial, and if not, the first reason.

    Nothing but the Tester is there, so a lost frame is its fault as well.
    """
    if not record.validity.valid:
        return Tried(passed=False, reason=record.validity.reasons[0])
    if record.verdict is None or not record.verdict.passed:
        reasons = record.verdict.reasons if record.verdict is not None else ()
        return Tried(passed=False, reason=next(iter(reasons), "frames were lost"))
    return Tried(passed=True)


def _latency(case: Case, rate: int, direction: str, delay: DelayFacts, lateness_max_ns: int) -> TimedLatency:
    return TimedLatency(
        frame_octets=case.frame_octets,
        family=case.family,
        frames_per_second=rate,
        direction="forward" if direction == "forward" else "reverse",
        samples=delay.samples,
        negative=delay.negative,
        minimum_ns=delay.minimum_ns,
        p50_ns=delay.percentile_ns(50_000),
        p99_ns=delay.percentile_ns(99_000),
        p999_ns=delay.percentile_ns(99_900),
        maximum_ns=delay.maximum_ns,
        lateness_max_ns=lateness_max_ns,
    )


def _equipment(subject: Subject) -> Equipment:
    return Equipment() if subject.open_testbed is None else Equipment(open_testbed=subject.open_testbed)


def _ignore(_: Event) -> None:
    """Ignore an event: progress is reported for whole searches."""
