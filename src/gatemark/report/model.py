"""Numbers to statements: what the report says about each run, and the rows of its tables.

A Tester-limited run has no throughput; it has a load up to which the gateway passed and a load at which the Tester
gave up. An invalid trial is neither pass nor fail. Pure: the same folder gives the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gatemark.results.provenance import Provenance
from gatemark.results.schema import LossPart, ResultDocument, RunPart, SummaryPart
from gatemark.units import format_duration_ns

MODES = {
    "router44": ("IPv4 router", "IPv4", "IPv4"),
    "router66": ("IPv6 router", "IPv6", "IPv6"),
    "siit64": ("stateless translation, IPv6 left and IPv4 right", "IPv6", "IPv4"),
    "siit46": ("stateless translation, IPv4 left and IPv6 right", "IPv4", "IPv6"),
}
"""Mode of the gateway: words, family of the left side, family of the right side."""

DASH = "\u2013"
"""En dash: from ... to, and nothing measured."""

PURPOSES = {"search": "search", "confirmation": "confirmation", "loss": "frame loss", "single": "single trial"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionRow:
    """Counts of one direction of one trial, foreground and background together."""

    direction: str
    intended: int
    offered: int
    received: int
    faulty: int
    duplicate: int
    lost: int
    lateness_max_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One trial of the journal as the report shows it."""

    trial_number: int
    run: int
    repetition: int
    attempt: int
    purpose: str
    frames_per_second: int
    duration_ns: int
    outcome: str
    """passed, failed, invalid or cancelled."""
    reasons: tuple[str, ...]
    directions: tuple[DirectionRow, ...]
    lateness_histogram: tuple[tuple[int, int], ...] = ()
    """(upper edge in ns, bursts) over all directions."""
    faults: dict[str, int] = field(default_factory=dict)

    @property
    def lateness_max_ns(self) -> int:
        """Worst lateness of any burst of the trial."""
        return max((row.lateness_max_ns for row in self.directions), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One headline: the figure, what it is, and one sentence that can stand alone (RFC 2544 section 26.1)."""

    run: int
    figure: str
    label: str
    sentence: str
    limited_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPart:
    """Everything that the report of one campaign is made from."""

    document: ResultDocument
    provenance: Provenance | None
    trials: tuple[TrialRow, ...]
    campaign_text: str

    @property
    def statements(self) -> tuple[Statement, ...]:
        """One statement per run."""
        return tuple(statement(self.document, run, self.medium) for run in self.document.runs)

    @property
    def headlines(self) -> tuple[Statement, ...]:
        """Statements whose figures are shown large: throughput where it was measured, else frame loss."""
        throughput = {run.number for run in self.throughput_runs()}
        return tuple(said for said in self.statements if not throughput or said.run in throughput)

    @property
    def medium(self) -> str:
        """The medium in words."""
        if self.provenance is None:
            return "medium not recorded"
        rate = self.provenance.line_bits_per_second
        if rate is None:
            return f"no theoretical maximum: {self.provenance.line_rate_source}"
        return f"{format_bits(rate)} ({self.provenance.line_rate_source})"

    def throughput_runs(self) -> tuple[RunPart, ...]:
        """Runs of the throughput procedure."""
        return tuple(run for run in self.document.runs if run.procedure == "throughput")

    def frame_loss_runs(self) -> tuple[RunPart, ...]:
        """Runs of the frame loss procedure."""
        return tuple(run for run in self.document.runs if run.procedure == "frame_loss")

    def faults(self) -> tuple[tuple[str, int], ...]:
        """Frames that came back wrong, by reason, most frequent first."""
        return count_faults(self.trials)


def count_faults(trials: Iterable[TrialRow]) -> tuple[tuple[str, int], ...]:
    """Faults by reason over these trials."""
    total: Counter[str] = Counter()
    for trial in trials:
        total.update(trial.faults)
    return tuple((reason, count) for reason, count in total.most_common() if count)


def lateness_histogram(trials: Iterable[TrialRow]) -> tuple[tuple[int, int], ...]:
    """Bursts by lateness over these trials: (upper edge in ns, bursts), edges increasing."""
    total: Counter[int] = Counter()
    for trial in trials:
        for below_ns, bursts in trial.lateness_histogram:
            total[below_ns] += bursts
    return tuple(sorted(total.items()))


# Words for numbers ----------------------------------------------------------------------------------------------------


def format_count(value: int | float | None) -> str:
    """A count or rate with thousands separated; a dash where nothing was measured."""
    if value is None:
        return DASH
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}"
    return f"{int(value):,}"


def format_bits(bits_per_second: int) -> str:
    """A line rate: 10 Gbit/s."""
    for unit, name in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if bits_per_second >= unit:
            return f"{bits_per_second / unit:g} {name}"
    return f"{bits_per_second} bit/s"


def format_percent(value: float | None) -> str:
    """A percentage with enough digits to tell small losses from none."""
    if value is None:
        return DASH
    if value == 0:
        return "0 %"
    return f"{value:.2g} %" if value < 0.1 else f"{value:.2f} %"


def format_tolerance(text: str) -> str:
    """A loss tolerance: "0" or "1/10000" as 0 % or 0.01 %."""
    return f"{float(Fraction(text) * 100):g} %"


def format_time(nanoseconds: int) -> str:
    """A short time: 35 µs."""
    for unit, name in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.3g} {name}"
    return f"{nanoseconds} ns"


def format_sizes(run: RunPart) -> str:
    """Frame size of both families: "64 / 84"; a family that is not on the path is a dash."""
    sizes = run.frame_sizes
    return f"{sizes.ipv4 or DASH} / {sizes.ipv6 or DASH}"


def name_sizes(run: RunPart) -> str:
    """Frame size with family in words: "64-octet IPv4 / 84-octet IPv6"."""
    named = ((run.frame_sizes.ipv4, "IPv4"), (run.frame_sizes.ipv6, "IPv6"))
    return " / ".join(f"{octets}-octet {family}" for octets, family in named if octets is not None)


def direction_label(run: RunPart) -> str:
    """What a rate of this run is the rate of."""
    if run.direction == "bidirectional":
        return "per direction, bidirectional"
    return f"{run.direction} only"


def format_mix(run: RunPart) -> str:
    """Foreground to background in hundredths: 90:10."""
    share = Fraction(100 * run.mix.m, run.mix.n)
    return f"{float(share):g}:{float(100 - share):g}"


def limit_text(run: RunPart) -> str:
    """What limited the run, in one phrase that says how far the gateway is known to be good."""
    if run.limited_by == "tester":
        return tester_limit(run)
    if run.limited_by == "maximum":
        return "the chosen maximum; the gateway may do more"
    return "gateway"


def tester_limit(run: RunPart) -> str:
    """Words for a run that the Tester ended: never a figure of the gateway."""
    at = format_count(run.tester_limited_at)
    if run.lower_bound is None:
        return f"Tester-limited at {at} (gateway: nothing known)"
    return f"Tester-limited at {at} (gateway ≥ {format_count(run.lower_bound)})"


def rate_cell(run: RunPart) -> str:
    """The rate column of a throughput row: a figure only where one was measured."""
    if run.limited_by == "tester":
        return tester_limit(run)
    if run.rate_per_direction is None:
        return "nothing passed"
    prefix = "≥ " if run.limited_by == "maximum" else ""
    return f"{prefix}{format_count(run.rate_per_direction.median)}"


def bounds_cell(run: RunPart) -> str:
    """Highest load that passed in every repetition and highest that failed in any."""
    return f"{format_count(run.lower_bound)} / {format_count(run.upper_bound)}"


def spread_cell(summary: SummaryPart | None) -> str:
    """1st to 99th percentile."""
    return DASH if summary is None else f"{format_count(summary.p1)} {DASH} {format_count(summary.p99)}"


def goal_text(run: RunPart) -> str:
    """The goal in one phrase."""
    goal = run.goal
    words = [f"loss tolerance {format_tolerance(goal.loss_tolerance)}"]
    if run.procedure == "throughput":
        words.append(f"trials of {format_duration_ns(goal.duration_ns)} confirm the result")
        words.append(f"resolution {format_count(goal.resolution)} frames/s")
    else:
        words.append(f"trials of {format_duration_ns(goal.duration_ns)}")
    return ", ".join(words)


def statement(document: ResultDocument, run: RunPart, medium: str) -> Statement:
    """The headline of one run: rate, size, theoretical limit and protocol in a sentence (RFC 2544 section 26.1)."""
    if run.procedure == "frame_loss":
        return _loss_statement(document, run)
    mix = "" if run.mix.m == run.mix.n else f", foreground:background {format_mix(run)}"
    context = (
        f"UDP, {name_sizes(run)} frames, {MODES[document.gateway.mode][0]}{mix}; {goal_text(run)}; "
        f"{_limit_of_medium(run, medium)}"
    )
    tolerant = Fraction(run.goal.loss_tolerance) > 0
    what = "Rate with loss tolerated (not RFC 2544 throughput)" if tolerant else "Throughput"
    rate = run.rate_per_direction
    label = f"{format_sizes(run)} octets (IPv4 / IPv6), {direction_label(run)}"
    if run.limited_by == "tester":
        sentence = f"{what} not measured, {direction_label(run)}: {tester_limit(run)}, frames/s; {context}."
        return Statement(run=run.number, figure="Tester-limited", label=label, sentence=sentence, limited_by="tester")
    if rate is None:
        floor = format_count(run.goal.minimum)
        sentence = f"{what}: no load from {floor} frames/s up passed, {direction_label(run)}; {context}."
        return Statement(run=run.number, figure="nothing passed", label=label, sentence=sentence, limited_by="gateway")
    both = ""
    if run.rate_sum_of_directions is not None:
        both = f" ({format_count(run.rate_sum_of_directions.median)} frames/s as the sum of both directions)"
    least = "at least " if run.limited_by == "maximum" else ""
    sentence = (
        f"{what}: {least}{format_count(rate.median)} frames/s {direction_label(run)}{both}, median of {rate.count} "
        f"repetition{'s' if rate.count != 1 else ''}, 1st to 99th percentile {spread_cell(rate)}; {context}. "
        f"Limited by {'the chosen maximum load' if run.limited_by == 'maximum' else 'the gateway'}."
    )
    figure = f"{'≥ ' if least else ''}{format_count(rate.median)}"
    return Statement(run=run.number, figure=figure, label=label, sentence=sentence, limited_by=run.limited_by)


def _limit_of_medium(run: RunPart, medium: str) -> str:
    limit = run.theoretical_maximum
    if limit is None:
        return medium
    return (
        f"theoretical maximum {format_count(limit.frames_per_second)} frames/s per direction "
        f"({limit.frame_octets_largest} octets at {format_bits(limit.line_bits_per_second)}, RFC 5180 appendix A.1)"
    )


def _loss_statement(document: ResultDocument, run: RunPart) -> Statement:
    measured = [point for point in run.points if point.directions]
    label = f"frame loss, {format_sizes(run)} octets (IPv4 / IPv6), {direction_label(run)}"
    context = f"UDP, {name_sizes(run)} frames, {MODES[document.gateway.mode][0]}, {direction_label(run)}"
    skipped = len(run.points) - len(measured)
    tail = f" {skipped} of {len(run.points)} loads could not be offered by the Tester." if skipped else ""
    if not measured:
        return Statement(
            run=run.number,
            figure="Tester-limited",
            label=label,
            sentence=f"Frame loss not measured; {context}.{tail}",
            limited_by="tester",
        )
    worst = max(measured, key=lambda point: worst_loss(point.directions))
    clean = [point.frames_per_second for point in measured if worst_loss(point.directions) == 0]
    figure = f"{format_percent(worst_loss(worst.directions))} lost"
    sentence = (
        f"Frame loss: up to {format_percent(worst_loss(worst.directions))} at "
        f"{format_count(worst.frames_per_second)} frames/s; "
        f"{f'none at {format_count(max(clean))} frames/s' if clean else 'no load without loss'}; {context}.{tail}"
    )
    return Statement(run=run.number, figure=figure, label=label, sentence=sentence, limited_by=run.limited_by)


def worst_loss(directions: Sequence[LossPart]) -> float:
    """Largest median loss of the directions, percent."""
    return max((float(part.loss_percent.median) for part in directions), default=0.0)
