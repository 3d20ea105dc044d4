"""Tables as text for papers and pages: Markdown and LaTeX. Pure: the same tables as on page and terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from gatemark.harmless import visible
from gatemark.report.table import Section, Table

TextFormat = Literal["markdown", "latex"]

_LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "[": "{[}", "\u2013": "--", "\u2212": "$-$", "≥": r"$\ge$", "±": r"$\pm$",
    "µ": r"\textmu{}", "\u03b1": r"$\alpha$", "\u00d7": r"$\times$", "·": r"$\cdot$", "∞": r"$\infty$",
}  # fmt: skip


def markdown_table(table: Table) -> str:
    """Return a table as Markdown (GitHub's tables), its title, if it has one, above and its sentences below."""
    lines = [f"**{_markdown(table.title)}**", ""] if table.title else []
    lines.append(_markdown_row(column.heading for column in table.columns))
    lines.append("|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|")
    for place, row in enumerate(table.rows):
        if len(row) == 1:  # a heading of the rows below it
            lines.append(_markdown_row([f"*{row[0]}*", *[""] * (len(table.columns) - 1)]))
            continue
        strong = place in table.strong_rows
        lines.append(
            _markdown_row(
                f"**{cell}**" if cell and "\n" not in cell and (strong or column.strong) else cell
                for cell, column in zip(row, table.columns, strict=True)
            )
        )
    lines += [line for note in table.notes for line in ("", _markdown(note))]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_markdown(cell) for cell in cells) + " |"


def _markdown(text: str) -> str:
    shown = visible(text).replace("-\n", "").replace("\\", "\\\\")
    return re.sub(r"([|`\[\]])", r"\\\1", shown).replace("<", "&lt;").replace("\n", "<br>")


def latex_table(table: Table) -> str:
    """Return a table as LaTeX, for the packages booktabs and makecell."""
    places = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_latex(table.title)}}}", rf"\begin{{tabular}}{{{places}}}"]
    headings = (_latex_cell(column.heading, numeric=column.numeric) for column in table.columns)
    lines += [r"\toprule", " & ".join(headings) + r" \\", r"\midrule"]
    for place, row in enumerate(table.rows):
        if len(row) == 1:
            lines.append(rf"\multicolumn{{{len(table.columns)}}}{{l}}{{\emph{{{_latex(row[0])}}}}} \\")
            continue
        cells = []
        for cell, column in zip(row, table.columns, strict=True):
            text = _latex_cell(cell, numeric=column.numeric)
            bold = "\n" not in cell and (place in table.strong_rows or column.strong)
            cells.append(rf"\textbf{{{text}}}" if bold and cell else text)
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip\footnotesize {_latex(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_cell(text: str, *, numeric: bool) -> str:
    lines = text.replace("-\n", "").split("\n")
    if len(lines) == 1:
        return _latex(lines[0])
    return rf"\makecell[{'r' if numeric else 'l'}]{{" + r" \\ ".join(_latex(line) for line in lines) + "}"


def _latex(text: str) -> str:
    return "".join(_LATEX_CHARACTERS.get(character, character) for character in visible(text)).replace("\n", " ")


_WRITERS: Mapping[TextFormat, Callable[[Table], str]] = {"markdown": markdown_table, "latex": latex_table}


def tables_text(sections: Iterable[Section], form: TextFormat) -> str:
    """Return all tables of some sections."""
    tables = [_WRITERS[form](table) for section in sections for table in section.tables]
    head = "% \\usepackage{booktabs, makecell}\n\n" if form == "latex" and tables else ""
    return head + "\n".join(tables)
