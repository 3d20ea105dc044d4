"""The Tester's own error next to what it measured: self-latency, lateness, clock and its rate ceiling. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gatemark.facts import SelfLatency
from gatemark.report.table import Column
from gatemark.report.words import direction_label, format_count, format_in, format_time
from gatemark.results import ceiling
from gatemark.results.document import ResultDocument
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
from gatemark.results.tester_parts import CeilingPart
from gatemark.technology import TECHNOLOGIES, Family

HOW_TO_MEASURE = "to measure it, run gatemark selftest before the campaign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Frames of one direction at one load, as the Tester sent them."""

    run: RunResult
    direction: str
    frames_per_second: int
    lateness_ns: int
    """Of the latest burst."""


def error_columns(document: ResultDocument, unit: str, unit_ns: int) -> Iterator[Column[Sent]]:
    """Yield the columns shown next to every delay; self-latency only if it was measured."""
    if document.self_test is not None and document.self_test.self_latency:
        yield Column(f"self-latency, {unit}\np50 / p99.9", lambda sent: _self_latency(document, sent, unit_ns))
    yield Column("Tester late,\nmaximum", lambda sent: format_time(sent.lateness_ns))


def own_latency(document: ResultDocument, run: RunResult, direction: str, load: int) -> SelfLatency | None:
    """Return the delays of the Tester's own path that are nearest to those of a run; None if none were measured."""
    if document.self_test is None:
        return None
    return document.self_test.latency_at(_sizes(document, run), direction, load)


def _sizes(document: ResultDocument, run: RunResult) -> Mapping[Family, int]:
    return run.frame_sizes.of_families(TECHNOLOGIES[document.gateway.technology].outer_family)


def _self_latency(document: ResultDocument, sent: Sent, unit_ns: int) -> str:
    known = own_latency(document, sent.run, sent.direction, sent.frames_per_second)
    if known is None:
        return "not measured"
    figures = f"{format_in(known.p50_ns, unit_ns)} / {format_in(known.p999_ns, unit_ns)}"
    is_of_size = known.frame_octets in _sizes(document, sent.run).values()
    size = "" if is_of_size else f"\nof {known.frame_octets} octets"
    return f"{figures}\nat {format_count(known.frames_per_second)}/s{size}"


def error_notes(document: ResultDocument) -> Iterator[str]:
    """Sentences about the Tester's own part of all delays of a campaign."""
    self_test = document.self_test
    if self_test is None or not self_test.self_latency:
        yield f"The Tester's own part of these delays was not measured: {HOW_TO_MEASURE}."
    else:
        yield (
            "Self-latency is the delay through the Tester's own ports without a gateway, at the nearest frame size and"
            f" load of its self-test ({self_test.measured_at[:10]}, {self_test.port_kind} ports). It is part of"
            " every delay here, and is not subtracted."
        )
        negative = sum(delays.negative for delays in self_test.self_latency)
        if negative:
            yield f"In that self-test {format_count(negative)} delays were negative: the clock cannot be relied on."
    if document.clock is None:
        yield "The resolution of the Tester's clock was not recorded."
    else:
        yield (
            f"The clock of the Tester has steps of {_picoseconds(document.clock.resolution_ps)}, and a reading takes"
            f" {_picoseconds(document.clock.read_ps)}. “Tester late” is how late it sent a burst at most in these"
            " trials."
        )


def ceiling_of(document: ResultDocument, run: RunResult, unit: str) -> CeilingPart | None:
    """Return the self-test's lowest rate of the kind that a run measures; None if it has none."""
    return ceiling.ceiling_of(document.self_test, run, unit, document.gateway.technology)


def ceiling_cell(document: ResultDocument, run: RunResult, unit: str) -> str:
    """The ceiling of a run, with the frame size of the self-test if it differs."""
    limit = ceiling_of(document, run, unit)
    if limit is None:
        return "not measured"
    octets = run.frame_sizes.ipv4 if limit.family == "ipv4" else run.frame_sizes.ipv6
    size = "" if limit.frame_octets == octets else f"\nof {limit.frame_octets} octets"
    return f"{format_count(limit.frames_per_second)}{size}"


CEILING = "self-test\nceiling"


def ceiling_beside(document: ResultDocument, run: RunResult, unit: str, rate: int | float | None, of: str = "") -> str:
    """The ceiling beside a rate, with a remark if the rate is near it."""
    cell = ceiling_cell(document, run, unit).replace("\n", " ")
    return f"{cell}\nwithin 5 %{of}" if is_near_ceiling(document, run, unit, rate) else cell


def is_near_ceiling(document: ResultDocument, run: RunResult, unit: str, rate: int | float | None) -> bool:
    """Whether a rate is within 5 % of what the Tester reaches alone: then it may be the Tester's limit."""
    return ceiling.is_near(rate, ceiling_of(document, run, unit))


RATES = ("frames/s", "connections/s")
"""Units of quantities that the Tester's own ceiling limits."""


def ceiling_notes(document: ResultDocument) -> Iterator[str]:
    """A sentence for each run near the self-test's ceiling, and one if the self-test allowed more lateness."""
    self_test, here_ns = document.self_test, document.validity.lateness_max_ns
    if self_test is not None and self_test.entries and self_test.lateness_max_ns > here_ns:
        yield (
            f"In the self-test a burst could be {format_time(self_test.lateness_max_ns)} late, here"
            f" {format_time(here_ns)}: the Tester may reach less than the ceiling says."
        )
    for run in document.runs:
        rate, unit = _highest_rate(run)
        if is_near_ceiling(document, run, unit, rate):
            count = run.connection_count
            of = "" if count is None else f", {format_count(count)} connections"
            cell = ceiling_cell(document, run, unit).replace("\n", " ")
            yield (
                f"Run {run.number} ({direction_label(run)}{of}): {format_count(rate)} is within 5 % of what the Tester"
                f" reaches alone ({cell}), so it may be the Tester's limit and is a lower bound of the gateway."
            )


def _highest_rate(run: RunResult) -> tuple[int | float | None, str]:
    """Return the rate that a run found, or the highest load at which it lost frames that were offered, and its unit."""
    if isinstance(run, RateResult):
        return max(run.published_bounds, default=None), run.unit
    loads = (
        int(load)
        for quantity in run.quantities()
        if quantity.unit == "%" and quantity.values and (load := quantity.coordinates.get("load_frames_per_second"))
    )
    return max(loads, default=None), "frames/s"


def no_self_test(document: ResultDocument) -> Iterator[str]:
    """A sentence if rates are reported and nothing shows that the Tester can do more."""
    rates = [q for run in document.runs for q in run.quantities() if q.unit in (*RATES, "%")]
    if rates and (document.self_test is None or not document.self_test.entries):
        only = "" if document.self_test is None else " The self-test of this campaign measured delays only."
        yield f"The rate that the Tester reaches alone was not measured: {HOW_TO_MEASURE}.{only}"


def _picoseconds(value: int) -> str:
    """A very short time: 0.4 ns, 25 ns."""
    return f"{value / 1000:.3g} ns" if value < 10**6 else format_time(value // 1000)
