"""`gatemark report DIR`: the report of a result folder, made again from what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gatemark.cli.common import print_campaigns
from gatemark.cli.output import AsJson, print_json
from gatemark.report.summary import shown_sections
from gatemark.report.text_tables import TextFormat, tables_text
from gatemark.series.report import section
from gatemark.series.run import rebuild_series
from gatemark.series.store import is_series
from gatemark.series.summary import print_series
from gatemark.stored import rebuild_report, sections_of

FormatName = Literal["words"] | TextFormat


def report(folder: Path, /, *, format: FormatName = "words", plots: Path | None = None, as_json: AsJson = False) -> int:
    """Rebuild report.html of a result folder and print its tables.

    Example: gatemark report results/NAME --format latex --plots figures

    Parameters
    ----------
    folder
        Folder of a campaign or a series that `gatemark run` or `gatemark demo` wrote.
    format
        words for the terminal; markdown or latex (packages booktabs and makecell) for the tables alone.
    plots
        Folder for all plots of the report: PDF (with fonts), SVG, their figures as CSV, and captions.md. A missing
        folder is made. Files with the same names are replaced, all of them or none.
    as_json
        Print the result as JSON instead of tables.
    """
    if is_series(folder):
        series = rebuild_series(folder, plots=plots)
        if as_json:
            print_json(series.document.model_dump(mode="json", by_alias=True))
        elif format != "words":
            print(tables_text([section(series.document, columns_max=len(series.document.columns))], format), end="")
        else:
            print_series(series.document, report=str(series.report_file))
        return 0
    results, page = rebuild_report(folder, plots=plots)
    if as_json or format == "words":
        print_campaigns(results, page, as_json=as_json, listed=len(results) > 1)
    else:
        reports = [(result.document, sections_of(result.document)) for result in results]
        print(tables_text((shown for shown, _ in shown_sections(reports)), format), end="")
    return 0
