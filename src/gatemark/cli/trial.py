"""`gatemark trial FILE --rate R`: one trial at one rate, with everything that was observed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from gatemark.cli.common import cell_text, narrowed, one_campaign, sorted_counts
from gatemark.cli.output import AsJson, print_json
from gatemark.config.model import Campaign, CampaignFile
from gatemark.errors import ConfigError
from gatemark.facts import Direction
from gatemark.procedures.loads import line_maximum
from gatemark.report.counters import COUNTERS
from gatemark.session import single_trial
from gatemark.trial.cell import Cell
from gatemark.trial.host import HostFacts, MiddleFacts
from gatemark.trial.host_counters import counter_words
from gatemark.trial.kinds import kind_of
from gatemark.trial.record import ConnectionFacts, PhaseOne, TrialRecord
from gatemark.trial.report import Counts, TrialReport
from gatemark.units import (
    LineShare,
    format_duration_ns,
    format_ratio,
    parse_duration,
    parse_rate,
    parse_rate_or_share,
)

FormatName = Literal["words", "siitperf"]
V = TypeVar("V")


def trial(
    file: Path,
    /,
    *,
    rate: str,
    duration: str | None = None,
    size: int | None = None,
    direction: Direction | None = None,
    mix: str | None = None,
    connections: str | None = None,
    phase_one_rate: str | None = None,
    format: FormatName = "words",
    as_json: AsJson = False,
) -> int:
    """Make one trial and show its result. The exit status is 1 if the trial says nothing about the gateway.

    Example: gatemark trial campaign.toml --rate 100k --duration 5s

    Parameters
    ----------
    file
        Campaign file (TOML).
    rate
        Frames per second in each direction, such as 100k; or % of the line rate if the file has line.rate.
    duration
        Sending time, such as 5s. Default: trial.duration of the file.
    size
        Frame size in octets, of the family that the file names. Default: the first in the file.
    direction
        Direction of the traffic. Default: the first in the file.
    mix
        Foreground share as m/n. Default: the first in the file.
    connections
        Stateful gateways: number of connections, such as 10k; default: the first of the file.
    phase_one_rate
        Stateful gateways: connections per second of test phase 1. Default: connections.rate of the file; required if
        that is a share, which one trial does not measure.
    format
        words, or siitperf for the lines that siitperf's scripts parse.
    as_json
        Print JSON instead of text.
    """
    written = one_campaign(file)
    if connections is not None:
        written = _with_connections(written, _count(connections, "--connections"))
    campaign, cell = narrowed(written, size=size, direction=direction, mix=mix)
    duration_ns = campaign.trial.duration_ns if duration is None else _duration_ns(duration)
    load = _frames_per_second(campaign, cell, rate)
    if not as_json:
        length = format_duration_ns(duration_ns + campaign.trial.waits_ns)
        after = "" if cell.connections is None else ", after test phase 1"
        text = f"{cell_text(campaign, cell)}: {load} frames/s in each direction, {length} with waits{after}"
        print(text, file=sys.stderr)
    record = single_trial(
        campaign,
        cell,
        frames_per_second=load,
        duration_ns=duration_ns,
        connections_per_second=None if phase_one_rate is None else _count(phase_one_rate, "--phase-one-rate"),
    )
    if as_json:
        print_json(record.model_dump(mode="json"))
    elif format == "siitperf":
        print("\n".join(siitperf_lines(record)))
    else:
        print(in_words(record))
    return 0 if record.is_decisive else 1


def in_words(record: TrialRecord) -> str:
    """Return a trial in words: counts, other arrivals, connections, validity, verdict."""
    lines: list[str] = []
    for number, attempt in enumerate(record.attempts, start=1):
        lines += _phase_one_words(number, attempt, record.order.connections)
    if record.connections is not None:
        lines += _connection_words(record.connections, record.attempts[-1].report, record.order.connections)
    if record.measured is not None:
        if phase := kind_of(record.order).phase(record):
            lines.append(f"{phase}:")
        lines += _report_words(record.measured)
    if record.host is not None:
        lines += _host_words(record.host, record.report.lost_count)
    lines.append("the trial is valid" if record.validity.valid else "the trial is invalid:")
    lines.extend(f"  {reason}" for reason in record.validity.reasons)
    if record.verdict is not None:
        lines.append("verdict: passed" if record.verdict.passed else "verdict: failed")
        lines.extend(f"  {reason}" for reason in record.verdict.reasons)
    if record.causes:
        lines += ["why frames were lost:", *(f"  {cause.told}" for cause in record.causes)]
    if record.damages:
        lines += ["which gateway damaged frames:", *(f"  {damage.told}" for damage in record.damages)]
    if record.suspicion is not None:
        lines += ["the failure is suspect:", f"  {record.suspicion.reason}"]
    return "\n".join(lines)


def _host_words(host: HostFacts, lost: int) -> list[str]:
    """Return how quiet the gateway's host was, and what it counted in a trial that lost frames."""
    counted = counter_words(host.counters, lost)
    middle = () if host.middle is None else _middle_words(host.middle)
    return [*middle, *(_work_words(host) if host.sees_work else ()), *([counted] if counted else ())]


def _middle_words(middle: MiddleFacts) -> list[str]:
    return [f"link between both gateways: {middle.forward:,} frames forward, {middle.reverse:,} reverse"]


def _work_words(host: HostFacts) -> list[str]:
    busy = ", ".join(f"CPU {cpu.cpu} {100 * cpu.busy_ns // host.read_ns} %" for cpu in host.cpus)
    stolen = f", CPUs stolen for less than {format_duration_ns(host.stolen_ns)}" if host.stolen_ns else ""
    delayed = f"delayed by other programs for {format_duration_ns(host.waited_ns)} in all"
    return [f"gateway's host: busy {busy}; {delayed}{stolen}"]


def _report_words(report: TrialReport) -> list[str]:
    lines: list[str] = []
    for direction, frame_class, counts in report.counts():
        loss = counts.loss_ratio
        lines.append(
            f"{direction} {frame_class}: offered {counts.offered}, received {counts.received}, lost {counts.lost},"
            f" faulty {counts.faulty}" + (f", loss {format_ratio(loss)}" if loss else "")
        )
        if counts.faults:
            lines.append(f"  faults: {sorted_counts(counts.faults)}")
        lines += _counter_words(counts)
    for result in report.directions:
        lines.append(f"{result.direction} sender: at most {format_duration_ns(result.lateness_max_ns)} late")
    for side, port in report.ports.items():
        if len(port.received_by_queue) > 1:
            lines.append(f"{side} port: received by queue: {', '.join(map(str, port.received_by_queue))}")
    return lines


def _counter_words(counts: Counts) -> list[str]:
    """Return what else was counted of a class."""
    counted = ((COUNTERS.get(f"counts.{name}"), getattr(counts, name)) for name in Counts.model_fields)
    return [f"  {counter.words}: {number}" for counter, number in counted if counter is not None and number]


def _phase_one_words(number: int, attempt: PhaseOne, count: int | None) -> list[str]:
    """Return one attempt at test phase 1."""
    again = f", attempt {number}" if number > 1 else ""
    return [
        f"phase 1: {count} connections at {attempt.connections_per_second} connections/s{again}:",
        *_report_words(attempt.report),
        *(f"  {reason}" for reason in (*attempt.reasons, *(cause.told for cause in attempt.causes))),
    ]


def _connection_words(facts: ConnectionFacts, report: TrialReport, count: int | None) -> list[str]:
    """Return what Tester and gateway count, and how the gateway behaves; `report` is that of test phase 1."""
    counted = [
        f"{number} {when}"
        for number, when in (
            (facts.counted_after_phase_one, "after phase 1"),
            (facts.counted_after_phase_two, "after phase 2"),
        )
        if number is not None
    ]
    lines = [
        f"connections: {report.established} of {count} established;"
        + (f" the gateway counts {', '.join(counted)}" if counted else " the gateway cannot count them")
    ]
    behaviour = facts.behaviour
    if behaviour is not None:
        lines.append(
            f"gateway: {behaviour['port_preserved']} of {behaviour['examined']} connections keep their source port,"
            f" {behaviour['parity_preserved']} its parity; public addresses {behaviour['public_addresses']}, ports"
            f" {behaviour['public_port_minimum']}-{behaviour['public_port_maximum']}"
        )
        if behaviour["sources_compared"]:
            lines.append(
                f"gateway: {behaviour['sources_endpoint_independent']} of {behaviour['sources_compared']} endpoints"
                " with several destinations have one public endpoint"
            )
    return lines


def siitperf_lines(record: TrialRecord) -> Iterator[str]:
    """Yield the lines for which scripts of the tester siitperf look, so that they can go on with gatemark.

    They are counts of test phase 1 and of each direction, and why the trial does not count.

    A frame counts as received once, and only if it was correct and in time. So sent and received differ if a frame is
    missing; where none is, a trial that failed says why, such as by frames that arrived again. Lines with "invalid" or
    "Error:" are those by which the scripts take a trial for failed.
    """
    if record.attempts:
        established = record.attempts[-1].report.established
        yield f"Preliminary frames received: {established}"
        if established != record.order.connections:
            yield f"Error: Failed to fill state table: {established} of {record.order.connections} connections"
    if (report := record.measured) is not None:
        for direction in report.directions:
            name = direction.direction.capitalize()
            yield f"{name} frames sent: {direction.offered}"
            yield f"{name} frames received: {direction.offered - direction.undelivered}"
        if record.verdict is not None and not any(direction.undelivered for direction in report.directions):
            yield from (f"Error: {reason}" for reason in record.verdict.reasons)
    for reason in record.validity.reasons:
        yield f"The trial is invalid: {reason}"
    if record.suspicion is not None:
        yield f"The trial is invalid: its failure is suspect: {record.suspicion.reason}"


def _with_connections(file: CampaignFile, count: int) -> CampaignFile:
    if file.connections is None:
        raise ConfigError(
            what="the campaign has no connections",
            where="--connections",
            fix="leave it out, or add a table [connections] if the gateway is stateful",
        )
    return file.model_copy(update={"connections": file.connections.model_copy(update={"count": (count,)})})


def _count(text: str, where: str) -> int:
    return _above_zero(parse_rate, text, where, "is 0", "write 1 or more, for example 10k")


def _duration_ns(text: str) -> int:
    return _above_zero(parse_duration, text, "--duration", "is 0", "write a time above 0, for example 5s")


def _above_zero(parse: Callable[[str], V], text: str, where: str, what: str, fix: str) -> V:
    """Return the value of an option. Raises ConfigError if it is none, or with `what` and `fix` if it is 0."""
    try:
        value = parse(text)
    except ValueError as error:
        said, _, remedy = str(error).partition("; ")
        raise ConfigError(what=said, where=where, fix=remedy) from None
    if value == 0:
        raise ConfigError(what=what, where=where, fix=fix)
    return value


def _frames_per_second(campaign: Campaign, cell: Cell, text: str) -> int:
    rate = _above_zero(parse_rate_or_share, text, "--rate", "a load of 0 frames/s never ends", "write 1 or more")
    if not isinstance(rate, LineShare):
        return rate
    maximum = line_maximum(campaign, cell, campaign.line.rate)
    if maximum is None:
        raise ConfigError(
            what=f"{rate} of a line rate that the file does not name",
            where="--rate",
            fix='write frames per second, or set line.rate = "10G" in the file',
        )
    return max(1, rate.frames_per_second(maximum))
