"""Tables as LaTeX are compiled: those of every result of the gallery, and one with every character that is special."""

from __future__ import annotations

import shutil
import subprocess
from operator import itemgetter
from pathlib import Path

import pytest

from gatemark.archive.read import unpacked
from gatemark.errors import ResultError
from gatemark.report.summary import shown_sections
from gatemark.report.table import Column, Section, table_of
from gatemark.report.text_tables import tables_text
from gatemark.series.report import section
from gatemark.series.run import open_series
from gatemark.series.store import is_series
from gatemark.stored import read_document, sections_of

ROOT = Path(__file__).parents[2]
SPECIAL = "[a] \\ & % $ # _ { } ~ ^ < > | \u2013 \u2212 ≥ ± µ \u03b1 \u00d7 · ∞ … “ ” §"

pytestmark = [
    pytest.mark.nightly("LaTeX is 280 MB of packages"),
    pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex: package texlive-latex-extra"),
]


def compiled(tables: str, folder: Path) -> str:
    """Return what a reader sees: the tables alone need no other packages than their first line names."""
    used = tables.splitlines()[0].removeprefix("% ")
    text = f"\\documentclass{{article}}\n{used}\n\\begin{{document}}\n{tables}\\end{{document}}\n"
    (folder / "tables.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    faults = [line for line in done.stdout.splitlines() if line.startswith("!") or "Missing character" in line]
    assert (done.returncode, faults) == (0, []), done.stdout[-2000:]
    assert (folder / "tables.pdf").stat().st_size > 5000
    return done.stdout


def test_special_characters(tmp_path: Path) -> None:
    columns = (Column(SPECIAL, itemgetter(0)), Column("two\nlines", itemgetter(1), strong=True))
    table = table_of(SPECIAL, columns, [(SPECIAL, "1\n[2]"), "[a group]", ("[3]", SPECIAL)], notes=(SPECIAL,))
    compiled(tables_text([Section(title="", tables=(table,))], "latex"), tmp_path)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "gallery").glob("*.tar.gz")))
def test_tables_of_the_gallery(name: str, tmp_path: Path) -> None:
    with unpacked(ROOT / "gallery" / name) as content:
        try:
            if is_series(content.path):
                document = open_series(content.path).document
                sections = [section(document, columns_max=len(document.columns))]
            else:
                result = read_document(content.folder)
                sections = [shown for shown, _ in shown_sections([(result, sections_of(result))])]
        except ResultError as error:
            pytest.skip(f"measured by a gatemark whose results this one does not read: {error}")
    text = tables_text(sections, "latex")
    assert "Output written on tables.pdf" in compiled(text, tmp_path)
