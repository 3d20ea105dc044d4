"""From samples of the gateway's host to what it did in each span of a trial. Pure.

Only differences of two samples are used for what is counted. What a kernel counts never goes backwards, and no CPU is
idle for longer than time goes by; where samples say otherwise, a CPU was taken off line and came back for example, the
figure is left out and that is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import pstdev

from gatemark.dut.base import HostReading, HostSample, InterruptSample, ProcessSample, TelemetryReading
from gatemark.harmless import csv_text
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import PhaseTime
from gatemark.trial.telemetry import (
    AVAILABLE,
    BUSIEST,
    BUSY,
    CONNECTIONS,
    INTERRUPTS,
    MEASURED,
    PHASE_ONE,
    SAMPLE_COLUMNS,
    TOTAL,
    Level,
    SpanFacts,
    SpanName,
    TelemetryFacts,
    TelemetryPoint,
)
from gatemark.units import NANOSECONDS_PER_SECOND

STEPS_MIN = 3
"""A time between two samples has no share unless it is this many times as long as what their times leave open."""
FULL_SPANS: tuple[SpanName, ...] = ("before", "sending")
"""When the table is full in a trial that follows test phase 1: a tear-down is no trial of the engine."""
FAULTS_MAX = 8
"""How many sentences about faults a record keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTimes:
    """When the phases of a trial were, on our monotonic clock."""

    began_ns: int
    """Before the engine was asked."""
    ended_ns: int
    """After it had answered."""
    phases: Sequence[PhaseTime]

    @property
    def before_ns(self) -> int:
        """Time of the phases before frames are sent."""
        names = [phase.phase for phase in self.phases]
        count = names.index("send") if "send" in names else len(names)
        return sum(phase.duration_ns for phase in self.phases[:count])

    @property
    def sending_ns(self) -> int:
        return sum(phase.duration_ns for phase in self.phases if phase.phase == "send")

    @property
    def slack_ns(self) -> int:
        """How much later than `began_ns` the first phase may have begun."""
        return max(0, self.ended_ns - self.began_ns - sum(phase.duration_ns for phase in self.phases))

    def spans(self) -> dict[SpanName, tuple[int, int]]:
        """Return the time that surely belongs to each span."""
        first = self.began_ns + self.before_ns
        last = first + self.sending_ns
        return {
            "before": (self.began_ns, first),
            "sending": (first + self.slack_ns, last),
            "after": (last + self.slack_ns, self.ended_ns),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    """What happened between two samples."""

    begin: HostSample
    end: HostSample
    shares: Mapping[str, float]
    """Percent, by series."""
    interrupts: Mapping[str, float]
    """How often each core that is online took one of the network cards, a second, by series; empty if not known."""

    @property
    def lasted_ns(self) -> int:
        return self.end.at_ns - self.begin.at_ns


def telemetry_facts(
    reading: TelemetryReading | None,
    times: TrialTimes,
    *,
    around: tuple[HostReading | None, HostReading | None] = (None, None),
) -> TelemetryFacts | None:
    """Return what the samples say about a trial; None where none were to be taken.

    `around`: what was read just before and just after the trial where its host is this machine; that is two more
    samples of the CPUs.
    """
    if reading is None:
        return None
    facts = _facts_of(reading, times, around)
    return facts.model_copy(update={"other": telemetry_facts(reading.other, times)})


def _facts_of(
    reading: TelemetryReading, times: TrialTimes, around: tuple[HostReading | None, HostReading | None]
) -> TelemetryFacts:
    """Return what the samples of one host say."""
    samples = _of_trial(reading, times, around)
    if len(samples) < 2:
        reason = reading.reason or "fewer than two samples were taken in the trial"
        return TelemetryFacts(reason=reason, damaged=reading.damaged, samples=len(samples))
    faults: dict[str, None] = dict.fromkeys(_missing(reading, samples))
    intervals = [_interval(before, after, faults) for before, after in pairwise(samples)]
    margin_ns, start_ns = reading.uncertainty_ns, times.began_ns + times.before_ns
    spans: list[SpanFacts] = []
    for name, (begin_ns, end_ns) in times.spans().items():
        inside = [
            interval
            for interval in intervals
            if interval.shares
            and interval.begin.at_ns - margin_ns >= begin_ns
            and interval.end.at_ns + margin_ns <= end_ns
        ]
        at = [
            sample for sample in samples if begin_ns <= sample.at_ns - margin_ns and sample.at_ns + margin_ns <= end_ns
        ]
        spans += _span(name, inside, at, by_core=name == "sending")
    shared = [interval for interval in intervals if interval.shares]
    if shared and not any(span.span == "sending" and span.intervals for span in spans):
        spans += _span("whole", shared, samples, by_core=True)
    told = [sample for sample in samples if _points(sample)]
    return TelemetryFacts(
        samples=len(samples),
        damaged=reading.damaged,
        uncertainty_ns=margin_ns,
        faults=tuple(faults)[:FAULTS_MAX],
        spans=tuple(spans),
        first=_points(told[0]) if told else {},
        last=_points(told[-1]) if told else {},
        points=tuple(_point(samples, intervals, start_ns)),
    )


def _missing(reading: TelemetryReading, samples: Sequence[HostSample]) -> Iterator[str]:
    """Say which processes and commands that the campaign names were not there, or printed no number."""
    running = {process.name for sample in samples for process in sample.processes.values()}
    yield from (f"there was no process {name}" for name in reading.processes if name not in running)
    wrong = dict.fromkeys(name for sample in samples for name, value in sample.printed.items() if value is None)
    yield from (f"command {name} failed or did not print one number" for name in wrong)


def _of_trial(
    reading: TelemetryReading, times: TrialTimes, around: tuple[HostReading | None, HostReading | None]
) -> list[HostSample]:
    """Return the samples of a trial in order. Those before it may belong to what was done with the gateway before."""
    before, after = around
    samples = [sample for sample in reading.samples if sample.at_ns - reading.uncertainty_ns >= times.began_ns]
    if not reading.samples:
        return []
    if before is not None and before.cpus:
        samples.insert(0, _as_sample(before))
    if after is not None and after.cpus:
        samples = [sample for sample in samples if sample.at_ns <= after.at_ns] + [_as_sample(after)]
    return samples


def _as_sample(reading: HostReading) -> HostSample:
    idle = {cpu: times.idle_ns for cpu, times in reading.cpus.items()}
    return HostSample(at_ns=reading.at_ns, error_ns=reading.step_ns, cpus=idle)


def _interval(begin: HostSample, end: HostSample, faults: dict[str, None]) -> _Interval:
    lasted_ns, error_ns = end.at_ns - begin.at_ns, begin.error_ns + end.error_ns
    shares: dict[str, float] = {}
    if lasted_ns < STEPS_MIN * error_ns:
        return _Interval(begin=begin, end=end, shares=shares, interrupts={})
    for cpu in sorted(begin.cpus.keys() | end.cpus.keys()):
        if cpu not in begin.cpus or cpu not in end.cpus:
            faults[f"CPU {cpu} was not online all the time"] = None
            continue
        idle_ns = end.cpus[cpu] - begin.cpus[cpu]
        if not -error_ns <= idle_ns <= lasted_ns + error_ns:
            faults[f"the idle time of CPU {cpu} ran backwards or faster than time"] = None
            continue
        shares[f"cpu.{cpu}"] = 100 * min(1.0, max(0.0, 1 - idle_ns / lasted_ns))
    shares |= _of_processes(begin.processes, end.processes, lasted_ns, faults)
    taken = _interrupts(begin.interrupts, end.interrupts, faults)
    interrupts = {f"{INTERRUPTS}{cpu}": count * NANOSECONDS_PER_SECOND / lasted_ns for cpu, count in taken.items()}
    return _Interval(begin=begin, end=end, shares=shares, interrupts=interrupts)


def _interrupts(begin: InterruptSample | None, end: InterruptSample | None, faults: dict[str, None]) -> dict[int, int]:
    """Return how many interrupts of the network cards each core took; none unless that of all cores is known."""
    if begin is None or end is None:
        if begin is not end:
            faults["some samples do not say which cores took interrupts of the network cards"] = None
        return {}
    if set(begin.cpus) != set(end.cpus) or begin.taken.keys() != end.taken.keys():
        faults["a CPU or an interrupt of the network cards came or went: which cores took them is not known"] = None
        return {}
    taken = dict.fromkeys(sorted(end.cpus), 0)
    for number, after in end.taken.items():
        before = begin.taken[number]
        if any(after.get(cpu, 0) < count for cpu, count in before.items()):
            faults["a count of interrupts of the network cards went backwards: which cores took them is not known"] = (
                None
            )
            return {}
        for cpu, count in after.items():
            taken[cpu] += count - before.get(cpu, 0)
    return taken


def _of_processes(
    begin: Mapping[int, ProcessSample], end: Mapping[int, ProcessSample], lasted_ns: int, faults: dict[str, None]
) -> dict[str, float]:
    """Return the CPU time of the processes of each name, as a share of one core."""
    ran: dict[str, int] = {}
    for name in sorted({process.name for process in (*begin.values(), *end.values())}):
        before = {pid: process.ran_ns for pid, process in begin.items() if process.name == name}
        after = {pid: process.ran_ns for pid, process in end.items() if process.name == name}
        if before.keys() != after.keys():
            if before and after:
                faults[f"processes {name} ended or were started"] = None
        elif any(after[pid] < ran_ns for pid, ran_ns in before.items()):
            faults[f"the CPU time of a process {name} went backwards"] = None
        else:
            ran[name] = sum(after.values()) - sum(before.values())
    return {f"process.{name}.cpu": 100 * ran_ns / lasted_ns for name, ran_ns in ran.items()}


def _points(sample: HostSample) -> dict[str, float]:
    """Return what one sample says by itself."""
    points: dict[str, float | None] = {
        AVAILABLE: sample.available_kilobytes,
        TOTAL: sample.memory_kilobytes,
        CONNECTIONS: sample.connections,
        **{f"command.{name}": value for name, value in sample.printed.items()},
    }
    for process in sample.processes.values():
        if process.resident_kilobytes is not None:
            name = f"process.{process.name}.memory"
            points[name] = (points.get(name) or 0) + process.resident_kilobytes
    return {name: value for name, value in points.items() if value is not None}


def _span(
    name: SpanName, intervals: Sequence[_Interval], samples: Sequence[HostSample], *, by_core: bool
) -> Iterator[SpanFacts]:
    """Yield a span; nothing if no sample lies in it."""
    shares = _levels(((interval.shares, interval.lasted_ns) for interval in intervals), digits=2)
    levels = _levels((({k: v for k, v in _points(sample).items() if k != TOTAL}, 1) for sample in samples), digits=3)
    cores = {series: level for series, level in shares.items() if series.startswith("cpu.")}
    others = {series: level for series, level in shares.items() if series not in cores}
    busiest = max(cores, key=lambda series: (cores[series].mean, series), default=None)
    if busiest is not None:
        means = (
            ({BUSY: sum(of) / len(of)}, interval.lasted_ns)
            for interval in intervals
            if (of := [share for series, share in interval.shares.items() if series in cores])
        )
        others |= {**_levels(means, digits=2), BUSIEST: cores[busiest]}
    if not shares and not levels:
        return
    errors_ns = (intervals[0].begin.error_ns + intervals[-1].end.error_ns) if intervals else 0
    yield SpanFacts(
        span=name,
        covered_ns=sum(interval.lasted_ns for interval in intervals),
        intervals=len(intervals),
        error_ns=errors_ns,
        busiest_cpu=None if busiest is None else int(busiest.removeprefix("cpu.")),
        levels={**others, **({**cores, **_of_cards(intervals)} if by_core else {}), **levels},
    )


def _of_cards(intervals: Sequence[_Interval]) -> dict[str, Level]:
    """Return the interrupts of a span by core; none unless they are known all the time: no core's share would be."""
    known = {frozenset(interval.interrupts) for interval in intervals}
    if len(known) != 1:
        return {}
    return _levels(((interval.interrupts, interval.lasted_ns) for interval in intervals), digits=3)


def _levels(weighted: Iterable[tuple[Mapping[str, float], int]], *, digits: int) -> dict[str, Level]:
    """Return the level of each series; the mean is weighted with time."""
    values: dict[str, list[tuple[float, int]]] = {}
    for point, weight in weighted:
        for series, value in point.items():
            values.setdefault(series, []).append((value, weight))
    return {
        series: Level(
            samples=len(pairs),
            mean=round(sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs), digits),
            sd=round(pstdev([value for value, _ in pairs]), digits) if len(pairs) > 1 else None,
            minimum=round(min(value for value, _ in pairs), digits),
            maximum=round(max(value for value, _ in pairs), digits),
        )
        for series, pairs in values.items()
    }


def _point(samples: Sequence[HostSample], intervals: Sequence[_Interval], start_ns: int) -> Iterator[TelemetryPoint]:
    """Yield each sample with the shares of the time since the one before."""
    shares = [{}, *({**interval.shares, **interval.interrupts} for interval in intervals)]
    for sample, since in zip(samples, shares, strict=True):
        values = {series: round(value, 3) for series, value in {**since, **_points(sample)}.items()}
        yield TelemetryPoint(at_ns=sample.at_ns - start_ns, values=values)


def memory_around_filling(record: TrialRecord) -> tuple[float, float] | None:
    """Return the memory that the host had available with an empty table and with all connections in it, kB.

    None if the trial did not establish all of its connections, or if no sample surely lies on both sides of that.
    """
    first = record.filling
    if first is None or first.connections is None or first.connections.established != record.order.connections:
        return None
    sampled = list(record.telemetries())
    filling = next((facts for phase, facts in reversed(sampled) if phase == PHASE_ONE), None)
    if filling is None:
        return None
    later = [facts.level(span, AVAILABLE) for phase, facts in sampled if phase == MEASURED for span in FULL_SPANS]
    empty = filling.level("before", AVAILABLE)
    full = next((level for level in (filling.level("after", AVAILABLE), *later) if level is not None), None)
    return None if empty is None or full is None else (empty.mean, full.mean)


def samples_text(record: TrialRecord) -> str:
    """Return the file with the samples of a trial: a heading, then a line for each. Empty if it has none."""
    points = [
        (number, phase, point.at_ns, {f"{begin}{name}": value for name, value in point.values.items()})
        for number, (phase, facts) in enumerate(record.telemetries(), start=1)
        for begin, of_host in facts.of_hosts
        for point in of_host.points
    ]
    series = sorted({name for *_, values in points for name in values})
    if not series:
        return ""
    rows: list[tuple[object, ...]] = [(*SAMPLE_COLUMNS, *series)]
    for number, phase, at_ns, values in points:
        at_s = f"{at_ns / NANOSECONDS_PER_SECOND:.3f}"
        rows.append((number, phase, at_s, *(values.get(name, "") for name in series)))
    return csv_text(rows)
