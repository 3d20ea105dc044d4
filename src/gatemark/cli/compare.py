"""`gatemark compare A B`: results side by side, with what can be said of their difference."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gatemark.cli.output import AsJson, print_json
from gatemark.compare.report import condition_lines, quantities_section, sides_section
from gatemark.compare.run import CONFIDENCE, compare_folders
from gatemark.consoles import stdout_console
from gatemark.report.terminal import section_text
from gatemark.report.text_tables import TextFormat, tables_text

FormatName = Literal["words"] | TextFormat


def compare(
    *folders: Path,
    fail_if: tuple[str, ...] = (),
    quantity: tuple[str, ...] = (),
    everything: bool = False,
    confidence: str = CONFIDENCE,
    output: Path | None = None,
    format: FormatName = "words",
    as_json: AsJson = False,
) -> int:
    """Compare result folders side by side: differences in set-up, figures, ratios and what they show.

    The exit status is 1 if a condition of --fail-if is met or cannot be judged.

    Example: gatemark compare results/before results/after --fail-if "throughput worse than 5%"

    Parameters
    ----------
    folders
        Result folders of campaigns or series, 26 at most. The others are compared with the first.
    fail_if
        Condition such as "throughput worse than 5%": it is met if the comparison shows that the quantity is worse by
        more than that. With "may be worse" it is met unless the comparison shows the opposite. "any" stands for every
        quantity that is the purpose of a run. Can be repeated.
    quantity
        Compare the quantity with this name instead of those that are the purpose of a run. Can be repeated.
    everything
        Compare every quantity, including those of the gateway's host.
    confidence
        Confidence of all intervals together.
    output
        HTML page with tables and plots to write.
    format
        words for the terminal; markdown or latex (packages booktabs and makecell) for the tables alone.
    as_json
        Print the comparison as JSON instead of tables.
    """
    document = compare_folders(
        folders, conditions=fail_if, names=quantity, everything=everything, confidence=confidence, page=output
    )
    if as_json:
        print_json(document.model_dump(mode="json", by_alias=True))
        return 0 if document.passes else 1
    sections = (sides_section(document), quantities_section(document))
    if format != "words":
        print(tables_text(sections, format), end="")
        return 0 if document.passes else 1
    console = stdout_console()
    for section in sections:
        for printed in section_text(section, name="", width=console.width):
            console.print(printed)
    for line in condition_lines(document):
        console.print(line, soft_wrap=True, markup=False)
    if output is not None:
        console.print(f"report: {output}", soft_wrap=True, markup=False)
    return 0 if document.passes else 1
