"""What the gateway's host did: a section with tables of its samples, and a plot over time for each run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.plot_style import BLUE, GRID, LINES, SERIES, Drawing, add_legend
from gatemark.report.table import Column, Plot, Section, Table, plot
from gatemark.report.words import DASH, format_count, run_name
from gatemark.results.document import ResultDocument
from gatemark.results.run import RunResult
from gatemark.trial.telemetry import (
    AVAILABLE,
    BUSIEST,
    BUSY,
    CONNECTIONS,
    INTERRUPTS,
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


def telemetry_section(part: ReportPart) -> Section | None:
    """Return what was sampled, as tables and sentences; None if the host was not to be sampled."""
    if part.document.telemetry is None:
        return None
    runs = {run.number: run for run in part.document.runs}
    shown = [
        (runs[trial.run], trial, phase, facts)
        for trial in sampled_trials(part.document, part.trials)
        for phase, facts in trial.telemetry
        if facts.reason is None
    ]
    tables = (_busy_table(shown), _interrupt_table(shown), _memory_table(shown), _other_table(shown))
    return Section(
        title=TITLE,
        lead=tuple(_lead(part)),
        tables=tuple(table for table in tables if table.rows),
        notes=tuple(_notes(part, shown)),
    )


Shown = tuple[RunResult, TrialRow, str, TelemetryFacts]
WHICH = (
    Column(heading="run", numeric=False),
    Column(heading="phase", numeric=False),
    Column(heading="trial"),
    Column(heading="load"),
)


def _which(row: Shown) -> tuple[str, ...]:
    run, trial, phase, _ = row
    return run_name(run), phase, str(trial.trial_number), format_count(trial.frames_per_second)


def _busy_table(shown: Sequence[Shown]) -> Table:
    columns = (
        *WHICH,
        Column(heading="before,\nmean"),
        Column(heading="all cores:\nmean", strong=True),
        Column(heading="sd"),
        Column(heading="max."),
        Column(heading="busiest core"),
        Column(heading="mean", strong=True),
        Column(heading="sd"),
        Column(heading="max."),
        Column(heading="after,\nmean"),
        Column(heading="time covered"),
        Column(heading="each core, mean", numeric=False),
    )
    rows = []
    for row in shown:
        facts = row[3]
        name = _shown_span(facts)
        span = facts.span(name)
        if span is None or BUSY not in span.levels:
            continue
        covered = format_duration_ns(span.covered_ns) + ("" if name == "sending" else "\nwaits included")
        rows.append(
            (
                *_which(row),
                _mean(facts.level("before", BUSY)),
                *_cells(span.levels[BUSY]),
                "" if span.busiest_cpu is None else str(span.busiest_cpu),
                *_cells(span.levels[BUSIEST]),
                _mean(facts.level("after", BUSY)),
                covered,
                _by_core(span.levels),
            )
        )
    return Table(title="Busy share of its cores while frames were sent, %", columns=columns, rows=tuple(rows), names=4)


def _interrupt_table(shown: Sequence[Shown]) -> Table:
    columns = (
        *WHICH,
        Column(heading="of all cores,\na second", strong=True),
        Column(heading="cores that\ntook any"),
        Column(heading="share of each core, %", numeric=False),
    )
    rows = []
    for row in shown:
        rates = _interrupt_rates(row[3])
        total = sum(rates.values())
        if not rates:
            continue
        taking = f"{sum(rate > 0 for rate in rates.values())} of {len(rates)}"
        shares = {cpu: f"{100 * rate / total:.1f}" for cpu, rate in rates.items()} if total else {}
        rows.append((*_which(row), _value(total), taking, _listed(shares) or DASH))
    title = "Interrupts of its network cards while frames were sent"
    return Table(title=title, columns=columns, rows=tuple(rows), names=4)


def _memory_table(shown: Sequence[Shown]) -> Table:
    columns = (
        *WHICH,
        Column(heading="memory available,\nfirst sample, kB"),
        Column(heading="lowest while\nsending, kB"),
        Column(heading="last\nsample, kB"),
        Column(heading="connections,\nfirst sample"),
        Column(heading="highest while\nsending"),
        Column(heading="last\nsample"),
    )
    rows = []
    for row in shown:
        facts = row[3]
        span = _shown_span(facts)
        available, connections = facts.level(span, AVAILABLE), facts.level(span, CONNECTIONS)
        if AVAILABLE not in facts.first and not _counts(facts):
            continue
        rows.append(
            (
                *_which(row),
                _value(facts.first.get(AVAILABLE)),
                _value(None if available is None else available.minimum),
                _value(facts.last.get(AVAILABLE)),
                *(
                    (
                        _value(facts.first.get(CONNECTIONS)),
                        _value(None if connections is None else connections.maximum),
                        _value(facts.last.get(CONNECTIONS)),
                    )
                    if _counts(facts)
                    else (DASH, DASH, DASH)
                ),
            )
        )
    title = "Its memory, and connections that its kernel tracks"
    return Table(title=title, columns=columns, rows=tuple(rows), names=4)


def _other_table(shown: Sequence[Shown]) -> Table:
    columns = (
        *WHICH,
        Column(heading="what", numeric=False),
        Column(heading="unit", numeric=False),
        Column(heading="before,\nmean"),
        Column(heading="mean", strong=True),
        Column(heading="sd"),
        Column(heading="max."),
        Column(heading="after,\nmean"),
    )
    rows = []
    for row in shown:
        facts = row[3]
        name = _shown_span(facts)
        span = facts.span(name)
        for series, level in {} if span is None else span.levels.items():
            if not series.startswith(("process.", "command.")):
                continue
            before, after = facts.level("before", series), facts.level("after", series)
            cells = (words_of(series), unit_of(series), _mean(before), *_cells(level), _mean(after))
            rows.append((*_which(row), *cells))
    title = "Processes and commands that the campaign names"
    return Table(title=title, columns=columns, rows=tuple(rows), names=5)


def _lead(part: ReportPart) -> Iterator[str]:
    """Sentences above the tables: what was done, what it cost."""
    sampled = part.document.telemetry
    assert sampled is not None, "only where the host was sampled"
    yield (
        f"A program at the gateway's host took samples while {format_count(sampled.sampled)} of"
        f" {format_count(sampled.trials)} trials ran (each test phase is one); in {format_count(sampled.sending)} of"
        " them some time between two samples lies in the sending time as a whole. Shown is, for each run, the trial"
        " with the highest load that passed. All samples are in the folder telemetry."
    )
    sampling = None if part.provenance is None else part.provenance.last.sampling
    if sampling is None:
        yield "What sampling costs the host was not measured."
    elif sampling.cpu_ns is None or sampling.share_of_core is None:
        yield (
            f"A sample was due each {format_duration_ns(sampling.interval_ns)}. What one costs is not known: the host"
            " did not tell."
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
            "Busy is all time in which a core was not idle and did not wait for a disk, whichever program ran."
            f" The samples may lie up to {format_duration_ns(max(errors))} beside their place in the trial; time"
            " between two of them counts for a phase only if it lies in it for sure."
        )
        spans = [span for *_, facts in shown if (span := facts.span(_shown_span(facts))) is not None and span.intervals]
        if spans:
            of_mean = max(span.error_ns / span.covered_ns for span in spans)
            of_one = max(span.error_ns * span.intervals / span.covered_ns for span in spans)
            yield (
                f"The steps in which the host counts time leave a mean open by up to {100 * of_mean:.2g} %, and by up"
                f" to {100 * of_one:.2g} % the share between two samples, of which maximum and standard deviation are."
            )
        if any(_shown_span(facts) == "whole" for *_, facts in shown):
            yield (
                "Where the time says “waits included”, no two samples lie in the sending time: the share is of the"
                " whole trial, not of the time in which frames were sent. Longer trials, or a shorter"
                " gateway.telemetry.interval, tell that."
            )
        if not any(facts.level(_shown_span(facts), BUSY) for *_, facts in shown):
            yield "Not sampled: busy shares. The host has no /proc/stat, or its cores are not the gateway's alone."
        if not any(AVAILABLE in facts.first for *_, facts in shown):
            yield "Not sampled: memory. The host does not tell it."
        if not any(_counts(facts) for *_, facts in shown) and part.is_stateful:
            yield "Not sampled: connections. The host's kernel does not count any."
        yield from _interrupt_notes(part, shown)
    if sampled.damaged:
        yield (
            f"{format_count(sampled.damaged)} samples were left out: torn, out of order, or so slow that they have no"
            " one time."
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
            f"fewer than {INTERRUPTS_MIN} interrupts of the network cards a second, so they do not tell which cores"
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
        lines = [line for line in part.samples.get(trial.trial_number, ()) if line["number"] == last]
        span = facts.span(_shown_span(facts))
        drawing = None if drawn == PLOTS_MAX else busy_plot(trial, lines, None if span is None else span.busiest_cpu)
        caption = (
            f"Busy share over time in trial {trial.trial_number}. {run_name(runs[trial.run])}. Grey: frames were sent;"
            " each step is the mean between two samples."
        )
        shown = plot(drawing, caption)
        if shown is not None:
            drawn += 1
            yield shown


def busy_plot(trial: TrialRow, lines: Sequence[Mapping[str, str]], busiest: int | None) -> Drawing | None:
    """Draw the busy share of all cores and of the busiest one over time; None if there are too few samples."""
    cores = sorted({name for line in lines for name, value in line.items() if name.startswith("cpu.") and value})
    times = [float(line["at_s"]) for line in lines]
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


def _cells(level: Level) -> tuple[str, str, str]:
    return _value(level.mean), _value(level.sd), _value(level.maximum)


def _mean(level: Level | None) -> str:
    return _value(None if level is None else level.mean)


def _value(value: float | None) -> str:
    """A figure with one digit after the point where it is small; a dash where it is not known."""
    if value is None:
        return DASH
    return f"{value:.1f}" if abs(value) < 1000 and value % 1 else format_count(round(value))
