"""All sections of a report that are plain tables: delays, bursts, recovery and reset. Pure."""

from __future__ import annotations

from gatemark.report.delay import delay_section
from gatemark.report.events import event_sections
from gatemark.report.plain_table import Section
from gatemark.results.schema import ResultDocument


def sections_of(document: ResultDocument) -> tuple[Section, ...]:
    """Return the sections of the procedures that a campaign has, in the order in which they are run."""
    delays = delay_section(document)
    return (*(() if delays is None else (delays,)), *event_sections(document))
