"""`gatemark trial FILE --rate R`: one trial at one rate, with everything that was observed."""

from __future__ import annotations

import sys
from pathlib import Path

from gatemark.campaign.journal import TrialRecord
from gatemark.campaign.loads import line_maximum
from gatemark.campaign.plan import Cell
from gatemark.cli.common import AsJson, cell_json, cell_text, narrowed, print_json, sorted_counts, with_recipe_of
from gatemark.config.load import load_campaign
from gatemark.config.model import Campaign
from gatemark.errors import ConfigError
from gatemark.session import single_trial
from gatemark.units import (
    LineShare,
    format_duration_ns,
    format_ratio,
    parse_duration,
    parse_rate_or_share,
)


def trial(
    file: Path,
    /,
    *,
    rate: str,
    duration: str | None = None,
    size: int | None = None,
    direction: str | None = None,
    mix: str | None = None,
    as_json: AsJson = False,
) -> int:
    """Make one trial and show what came back. The exit status is 1 if the trial says nothing about the gateway.

    Example: gatemark trial campaign.toml --rate 100k --duration 5s

    Parameters
    ----------
    file
        Campaign file (TOML).
    rate
        Frames per second in each direction, such as 100k; or % of the line rate if the file has line.rate.
    duration
        Sending time, such as 5s; default: trial.duration of the file.
    size
        Frame size in octets, of the family that the file names; default: the first of the file.
    direction
        forward, reverse or bidirectional; default: the first of the file.
    mix
        Share of foreground as m/n; default: the first of the file.
    as_json
        Print JSON in place of text.
    """
    narrow, cell = narrowed(load_campaign(file), size=size, direction=direction, mix=mix)
    complete = with_recipe_of(narrow)
    duration_ns = complete.trial.duration_ns if duration is None else _duration_ns(duration)
    load = _frames_per_second(complete, cell, rate)
    if not as_json:
        length = format_duration_ns(duration_ns + complete.trial.waits_ns)
        print(f"{cell_text(complete, cell)}: {load} frames/s in each direction, {length} with waits", file=sys.stderr)
    record = single_trial(narrow, cell, frames_per_second=load, duration_ns=duration_ns)
    if as_json:
        print_json({**cell_json(cell), **record.to_json()})
    else:
        print(in_words(record))
    return 0 if record.validity.valid else 1


def in_words(record: TrialRecord) -> str:
    """Return a trial in words: counts, other arrivals, validity, verdict."""
    lines: list[str] = []
    for direction, kind, counts in record.report.counts():
        loss = counts.loss_ratio
        lines.append(
            f"{direction} {kind}: offered {counts.offered}, received {counts.received}, lost {counts.lost},"
            f" faulty {counts.faulty}, duplicate {counts.duplicate}, reordered {counts.reordered}"
            + (f", loss {format_ratio(loss)}" if loss else "")
        )
        if counts.faults:
            lines.append(f"  faults: {sorted_counts(counts.faults)}")
    for result in record.report.directions:
        lines.append(f"{result.direction} sender: at most {format_duration_ns(result.lateness_max_ns)} late")
    lines.append("the trial is valid" if record.validity.valid else "the trial is invalid:")
    lines.extend(f"  {reason}" for reason in record.validity.reasons)
    if record.verdict is not None:
        lines.append("verdict: passed" if record.verdict.passed else "verdict: failed")
        lines.extend(f"  {reason}" for reason in record.verdict.reasons)
    return "\n".join(lines)


def _duration_ns(text: str) -> int:
    try:
        value = parse_duration(text)
    except ValueError as error:
        what, _, fix = str(error).partition("; ")
        raise ConfigError(what=what, where="--duration", fix=fix) from None
    if value == 0:
        raise ConfigError(what="is 0", where="--duration", fix="write a time above 0, for example 5s")
    return value


def _frames_per_second(campaign: Campaign, cell: Cell, text: str) -> int:
    try:
        rate = parse_rate_or_share(text)
    except ValueError as error:
        what, _, fix = str(error).partition("; ")
        raise ConfigError(what=what, where="--rate", fix=fix) from None
    if rate == 0:
        raise ConfigError(what="a load of 0 frames/s never ends", where="--rate", fix="write 1 or more")
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
