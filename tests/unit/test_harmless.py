"""Text and JSON of others: whatever they hold, terminal, table and page show it, and nothing else happens."""

from __future__ import annotations

import csv
import io
import json
import sys
from xml.etree import ElementTree

import pytest
from rich.text import Text

from gatemark.consoles import SafeConsole, visible_output
from gatemark.harmless import DEPTH_MAX, TOML_CHARACTERS_MAX, csv_text, json_of, toml_of, visible, visible_json
from gatemark.report.page import fill
from gatemark.report.plot_style import Drawing, add_legend
from gatemark.report.table import Column, table_of
from gatemark.report.text_tables import markdown_table

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b8m\u202etxt\x00"


def test_control_characters_are_shown() -> None:
    assert visible(ESCAPES) == r"\x1b]0;owned\x07\x1b[2J\x9b8m\u202etxt\x00"
    assert visible("größe\t1\n漢") == "größe\t1\n漢"


def test_nothing_that_is_printed_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with visible_output():
        print(ESCAPES)
        print(ESCAPES, file=sys.stderr)
        SafeConsole(highlight=False).print(Text(ESCAPES))
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert not {character for character in text if not character.isprintable()} - {"\n"}
        assert "owned" in text


def test_styles_and_the_live_display_are_those_of_gatemark() -> None:
    out = io.StringIO()
    SafeConsole(file=out, force_terminal=True, color_system="standard").print(Text("\x1b[8mname", style="bold"))
    assert out.getvalue() == "\x1b[1m\\x1b[8mname\x1b[0m\n"


def test_json_on_a_terminal_is_the_same_document() -> None:
    text = visible_json(json.dumps({"name": ESCAPES}, ensure_ascii=False))
    assert text.isprintable()
    assert json.loads(text) == {"name": ESCAPES}


@pytest.mark.parametrize("text", ['=HYPERLINK("http://203.0.113.9")', "+1", "-2+3|cmd", "@SUM(1)", "\t=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    ((cell,),) = csv.reader(io.StringIO(csv_text([[text]])))
    assert cell == f"'{text}"


@pytest.mark.parametrize("value", [-5, -2.5, "-", "- 5 6", "-12", "throughput", "1.0-rc1", None])
def test_figures_and_words_stay_what_they_are(value: object) -> None:
    ((cell,),) = csv.reader(io.StringIO(csv_text([[value]])))
    assert cell == ("" if value is None else str(value))


@pytest.mark.parametrize(
    "text",
    [
        "NaN", '{"a": Infinity}', '{"a": -Infinity}', '{"a": 1e999}', "[" * 100_000, '{"a":' * 100_000,
        '{"a": ' + "9" * 5000 + "}", "", "\0", "{", '{"a": 1, "a": 1}', '[{"b": {"a": 1, "\\u0061": 2}}]',
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_damaged_json_is_one_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        json_of(text)


DEEP = "a." * DEPTH_MAX + "a"
STRANGE_TOML = {
    "a key": f"{DEEP} = 1",
    "a key of texts": "\"a\" . 'a' . " * 40 + "a = 1",
    "a table": f"[{DEEP}]",
    "a table of many": f"[[ {DEEP} ]]",
    "an inner table": f"x = [1, {{{DEEP} = 1}}]",
    "16 kB": "a." * 8000 + "a = 1",
    "a table and a key": f"[{'a.' * 40}a]\n{'b.' * 40}b = 1",
    "lists": f"x = {'[' * 65}{']' * 65}",
    "endless lists": f"x = {'[' * 100_000}",
    "tables": f"x = {'{a = ' * 10_000}",
    "behind a text that ends in quotes": f'x = ["""a"""" , {{{DEEP} = 1}}, ""]',
    "behind a literal text that ends in quotes": f"x = ['''a'''' , {{{DEEP} = 1}}, '']",
    "behind an escaped quote": f'x = """\\""""\n{DEEP} = 1',
    "behind an escaped backslash": f'x = "\\\\"\n{DEEP} = 1',
    "behind a quote in a comment": f"# it's\n{DEEP} = 1 # it's",
    "a long text": "#" * (TOML_CHARACTERS_MAX + 1),
    "a long number": f"x = {'9' * 5000}",
    "a long number in hexadecimal": f"x = [{{a = 0x{'f' * 5000}}}]",
    "no text": "x",
}
"""What is refused before it takes memory with the square of its size, and what Python cannot show."""


@pytest.mark.parametrize("text", STRANGE_TOML.values(), ids=STRANGE_TOML)
def test_strange_toml_is_one_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        toml_of(text)


def test_the_parser_does_not_see_a_deep_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("tomllib.loads")
    for name in ("16 kB", "a key of texts", "an inner table", *(name for name in STRANGE_TOML if "behind" in name)):
        with pytest.raises(ValueError, match="nested too deeply"):
            toml_of(STRANGE_TOML[name])


def test_dots_that_part_no_keys_are_no_depth() -> None:
    dots = "a." * 100 + "a"
    read = toml_of(
        f'# {dots}\nx = "{dots}"\ny = """\n{dots} = 1"""\nz = [{"0.5, " * 100}]\nn = [{2**64 - 1}, {-(2**63)}]\n'
    )
    assert read == {"x": dots, "y": f"{dots} = 1", "z": [0.5] * 100, "n": [2**64 - 1, -(2**63)]}


@pytest.mark.parametrize(
    "label", ["a $x$ b", r"cost $\frac{$ here", r"$\notacommand$", "_hidden", "<script>&", "\x1b[31m"]
)
def test_a_plot_shows_every_name_as_it_is(label: str) -> None:
    def draw(axes: object) -> None:
        axes.plot([1, 2], [1, 2], label=label)  # type: ignore[attr-defined]
        add_legend(axes)  # type: ignore[arg-type]

    element = ElementTree.fromstring(Drawing(name=f'"><script>{label}', draw=draw).svg.replace("xlink:", ""))
    texts = ["".join(text.itertext()).strip("\u200b") for text in element.iter() if text.tag.endswith("text")]
    assert visible(label) in texts
    assert not list(element.iter("script"))


def test_a_page_shows_control_characters() -> None:
    page = fill("series.html.j2", **{**series_of(ESCAPES)})
    assert visible("\x1b]0;owned\x07") in page
    assert "\x1b" not in page


def series_of(name: str) -> dict[str, object]:
    class Empty:
        columns: tuple[object, ...] = ()
        gatemark = "1"

    series = Empty()
    series.name = name  # type: ignore[attr-defined]
    section = type("Section", (), {"lead": (), "tables": (), "notes": (), "title": ""})()
    return {
        "series": series, "gateways": (name,), "section": section, "services": None, "degradation": None,
        "plots": (), "waiting": (), "columns": section, "words": {}, "claims": (), "deviations": (), "text": name,
    }  # fmt: skip


def test_markdown_of_others_is_no_link() -> None:
    table = table_of("", (Column("name", str),), ["[x](javascript:alert(1)) ![i](http://203.0.113.9/p.png) `<b>`"])
    assert r"\[x\](javascript:alert(1)) !\[i\](http://203.0.113.9/p.png) \`&lt;b>\`" in markdown_table(table)
