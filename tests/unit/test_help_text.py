"""Help fits the terminal: no line is wider, and no line ends early because a docstring did."""

from __future__ import annotations

import itertools

import pytest

from gatemark.cli.help_text import EXAMPLE, joined_lines, wrapped
from gatemark.cli.main import COMMANDS, main

WIDER_THAN_ANY_TEXT = 4000


def shown_help(command: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*command.split(), "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", ["", *sorted(COMMANDS)])
def test_help_fills_the_width_and_keeps_to_it(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown_help(command, width, monkeypatch, capsys).splitlines()
    assert [line for line in lines if len(line) > width and not line.startswith(EXAMPLE)] == []
    for line, following in itertools.pairwise(lines):
        if line and following and not (line + following).startswith(("╭", "│", EXAMPLE)) and following[0] not in "╭│╰":
            assert len(f"{line} {following.split()[0]}") > width, line


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_line_break_of_a_docstring_survives(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown_help(command, WIDER_THAN_ANY_TEXT, monkeypatch, capsys).splitlines()
    words, rows = lines[: lines.index("", 2)], [line for line in lines if line.startswith("│")]
    assert len(words) == 3, "usage, an empty line and one paragraph"
    assert rows
    assert [row.strip("│ ") for row in rows if not row[:6].strip("│* ")] == [], "a text goes on in a second line"


def test_lists_and_blocks_keep_their_lines() -> None:
    items, block = "- an item\n  that goes on\n- another", "    a block\n    of code"
    text = f"One\nparagraph.\n\n{items}\n\n{block}\n\nExample: gatemark x\nAfter."
    assert joined_lines(text) == [
        *("One paragraph.", "", "- an item that goes on", "- another", ""),
        *("    a block", "    of code", "", "Example: gatemark x", "After."),
    ]
    assert wrapped("- an item that goes on\n\nExample: gatemark run --resume x", 12).splitlines() == [
        *("- an item", "  that goes", "  on", "", "Example: gatemark run --resume x"),
    ]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_option_has_an_opposite(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = shown_help(command, WIDER_THAN_ANY_TEXT, monkeypatch, capsys)
    assert "--no-" not in shown and "--empty-" not in shown
