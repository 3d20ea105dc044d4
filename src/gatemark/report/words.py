"""Numbers as text: how the report writes rates, times, sizes, directions and limits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from gatemark.results.coordinates import DASH as DASH
from gatemark.results.coordinates import mix_words, named_sizes, size_phrase, size_words
from gatemark.results.document import Gateway
from gatemark.results.part import NOT_THE_GATEWAY, LimitedBy
from gatemark.results.quantity import Quantity
from gatemark.results.run import RunResult
from gatemark.stats.summary import Number, Summary
from gatemark.technology import TECHNOLOGIES
from gatemark.trial.host_counters import growths

SIGNIFICANT_FIGURES = 4
"""Significant figures of delays: percentiles are known within 0.1 %."""

TIME_UNITS = (("µs", 10**3), ("ms", 10**6))
"""Units of delays: name and nanoseconds, the smaller one where all figures of a table are below 1 of the next."""


FEW_REPETITIONS = "p1 and p99 are the smallest and the largest value with fewer than 100 repetitions."
FROM_P1_TO_P99 = "from the 1st to the 99th percentile"
HOLLOW_BAR = "A hollow bar is a lower bound"
SCALE_UP = "relative scale-up is X(n) / (n X(1)) with n cores, 1 being perfect"
"""What tables and captions of several sections say."""


def capital(text: str) -> str:
    """A heading or a sentence: its first letter as a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def technology_words(gateway: Gateway) -> str:
    """What the gateway is: "stateful NAT64, IPv6 inside (left), IPv4 outside (right)"."""
    return TECHNOLOGIES[gateway.technology].describe(gateway.inside)


CORES_WORDS = {
    "kernel_command_line": "by its kernel's command line and a boot",
    "hot_plug": "the other CPUs taken offline",
    "pinning": "its work bound to them",
}


def cores_words(gateway: Gateway) -> str:
    """How the gateway got its number of cores."""
    return "not stated" if gateway.cores_set_by is None else CORES_WORDS[gateway.cores_set_by]


def format_count(value: int | float | None) -> str:
    """A count or rate with thousands separated; a dash where nothing was measured."""
    if value is None:
        return DASH
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}"
    return f"{int(value):,}"


def format_range(lowest: int, highest: int, to: str = DASH) -> str:
    """Two counts with `to` between them; one where they are equal."""
    low, high = format_count(lowest), format_count(highest)
    return low if low == high else f"{low} {to} {high}"


def format_bits(bits_per_second: int) -> str:
    """A line rate: 10 Gbit/s."""
    for unit, name in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if bits_per_second >= unit:
            return f"{bits_per_second / unit:g} {name}"
    return f"{bits_per_second} bit/s"


def format_percent(value: float | None) -> str:
    """A percentage with enough digits to distinguish small losses from none."""
    if value is None:
        return DASH
    if value == 0:
        return "0 %"
    return f"{value:.2g} %" if value < 0.1 else f"{value:.2f} %"


def format_ratio(ratio: Fraction | None) -> str:
    """An exact ratio as a decimal: 4/5 as 0.8; a dash where there is none."""
    return DASH if ratio is None else f"{float(ratio):g}"


def format_share(ratio: Fraction) -> str:
    """An exact ratio in per cent: 1/10000 as 0.01 %."""
    return f"{float(100 * ratio):g} %"


def format_time(nanoseconds: int) -> str:
    """A short time: 35 µs."""
    for unit, name in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.3g} {name}"
    return f"{nanoseconds} ns"


def format_long_time(nanoseconds: int | float) -> str:
    """A time with two decimals from 1 s up, else three digits: 11.79 s, 445 ms; it may be negative."""
    whole = round(nanoseconds)
    if whole < 0:
        return f"\u2212{format_long_time(-whole)}"
    if whole < 10**9:
        return format_time(whole)
    hundredths = (whole + 5_000_000) // 10_000_000
    return f"{hundredths // 100:,}.{hundredths % 100:02} s"


def unit_of_times(nanoseconds: Iterable[int | float | None]) -> tuple[str, int]:
    """Return the unit in which these times are printed: milliseconds, or microseconds if all are below 1 ms."""
    largest = max((abs(value) for value in nanoseconds if value is not None), default=0)
    return TIME_UNITS[0] if largest < TIME_UNITS[1][1] else TIME_UNITS[1]


def format_in(nanoseconds: int | float | None, unit_ns: int) -> str:
    """A time in a unit, without its name, with four significant figures but never finer than 1 ns; a dash for none."""
    if nanoseconds is None:
        return DASH
    value = abs(Decimal(nanoseconds)) / unit_ns
    finest = len(str(unit_ns)) - 1
    decimals = max(0, min(finest, SIGNIFICANT_FIGURES - 1 - value.adjusted()))
    text = f"{value:,.{decimals}f}" if value else "0"
    return f"\u2212{text}" if nanoseconds < 0 and float(text.replace(",", "")) else text


def format_spread_in(low: int | float | None, high: int | float | None, unit_ns: int) -> str:
    """1st to 99th percentile of a time in a unit; empty if there is none."""
    return "" if low is None or high is None else f"{format_in(low, unit_ns)} {DASH} {format_in(high, unit_ns)}"


def format_sizes(run: RunResult) -> str:
    """Frame size of both families: "64 / 84"; a family that is not on the path is a dash."""
    return size_words(run.frame_sizes.ipv4, run.frame_sizes.ipv6, run.frame_sizes.tunnel)


def say_sizes(run: RunResult) -> str:
    """Frame size in a sentence: "64 / 84 octets"."""
    return size_phrase(run.frame_sizes.ipv4, run.frame_sizes.ipv6, run.frame_sizes.tunnel)


def name_sizes(run: RunResult) -> str:
    """Frame size with family in words: "64-octet IPv4 / 84-octet IPv6"."""
    return named_sizes(run.frame_sizes.ipv4, run.frame_sizes.ipv6, run.frame_sizes.tunnel)


def direction_label(run: RunResult) -> str:
    """What a rate of this run is the rate of."""
    if run.direction == "bidirectional":
        return "per direction, bidirectional"
    word = run.way_word(run.direction)
    return {"upload": "upload (Initiator only)", "download": "download (Responder only)"}.get(word, f"{word} only")


def format_mix(run: RunResult) -> str:
    """Foreground to background in hundredths: 90:10."""
    return mix_words(run.mix.m, run.mix.n)


def run_name(run: RunResult) -> str:
    """A run in a few words, for captions."""
    named = [run.procedure_words, name_sizes(run)]
    if run.connection_count is not None:
        named.append(f"{format_count(run.connection_count)} connections")
    named.append(run.way_word(run.direction))
    if run.mix.is_mixed:
        named.append(f"foreground:background {format_mix(run)}")
    return f"Run {run.number}: {', '.join(named)}"


def limit_text(quantity: Quantity) -> str:
    """What limited a rate, in one phrase that also says what the gateway is known to reach."""
    if quantity.refused is not None:
        return "not made"
    if quantity.limited_by in NOT_THE_GATEWAY:
        return tester_limit(quantity)
    if quantity.limited_by == "maximum":
        some = " in some repetitions" if quantity.median is None else ""
        return f"the chosen maximum{some}; the gateway may do more"
    return "gateway"


def limited(limited_by: LimitedBy | None) -> str:
    """What a figure has in its place that Tester or host limited: "Tester-limited"."""
    return "host not quiet" if limited_by == "host" else "Tester-limited"


def tester_limit(quantity: Quantity) -> str:
    """Words for a rate that Tester or host limited: never a figure of the gateway."""
    at = "" if quantity.tester_limited_at is None else f" at {format_count(quantity.tester_limited_at)}"
    if quantity.lower_bound is None:
        return f"{limited(quantity.limited_by)}{at} (gateway: nothing known)"
    return f"{limited(quantity.limited_by)}{at} (gateway ≥ {format_count(quantity.lower_bound)})"


def at_least(quantity: Quantity) -> Number | None:
    """What a search found that ended at its maximum; None if it ended elsewhere, or if nothing passed."""
    if quantity.limited_by != "maximum":
        return None
    return quantity.lower_bound if quantity.median is None else quantity.median


def rate_cell(quantity: Quantity) -> str:
    """What a search found: a figure only if one was measured."""
    if quantity.limited_by in NOT_THE_GATEWAY:
        return tester_limit(quantity)
    if quantity.limited_by == "maximum":
        least = at_least(quantity)
        return "nothing passed in every repetition" if least is None else f"≥ {format_count(least)}"
    return "nothing passed" if quantity.median is None else format_count(quantity.median)


def bounds_cell(quantity: Quantity) -> str:
    """Highest load that passed in every repetition, and the largest of the lowest loads that failed in one."""
    return f"{format_count(quantity.lower_bound)} / {format_count(quantity.upper_bound)}"


def spread_cell(spread: Summary | Quantity | None) -> str:
    """1st to 99th percentile; a dash where nothing was measured."""
    if spread is None or spread.p1 is None or spread.p99 is None:
        return DASH
    return f"{format_count(spread.p1)} {DASH} {format_count(spread.p99)}"


def repeated(summary: Summary) -> str:
    """How often something was measured, and how much the repetitions differ."""
    several = "s" if summary.count != 1 else ""
    return f"median of {summary.count} repetition{several}, 1st to 99th percentile {spread_cell(summary)}"


def counted_words(counted: Sequence[Mapping[str, int]], among: str) -> str:
    """What counters of the gateway's host grew by, each from least to most, and in how many; empty if none grew.

    `among`: of how many, in words.
    """
    names = sorted({name for counters in counted for name in counters})
    said = []
    for grown in growths(dict.fromkeys(names, 0)):
        counts = [counters[grown.name] for counters in counted if grown.name in counters]
        least, most = format_count(min(counts)), format_count(max(counts))
        by = f"+{most}" if least == most else f"+{least} to +{most}"
        said.append(f"{grown.what} {by} ({len(counts)} {among})")
    return "; ".join(said)
