"""What `gatemark run` prints at the end of a series. Pure except for the printing."""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text

from gatemark.consoles import stdout_console
from gatemark.report.terminal import section_text
from gatemark.series.degradation import degradation_section
from gatemark.series.document import ENDED, SeriesDocument
from gatemark.series.report import section
from gatemark.series.services import services_section


def print_series(document: SeriesDocument, *, report: str) -> None:
    """Print the table of a series, why columns are missing in it, and where the report is."""
    out = stdout_console()
    whole = section(document, columns_max=len(document.columns))
    for shown in (whole, degradation_section(document), services_section(document)):
        if shown is not None:
            for printed in section_text(replace(shown, lead=()), name="", width=out.width):
                out.print(printed)
    missing = sum(column.outcome not in ENDED for column in document.columns)
    if missing:
        out.print(Text(f"incomplete: {missing} of {len(document.columns)} columns are missing"))
    out.print(Text(f"report: {report}"), soft_wrap=True)
