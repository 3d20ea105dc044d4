"""Tables as Markdown and LaTeX: every cell is there, and nothing of it is a command of either."""

from __future__ import annotations

import re
from operator import itemgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.cli.main import main
from gatemark.report.table import Column, Section, table_of
from gatemark.report.text_tables import latex_table, markdown_table, tables_text
from gatemark.series.run import measure_series
from gatemark.session import measure

COLUMNS: tuple[Column[tuple[str, str]], ...] = (
    Column("gate-\nway", itemgetter(0), numeric=False),
    Column("median\nspread", itemgetter(1), strong=True),
)
ROWS: list[tuple[str, str] | str] = [("a|b_c", "1,000"), "several", ("~x\nof <y>", "\u2265 2\n1 \u2013 3")]
TABLE = table_of(
    "Rates & shares, 50 %",
    COLUMNS,
    ROWS,
    notes=("100 % of {it}.",),
)


def test_markdown() -> None:
    assert (
        markdown_table(TABLE)
        == """\
**Rates & shares, 50 %**

| gateway | median<br>spread |
|---|---:|
| a\\|b_c | **1,000** |
| *several* |  |
| ~x<br>of &lt;y> | \u2265 2<br>1 \u2013 3 |

100 % of {it}.
"""
    )


def test_latex() -> None:
    assert (
        latex_table(TABLE)
        == r"""\begin{table}
\centering
\caption{Rates \& shares, 50 \%}
\begin{tabular}{lr}
\toprule
gateway & \makecell[r]{median \\ spread} \\
\midrule
a\textbar{}b\_c & \textbf{1,000} \\
\multicolumn{2}{l}{\emph{several}} \\
\makecell[l]{\textasciitilde{}x \\ of \textless{}y\textgreater{}} & \makecell[r]{$\ge$ 2 \\ 1 -- 3} \\
\bottomrule
\end{tabular}
\par\smallskip\footnotesize 100 \% of \{it\}.
\end{table}
"""
    )


@given(cells=st.lists(st.text(st.sampled_from("ab1 \\&%$#_{}~^|<\n\u2013\u2265"), max_size=8), min_size=2, max_size=2))
def test_a_cell_stays_a_cell(cells: list[str]) -> None:
    table = table_of("", COLUMNS, [("x", cells[1]), (cells[0], "y")])
    rows = [line for line in latex_table(table).splitlines() if line.endswith(r" \\")]
    assert len(rows) == 3
    assert all(len(re.findall(r"(?<!\\)&", row)) == 1 for row in rows)
    for row in rows:
        bare = re.sub(r"\\[{}]", "", row)
        assert bare.count("{") == bare.count("}")
    lines = [line for line in markdown_table(table).splitlines() if line.startswith("| ")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [3] * 3


def test_no_tables_are_no_text() -> None:
    assert tables_text([Section(title="nothing")], "latex") == ""


@pytest.mark.parametrize(("form", "begin"), [("markdown", "**"), ("latex", "% \\usepackage{booktabs, makecell}")])
def test_the_tables_of_a_result_and_of_a_series(
    form: str, begin: str, write_campaign: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(write_campaign)
    device = SimulatedDevice(capacity_forward=400_000)
    campaign = measure(write_campaign(), output=tmp_path / "one", equipment=simulated_equipment(device), report=False)
    file = write_campaign()
    file.write_text(file.read_text(encoding="utf-8") + "\n[[vary]]\nseed = [1, 2]\n", encoding="utf-8")
    series = measure_series(file, output=tmp_path / "two", equipment=simulated_equipment(device), report=False)
    for folder in (campaign.folder, series.folder):
        assert main(["report", str(folder), "--format", form]) == 0
        text = capsys.readouterr().out
        assert text.startswith(begin)
        assert "399," in text or "400," in text
    assert main(["compare", str(campaign.folder), str(campaign.folder), "--format", form]) == 0
    assert "Quantities" in capsys.readouterr().out
