"""Help on the terminal: texts fill its width, however the source breaks their lines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from cyclopts.help import DefaultFormatter, HelpPanel

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

EXAMPLE = "Example: "
"""A line that begins with this holds a command. It is never wrapped, so that a reader can copy it."""

_ITEM = "- "


class HelpFormatter(DefaultFormatter):
    """Prints help as cyclopts does, but joins the lines that a docstring breaks."""

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Print the text above the panels."""
        print(wrapped(str(description.primary_renderable), options.max_width), end="\n\n", file=console.file)

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print one panel."""
        from rich.text import Text

        for entry in panel.entries:
            text = str(entry.description.primary_renderable)
            entry.description.primary_renderable = Text("\n".join(joined_lines(text)))
        super().__call__(console, options, panel)


def wrapped(text: str, width: int) -> str:
    """Return a text with its paragraphs and the items of its lists wrapped; examples and indented lines are kept."""
    return "\n".join(_wrapped(line, width) for line in joined_lines(text))


def _wrapped(line: str, width: int) -> str:
    if line.startswith((" ", EXAMPLE)):
        return line
    indent = " " * len(_ITEM) if line.startswith(_ITEM) else ""
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def joined_lines(text: str) -> list[str]:
    """Return each paragraph and each item of a list as one line; empty and indented lines are kept."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        if lines and _continues(line, lines[-1]):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line.rstrip())
    return lines


def _continues(line: str, before: str) -> bool:
    """Whether a line goes on with the paragraph or item before it."""
    if not before or not line.strip() or line.startswith(_ITEM):
        return False
    return before.startswith(_ITEM) or not (before.startswith((" ", EXAMPLE)) or line.startswith(" "))
