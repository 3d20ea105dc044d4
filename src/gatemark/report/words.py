"""Numbers to words: how the report writes rates, times, sizes, directions and limits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from gatemark.results.schema import GatewayPart, LossPart, RunPart, SummaryPart
from gatemark.technology import TECHNOLOGIES
from gatemark.units import format_duration_ns

DASH = "\u2013"
"""En dash: from ... to, and nothing measured."""

PURPOSES = {
    "search": "search",
    "confirmation": "confirmation",
    "loss": "frame loss",
    "single": "single trial",
    "tear_down": "tear-down",
    "delay": "delay",
    "back_to_back": "burst",
    "recovery": "recovery",
    "reset": "reset",
}

PROCEDURES = {
    "throughput": "throughput",
    "frame_loss": "frame loss",
    "delay": "delay",
    "back_to_back": "back-to-back frames",
    "system_recovery": "system recovery",
    "reset": "reset",
    "connection_establishment_rate": "maximum connection establishment rate",
    "validated_connection_establishment_rate": "validated maximum connection establishment rate",
    "connection_tear_down_rate": "connection tear-down rate",
    "connection_tracking_table_capacity": "connection tracking table capacity",
}
"""Procedures in words."""

ESTABLISHMENT_RATES = ("connection_establishment_rate", "validated_connection_establishment_rate")
"""Procedures whose loads are connections/s (RFC 9693 sections 4.5 and 4.6)."""


MEASURES_FRAMES = ("throughput", "frame_loss", "delay", "back_to_back", "system_recovery", "reset")
"""Procedures whose loads are frames/s; through a stateful gateway they are test phase 2."""

SIGNIFICANT_FIGURES = 4
"""Of delays: percentiles are known within 0.1 %."""

TIME_UNITS = (("µs", 10**3), ("ms", 10**6))
"""Units of delays: name and nanoseconds, the smaller one where all figures of a table are below 1 of the next."""


def technology_words(gateway: GatewayPart) -> str:
    """What the gateway is: "stateful NAT64, IPv6 inside (left), IPv4 outside (right)"."""
    return TECHNOLOGIES[gateway.technology].describe(gateway.inside)


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


def format_ratio_text(text: str | None) -> str:
    """An exact ratio as a decimal: "4/5" as 0.8; a dash where there is none."""
    return DASH if text is None else f"{float(Fraction(text)):g}"


def format_time(nanoseconds: int) -> str:
    """A short time: 35 µs."""
    for unit, name in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.3g} {name}"
    return f"{nanoseconds} ns"


def format_long_time(nanoseconds: int | float) -> str:
    """A time with two decimals of a second from 1 s on, else three digits: 11.79 s, 445 ms; it may be negative."""
    whole = round(nanoseconds)
    if whole < 0:
        return f"\u2212{format_long_time(-whole)}"
    if whole < 10**9:
        return format_time(whole)
    hundredths = (whole + 5_000_000) // 10_000_000
    return f"{hundredths // 100:,}.{hundredths % 100:02} s"


def unit_of_times(nanoseconds: Iterable[int | float | None]) -> tuple[str, int]:
    """Return the unit in which all these times are printed: milliseconds, or microseconds if all are below 1 ms."""
    largest = max((abs(value) for value in nanoseconds if value is not None), default=0)
    return TIME_UNITS[0] if largest < TIME_UNITS[1][1] else TIME_UNITS[1]


def format_in(nanoseconds: int | float | None, unit_ns: int) -> str:
    """A time in a unit, without its name, with four significant figures but never finer than 1 ns; a dash for none."""
    if nanoseconds is None:
        return DASH
    value = abs(nanoseconds) / unit_ns
    finest = len(str(unit_ns)) - 1
    whole = len(str(int(value))) if value >= 1 else 1 - _leading_zeros(value)
    decimals = max(0, min(finest, SIGNIFICANT_FIGURES - whole))
    text = f"{value:,.{decimals}f}" if value else "0"
    return f"\u2212{text}" if nanoseconds < 0 and float(text.replace(",", "")) else text


def _leading_zeros(value: float) -> int:
    """Zeros between the decimal point and the first other digit of a value in (0, 1), plus 1 for the one before it."""
    zeros = 1
    while value < 0.1 and zeros < 12:
        value *= 10
        zeros += 1
    return zeros


def format_spread_in(summary: SummaryPart, unit_ns: int) -> str:
    """1st to 99th percentile of a time in a unit."""
    return f"{format_in(summary.p1, unit_ns)} {DASH} {format_in(summary.p99, unit_ns)}"


def format_sizes(run: RunPart) -> str:
    """Frame size of both families: "64 / 84"; a family that is not on the path is a dash."""
    sizes = run.frame_sizes
    return f"{sizes.ipv4 or DASH} / {sizes.ipv6 or DASH}"


def name_sizes(run: RunPart) -> str:
    """Frame size with family in words: "64-octet IPv4 / 84-octet IPv6"."""
    named = ((run.frame_sizes.ipv4, "IPv4"), (run.frame_sizes.ipv6, "IPv6"))
    return " / ".join(f"{octets}-octet {family}" for octets, family in named if octets is not None)


def way_word(run: RunPart, direction: str) -> str:
    """One direction of a run: upload and download where there is an Initiator (RFC 9693 section 4.7)."""
    if run.connections is None or direction == "bidirectional":
        return direction
    return "upload" if (direction == "forward") == (run.connections.initiator == "left") else "download"


def direction_label(run: RunPart) -> str:
    """What a rate of this run is the rate of."""
    if run.direction == "bidirectional":
        return "per direction, bidirectional"
    word = way_word(run, run.direction)
    return {"upload": "upload (Initiator only)", "download": "download (Responder only)"}.get(word, f"{word} only")


def connections_of(run: RunPart) -> int | None:
    """Number of connections N of a run; None for stateless gateways and for the capacity."""
    return None if run.connections is None else run.connections.count


def found_summary(run: RunPart) -> SummaryPart | None:
    """What a search found, over the repetitions: a rate, or connections for the capacity.

    None where nothing passed, and where only a lower bound is known: see `limit_text` and `rate_cell`.
    """
    if run.capacity is not None:
        return run.capacity.capacity
    return run.rate_per_direction or run.connections_per_second


def unit_of(run: RunPart) -> str:
    """Unit of what a search found and of its bounds."""
    if run.procedure == "connection_tracking_table_capacity":
        return "connections"
    return "frames/s" if run.procedure in MEASURES_FRAMES else "connections/s"


def format_mix(run: RunPart) -> str:
    """Foreground to background in hundredths: 90:10."""
    share = Fraction(100 * run.mix.m, run.mix.n)
    return f"{float(share):g}:{float(100 - share):g}"


def limit_text(run: RunPart) -> str:
    """What limited the run, in one phrase that says how far the gateway is known to be good."""
    if run.refused is not None:
        return "not made"
    if run.limited_by == "tester":
        return tester_limit(run)
    if run.limited_by == "maximum":
        some = "" if found_summary(run) else " in some repetitions"
        return f"the chosen maximum{some}; the gateway may do more"
    return "gateway"


def tester_limit(run: RunPart) -> str:
    """Words for a run that the Tester ended: never a figure of the gateway."""
    at = "" if run.tester_limited_at is None else f" at {format_count(run.tester_limited_at)}"
    if run.lower_bound is None:
        return f"Tester-limited{at} (gateway: nothing known)"
    return f"Tester-limited{at} (gateway ≥ {format_count(run.lower_bound)})"


def rate_cell(run: RunPart) -> str:
    """The median of what a search found: a figure only where one was measured."""
    if run.limited_by == "tester":
        return tester_limit(run)
    found = found_summary(run)
    if run.limited_by == "maximum":
        return f"≥ {format_count(at_least(run) if found is None else found.median)}"
    return "nothing passed" if found is None else format_count(found.median)


def at_least(run: RunPart) -> int:
    """What the gateway reached in every repetition; 0 where one of them found nothing."""
    return run.lower_bound or 0


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
    if goal.duration_ns is not None:
        confirms = " confirm the result" if run.procedure == "throughput" else ""
        words.append(f"trials of {format_duration_ns(goal.duration_ns)}{confirms}")
    if goal.frame_timeout_ns is not None:
        words.append(f"frames later than {format_duration_ns(goal.frame_timeout_ns)} count as lost")
    if run.procedure != "frame_loss":
        words.append(f"resolution {format_count(goal.resolution)} {unit_of(run)}")
    return ", ".join(words)


def worst_loss(directions: Sequence[LossPart]) -> float:
    """Largest median loss of the directions, percent."""
    return max((float(part.loss_percent.median) for part in directions), default=0.0)
