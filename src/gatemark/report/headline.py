"""What every statement of the report is made of: the figure, what it is, and the context of a run. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gatemark.report.words import (
    MEASURES_FRAMES,
    connections_of,
    format_count,
    format_mix,
    name_sizes,
    technology_words,
)
from gatemark.results.schema import ResultDocument, RunPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One headline: the figure, what it is, and one sentence that can stand alone (RFC 2544 section 26.1)."""

    run: int
    figure: str
    unit: str
    """Empty if the figure is no number."""
    label: str
    sentence: str
    limited_by: str


def said(
    run: RunPart, figure: str, label: str, sentence: str, *, unit: str = "", limited_by: str | None = None
) -> Statement:
    """A statement about a run."""
    return Statement(
        run=run.number,
        figure=figure,
        unit=unit,
        label=label,
        sentence=sentence,
        limited_by=limited_by or run.limited_by,
    )


def context_of(document: ResultDocument, run: RunPart) -> str:
    """Protocol, frame sizes, technology, and what else the traffic was."""
    protocol = "UDP" if run.connections is None else "UDP only (RFC 9693 section 8)"
    mix = "" if run.mix.m == run.mix.n else f", foreground:background {format_mix(run)}"
    words = f"{protocol}, {name_sizes(run)} frames, {technology_words(document.gateway)}{mix}"
    if connections_of(run) is not None and run.procedure in MEASURES_FRAMES:
        words += f", {format_count(connections_of(run))} connections"
    return words
