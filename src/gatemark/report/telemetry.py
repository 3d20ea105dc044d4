"""What the gateway's host did: a section with tables of its samples, and a plot over time for each run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.plot_style import BLUE, GRID, LINES, SERIES, Drawing, add_legend
from gatemark.report.table import Column, Plot, Section, plot, table_of
from gatemark.report.words import DASH, format_count, run_name
from gatemark.results.document import ResultDocument
from gatemark.results.run import RunResult
from gatemark.trial.telemetry import (
    AT,
    AVAILABLE,
    BUSIEST,
    BUSY,
    CONNECTIONS,
    INTERRUPTS,
    NUMBER,
    OTHER,
    Level,
    SpanName,
    TelemetryFacts,
    unit_of,
    words_of,
)
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "What the gateway's host did"
POINTS_MIN = 4
"""Fewer samples are no picture."""
PLOTS_MAX = 6
CORES_IN_LINE = 8
FEW_SHARE = 100
"""A core that took less than this part of an even share of the interrupts took next to none."""
INTERRUPTS_MIN = 100
"""Fewer a second of all cores together say nothing of where frames are forwarded."""


def sampled_trials(document: ResultDocument, trials: Sequence[TrialRow]) -> tuple[TrialRow, ...]:
    """Return the trial of each run whose samples are shown: of those that passed at the highest load, the one with most
    samples; where none passed, of all valid ones.
    """
    shown = []
    for run in document.runs:
        sampled = [
            trial
            for trial in trials
            if trial.run == run.number
            and trial.outcome in ("passed", "failed")
            and any(facts.reason is None for _, facts in trial.telemetry)
        ]
        of_run = [trial for trial in sampled if trial.outcome == "passed"] or sampled
        if of_run:
            shown.append(max(of_run, key=lambda trial: (trial.frames_per_second, _samples(trial), trial.trial_number)))
    return tuple(shown)


class Shown(NamedTuple):
    """A trial whose samples are shown, or a test phase of it."""

    run: RunResult
    trial: TrialRow
    phase: str
    facts: TelemetryFacts

    @property
    def levels(self) -> Mapping[str, Level]:
        """Series while frames were sent; none where no time between samples lies in it."""
        span = self.facts.span(_shown_span(self.facts))
        return {} if span is None else span.levels


class Other(NamedTuple):
    """A series of a process or command in a trial."""

    shown: Shown
    series: str

    @property
    def level(self) -> Level | None:
        """The series while frames were sent."""
        return self.shown.levels.get(self.series)


def _of_hosts(trial: TrialRow) -> Iterator[tuple[str, TelemetryFacts]]:
    """Yield the samples of each phase; of two gateways in a row, those of the other host behind the first one's."""
    for phase, facts in trial.telemetry:
        yield phase, facts
        if facts.other is not None:
            yield f"{phase},\nthe other gateway", facts.other


def telemetry_section(part: ReportPart) -> Section | None:
    """Return what was sampled, as tables and sentences; None if the host was not to be sampled."""
    if part.document.telemetry is None:
        return None
    runs = {run.number: run for run in part.document.runs}
    shown = [
        Shown(runs[trial.run], trial, phase, facts)
        for trial in sampled_trials(part.document, part.trials)
        for phase, facts in _of_hosts(trial)
        if facts.reason is None
    ]
    return Section(
        title=TITLE,
        lead=tuple(_lead(part)),
        tables=(
            table_of(
                "Busy share of its cores, %",
                BUSY_COLUMNS,
                (row for row in shown if BUSY in row.levels),
            ),
            table_of(
                "Interrupts of its network cards while frames were sent",
                INTERRUPT_COLUMNS,
                (row for row in shown if _interrupt_rates(row.facts)),
            ),
            table_of(
                "Its memory, and connections that its kernel tracks",
                MEMORY_COLUMNS,
                (row for row in shown if AVAILABLE in row.facts.first or _counts(row.facts)),
            ),
            table_of(
                "Processes and commands that the campaign names",
                OTHER_COLUMNS,
                (Other(row, name) for row in shown for name in row.levels if name.startswith(("process.", "command."))),
            ),
        ),
        notes=tuple(_notes(part, shown)),
    )


def _lead(part: ReportPart) -> Iterator[str]:
    """Sentences above the tables: what was done, what it cost."""
    sampled = part.document.telemetry
    assert sampled is not None, "only where the host was sampled"
    yield (
        f"A program on the gateway's host took samples while {format_count(sampled.sampled)} of"
        f" {format_count(sampled.trials)} trials ran (each test phase is one); in {format_count(sampled.sending)} of"
        " them two samples lie within the sending time. For each run, the table shows, of the sampled"
        " trials, the one with the highest load that passed. All samples are in the folder telemetry."
    )
    sampling = None if part.provenance is None else part.provenance.last.sampling
    if sampling is None:
        yield "The cost of sampling to the host was not measured."
    elif sampling.cpu_ns is None or sampling.share_of_core is None:
        yield (
            f"A sample was due each {format_duration_ns(sampling.interval_ns)}. The cost of a sample is not known: the"
            " host did not report it."
        )
    else:
        yield (
            f"A sample was due each {format_duration_ns(sampling.interval_ns)}, and takes"
            f" {sampling.cpu_ns / 10**6:.2g} ms of CPU time (the sampler and all that it starts; mean of"
            f" {sampling.samples}, measured without frames): {100 * sampling.share_of_core:.2g} % of one core. It is"
            " part of the busy shares."
        )


def _notes(part: ReportPart, shown: Sequence[Shown]) -> Iterator[str]:
    """Sentences below the tables: what is not known."""
    sampled = part.document.telemetry
    assert sampled is not None, "only where the host was sampled"
    if shown:
        errors = [facts.uncertainty_ns for *_, facts in shown]
        yield (
            "Busy is all time in which a core was not idle and did not wait for a disk, whichever program ran. The"
            f" samples may be off by up to {format_duration_ns(max(errors))} from their place in the trial; time"
            " between two of them counts for a phase only if it certainly lies in it."
        )
        spans = [span for *_, facts in shown if (span := facts.span(_shown_span(facts))) is not None and span.intervals]
        if spans:
            of_mean = max(span.error_ns / span.covered_ns for span in spans)
            of_one = max(span.error_ns * span.intervals / span.covered_ns for span in spans)
            yield (
                f"The steps in which the host counts time make a mean uncertain by up to {100 * of_mean:.2g} %, and by"
                f" up to {100 * of_one:.2g} % the share between two samples, from which maximum and standard deviation"
                " are computed."
            )
        if any(_shown_span(facts) == "whole" for *_, facts in shown):
            yield (
                "Where the time says “waits included”, no two samples lie in the sending time: the share is of the"
                " whole trial, not of the time in which frames were sent. Longer trials, or a shorter"
                " gateway.telemetry.interval, give the share of that time."
            )
        if not any(facts.level(_shown_span(facts), BUSY) for *_, facts in shown):
            yield "Not sampled: busy shares. The host has no /proc/stat, or its cores are not the gateway's alone."
        if not any(AVAILABLE in facts.first for *_, facts in shown):
            yield "Not sampled: memory. The host does not report it."
        if not any(_counts(facts) for *_, facts in shown) and part.is_stateful:
            yield "Not sampled: connections. The host's kernel does not count any."
        yield from _interrupt_notes(part, shown)
    if sampled.damaged:
        yield (
            f"{format_count(sampled.damaged)} samples were left out: torn, out of order, or too slow to have a single"
            " time."
        )
    for reason in sampled.reasons:
        yield f"In {format_count(reason.trials)} trials: {reason.reason}."


def _interrupt_notes(part: ReportPart, shown: Sequence[Shown]) -> Iterator[str]:
    """Say where only some of the cores took interrupts; nothing where the host has no network cards of the gateway."""
    if not any(_interrupt_rates(facts) for *_, facts in shown):
        host = None if part.provenance is None else part.provenance.last.gateway_host
        if host is not None and any(card.interrupts for card in host.interfaces):
            yield "Not sampled: which cores take the interrupts of the network cards."
        return
    said: dict[str, list[str]] = {}
    for _, trial, _, facts in shown:
        for sentence in _interrupt_findings(facts):
            said.setdefault(sentence, []).append(str(trial.trial_number))
    for sentence, trials in said.items():
        yield f"Trial{'s' if len(trials) > 1 else ''} {', '.join(trials)}: {sentence}"
    yield (
        "A core on whose queue frames arrive forwards them, unless the kernel hands them to another one (RPS). A core"
        " that is busy all the time polls its queue and takes few interrupts. All network cards of the host count, that"
        " of the connection to it as well."
    )


def _interrupt_findings(facts: TelemetryFacts) -> Iterator[str]:
    """Yield what the interrupts of a trial say of its cores: of those whose busy share is sampled, if any is."""
    rates = _interrupt_rates(facts)
    total = sum(rates.values())
    if not rates:
        return
    if total < INTERRUPTS_MIN:
        yield (
            f"fewer than {INTERRUPTS_MIN} interrupts of the network cards a second, so they do not show which cores"
            " forward frames. Cards that are polled take none."
        )
        return
    span = facts.span(_shown_span(facts))
    busy = {} if span is None else _by_cpu(span.levels, "cpu.")
    cores = {cpu: rate for cpu, rate in rates.items() if cpu in busy} or rates
    few = [cpu for cpu, rate in cores.items() if rate * len(cores) * FEW_SHARE < sum(cores.values())]
    if few:
        of_few = [busy[cpu].mean for cpu in few if cpu in busy]
        how_busy = f" (busy share in the mean: {sum(of_few) / len(of_few):.0f} %)" if of_few else ""
        yield (
            f"warning: only {len(cores) - len(few)} of {len(cores)} cores took interrupts of the network cards;"
            f" {_cores_words(few)} took none or next to none{how_busy}."
        )
    others = [cpu for cpu in rates if cpu not in cores and rates[cpu] * len(rates) * FEW_SHARE >= total]
    if others:
        share = 100 * sum(rates[cpu] for cpu in others) / total
        yield (
            f"warning: {share:.0f} % of the interrupts of the network cards went to cores whose busy share is not"
            f" sampled (gateway.telemetry.cpus): {_cores_words(others)}."
        )


def _interrupt_rates(facts: TelemetryFacts) -> dict[int, float]:
    """Return how many interrupts of the network cards each core took a second; empty if it is not known."""
    span = facts.span(_shown_span(facts))
    levels = {} if span is None else _by_cpu(span.levels, INTERRUPTS)
    return {cpu: level.mean for cpu, level in levels.items()}


def _cores_words(cores: Sequence[int]) -> str:
    """Name cores, those in a row by the first and the last."""
    starts, ends = [cpu for cpu in cores if cpu - 1 not in cores], [cpu for cpu in cores if cpu + 1 not in cores]
    spans = [str(first) if first == last else f"{first} to {last}" for first, last in zip(starts, ends, strict=True)]
    return f"core{'s' if len(cores) > 1 else ''} {', '.join(spans)}"


def telemetry_plots(part: ReportPart) -> Iterator[Plot]:
    """Yield busy shares over time in the trials that the tables show."""
    runs = {run.number: run for run in part.document.runs}
    drawn = 0
    for trial in sampled_trials(part.document, part.trials):
        last, (_, facts) = str(len(trial.telemetry)), trial.telemetry[-1]
        lines = [
            line
            for line in part.samples.get(trial.trial_number, ())
            if line[NUMBER] == last and not any(value for name, value in line.items() if name.startswith(OTHER))
        ]
        span = facts.span(_shown_span(facts))
        drawing = None if drawn == PLOTS_MAX else busy_plot(trial, lines, None if span is None else span.busiest_cpu)
        caption = (
            f"Busy share over time in trial {trial.trial_number}. {run_name(runs[trial.run])}. Grey: frames were sent;"
            " each step is the mean between two samples."
        )
        drawn += drawing is not None
        yield from plot(drawing, caption)


def busy_plot(trial: TrialRow, lines: Sequence[Mapping[str, str]], busiest: int | None) -> Drawing | None:
    """Draw the busy share of all cores and of the busiest one over time; None if there are too few samples."""
    cores = sorted({name for line in lines for name, value in line.items() if name.startswith("cpu.") and value})
    times = [float(line[AT]) for line in lines]
    if len(times) < POINTS_MIN or not cores:
        return None

    def mean(line: Mapping[str, str]) -> float:
        shares = [float(line[core]) for core in cores if line[core]]
        return sum(shares) / len(shares) if shares else float("nan")

    def draw(axes: Axes) -> None:
        axes.axvspan(0, trial.duration_ns / NANOSECONDS_PER_SECOND, color=GRID, alpha=0.6, linewidth=0)
        label = "the core" if len(cores) == 1 else f"mean of {len(cores)} cores"
        axes.stairs([mean(line) for line in lines[1:]], times, baseline=None, color=BLUE, linewidth=1.6, label=label)
        name = f"cpu.{busiest}"
        if len(cores) > 1 and name in cores:
            values = [float(line[name]) if line[name] else float("nan") for line in lines[1:]]
            axes.stairs(
                values, times, baseline=None, color=SERIES[1][0], linestyle=LINES[1], linewidth=1.4,
                label=f"busiest core, {busiest}",
            )  # fmt: skip
        axes.set_ylim(0, 105)
        axes.set_xlabel("time since the start of sending, s")
        axes.set_ylabel("busy share, %")
        add_legend(axes)

    return Drawing(name="busy share of the gateway's host over time", draw=draw, height=2.6)


def _shown_span(facts: TelemetryFacts) -> SpanName:
    """The sending time, or the whole trial where no time between samples lies in that."""
    return "sending" if facts.span("whole") is None else "whole"


def _samples(trial: TrialRow) -> int:
    return sum(facts.samples for _, facts in trial.telemetry)


def _counts(facts: TelemetryFacts) -> bool:
    """Whether the kernel tracked any connection."""
    levels = [span.levels[CONNECTIONS].maximum for span in facts.spans if CONNECTIONS in span.levels]
    return max([*levels, facts.first.get(CONNECTIONS, 0), facts.last.get(CONNECTIONS, 0)]) > 0


def _by_core(levels: Mapping[str, Level]) -> str:
    return _listed({cpu: f"{level.mean:.0f}" for cpu, level in _by_cpu(levels, "cpu.").items()})


def _by_cpu(levels: Mapping[str, Level], begin: str) -> dict[int, Level]:
    """Return the series of single cores whose names begin with something, in the order of the cores."""
    return dict(
        sorted((int(name.removeprefix(begin)), level) for name, level in levels.items() if name.startswith(begin))
    )


def _listed(cells: Mapping[int, str]) -> str:
    """Write something of each core, some cores in a line."""
    words = [f"{cpu}: {cell}" for cpu, cell in cells.items()]
    return "\n".join(", ".join(words[at : at + CORES_IN_LINE]) for at in range(0, len(words), CORES_IN_LINE))


def _mean(level: Level | None) -> str:
    return _value(None if level is None else level.mean)


def _value(value: float | None) -> str:
    """A figure with one digit after the point where it is small; a dash where it is not known."""
    if value is None:
        return DASH
    return f"{value:.1f}" if abs(value) < 1000 and value % 1 else format_count(round(value))


def _taking(row: Shown) -> str:
    rates = _interrupt_rates(row.facts)
    return f"{sum(rate > 0 for rate in rates.values())} of {len(rates)}"


def _shares(row: Shown) -> str:
    rates = _interrupt_rates(row.facts)
    total = sum(rates.values())
    return _listed({cpu: f"{100 * rate / total:.1f}" for cpu, rate in rates.items()}) if total else DASH


def _busiest(row: Shown) -> str:
    span = row.facts.span(_shown_span(row.facts))
    return "" if span is None or span.busiest_cpu is None else str(span.busiest_cpu)


def _level(series: str) -> Callable[[Shown], Level | None]:
    return lambda row: row.levels.get(series)


def _busy(row: Shown) -> Other:
    return Other(row, BUSY)


def _extreme(row: Shown, series: str, name: Literal["minimum", "maximum"]) -> str:
    level = row.levels.get(series)
    return _value(None if level is None else getattr(level, name))


def _first(series: str) -> Callable[[Shown], str]:
    return lambda row: _value(row.facts.first.get(series))


def _last(series: str) -> Callable[[Shown], str]:
    return lambda row: _value(row.facts.last.get(series))


def _if_counted(cell: Callable[[Shown], str]) -> Callable[[Shown], str]:
    return lambda row: cell(row) if _counts(row.facts) else DASH


def _covered(row: Shown) -> str:
    span = row.facts.span(_shown_span(row.facts))
    covered_ns, waits = (0, "") if span is None else (span.covered_ns, "\nwaits included" * (span.span == "whole"))
    return f"{format_duration_ns(covered_ns)}{waits}"


WHICH: tuple[Column[Shown], ...] = (
    Column("run", lambda row: run_name(row.run), names=True, numeric=False),
    Column("phase", lambda row: row.phase, names=True, numeric=False),
    Column("trial", lambda row: str(row.trial.trial_number), names=True),
    Column("load", lambda row: format_count(row.trial.frames_per_second), names=True),
)
MEAN: Column[Level] = Column("mean", lambda level: _value(level.mean), strong=True)
DEVIATION: tuple[Column[Level], ...] = (
    Column("sd", lambda level: _value(level.sd)),
    Column("max.", lambda level: _value(level.maximum)),
)
BEFORE: Column[Other] = Column("before,\nmean", lambda row: _mean(row.shown.facts.level("before", row.series)))
AFTER: Column[Other] = Column("after,\nmean", lambda row: _mean(row.shown.facts.level("after", row.series)))
BUSY_COLUMNS: tuple[Column[Shown], ...] = (
    *WHICH,
    BEFORE.of(_busy),
    replace(MEAN, heading="all cores:\nmean").of(_level(BUSY)),
    *(column.of(_level(BUSY)) for column in DEVIATION),
    Column("busiest core", _busiest),
    *(column.of(_level(BUSIEST)) for column in (MEAN, *DEVIATION)),
    AFTER.of(_busy),
    Column("time covered", _covered),
    Column("each core, mean", lambda row: _by_core(row.levels), numeric=False),
)
INTERRUPT_COLUMNS: tuple[Column[Shown], ...] = (
    *WHICH,
    Column("of all cores,\na second", lambda row: _value(sum(_interrupt_rates(row.facts).values())), strong=True),
    Column("cores that\ntook any", _taking),
    Column("share of each core, %", _shares, numeric=False),
)
MEMORY_COLUMNS: tuple[Column[Shown], ...] = (
    *WHICH,
    Column("memory available,\nfirst sample, kB", _first(AVAILABLE)),
    Column("lowest while\nsending, kB", lambda row: _extreme(row, AVAILABLE, "minimum")),
    Column("last\nsample, kB", _last(AVAILABLE)),
    Column("connections,\nfirst sample", _if_counted(_first(CONNECTIONS))),
    Column("highest while\nsending", _if_counted(lambda row: _extreme(row, CONNECTIONS, "maximum"))),
    Column("last\nsample", _if_counted(_last(CONNECTIONS))),
)
OTHER_COLUMNS: tuple[Column[Other], ...] = (
    *(column.of(attrgetter("shown")) for column in WHICH),
    Column("what", lambda row: words_of(row.series), names=True, numeric=False),
    Column("unit", lambda row: unit_of(row.series), numeric=False),
    BEFORE,
    *(column.of(attrgetter("level")) for column in (MEAN, *DEVIATION)),
    AFTER,
)
